import Session

/// One attempt on one transport, with the network in both directions.
final class SpreadbotSimulatedLeg {
    let attempt: SpreadbotSession.Attempt
    private let world: World
    private let server: SpreadbotServer
    private var random: Random
    private var alarms: [World.Alarm] = []
    private(set) var isOver = false
    var isOpen = false
    /// No bytes pass any more, in either direction.
    var isStalled = false
    /// The server's next message, and the place before which it could not know anything.
    var next = 0
    var floor = 0
    private var isDelivering = false

    private struct Frame {
        let send: SpreadbotSend
        /// When the kernel will have taken all of it.
        let written: Instant
    }
    private var frames: [Frame] = []
    private var lastArrival: Instant

    init(
        _ attempt: SpreadbotSession.Attempt, _ world: World, _ server: SpreadbotServer,
        _ random: Random
    ) {
        self.attempt = attempt
        self.world = world
        self.server = server
        self.random = random
        lastArrival = world.now
    }

    func after(_ delay: Duration, _ body: @escaping () -> Void) {
        alarms.append(
            world.after(delay) { [weak self] in if self?.isOver == false { body() } })
    }

    func end() {
        isOver = true
        for alarm in alarms { alarm.cancel() }
        alarms = []
    }

    // MARK: Messages

    /// Delivers the server's messages, one at a time, until there are no more.
    func deliver(
        _ take: @escaping (SpreadbotServer.Message) -> Void, isPaused: @escaping () -> Bool
    ) {
        guard isOpen, !isDelivering, next < server.messages.count else { return }
        isDelivering = true
        after(random.milliseconds(0...60)) { [self] in
            isDelivering = false
            guard !isStalled, !isPaused(), next < server.messages.count else { return }
            next += 1
            take(server.messages[next - 1])
            if !isOver { deliver(take, isPaused: isPaused) }
        }
    }

    // MARK: Frames

    func write(_ send: SpreadbotSend) {
        let isSlow = random.chance(10)
        let pause = random.milliseconds(isSlow ? 500...4000 : 0...20)
        let written = max(frames.last?.written ?? world.now, world.now) + pause
        frames.append(Frame(send: send, written: written))
        lastArrival = max(lastArrival, written + random.milliseconds(1...200))
        after(lastArrival - world.now) { [self] in
            if !isStalled { server.receive(send, isFrame: true) }
        }
    }

    /// A ping after the frames; a stalled leg never answers it.
    func ping(_ answered: @escaping () -> Void) {
        lastArrival = lastArrival + random.milliseconds(0...5)
        after(lastArrival - world.now + random.milliseconds(1...100)) { [self] in
            if !isStalled { answered() }
        }
    }

    func confirmed(_ id: SpreadbotSend.ID) { frames.removeAll { $0.send.id <= id } }

    /// The last frame that was written completely; 0 for none.
    var written: SpreadbotSend.ID { frames.last { $0.written <= world.now }?.send.id ?? 0 }

    /// The last frame; 0 for none.
    var last: SpreadbotSend.ID { frames.last?.send.id ?? 0 }

    var writtenNumbers: [UInt64] {
        frames.filter { $0.written <= world.now }.map(\.send.number)
    }

    /// The closing handshake, after all frames.
    func close(_ closed: @escaping (_ isClean: Bool) -> Void) {
        let isClean = random.chance(80)
        let wait = isClean ? max(.zero, lastArrival - world.now) : .zero
        after(wait + random.milliseconds(1...200)) { [self] in
            if isClean, !isStalled { closed(true) }
        }
        // The other side does not wait forever.
        after(.seconds(20)) { closed(false) }
    }
}
