/// Sends pings, and measures the time until their pongs (RFC 6455 §5.5.2, §5.5.3). A connection is
/// dead if nothing at all arrives after a ping; with `requiresPong`, if its pong does not.
struct Heartbeat: Sendable {
    enum OnTime: Equatable {
        case nothing
        case ping([UInt8])
        case timedOut
    }

    /// A pong that answers our ping with this number, and all before it.
    struct Answer: Equatable {
        var roundTrip: Duration
        var number: UInt64
    }

    private struct Outstanding: Sendable {
        var number: UInt64
        var payload: [UInt8]
        var sentAt: Instant
    }

    /// The most pings that are remembered, in case a peer never answers.
    private static let maximumOutstanding = 16

    private let interval: Duration
    private let timeout: Duration
    private let requiresPong: Bool
    private var nextPing: Instant?
    private var deadline: Instant?
    private var isPaused = false
    /// A ping was due but not sent. Until the deadline, the peer must accept queued bytes instead.
    private(set) var isPingOwed = false
    private var hasProgress = false
    private var outstanding: [Outstanding] = []
    /// Pings are numbered from 1.
    private(set) var lastNumber: UInt64 = 0
    /// Set if other bytes were still on their way when the awaited ping was queued, or owed.
    private var before: BytesBefore?

    /// - Parameter requiresPong: only pongs prove that the peer lives.
    init(interval: Duration, timeout: Duration, requiresPong: Bool = false, now: Instant) {
        self.interval = interval
        self.timeout = timeout
        self.requiresPong = requiresPong
        nextPing = interval > .zero ? now + interval : nil
    }

    var wakeUp: Instant? {
        let deadline = isPaused ? nil : self.deadline
        guard let nextPing else { return deadline }
        return deadline.map { min($0, nextPing) } ?? nextPing
    }

    /// Makes a ping due now, also if none are sent otherwise.
    mutating func hurry(_ now: Instant) { nextPing = now }

    /// - Parameter isCrowded: many bytes wait to be sent. A ping would come after them, and a peer
    ///   that does not read would get pings indefinitely. So none is sent; instead, the peer
    ///   must accept some of those bytes within the timeout.
    mutating func timeReached(
        _ now: Instant, isCrowded: Bool = false, sent: SentBytes = SentBytes()
    ) -> OnTime {
        if let deadline, !isPaused, now >= deadline {
            if isOnItsWay(sent) {
                self.deadline = now + timeout
            } else {
                guard isPingOwed, hasProgress || before?.excuse(sent) ?? false else {
                    return .timedOut
                }
                self.deadline = nil
                nextPing = now
            }
        }
        guard let due = nextPing, now >= due else { return .nothing }
        nextPing = interval > .zero ? now + interval : nil
        // Pongs are not read during a pause, so a ping would only fill the peer's buffers.
        if isPaused { return .nothing }
        if timeout > .zero, deadline == nil || (isPingOwed && !isCrowded) {
            deadline = now + timeout
            isPingOwed = isCrowded
            hasProgress = false
            before = BytesBefore(sent)
        }
        return isCrowded ? .nothing : .ping(remember(ownPayload(), now))
    }

    /// Whether the awaited ping had not arrived when its time began.
    private mutating func isOnItsWay(_ sent: SentBytes) -> Bool {
        guard !requiresPong, !isPingOwed else { return false }
        return before?.excuse(sent) ?? false
    }

    /// The peer accepted some of the queued bytes.
    mutating func progressed() { hasProgress = true }

    /// Bytes of any kind arrived, which prove that the peer lives, unless only pongs do.
    mutating func receivedBytes() { if !requiresPong { deadline = nil } }

    /// The payload to send for a ping by the caller. `lastNumber` is then its number.
    mutating func ping(_ payload: UnsafeRawBufferPointer, now: Instant) -> [UInt8] {
        remember(payload.isEmpty ? ownPayload() : Array(payload), now)
    }

    /// The answer, if the pong belongs to one of our pings. It also answers the pings before: a
    /// peer may answer only the last of several.
    mutating func received(pong payload: UnsafeRawBufferPointer, now: Instant) -> Answer? {
        guard let index = outstanding.lastIndex(where: { $0.payload.elementsEqual(payload) }) else {
            return nil
        }
        let ping = outstanding[index]
        outstanding.removeFirst(index + 1)
        deadline = nil
        return Answer(roundTrip: now - ping.sentAt, number: ping.number)
    }

    mutating func setPaused(_ isPaused: Bool, now: Instant) {
        guard isPaused != self.isPaused else { return }
        self.isPaused = isPaused
        if !isPaused, deadline != nil { deadline = now + timeout }
    }

    private mutating func remember(_ payload: [UInt8], _ now: Instant) -> [UInt8] {
        if outstanding.count == Heartbeat.maximumOutstanding { outstanding.removeFirst() }
        lastNumber += 1
        outstanding.append(Outstanding(number: lastNumber, payload: payload, sentAt: now))
        return payload
    }

    private func ownPayload() -> [UInt8] {
        withUnsafeBytes(of: (lastNumber + 1).bigEndian) { Array($0) }
    }
}
