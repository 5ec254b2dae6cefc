import Session

/// How long the messages of one connection may take in a turn of the loop, whatever they contain:
/// then what follows waits for the next turn, and timers and other connections run in between.
struct TurnBudget {
    /// So many cheap messages are handled before the clock is asked again, or so many bytes.
    private static let fewMessages = 32
    private static let fewBytes = 8192

    private var turn: UInt64 = 0
    private var end = Instant(nanoseconds: 0)
    private var messages = 0
    private var bytes = 0

    /// To be called after a message that costs little more than its bytes.
    /// - Returns: whether the connection has used its share of this turn.
    mutating func isSpent(bytes: Int, on loop: Loop) -> Bool {
        messages += 1
        self.bytes += bytes
        guard messages >= TurnBudget.fewMessages || self.bytes >= TurnBudget.fewBytes else {
            return false
        }
        return isSpent(on: loop)
    }

    /// To be called after any other message.
    mutating func isSpent(on loop: Loop) -> Bool {
        (messages, bytes) = (0, 0)
        let now = Loop.now()
        guard turn == loop.turnNumber else {
            (turn, end) = (loop.turnNumber, now + loop.timeShare)
            return false
        }
        return now >= end
    }
}
