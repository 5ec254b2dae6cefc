import Session
import Wire

/// Drives a `RESTSession` by hand, and records the actions that it asks for.
final class RESTClientModel {
    var session: RESTSession
    var now = Instant(nanoseconds: 1_000_000_000_000)
    var random = 0.0
    var isReachable = true
    /// The requests that were reported to wait for a network.
    var waits: [RESTSession.ID] = []
    private var keys = 0
    static let wallClock: Int64 = 1_700_000_000

    init(_ change: (inout RESTConfiguration) -> Void = { _ in }) {
        var configuration = RESTConfiguration()
        change(&configuration)
        session = RESTSession(configuration)
    }

    func submit(
        _ method: String = "GET", _ url: String = "http://h/", fields: [HeaderField] = [],
        body: HTTPRequest.Body = .none, canRewind: Bool = false, streamsAnswer: Bool = false,
        _ change: (inout RESTPolicy) -> Void = { _ in }
    ) throws -> RESTSession.ID {
        var policy = RESTPolicy()
        change(&policy)
        let url = try HTTPURL(parsing: url, as: .http)
        keys += 1
        let key = "key-\(keys)"
        return session.submit(
            RESTRequest(
                HTTPRequest(method, url, fields: fields, body: body), policy,
                canRewind: canRewind, streamsAnswer: streamsAnswer),
            key: key, isReachable: isReachable, now: now)
    }

    /// The actions that are due now: "start 1 GET http://h/", "finish 1 ok 200 (1)".
    func done() -> [String] {
        var result: [String] = []
        while let action = session.nextAction() {
            if case .waitForNetwork(let id) = action {
                waits.append(id)
            } else {
                result.append(text(action))
            }
        }
        return result
    }

    private func text(_ action: RESTSession.Action) -> String {
        switch action {
        case .waitForNetwork(let id): return "wait \(id)"
        case .start(let id, let request, let isFresh, let rewinds):
            let notes = (isFresh ? " fresh" : "") + (rewinds ? " rewinds" : "")
            let fields = request.fields.map { " \($0.name)=\($0.value)" }.joined()
            return "start \(id) \(request.method) \(request.url.text)\(fields)\(notes)"
        case .abort(let id): return "abort \(id)"
        case .timeOut(let id): return "time out \(id)"
        case .authorize: return "authorize"
        case .finish(let id, let outcome):
            let what = outcome.error.map { "\($0.code)" } ?? "ok"
            let status = outcome.head.map { " \($0.status)" } ?? ""
            return "finish \(id) \(what)\(status) (\(outcome.attempts))"
        }
    }

    /// A response with an empty body.
    func answer(
        _ id: RESTSession.ID, _ status: Int, _ fields: [String: String] = [:]
    ) -> [String] {
        _ = head(id, status, fields)
        session.ended(id, nil, now: now, random: random)
        return done()
    }

    func head(
        _ id: RESTSession.ID, _ status: Int, _ fields: [String: String] = [:]
    ) -> RESTSession.Reception {
        let head = ResponseHead(
            status: status, fields: fields.map { HeaderField(name: $0.key, value: $0.value) })
        return session.received(
            head, of: id, now: now, wallClock: RESTClientModel.wallClock, random: random)
    }

    func fail(
        _ id: RESTSession.ID, _ code: RealtimeError.Code = .connectionLost, precedes: Bool = false,
        isFinal: Bool = false, isStale: Bool = false
    ) -> [String] {
        let failure = HTTPFailure(
            RealtimeError(code, "failed"), precedesRequest: precedes, isFinal: isFinal,
            isStale: isStale)
        session.ended(id, failure, now: now, random: random)
        return done()
    }

    /// Lets time pass.
    func pass(_ time: Duration) -> [String] {
        now = now + time
        session.timeReached(now)
        return done()
    }

    /// Lets time pass until the next deadline.
    /// - Returns: how long that was; nil without a deadline.
    func passToNext() -> Duration? {
        let start = now
        guard let time = session.wakeUp else { return nil }
        now = max(now, time)
        session.timeReached(now)
        return now - start
    }

    func setReachable(_ isReachable: Bool) -> [String] {
        self.isReachable = isReachable
        session.reachabilityChanged(now: now, random: random) { _ in isReachable }
        return done()
    }
}
