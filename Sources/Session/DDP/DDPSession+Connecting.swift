import Documents
import Wire

// From the first attempt to the end: sockets, their ends, and what follows.
extension DDPSession {
    // MARK: The application

    /// Connects. An attempt that is being made starts again, and one that is due later starts now;
    /// neither changes the count of failures. While there is no network, the attempt waits for it.
    /// Does nothing when connected, or when the client has failed.
    package mutating func connect(now: Instant) {
        wasWanted = true
        switch stage {
        case .connected, .failed: return
        case .dialing(let number), .greeting(let number): abandon(number, now)
        case .offline: attempts.forgetFailures()
        case .waiting: break
        }
        dialOnline(now)
    }

    /// Connects again, also if the connection is fine; without a network as soon as there is one.
    package mutating func reconnect(now: Instant) {
        guard let connection else { return connect(now: now) }
        abandon(connection, now)
        dialOnline(now)
    }

    private mutating func abandon(_ number: UInt64, _ now: Instant) {
        settle(now)
        act(.drop(number))
        disconnected()
    }

    /// Ends the connection. Nothing reconnects until `connect`. Calls and subscriptions wait.
    package mutating func disconnect(now: Instant) {
        guard stage != .failed else { return }
        endSocket(now)
        backgroundDue = nil
        attempts.abandon()
        enter(.offline)
    }

    /// Ends the connection properly, so that the server does not keep the session.
    private mutating func endSocket(_ now: Instant) {
        settle(now)
        if let socket {
            // Also while the server has not confirmed the connection: it has been asked to.
            send(DDPWriter.disconnect, now)
            act(.close(socket))
            disconnected()
        } else if let anySocket {
            act(.drop(anySocket))
        }
    }

    /// Ends everything: calls that wait fail.
    package mutating func close(now: Instant) {
        endSocket(now)
        backgroundDue = nil
        stage = .failed
        stageDue = nil
        failWaiting(DDPError(.closed, reason: "the client was closed"), now)
    }

    /// The application knows whether there is a network. If there is one, an attempt that waits is
    /// made at once, also if that is nothing new.
    package mutating func hostReportsNetwork(isReachable: Bool, now: Instant) {
        let isBack = isReachable && !attempts.isOnline
        attempts.programReports(isOnline: isReachable, now: now)
        if isReachable, isBack || stage == .waiting && !isInBackground {
            networkReturned(now)
        } else if !isReachable {
            networkLost()
        }
    }

    /// The application knows that the network is back. A connection is checked by a ping.
    package mutating func retryNow(_ now: Instant) {
        hostReportsNetwork(isReachable: true, now: now)
        if connection != nil { heartbeat.hurry(now) }
    }

    /// Our reachability monitor reports whether there is a network. Its return starts an attempt.
    package mutating func networkChanged(isReachable: Bool, now: Instant) {
        guard attempts.setOnline(isReachable, now: now, random: 0) else { return }
        if isReachable { networkReturned(now) } else { networkLost() }
    }

    private mutating func networkReturned(_ now: Instant) {
        // Also while an attempt is made, which may fail because it began without a network.
        attempts.forgetFailures()
        if stage == .waiting, !isInBackground { dial(now) }
    }

    /// The application moves to the background. The connection is kept for a while, and no attempt
    /// is made.
    package mutating func enterBackground(now: Instant) {
        guard !isInBackground else { return }
        let old = status
        isInBackground = true
        if anySocket != nil { backgroundDue = now + configuration.backgroundGrace }
        if status != old { report(.status(DDPStatusChange(status: status))) }
    }

    /// The application is back. If a connection is wanted, an attempt is made at once.
    package mutating func enterForeground(now: Instant) {
        guard isInBackground else { return }
        isInBackground = false
        backgroundDue = nil
        guard stage == .waiting else { return }
        attempts.forgetFailures()
        dialOnline(now)
    }

    mutating func leaveForBackground(_ now: Instant) {
        backgroundDue = nil
        guard anySocket != nil else { return }
        endSocket(now)
        enter(.waiting)
    }

    // MARK: The socket

    /// Starts an attempt, or waits for a network, whose return starts it.
    private mutating func dialOnline(_ now: Instant) {
        if attempts.isOnline { return dial(now) }
        _ = attempts.closed(now: now)
        enter(.waiting, error: waitBegan())
    }

    /// Reports once that the attempt that is wanted waits for a network. The driver asks whether
    /// there is one only after the first call of `connect`.
    private mutating func networkLost() {
        guard !attempts.isOnline, stage == .waiting || withdrawAttempt() else { return }
        enter(.waiting, error: waitBegan())
    }

    private mutating func waitBegan() -> RealtimeError? {
        isInBackground ? nil : attempts.waitBegan(for: configuration.server)
    }

    /// Starts an attempt.
    mutating func dial(_ now: Instant) {
        let number = nextSocket()
        // A connection that the user replaces counts as well.
        _ = attempts.closed(now: now)
        attempts.begin()
        enter(.dialing(number))
        if isInBackground, backgroundDue == nil {
            backgroundDue = now + configuration.backgroundGrace
        }
        if configuration.connectTimeout > .zero { stageDue = now + configuration.connectTimeout }
        act(.connect(number))
    }

    /// The socket is open. The application's handler for new connections then makes its calls,
    /// which are sent before those that waited, and the driver calls `opened` at the end.
    package mutating func beginOpening(_ number: UInt64, now: Instant) {
        guard stage == .dialing(number) else { return }
        let due = stageDue
        // The status stays.
        enter(.greeting(number))
        stageDue = due
        isOpening = true
        send(
            DDPWriter.connect(
                version: negotiation.version, versions: negotiation.supported,
                resuming: sessionID.map { (session: $0, count: receivedCount) }), now)
        abandonCalls()
        dropResumes()
        methods.setAside()
        stubs.connectionLost()
        callsGoFirst = true
        resumeLogin(now)
    }

    /// Sends what waited for the socket. See `beginOpening`.
    package mutating func opened(_ number: UInt64, now: Instant) {
        guard isOpening, stage == .greeting(number) else { return }
        isOpening = false
        methods.restore()
        sendFirstBlock(now)
        sendSubscriptions(number, now)
    }

    /// A socket, or the attempt to open it, has ended.
    package mutating func ended(_ number: UInt64, _ end: DDPSocketEnd, now: Instant) {
        guard isCurrent(number) else { return }
        let end = end.redacted(by: secrets)
        lose(end.error ?? closedByServer(end), now)
    }

    private func closedByServer(_ end: DDPSocketEnd) -> RealtimeError {
        let words = end.reason.isEmpty ? "" : ": \(end.reason)"
        let how = end.closeCode.map { "closed the connection with code \($0)" }
        return RealtimeError(
            .connectionLost, "\(configuration.server) \(how ?? "ended the connection")\(words)")
    }

    mutating func attemptTimedOut(_ now: Instant) {
        guard let number = anySocket, connection == nil else { return }
        let what =
            stage == .greeting(number)
            ? "opened the connection, but did not answer as a Meteor server" : "did not answer"
        act(.drop(number))
        let limit =
            configuration.connectTimeout.readable + OptionOwner.ddp.mention(.connectTimeout)
        lose(RealtimeError(.timeout, "\(configuration.server) \(what) within \(limit)"), now)
    }

    /// The socket is gone. Decides what follows.
    mutating func lose(_ error: RealtimeError, _ now: Instant) {
        settle(now)
        disconnected()
        backgroundDue = nil
        guard configuration.mayReconnect else { return fail(error.message, error, now) }
        // In the background, `wakeUp` ignores when the attempt is due.
        switch attempts.ended(now: now, random: fraction()) {
        case .retry(let delay) where !isInBackground:
            log("lost the connection: \(error.message); the next attempt \(delay.fromNow)")
            enter(.waiting, retryIn: delay, error: error)
        case .retry, .waitForNetwork: enter(.waiting, error: error)
        case .exhausted: fail(error.message, error, now)
        }
    }

    /// What belonged to the connection is void.
    private mutating func disconnected() {
        if isOpening {
            isOpening = false
            methods.restore()
        }
        heartbeat.stop()
        accounts.retryDue = nil
        stale?.due = nil
        own.due = nil
        subscriptions.unansweredDue = nil
        standstillDue = nil
        quiescence.due = nil
        subscriptions.changeAll { $0.isSent = false }
    }

    /// Gives up for good.
    mutating func fail(_ reason: String, _ error: RealtimeError? = nil, _ now: Instant) {
        failureReason = reason
        enter(.failed, reason: reason, error: error)
        failWaiting(DDPError(.disconnected, reason: reason), now)
    }

    /// All that waits for the server fails. The documents stay as they were last.
    private mutating func failWaiting(_ error: DDPError, _ now: Instant) {
        if quiescence.isResetting { stubs.keepFormer() }
        quiescence = DDPQuiescence()
        own = DDPOwnDocument()
        store.dropBuffer()
        failCalls(error, now)
        failSubscriptions(error)
        stubs.removeAll()
        afterFlush = []
    }

    // MARK: The answer to connect

    /// The server wants another version.
    mutating func versionRefused(wants wanted: String, _ number: UInt64, _ now: Instant) {
        act(.drop(number))
        disconnected()
        if negotiation.refused(wants: wanted) {
            log("the server wants version \(wanted)")
            dial(now)
        } else {
            fail(
                "version negotiation failed: \(configuration.server) wants \(wanted.prefix(40)),"
                    + " and we support \(negotiation.supported.joined(separator: ", "))", nil, now)
        }
    }

    /// The server has confirmed the connection.
    mutating func versionAccepted(_ number: UInt64, _ now: Instant) {
        negotiation.accepted()
        attempts.opened(now: now)
        enter(.connected(number))
        if negotiation.version != "pre1" {
            heartbeat.start(
                interval: configuration.heartbeatInterval,
                timeout: configuration.heartbeatTimeout, now: now)
        }
    }

    // MARK: The heartbeat

    mutating func beat(_ now: Instant) {
        while let connection {
            switch heartbeat.check(now, sentBytes, pending: pendingBytes) {
            case .nothing: return
            case .ping: send(DDPWriter.ping, now)
            case .lost:
                act(.drop(connection))
                let limit =
                    configuration.heartbeatTimeout.readable
                    + OptionOwner.ddp.mention(.heartbeatTimeout)
                lose(
                    RealtimeError(
                        .timeout, "\(configuration.server) did not answer a ping within \(limit)"),
                    now)
            }
        }
    }
}
