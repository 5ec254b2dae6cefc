import Session

/// One socket of a protocol whose messages arrive whole: the network in both directions. Messages
/// keep their order; an end of the socket loses those that are on their way.
class MessageLink {
    let number: UInt64
    private let world: World
    private var random: Random
    private let slowest: Int
    private var lastUp: Instant
    private var lastDown: Instant

    // The client's end.
    var isOpen = false
    /// The client's socket has ended, or was dropped.
    private(set) var isDropped = false
    // The server's end.
    private(set) var isEnded = false
    /// Nothing passes any more, in either direction.
    var isStalled = false

    /// - Parameter slowest: the longest time that a message takes, in milliseconds.
    init(_ number: UInt64, _ world: World, slowest: Int, _ random: Random) {
        self.number = number
        self.world = world
        self.random = random
        self.slowest = slowest
        lastUp = world.now
        lastDown = world.now
    }

    /// Runs `body` when what the client sends now has arrived.
    func up(_ body: @escaping () -> Void) {
        lastUp = max(lastUp, world.now + random.milliseconds(0...slowest))
        world.at(lastUp) { [weak self] in
            guard let self, !isEnded, !isStalled else { return }
            body()
        }
    }

    /// Runs `body` when what the server sends now has arrived.
    func down(_ body: @escaping () -> Void) {
        guard !isEnded else { return }
        lastDown = max(lastDown, world.now + random.milliseconds(0...slowest))
        world.at(lastDown) { [weak self] in
            guard let self, !isDropped, !isStalled else { return }
            body()
        }
    }

    /// The client's end is gone.
    func drop() { isDropped = true }

    /// The server's end is gone.
    func end() { isEnded = true }
}
