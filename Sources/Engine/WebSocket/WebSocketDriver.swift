import CShims
import Session
import Synchronization
import Wire

// The connection's work on the loop's thread: writing, ending, timers. WebSocketOpening.swift opens
// the connection, WebSocketReceiver.swift receives.

/// The events that epoll watches for a connection.
struct Watch {
    var token: UInt64?
    /// 0 while the descriptor is not in epoll.
    var events: UInt32 = 0
    var isWriteBlocked = false
}

extension WebSocketConnection {
    /// With this many unsent bytes a send writes at once, instead of at the end of the turn.
    static var eagerWriteBytes: Int { 64 << 10 }

    /// Whether handlers may be called at all.
    var mayCall: Bool { !isClosed }

    /// Whether failures are reported, and another attempt may follow.
    var isWanted: Bool { mayCall && !gate.isEnding }

    func scheduleTurn() {
        guard !isScheduled else { return }
        isScheduled = true
        loop.schedule(self)
    }

    // MARK: Sending

    /// How many of the written bytes the peer's kernel has not acknowledged.
    private var unacknowledgedBytes: Int { openTransport?.unacknowledgedBytes ?? 0 }

    /// Counts of the bytes sent on the open connection. The loop's owner only.
    var sentBytes: SentBytes {
        session?.pointee.sentBytes(unacknowledged: unacknowledgedBytes) ?? SentBytes()
    }

    func sendNow(
        _ kind: MessageKind, _ bytes: UnsafeRawBufferPointer, _ compression: CompressionChoice
    ) throws(RealtimeError) {
        guard let session else {
            throw RealtimeError(.closed, "the connection is closing or closed")
        }
        if session.pointee.outgoing.capacity == 0 {
            swap(&session.pointee.outgoing, &pool.spareOutgoing)
        }
        try session.pointee.send(kind, bytes, compression: compression)
        queued()
    }

    func pingNow(_ payload: [UInt8], _ answered: ((Duration) -> Void)?) {
        let now = Loop.now()
        // Fails only once closing has begun.
        guard
            let number = payload.withUnsafeBytes({ try? session?.pointee.ping($0, now: now) })
        else { return }
        if let answered {
            awaitedPongs.append(AwaitedPong(number: number, sentAt: now, answered: answered))
        }
        queued()
    }

    /// Call when bytes were added to `outgoing`.
    func queued() {
        guard let waiting = session?.pointee.outgoing.count else { return }
        if waiting >= WebSocketConnection.eagerWriteBytes { flush() } else { publishOutgoing() }
        scheduleTurn()
    }

    /// Writes unsent bytes until the kernel takes no more, or until this turn's share is used up: a
    /// connection that sends much must not starve the others.
    func flush() {
        guard let transport = openTransport else { return }
        var share = Loop.bytesPerTurn
        writing: while !watch.isWriteBlocked {
            guard let waiting = session?.pointee.outgoing.readable, !waiting.isEmpty else { break }
            guard share > 0 else {
                scheduleTurn()
                break
            }
            let piece = UnsafeRawBufferPointer(rebasing: waiting.prefix(share))
            switch transport.write(piece) {
            case .bytes(let count):
                session?.pointee.didWrite(count)
                sent(count)
                share -= count
            case .wouldBlock: watch.isWriteBlocked = true
            case .failed:
                // Nothing more can be sent. Reading finds the cause, after what the peer sent
                // before.
                session?.pointee.outgoing.removeAll(keeping: 0)
                wantsRead = true
                scheduleTurn()
                break writing
            }
        }
        publishOutgoing()
    }

    private func publishOutgoing() {
        outgoingBytes.store(session?.pointee.outgoing.count ?? 0, ordering: .relaxed)
    }

    private func reportDrained() {
        guard owesDrained.load(ordering: .relaxed), bufferedBytes == 0 else { return }
        _ = owesDrained.exchange(false, ordering: .acquiringAndReleasing)
        // Another thread's send between the two checks makes the event due again.
        guard bufferedBytes == 0 else { return owesDrained.store(true, ordering: .relaxed) }
        Log.write(.debug, "\(currentURL.displayName): all queued bytes are sent")
        // A thread whose send was refused may have set it just before.
        takeNewHandlers()
        if life.stage == .open, mayCall { handlers.drained?() }
    }

    // MARK: Closing

    func closeNow(_ code: CloseCode?, _ reason: String) {
        leaveWait()
        switch life.close(code, reason: reason) {
        case .nothing: break
        case .drop:
            dropTransport()
            scheduleTurn()
        case .handshake:
            Log.write(.debug, "\(currentURL.displayName): closing")
            session?.pointee.close(
                code, reason: reason, unacknowledged: unacknowledgedBytes, now: Loop.now())
            // Receiving may be paused, with the peer's close frame unread.
            wantsRead = true
            queued()
        }
    }

    func pauseChanged() {
        session?.pointee.setPaused(isPaused, now: Loop.now())
        if !isPaused { wantsRead = true }
        Log.write(
            .debug, "\(currentURL.displayName): receiving \(isPaused ? "pauses" : "resumes")")
        scheduleTurn()
    }

    func abandonNow(saying last: [UInt8]? = nil) {
        if let transport = openTransport {
            if session?.pointee.state == .open {
                last?.withUnsafeBytes { try? session?.pointee.send(.text, $0) }
                session?.pointee.close(.goingAway, reason: "", now: Loop.now())
            }
            // Best effort: send what the kernel takes at once, including an earlier close frame.
            if let waiting = session?.pointee.outgoing.readable, !waiting.isEmpty {
                _ = transport.write(waiting)
            }
        }
        leaveWait()
        dropTransport()
        life.abandon()
        setState(.closed)
        if loop.isDispatching, !loop.isTornDown {
            // We may be in a callback whose bytes belong to the session; release it when that
            // returned.
            scheduleTurn()
        } else {
            release()
        }
    }

    /// Frees the session. Not allowed while one of its methods or handlers runs.
    func dropSession() {
        guard let session else { return }
        self.session = nil
        session.deinitialize(count: 1)
        session.deallocate()
    }

    /// Releases everything but the object itself.
    private func release() {
        dropSession()
        held.removeAll(keeping: 0)
        _ = exchange(&awaitedPongs, with: [])
        dropKept()
        dropHandlers()
    }

    /// The transport, if the connection is open.
    var openTransport: Transport? {
        guard life.stage == .open, case .connected(let transport) = link else { return nil }
        return transport
    }

    /// Closes the descriptor and cancels the timer.
    func dropTransport() {
        switch link {
        case .none: loop.disarm(timer)
        case .connecting(let connect):
            loop.disarm(timer)
            connect.close()
        case .connected: releaseTransport()?.close()
        }
        link = .none
        outgoingBytes.store(0, ordering: .relaxed)
    }

    /// Stops using the transport of an established connection, and cancels the timer.
    /// - Returns: the transport, which is no longer watched.
    private func releaseTransport() -> Transport? {
        loop.disarm(timer)
        guard case .connected(let transport) = link else { return nil }
        if let token = watch.token { loop.remove(token, descriptor: transport.descriptor) }
        watch = Watch()
        link = .none
        return transport
    }

    /// Ends the connection if the peer has closed it, or violated the protocol, and our close frame
    /// is written. The server should close the transport next; the end does not wait for that.
    /// - Returns: whether it ended.
    private func endIfFinished() -> Bool {
        guard life.stage == .open, let session, session.pointee.state == .finished,
            session.pointee.outgoing.isEmpty
        else { return false }
        if let transport = releaseTransport() {
            LingeringTransport.begin(transport, on: loop, pool)
        }
        finish(life.ending)
        return true
    }

    /// Logs a line for users; at level debug for a leg, because its Spreadbot connection logs its
    /// own.
    func log(_ line: @autoclosure () -> String) { Log.write(isLeg ? .debug : .info, line()) }

    /// The credentials that the handshake may have carried.
    var sentSecrets: SentSecrets {
        var secrets = SentSecrets(configuration.fields, configuration.url)
        secrets.add(configuration.network)
        return secrets
    }

    /// Records a failure. `finish` reports it together with its consequences.
    func report(_ error: RealtimeError) {
        let error = sentSecrets.redacted(error)
        log(error.message)
        life.failed(error)
        owesFailure = isWanted
    }

    func fail(_ error: RealtimeError) {
        let error = sentSecrets.redacted(error)
        if isWanted, let credentials = handlers.credentials, let refusal = life.asks(after: error) {
            log("\(currentURL.displayName) requires credentials: \(refusal.status)")
            dropTransport()
            return askCredentials(refusal, credentials)
        }
        report(error)
        finish(.abnormal)
    }

    /// Ends the connection for good, because its caller has no credentials or failed.
    func end(because error: RealtimeError?) {
        life.giveUp()
        if let error { report(error) }
        finish(.abnormal)
    }

    /// Ends the connection. Calls the last callback, unless another attempt follows.
    func finish(_ ending: WebSocketLife.Ending) {
        guard life.stage != .ended else { return }
        dropTransport()
        awaitedPongs = []
        endStreaming()
        publishStatistics()
        let next = life.finish(
            ending, isWanted: isWanted, isReachable: isReachable(), now: Loop.now(),
            wallClock: Loop.wallClock(), random: randomFraction())
        switch next {
        case .nothing: break
        case .wait(let delay, let attempt): wait(ending, delay, attempt)
        case .end: reportEnd(ending)
        }
    }

    private func reportEnd(_ ending: WebSocketLife.Ending) {
        setState(.closed)
        dropKept()
        // If it never connected, the reason is already in the log.
        if counters.connections.current > 0 {
            log("\(currentURL.displayName) closed with \(ending.code)")
        } else if life.error == nil {
            log("\(currentURL.displayName) closed before it was open")
        }
        let error = owesFailure ? life.error : nil
        owesFailure = false
        if mayCall, let error {
            handlers.failed?(
                WebSocketFailure(
                    error: error, code: ending.code, reason: ending.reason, isFatal: true))
        }
        if mayCall {
            handlers.close?(
                WebSocketEnd(
                    code: ending.code, reason: ending.reason, isClean: ending.isClean,
                    error: error))
        }
        endWaits(ending, error)
        scheduleTurn()
    }

    // MARK: After every piece of work

    func settle() {
        flush()
        if endIfFinished() { return }
        returnOutgoing()
        publishStatistics()
        reportDrained()
        updateInterest()
        updateTimer()
    }

    /// Returns empty storage to the loop, so that an idle connection holds none and the next sender
    /// need not allocate.
    private func returnOutgoing() {
        guard let session, session.pointee.outgoing.isEmpty, session.pointee.outgoing.capacity > 0
        else { return }
        if session.pointee.outgoing.capacity <= WebSocketPool.spareBytes,
            session.pointee.outgoing.capacity > pool.spareOutgoing.capacity
        {
            swap(&session.pointee.outgoing, &pool.spareOutgoing)
        }
        session.pointee.outgoing.removeAll(keeping: 0)
    }

    private func updateInterest() {
        guard case .connected(let transport) = link else { return }
        var events =
            life.stage == .open && isPaused ? 0 : PollEvents.readable | PollEvents.peerEnded
        if watch.isWriteBlocked { events |= PollEvents.writable }
        guard events != watch.events else { return }
        do throws(RealtimeError) {
            if let token = watch.token {
                try loop.watch(
                    token, descriptor: transport.descriptor, from: watch.events, to: events)
            } else {
                watch.token = try loop.add(
                    self, descriptor: transport.descriptor, events: events)
            }
            watch.events = events
        } catch {
            fail(error)
        }
    }

    func updateTimer() {
        guard !isDeferred, let wanted = life.wakeUp(session: session?.pointee.wakeUp) else {
            return loop.disarm(timer)
        }
        if !timer.isArmed || timer.deadline != wanted { loop.arm(timer, self, at: wanted) }
    }
}

extension WebSocketConnection: LoopSource {
    func ready(_ events: UInt32) {
        // For a broken socket too: the write fails, so we no longer wait until it is writable.
        if events & (PollEvents.writable | PollEvents.broken) != 0 {
            watch.isWriteBlocked = false
            sendHandshake()
        }
        if events & ~PollEvents.writable != 0 {
            // Even if they are only a part of a TLS record, which cannot be read yet.
            session?.pointee.receivedBytes()
            let count = counters.wireBytesReceived.current
            receive()
            if counters.wireBytesReceived.current == count { receivedPartOfRecord() }
        }
        settle()
    }

    func turn() {
        isScheduled = false
        if let failure = life.laterFailure { return fail(failure) }
        switch life.stage {
        case .over, .ended: break
        case .waiting:
            // The last connection's callbacks have returned, so free what they may have used.
            dropSession()
            held.removeAll(keeping: 0)
            return noteWait()
        case .idle, .connecting, .handshaking, .refused, .authorizing, .open:
            if wantsRead {
                wantsRead = false
                receive()
            }
            return settle()
        }
        if life.owesEnd { finish(life.ending) }
        // Release the handlers: one may retain an object that retains this one.
        release()
    }

    func loopClosed() {
        dropTransport()
        life.abandon()
        setState(.closed)
        release()
    }
}

extension WebSocketConnection: TimerTarget {
    func timeReached(_ now: Instant) {
        switch life.timeReached(now, configuration, isReachable: isReachable()) {
        case .nothing: break
        case .connectTimedOut(let limit):
            if case .connecting(let connect) = link { fail(connect.late(limit)) }
        case .failed(let error): fail(error)
        case .session: sessionTimeReached(now)
        case .attempt(let number): endWait(number)
        case .waitForNetwork: noteWait()
        }
        settle()
    }

    private func sessionTimeReached(_ now: Instant) {
        switch session?.pointee.timeReached(now, unacknowledged: unacknowledgedBytes) {
        case nil, .nothing: break
        case .pinged:
            Log.write(.debug, "\(currentURL.displayName): sent a ping")
            queued()
        case .failed(let error, let code):
            setState(.closing)
            report(error)
            // The peer is silent: try to send the close frame once, and do not wait for an answer.
            flush()
            finish(WebSocketLife.Ending(code: code))
        case .closeTimedOut: finish(life.ending)
        }
    }
}
