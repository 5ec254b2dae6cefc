import CShims
import Session
import Wire

/// Runs the real machines as `WebSocketConnection` does (Engine/WebSocketDriver.swift; receiving is
/// in ClientReceiver.swift), with the simulated network below and the virtual clock beside it. Keep
/// the two alike: what is proven here is proven for the order of calls made there.
final class Client: EndpointOwner {
    enum Phase {
        case handshaking, open, over
    }

    let world: World
    let plan: Plan
    let user: User
    let endpoint: Endpoint
    var phase = Phase.handshaking
    var reader: ResponseHeadReader
    let handshake: ClientHandshake
    var agreed: DeflateParameters?
    private(set) var session: SessionBox?
    var held = ByteBuffer()
    var batch: [rt_message] = []
    /// The loop's, in the driver.
    var spareAssembly = ByteBuffer()
    let buffer: UnsafeMutableRawBufferPointer
    let whole: UnsafeMutableBufferPointer<rt_message>
    var pending: User.Ending?
    var wantsRead = false
    /// What the session counted in its whole life.
    private(set) var counts: WebSocketSession.Counts?
    private(set) var isPaused = false
    private(set) var isClosing = false

    private var request: [UInt8]
    private var isWriteBlocked = false
    private var isScheduled = false
    private var owesDrained = false
    private var openDeadline: Instant?
    private var timer: (at: Instant, alarm: World.Alarm)?
    private var random: Random
    /// Watches over the session from outside.
    let guardian: Guardian

    final class SessionBox {
        var value: WebSocketSession

        init(_ value: consuming WebSocketSession) { self.value = value }
    }

    init(_ world: World, _ plan: Plan, _ user: User, _ endpoint: Endpoint) {
        self.world = world
        self.plan = plan
        self.user = user
        self.endpoint = endpoint
        random = world.random.split()
        let configuration = plan.configuration
        handshake = ClientHandshake(
            url: configuration.url, nonce: random.bytes(16),
            subprotocols: configuration.subprotocols, fields: configuration.fields,
            deflate: configuration.compression.offer)
        request = handshake.request
        reader = ResponseHeadReader(limit: configuration.limits.headerBytes)
        buffer = .allocate(byteCount: plan.receiveBytes, alignment: 16)
        whole = .allocate(capacity: plan.batchSize)
        whole.initialize(repeating: rt_message())
        guardian = Guardian(world, plan)
        endpoint.owner = self
        user.client = self
    }

    deinit {
        buffer.deallocate()
        whole.deallocate()
    }

    func start() {
        if plan.configuration.openTimeout > .zero {
            openDeadline = world.now + plan.configuration.openTimeout
        }
        sendHandshake()
        settle()
    }

    private func sendHandshake() {
        while !request.isEmpty, !isWriteBlocked {
            switch request.withUnsafeBytes(endpoint.write) {
            case .bytes(let count): request.removeFirst(count)
            case .wouldBlock: isWriteBlocked = true
            case .failed: return
            }
        }
    }

    func opened(_ outcome: ClientHandshake.Outcome) {
        agreed = outcome.deflate
        let keys = MaskKeys { [self] in $0.copyBytes(from: random.bytes($0.count)) }
        session = SessionBox(
            WebSocketSession(
                configuration: plan.configuration, deflate: outcome.deflate, keys: keys,
                now: world.now))
        phase = .open
        guardian.opened()
        if isPaused { session?.value.setPaused(true, now: world.now) }
        user.didOpen()
    }

    // MARK: What the user does

    func send(
        _ kind: MessageKind, _ bytes: [UInt8], _ choice: CompressionChoice
    ) throws(RealtimeError) {
        guard phase == .open, !isClosing, let session else {
            throw RealtimeError(.closed, "the connection is closing or closed")
        }
        let limit = plan.configuration.sendLimit
        let waiting = session.value.outgoing.count
        if limit > 0, waiting > 0, bytes.count > limit - waiting {
            throw RealtimeError(.bufferFull, "\(waiting) bytes wait")
        }
        if bytes.count > plan.configuration.sendHighWater - waiting { owesDrained = true }
        try bytes.span.withUnsafeBytes { (bytes) throws(RealtimeError) in
            try session.value.send(kind, bytes, compression: choice)
        }
        guardian.sent(bytes.count)
        queued()
        if session.value.outgoing.count > plan.configuration.sendHighWater { owesDrained = true }
    }

    func begin(_ kind: MessageKind, _ choice: CompressionChoice) throws(RealtimeError) {
        guard phase == .open, !isClosing, let session else {
            throw RealtimeError(.closed, "the connection is closing or closed")
        }
        try session.value.begin(kind, compression: choice)
    }

    func write(_ piece: [UInt8], endsMessage: Bool) throws(RealtimeError) {
        guard phase == .open, !isClosing, let session else {
            throw RealtimeError(.closed, "the connection is closing or closed")
        }
        try piece.span.withUnsafeBytes { (bytes) throws(RealtimeError) in
            try session.value.write(bytes, endsMessage: endsMessage)
        }
        guardian.sent(session.value.outgoing.count)
        queued()
    }

    func ping(_ payload: [UInt8]) {
        guard phase == .open, !isClosing else { return }
        let number = payload.withUnsafeBytes {
            try? session?.value.ping($0, now: world.now)
        }
        if number != nil { guardian.pinged(byHeartbeat: false) }
        queued()
    }

    func setPaused(_ paused: Bool) {
        isPaused = paused
        session?.value.setPaused(waits, now: world.now)
        guardian.paused(waits)
        if !waits { wantsRead = true }
        scheduleTurn()
    }

    func close(_ code: CloseCode?, _ reason: String) {
        isClosing = true
        switch phase {
        case .handshaking:
            dropTransport()
            pending = User.Ending(code: .abnormal, reason: "", isClean: false)
            scheduleTurn()
        case .open:
            if let session {
                guardian.closes(session.value.state, hasPendingEnd: session.value.hasPendingEnd)
            }
            session?.value.close(code, reason: reason, now: world.now)
            wantsRead = true
            queued()
        case .over: break
        }
    }

    /// The peer's close frame or violation was told of, or it is over.
    var knowsItsEnd: Bool { pending != nil || phase == .over }

    /// Messages wait: closing overrides a pause.
    var waits: Bool { isPaused && !isClosing }

    // MARK: Writing

    func queued() {
        if let waiting = session?.value.outgoing.count, waiting >= 64 << 10 { flush() }
        scheduleTurn()
    }

    private func flush() {
        guard phase == .open, let session else { return }
        var share = plan.bytesPerTurn
        while !isWriteBlocked, !session.value.outgoing.isEmpty {
            guard share > 0 else { return scheduleTurn() }
            let waiting = session.value.outgoing.readable
            switch endpoint.write(UnsafeRawBufferPointer(rebasing: waiting.prefix(share))) {
            case .bytes(let count):
                session.value.didWrite(count)
                if count > 0 { guardian.wrote() }
                share -= count
            case .wouldBlock: isWriteBlocked = true
            case .failed:
                session.value.outgoing.removeAll(keeping: 0)
                guardian.writeFailed()
                wantsRead = true
                scheduleTurn()
                return
            }
        }
    }

    // MARK: The end

    func fail(_ error: RealtimeError) {
        report(error)
        finish(User.Ending(code: .abnormal, reason: "", isClean: false))
    }

    func report(_ error: RealtimeError) {
        if !isClosing { user.failed(error) }
    }

    func finish(_ ending: User.Ending) {
        if phase == .over, user.ending != nil { return }
        dropTransport()
        guardian.ended()
        user.closed(ending)
        pending = nil
        scheduleTurn()
    }

    private func dropTransport() {
        if counts == nil { counts = session?.value.takeCounts() }
        timer?.alarm.cancel()
        timer = nil
        endpoint.close()
        phase = .over
    }

    // MARK: Turns

    func scheduleTurn() {
        guard !isScheduled else { return }
        isScheduled = true
        world.after(.nanoseconds(500)) { [weak self] in self?.turn() }
    }

    private func turn() {
        isScheduled = false
        guard phase == .over else {
            if wantsRead {
                wantsRead = false
                receive()
            }
            return settle()
        }
        if let pending { finish(pending) }
        session = nil
        held.removeAll(keeping: 0)
    }

    func ready(_ events: Endpoint.Events) {
        if events.contains(.writable) || events.contains(.broken) {
            isWriteBlocked = false
            if phase == .handshaking { sendHandshake() }
        }
        if events != .writable { receive() }
        settle()
    }

    private func settle() {
        flush()
        if let session, session.value.outgoing.isEmpty {
            session.value.outgoing.removeAll(keeping: 0)
            if owesDrained, phase == .open {
                owesDrained = false
                user.drained()
            }
        }
        guardian.check(self)
        guard phase != .over else { return }
        var events: Endpoint.Events = phase == .open && waits ? [] : .readable
        if isWriteBlocked { events.insert(.writable) }
        endpoint.watch(events.isEmpty ? nil : events)
        updateTimer()
    }

    private func updateTimer() {
        guard let wanted = phase == .open ? session?.value.wakeUp : openDeadline else {
            timer?.alarm.cancel()
            timer = nil
            return
        }
        if let timer, timer.at == wanted { return }
        timer?.alarm.cancel()
        // A loop is never early, and often a little late.
        let late = Duration.microseconds(random.below(Guardian.latestMicroseconds))
        let alarm = world.at(max(wanted, world.now) + late) { [weak self] in self?.timeReached() }
        timer = (wanted, alarm)
    }

    private func timeReached() {
        timer = nil
        switch phase {
        case .over: return
        case .handshaking: fail(RealtimeError(.timeout, "not open in time"))
        case .open: sessionTimeReached()
        }
        settle()
    }

    private func sessionTimeReached() {
        guard let session else { return }
        let waiting = session.value.outgoing.count
        switch session.value.timeReached(world.now) {
        case .nothing: break
        case .pinged:
            guardian.pinged(byHeartbeat: true)
            queued()
        case .failed(let error, let code):
            guardian.timedOut(code, waiting: waiting)
            report(error)
            flush()
            return finish(User.Ending(code: code, reason: "", isClean: false))
        case .closeTimedOut:
            guardian.closeTimedOut()
            return finish(pending ?? User.Ending(code: .abnormal, reason: "", isClean: false))
        }
        if let wakeUp = session.value.wakeUp {
            world.require(wakeUp > world.now, "wakeUp stays in the past: it would spin")
        }
    }
}
