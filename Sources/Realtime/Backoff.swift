internal import Session
internal import Wire

/// How often and how soon something that failed is tried again: initial, initial · factor,
/// initial · factor² … up to the maximum, each spread by the jitter.
public struct Backoff: Sendable, Hashable {
    /// How delays are spread, so that the clients of a server that restarted do not all come back
    /// at once; U is uniform in [0, 1).
    public enum Jitter: Sendable {
        /// The delay itself.
        case none
        /// Half the delay, and U times the other half.
        case equal
        /// U times the delay.
        case full
        /// min(maximum, initial + U · (3 · previous − initial)).
        case decorrelated
    }

    /// The delay after the first failure.
    public var initialDelay = Duration.seconds(1)
    /// By how much each delay is longer than the one before, 1 to 1,000.
    public var factor = 2.0
    public var maxDelay = Duration.seconds(30)
    public var jitter = Jitter.equal
    /// How many attempts in a row may follow a failure; nil means no limit.
    public var maxAttempts: Int?
    /// How long a connection must last before attempts are counted anew.
    public var stableTime = Duration.seconds(10)

    public init() {}

    func configuration() throws(RealtimeError) -> BackoffConfiguration {
        var target = BackoffConfiguration()
        try target.setInitial(try OptionCheck.delay(initialDelay, "initialDelay"))
        try target.setMaximum(try OptionCheck.delay(maxDelay, "maxDelay"))
        try target.setFactor(factor)
        target.jitter =
            switch jitter {
            case .none: .none
            case .equal: .equal
            case .full: .full
            case .decorrelated: .decorrelated
            }
        if let maxAttempts {
            guard maxAttempts > 0 else {
                throw RealtimeError(
                    .invalidArgument, "maxAttempts is \(maxAttempts), 1 or more is expected")
            }
            target.attemptLimit = maxAttempts
        }
        target.stableTime = try OptionCheck.delay(stableTime, "stableTime")
        return target
    }
}
