import CShims
import Session
import Synchronization
import Wire

// The work of a Spreadbot connection on its loop's thread: its legs and their events, and its
// session's actions. Frames are in SpreadbotFrames.swift, requests in SpreadbotRequests.swift.
extension SpreadbotConnection {
    func establishNow(_ path: String, _ epoch: UInt64) {
        // An establishment that is replaced while it is active has no end of its own.
        if session.state != .disconnected { _ = epochs.popLast() }
        epochs.append(epoch)
        pathText = ContiguousArray(path.utf8) + [0]
        session.establish(path: path, now: Loop.now())
        takeID()
    }

    /// Publishes the session's cursor, after a change that no message caused.
    func takeID() {
        let cursor = session.lastEventID
        idText = ContiguousArray(cursor.utf8) + [0]
        publish { $0.lastEventID = cursor }
    }

    var isReachable: Bool {
        reachability?.isReachable(configuration.base, by: configuration.network) ?? true
    }

    func perform(_ command: SpreadbotSession.Command) {
        switch command {
        case .attach(let attempt): attach(attempt)
        case .detach(let number): if leg?.number == number { dropLeg() }
        case .close(let number): closeWebSocket(number)
        case .probe(let attempt): beginProbe(attempt)
        case .dropProbe(let number):
            if probe?.number == number { dropProbe() }
        case .refresh(let token): refresh(token)
        case .refreshed(let error): notifyClients(error)
        case .credential(let credential): setCredential(credential)
        case .write(let send):
            results[send.id] = nil
            leg?.write(send)
            if isPaused { leg?.webSocket?.connection.oweDrained() }
        case .forget(let send): if let entry = send.entry { outbox?.remove(entry) }
        case .confirm(let id): confirm(id)
        case .post(let send): post(send)
        case .cancelPost: cancelPost()
        }
    }

    func report(_ report: SpreadbotSession.Report) {
        let name = configuration.base.displayName
        switch report {
        case .opened(let transport, let resumed):
            let how = resumed ? ", after the last id" : ""
            Log.write(.info, "\(name): connected by \(transport.name)\(how)")
            let opened = leg?.opened ?? Opened()
            leg?.opened = nil
            handlers.open?(transport, resumed, opened)
            inbox?.opened(epoch: currentEpoch)
        case .transport(let transport): handlers.transport?(transport)
        case .failed(let failure):
            Log.write(failure.isFatal ? .error : .warning, failure.line)
            handlers.error?(failure)
        case .tokens(let access, let refresh):
            Log.write(.info, "\(name): the tokens were refreshed")
            handlers.tokens?(access, refresh)
        case .sent(let send, let error):
            if let error { Log.write(.warning, "\(name): not sent: \(error.message)") }
            let result = results.removeValue(forKey: send.id)
            end(send, SpreadbotSent(number: send.number, error: error, result: result))
        case .disconnected(let error):
            Log.write(.info, "\(name): disconnected")
            if !epochs.isEmpty { endedEpoch = epochs.removeFirst() }
            let ended = endedEpoch
            handlers.disconnected?(error)
            reportEnd()
            inbox?.finish(
                error ?? RealtimeError(.closed, "the connection was disconnected"), epoch: ended)
        }
    }

    // MARK: Legs

    private func attach(_ attempt: SpreadbotSession.Attempt) {
        guard session.isCurrent(attempt.number) else { return }
        dropLeg()
        Log.write(.info, "\(configuration.base.displayName): trying \(attempt.transport.name)")
        noteSecrets()
        do throws(RealtimeError) {
            let leg = try makeLeg(attempt)
            self.leg = leg
            if isPaused { leg.pause() }
            try startLeg(leg)
            // The caller knows better than the monitor, which the leg would ask.
            if session.isOnline, !isReachable { leg.retryNow() }
        } catch {
            dropLeg()
            session.ended(
                attempt.number, SpreadbotLegEnd(error: error), written: 0, now: Loop.now(),
                wallClock: Loop.wallClock(), random: randomFraction())
        }
    }

    private func makeLeg(_ attempt: SpreadbotSession.Attempt) throws(RealtimeError) -> SpreadbotLeg
    {
        switch attempt.transport {
        case .webSocket:
            SpreadbotLeg(attempt, .webSocket(try configuration.makeWebSocket(attempt, on: loop)))
        case .sse: SpreadbotLeg(attempt, .sse(try configuration.makeEventSource(attempt, on: loop)))
        case .poll: SpreadbotLeg(attempt, .poll(try configuration.makeLongPoll(attempt, on: loop)))
        }
    }

    private func startLeg(_ leg: SpreadbotLeg) throws(RealtimeError) {
        switch leg.kind {
        case .webSocket(let socket):
            try socket.start(reachability) { setHandlers(&$0, leg, socket) }
        case .sse(let source):
            try source.setHandlers { setHandlers(&$0, leg) }
            try source.setReachability(reachability)
            try source.start()
        case .poll(let poll):
            try poll.setHandlers { setHandlers(&$0, leg) }
            try poll.setReachability(reachability)
            try poll.start()
        }
    }

    /// The leg's handlers retain it, so drop even a leg that could not start.
    func dropLeg() {
        leg?.drop()
        leg = nil
    }

    func dropProbe() {
        probe?.drop()
        probe = nil
    }

    private func legOpened(_ leg: SpreadbotLeg, _ opened: Opened) {
        guard leg === self.leg else { return }
        leg.opened = opened
        session.opened(leg.number, now: Loop.now())
        act()
    }

    func legEnded(_ leg: SpreadbotLeg, _ end: SpreadbotLegEnd) {
        guard leg === self.leg else { return }
        guard leg.batch.isEmpty else {
            leg.end = end
            return
        }
        let written = leg.written
        noteID(of: leg)
        // The leg would retry by itself.
        dropLeg()
        // The loop reports a lost network only at the end of its turn.
        if !isReachable { session.networkChanged(isOnline: false, now: Loop.now(), random: 0) }
        session.ended(
            leg.number, end.redacted(by: sentSecrets), written: written, now: Loop.now(),
            wallClock: Loop.wallClock(),
            random: randomFraction())
        act()
    }

    /// Takes over an id that arrived in a block without data (P10).
    private func noteID(of leg: SpreadbotLeg) {
        guard case .sse(let source) = leg.kind else { return }
        var id = source.lastEventID
        guard !id.hasSameBytes(as: session.lastEventID) else { return }
        id.withUTF8 { session.moved(leg.number, to: UnsafeRawBufferPointer($0)) }
        takeID()
    }

    private func setHandlers(
        _ handlers: inout WebSocketHandlers, _ leg: SpreadbotLeg, _ socket: WebSocketLeg
    ) {
        handlers.open = { [self] opened in
            leg.hasMeta = opened.subprotocol == SpreadbotFrame.subprotocol
            legOpened(leg, opened)
        }
        handlers.delivery = socket.delivery { [self] kind, bytes in
            receive(frame: bytes, kind, leg)
        }
        handlers.drained = { [self] in drained(leg) }
        handlers.close = { [self] end in
            guard leg === self.leg else { return }
            let code = end.code
            if session.state == .disconnected {
                // The server's close frame may have crossed ours.
                session.closed(
                    leg.number, isClean: end.isClean && code == .normal, written: leg.written)
                return act()
            }
            let reason = end.reason.isEmpty ? "" : ": \(end.reason.quoted(upTo: 60))"
            let closed = RealtimeError(
                .connectionLost,
                "\(configuration.base.displayName) closed the WebSocket with \(code)\(reason)")
            legEnded(
                leg,
                SpreadbotLegEnd(
                    error: end.error ?? closed, status: end.error?.response?.status ?? 0,
                    closeCode: end.codeOfPeer,
                    reachedServer: leg.reachedServer))
        }
    }

    private func setHandlers(_ handlers: inout EventSourceHandlers, _ leg: SpreadbotLeg) {
        handlers.open = { [self] in legOpened(leg, $0) }
        handlers.sink = { [self] event in
            let isNamed = !event.type.elementsEqual("message".utf8)
            // If a block without data contained only an id, it is the id of the next event.
            let hadID = event.hadID || !event.id.elementsEqual(leg.lastID)
            if hadID { leg.lastID = Array(event.id) }
            deliver(
                leg, id: hadID ? event.id : nil, event: isNamed ? event.type : nil, event.data)
        }
        handlers.idChanged = { [self] in if leg === self.leg { noteID(of: leg) } }
        handlers.error = { [self] failure in legEnded(leg, SpreadbotLegEnd(failure)) }
    }

    private func setHandlers(_ handlers: inout LongPollHandlers, _ leg: SpreadbotLeg) {
        handlers.open = { [self] in legOpened(leg, $0) }
        handlers.request = { [self] (_) throws(RealtimeError) in
            guard leg === self.leg, !leg.accessToken.hasSameBytes(as: session.accessToken),
                case .poll(let poll) = leg.kind
            else { return true }
            leg.accessToken = session.accessToken
            try poll.configure { (options) throws(RealtimeError) in
                try configuration.setRequest(&options, session.path, leg.accessToken)
            }
            session.tokensUsed(leg.number)
            return true
        }
        handlers.message = { [self] message in receive(polled: message, leg) }
        handlers.error = { [self] failure in
            guard leg === self.leg else { return }
            guard failure.error.code == .gone, !failure.isFatal else {
                return legEnded(leg, SpreadbotLegEnd(failure))
            }
            session.gone(
                leg.number, sentSecrets.redacted(failure.error), retryIn: failure.retryIn)
            takeID()
            act()
        }
    }

    // MARK: Probes

    /// Replaces the leg by a probe that has opened, once the leg's current batch is delivered.
    func makeRoom() {
        guard let probe, probe.hasOpened, leg?.batch.isEmpty ?? true else { return }
        session.probeOpened(probe.number, now: Loop.now())
        act()
    }

    private func beginProbe(_ attempt: SpreadbotSession.Attempt) {
        guard session.isCurrent(attempt.number) else { return }
        Log.write(.debug, "\(configuration.base.displayName): asking for a WebSocket again")
        do throws(RealtimeError) {
            let socket = try configuration.makeWebSocket(attempt, on: loop)
            let probe = SpreadbotLeg(attempt, .webSocket(socket))
            self.probe = probe
            try socket.start(nil) {
                $0.open = { [self] _ in
                    guard probe === self.probe else { return }
                    probe.hasOpened = true
                    socket.close()
                    makeRoom()
                }
                $0.close = { [self] end in
                    guard probe === self.probe, !probe.hasOpened else { return }
                    let status = end.error?.response?.status
                    session.probeEnded(
                        probe.number, isUnauthorized: status == 401 || status == 407,
                        now: Loop.now())
                    act()
                }
            }
        } catch {
            dropProbe()
            session.probeEnded(attempt.number, now: Loop.now())
        }
    }

    // MARK: The end

    private func closeWebSocket(_ number: UInt64) {
        guard let leg, leg.number == number, let webSocket = leg.webSocket else {
            return session.closed(number, isClean: false, written: 0)
        }
        webSocket.close()
    }

    /// Reports the end of a send, once.
    private func end(_ send: SpreadbotSend, _ sent: SpreadbotSent) {
        if let entry = send.entry, !send.isReported { outbox?.remove(entry) }
        completions.removeValue(forKey: send.number)?(sent)
        handlers.sent?(sent)
    }

    /// - Parameter isOver: true if nothing more follows.
    func reportEnd(isOver: Bool = false) {
        let ended = endObservers.filter { isOver || $0.epoch <= endedEpoch }
        endObservers.removeAll { isOver || $0.epoch <= endedEpoch }
        for observer in ended { observer.notify() }
    }

    /// Completes the sends that callers wait for. Durable ones stay in the outbox.
    func abandonSends() {
        outbox?.close()
        let waiting = completions
        completions = [:]
        let error = RealtimeError(.closed, "the connection was freed")
        for (number, completion) in waiting.sorted(by: { $0.key < $1.key }) {
            completion(SpreadbotSent(number: number, error: error, result: nil))
        }
    }
}
