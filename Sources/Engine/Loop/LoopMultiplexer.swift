/// Drives many sockets of its own in the loop's epoll: libcurl's multi handle. A loop has at most
/// one, which takes part in each turn. The loop's owner calls these methods, in this order.
protocol LoopMultiplexer: AnyObject {
    /// - Parameter ready: how many sockets, of any kind, may be ready.
    func beginTurn(ready: Int)
    /// epoll reports that one of the multiplexer's sockets is ready.
    func isReady(_ socket: Int32, _ events: UInt32)
    /// Handles ready sockets. It may leave some of them for a later turn.
    func handleReady()
    /// Reports completed exchanges, because timers that are due fire next.
    func finish()
    var progress: ReadyProgress { get }
    /// The turn that `Loop.scheduleMultiplexer` asked for.
    func turn()
    /// The loop has ended.
    func close()
}

/// How much work is waiting for a multiplexer, and how much it has ever done.
struct ReadyProgress {
    /// Sockets that were ready, and how many of them have been handled.
    var queued: UInt64 = 0
    var handled: UInt64 = 0
    /// Rounds over exchanges that were held up, and how many more rounds they need.
    var rounds: UInt64 = 0
    var roundsLeft: UInt64 = 0

    var isComplete: Bool { handled >= queued && roundsLeft == 0 }

    /// True once everything that was waiting at `start` has been handled.
    func hasPassed(_ start: ReadyProgress) -> Bool {
        handled >= start.queued && rounds >= start.rounds + start.roundsLeft
    }
}
