import Documents
import Session
import Testing
import Wire

/// A Meteor client and the server that the test plays. What the client does becomes lines.
final class DDPModel {
    var session: DDPSession
    var now = Instant(nanoseconds: 1_000_000_000_000)
    /// What the stub of the method `stub` does.
    var stub: (inout DDPSession, inout IDs) -> DDPStubOutcome = { _, _ in .success(.null) }
    private var ids = IDs()
    private var reader = DDPReader()
    private(set) var socket: UInt64 = 0

    /// Subscriptions are `s1`, `s2` and so on; seeds count, too.
    struct IDs: DDPRandomSource {
        private var subscriptions = 0
        private var seeds = 0

        mutating func subscriptionID() -> String {
            subscriptions += 1
            return "s\(subscriptions)"
        }

        mutating func seed() -> String {
            seeds += 1
            return "seed\(seeds)"
        }
    }

    init(token: DDPLoginToken? = nil, _ change: (inout DDPConfiguration) -> Void = { _ in }) {
        var configuration = DDPConfiguration()
        configuration.bufferInterval = .zero
        change(&configuration)
        session = DDPSession(configuration, token: token)
        session.wallClock = 1_700_000_000_000
        session.declare("c")
    }

    /// A client with a connection and the session `S`.
    static func connected(
        _ change: (inout DDPConfiguration) -> Void = { _ in }
    ) -> DDPModel {
        let model = DDPModel(change)
        model.connect()
        return model
    }

    func connect(_ id: String = "S") {
        session.connect(now: now)
        _ = done()
        open()
        confirm(id)
        _ = done()
    }

    // MARK: The socket and the server

    func open() {
        session.beginOpening(socket, now: now)
        session.opened(socket, now: now)
    }

    func confirm(_ id: String) { server(#"{"msg":"connected","session":"\#(id)"}"#) }

    func server(_ messages: String...) {
        for message in messages {
            var message = message
            message.withUTF8 { text in
                let frame = reader.read(UnsafeRawBufferPointer(text))
                session.received(frame, bytes: text.count, on: socket, now: now)
            }
        }
    }

    func added(_ id: String, _ fields: String = "{}") {
        server(#"{"msg":"added","collection":"c","id":"\#(id)","fields":\#(fields)}"#)
    }

    func ready(_ subscriptions: String...) {
        server(#"{"msg":"ready","subs":\#(subscriptions)}"#)
    }

    func updated(_ calls: Int...) {
        server(#"{"msg":"updated","methods":\#(calls.map { "\($0)" })}"#)
    }

    func result(_ call: Int, _ value: String = "1") {
        server(#"{"msg":"result","id":"\#(call)","result":\#(value)}"#)
    }

    func refuse(_ call: Int, _ error: String = #"{"error":403}"#) {
        server(#"{"msg":"result","id":"\#(call)","error":\#(error)}"#)
    }

    func lose() { end(DDPSocketEnd(error: RealtimeError(.connectionLost, "lost"))) }

    func end(_ end: DDPSocketEnd) { session.ended(socket, end, now: now) }

    /// Loses the connection and opens another one, which the server has not confirmed.
    func reopen() -> [String] {
        lose()
        session.connect(now: now)
        _ = done()
        open()
        return done()
    }

    /// Lets time pass, in steps in which something is due.
    func pass(_ time: Duration) {
        let end = now + time
        while let due = session.wakeUp, due <= end {
            now = max(now, due)
            session.timeReached(now)
        }
        now = end
    }

    /// Does what a driver does in the turns that follow.
    func finishFlush() {
        while session.isFlushing { session.continueFlush(now) }
    }

    // MARK: The user

    @discardableResult
    func call(
        _ name: String, _ params: [EJSON] = [],
        _ change: (inout DDPCallOptions) -> Void = { _ in }
    ) -> EJSON? {
        var request = DDPRequest(name, params)
        change(&request.options)
        do throws(DDPError) {
            guard name == "stub" else {
                return try session.call(request, drawing: &ids, now: now).value
            }
            session.beginStub(now: now)
            let outcome = stub(&session, &ids)
            return try session.call(request, outcome, now: now).value
        } catch {
            return nil
        }
    }

    @discardableResult
    func insert(_ document: EJSON) -> EJSON? { call("/c/insert", [document]) }

    func set(_ id: String, _ n: Int) {
        call("/c/update", [["_id": .string(id)], ["$set": ["n": .number(Double(n))]]])
    }

    /// Inserts, changes and removes the document `a`.
    func write() {
        _ = try? session.insert("c", ["_id": "a"], drawing: &ids, now: now)
        _ = try? session.update("c", id: "a", ["$set": ["n": 1]], drawing: &ids, now: now)
        _ = try? session.remove("c", id: "a", drawing: &ids, now: now)
    }

    func subscribe(
        _ name: String, _ params: [EJSON] = [], keep: Duration? = nil
    ) -> DDPSession.SubscriptionHandle {
        session.subscribe(name, params, keep: keep, drawing: &ids, now: now)
    }

    func logIn() { _ = session.logIn(.login(token: "old"), now: now) }

    func document(_ id: String) -> String? {
        DocumentID(.string(id)).flatMap {
            session.store.document(DocumentKey(collection: "c", id: $0))
        }.map { EJSON.object($0).text }
    }

    // MARK: What the client does

    /// What it did since the last time.
    func done() -> [String] {
        var lines: [String] = []
        while let action = session.nextAction() {
            switch action {
            case .command(.connect(let number)): socket = number
            case .report(.account(.store(let token))): session.tokenKept(token)
            case .report(.account(.forget)): session.tokenKept(nil)
            default: break
            }
            lines += DDPModel.lines(action)
        }
        return lines
    }

    /// The messages of the errors that it reported since the last time.
    func errors() -> [String] {
        var messages: [String] = []
        while let action = session.nextAction() {
            if case .report(.status(let change)) = action, let error = change.error {
                messages.append(error.message)
            }
        }
        return messages
    }

    private static func lines(_ action: DDPSession.Action) -> [String] {
        switch action {
        case .command(let command): [line(command)]
        case .report(let report): lines(report)
        }
    }

    private static func line(_ command: DDPSession.Command) -> String {
        switch command {
        case .connect: "dial"
        case .send(_, let bytes): message(bytes)
        case .close: "close"
        case .drop: "drop"
        case .keep: "keep"
        }
    }

    private static func lines(_ report: DDPSession.Report) -> [String] {
        switch report {
        case .status(let change): ["\(change.status)"]
        case .changed(let notification):
            notification.changes.map { change in
                "\(change.key.id.wire) \(change.after.map { EJSON.object($0).text } ?? "gone")"
            } + notification.ended.map { "end of a query over \($0.collection)" }
        case .streamed(let collection, let event): ["\(collection): \(text(event))"]
        case .result(let id, let result): ["result \(id) \(text(result))"]
        case .completed(let id, let result): ["done \(id) \(text(result))"]
        case .ready(let handle): ["ready \(handle)"]
        case .stopped(let handle, let error): ["stopped \(handle) \(error?.code ?? "")"]
        case .loaded(_, let error): ["loaded \(error?.code ?? "")"]
        case .account(let event): [text(event)]
        case .current: ["current"]
        case .refused(let reason, _): ["refused \(reason)"]
        case .log: []
        }
    }

    private static func message(_ bytes: [UInt8]) -> String {
        let text = String(decoding: bytes, as: UTF8.self)
        guard case .object(let message)? = try? EJSON(parsing: text) else { return "not JSON" }
        var words: [String] = []
        let names = [
            "msg", "version", "session", "receivedCount", "id", "name", "method", "params",
            "randomSeed",
        ]
        for name in names {
            switch message[name] {
            case .string(let text)?: words.append(text)
            case let value?: words.append(value.text)
            case nil: break
            }
        }
        return "> " + words.joined(separator: " ")
    }

    private static func text(_ result: Result<EJSON, DDPError>) -> String {
        switch result {
        case .success(let value): value.text
        case .failure(let error): error.code
        }
    }

    private static func text(_ event: ListChange) -> String {
        switch event {
        case .added(let id, let fields, let before):
            "added \(id.wire) \(EJSON.object(fields).text)\(before.map { " \($0.wire)" } ?? "")"
        case .changed(let id, let fields, let cleared):
            "changed \(id.wire) \(EJSON.object(fields).text) \(cleared)"
        case .moved(let id, let before): "moved \(id.wire) \(before?.wire ?? "")"
        case .removed(let id): "removed \(id.wire)"
        }
    }

    private static func text(_ event: DDPAccountEvent) -> String {
        switch event {
        case .user(let id): "user \(id ?? "none")"
        case .loggingIn(let isLoggingIn): isLoggingIn ? "logging in" : "logged in or not"
        case .store(let token): "store \(token.token)"
        case .forget: "forget"
        case .resumeFailed(let error): "resume failed \(error.code)"
        }
    }
}
