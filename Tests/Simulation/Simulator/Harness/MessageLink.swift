import Session

/// One socket of a protocol whose messages arrive whole: the network in both directions. Messages
/// keep their order; an end of the socket loses those that are on their way.
class MessageLink {
    let number: UInt64
    private let world: World
    private var random: Random
    private let slowest: Int
    /// How many bytes a second pass the client's way out; nil if it is fast.
    private let uplink: Int?
    private var lastUp: Instant
    private var lastDown: Instant
    /// What the client has sent, and how much of that the server's kernel has.
    private(set) var sent = SentBytes()
    /// Called with the position of bytes that have arrived.
    var arrived: ((UInt64) -> Void)?

    // The client's end.
    var isOpen = false
    /// The client's socket has ended, or was dropped.
    private(set) var isDropped = false
    // The server's end.
    private(set) var isEnded = false
    /// Nothing passes any more, in either direction.
    var isStalled = false

    /// - Parameters:
    ///   - slowest: the longest time that a message takes, in milliseconds.
    ///   - uplink: how many bytes a second pass the client's way out, on one of 25 links; on the
    ///     others it is fast.
    init(
        _ number: UInt64, _ world: World, slowest: Int, uplink: ClosedRange<Int>?,
        _ random: Random
    ) {
        // A copy: the other draws stay the same.
        var own = random
        if let uplink, own.chance(4) {
            world.count("slow uplink")
            self.uplink = own.within(uplink)
        } else {
            self.uplink = nil
        }
        self.number = number
        self.world = world
        self.random = random
        self.slowest = slowest
        lastUp = world.now
        lastDown = world.now
    }

    /// Runs `body` when the `count` bytes that the client sends now have arrived.
    func up(_ count: Int = 0, _ body: @escaping () -> Void) {
        lastUp = max(lastUp, world.now + random.milliseconds(0...slowest))
        if let uplink { lastUp = lastUp + .milliseconds(1000 * count / uplink) }
        sent.queued += UInt64(count)
        let end = sent.queued
        world.at(lastUp) { [weak self] in
            guard let self, !isEnded, !isStalled else { return }
            // A ping frame is not counted, so it must not look like the bytes before it.
            if count > 0 {
                sent.arrived = end
                arrived?(end)
            }
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
