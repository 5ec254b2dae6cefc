import CShims
import Session
import Wire

/// Drives the real machines, `WebSocketLife` and `WebSocketSession`, over a simulated network with
/// a virtual clock. Receiving is in ClientReceiver.swift.
final class Client: EndpointOwner {
    let world: World
    let plan: Plan
    let user: User
    let endpoint: Endpoint
    var life = WebSocketLife()
    var agreed: DeflateParameters?
    private(set) var session: UnsafeMutablePointer<WebSocketSession>?
    var held = ByteBuffer()
    var batch: [rt_message] = []
    /// In the driver the loop owns it.
    var spareAssembly = ByteBuffer()
    let buffer: UnsafeMutableRawBufferPointer
    let whole: UnsafeMutableBufferPointer<rt_message>
    var wantsRead = false
    /// How many steps in a row used no bytes.
    var idleSteps = 0
    /// The session's statistics.
    private(set) var counts: WebSocketSession.Counts?
    private(set) var isPaused = false
    private(set) var isClosing = false

    private var isWriteBlocked = false
    private var isScheduled = false
    private var owesDrained = false
    private var timer: (at: Instant, alarm: World.Alarm)?
    private var random: Random
    /// Set once the end was reported while the peer had not closed the transport.
    private var lingering: Lingering?
    /// Watches the session from outside.
    let guardian: Guardian

    init(_ world: World, _ plan: Plan, _ user: User, _ endpoint: Endpoint) {
        self.world = world
        self.plan = plan
        self.user = user
        self.endpoint = endpoint
        random = world.random.split()
        buffer = .allocate(byteCount: plan.receiveBytes, alignment: 16)
        whole = .allocate(capacity: plan.batchSize)
        whole.initialize(repeating: rt_message())
        guardian = Guardian(world, plan)
        endpoint.owner = self
        user.client = self
    }

    deinit {
        dropSession()
        buffer.deallocate()
        whole.deallocate()
    }

    func start() {
        _ = life.begin(plan.configuration, isReachable: true, now: world.now)
        life.connected(plan.configuration, nonce: random.bytes(16), now: world.now)
        sendHandshake()
        settle()
    }

    private func sendHandshake() {
        life.writeRequest { bytes in
            guard !isWriteBlocked else { return nil }
            switch endpoint.write(bytes) {
            case .bytes(let count): return count
            case .wouldBlock: isWriteBlocked = true
            case .failed: break
            }
            return nil
        }
    }

    func opened(_ outcome: ClientHandshake.Outcome) {
        agreed = outcome.deflate
        let keys = MaskKeys { [self] in $0.copyBytes(from: random.bytes($0.count)) }
        let session = UnsafeMutablePointer<WebSocketSession>.allocate(capacity: 1)
        session.initialize(
            to: WebSocketSession(
                configuration: plan.configuration, deflate: outcome.deflate, keys: keys,
                now: world.now))
        self.session = session
        guardian.opened()
        if isPaused { session.pointee.setPaused(true, now: world.now) }
        user.didOpen()
    }

    // What the user does

    func send(
        _ kind: MessageKind, _ bytes: [UInt8], _ choice: CompressionChoice
    ) throws(RealtimeError) {
        guard life.stage == .open, !isClosing, let session else {
            throw RealtimeError(.closed, "the connection is closing or closed")
        }
        let limit = plan.configuration.sendLimit
        let waiting = session.pointee.outgoing.count
        if limit > 0, waiting > 0, bytes.count > limit - waiting {
            throw RealtimeError(.bufferFull, "\(waiting) bytes wait")
        }
        if bytes.count > plan.configuration.sendHighWater - waiting { owesDrained = true }
        try bytes.span.withUnsafeBytes { (bytes) throws(RealtimeError) in
            try session.pointee.send(kind, bytes, compression: choice)
        }
        guardian.sent(bytes.count)
        queued()
        if session.pointee.outgoing.count > plan.configuration.sendHighWater { owesDrained = true }
    }

    func begin(_ kind: MessageKind, _ choice: CompressionChoice) throws(RealtimeError) {
        guard life.stage == .open, !isClosing, let session else {
            throw RealtimeError(.closed, "the connection is closing or closed")
        }
        try session.pointee.begin(kind, compression: choice)
    }

    func write(_ piece: [UInt8], endsMessage: Bool) throws(RealtimeError) {
        guard life.stage == .open, !isClosing, let session else {
            throw RealtimeError(.closed, "the connection is closing or closed")
        }
        try piece.span.withUnsafeBytes { (bytes) throws(RealtimeError) in
            try session.pointee.write(bytes, endsMessage: endsMessage)
        }
        guardian.sent(session.pointee.outgoing.count)
        queued()
    }

    func ping(_ payload: [UInt8]) {
        guard life.stage == .open, !isClosing else { return }
        let number = payload.withUnsafeBytes {
            try? session?.pointee.ping($0, now: world.now)
        }
        if number != nil { guardian.pinged(byHeartbeat: false, waiting: 0) }
        queued()
    }

    func setPaused(_ paused: Bool) {
        isPaused = paused
        session?.pointee.setPaused(waits, now: world.now)
        guardian.paused(waits)
        if !waits { wantsRead = true }
        scheduleTurn()
    }

    func close(_ code: CloseCode?, _ reason: String) {
        isClosing = true
        switch life.close(code, reason: reason) {
        case .nothing: break
        case .drop:
            dropTransport()
            scheduleTurn()
        case .handshake:
            if let session {
                guardian.closes(session.pointee.state, hasPendingEnd: session.pointee.hasPendingEnd)
            }
            session?.pointee.close(code, reason: reason, now: world.now)
            wantsRead = true
            queued()
        }
    }

    /// The peer's close frame or violation was reported, or the connection is over.
    var knowsItsEnd: Bool { session?.pointee.state != .open || life.stage != .open }

    /// Whether messages wait: closing overrides a pause.
    var waits: Bool { isPaused && !isClosing }

    // MARK: Writing

    func queued() {
        if let waiting = session?.pointee.outgoing.count, waiting >= 64 << 10 { flush() }
        scheduleTurn()
    }

    private func flush() {
        guard life.stage == .open, let session else { return }
        var share = plan.bytesPerTurn
        while !isWriteBlocked, !session.pointee.outgoing.isEmpty {
            guard share > 0 else { return scheduleTurn() }
            let waiting = session.pointee.outgoing.readable
            switch endpoint.write(UnsafeRawBufferPointer(rebasing: waiting.prefix(share))) {
            case .bytes(let count):
                session.pointee.didWrite(count)
                if count > 0 { guardian.wrote() }
                share -= count
            case .wouldBlock: isWriteBlocked = true
            case .failed:
                session.pointee.outgoing.removeAll(keeping: 0)
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
        finish(.abnormal)
    }

    func report(_ error: RealtimeError) {
        life.failed(error)
        if !isClosing { user.failed(error) }
    }

    func finish(_ ending: WebSocketLife.Ending) {
        dropTransport()
        let next = life.finish(
            ending, isWanted: !isClosing, isReachable: true, now: world.now, wallClock: 0,
            random: 0.5)
        switch next {
        case .nothing: break
        case .wait: world.fail("waits for another attempt, which was never wanted")
        case .end:
            guardian.ended()
            user.closed(
                User.Ending(code: ending.code, reason: ending.reason, isClean: ending.isClean))
            scheduleTurn()
        }
    }

    /// The peer has closed, or violated the protocol, and our close frame is written.
    private func endIfFinished() -> Bool {
        guard life.stage == .open, let session, session.pointee.state == .finished,
            session.pointee.outgoing.isEmpty
        else { return false }
        world.count("ended before its transport")
        lingering = Lingering(world, endpoint)
        finish(life.ending)
        return true
    }

    private func dropTransport() {
        if counts == nil { counts = session?.pointee.takeCounts() }
        timer?.alarm.cancel()
        timer = nil
        if lingering == nil { endpoint.close() }
    }

    // MARK: Turns

    func scheduleTurn() {
        guard !isScheduled else { return }
        isScheduled = true
        world.after(.nanoseconds(500)) { [weak self] in self?.turn() }
    }

    private func turn() {
        isScheduled = false
        switch life.stage {
        case .over, .ended: break
        case .idle, .connecting, .handshaking, .refused, .authorizing, .open, .waiting:
            if wantsRead {
                wantsRead = false
                receive()
            }
            return settle()
        }
        if life.owesEnd { finish(life.ending) }
        dropSession()
        held.removeAll(keeping: 0)
    }

    private func dropSession() {
        session?.deinitialize(count: 1)
        session?.deallocate()
        session = nil
    }

    func ready(_ events: Endpoint.Events) {
        if events.contains(.writable) || events.contains(.broken) {
            isWriteBlocked = false
            sendHandshake()
        }
        if events != .writable { receive() }
        settle()
    }

    private func settle() {
        flush()
        if endIfFinished() { return }
        if let session, session.pointee.outgoing.isEmpty {
            session.pointee.outgoing.removeAll(keeping: 0)
            if owesDrained, life.stage == .open {
                owesDrained = false
                user.drained()
            }
        }
        guardian.check(self)
        guard life.stage != .over, life.stage != .ended else { return }
        var events: Endpoint.Events = life.stage == .open && waits ? [] : .readable
        if isWriteBlocked { events.insert(.writable) }
        endpoint.watch(events.isEmpty ? nil : events)
        updateTimer()
    }

    private func updateTimer() {
        guard let wanted = life.wakeUp(session: session?.pointee.wakeUp) else {
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
        switch life.timeReached(world.now, plan.configuration, isReachable: true) {
        case .nothing: return
        case .failed(let error): fail(error)
        case .session: sessionTimeReached()
        case .connectTimedOut, .attempt, .waitForNetwork: world.fail("is not connected")
        }
        settle()
    }

    private func sessionTimeReached() {
        guard let session else { return }
        let waiting = session.pointee.outgoing.count
        switch session.pointee.timeReached(world.now) {
        case .nothing: break
        case .pinged:
            guardian.pinged(
                byHeartbeat: true, waiting: session.pointee.outgoing.count)
            queued()
        case .failed(let error, let code):
            guardian.timedOut(code, waiting: waiting)
            report(error)
            flush()
            return finish(WebSocketLife.Ending(code: code))
        case .closeTimedOut:
            guardian.closeTimedOut()
            return finish(life.ending)
        }
        if let wakeUp = session.pointee.wakeUp {
            world.require(wakeUp > world.now, "wakeUp stays in the past: it would spin")
        }
    }
}
