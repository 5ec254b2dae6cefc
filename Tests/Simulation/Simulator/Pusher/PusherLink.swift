import Session

/// One socket, and the server's end of it.
final class PusherLink: MessageLink {
    let socketID: String

    /// The client has seen `connection_established`.
    var isConfirmed = false
    /// Channels that were subscribed again after 30 s without an answer.
    var repeated: Set<String> = []
    // The server's end.
    var isGreeted = false
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

    override init(
        _ number: UInt64, _ world: World, slowest: Int, uplink: ClosedRange<Int>?, _ random: Random
    ) {
        socketID = "\(number).\(number * 7 + 1)"
        userKnownAt = world.now
        super.init(number, world, slowest: slowest, uplink: uplink, random)
    }

    override func end() {
        super.end()
        pongDue?.cancel()
    }
}
