internal import Session
internal import Wire

/// The delays between attempts: initial, initial · factor, initial · factor² … up to the maximum,
/// each randomized by the jitter.
public struct Backoff: Sendable, Hashable {
    /// How delays are randomized, so that the clients of a restarted server do not all reconnect at
    /// the same time. U is uniform in [0, 1).
    public enum Jitter: Sendable {
        /// The delay itself.
        case none
        /// Half the delay plus U times the other half.
        case equal
        /// U times the delay.
        case full
        /// min(maximum, initial + U · (3 · previous − initial)).
        case decorrelated
    }

    // abigen: the options of BackoffConfiguration
    /// The delay after the first failure; 0 retries at once.
    public var initialDelay = Duration.seconds(1)
    /// The longest delay.
    public var maxDelay = Duration.seconds(30)
    /// The factor between consecutive delays, 1 to 1,000.
    public var factor = 2.0
    /// How delays are randomized, so that the clients of a restarted server do not all reconnect at
    /// the same time: not at all; "equal" waits half the delay and a random part of the other half;
    /// "full" a random part of the whole; "decorrelated" from `initialDelay` to three times the
    /// previous delay.
    public var jitter = Backoff.Jitter.equal
    /// How many attempts in a row may follow a failure. 0 means no limit.
    public var maxAttempts = 0
    /// How long a connection must last before the failure count is reset.
    public var stableTime = Duration.seconds(10)
    // abigen: end

    public init() {}

    func configuration() throws(RealtimeError) -> BackoffConfiguration {
        var target = BackoffConfiguration()
        try applyPlain(to: &target)
        return target
    }
}
