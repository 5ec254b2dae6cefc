/// Counts of the bytes that were sent on a connection, from its beginning.
package struct SentBytes: Sendable, Equatable {
    /// Those that were queued.
    package var queued: UInt64
    /// Those of them that have arrived: the peer's kernel has acknowledged them.
    package var arrived: UInt64

    package init(queued: UInt64 = 0, arrived: UInt64 = 0) {
        (self.queued, self.arrived) = (queued, arrived)
    }
}

/// The bytes that were queued before a ping and had not arrived: over a slow link they may take
/// longer than an answer may take. While some of them arrive, the peer cannot have answered the
/// ping, and is not dead.
struct BytesBefore: Sendable {
    private let end: UInt64
    private var arrived: UInt64

    /// - Parameters:
    ///   - sent: the counts just before the ping is queued.
    ///   - pending: bytes that will be queued before it, and are not counted in `sent`.
    /// - Returns: nil if everything has arrived.
    init?(_ sent: SentBytes, pending: Int = 0) {
        end = sent.queued &+ UInt64(clamping: pending)
        arrived = sent.arrived
        guard arrived < end else { return nil }
    }

    /// The time for an answer to the ping is over.
    /// - Returns: whether it begins anew: the ping had not arrived when it began, and some of the
    ///   bytes before the ping have arrived since.
    mutating func excuse(_ sent: SentBytes) -> Bool {
        guard arrived < end, sent.arrived > arrived else { return false }
        arrived = sent.arrived
        return true
    }
}

/// The time limit for the answer to a close frame. Over a slow link the bytes before the frame may
/// take longer than the answer may. So while some of them arrive, the time begins anew.
struct CloseLimit: Sendable {
    /// When to call `isOver`.
    private(set) var due: Instant
    private let time: Duration
    private let latest: Instant
    private var before: BytesBefore?

    /// The whole may take so many times the limit.
    private static let mostTimes = 10

    /// - Parameters:
    ///   - sent: the counts just before the close frame is queued; nil if the time never begins
    ///     anew.
    ///   - pending: bytes that will be queued before it, and are not counted in `sent`.
    init(_ time: Duration, sent: SentBytes?, pending: Int = 0, now: Instant) {
        self.time = time
        due = now + time
        latest = now + time * CloseLimit.mostTimes
        before = sent.flatMap { BytesBefore($0, pending: pending) }
    }

    mutating func isOver(_ now: Instant, _ sent: SentBytes) -> Bool {
        guard now >= due else { return false }
        guard now < latest, before?.excuse(sent) ?? false else { return true }
        due = min(now + time, latest)
        return false
    }
}
