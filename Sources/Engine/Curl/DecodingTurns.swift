import Session

/// A transfer whose response is decoded.
protocol DecodingUser: AnyObject {
    /// True while it is queued for a turn.
    var waitsToDecode: Bool { get set }
    /// Decodes and delivers, as far as allowed.
    func deliver()
}

/// Shares the decoding of responses among a loop's transfers, so that no response blocks the loop,
/// however much it grows. Each turn of the loop decodes a limited number of bytes, for a limited
/// time. Transfers with more to decode take turns.
final class DecodingTurns {
    /// Transfers that have more to decode; the one that has waited longest is first.
    private var waiting: [any DecodingUser] = []
    /// Bytes decoded since the loop's last turn, and the time at which decoding stops.
    private var bytes = 0
    private var end: Instant?
    /// The transfer at the front of the queue has its turn.
    private var isServing = false
    private var storage: UnsafeMutableRawBufferPointer?

    /// The most that is decoded at once.
    private static let pieceBytes = 64 << 10
    /// The most that one transfer decodes before others get their turn.
    static let bytesPerTransfer = 256 << 10
    /// How much of a turn may be spent on decoding, including the handlers of the result.
    private static let timePerTurn = Duration.milliseconds(20)

    deinit { storage?.deallocate() }

    /// Holds a decoded piece while it is delivered.
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

    /// Gives `transfer` another turn, after those already waiting.
    func enqueue(_ transfer: any DecodingUser) {
        transfer.waitsToDecode = true
        waiting.append(transfer)
    }

    /// Counts bytes that were consumed and produced.
    func count(_ work: Int) { bytes += work }

    /// Lets waiting transfers decode, one after the other.
    func serve() {
        while !waiting.isEmpty, hasRoom {
            let next = waiting.removeFirst()
            next.waitsToDecode = false
            isServing = true
            next.deliver()
            isServing = false
        }
    }

    /// Call at the end of the loop's turn.
    /// - Returns: whether the next turn has more to decode.
    func endTurn() -> Bool {
        bytes = 0
        end = nil
        return !waiting.isEmpty
    }

    func removeAll() { waiting = [] }
}
