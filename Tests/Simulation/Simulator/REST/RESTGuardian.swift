import Session
import Wire

/// Watches the REST machine, by its own reading of the rules.
final class RESTGuardian {
    typealias ID = RESTSession.ID

    /// What may follow once the exchange of a request is over.
    enum Next: Equatable {
        /// The exchange is still running and decides it.
        case unknown
        /// Nothing: the request must finish at once.
        case end
        case again
        /// The same exchange again, not counted.
        case replay
        /// Another exchange, once there are new credentials.
        case credentials
        /// An attempt after a delay from this moment. `asked` is the delay that the server asked
        /// for.
        case retry(from: Instant, asked: Duration)
        /// The request returns to its place in the queue.
        case queue
    }

    final class Record {
        let request: RESTPlan.Request
        let submittedAt: Instant
        var isReachable: Bool
        /// How long there was a network, up to `onlineSince`.
        var online = Duration.zero
        var onlineSince: Instant?
        var isRunning = false
        var isFinished = false
        var isCancelled = false
        var starts = 0
        var attempts = 0
        var retries = 0
        var hops = 0
        var startedAt: Instant?
        var attemptAt: Instant?
        /// When bytes last moved that give the attempt more time.
        var movedAt: Instant?
        var isHeld = false
        var wasStale = false
        var wasMisdirected = false
        var wasAuthorized = false
        /// Whether it counts against the queue's capacity. nil if that depends on when the machine
        /// uses a returned network again, which it may choose.
        var isKept: Bool? = false
        var bodyIsUsed = false
        var keepsOrigin = true
        /// The number of the credentials that were sent.
        var generation = 0
        var method: String
        var next = Next.again
        var head: ResponseHead?
        var reception: RESTSession.Reception?
        var failure: HTTPFailure?

        init(_ request: RESTPlan.Request, _ now: Instant, isReachable: Bool) {
            self.request = request
            submittedAt = now
            self.isReachable = isReachable
            method = request.method
            if isReachable { onlineSince = now }
        }

        func countedTime(_ now: Instant) -> Duration {
            if request.policy.countsOffline { return now - submittedAt }
            return online + (onlineSince.map { now - $0 } ?? .zero)
        }

        var isBodyGone: Bool { hasBody && bodyIsUsed && !request.canRewind }

        var hasBody: Bool { request.streamsBody && method == request.method }

        var mayRepeat: Bool {
            // The key is not sent to another origin.
            !["POST", "PATCH"].contains(method) || request.mayRepeat && keepsOrigin
        }
    }

    let world: World
    let plan: RESTPlan
    var records: [ID: Record] = [:]
    private var incoming: Record?
    private var isFull = false
    private var mayWait = true
    private var oldest: ID?
    private var cameBack: Instant?
    /// The request that was submitted to a full queue: it must be refused at once.
    private var taken: ID?
    /// While credentials are fetched: the last request that was submitted before.
    private var lastBeforeQuestion: ID?
    private var generation = 0
    /// The last answer was that there are no others: for these credentials and earlier requests.
    private var denied: (generation: Int, last: ID)?
    private var isClosed = false

    init(_ world: World, _ plan: RESTPlan) {
        self.world = world
        self.plan = plan
    }

    var outstanding: Int { records.values.count { !$0.isFinished } }

    private func record(_ id: ID) -> Record? {
        if let record = records[id] { return record }
        // The machine reports it inside `submit`.
        if let incoming {
            records[id] = incoming
            self.incoming = nil
            return records[id]
        }
        world.fail("\(id) is not a request")
        return nil
    }

    // MARK: The user

    func willSubmit(_ request: RESTPlan.Request, isReachable: Bool) {
        let record = Record(request, world.now, isReachable: isReachable)
        let others = records.values.filter { !$0.isFinished }
        let waitsForOrder = request.isOrdered && others.contains { $0.request.isOrdered }
        let isBack = cameBack.map { world.now - $0 <= .seconds(1) } ?? false
        let mayResume = isBack && request.host != RESTPlan.loopback
        record.isKept = !isReachable || waitsForOrder ? true : mayResume ? nil : false
        if waitsForOrder { world.count("order delayed a request") }
        let waiting = records.filter { !$0.value.isFinished && $0.value.starts == 0 }
        let kept = waiting.filter { $0.value.isKept == true }
        let maybe = waiting.filter { $0.value.isKept == nil }
        isFull = kept.count + maybe.count >= plan.configuration.queueCapacity
        mayWait = record.isKept != true || kept.count < plan.configuration.queueCapacity
        oldest = maybe.isEmpty ? kept.keys.min() : nil
        incoming = record
    }

    func submitted(_ id: ID) {
        _ = record(id)
        if plan.configuration.overflow == .rejectNew {
            taken = mayWait ? nil : id
        }
    }

    func cancelled(_ id: ID) { record(id)?.isCancelled = true }

    func closed() { isClosed = true }

    func flapped(_ isOnline: Bool) {
        if isOnline { cameBack = world.now }
        for record in records.values where record.request.host != RESTPlan.loopback {
            if let since = record.onlineSince { record.online += world.now - since }
            record.onlineSince = isOnline ? world.now : nil
            record.isReachable = isOnline
        }
    }

    /// The machine reports that a request waits for a network.
    func waits(_ id: ID) {
        guard let record = record(id) else { return }
        world.count("waits for a network")
        world.require(!record.isReachable, "\(id) waits for a network that is there")
    }

    // MARK: Credentials

    func asked() {
        world.require(lastBeforeQuestion == nil, "asks for credentials while it asks")
        lastBeforeQuestion = records.keys.max()
    }

    func answered(_ isFresh: Bool) {
        lastBeforeQuestion = nil
        if isFresh { generation += 1 } else { denied = (generation, records.keys.max() ?? 0) }
        for record in records.values
        where record.next == .credentials && !record.isRunning && !record.isFinished {
            record.next = isFresh ? .replay : .end
        }
    }

    /// A request must not be sent with refused credentials.
    private func awaitsCredentials(_ id: ID, _ record: Record) -> Bool {
        guard let lastBeforeQuestion else { return false }
        return id <= lastBeforeQuestion && record.keepsOrigin
    }

    // MARK: The machine

    func started(_ id: ID, _ request: HTTPRequest, rewinds: Bool) {
        guard let record = record(id) else { return }
        let now = world.now
        world.require(!record.isFinished, "\(id) starts after its end")
        world.require(!isClosed, "\(id) starts after close")
        world.require(!record.isRunning, "\(id) starts twice")
        let isOwnPlace = record.next == .replay || record.starts > 0 && record.next == .again
        world.require(record.isReachable || isOwnPlace, "\(id) starts without a network")
        let deadline = record.request.policy.latestEnd
        world.require(
            deadline == .zero || record.countedTime(now) < deadline || isOwnPlace,
            "\(id) starts after its deadline")
        world.require(
            record.next != .end,
            "\(id) starts again after \(record.head?.status ?? 0), \(failed(record))"
        )
        world.require(record.next != .credentials, "\(id) starts before there are credentials")
        world.require(!awaitsCredentials(id, record), "\(id) is sent with refused credentials")
        if lastBeforeQuestion != nil { world.count("continued while credentials were fetched") }
        world.require(!record.isBodyGone || !isStream(request), "\(id) sends a body that is gone")
        world.require(
            !isStream(request) || rewinds == record.bodyIsUsed, "\(id) sends the rest of a body")
        if rewinds { world.count("rewound a body") }
        record.bodyIsUsed = false
        checkOrder(id, record)
        checkDelay(id, record)
        let isCounted = record.next != .replay && (record.next != .again || record.starts == 0)
        if isCounted {
            record.attempts += 1
            world.require(
                record.attempts <= record.request.policy.attempts, "\(id): too many attempts")
            record.attemptAt = now
        } else if record.next == .replay {
            world.count("replayed")
            if record.head?.status == 401 { record.wasAuthorized = true }
            record.attemptAt = now
        }
        // A redirect that waited for credentials.
        if record.attemptAt == nil { record.attemptAt = now }
        if record.attemptAt == now { record.movedAt = nil }
        record.isHeld = false
        record.next = .unknown
        world.require(
            record.method == request.method, "\(id) is sent as \(request.method)")
        record.generation = generation
        record.isRunning = true
        record.starts += 1
        record.startedAt = now
        record.head = nil
        record.failure = nil
        record.reception = nil
        let running = records.values.count {
            $0.isRunning && $0.request.host == record.request.host
        }
        world.require(running <= plan.configuration.perHost, "\(running) exchanges with a host")
        if running == plan.configuration.perHost { world.count("host limit delayed a request") }
    }

    private func failed(_ record: Record) -> String {
        record.failure.map { "\($0.error.code)" } ?? "no failure"
    }

    private func isStream(_ request: HTTPRequest) -> Bool {
        if case .stream = request.body { true } else { false }
    }

    private func checkOrder(_ id: ID, _ record: Record) {
        if record.starts == 0 { checkLine(id, record) }
        guard record.request.isOrdered else { return }
        let earlier = records.filter { $0.key < id && $0.value.request.isOrdered }
        world.require(
            earlier.allSatisfy { $0.value.isFinished }, "\(id) overtakes those before it")
    }

    /// First in, first out, among the requests to one host that may start.
    private func checkLine(_ id: ID, _ record: Record) {
        let first = records.filter { $0.value.request.isOrdered && !$0.value.isFinished }.keys.min()
        let earlier = records.first { other, waiting in
            other < id && waiting.starts == 0 && !waiting.isFinished
                && waiting.request.host == record.request.host
                && (!waiting.request.isOrdered || other == first)
                && !awaitsCredentials(other, waiting)
        }
        if let earlier { world.fail("\(id) begins before \(earlier.key)") }
    }

    private func checkDelay(_ id: ID, _ record: Record) {
        guard case .retry(let from, let asked) = record.next else { return }
        let policy = record.request.policy
        let whole = RESTGuardian.delay(policy, record.retries)
        record.retries += 1
        let waited = (world.now - from) / .seconds(1)
        let least = max(whole / 2, asked / .seconds(1))
        world.require(waited >= least - 1e-6, "\(id) waits \(waited) s, \(least) is the least")
        // Without other reasons to wait, it must not wait longer.
        if plan.flaps.isEmpty, plan.requests.count == 1 {
            let most = max(whole, asked / .seconds(1))
            world.require(waited <= most + 1e-6, "\(id) waits \(waited) s, \(most) is the most")
        }
        if asked / .seconds(1) > whole { world.count("waited for Retry-After") }
        world.count(record.head == nil ? "retried a failure" : "retried a status")
    }

    /// R1's delay before jitter, in seconds.
    static func delay(_ policy: RESTPolicy, _ retries: Int) -> Double {
        let maximum = policy.backoff.maximum / .seconds(1)
        var delay = min(policy.backoff.initial / .seconds(1), maximum)
        for _ in 0..<retries { delay = min(delay * policy.backoff.factor, maximum) }
        return delay
    }

    func aborted(_ id: ID) {
        guard let record = record(id) else { return }
        world.require(record.isRunning, "\(id) is aborted and does not run")
        record.isRunning = false
    }

    /// How long no bytes have moved that give the attempt more time.
    private func standstill(_ record: Record) -> Duration {
        guard let start = record.attemptAt else { return .zero }
        return world.now - max(start, record.movedAt ?? start)
    }

    func timedOut(_ id: ID) {
        guard let record = record(id) else { return }
        world.require(!record.isHeld, "\(id) times out although its caller holds it")
        world.require(
            standstill(record) >= record.request.policy.attemptTimeout,
            "\(id) times out although bytes moved")
        if record.movedAt != nil { world.count("stood still") }
    }

    /// Bytes of the request's body were sent.
    func moved(_ id: ID) { record(id)?.movedAt = world.now }

    /// Bytes of its response arrived.
    func received(_ id: ID) {
        guard let record = record(id), record.request.streamsAnswer else { return }
        record.movedAt = world.now
        let limit = record.request.policy.attemptTimeout
        if limit > .zero, let start = record.attemptAt, world.now - start > limit {
            world.count("streamed for longer than an attempt")
        }
        let deadline = record.request.policy.latestEnd
        if deadline > .zero, record.countedTime(world.now) > deadline {
            world.count("streamed beyond the deadline")
        }
    }

    func streamsAnswer(_ id: ID) -> Bool { records[id]?.request.streamsAnswer ?? false }

    func held(_ id: ID, _ isHeld: Bool) {
        record(id)?.isHeld = isHeld
        moved(id)
    }

    func bodyUsed(_ id: ID) { record(id)?.bodyIsUsed = true }

    // MARK: The server

    func answered(_ id: ID, _ head: ResponseHead) {
        guard let record = record(id) else { return }
        record.head = head
        record.next = RESTVerdict.next(record, head, plan, world.now)
        if record.next == .again {
            if RESTVerdict.becomesGet(record, head) { record.method = "GET" }
            record.hops += 1
            world.count("redirected")
            if head.values("Location").first?.hasPrefix("http://b") == true,
                record.request.host != "b"
            {
                record.keepsOrigin = false
            }
        }
    }

    func received(_ id: ID, _ reception: RESTSession.Reception) {
        guard let record = record(id) else { return }
        record.reception = reception
        if reception == .deliver, record.request.streamsAnswer { record.movedAt = world.now }
    }

    func ended(_ id: ID, _ failure: HTTPFailure?) {
        guard let record = record(id) else { return }
        record.isRunning = false
        if !record.isHeld, record.request.policy.attemptTimeout > .zero {
            world.require(
                standstill(record) <= record.request.policy.attemptTimeout,
                "\(id): an attempt lasts too long")
        }
        if record.next == .again, awaitsCredentials(id, record) { record.attemptAt = nil }
        if record.next == .credentials {
            // Meanwhile other requests got new credentials, or none.
            if lastBeforeQuestion == nil, record.generation != generation {
                record.next = .replay
            } else if let denied, denied.generation == record.generation, id <= denied.last {
                record.next = .end
            }
        }
        // The rest of a discarded body does not matter, unless it takes the time that the redirect
        // needs.
        let isOver = record.reception == .deliver || record.head == nil
        let isLate = record.next == .again && failure?.error.code == .timeout
        guard let failure, isOver || isLate else { return }
        record.failure = failure
        record.next = RESTVerdict.next(record, failure, world.now)
        if record.next == .queue {
            world.count("went back to the queue")
            if record.attempts > 0, record.starts > 0 { RESTVerdict.uncount(record) }
        }
        if record.reception != .deliver { record.head = nil }
    }

    // MARK: The end

    func finished(_ id: ID, _ outcome: RESTOutcome) {
        guard let record = record(id) else { return }
        world.require(!record.isFinished, "\(id) ends twice")
        world.require(!record.isRunning, "\(id) ends while its exchange runs")
        record.isFinished = true
        let code = outcome.error.map { "\($0.code)" } ?? "ok"
        world.count(code)
        if !plan.isGentle, !isClosed, code != "queueFull", code != "cancelled" {
            RESTVerdict.check(id, record, outcome, plan, world)
        }
        switch outcome.error?.code {
        case .cancelled:
            world.require(record.isCancelled, "\(id) ends as cancelled, which nobody asked for")
        case .closed: world.require(isClosed, "\(id) ends as closed without a close")
        case .queueFull: checkFull(id, record)
        default: world.require(!isClosed, "\(id) ends with \(code) after close")
        }
        if plan.isGentle { world.require(outcome.error == nil, "\(id) fails: \(code)") }
    }

    private func checkFull(_ id: ID, _ record: Record) {
        world.require(record.starts == 0, "\(id) has started, and is refused by the queue")
        world.require(isFull, "\(id) is refused by a queue that has room")
        if plan.configuration.overflow == .dropOldest, let oldest {
            world.require(id == oldest, "\(id) is dropped, \(oldest) is older")
            world.count("dropped the oldest")
        }
    }

    func checkQueue() {
        if let taken {
            world.require(records[taken]?.isFinished ?? false, "\(taken) waits in a full queue")
        }
        taken = nil
    }

    /// No event may follow.
    func end() {
        for (id, record) in records.sorted(by: { $0.key < $1.key }) {
            world.require(record.isFinished, "\(id) never ends")
        }
        world.require(world.isIdle, "something is still to happen")
    }
}
