/// A point in time on a monotonic clock. Machines never read a clock: callers pass them `now`.
package struct Instant: Hashable, Comparable, Sendable {
    package var nanoseconds: UInt64

    package init(nanoseconds: UInt64) { self.nanoseconds = nanoseconds }

    package static func < (a: Instant, b: Instant) -> Bool { a.nanoseconds < b.nanoseconds }

    /// The instant later by `duration`; the last instant on overflow, unchanged for a negative
    /// duration.
    package static func + (instant: Instant, duration: Duration) -> Instant {
        let (sum, overflow) = instant.nanoseconds.addingReportingOverflow(
            duration.clampedNanoseconds)
        return Instant(nanoseconds: overflow ? .max : sum)
    }

    /// The time from `earlier` to `later`; zero if `earlier` is the later one.
    package static func - (later: Instant, earlier: Instant) -> Duration {
        guard later > earlier else { return .zero }
        return .nanoseconds(Int64(clamping: later.nanoseconds - earlier.nanoseconds))
    }
}

extension Duration {
    /// Whole nanoseconds: 0 for negative durations, at most `UInt64.max`.
    package var clampedNanoseconds: UInt64 {
        UInt64(clamping: attoseconds / 1_000_000_000)
    }

    /// The longest time that an option accepts, a hundred years. Sums and doubles of it still fit
    /// the clock.
    package static let longestOption = Duration.seconds(100 * 365 * 86_400)

    /// For messages: "10 s", "1500 ms".
    package var readable: String {
        let (seconds, attoseconds) = components
        let milliseconds = Int128(seconds) * 1000 + Int128(attoseconds / 1_000_000_000_000_000)
        return milliseconds % 1000 == 0 ? "\(milliseconds / 1000) s" : "\(milliseconds) ms"
    }

    /// The duration as a time to wait, for messages.
    package var fromNow: String { self == .zero ? "at once" : "in \(readable)" }
}
