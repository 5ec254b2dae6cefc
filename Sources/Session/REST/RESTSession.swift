package import Wire

/// The requests of one client (docs/rest.md, R1 to R12): when each is sent and sent again, in
/// which order, and how it ends. It decides; its driver has the connections.
///
/// What is to be done comes from `nextAction`, in order: the driver does one after the other, and
/// tells what came of it. So a request that waits for another's end begins behind the callback that
/// tells that end.
package struct RESTSession: ActionMachine, Sendable {
    /// In the order of submission.
    package typealias ID = UInt64

    package enum Action: Sendable {
        /// Begins an exchange, on a connection of its own when `isFresh`; with `rewinds` the
        /// streamed body is to begin anew.
        case start(ID, HTTPRequest, isFresh: Bool, rewinds: Bool)
        /// Drops the exchange; nothing of it is to be told any more.
        case abort(ID)
        /// The attempt's time is over: drop the exchange and tell its end, with whether the server
        /// can have seen the request.
        case timeOut(ID)
        /// Asks whoever has the credentials for fresh ones, since this answer refused them;
        /// `authorized` tells the answer.
        case authorize(ResponseHead?)
        /// The terminal callback: the last of this request.
        case finish(ID, RESTOutcome)
    }

    /// There were no fresh credentials in the place of those of a generation.
    struct Denial {
        var generation: UInt64
        /// The last request there was: one that comes later may ask again.
        var last: ID
        var cause: RealtimeError?
    }

    /// What the body behind a head is for.
    package enum Reception: Sendable {
        /// It is the caller's.
        case deliver
        /// Another exchange follows; what is read of it keeps the connection usable.
        case discard
    }

    let perHost: Int
    private let queueCapacity: Int
    private let overflow: RESTConfiguration.Overflow
    private let tokenParameter: String?
    var entries: [ID: RESTEntry] = [:]
    var lines = RESTLines()
    /// Ordered requests that have not ended, first in first.
    var ordered: [ID] = []
    /// Those that count against the queue's capacity: submitted without a network, or behind an
    /// ordered one, and not begun yet.
    var counted: [ID] = []
    var alarms = Alarms()
    private(set) var lastID: ID = 0
    private var actions: [Action] = []
    private var firstAction = 0
    private var isClosed = false
    /// Requests of one client that have not ended, whether they count against the queue's capacity
    /// or not.
    private static let mostOutstanding = 65_536

    /// A source of fresh credentials was set: a 401 is worth a question (R5).
    package var renewsCredentials = false
    /// The Authorization of the client, and how often it has changed.
    var credential: String?
    var generation: UInt64 = 0
    /// While fresh credentials are fetched: the last request there was when they were asked for.
    var lastBeforeQuestion: ID?
    var isAuthorizing: Bool { lastBeforeQuestion != nil }
    /// The last answer that there are none.
    var denial: Denial?

    /// The client's bearer token as a query parameter, where one is wanted.
    var tokenQuery: (name: String, value: String)? {
        guard let tokenParameter, let credential, credential.hasPrefix("Bearer ") else {
            return nil
        }
        return (tokenParameter, String(credential.dropFirst("Bearer ".count)))
    }

    /// Requests begin one after the other, however many end in between.
    var isPumping = false

    /// When a line that came back begins to send.
    private var linesAlarm: Instant?

    package init(_ configuration: RESTConfiguration) {
        perHost = configuration.perHost
        queueCapacity = configuration.queueCapacity
        overflow = configuration.overflow
        tokenParameter = configuration.tokenParameter
    }

    // MARK: The caller

    /// Takes a request in. What becomes of it, a full queue too, is told by actions.
    /// - Parameters:
    ///   - key: random text for an Idempotency-Key, should it need one.
    ///   - isReachable: whether there is a network to its host; asked when no request to it came
    ///     before, or long ago.
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
                "\(entry.name) found \(RESTSession.mostOutstanding) requests that have not ended")
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
        pump(line, now)
        if entry.isQueued { alarms.set(entry, entry.alarm) }
        return id
    }

    /// A request that has not ended, as its end would be told now.
    package func outcome(of id: ID) -> RESTOutcome? { entries[id]?.outcome(nil) }

    /// Ends a request; one that has ended is left alone.
    package mutating func cancel(_ id: ID, now: Instant) {
        guard let entry = entries[id] else { return }
        drop(entry)
        finish(entry, RealtimeError(.cancelled, "\(entry.name) was cancelled"), now: now)
    }

    /// Ends all of them; those submitted later end in the same way.
    package mutating func close() {
        isClosed = true
        // Nothing begins any more, so that nothing is started in between.
        let all = entries.values.sorted { $0.id < $1.id }
        for entry in all {
            drop(entry)
            let error = RealtimeError(.closed, "the client was closed before \(entry.name) ended")
            act(.finish(entry.id, entry.outcome(error)))
            alarms.set(entry, nil)
        }
        entries = [:]
        lines = RESTLines()
        ordered = []
        counted = []
        linesAlarm = nil
    }

    // MARK: The network

    /// Hosts may have become reachable, or unreachable (R9).
    /// - Parameter random: uniform in [0, 1), for the time until those that waited are sent (R11).
    package mutating func reachabilityChanged(
        now: Instant, random: Double, _ isReachable: (HTTPURL) -> Bool
    ) {
        for place in lines.all {
            let reachable = isReachable(lines[place].url)
            guard reachable != lines[place].isReachable else { continue }
            lines[place].isReachable = reachable
            lines[place].resumeAt = reachable ? now + .onceOnline(random: random) : nil
        }
        for entry in entries.values {
            entry.runClock(lines[entry.line].isReachable, now: now)
            alarms.set(entry, entry.alarm)
        }
        setLinesAlarm()
    }

    /// When `wake` is to be called; nil for never.
    package var wakeUp: Instant? {
        mutating get {
            if alarms.isCrowded { alarms.clear { $0.isSet(entries[$0.id]) } }
            guard let linesAlarm else { return alarms.earliest }
            return min(alarms.earliest ?? linesAlarm, linesAlarm)
        }
    }

    package mutating func timeReached(_ now: Instant) { wake(now: now) }

    /// A time has come.
    /// - Returns: whether it was anybody's still.
    @discardableResult
    package mutating func wake(now: Instant) -> Bool {
        var wasDue = false
        if let linesAlarm, linesAlarm <= now {
            wasDue = true
            resumeLines(now)
        }
        while let alarm = alarms.popDue(now) {
            guard let entry = entries[alarm.id], alarm.isSet(entry) else { continue }
            wasDue = true
            alarms.set(entry, nil)
            wake(entry, now)
        }
        return wasDue
    }

    private mutating func resumeLines(_ now: Instant) {
        let due = lines.all.filter { lines[$0].resumeAt.map { $0 <= now } ?? false }
        for place in due { lines[place].resumeAt = nil }
        for place in due.sorted() { pump(place, now) }
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
                    "\(entry.name) could not begin within \(time) (queue_ttl)\(obstacle(entry))")
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
        alarms.set(entry, entry.alarm)
    }

    /// - Returns: whether the attempt has more time, from the last byte that moved.
    private func extend(_ entry: RESTEntry, _ now: Instant) -> Bool {
        guard let end = entry.laterEnd(now) else { return false }
        entry.attemptEnd = end
        return true
    }

    // MARK: Helpers

    package mutating func nextAction() -> Action? {
        guard firstAction < actions.count else { return nil }
        // Taken out: a copy would hold all it has once more.
        var action = Action.authorize(nil)
        swap(&action, &actions[firstAction])
        firstAction += 1
        if firstAction == actions.count {
            actions.removeAll(keepingCapacity: true)
            firstAction = 0
        }
        return action
    }

    mutating func act(_ action: consuming Action) { actions.append(action) }

    /// The deadline is over: the last attempt's failure is told, if there was one (R2).
    func passed(_ entry: RESTEntry) -> RealtimeError {
        let last = entry.lastError.map { "; last: \($0.message)" } ?? ""
        return RealtimeError(
            .deadline,
            "\(entry.name) did not end within \(entry.policy.latestEnd.readable) (deadline)"
                + "\(obstacle(entry))\(last)")
    }

    /// What it has waited for, or an ordered one behind.
    private func obstacle(_ entry: RESTEntry) -> String {
        if case .authorizing = entry.state { return ", waiting for fresh credentials" }
        if awaitsCredential(entry) { return ", waiting for fresh credentials" }
        guard entry.isOrdered, let first = ordered.first, first != entry.id,
            let other = entries[first]
        else { return "" }
        return ", waiting behind \(other.name) (ordered)"
    }

    /// - Returns: false when the request had to be refused.
    private mutating func makeRoom(for entry: RESTEntry, _ now: Instant) -> Bool {
        guard counted.count >= queueCapacity else { return true }
        func full(_ entry: RESTEntry) -> RealtimeError {
            RealtimeError(
                .queueFull,
                "\(entry.name) found no place among \(queueCapacity) that wait (queue_capacity)")
        }
        if overflow == .dropOldest, let oldest = counted.first, let old = entries[oldest] {
            finish(old, full(old), now: now)
            return true
        }
        act(.finish(entry.id, entry.outcome(full(entry))))
        return false
    }

    private mutating func drop(_ entry: RESTEntry) {
        if entry.holdsPlace { act(.abort(entry.id)) }
    }
}
