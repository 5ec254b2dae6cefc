import Session

/// A second reading of the ladder, its counts and its delays (B9 to B12). It hears of every event,
/// and says which phase the machine must be in and when the next attempt must come.
struct SpreadbotReading {
    enum Stage: Equatable {
        case idle
        /// An attempt must start within this time.
        case due(from: Instant, to: Instant)
        case dialing
        case open(since: Instant)
        case authorizing
        case offline
        case closing
    }

    private struct Rung {
        var short = 0
        var unfitUntil: Instant?
    }

    private let configuration: SpreadbotConfiguration
    private let order: [SpreadbotTransport]
    private(set) var stage = Stage.idle
    private var rungs: [Rung]
    private(set) var rung = 0
    private var failures = 0
    private var failedRounds = 0
    private var isOnline = true
    private var gotMessage = false
    /// The next attempt uses tokens that were fetched after a refusal.
    private var isSecondTry = false
    /// The tokens were refused after they had received a message.
    private var isSpent = false
    private var attachedGeneration = 0
    private var refusedGeneration: Int?
    private var generation = 0
    /// How many ends the user must be notified of, and when the last one came.
    private(set) var ends = 0
    private(set) var lastEnd: Instant?
    /// The tokens were refreshed before the attempt that is due.
    private var wasRefreshedAhead = false

    /// The time between probes; zero if there are none.
    private var probeInterval: Duration
    /// The earliest and the latest time of the next probe.
    private(set) var probe: (from: Instant, to: Instant)?

    init(_ configuration: SpreadbotConfiguration) {
        self.configuration = configuration
        order = configuration.transports
        rungs = order.map { _ in Rung() }
        probeInterval = configuration.upgradeInterval
    }

    var transport: SpreadbotTransport? { stage == .idle ? nil : order[rung] }
    var isLast: Bool { rung == order.count - 1 }
    private var isBelowWebSocket: Bool {
        order.firstIndex(of: .webSocket).map { $0 < rung } ?? false
    }

    // MARK: The user

    mutating func established(_ now: Instant) {
        if stage == .closing { end(now) }
        reset()
        isSecondTry = false
        probe = nil
        probeInterval = configuration.upgradeInterval
        dial(now)
    }

    mutating func disconnected(_ now: Instant) {
        switch stage {
        case .idle, .closing: return
        case .open where order[rung] == .webSocket: stage = .closing
        case .open, .due, .dialing, .authorizing, .offline: end(now)
        }
    }

    mutating func closed(_ now: Instant) { end(now) }

    /// A request was refused with the current token.
    mutating func requestRefused() { refusedGeneration = generation }

    /// Whether the current tokens were refused.
    var areRefused: Bool { refusedGeneration == generation }

    mutating func gaveTokens(_ now: Instant) {
        generation += 1
        isSecondTry = false
        isSpent = false
        if stage == .authorizing { dial(now) }
    }

    private mutating func end(_ now: Instant) {
        stage = .idle
        rung = 0
        ends += 1
        lastEnd = now
    }

    private mutating func reset() {
        failedRounds = 0
        backToTop()
    }

    private mutating func backToTop() {
        rung = 0
        failures = 0
        rungs = order.map { _ in Rung() }
    }

    // MARK: Attempts

    private mutating func dial(_ now: Instant) {
        wasRefreshedAhead = false
        guard isOnline else { return stage = .offline }
        while rung < order.count, let until = rungs[rung].unfitUntil, until > now { rung += 1 }
        if rung == order.count { return end(now) }
        stage = .due(from: now, to: now)
        attachedGeneration = generation
    }

    private mutating func nextRung(_ asked: Duration, _ now: Instant) {
        rung += 1
        failures = 0
        while rung < order.count, let until = rungs[rung].unfitUntil, until > now { rung += 1 }
        if rung < order.count { return dial(now) }
        failedRounds += 1
        if configuration.maxRounds > 0, failedRounds >= configuration.maxRounds { return end(now) }
        backToTop()
        wait(failedRounds, asked, now)
    }

    /// Half of a delay is random: the next attempt may come within that time.
    private mutating func wait(_ count: Int, _ asked: Duration, _ now: Instant) {
        var delay = min(Duration.seconds(1), configuration.maxDelay)
        for _ in stride(from: 1, to: min(count, 60), by: 1) {
            delay = min(configuration.maxDelay, delay * 2)
        }
        // Half a microsecond, because the delay is a floating-point number.
        let from = now + max(delay / 2, asked)
        let to = now + max(delay, asked) + .microseconds(1)
        stage = .due(from: from, to: to)
    }

    /// - Returns: what is wrong with an attempt now.
    mutating func attached(_ attempt: SpreadbotSession.Attempt, _ now: Instant) -> String? {
        guard case .due(let from, let to) = stage else { return "an attempt while \(stage)" }
        guard attempt.transport == order[rung] else {
            return "tries \(attempt.transport), \(order[rung]) is next"
        }
        guard now >= from, now <= to else {
            return "tries at \(now.nanoseconds), not \(from.nanoseconds) to \(to.nanoseconds)"
        }
        stage = .dialing
        wasRefreshedAhead = false
        gotMessage = false
        if from < to { attachedGeneration = generation }
        if attempt.transport == .webSocket { probe = nil }
        return nil
    }

    mutating func opened(_ now: Instant) {
        stage = .open(since: now)
        guard isBelowWebSocket else {
            probe = nil
            probeInterval = configuration.upgradeInterval
            return
        }
        guard probeInterval > .zero, probe == nil else { return }
        probe = (now + probeInterval, now + probeInterval)
    }

    mutating func received() {
        gotMessage = true
        failures = 0
        failedRounds = 0
        rungs[rung].short = 0
    }

    /// - Parameter canRefresh: there is a refresh token.
    mutating func ended(_ fate: SpreadbotFate, canRefresh: Bool, _ now: Instant) {
        if case .open(let since) = stage {
            if held(since, now) { settle(since, now) } else { rungs[rung].short += 1 }
        }
        if fate.kind != .unauthorized { isSecondTry = false }
        if !isOnline, fate.kind == .unfit || fate.kind == .unreachable { return stage = .offline }
        switch fate.kind {
        case .unfit: nextRung(fate.asked, now)
        case .refused: end(now)
        case .unauthorized:
            if attachedGeneration != generation { return dial(now) }
            if canRefresh, isSecondTry, gotMessage {
                isSpent = true
                return isOnline ? again(fate.asked, now) : (stage = .offline)
            }
            guard canRefresh, !isSecondTry else { return end(now) }
            isSecondTry = true
            refusedGeneration = generation
            stage = .authorizing
        case .unreachable: again(fate.asked, now)
        }
    }

    private func held(_ since: Instant, _ now: Instant) -> Bool {
        gotMessage || now - since >= configuration.stableTime
    }

    private mutating func settle(_ since: Instant, _ now: Instant) {
        failures = 0
        failedRounds = 0
        rungs[rung].short = 0
        if now - since >= configuration.stableTime { isSecondTry = false }
    }

    private mutating func again(_ asked: Duration, _ now: Instant) {
        if rungs[rung].short >= 3 {
            let interval = configuration.upgradeInterval
            rungs[rung].short = 0
            rungs[rung].unfitUntil =
                interval > .zero ? now + interval : Instant(nanoseconds: .max)
            return nextRung(asked, now)
        }
        guard failures < configuration.maxReconnects else { return nextRung(asked, now) }
        failures += 1
        wait(failures, asked, now)
    }

    // MARK: Tokens

    /// The machine refreshes before an attempt that is due now.
    /// - Returns: whether it may.
    mutating func refreshesAhead(_ now: Instant, _ left: Duration?) -> Bool {
        guard case .due(_, let to) = stage, to >= now, !wasRefreshedAhead else { return false }
        guard isSpent || left.map({ $0 < .seconds(30) }) ?? false else { return false }
        stage = .authorizing
        return true
    }

    mutating func refreshed(_ now: Instant) {
        generation += 1
        isSpent = false
        // A probe may succeed with them.
        probe = probe.map { (min($0.from, now), min($0.to, now)) }
        goOn(canRefresh: false, now)
    }

    /// The answer to a refresh came after the user had set tokens.
    mutating func goOn(canRefresh: Bool, _ now: Instant) {
        guard stage == .authorizing else { return }
        // Those were refused, too, so they are refreshed now.
        if areRefused, canRefresh { return }
        dial(now)
        wasRefreshedAhead = true
    }

    mutating func refreshFailed(isRefused: Bool, _ now: Instant) {
        if isRefused {
            if stage != .idle, stage != .closing { end(now) }
        } else if stage == .authorizing {
            isSecondTry = false
            isOnline ? again(.zero, now) : (stage = .offline)
        }
    }

    // MARK: The network

    mutating func network(_ isOnline: Bool, _ now: Instant) {
        let isBack = isOnline && !self.isOnline
        self.isOnline = isOnline
        switch stage {
        case .offline where isBack:
            reset()
            wasRefreshedAhead = false
            stage = .due(from: now, to: now + .seconds(1))
        case .due where !isOnline: stage = .offline
        case .open where isOnline:
            guard let (from, to) = probe else { return }
            probe = (min(from, now), min(to, now + .seconds(1)))
        case .idle, .due, .dialing, .open, .authorizing, .offline, .closing: break
        }
    }

    // MARK: Probes

    /// - Returns: what is wrong with a probe now.
    mutating func probed(_ now: Instant) -> String? {
        guard case .open = stage, isBelowWebSocket else { return "a probe while \(stage)" }
        guard let (from, to) = probe, now >= from else { return "a probe before its time" }
        guard now <= max(to, lastOpen) else { return "a probe after its time" }
        probe = nil
        return nil
    }

    private var lastOpen: Instant {
        if case .open(let since) = stage { since } else { Instant(nanoseconds: 0) }
    }

    /// - Returns: whether a probe should have started.
    func lacksProbe(_ now: Instant) -> Bool {
        guard case .open(let since) = stage, let probe else { return false }
        return max(probe.to, since) < now
    }

    mutating func probeFailed(_ now: Instant) {
        probeInterval = min(
            probeInterval * 2, max(configuration.maxUpgradeInterval, probeInterval))
        if case .open = stage, isBelowWebSocket {
            probe = (now + probeInterval, now + probeInterval)
        }
    }

    mutating func probeOpened(_ now: Instant) {
        guard case .open(let since) = stage, let top = order.firstIndex(of: .webSocket), top < rung
        else { return }
        if held(since, now) {
            settle(since, now)
            isSecondTry = false
        }
        rung = top
        rungs[top].unfitUntil = nil
        failures = 0
        dial(now)
    }
}
