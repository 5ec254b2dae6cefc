import Session
import Wire

/// The program that owns the connection: its actions by the plan, and its records of callbacks.
final class User {
    struct Ending: Equatable {
        var code: CloseCode
        var reason: String
        var isClean: Bool
    }

    private let world: World
    private let plan: Plan
    private var random: Random
    weak var client: Client?

    private(set) var opened = false
    private(set) var delivered: [(opcode: UInt8, payload: [UInt8])] = []
    private(set) var errors: [RealtimeError.Code] = []
    private(set) var ending: Ending?
    private(set) var pongCount = 0
    /// The messages that the client accepted, in order.
    private(set) var sent: [(opcode: UInt8, payload: [UInt8])] = []
    private var isStreaming = false
    /// The received part of a message in pieces.
    private var partial: (kind: MessageKind, bytes: [UInt8])?
    /// The user's own close, and how many messages had come by then.
    private(set) var close: (code: CloseCode?, reason: String)?

    init(_ world: World, _ plan: Plan) {
        self.world = world
        self.plan = plan
        random = world.random.split()
    }

    func start() {
        for (delay, act) in plan.user {
            world.after(delay) { [weak self] in self?.perform(act) }
        }
    }

    private func perform(_ act: Plan.UserAct) {
        guard let client, ending == nil else { return }
        switch act {
        case .send(let kind, let payload): send(kind, payload)
        case .stream(let kind, let payload, let ends): begin(kind, payload, ends)
        case .ping(let payload): client.ping(payload)
        case .pause(let time): pause(for: time)
        case .close(let code, let reason): closes(code, reason)
        }
    }

    private func send(_ kind: MessageKind, _ payload: [UInt8]) {
        guard let client, opened, close == nil else { return }
        do throws(RealtimeError) {
            let choices: [CompressionChoice] = [.automatic, .automatic, .always, .never]
            try client.send(kind, payload, random.pick(choices))
            sent.append((kind == .text ? 1 : 2, payload))
            world.trace("user", "sends \(kind) of \(payload.count) bytes")
        } catch {
            world.trace("user", "send refused: \(error)")
            world.count("send refused \(error.code)")
            refused(error)
        }
    }

    /// A send before the end must succeed, unless something is in its way.
    private func refused(_ error: RealtimeError) {
        guard let client else { return }
        let isExpected =
            switch error.code {
            case .bufferFull: true
            case .closed: client.knowsItsEnd || close != nil
            case .state: isStreaming
            default: false
            }
        world.require(isExpected, "send threw \(error) before the end was reported")
    }

    private func begin(_ kind: MessageKind, _ payload: [UInt8], _ ends: [Int]) {
        guard let client, opened, close == nil, !isStreaming else { return }
        do throws(RealtimeError) {
            try client.begin(kind, random.pick([.automatic, .always, .never]))
            world.count("sends in pieces")
            isStreaming = true
            write(kind, payload, from: 0, ends[...])
        } catch {
            refused(error)
        }
    }

    private func write(
        _ kind: MessageKind, _ payload: [UInt8], from start: Int, _ ends: ArraySlice<Int>
    ) {
        guard let client, close == nil, ending == nil else { return }
        let end = ends.first ?? payload.count
        do throws(RealtimeError) {
            try client.write(Array(payload[start..<end]), endsMessage: ends.isEmpty)
        } catch {
            return refused(error)
        }
        guard ends.isEmpty else {
            world.after(random.milliseconds(0...20)) { [weak self] in
                self?.write(kind, payload, from: end, ends.dropFirst())
            }
            return
        }
        isStreaming = false
        sent.append((kind == .text ? 1 : 2, payload))
    }

    private func pause(for time: Duration) {
        guard let client, !client.isPaused else { return }
        world.trace("user", "pauses for \(time)")
        world.count("pause")
        client.setPaused(true)
        world.after(time) { [weak self] in
            guard let self, ending == nil else { return }
            self.world.trace("user", "resumes")
            self.client?.setPaused(false)
        }
    }

    private func closes(_ code: CloseCode?, _ reason: String) {
        guard let client, close == nil else { return }
        world.trace("user", "closes with \(code.map(String.init) ?? "no code")")
        world.count("user closes")
        close = (code, reason)
        client.close(code, reason)
    }

    // What the client reports

    func told(_ what: @autoclosure () -> String) {
        world.require(ending == nil, "reported after the end: \(what())")
        world.trace("user", "told \(what())")
    }

    func didOpen() {
        told("open")
        world.require(!opened, "opened twice")
        opened = true
    }

    /// The messages of one callback: the user's actions in it apply to later ones.
    func batch(_ messages: [(MessageKind, UnsafeRawBufferPointer)]) {
        world.require(opened, "a message before it was open")
        world.require(close == nil, "a message after the user closed")
        world.require(partial == nil, "a message inside another that comes in pieces")
        for (kind, bytes) in messages {
            told("\(kind) of \(bytes.count) bytes")
            delivered.append((kind == .text ? 1 : 2, Array(bytes)))
            if random.chance(plan.echoes) { send(kind, Array(bytes)) }
            if random.chance(plan.pauses) { pause(for: random.milliseconds(0...300)) }
            if random.chance(plan.closes) { closes(.normal, "in a callback") }
        }
    }

    func piece(_ kind: MessageKind, _ bytes: [UInt8], isFirst: Bool, isLast: Bool) {
        told("a piece of \(kind) of \(bytes.count) bytes")
        world.count("piece")
        world.require(close == nil, "a piece after the user closed")
        world.require(
            isFirst == (partial == nil), "a first piece inside a message, or no first piece")
        world.require(partial == nil || partial?.kind == kind, "a piece of another kind")
        world.require(
            kind == .binary || String(validating: bytes, as: UTF8.self) != nil,
            "a piece of text that is cut inside a character")
        let whole = (partial?.bytes ?? []) + bytes
        partial = isLast ? nil : (kind, whole)
        guard isLast || random.chance(3) else { return }
        if isLast { delivered.append((kind == .text ? 1 : 2, whole)) }
        if random.chance(plan.pauses) { pause(for: random.milliseconds(0...300)) }
        if random.chance(plan.closes) { closes(.normal, "in a callback") }
    }

    func pong(_ time: Duration) {
        told("pong after \(time)")
        pongCount += 1
    }

    func failed(_ error: RealtimeError) {
        told("error: \(error)")
        errors.append(error.code)
    }

    func drained() { told("drained") }

    func closed(_ ending: Ending) {
        told("closed: \(ending)")
        self.ending = ending
    }
}
