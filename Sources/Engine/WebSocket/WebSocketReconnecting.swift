import CShims
import Session
import Synchronization
import Wire

// What happens between two connections of one WebSocket, all on the loop's thread: the wait for the
// next attempt, and messages that are kept for it.

/// A message that waits for a connection.
struct KeptMessage {
    var kind: MessageKind
    var bytes: [UInt8]
    var compression: CompressionChoice
}

extension WebSocketConnection {
    /// After a loss: the wait for the next attempt, when there is to be one.
    /// - Returns: false when it is over for good.
    func waitsForNextAttempt(_ how: Ending) -> Bool {
        let isWanted = gate.load(ordering: .acquiring) & ~Gate.paused == 0
        guard reconnection != nil, isWanted, !loop.isClosed.load(ordering: .acquiring) else {
            return false
        }
        let now = Loop.now()
        let decision = reconnection?.ended(
            code: how.isPeers ? how.code : nil, error: lastError, isReachable: isReachable(),
            now: now, wallClock: Loop.wallClock(), random: randomFraction())
        switch decision {
        case nil, .giveUp: return false
        case .retry(let delay, let attempt): wait(how, delay, attempt)
        case .waitForNetwork(let attempt): wait(how, nil, attempt)
        }
        return true
    }

    private func wait(_ how: Ending, _ delay: Duration?, _ attempt: Int) {
        phase = .waiting(attempt: attempt)
        ending = how
        setState(.waiting)
        scheduleTurn()
        observedReachability?.add(self)
        Log.write(
            .info,
            "\(configuration.url.displayName): attempt \(attempt) "
                + (delay.map(\.fromNow) ?? "when there is a network again")
                + (lastError == nil ? ", after a close with \(how.code)" : ""))
        owesFailure = false
        if mayCall, let failed = handlers.failed {
            failed(
                WebSocketFailure(
                    error: lastError ?? closed(how), code: how.code, reason: how.reason,
                    retryIn: delay, attempt: attempt, isFatal: false))
        }
        updateTimer()
    }

    private func closed(_ how: Ending) -> RealtimeError {
        let reason = how.reason.isEmpty ? "" : ": \(how.reason.quoted(upTo: 60))"
        return RealtimeError(
            .closed, "\(currentURL.displayName) closed the WebSocket with \(how.code)\(reason)")
    }

    /// The one given, or the loop's own; nil where there is none, and every host counts as
    /// reachable.
    private var observedReachability: Reachability? {
        reachability ?? (try? Reachability.of(loop))
    }

    private func isReachable() -> Bool {
        observedReachability?.isReachable(configuration.url, by: configuration.network) ?? true
    }

    /// The time of an attempt has come: without a network it is not made, and not counted.
    func waitReached(_ attempt: Int) {
        if isReachable() { return endWait(attempt) }
        Log.write(
            .info, "\(configuration.url.displayName): attempt \(attempt) waits for a network")
        reachabilityChanged()
    }

    /// The wait is over: the caller may change or stop the attempt.
    private func endWait(_ attempt: Int) {
        observedReachability?.remove(self)
        mayReconfigure = true
        var goesOn = mayCall
        do {
            if mayCall { goesOn = try handlers.reconnect?(attempt) ?? true }
        } catch {
            goesOn = false
            if let error = error as? RealtimeError { report(error) }
        }
        mayReconfigure = false
        // It may have closed or given back the connection.
        guard case .waiting = phase else { return }
        phase = .idle
        guard goesOn, becomeConnecting() else {
            reconnection = nil
            return finish(ending ?? Ending(code: .abnormal, reason: "", isClean: false))
        }
        ending = nil
        dropSession()
        held.removeAll(keeping: 0)
        begin()
    }

    // MARK: Messages while down

    /// Sends a message, or keeps it for the next connection or the end of one that is sent in
    /// pieces. One that was counted when it came in is counted until it is gone.
    func sendOrKeep(_ message: KeptMessage) {
        switch phase {
        case .open where isReady && kept.isEmpty: return send(message)
        case .open where session?.pointee.state == .open: return kept.append(message)
        case .idle, .connecting, .handshaking, .refused, .waiting, .open:
            if configuration.offlineQueueLimit > 0 { return kept.append(message) }
        case .over: break
        }
        forget(message)
    }

    /// Whether a whole message can go out now.
    private var isReady: Bool {
        guard let session else { return false }
        return session.pointee.state == .open && !session.pointee.isStreaming
    }

    /// Everything kept goes out, behind what the open handler sent.
    func sendKept() {
        guard !kept.isEmpty, case .open = phase, isReady else { return }
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
        guard case .waiting = phase else { return }
        let isChanged = reconnection?.setOnline(
            isReachable(), now: Loop.now(), random: randomFraction())
        if isChanged ?? false { updateTimer() }
    }
}
