package import Wire

/// How the delays between attempts are spread, so that the clients of a server that restarted do
/// not all come back at once. U is uniform in [0, 1).
package enum Jitter: Int32, Sendable {
    /// d.
    case none = 0
    /// d/2 + U·d/2.
    case equal = 1
    /// U·d.
    case full = 2
    /// min(maximum, initial + U·(3·previous − initial)).
    case decorrelated = 3
}

/// How often and how soon something that failed is tried again; the C ABI's `rt_backoff_set_*`,
/// with the same defaults.
package struct BackoffConfiguration: Sendable, Equatable {
    package private(set) var initial = Duration.seconds(1)
    package private(set) var factor = 2.0
    package private(set) var maximum = Duration.seconds(30)
    package var jitter = Jitter.equal
    /// Attempts in a row that may fail; 0 is no limit.
    package var attemptLimit = 0
    /// How long a success must last before the count begins anew.
    package var stableTime = Duration.seconds(10)

    package init() {}

    package mutating func setInitial(_ delay: Duration) throws(RealtimeError) {
        initial = try BackoffConfiguration.checked(delay, "the initial delay")
    }

    package mutating func setMaximum(_ delay: Duration) throws(RealtimeError) {
        maximum = try BackoffConfiguration.checked(delay, "the maximum delay")
    }

    package mutating func setFactor(_ factor: Double) throws(RealtimeError) {
        guard factor >= 1, factor <= 1000 else {
            throw RealtimeError(
                .invalidArgument, "the factor of the delays is \(factor), 1 to 1000 is expected")
        }
        self.factor = factor
    }

    /// A year, which keeps every product of delays within a Double's exact range.
    private static let longest = Duration.seconds(365 * 86_400)

    private static func checked(
        _ delay: Duration, _ what: String
    ) throws(RealtimeError) -> Duration {
        guard delay >= .zero, delay <= longest else {
            throw RealtimeError(
                .invalidArgument, "\(what) is \(delay.readable), 0 to a year is expected")
        }
        return delay
    }
}

/// Counts attempts and says how long to wait before the next.
package struct Backoff: Sendable {
    private let configuration: BackoffConfiguration
    /// Attempts that failed in a row.
    package private(set) var failures = 0
    private var previous: Duration
    private var openedAt: Instant?

    package init(_ configuration: BackoffConfiguration) {
        self.configuration = configuration
        previous = configuration.initial
    }

    /// An attempt succeeded: once that has lasted, failures before it no longer count.
    package mutating func succeeded(now: Instant) { openedAt = now }

    /// An attempt failed, or what it had reached ended.
    /// - Parameters:
    ///   - random: uniform in [0, 1).
    ///   - least: what the server asked for, if it did.
    /// - Returns: the delay before the next attempt; nil when there is to be none.
    package mutating func failed(
        now: Instant, random: Double, least: Duration = .zero
    ) -> Duration? {
        _ = interrupted(now: now)
        if configuration.attemptLimit > 0, failures >= configuration.attemptLimit { return nil }
        failures += 1
        previous = delay(random)
        return max(previous, least)
    }

    /// What an attempt had reached ended, or it failed, without counting as a failure.
    /// - Returns: how many failed in a row before it.
    package mutating func interrupted(now: Instant) -> Int {
        if let openedAt, now - openedAt >= configuration.stableTime { reset() }
        openedAt = nil
        return failures
    }

    package mutating func reset() {
        failures = 0
        previous = configuration.initial
    }

    private func delay(_ random: Double) -> Duration {
        let maximum = seconds(configuration.maximum)
        let initial = min(seconds(configuration.initial), maximum)
        var delay = initial
        var step = 1
        while step < failures, delay < maximum, delay > 0, configuration.factor > 1 {
            delay = min(delay * configuration.factor, maximum)
            step += 1
        }
        let spread =
            switch configuration.jitter {
            case .none: delay
            case .equal: delay / 2 + random * delay / 2
            case .full: random * delay
            case .decorrelated:
                min(maximum, initial + random * (3 * seconds(previous) - initial))
            }
        return .nanoseconds(Int64(spread * 1e9))
    }

    private func seconds(_ duration: Duration) -> Double {
        Double(duration.clampedNanoseconds) / 1e9
    }
}
