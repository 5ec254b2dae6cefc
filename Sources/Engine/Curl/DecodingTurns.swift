import Session

/// Whose answer is decoded.
protocol DecodingUser: AnyObject {
    /// It is queued for a turn.
    var waitsToDecode: Bool { get set }
    /// Decodes and delivers, as far as it may.
    func deliver()
}

/// Shares the decoding of answers among a loop's transfers, so that no answer keeps the loop busy
/// however much it grows. Each turn of the loop decodes a limited number of bytes, for a limited
/// time. Transfers that have more to decode than that take turns.
final class DecodingTurns {
    /// Transfers that have more to decode; the one that has waited longest is first.
    private var waiting: [any DecodingUser] = []
    /// What was decoded since the loop's last turn, and when that is enough.
    private var bytes = 0
    private var end: Instant?
    /// The transfer at the front of the queue has its turn.
    private var isServing = false
    private var storage: UnsafeMutableRawBufferPointer?

    /// The most that is decoded at once.
    private static let pieceBytes = 64 << 10
    /// The most that one transfer decodes before others have their turn.
    static let bytesPerTransfer = 256 << 10
    /// What a turn of the loop spends on decoding, and on the handlers of what is decoded.
    private static let timePerTurn = Duration.milliseconds(20)

    deinit { storage?.deallocate() }

    /// A decoded piece lies here while it is delivered.
    var space: UnsafeMutableRawBufferPointer {
        if let storage { return storage }
        let made = UnsafeMutableRawBufferPointer.allocate(
            byteCount: DecodingTurns.pieceBytes, alignment: 64)
        storage = made
        return made
    }

    /// Whether the loop's turn has bytes and time left.
    var hasRoom: Bool {
        guard bytes < Loop.bytesPerTurn else { return false }
        return end.map { Loop.now() < $0 } ?? true
    }

    /// Whether `transfer` may decode now. If not, its turn comes with `serve`.
    func admits(_ transfer: any DecodingUser) -> Bool {
        guard !transfer.waitsToDecode else { return false }
        guard hasRoom, isServing || waiting.isEmpty else {
            enqueue(transfer)
            return false
        }
        if end == nil { end = Loop.now() + DecodingTurns.timePerTurn }
        return true
    }

    /// Gives `transfer` another turn, after those that wait already.
    func enqueue(_ transfer: any DecodingUser) {
        transfer.waitsToDecode = true
        waiting.append(transfer)
    }

    /// So many bytes were consumed and produced.
    func count(_ work: Int) { bytes += work }

    /// Lets those that wait decode, one after the other.
    func serve() {
        while !waiting.isEmpty, hasRoom {
            let next = waiting.removeFirst()
            next.waitsToDecode = false
            isServing = true
            next.deliver()
            isServing = false
        }
    }

    /// The loop's turn is over.
    /// - Returns: whether there is more to decode in the next one.
    func endTurn() -> Bool {
        bytes = 0
        end = nil
        return !waiting.isEmpty
    }

    func removeAll() { waiting = [] }
}
