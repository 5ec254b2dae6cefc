import Wire

// From the first attempt to the end: sockets, their ends, and what follows.
extension PusherSession {
    // MARK: The application

    /// Connects. If a connection is wanted already, the next attempt starts at once. Without a
    /// network it waits for one.
    package mutating func connect(now: Instant) {
        switch stage {
        case .connecting, .connected: return
        case .waiting: break
        case .closing(let number):
            act(.drop(number))
            enter(.idle)
            restart()
        case .idle: restart()
        }
        if attempts.isOnline { return open(now) }
        attempts.restart(now: now)
        wait()
    }

    private mutating func restart() {
        attempts.forgetFailures()
        isUpgraded = false
        wasShortLived = false
    }

    /// Ends the connection. Channels stay registered.
    package mutating func disconnect(now: Instant) {
        switch stage {
        case .idle, .closing: return
        case .waiting:
            attempts.abandon()
            enter(.idle)
        case .connecting(let number):
            act(.drop(number))
            enter(.idle)
        case .connected(let number):
            release()
            closeLimit = CloseLimit(
                PusherConfiguration.closeTimeout, sent: sentBytes, pending: pendingBytes, now: now)
            enter(.closing(number))
            stageDue = closeLimit?.due
            act(.close(number))
        }
    }

    /// Our reachability monitor reports that the server has become reachable or unreachable.
    /// - Parameter random: uniform in [0, 1).
    package mutating func networkChanged(isOnline: Bool, now: Instant, random: Double) {
        guard attempts.setOnline(isOnline, now: now, random: random) else { return }
        if stage == .waiting { wait() }
        ping(now)
    }

    /// The application knows whether there is a network. If there is one, an attempt that waits is
    /// made at once, also if that is nothing new.
    package mutating func hostReportsNetwork(isReachable: Bool, now: Instant) {
        attempts.programReports(isOnline: isReachable, now: now)
        if stage == .waiting {
            if isReachable { return open(now) }
            wait()
        }
        ping(now)
    }

    /// Waits for the next attempt, and reports once that it waits for a network.
    private mutating func wait() {
        let server = url ?? (try? configuration.url(isSecure: configuration.usesTLS))
        let error = attempts.waitBegan(for: server?.displayName ?? "the server")
        if let error { log(error.message) }
        let failures = attempts.failures
        enter(.waiting, isNews: error != nil) {
            $0.error = error
            $0.attempt = failures
        }
    }

    // MARK: The socket

    package mutating func opened(_ number: UInt64, now: Instant) {
        if stage == .connecting(number) { openedAt = now }
    }

    /// The server has confirmed the connection.
    mutating func established(_ number: UInt64, _ envelope: PusherEnvelope, _ now: Instant) {
        let handshake: PusherHandshake
        do throws(RealtimeError) {
            handshake = try PusherHandshake(envelope.data)
        } catch {
            return log(error.message)
        }
        socketID = handshake.socketID
        attempts.forgetFailures()
        connectedAt = now
        enter(.connected(number))
        keepAlive.start(configuration, server: handshake.activityTimeout, now)
        subscribeAll(now)
        signInIfWanted(now)
    }

    /// A socket, or the attempt to open it, has ended.
    package mutating func ended(_ number: UInt64, _ end: PusherSocketEnd, now: Instant) {
        if stage == .closing(number) { return enter(.idle) }
        guard isCurrent(number) else { return }
        // Some servers quote the signature that they expected.
        let reason = PusherRedaction.text(of: end.reason)
        let cause = recentError(now)
        // A code of Pusher explains the end better than the way in which the socket ended.
        if let code = end.closeCode.map({ Int($0) }), (4000...4999).contains(code) {
            // Some servers say why only before, in a `pusher:error` with the same code or none.
            let words = cause.flatMap { ($0.code ?? code) == code ? $0.message : nil } ?? ""
            lose(code: code, reason: reason.isEmpty ? words : reason, now: now)
        } else if let cause, let code = cause.code {
            lose(code: code, reason: cause.message, now: now)
        } else {
            let words = reason.isEmpty ? cause?.message ?? "" : reason
            lose(code: end.closeCode.map { Int($0) }, reason: words, error: end.error, now: now)
        }
    }

    /// The error that may be the cause of an end at this time.
    func recentError(_ now: Instant) -> (code: Int?, message: String, time: Instant)? {
        lastError.flatMap { now - $0.time <= PusherClosing.errorMemory ? $0 : nil }
    }

    var connectTimedOut: RealtimeError {
        let server = url?.displayName ?? ""
        return RealtimeError(
            .timeout,
            "\(server) did not confirm the connection within"
                + " \(configuration.connectTimeout.readable)"
                + OptionOwner.pusher.mention(.connectTimeout))
    }

    /// The socket is gone. Decides what follows.
    /// - Parameters:
    ///   - code: the close code; nil if there was none.
    ///   - error: what ended it; nil if the server closed it.
    mutating func lose(
        code: Int? = nil, reason: String = "", error: RealtimeError? = nil, now: Instant
    ) {
        var details = PusherStateChange(old: state, new: .disconnected)
        details.closeCode = code
        details.closeReason = reason
        let error = error ?? closedByServer(code, reason)
        details.error = error
        // A `pusher:error` with this code, or one that refused the connection without a code, was
        // reported when it came.
        let isKnown = recentError(now).map { code == $0.code ?? (connectedAt == nil ? code : nil) }
        let mayUpgrade =
            configuration.upgradesOn4000 && !isUpgraded && !configuration.usesTLS
        let closing = PusherClosing(code: code, mayUpgrade: mayUpgrade)
        let least = leastDelay(code, closing, now)
        release()
        let isReported = closing.isRefusal && !(isKnown ?? false)
        guard closing != .fatal, configuration.mayReconnect else {
            return finish(details, isReported: isReported)
        }
        switch attempts.ended(asked: least ?? .zero, now: now, random: 0) {
        case .retry(let delay): details.retryIn = delay
        case .waitForNetwork: break
        case .exhausted:
            details.error = attempts.exhausted(
                error, option: OptionOwner.pusher.mention(.reconnectLimits))
            return finish(details, isReported: isReported)
        }
        if closing == .upgrade { isUpgraded = true }
        if least == nil, attempts.isOnline {
            attempts.schedule(at: now)
            details.retryIn = .zero
        }
        details.attempt = attempts.failures
        let next = details.retryIn.map { "the next attempt \($0.fromNow)" } ?? "no network yet"
        log("lost the connection: \(error.message); \(next)")
        enter(.waiting) { $0.take(details) }
    }

    private func closedByServer(_ code: Int?, _ reason: String) -> RealtimeError {
        let server = url?.displayName ?? "the server"
        let words = reason.isEmpty ? "" : ": \(reason)"
        guard let code else {
            return RealtimeError(.connectionLost, "\(server) ended the connection\(words)")
        }
        return RealtimeError(
            .connectionLost, "\(server) closed the connection with code \(code)\(words)")
    }

    /// No attempt follows.
    /// - Parameter isReported: whether the close code is also reported as an error.
    private mutating func finish(_ details: PusherStateChange, isReported: Bool) {
        if isReported {
            report(
                .failed(PusherErrorMessage(code: details.closeCode, message: details.closeReason)))
        }
        failure = details.error
        enter(.idle) { $0.take(details) }
    }

    /// The least delay before the next attempt; nil to make it at once, whatever failed before.
    private mutating func leastDelay(
        _ code: Int?, _ closing: PusherClosing, _ now: Instant
    ) -> Duration? {
        let isShortLived =
            PusherClosing.renewals.contains(code ?? 0) && now - openedAt < PusherClosing.shortLife
        defer { wasShortLived = isShortLived }
        let isDropped = connectedAt.map { now - $0 < PusherClosing.leastLife } ?? false
        switch closing {
        case .fatal, .upgrade: return nil
        case .atOnce where !isDropped && !(isShortLived && wasShortLived): return nil
        case .atOnce: return isDropped ? PusherClosing.leastLife : .zero
        case .backOff(let least): return isDropped ? max(least, PusherClosing.leastLife) : least
        }
    }

    /// Everything that belonged to the connection is void: authorizations, keys, subscriptions.
    private mutating func release() {
        for number in requests.keys.sorted() { cancelRequest(number) }
        unrequested = []
        retries = []
        unanswered = PusherUnanswered()
        fences = PusherFences()
        refusals.removeAll()
        paced = []
        keepAlive.stop()
        socketID = nil
        releaseUser()
        releaseChannels()
    }
}

extension PusherStateChange {
    /// Takes everything but the states.
    fileprivate mutating func take(_ details: PusherStateChange) {
        let (old, new) = (old, new)
        self = PusherStateChange(
            old: old, new: new, closeCode: details.closeCode, closeReason: details.closeReason,
            error: details.error, retryIn: details.retryIn, attempt: details.attempt)
    }
}
