import Session
import Wire

/// The scripted server. It writes its frames with its own simple writer (PeerFrame), and reads ours
/// with a reader that checks every rule.
final class Peer: EndpointOwner {
    private enum State { case handshaking, open, over }

    private let world: World
    private let plan: Plan
    private let endpoint: Endpoint
    private var random: Random
    private var state = State.handshaking
    private var request: [UInt8] = []
    private var outbox = ByteQueue()
    private var reader = ClientFrameReader()
    private var deflater: PeerDeflater?
    private var deal = Misbehaviour.Deal()
    private var nextAct = 0
    private var readBytes = 0
    private var isReading = true
    private var hasClosed = false
    private var latePings: [[UInt8]] = []

    // For the verdict.
    private(set) var said: [(opcode: UInt8, payload: [UInt8])] = []
    private(set) var pings: [[UInt8]] = []
    /// Pongs that answer one of the client's pings.
    private(set) var answers = 0
    private(set) var misbehaviour: Misbehaviour?
    private(set) var heard: [(opcode: UInt8, payload: [UInt8])] = []
    private(set) var heardPongs: [[UInt8]] = []
    private(set) var heardClose: (code: UInt16, reason: [UInt8])?

    init(_ world: World, _ plan: Plan, _ endpoint: Endpoint) {
        self.world = world
        self.plan = plan
        self.endpoint = endpoint
        random = world.random.split()
        endpoint.owner = self
        watch()
        world.after(plan.horizon) { [weak self] in self?.hangUp("at the horizon") }
    }

    private func watch() {
        guard state != .over else { return }
        var events: Endpoint.Events = isReading ? .readable : []
        if !outbox.isEmpty { events.insert(.writable) }
        endpoint.watch(events)
    }

    func ready(_ events: Endpoint.Events) {
        if events.contains(.broken) { return hangUp("after a reset") }
        if events.contains(.writable) { flush() }
        if events.contains(.readable) { read() }
        watch()
    }

    private func hangUp(_ why: String) {
        guard state != .over else { return }
        world.trace("peer", "hangs up \(why)")
        state = .over
        // Unread bytes from the client would turn the end into a reset.
        drainIncoming()
        endpoint.close()
    }

    private func drainIncoming() {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while case .bytes = buffer.withUnsafeMutableBytes(endpoint.read) {}
    }

    // MARK: Writing

    private func write(_ bytes: [UInt8]) {
        guard state != .over else { return }
        outbox.append(bytes)
        flush()
        watch()
    }

    private func flush() {
        while !outbox.isEmpty {
            let bytes = outbox.take(min(outbox.count, 4096))
            switch bytes.withUnsafeBytes(endpoint.write) {
            case .bytes(let count) where count == bytes.count: continue
            case .bytes(let count): outbox.putBack(bytes[count...])
            case .wouldBlock: outbox.putBack(bytes[...])
            case .failed: return
            }
            return
        }
    }

    private func write(_ frame: PeerFrame) {
        world.trace("peer", "sends opcode \(frame.opcode) of \(frame.payload.count) bytes")
        write(frame.bytes)
    }

    // MARK: Reading

    private func read() {
        var limit = 65_536
        switch plan.reading {
        case .always: break
        case .trickle(let bytes):
            limit = bytes
            isReading = false
            world.after(.milliseconds(2)) { [weak self] in
                self?.isReading = true
                self?.watch()
            }
        case .stops:
            if state == .open, readBytes > 400 {
                world.trace("peer", "stops reading")
                isReading = false
                return
            }
        }
        var buffer = [UInt8](repeating: 0, count: limit)
        switch buffer.withUnsafeMutableBytes(endpoint.read) {
        case .bytes(let count):
            readBytes += count
            take(buffer[..<count])
        case .wouldBlock: break
        case .end, .reset: hangUp("after the client's end")
        }
    }

    private func take(_ bytes: ArraySlice<UInt8>) {
        var bytes = bytes
        if state == .handshaking {
            request += bytes
            guard let greeting = Greeter.answer(request, plan, &random) else { return }
            world.require(
                greeting.fault == nil || plan.isCorruptedUpward,
                "the request \(greeting.fault ?? "")")
            world.count("greeting \(plan.greeting)")
            write(greeting.bytes)
            if plan.greeting == .hangUp { return hangUp("in its answer") }
            guard plan.greeting == .accept else { return refuse() }
            state = .open
            open(greeting)
            bytes = request[greeting.requestBytes...]
        }
        guard state == .open else { return }
        do throws(ClientFrameReader.Fault) {
            try reader.append(bytes)
            while state == .open, let event = try reader.next() { hear(event) }
        } catch {
            world.require(plan.isCorruptedUpward, "the client \(error.what)")
            hangUp("since the client \(error.what)")
        }
    }

    /// Refuses the handshake: the connection ends, sooner or later.
    private func refuse() {
        guard plan.greeting != .silence else { return }
        world.after(random.milliseconds(0...500)) { [weak self] in self?.hangUp("refusing") }
    }

    private func open(_ greeting: Greeter.Answer) {
        reader.maxFrameBytes = plan.configuration.maxFrameBytes
        deal.messageLimit = plan.messageLimit
        deal.inflateRatio = plan.configuration.limits.inflateRatio
        if let deflate = greeting.deflate {
            world.count("deflate")
            deal.windowBits = deflate.serverBits
            reader.inflater = PeerInflater(
                windowBits: deflate.clientBits, noContextTakeover: deflate.clientNoContext)
            deflater = PeerDeflater(
                level: random.within(1...9), windowBits: deflate.serverBits,
                noContextTakeover: deflate.serverNoContext)
        }
        scheduleAct()
    }

    private func hear(_ event: ClientFrameReader.Event) {
        switch event {
        case .message(let opcode, let payload):
            world.trace("peer", "hears opcode \(opcode) of \(payload.count) bytes")
            heard.append((opcode, payload))
        case .ping(let payload): answer(payload)
        case .pong(let payload): heardPongs.append(payload)
        case .close(let code, let reason):
            world.trace("peer", "hears close \(code)")
            heardClose = (code, reason)
            answerClose(code)
        }
    }

    private func answer(_ ping: [UInt8]) {
        guard !hasClosed else { return }
        switch plan.pongs {
        case .prompt: pong(ping)
        case .never: world.count("ping not answered")
        case .other:
            // A control frame has 125 bytes at most (RFC 6455 §5.5).
            let other = ping.count < 125 ? ping + [1] : Array(ping.dropLast())
            write(PeerFrame(opcode: 10, payload: other))
        case .late, .onlyLast:
            latePings.append(ping)
            guard latePings.count == 1 else { return }
            world.after(random.milliseconds(1...3000)) { [weak self] in self?.answerLate() }
        }
    }

    private func answerLate() {
        guard !hasClosed else { return }
        for ping in plan.pongs == .late ? latePings[...] : latePings.suffix(1) { pong(ping) }
        latePings = []
    }

    private func pong(_ payload: [UInt8]) {
        answers += 1
        write(PeerFrame(opcode: 10, payload: payload))
    }

    private func answerClose(_ code: UInt16) {
        if plan.closeAnswer == .never {
            world.count("close not answered")
            return
        }
        let wait = plan.closeAnswer == .late ? random.milliseconds(1...5000) : .zero
        world.after(wait) { [weak self] in
            guard let self else { return }
            // A code that the network corrupted is not repeated.
            if !hasClosed { write(.close(code == 1005 || code >= 5000 ? nil : code)) }
            hasClosed = true
            guard plan.closeAnswer != .withoutHangingUp else { return }
            hangUpWhenWritten()
        }
    }

    private func hangUpWhenWritten() {
        guard state != .over else { return }
        guard !outbox.isEmpty else { return hangUp("after the closing handshake") }
        world.after(.milliseconds(1)) { [weak self] in self?.hangUpWhenWritten() }
    }

    // MARK: The script

    private func scheduleAct() {
        guard nextAct < plan.script.count else { return }
        world.after(plan.script[nextAct].after) { [weak self] in self?.performAct() }
    }

    private func performAct() {
        guard state == .open, !hasClosed else { return }
        // A server whose client does not read stops eventually.
        guard outbox.count < 100_000 else {
            world.after(.milliseconds(5)) { [weak self] in self?.performAct() }
            return
        }
        let act = plan.script[nextAct].act
        nextAct += 1
        perform(act)
        scheduleAct()
    }

    private func perform(_ act: Plan.Act) {
        switch act {
        case .message(let opcode, let payload, let fragments, let manner):
            say(opcode, payload, fragments, manner)
        case .ping(let payload): ping(payload)
        case .pong(let payload): write(PeerFrame(opcode: 10, payload: payload))
        case .pingFlood(let count):
            world.count("ping flood")
            for index in 0..<count { ping([UInt8](repeating: UInt8(index & 255), count: 120)) }
            pingOn(40)
        case .close(let code, let reason):
            world.count("peer closes")
            write(.close(code, reason))
            hasClosed = true
        case .misbehave(let wish): misbehave(wish)
        case .garbage(let bytes):
            world.count("garbage")
            write(bytes)
        case .half(let bytes):
            write(Array(PeerFrame(opcode: 2, payload: bytes).bytes.prefix(60)))
        case .hangUp: hangUpWhenWritten()
        case .reset:
            world.count("peer resets")
            state = .over
            endpoint.reset()
        }
    }

    /// Sends pings while the answers to a flood drain.
    private func pingOn(_ count: Int) {
        guard count > 0 else { return }
        world.after(random.milliseconds(0...20)) { [weak self] in
            guard let self, state == .open, !hasClosed else { return }
            if outbox.isEmpty { ping(random.bytes(8)) }
            pingOn(count - 1)
        }
    }

    private func ping(_ payload: [UInt8]) {
        pings.append(payload)
        write(PeerFrame(opcode: 9, payload: payload))
    }

    private func say(
        _ opcode: UInt8, _ payload: [UInt8], _ fragments: Int, _ manner: PeerDeflater.Manner?
    ) {
        var bytes = payload
        var isCompressed = false
        if let manner, let deflater {
            bytes = deflater.compress(payload, manner)
            isCompressed = true
            world.count("deflate \(manner)")
        }
        said.append((opcode, payload))
        let frames = PeerFrame.message(
            opcode, bytes, isCompressed: isCompressed, fragments: fragments, &random)
        for (index, frame) in frames.enumerated() {
            if index > 0, random.chance(30) { ping(random.bytes(random.below(20))) }
            write(frame)
        }
    }

    private func misbehave(_ wish: Misbehaviour) {
        var choice = wish
        while !choice.isPossible(deal) { choice = random.pick(Misbehaviour.allCases) }
        world.trace("peer", "misbehaves: \(choice)")
        world.count("misbehaviour \(choice)")
        misbehaviour = choice
        for frame in choice.frames(deal, deflater, &random) { write(frame) }
    }
}
