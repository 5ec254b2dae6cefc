import Wire

/// When to ask the server for a sign of life, and until when an answer is expected.
///
/// Any message is an answer: during a large download, the server's pong may wait behind its
/// documents. For the same reason the server is also sent a ping when it has heard nothing from us
/// for an interval, while its messages keep coming: its own ping may wait behind them.
struct DDPHeartbeat: Sendable {
    enum Step: Equatable {
        case nothing
        case ping
        case lost
    }

    private var interval = Duration.zero
    private var timeout = Duration.zero
    /// When silence is checked next; nil unless the heartbeat runs.
    private var tick: Instant?
    /// Until when the server must answer; nil if it was not asked.
    private var answerDue: Instant?
    /// The bytes that were on their way before the ping that must be answered.
    private var before: BytesBefore?
    /// Something has come since the last tick.
    private var hasHeard = false
    private var sentAt = Instant(nanoseconds: 0)
    /// Receiving is paused: silence does not count, but the server is sent its pings.
    private var isPaused = false

    mutating func start(interval: Duration, timeout: Duration, now: Instant) {
        guard interval > .zero else { return stop() }
        self.interval = interval
        self.timeout = timeout
        tick = now + interval
        answerDue = nil
        hasHeard = false
        isPaused = false
    }

    mutating func stop() {
        tick = nil
        answerDue = nil
    }

    mutating func heard() {
        hasHeard = true
        answerDue = nil
    }

    mutating func setPaused(_ isPaused: Bool) {
        self.isPaused = isPaused
        // What had come before the pause, or comes after it, may not be read yet.
        heard()
    }

    /// Asks the server for a sign of life now.
    mutating func hurry(_ now: Instant) {
        guard tick != nil else { return }
        tick = now
        hasHeard = false
    }

    mutating func sent(_ now: Instant) { sentAt = now }

    var due: Instant? {
        guard var due = tick else { return nil }
        if let answerDue { due = min(due, answerDue) }
        if hasHeard || isPaused { due = min(due, sentAt + interval) }
        return due
    }

    /// To be called again until it returns `.nothing`.
    /// - Parameters:
    ///   - sent: the counts of the socket.
    ///   - pending: bytes of messages that the socket has not been given yet.
    mutating func check(_ now: Instant, _ sent: SentBytes, pending: Int) -> Step {
        if isPaused { heard() }
        if let answerDue, answerDue <= now {
            guard before?.excuse(sent) ?? false else {
                self.answerDue = nil
                return .lost
            }
            self.answerDue = now + timeout
        }
        if let tick, tick <= now {
            // A late check does not make up for ticks that were missed.
            self.tick = max(tick + interval, now)
            let isSilent = !hasHeard && answerDue == nil
            hasHeard = false
            if isSilent {
                if timeout > .zero { answerDue = now + timeout }
                before = BytesBefore(sent, pending: pending)
                return .ping
            }
        }
        if tick != nil, hasHeard || isPaused, sentAt + interval <= now { return .ping }
        return .nothing
    }
}
