import Wire

/// Limits how many client events are sent within a time, wherever that begins, because servers
/// count them like this.
struct PusherEventPacer: Sendable {
    /// A second, and what the way to the server may take away from the distance of two events.
    static let window = Duration.milliseconds(1100)

    private let rate: Int
    /// When the latest events were sent, up to `rate`.
    private var times: [Instant] = []
    /// The place of the oldest time, once there are `rate`.
    private var oldest = 0

    /// - Parameter rate: at least 1.
    init(rate: Int) { self.rate = rate }

    /// The earliest time for the next event; may be in the past.
    var earliest: Instant {
        times.count < rate ? Instant(nanoseconds: 0) : times[oldest] + PusherEventPacer.window
    }

    /// Counts an event that is sent now.
    mutating func sent(_ now: Instant) {
        guard times.count == rate else { return times.append(now) }
        times[oldest] = now
        oldest = (oldest + 1) % rate
    }
}
