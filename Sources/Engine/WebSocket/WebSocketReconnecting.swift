import CShims
import Session
import Synchronization
package import Wire

// What a WebSocket does between two connections, on the loop's thread: it waits for the next
// attempt and keeps messages for it.

/// A message that waits for a connection.
struct KeptMessage {
    var kind: MessageKind
    var bytes: [UInt8]
    var compression: CompressionChoice
}

extension WebSocketConnection {
    /// Waits for the next attempt after a loss.
    func wait(_ ending: WebSocketLife.Ending, _ delay: Duration?, _ attempt: Int) {
        setState(.waiting)
        scheduleTurn()
        chosenReachability?.add(self)
        Log.write(
            .info,
            "\(configuration.url.displayName): attempt \(attempt) "
                + (delay.map { $0.fromNow } ?? "when the network is back")
                + (life.error == nil ? ", after a close with \(ending.code)" : ""))
        owesFailure = false
        if mayCall, let failed = handlers.failed {
            failed(
                WebSocketFailure(
                    error: life.error ?? closed(ending), code: ending.code,
                    reason: ending.reason, retryIn: delay, attempt: attempt, isFatal: false))
        }
        updateTimer()
    }

    /// Waits for a network before the attempt that was to begin. The turn reports that.
    func waitForNetwork() {
        setState(.waiting)
        scheduleTurn()
        chosenReachability?.add(self)
    }

    /// Reports once that the next attempt waits for a network.
    func noteWait() {
        guard isWanted, let (error, attempt) = life.noteWait(configuration) else { return }
        Log.write(.info, "\(error.message); attempt \(attempt) when the network is back")
        handlers.failed?(
            WebSocketFailure(
                error: error, code: .abnormal, reason: "", retryIn: nil, attempt: attempt,
                isFatal: false))
    }

    /// Call before the connection is closed or dropped: it may wait for the network.
    func leaveWait() {
        if life.stage == .waiting { chosenReachability?.remove(self) }
    }

    private func closed(_ how: WebSocketLife.Ending) -> RealtimeError {
        let reason = how.reason.isEmpty ? "" : ": \(how.reason.quoted(upTo: 60))"
        return RealtimeError(
            .closed, "\(currentURL.displayName) closed the WebSocket with \(how.code)\(reason)")
    }

    func isReachable() -> Bool {
        chosenReachability?.isReachable(configuration.url, by: configuration.network) ?? true
    }

    /// The caller knows that the network is back: an attempt that waits is made at once, and a ping
    /// checks an open connection. Any thread.
    package func retryNow() throws(RealtimeError) {
        try loop.checkUsable()
        guard wasStarted else { return }
        loop.perform { [self] in
            session?.pointee.checkPeer(Loop.now())
            life.retryNow(Loop.now())
            updateTimer()
        }
    }

    /// The wait is over: the caller's handler may change options or prevent the attempt.
    func endWait(_ attempt: Int) {
        chosenReachability?.remove(self)
        var continues = mayCall
        do throws(RealtimeError) {
            if mayCall {
                continues = try asksForAttempt { () throws(RealtimeError) in
                    try handlers.reconnect?(attempt) ?? true
                }
            }
        } catch {
            continues = false
            report(error)
        }
        if isDeferred { return updateTimer() }
        endWait(continues: continues)
    }

    /// Makes the next attempt, or ends the connection.
    func endWait(continues: Bool) {
        // The handler may have closed or freed the connection.
        guard life.stage == .waiting else { return }
        guard life.endWait(continues: continues && becomeConnecting()) else {
            return finish(life.ending)
        }
        dropSession()
        held.removeAll(keeping: 0)
        begin()
    }

    // MARK: Messages while down

    /// Sends a message, or keeps it for the next connection or until a message in pieces ends. Kept
    /// messages remain counted in `postedMessages`.
    func sendOrKeep(_ message: KeptMessage) {
        switch life.stage {
        case .open where isReady && kept.isEmpty: return send(message)
        case .open where session?.pointee.state == .open: return kept.append(message)
        case .idle, .connecting, .handshaking, .refused, .authorizing, .waiting, .open:
            if configuration.offlineQueueLimit > 0 { return kept.append(message) }
        case .over, .ended: break
        }
        forget(message)
    }

    /// Whether a whole message can be sent now.
    private var isReady: Bool {
        guard let session else { return false }
        return session.pointee.state == .open && !session.pointee.isStreaming
    }

    /// Sends all kept messages, after those that the open handler sent.
    func sendKept() {
        guard !kept.isEmpty, life.stage == .open, isReady else { return }
        let messages = kept
        kept = []
        for message in messages { send(message) }
    }

    private func send(_ message: KeptMessage) {
        message.bytes.withUnsafeBytes { try? sendNow(message.kind, $0, message.compression) }
        forget(message)
    }

    func dropKept() {
        let messages = kept
        kept = []
        for message in messages { forget(message) }
    }

    private func forget(_ message: KeptMessage) {
        release(message.bytes.count)
        postedMessages.subtract(1, ordering: .relaxed)
    }
}

extension WebSocketConnection: ReachabilityObserver {
    func reachabilityChanged() {
        let isChanged = life.setOnline(
            isReachable(), now: Loop.now(), random: randomFraction())
        guard isChanged else { return }
        noteWait()
        updateTimer()
    }
}
