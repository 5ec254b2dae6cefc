import Session

/// One socket: the network in both directions, and the server's end of it.
final class PusherLink {
    let number: UInt64
    let socketID: String
    private let world: World
    private var random: Random
    private let slowest: Int
    private var lastUp: Instant
    private var lastDown: Instant

    // The client's end.
    var isOpen = false
    /// The client has seen `connection_established`.
    var isConfirmed = false
    /// The client's socket has ended, or was dropped.
    private(set) var isDropped = false
    // The server's end.
    var isGreeted = false
    private(set) var isEnded = false
    /// Nothing passes any more, in either direction.
    var isStalled = false
    var subscribed: Set<String> = []
    /// Channels that the server has confirmed before they were subscribed.
    var unasked: Set<String> = []
    var user: String?
    /// The users of all sign-ins that the server has confirmed.
    var users: Set<String> = []
    /// Sign-ins are confirmed in their order, not before this time.
    var userKnownAt: Instant
    /// The members that the server has reported, by channel.
    var reported: [String: [String]] = [:]
    var pongDue: World.Alarm?

    init(_ number: UInt64, _ world: World, slowest: Int, _ random: Random) {
        self.number = number
        socketID = "\(number).\(number * 7 + 1)"
        self.world = world
        self.random = random
        self.slowest = slowest
        lastUp = world.now
        lastDown = world.now
        userKnownAt = world.now
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
    func end() {
        isEnded = true
        pongDue?.cancel()
    }
}
