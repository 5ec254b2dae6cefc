import Session

/// A second reading of the rules about pings: when one may be sent, and when the connection counts
/// as lost.
struct PusherPings {
    private struct Ping {
        let at: Instant
        /// Its position among all bytes sent, and when bytes before it arrived last.
        let position: UInt64
        var progressAt: Instant?
    }

    private let world: World
    private var heardAt: Instant
    /// Those that were sent since anything came from the server.
    private var pings: [Ping] = []
    /// A ping may come without silence before.
    var isForced = false
    /// The silence after which a ping is due.
    var timeout = Duration.zero

    init(_ world: World) {
        self.world = world
        heardAt = world.now
    }

    /// When the last one was sent that is not answered.
    var last: Instant? { pings.last?.at }

    /// A new connection.
    mutating func reset() { pings = [] }

    /// The client reads again.
    mutating func resumed() {
        heardAt = world.now
        pings = []
    }

    /// Something has come from the server.
    mutating func heard() {
        resumed()
        isForced = false
    }

    /// - Parameter isFence: whether a channel needs it that was subscribed again.
    mutating func sent(position: UInt64, isFence: Bool) {
        let silence = world.now - heardAt
        world.require(
            isForced || isFence || silence >= timeout, "a ping after \(silence), and not \(timeout)"
        )
        pings.append(Ping(at: world.now, position: position))
        world.count("ping")
    }

    /// The bytes up to this position have arrived at the server.
    mutating func arrived(_ position: UInt64) {
        for index in pings.indices where position <= pings[index].position {
            pings[index].progressAt = world.now
        }
    }

    /// The connection counts as lost, which only a ping without an answer may cause.
    /// - Parameter timeout: for its answer. It begins anew when it is over, if bytes before the
    ///   ping have arrived in it.
    func checkLoss(_ timeout: Duration) {
        let isDue = pings.contains { ping in
            let waited = world.now - ping.at
            let idle = ping.progressAt.map { world.now - $0 } ?? waited
            return min(waited, idle) >= timeout && (waited == timeout || ping.progressAt != nil)
        }
        world.require(isDue, "is lost, and no ping has waited for \(timeout)")
        world.count("no pong")
    }
}
