/// A ceiling on the requests that a server can cause: a token bucket. `burst` requests may follow
/// one another without a pause; after that, one request per `interval`.
///
/// Every request counts, including redirects and repetitions with fresh credentials. Only the start
/// of an attempt waits, so an attempt may exceed the ceiling by its redirects.
package struct RequestPacer: Sendable {
    private let interval: UInt64
    /// How far `paidUntil` may be ahead of the clock: the burst, as time.
    private let tolerance: UInt64
    /// Each request adds `interval` to this time. While it is in the past, the bucket is full.
    private var paidUntil: UInt64 = 0

    /// The ceiling for polls that the server answers with messages each time. A backlog of messages
    /// is read without a pause up to the burst. After that, a poll every 10 ms is more than a
    /// server in another city can answer, and leaves a processor idle.
    package static let polls = RequestPacer(burst: 1000, interval: .milliseconds(10))

    /// - Parameter burst: at least 1.
    package init(burst: UInt64, interval: Duration) {
        precondition(burst > 0, "a burst of 0 would never begin")
        self.interval = interval.clampedNanoseconds
        tolerance = (burst - 1) * self.interval
    }

    /// Counts a request that goes out now.
    package mutating func sent(now: Instant) {
        paidUntil =
            (max(Instant(nanoseconds: paidUntil), now) + .nanoseconds(Int64(interval)))
            .nanoseconds
    }

    /// The earliest time for the next attempt; may be in the past.
    package var earliest: Instant {
        Instant(nanoseconds: paidUntil > tolerance ? paidUntil - tolerance : 0)
    }
}
