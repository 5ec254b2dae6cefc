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
    /// No delay is shorter than the initial one, whose own is spread above it by up to a fifth;
    /// those that grow begin with at least 250 ms (docs/eventsource.md, C9). There is no jitter.
    package private(set) var isAboveInitial = false

    package init() {}

    /// With delays as options have them, which may be longer than a backoff's own.
    package init(
        initial: Duration = .seconds(1), maximum: Duration, isAboveInitial: Bool = false
    ) {
        self.initial = initial
        self.maximum = maximum
        self.isAboveInitial = isAboveInitial
    }

    /// The same with another initial delay, and a maximum that is not below it.
    package func beginning(with initial: Duration) -> BackoffConfiguration {
        var copy = self
        copy.initial = initial
        copy.maximum = max(maximum, initial)
        return copy
    }

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

/// Counts failures in a row, and says how long to wait after each.
package struct Backoff: Sendable {
    package var configuration: BackoffConfiguration
    package private(set) var failures = 0
    private var previous: Double

    package init(_ configuration: BackoffConfiguration) {
        self.configuration = configuration
        previous = nanoseconds(configuration.initial)
    }

    /// Another failure.
    /// - Parameter random: uniform in [0, 1).
    /// - Returns: the delay before the next attempt; nil when there is to be none.
    package mutating func failed(random: Double) -> Duration? {
        failures += 1
        if configuration.attemptLimit > 0, failures > configuration.attemptLimit { return nil }
        return delay(random: random)
    }

    /// The delay after the failures there were; without one, as after the first.
    package mutating func delay(random: Double) -> Duration {
        previous = configuration.isAboveInitial ? aboveInitial(random) : spread(random)
        return .nanoseconds(Int64(previous))
    }

    package mutating func reset() {
        failures = 0
        previous = nanoseconds(configuration.initial)
    }

    private func spread(_ random: Double) -> Double {
        let maximum = nanoseconds(configuration.maximum)
        let initial = min(nanoseconds(configuration.initial), maximum)
        let delay = grown(from: initial, to: maximum)
        return switch configuration.jitter {
        case .none: delay
        case .equal: delay / 2 + random * delay / 2
        case .full: random * delay
        case .decorrelated: min(maximum, initial + random * (3 * previous - initial))
        }
    }

    private func aboveInitial(_ random: Double) -> Double {
        let initial = nanoseconds(configuration.initial)
        guard failures > 1 else { return initial * (1 + 0.2 * random) }
        let delay = grown(
            from: max(initial, 250e6), to: max(initial, nanoseconds(configuration.maximum)))
        return max(initial, delay / 2 + random * delay / 2)
    }

    private func grown(from initial: Double, to maximum: Double) -> Double {
        var delay = initial
        var step = 1
        while step < failures, delay < maximum, delay > 0, configuration.factor > 1 {
            delay *= configuration.factor
            step += 1
        }
        return min(delay, maximum)
    }
}

private func nanoseconds(_ duration: Duration) -> Double { Double(duration.clampedNanoseconds) }
