import Session
import Testing
import Wire

/// Drives a `SpreadbotSession` by hand, and records the actions that it asks for.
final class SpreadbotModel {
    var session: SpreadbotSession
    var now = Instant(nanoseconds: 1_000_000_000_000)
    var random = 0.0
    /// The number of the last leg or probe that was started.
    private(set) var leg: UInt64 = 0
    private(set) var probe: UInt64 = 0
    private var sends: UInt64 = 0

    init(_ change: (inout SpreadbotConfiguration) throws -> Void = { _ in }) throws {
        var configuration = try SpreadbotConfiguration(base: "http://example.com/base")
        try change(&configuration)
        session = SpreadbotSession(configuration)
    }

    /// With a token server, and the tokens "a" and "r".
    static func withTokens(
        _ change: (inout SpreadbotConfiguration) throws -> Void = { _ in }
    ) throws -> SpreadbotModel {
        try SpreadbotModel {
            try $0.setAuthURL("https://example.com/token")
            try $0.setTokens(access: "a", refresh: "r")
            try change(&$0)
        }
    }

    /// How long until its next deadline.
    var wait: Duration? { session.wakeUp.map { $0 - now } }

    /// The actions that are due now, in order.
    func done() -> [String] {
        var result: [String] = []
        while let action = session.nextAction() { result.append(text(action)) }
        return result
    }

    private func text(_ action: SpreadbotSession.Action) -> String {
        switch action {
        case .command(let command): text(command)
        case .report(let report): text(report)
        }
    }

    private func text(_ command: SpreadbotSession.Command) -> String {
        switch command {
        case .attach(let attempt):
            leg = attempt.number
            let cursor = attempt.cursor.isEmpty ? "" : " from \(attempt.cursor)"
            let token = attempt.accessToken.isEmpty ? "" : " with \(attempt.accessToken)"
            return "attach \(short(attempt.transport))\(cursor)\(token)"
        case .detach(let number): return number == leg ? "detach" : "detach another"
        case .close: return "close"
        case .probe(let attempt):
            probe = attempt.number
            return "probe\(attempt.cursor)"
        case .dropProbe: return "drop probe"
        case .refresh(let token): return "refresh \(token)"
        case .refreshed(let error): return "refreshed \(text(error))"
        case .credential(let value): return "credential \(value ?? "none")"
        case .write(let send): return "write \(send.number)"
        case .confirm(let id): return "confirm \(id)"
        case .post(let send): return "post \(send.number)"
        case .cancelPost(let id): return "cancel post \(id)"
        case .forget(let send): return "forget \(send.number)"
        }
    }

    private func text(_ report: SpreadbotSession.Report) -> String {
        switch report {
        case .opened(let transport, let resumed):
            return "opened \(short(transport))\(resumed ? " resumed" : "")"
        case .transport(let transport): return "transport \(transport.map(short) ?? "none")"
        case .failed(let failure): return text(failure)
        case .tokens(let access, let refresh): return "tokens \(access) \(refresh)"
        case .sent(let send, let error): return "sent \(send.number) \(text(error))"
        case .disconnected(let error): return "disconnected \(text(error))"
        }
    }

    private func text(_ failure: SpreadbotSession.Failure) -> String {
        let wait = failure.retryIn.map { " in \($0.readable)" } ?? ""
        let count = failure.attempt > 0 ? " \(failure.attempt)" : ""
        return "failed \(failure.error.code)\(count)\(wait)\(failure.isFatal ? " fatal" : "")"
    }

    private func text(_ error: RealtimeError?) -> String { error.map { "\($0.code)" } ?? "ok" }

    private func short(_ transport: SpreadbotTransport) -> String {
        switch transport {
        case .webSocket: "ws"
        case .sse: "sse"
        case .poll: "poll"
        }
    }

    // MARK: The application

    func establish(_ path: String = "room") -> [String] {
        session.establish(path: path, now: now)
        return done()
    }

    /// Connects on the first transport.
    func connect() throws {
        _ = establish()
        _ = open()
        try #require(session.state == .connected)
    }

    func disconnect() -> [String] {
        session.disconnect(now: now)
        return done()
    }

    func setTokens(_ access: String, _ refresh: String) -> [String] {
        session.setTokens(access: access, refresh: refresh, now: now)
        return done()
    }

    func send(
        _ kind: SpreadbotSend.Kind = .text, isDurable: Bool = false, to path: String? = nil
    ) -> [String] {
        sends += 1
        session.submit(
            SpreadbotSend(
                number: sends, kind: kind, payload: [1], path: path, key: "key-\(sends)",
                entry: isDurable ? sends : nil), now: now)
        return done()
    }

    /// A send that an earlier run has left in the outbox.
    func restore(_ kind: SpreadbotSend.Kind = .text) {
        sends += 1
        session.restore(
            SpreadbotSend(
                number: sends, kind: kind, payload: [1], path: "room", key: "key-\(sends)",
                entry: sends))
    }

    // MARK: The network

    func open() -> [String] {
        session.opened(leg, now: now)
        return done()
    }

    /// The leg ends after this time.
    func end(
        _ code: RealtimeError.Code = .connectionLost, status: Int = 0, close: UInt16? = nil,
        reached: Bool = true, fields: [HeaderField] = [], written: UInt64 = 0,
        after time: Duration = .zero
    ) -> [String] {
        now = now + time
        let response = HTTPResponse(ResponseHead(status: status, fields: fields), body: [])
        let error = RealtimeError(code, "the leg ended", response: status > 0 ? response : nil)
        let end = SpreadbotLegEnd(
            error: error, status: status, closeCode: close.map { CloseCode(rawValue: $0) },
            reachedServer: reached)
        session.ended(
            leg, end, written: written, now: now, wallClock: 1_700_000_000, random: random)
        return done()
    }

    /// Lets time pass until its next deadline.
    func pass() throws -> [String] {
        now = try #require(session.wakeUp)
        session.timeReached(now)
        return done()
    }

    func network(_ isOnline: Bool) -> [String] {
        session.networkChanged(isOnline: isOnline, now: now, random: random)
        return done()
    }

    /// - Returns: whether the message is delivered.
    func retryNow() -> [String] {
        session.retryNow(now)
        return done()
    }

    func receive(_ id: String?) -> Bool {
        guard let id else { return session.received(leg, id: nil) }
        return Array(id.utf8).withUnsafeBytes { session.received(leg, id: $0) }
    }

    func refresh(_ access: String, _ refresh: String? = nil, lifetime: Duration? = nil) -> [String]
    {
        session.refreshed(access: access, refresh: refresh, lifetime: lifetime, now: now)
        return done()
    }

    func refuseRefresh(_ code: RealtimeError.Code, isRefused: Bool) -> [String] {
        session.refreshFailed(
            RealtimeError(code, "no tokens"), isRefused: isRefused, now: now, random: random)
        return done()
    }

    func post(
        _ id: UInt64, _ code: RealtimeError.Code? = nil, status: Int = 0, asked: Duration? = nil,
        mayPass: Bool = false
    ) -> [String] {
        session.posted(
            id, code.map { RealtimeError($0, "the request failed") }, status: status,
            retryAfter: asked, mayPass: mayPass, now: now, random: random)
        return done()
    }

    func confirm(_ id: UInt64) -> [String] {
        session.confirmed(leg, id, now: now)
        return done()
    }
}
