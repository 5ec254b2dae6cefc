package import Wire

/// The requests of one client (docs/rest.md, R1 to R12). It decides when and in which order
/// requests are sent and repeated, and how they end. Its driver makes the connections.
///
/// The driver performs the actions of `nextAction` one after the other, and reports the results. So
/// if a request waits for the end of another, it begins after the callback that reports that end.
package struct RESTSession: ActionMachine, Sendable {
    /// Ids increase in the order of submission.
    package typealias ID = UInt64

    package enum Action: Sendable {
        /// Begin an exchange. `isFresh`: on a new connection. `rewinds`: the streamed body must be
        /// read from its beginning again.
        case start(ID, HTTPRequest, isFresh: Bool, rewinds: Bool)
        /// Drop the exchange, and report nothing more about it.
        case abort(ID)
        /// The attempt's time is over: drop the exchange and report its end, with whether the
        /// server can have seen the request.
        case timeOut(ID)
        /// Ask the owner of the credentials for fresh ones, because this response refused them.
        /// Call `authorized` with the result.
        case authorize(ResponseHead?)
        /// The request now waits for a network. Reported once for each wait.
        case waitForNetwork(ID)
        /// Call the terminal callback, the last one of this request.
        case finish(ID, RESTOutcome)
    }

    /// The credentials of a generation were refused, and there were no fresh ones.
    struct Denial {
        var generation: UInt64
        /// The last request submitted by then. A later one may cause another question.
        var last: ID
        var cause: RealtimeError?
    }

    /// The use of the body after a head.
    package enum Reception: Sendable {
        /// Deliver the body to the caller.
        case deliver
        /// Another exchange follows. The body is only read to keep the connection usable.
        case discard
    }

    let perHost: Int
    private let queueCapacity: Int
    private let overflow: RESTConfiguration.Overflow
    private let tokenParameter: String?
    var entries: [ID: RESTEntry] = [:]
    var lines = RESTLines()
    /// Ordered requests that have not ended, in the order of submission.
    var ordered: [ID] = []
    /// Requests that count against the queue's capacity: they have not begun, and were submitted
    /// without a network, or after an ordered request.
    var counted: [ID] = []
    /// When requests must be checked.
    var alarms = DueQueue<ID>()
    private(set) var lastID: ID = 0
    private var actions = ActionQueue<Action>()
    private var isClosed = false
    /// The most requests of a client that have not ended, including those that do not count against
    /// the queue's capacity.
    private static let mostOutstanding = 65_536

    /// A source of fresh credentials was set, so a 401 causes a question for them (R5).
    package var renewsCredentials = false
    /// The client's Authorization, and how often it has changed.
    var credential: String?
    var generation: UInt64 = 0
    /// While fresh credentials are fetched: the last request submitted before that began.
    var lastBeforeQuestion: ID?
    var isAuthorizing: Bool { lastBeforeQuestion != nil }
    /// The latest denial.
    var denial: Denial?

    /// The client's bearer token as a query parameter, if the options ask for one.
    var tokenQuery: (name: String, value: String)? {
        guard let tokenParameter, let credential, credential.hasPrefix("Bearer ") else {
            return nil
        }
        return (tokenParameter, String(credential.dropFirst("Bearer ".count)))
    }

    /// Set while `pump` begins requests, however many end meanwhile.
    var isPumping = false

    /// When the next line that was offline begins to send.
    private var linesAlarm: Instant?

    /// The credentials for a proxy.
    var proxySecrets = SentSecrets()

    package init(_ configuration: RESTConfiguration) {
        perHost = configuration.perHost
        queueCapacity = configuration.queueCapacity
        overflow = configuration.overflow
        tokenParameter = configuration.tokenParameter
        proxySecrets.add(configuration.network)
    }

    // MARK: The caller

    /// Accepts a request. Its result is reported by actions, even if the queue is full.
    /// - Parameters:
    ///   - key: random text for an Idempotency-Key, if it needs one.
    ///   - isReachable: whether there is a network to its host. Evaluated if there is no line for
    ///     it.
    package mutating func submit(
        _ request: RESTRequest, key: @autoclosure () -> String,
        isReachable: @autoclosure () -> Bool, now: Instant
    ) -> ID {
        lastID += 1
        let id = lastID
        let line = lines.enter(request.http.url, isReachable: isReachable)
        let entry = RESTEntry(id, request, line, now: now)
        if entry.policy.addsIdempotencyKey, !RetryRules.isIdempotent(entry.request.method),
            !RetryRules.isKeyed(entry.request)
        {
            entry.request.set("Idempotency-Key", key())
        }
        if !request.isTrusted { entry.usesCredential = false }
        guard !isClosed else {
            act(.finish(id, entry.outcome(RealtimeError(.closed, "the client is closed"))))
            lines.leave(line)
            return id
        }
        guard entries.count < RESTSession.mostOutstanding else {
            let error = RealtimeError(
                .queueFull,
                "\(entry.name) was refused: \(RESTSession.mostOutstanding) requests have not ended")
            act(.finish(id, entry.outcome(error)))
            lines.leave(line)
            return id
        }
        let isKept =
            !lines[line].isReachable || lines[line].resumeAt != nil
            || entry.isOrdered && !ordered.isEmpty
        if isKept, !makeRoom(for: entry, now) {
            lines.leave(line)
            return id
        }
        if isKept { counted.append(id) }
        entry.runClock(lines[line].isReachable, now: now)
        if entry.isOrdered { ordered.append(id) }
        enqueue(entry)
        entries[id] = entry
        noteWait(entry)
        pump(line, now)
        if entry.isQueued { alarms.set(entry.id, due: entry.alarm) }
        return id
    }

    /// The current result of a request that has not ended.
    package func outcome(of id: ID) -> RESTOutcome? { entries[id]?.outcome(nil) }

    /// Ends a request. No effect if it has ended.
    package mutating func cancel(_ id: ID, now: Instant) {
        guard let entry = entries[id] else { return }
        drop(entry)
        finish(entry, RealtimeError(.cancelled, "\(entry.name) was cancelled"), now: now)
    }

    /// Ends all requests. Requests that are submitted later end in the same way.
    package mutating func close() {
        isClosed = true
        // Collect all first: no request begins from here on.
        let all = entries.values.sorted { $0.id < $1.id }
        for entry in all {
            drop(entry)
            let error = RealtimeError(.closed, "the client was closed before \(entry.name) ended")
            act(.finish(entry.id, entry.outcome(error)))
            alarms.remove(entry.id)
        }
        entries = [:]
        lines = RESTLines()
        ordered = []
        counted = []
        linesAlarm = nil
    }

    // MARK: The network

    /// Hosts may have become reachable, or unreachable (R9).
    /// - Parameter random: uniform in [0, 1), for the time until waiting requests are sent (R11).
    package mutating func reachabilityChanged(
        now: Instant, random: Double, _ isReachable: (HTTPURL) -> Bool
    ) {
        for line in lines.all {
            let reachable = isReachable(lines[line].url)
            guard reachable != lines[line].isReachable else { continue }
            lines[line].isReachable = reachable
            lines[line].resumeAt = reachable ? now + .onceOnline(random: random) : nil
        }
        for id in entries.keys.sorted() {
            guard let entry = entries[id] else { continue }
            entry.runClock(lines[entry.line].isReachable, now: now)
            alarms.set(id, due: entry.alarm)
            noteWait(entry)
        }
        setLinesAlarm()
    }

    /// Reports that a request waits for a network, unless that is known.
    mutating func noteWait(_ entry: RESTEntry) {
        let waits = entry.isQueued && !lines[entry.line].isReachable
        if waits, !entry.waitsForNetwork { act(.waitForNetwork(entry.id)) }
        entry.waitsForNetwork = waits
    }

    /// When `timeReached` should be called; nil for never.
    package var wakeUp: Instant? {
        guard let linesAlarm else { return alarms.first }
        return min(alarms.first ?? linesAlarm, linesAlarm)
    }

    package mutating func timeReached(_ now: Instant) {
        if let linesAlarm, linesAlarm <= now { resumeLines(now) }
        while let id = alarms.takeFirst(now) { if let entry = entries[id] { wake(entry, now) } }
    }

    private mutating func resumeLines(_ now: Instant) {
        let due = lines.all.filter { lines[$0].resumeAt.map { $0 <= now } ?? false }
        for line in due { lines[line].resumeAt = nil }
        for line in due.sorted() { pump(line, now) }
        setLinesAlarm()
    }

    private mutating func setLinesAlarm() {
        linesAlarm = lines.all.compactMap { lines[$0].resumeAt }.min()
    }

    private mutating func wake(_ entry: RESTEntry, _ now: Instant) {
        if let deadline = entry.deadline, deadline <= now {
            drop(entry)
            return finish(entry, passed(entry), now: now)
        }
        switch entry.state {
        case .queued:
            if let expiry = entry.expiry, expiry <= now {
                let time = entry.policy.queueTime.readable
                let error = RealtimeError(
                    .expired,
                    "\(entry.name) could not begin within \(time)"
                        + entry.policy.owner.mention(.queueTime) + obstacle(entry))
                return finish(entry, error, now: now)
            }
        case .waiting(let time):
            if time <= now { return requeue(entry, now) }
        case .draining(.retry(let time)):
            if time <= now {
                act(.abort(entry.id))
                return requeue(entry, now)
            } else if let end = entry.attemptEnd, end <= now, !extend(entry, now) {
                act(.abort(entry.id))
                return proceed(entry, .retry(at: time), now)
            }
        case .running, .draining:
            if let end = entry.attemptEnd, end <= now, !entry.isTimedOut, !extend(entry, now) {
                entry.isTimedOut = true
                act(.timeOut(entry.id))
            }
        case .authorizing: break
        }
        alarms.set(entry.id, due: entry.alarm)
    }

    /// - Returns: whether the attempt gets more time, counted from the last byte that moved.
    func extend(_ entry: RESTEntry, _ now: Instant) -> Bool {
        guard let end = entry.laterEnd(now) else { return false }
        entry.attemptEnd = end
        return true
    }

    // MARK: Helpers

    package mutating func nextAction() -> Action? { actions.next() }

    mutating func act(_ action: consuming Action) { actions.append(action) }

    /// The error for a deadline that has passed. It contains the last attempt's error, if any (R2).
    func passed(_ entry: RESTEntry) -> RealtimeError {
        let last = entry.lastError.map { "; last: \($0.message)" } ?? ""
        return RealtimeError(
            .deadline,
            "\(entry.name) did not end within \(entry.policy.latestEnd.readable)"
                + entry.policy.owner.mention(.deadline)
                + "\(obstacle(entry))\(last)")
    }

    /// What the request was waiting for, for a message.
    private func obstacle(_ entry: RESTEntry) -> String {
        if case .authorizing = entry.state { return ", waiting for fresh credentials" }
        if awaitsCredential(entry) { return ", waiting for fresh credentials" }
        if entry.waitsForNetwork { return ", waiting for a network" }
        guard entry.isOrdered, let first = ordered.first, first != entry.id,
            let other = entries[first]
        else { return "" }
        return ", waiting for the end of \(other.name) (ordered)"
    }

    /// - Returns: false if the request had to be rejected.
    private mutating func makeRoom(for entry: RESTEntry, _ now: Instant) -> Bool {
        guard counted.count >= queueCapacity else { return true }
        func full(_ entry: RESTEntry) -> RealtimeError {
            RealtimeError(
                .queueFull,
                "\(entry.name) was dropped: \(queueCapacity) requests wait"
                    + entry.policy.owner.mention(.queueCapacity))
        }
        if overflow == .dropOldest, let oldest = counted.first, let old = entries[oldest] {
            finish(old, full(old), now: now)
            return true
        }
        act(.finish(entry.id, entry.outcome(full(entry))))
        return false
    }

    private mutating func drop(_ entry: RESTEntry) {
        if entry.hasExchange { act(.abort(entry.id)) }
    }
}
