/// Drives many sockets of its own in the loop's epoll: libcurl's multi handle. A loop has one at
/// most, which takes part in each turn. All are called by the loop's owner, in this order.
protocol LoopMultiplexer: AnyObject {
    /// - Parameter ready: how many sockets may be ready, of any kind.
    func beginTurn(ready: Int)
    /// epoll says that a socket of its own is ready.
    func isReady(_ socket: Int32, _ events: UInt32)
    /// Looks at the sockets that are ready, at some of them in a later turn.
    func handleReady()
    /// Reports what has come: timers that are due fire next.
    func finish()
    var progress: ReadyProgress { get }
    /// The turn that `Loop.scheduleMultiplexer` asked for.
    func turn()
    /// The loop is over.
    func close()
}

/// What a multiplexer has not looked at, and how far it has come ever.
struct ReadyProgress {
    /// Sockets that were ready, and those of them that were looked at.
    var queued: UInt64 = 0
    var handled: UInt64 = 0
    /// Rounds over exchanges that were held up, and how many are still needed.
    var rounds: UInt64 = 0
    var roundsLeft: UInt64 = 0

    var isComplete: Bool { handled >= queued && roundsLeft == 0 }

    /// Whether it has come to the end of what waited at `start`.
    func hasPassed(_ start: ReadyProgress) -> Bool {
        handled >= start.queued && rounds >= start.rounds + start.roundsLeft
    }
}
