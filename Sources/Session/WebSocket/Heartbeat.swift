/// Pings, their pongs, and the round trip between them. RFC 6455 §5.5.2 and §5.5.3.
struct Heartbeat: Sendable {
    enum OnTime: Equatable {
        case nothing
        case ping([UInt8])
        case timedOut
    }

    private struct Outstanding: Sendable {
        var payload: [UInt8]
        var sentAt: Instant
    }

    /// A peer that never answers must not make us remember pings without end.
    private static let maximumOutstanding = 16

    private let interval: Duration
    private let timeout: Duration
    private var nextPing: Instant?
    private var deadline: Instant?
    private var isPaused = false
    private var outstanding: [Outstanding] = []
    private var counter: UInt64 = 0

    init(interval: Duration, timeout: Duration, now: Instant) {
        self.interval = interval
        self.timeout = timeout
        nextPing = interval > .zero ? now + interval : nil
    }

    var wakeUp: Instant? {
        let deadline = isPaused ? nil : self.deadline
        guard let nextPing else { return deadline }
        return deadline.map { min($0, nextPing) } ?? nextPing
    }

    mutating func timeReached(_ now: Instant) -> OnTime {
        if let deadline, !isPaused, now >= deadline { return .timedOut }
        guard let due = nextPing, now >= due else { return .nothing }
        nextPing = now + interval
        // While paused no pong can be read: a ping would only grow the peer's buffers.
        if isPaused { return .nothing }
        if timeout > .zero, deadline == nil { deadline = now + timeout }
        return .ping(remember(ownPayload(), now))
    }

    /// The payload to send for a ping of the caller's.
    mutating func ping(_ payload: UnsafeRawBufferPointer, now: Instant) -> [UInt8] {
        remember(payload.isEmpty ? ownPayload() : Array(payload), now)
    }

    /// The round trip, when the pong answers one of ours. It answers those before it too: a peer
    /// may answer only the last of several pings.
    mutating func received(pong payload: UnsafeRawBufferPointer, now: Instant) -> Duration? {
        guard let index = outstanding.lastIndex(where: { $0.payload.elementsEqual(payload) }) else {
            return nil
        }
        let roundTrip = now - outstanding[index].sentAt
        outstanding.removeFirst(index + 1)
        deadline = nil
        return roundTrip
    }

    mutating func setPaused(_ isPaused: Bool, now: Instant) {
        guard isPaused != self.isPaused else { return }
        self.isPaused = isPaused
        if !isPaused, deadline != nil { deadline = now + timeout }
    }

    private mutating func remember(_ payload: [UInt8], _ now: Instant) -> [UInt8] {
        if outstanding.count == Heartbeat.maximumOutstanding { outstanding.removeFirst() }
        outstanding.append(Outstanding(payload: payload, sentAt: now))
        return payload
    }

    private mutating func ownPayload() -> [UInt8] {
        counter += 1
        return withUnsafeBytes(of: counter.bigEndian) { Array($0) }
    }
}
