import Wire

/// How delays between attempts are spread, so that the clients of a restarted server do not all
/// return at once. d is the delay, and U is uniform in [0, 1).
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

/// The delays between attempts after a failure, and how many attempts may follow.
/// - Object: backoff, Backoff, value
package struct BackoffConfiguration: Sendable, Equatable {
    /// The delay after the first failure; 0 retries at once.
    /// - Option: initial_delay, delay
    package var initial = Duration.seconds(1)
    /// The longest delay.
    /// - Option: max_delay, delay
    package var maximum = Duration.seconds(30)
    /// The factor between consecutive delays, 1 to 1,000.
    /// - Option: factor, real 1...1000
    package var factor = 2.0
    /// How delays are randomized, so that the clients of a restarted server do not all reconnect at
    /// the same time: not at all; "equal" waits half the delay and a random part of the other half;
    /// "full" a random part of the whole; "decorrelated" from `initial_delay` to three times the
    /// previous delay.
    /// - Option: jitter, choice rt_jitter RT_JITTER Backoff.Jitter none equal full decorrelated
    package var jitter = Jitter.equal
    /// How many attempts in a row may follow a failure.
    /// - Option: max_attempts, count 0..., unlimited
    package var attemptLimit = 0
    /// How long a connection must last before the failure count is reset.
    /// - Option: stable_time, delay
    package var stableTime = Duration.seconds(10)
    /// No delay is shorter than the initial one. The first is longer by up to a fifth at random;
    /// later ones grow from at least 250 ms (docs/eventsource.md, C9). `jitter` is not used.
    package private(set) var isAboveInitial = false
    /// The delays are the squares of consecutive whole numbers, which begin with this one, times
    /// the initial delay. Neither `factor` nor `jitter` is used. nil for delays that grow by the
    /// factor.
    package private(set) var squaresFrom: Int?
    /// This many attempts follow the first failures after `quickDelay`. The later delays are
    /// `initial` times a power of the factor, whose exponent is the number of earlier failures in a
    /// row, within a quarter more or less at random. `jitter` is not used.
    package private(set) var quickAttempts: Int?
    package private(set) var quickDelay = Duration.zero

    package init() {}

    /// Short delays at first, then long ones.
    package init(
        quick: Int, delay: Duration, initial: Duration, factor: Double, maximum: Duration
    ) {
        quickAttempts = quick
        quickDelay = delay
        self.initial = initial
        self.factor = factor
        self.maximum = maximum
    }

    /// Delays of n² seconds, without jitter.
    package init(squaresFrom first: Int, maximum: Duration) {
        self.maximum = maximum
        squaresFrom = first
    }

    package init(
        initial: Duration = .seconds(1), maximum: Duration, isAboveInitial: Bool = false
    ) {
        self.initial = initial
        self.maximum = maximum
        self.isAboveInitial = isAboveInitial
    }

    /// A copy with another initial delay, and a maximum of at least that.
    package func beginning(with initial: Duration) -> BackoffConfiguration {
        var copy = self
        copy.initial = initial
        copy.maximum = max(maximum, initial)
        return copy
    }
}

/// Counts failures in a row, and computes the delay after each.
package struct Backoff: Sendable {
    package var configuration: BackoffConfiguration
    package private(set) var failures = 0
    private var previous: Double

    package init(_ configuration: BackoffConfiguration) {
        self.configuration = configuration
        previous = nanoseconds(configuration.initial)
    }

    /// Counts a failure.
    /// - Parameter random: uniform in [0, 1).
    /// - Returns: the delay before the next attempt; nil if none is left.
    package mutating func failed(random: Double) -> Duration? {
        failures += 1
        if configuration.attemptLimit > 0, failures > configuration.attemptLimit { return nil }
        return delay(random: random)
    }

    /// The delay after the failures so far; with none, the same as after the first.
    package mutating func delay(random: Double) -> Duration {
        previous =
            if let first = configuration.squaresFrom {
                square(Double(first + max(failures, 1) - 1))
            } else if let quick = configuration.quickAttempts {
                quickThenLong(quick, random)
            } else {
                configuration.isAboveInitial ? aboveInitial(random) : spread(random)
            }
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

    private func square(_ number: Double) -> Double {
        let delay = number * number * nanoseconds(configuration.initial)
        return min(delay, nanoseconds(configuration.maximum))
    }

    private func quickThenLong(_ quick: Int, _ random: Double) -> Double {
        if failures <= quick { return nanoseconds(configuration.quickDelay) }
        let initial = nanoseconds(configuration.initial)
        let maximum = nanoseconds(configuration.maximum)
        return grown(from: initial, to: maximum) * (0.75 + random / 2)
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
