import Session
import Testing
import Wire

/// Drives a `PusherSession` by hand, and records the actions that it asks for.
final class PusherModel {
    var session: PusherSession
    var now = Instant(nanoseconds: 1_000_000_000_000)
    /// The number of the last socket that was opened.
    private(set) var socket: UInt64 = 0
    private(set) var attempt: PusherSession.Attempt?
    /// The last request for authorization.
    private(set) var request: PusherAuthorizationRequest?
    private(set) var members = PusherMembers?.none
    /// The last change of the state, failure and event.
    private(set) var change: PusherStateChange?
    private(set) var failure: PusherSubscriptionFailure?
    private(set) var event: PusherEvent?
    private var reader = PusherEnvelopeReader()
    private var ids: UInt64 = 0

    init(_ change: (inout PusherConfiguration) throws -> Void = { _ in }) throws {
        var configuration = try PusherConfiguration(key: "KEY")
        try change(&configuration)
        session = PusherSession(configuration)
    }

    /// Connected, with the socket id 1.1.
    static func connected(
        _ change: (inout PusherConfiguration) throws -> Void = { _ in }
    ) throws -> PusherModel {
        let model = try PusherModel(change)
        _ = try model.establish()
        return model
    }

    /// - Returns: what was done when the server confirmed the connection.
    func establish(_ id: String = "1.1", timeout: String = "120") throws -> [String] {
        if session.state != .connecting { _ = connect() }
        _ = open()
        let done = receive(PusherModel.established(id, timeout))
        try #require(session.state == .connected)
        return done
    }

    static func established(_ id: String = "1.1", _ timeout: String = "120") -> String {
        #"{"event":"pusher:connection_established","data":"{\"socket_id\":\"\#(id)\","#
            + #"\"activity_timeout\":\#(timeout)}"}"#
    }

    /// How long until its next deadline.
    var wait: Duration? { session.wakeUp.map { $0 - now } }

    // MARK: Actions

    /// The actions that are due now, in order.
    func done() -> [String] {
        var result: [String] = []
        while let action = session.nextAction() { result.append(text(action)) }
        return result
    }

    private func text(_ action: PusherSession.Action) -> String {
        switch action {
        case .command(let command): text(command)
        case .report(let report): text(report)
        }
    }

    private func text(_ command: PusherSession.Command) -> String {
        switch command {
        case .connect(let attempt):
            (socket, self.attempt) = (attempt.number, attempt)
            return "open"
        case .send(let number, let bytes):
            #expect(number == socket)
            return message(bytes)
        case .ping: return "ping frame"
        case .close: return "close"
        case .drop(let number): return number == socket ? "drop" : "drop another"
        case .authorize(let request): return text(request)
        case .cancelAuthorization(let number):
            return number == request?.number ? "cancel" : "cancel another"
        }
    }

    private func text(_ report: PusherSession.Report) -> String {
        switch report {
        case .stateChanged(let change):
            self.change = change
            let wait = change.retryIn.map { " in \($0.readable)" } ?? ""
            return "\(change.old.name) → \(change.new.name)\(wait)"
        case .failed(let error): return "error \(error.code.map { "\($0)" } ?? "none")"
        case .event(let event, let id):
            self.event = event
            return "event \(string(event.event))\(id.map { " on \($0)" } ?? "")"
        case .userEvent(let event): return "user event \(string(event.event))"
        case .watchlist(let event):
            return "watchlist \(event.name) \(event.userIDs.joined(separator: ","))"
        case .signedIn(let id, _): return "signed in \(id)"
        case .signInFailed(let failure):
            self.failure = failure
            return "sign-in failed \(failure.error.code)"
        case .signInAnswered(let calls, let failure):
            for call in calls { call.answered(failure) }
            return "\(calls.count) answered \(failure.map { "\($0.error.code)" } ?? "ok")"
        case .signedOut: return "signed out"
        case .log(let line): return "log \(line)"
        case .channel(let id, let report): return text(id, report)
        }
    }

    private func text(
        _ id: PusherSession.ChannelID, _ report: PusherSession.ChannelReport
    ) -> String {
        switch report {
        case .state(let state): return "\(id) \(state)"
        case .subscribed: return "\(id) ready"
        case .failed(let failure):
            self.failure = failure
            return "\(id) refused \(failure.error.code)"
        case .members(let change):
            if members == nil { members = PusherMembers.none }
            members?.apply(change)
            let ids = members?.table.members.map { $0.id } ?? []
            return "\(id) has \(ids.joined(separator: ","))"
        case .memberAdded(let member): return "\(id) added \(member.id)"
        case .memberRemoved(let member):
            return "\(id) removed \(member.id) \(member.info.map { string($0) } ?? "none")"
        case .count(let count): return "\(id) counts \(count)"
        case .decryptionFailed(let event, _): return "\(id) cannot decrypt \(event)"
        case .triggerFailed(let event, let error):
            return "\(id) drops \(event) \(error.code)"
        }
    }

    private func text(_ request: PusherAuthorizationRequest) -> String {
        self.request = request
        guard case .channels(let channels) = request.purpose else {
            return "authorize user for \(request.socketID)"
        }
        let names = channels.map { $0.name.text }.joined(separator: ",")
        return "authorize \(names) for \(request.socketID)"
    }

    /// A short form of what is sent.
    private func message(_ bytes: [UInt8]) -> String {
        guard let json = try? JSONValue(parsing: bytes), let event = json["event"]?.stringValue
        else { return "invalid \(string(bytes))" }
        let short = event.hasPrefix("pusher:") ? String(event.dropFirst(7)) : event
        let data = json["data"]
        let channel = data?["channel"]?.stringValue ?? json["channel"]?.stringValue
        let auth = data?["auth"]?.stringValue.map { " with \($0)" } ?? ""
        let more = json["channel"] == nil ? "" : " \((try? data?.text) ?? "")"
        return "send \(short)\(channel.map { " \($0)" } ?? "")\(auth)\(more)"
    }

    private func string(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

    // MARK: The application

    func connect() -> [String] {
        session.connect(now: now)
        return done()
    }

    func disconnect() -> [String] {
        session.disconnect(now: now)
        return done()
    }

    /// - Returns: the channel's id, and what was done.
    func subscribe(
        _ name: String, answer: PusherAuthorizationAnswer? = nil
    ) throws -> (id: UInt64, done: [String]) {
        ids += 1
        return (ids, try again(ids, name, answer: answer))
    }

    /// Subscribes with an id that exists.
    func again(
        _ id: UInt64, _ name: String, answer: PusherAuthorizationAnswer? = nil
    ) throws -> [String] {
        session.subscribe(id, try PusherChannelName(name), answer: answer, now: now)
        return done()
    }

    /// Subscribes, and confirms the subscription.
    func join(
        _ name: String, data: String = "{}", own: String? = nil, secret: SharedSecret? = nil
    ) throws -> UInt64 {
        let (id, _) = try subscribe(name)
        if try PusherChannelName(name).needsAuthorization {
            _ = authorize(channelData: own, secret: secret)
        }
        _ = succeed(name, data: data)
        try #require(session.channelState(id) == .subscribed)
        return id
    }

    func unsubscribe(_ id: UInt64) -> [String] {
        session.unsubscribe(id, now: now)
        return done()
    }

    func trigger(_ id: UInt64, _ event: String, _ data: String = "1") throws -> [String] {
        session.trigger(id, event, try JSONText(checking: data), now: now)
        return done()
    }

    func signIn(_ call: (any PusherSignInCall)? = nil) -> [String] {
        session.signIn(call, now: now)
        return done()
    }

    func signOut() -> [String] {
        session.signOut(now: now)
        return done()
    }

    // MARK: Authorization

    /// Answers a request, for all of its channels; the last one by default.
    func authorize(
        _ auth: String = "KEY:1", channelData: String? = nil, secret: SharedSecret? = nil,
        _ request: PusherAuthorizationRequest? = nil
    ) -> [String] {
        guard case .channels(let channels)? = (request ?? self.request)?.purpose else { return [] }
        let answer = PusherAuthorizationAnswer(
            auth: auth, channelData: channelData, sharedSecret: secret)
        return self.answer(.channels(channels.map { _ in .success(answer) }), request)
    }

    func refuse(
        _ code: RealtimeError.Code = .auth, status: Int = 0, body: String = ""
    ) -> [String] {
        let response = HTTPResponse(
            ResponseHead(status: status, fields: []), body: Array(body.utf8))
        return answer(.failed(RealtimeError(code, "no", response: status > 0 ? response : nil)))
    }

    func authorizeUser(
        _ data: String = #"{"id":"u-1"}"#, to request: PusherAuthorizationRequest? = nil
    ) -> [String] {
        answer(.user(PusherUserAnswer(auth: "KEY:2", userData: data)), request)
    }

    func answer(
        _ outcome: PusherAuthorizationOutcome, _ request: PusherAuthorizationRequest? = nil
    ) -> [String] {
        session.authorized((request ?? self.request)?.number ?? 0, outcome, now: now)
        return done()
    }

    // MARK: The server

    func open() -> [String] {
        session.opened(socket, now: now)
        return done()
    }

    /// - Returns: what was done, or how the event is delivered.
    func receive(_ text: String, on socket: UInt64? = nil) -> [String] {
        if case .deliver(let id, _)? = received(text, on: socket) {
            return ["deliver\(id.map { " on \($0)" } ?? "")"] + done()
        }
        return done()
    }

    func received(_ text: String, on socket: UInt64? = nil) -> PusherReception? {
        Array(text.utf8).withUnsafeBytes { bytes in
            try? reader.read(bytes) { envelope in
                session.received(envelope, on: socket ?? self.socket, now: now)
            }
        }
    }

    func event(_ event: String, _ channel: String, data: String = "1") -> [String] {
        receive(#"{"event":"\#(event)","channel":"\#(channel)","data":\#(data)}"#)
    }

    func succeed(_ channel: String, data: String = "{}") -> [String] {
        event("pusher_internal:subscription_succeeded", channel, data: data)
    }

    /// The server answers a ping.
    func pong() -> [String] { receive(#"{"event":"pusher:pong","data":"{}"}"#) }

    /// The server confirms the user of a sign-in.
    func confirmUser(_ id: String = "u-1") -> [String] {
        let data = #"{\"user_data\":\"{\\\"id\\\":\\\"\#(id)\\\"}\"}"#
        return receive(#"{"event":"pusher:signin_success","data":"\#(data)"}"#)
    }

    func error(_ code: Int?, channel: String? = nil) -> [String] {
        let code = code.map { "\($0)" } ?? "null"
        let channel = channel.map { #","channel":"\#($0)""# } ?? ""
        return receive(
            #"{"event":"pusher:error"\#(channel),"data":{"code":\#(code),"message":"words"}}"#)
    }

    /// The socket ends after this time.
    func end(
        _ code: UInt16? = nil, _ reason: String = "", _ error: RealtimeError.Code? = nil,
        after time: Duration = .zero
    ) -> [String] {
        now = now + time
        let end = PusherSocketEnd(
            closeCode: code, reason: reason,
            error: error.map { RealtimeError($0, "the socket ended") }, wasClean: error == nil)
        session.ended(socket, end, now: now)
        return done()
    }

    /// Lets time pass until its next deadline.
    func pass() throws -> [String] {
        let due = session.wakeUp
        now = try #require(due)
        session.timeReached(now)
        return done()
    }

    /// Lets this time pass.
    func pass(_ time: Duration) -> [String] {
        let end = now + time
        var result: [String] = []
        while let due = session.wakeUp, due <= end {
            now = max(now, due)
            session.timeReached(now)
            result += done()
        }
        now = end
        return result
    }
}
