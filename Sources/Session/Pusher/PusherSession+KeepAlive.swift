import Wire

/// When a ping is due, and until when an answer is expected.
///
/// The time of the check is not moved by each message: when it comes, `heardAt` tells whether there
/// was silence.
struct PusherKeepAlive: Sendable {
    /// When to check; nil unless connected.
    private var checkAt: Instant?
    /// Nothing is read, so the server seems silent.
    private(set) var isPaused = false
    private var heardAt = Instant(nanoseconds: 0)
    private var activityTimeout = Duration.zero
    private var pongTimeout = Duration.zero
    private var isPinging = false
    /// The bytes that were on their way before the ping that must be answered.
    private var before: BytesBefore?

    var due: Instant? { isPaused ? nil : checkAt }

    enum Step {
        case nothing
        case ping
        case lost
    }

    /// - Parameter server: the timeout that the server asks for.
    mutating func start(_ configuration: PusherConfiguration, server: Duration?, _ now: Instant) {
        let own = configuration.activityTimeout
        let asked = server.map { max($0, PusherConfiguration.leastActivityTimeout) }
        activityTimeout =
            own > .zero
            ? min(own, asked ?? own) : asked ?? PusherConfiguration.defaultActivityTimeout
        pongTimeout = configuration.pongTimeout
        restart(now)
    }

    private mutating func restart(_ now: Instant) {
        heardAt = now
        isPinging = false
        checkAt = now + activityTimeout
    }

    /// The connection has ended.
    mutating func stop() {
        isPinging = false
        checkAt = nil
    }

    mutating func setPaused(_ isPaused: Bool, _ now: Instant) {
        guard isPaused != self.isPaused else { return }
        self.isPaused = isPaused
        if checkAt != nil { restart(now) }
    }

    /// Something has come from the server.
    /// - Returns: whether it answers a ping, so that the next check may be due earlier.
    @discardableResult
    mutating func heard(_ now: Instant) -> Bool {
        guard isPinging else {
            heardAt = now
            return false
        }
        restart(now)
        return true
    }

    /// A ping is sent. Without a limit for its answer the next one follows after further silence.
    /// - Parameters:
    ///   - sent: the counts of the socket.
    ///   - pending: bytes of messages that the socket has not been given yet.
    /// - Returns: whether to send it: no answer is awaited.
    mutating func ping(_ now: Instant, _ sent: SentBytes, pending: Int) -> Bool {
        guard !isPinging else { return false }
        isPinging = pongTimeout > .zero
        before = BytesBefore(sent, pending: pending)
        heardAt = now
        checkAt = now + (isPinging ? pongTimeout : activityTimeout)
        return true
    }

    mutating func check(_ now: Instant, _ sent: SentBytes) -> Step {
        guard let due, due <= now else { return .nothing }
        if isPinging {
            guard before?.excuse(sent) ?? false else { return .lost }
            checkAt = now + pongTimeout
            return .nothing
        }
        guard heardAt + activityTimeout <= now else {
            checkAt = heardAt + activityTimeout
            return .nothing
        }
        return .ping
    }
}

extension PusherSession {
    /// Anything has arrived on the socket, such as a pong frame. `received` includes this.
    /// - Returns: whether `wakeUp` may be earlier now.
    @discardableResult
    package mutating func activity(_ number: UInt64, now: Instant) -> Bool {
        guard stage == .connected(number) else { return false }
        return keepAlive.heard(now)
    }

    /// Receiving is paused, or continues. Silence during a pause does not count.
    package mutating func setPaused(_ isPaused: Bool, now: Instant) {
        let wasPaused = keepAlive.isPaused
        keepAlive.setPaused(isPaused, now)
        guard wasPaused, !isPaused else { return }
        unanswered.resumed(now)
        for index in user.sentAt.indices { user.sentAt[index] = now }
    }

    /// Asks the server for a sign of life, if connected.
    mutating func ping(_ now: Instant) {
        guard let connection, keepAlive.ping(now, sentBytes, pending: pendingBytes) else { return }
        if configuration.usesFramePings { act(.ping(connection)) } else { sendPing() }
    }

    /// - Returns: false if the connection is lost.
    mutating func checkKeepAlive(_ number: UInt64, _ now: Instant) -> Bool {
        switch keepAlive.check(now, sentBytes) {
        case .nothing: break
        case .ping: ping(now)
        case .lost:
            act(.drop(number))
            let error = RealtimeError(
                .timeout,
                "\(url?.displayName ?? "the server") did not answer a ping within"
                    + " \(configuration.pongTimeout.readable)"
                    + OptionOwner.pusher.mention(.pongTimeout))
            lose(error: error, now: now)
            return false
        }
        return true
    }
}
