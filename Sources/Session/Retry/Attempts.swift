package import Wire

/// The attempts of one object: how many failed in a row, when the next is due, and whether there is
/// a network to make it by. All objects count in this way; what their protocols want otherwise is
/// in the backoff, in the ceiling, and in what is said of an end.
///
/// The calls of one attempt: `begin`, `opened` when it came to something, and then `ended` or
/// `schedule`. While `wakeUp` is nil, nothing is due, or there is no network.
package struct Attempts: Sendable {
    package enum End {
        /// It counts as a failure, but not without a network.
        case failure
        /// It had served its purpose: failures before it are forgotten, and it is none.
        case served
    }

    package enum Next: Equatable {
        case retry(after: Duration)
        /// When there is a network; nothing was counted.
        case waitForNetwork
        /// None is left.
        case exhausted
    }

    private var backoff: Backoff
    /// The ceiling on requests, whatever the delays are.
    private var pacer: RequestPacer?
    package private(set) var isOnline = true
    /// When the next is due; nil when none is waited for.
    private var due: Instant?
    /// The peer, or the protocol, wants it no earlier, also when a network comes back.
    private var notBefore = Instant(nanoseconds: 0)
    private var openedAt: Instant?
    private var askedForCredentials = false

    package init(_ backoff: BackoffConfiguration, ceiling: RequestPacer? = nil) {
        self.backoff = Backoff(backoff)
        pacer = ceiling
    }

    /// What a server may ask to wait, in all protocols.
    package static let longestAsked = Duration.seconds(300)

    /// What an answer asks to wait.
    /// - Parameter wallClock: seconds since 1970, for one that names a date.
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

    /// It may be another for each attempt; what was counted counts on.
    package mutating func configure(_ backoff: BackoffConfiguration) {
        self.backoff.configuration = backoff
    }

    // MARK: One attempt

    /// The next is due now, whatever was asked for before, and this is no failure.
    package mutating func restart(now: Instant) {
        _ = closed(now: now)
        notBefore = now
        due = now
    }

    /// The next is due at a time that the protocol names; a network that comes back does not make
    /// it earlier.
    package mutating func schedule(at time: Instant) {
        notBefore = time
        due = max(time, earliest)
    }

    package mutating func begin() {
        due = nil
        openedAt = nil
        askedForCredentials = false
    }

    /// A request goes out.
    package mutating func sent(now: Instant) { pacer?.sent(now: now) }

    /// It came to something: once that has lasted, failures before it no longer count.
    package mutating func opened(now: Instant) { openedAt = now }

    /// What it came to has ended.
    /// - Returns: whether it had lasted.
    package mutating func closed(now: Instant) -> Bool {
        defer { openedAt = nil }
        let isStable = openedAt.map { now - $0 >= backoff.configuration.stableTime } ?? false
        if isStable { backoff.reset() }
        return isStable
    }

    /// What it brought is worth more than time: failures before it no longer count.
    package mutating func forgetFailures() { backoff.reset() }

    /// Whether the caller may be asked for credentials: once in an attempt.
    package mutating func mayAskForCredentials() -> Bool {
        defer { askedForCredentials = true }
        return !askedForCredentials
    }

    /// It failed, or what it had come to ended.
    /// - Parameters:
    ///   - asked: what the peer asked to wait.
    ///   - random: uniform in [0, 1).
    package mutating func ended(
        _ end: End = .failure, asked: Duration = .zero, now: Instant, random: Double
    ) -> Next {
        _ = closed(now: now)
        notBefore = now + asked
        due = now
        switch end {
        case .served:
            backoff.reset()
            return isOnline ? wait(backoff.delay(random: random), now) : .waitForNetwork
        case .failure:
            guard isOnline else { return .waitForNetwork }
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

    /// - Parameter option: what limits them, for the message.
    package func exhausted(_ last: RealtimeError, option: String) -> RealtimeError {
        RealtimeError(
            .reconnectsExhausted,
            "\(backoff.configuration.attemptLimit) reconnects in a row did not hold (\(option));"
                + " the last: \(last.message)",
            response: last.response, systemError: last.systemError)
    }

    // MARK: Time and the network

    /// When the next is to begin; nil without a network.
    package var wakeUp: Instant? { isOnline ? due : nil }

    /// There is a network, or none, to reach the peer by (R9). One that comes back shortens the
    /// wait: within a second, spread, unless the peer asked for more.
    /// - Parameter random: uniform in [0, 1).
    /// - Returns: whether this is a change.
    @discardableResult
    package mutating func setOnline(_ online: Bool, now: Instant, random: Double) -> Bool {
        guard online != isOnline else { return false }
        isOnline = online
        guard online, let due else { return true }
        let soon = max(now + .onceOnline(random: random), notBefore, earliest)
        self.due = due > now ? min(due, soon) : soon
        return true
    }
}
