import Session
import Wire

/// One socket, and what each end knows of it.
final class DDPLink: MessageLink {
    let openedAt: Instant
    // The client's end.
    /// It has sent `connect`.
    var isGreeted = false
    /// It has seen `connected`.
    var isConfirmed = false
    /// It has seen `failed`.
    var isRefusal = false

    // The server's end.
    /// The session of this connection; nil before `connect`.
    var session: DDPServerSession?
    /// It reads nothing more.
    var isRefused = false
    /// The version that the client offered.
    var version = ""
    /// It has heard something since its last look.
    var hasHeard = true
    var pongDue: World.Alarm?

    override init(
        _ number: UInt64, _ world: World, slowest: Int, uplink: ClosedRange<Int>?, _ random: Random
    ) {
        openedAt = world.now
        super.init(number, world, slowest: slowest, uplink: uplink, random)
    }

    override func end() {
        super.end()
        pongDue?.cancel()
    }
}
