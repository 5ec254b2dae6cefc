package import Wire

/// The attempts of one object: how many failed in a row, when the next is due, and whether there is
/// a network for it. All objects count like this. What differs between protocols is in the backoff,
/// in the ceiling, and in the arguments of `ended`.
///
/// The calls for one attempt: `begin`, `opened` if it succeeded, then `ended` or `schedule`. While
/// `wakeUp` is nil, nothing is due, or there is no network.
///
/// Without a network no attempt is made, not even the first, and none is counted (R9). Each wait
/// for one is reported once: by the failure that led to it, or by the error of `waitBegan`.
package struct Attempts: Sendable {
    package enum End {
        /// Counts as a failure, unless there is no network.
        case failure
        /// The attempt served its purpose. It is not a failure, and earlier failures are forgotten.
        case served
    }

    package enum Next: Equatable {
        case retry(after: Duration)
        /// When there is a network. The attempt was not counted.
        case waitForNetwork
        /// No attempts are left.
        case exhausted
    }

    private var backoff: Backoff
    /// Limits requests, regardless of the delays.
    private var pacer: RequestPacer?
    /// Whether an attempt that fails is followed by another. If none is, it is made without a
    /// network, too: the system's error then says what is wrong.
    package var repeats = true
    /// Whether there is a network, as far as the program or the monitor has said last.
    private var hasNetwork = true
    /// What the monitor has said last.
    private var isObserved = true
    /// The present wait for a network was reported.
    private var isWaitReported = false
    /// When the next attempt is due; nil if none is.
    private var due: Instant?
    /// The peer or the protocol allows no earlier attempt, even when a network returns.
    private var notBefore = Instant(nanoseconds: 0)
    private var openedAt: Instant?
    private var askedForCredentials = false

    package init(_ backoff: BackoffConfiguration, ceiling: RequestPacer? = nil) {
        self.backoff = Backoff(backoff)
        pacer = ceiling
    }

    /// The longest wait that a server can ask for, in all protocols.
    package static let longestAsked = Duration.seconds(300)

    /// How long a response asks the client to wait.
    /// - Parameter wallClock: seconds since 1970, for a response that contains a date.
    package static func asked(by head: ResponseHead, wallClock: Int64) -> Duration {
        capped(retryTime(of: head, wallClock: wallClock))
    }

    package static func asked(by response: HTTPResponse?, wallClock: Int64) -> Duration {
        capped(response.flatMap { retryTime(of: $0, wallClock: wallClock) })
    }

    package static func capped(_ asked: Duration?) -> Duration {
        min(asked ?? .zero, longestAsked)
    }

    /// Failures in a row.
    package var failures: Int { backoff.failures }

    /// Changes the backoff, which may differ for each attempt. The count of failures stays.
    package mutating func configure(_ backoff: BackoffConfiguration) {
        self.backoff.configuration = backoff
    }

    // MARK: One attempt

    /// Makes the next attempt due now, whatever wait was requested before. Not a failure.
    package mutating func restart(now: Instant) {
        _ = closed(now: now)
        notBefore = now
        due = now
    }

    /// The program knows that there is a network: an attempt that waits, for its time or for a
    /// network, is due now. Failures continue to count.
    package mutating func retryNow(_ now: Instant) {
        guard due != nil else { return }
        programReports(isOnline: true, now: now)
        notBefore = now
        due = max(now, earliest)
    }

    /// Makes the next attempt due at a time that the protocol chooses. A network that returns does
    /// not make it earlier.
    package mutating func schedule(at time: Instant) {
        notBefore = time
        due = max(time, earliest)
    }

    package mutating func begin() {
        due = nil
        openedAt = nil
        askedForCredentials = false
        isWaitReported = false
    }

    /// The attempt that was due is not wanted any more.
    package mutating func abandon() {
        due = nil
        isWaitReported = false
    }

    /// Counts a request against the ceiling.
    package mutating func sent(now: Instant) { pacer?.sent(now: now) }

    /// The attempt succeeded. Once it has lasted for the stable time, earlier failures are
    /// forgotten.
    package mutating func opened(now: Instant) { openedAt = now }

    /// The connection of this attempt has ended.
    /// - Returns: whether it lasted for the stable time.
    package mutating func closed(now: Instant) -> Bool {
        defer { openedAt = nil }
        let isStable = openedAt.map { now - $0 >= backoff.configuration.stableTime } ?? false
        if isStable { backoff.reset() }
        return isStable
    }

    /// Forgets earlier failures at once, because the attempt delivered something.
    package mutating func forgetFailures() { backoff.reset() }

    /// Whether to ask the caller for credentials: only once per attempt.
    package mutating func mayAskForCredentials() -> Bool {
        defer { askedForCredentials = true }
        return !askedForCredentials
    }

    /// The attempt failed, or its connection ended.
    /// - Parameters:
    ///   - asked: how long the peer asked to wait.
    ///   - random: uniform in [0, 1).
    package mutating func ended(
        _ end: End = .failure, asked: Duration = .zero, now: Instant, random: Double
    ) -> Next {
        _ = closed(now: now)
        notBefore = now + asked
        due = now
        doubtProgram()
        if end == .served { backoff.reset() }
        guard isOnline else {
            isWaitReported = true
            return .waitForNetwork
        }
        switch end {
        case .served: return wait(backoff.delay(random: random), now)
        case .failure:
            guard let delay = backoff.failed(random: random) else { return .exhausted }
            return wait(delay, now)
        }
    }

    private mutating func wait(_ delay: Duration, _ now: Instant) -> Next {
        let due = max(now + delay, notBefore, earliest)
        self.due = due
        return .retry(after: due - now)
    }

    private var earliest: Instant { pacer?.earliest ?? Instant(nanoseconds: 0) }

    /// - Parameter option: the option that limits the attempts, as `OptionOwner` mentions it.
    package func exhausted(_ last: RealtimeError, option: String) -> RealtimeError {
        RealtimeError(
            .reconnectsExhausted,
            "gave up after \(backoff.configuration.attemptLimit) reconnects in a row\(option);"
                + " the last error: \(last.message)",
            response: last.response, systemError: last.systemError)
    }

    // MARK: Time and the network

    /// Whether an attempt may be made now.
    package var isOnline: Bool { hasNetwork || !repeats }

    /// When the next attempt is due; nil without a network.
    package var wakeUp: Instant? { isOnline ? due : nil }

    /// To be called when an attempt that is wanted may have begun to wait for a network.
    /// - Parameter name: of the peer.
    /// - Returns: the error to report, once for each wait; nil if there is nothing to report.
    package mutating func waitBegan(for name: String) -> RealtimeError? {
        guard !isOnline, !isWaitReported else { return nil }
        isWaitReported = true
        return RealtimeError(waitingFor: name)
    }

    /// Sets whether the monitor finds a network to reach the peer (R9). If it returns, the next
    /// attempt follows within a second, at a random time, unless the peer asked for a longer wait.
    /// Only a change counts, so that what the program has reported since holds.
    /// - Parameter random: uniform in [0, 1).
    /// - Returns: whether this is a change.
    @discardableResult
    package mutating func setOnline(_ online: Bool, now: Instant, random: Double) -> Bool {
        guard online != isObserved else { return false }
        isObserved = online
        return setNetwork(online, now: now, random: random)
    }

    /// The program says whether there is a network. That holds until the monitor finds a change, or
    /// until an attempt ends although the monitor finds none.
    package mutating func programReports(isOnline: Bool, now: Instant) {
        setNetwork(isOnline, now: now, random: 0)
    }

    /// The program may have known better than the monitor, but the attempt has ended.
    mutating func doubtProgram() { hasNetwork = hasNetwork && isObserved }

    @discardableResult
    private mutating func setNetwork(_ isThere: Bool, now: Instant, random: Double) -> Bool {
        guard isThere != hasNetwork else { return false }
        hasNetwork = isThere
        if isThere { isWaitReported = false }
        guard isThere, let due else { return true }
        let soon = max(now + .onceOnline(random: random), notBefore, earliest)
        self.due = due > now ? min(due, soon) : soon
        return true
    }
}

extension RealtimeError {
    /// An attempt waits for a network.
    init(waitingFor name: String) {
        self.init(.connect, "\(name): no network reaches it")
    }
}
