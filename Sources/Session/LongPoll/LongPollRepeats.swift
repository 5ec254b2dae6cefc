import Wire

/// Finds out whether a server gives the same answer again and again to polls without a cursor, as
/// any static URL does. A server that hands out its messages one by one gives different ones.
struct LongPollRepeats: Sendable {
    private struct Body: Sendable, Equatable {
        var checksum: UInt32 = 0
        var count = 0
    }

    private var last: Body?
    private var current = Body()
    /// Answers in a row that came at once and equalled the one before.
    private var count = 0

    /// A queue may well hold the same message a few times.
    private static let limit = 4

    mutating func beginAnswer() { current = Body() }

    /// Bytes of the answer's body have come.
    mutating func received(_ bytes: UnsafeRawBufferPointer) {
        current.checksum = crc(bytes, after: current.checksum)
        current.count += bytes.count
    }

    /// The answer was delivered.
    /// - Returns: whether the next poll must wait, because the server repeats itself.
    mutating func delivered(wasHeld: Bool) -> Bool {
        count = current == last && !wasHeld ? count + 1 : 0
        last = current
        return count > LongPollRepeats.limit
    }

    /// A server that holds a poll does not give the same answer to each.
    mutating func wasHeld() { count = 0 }
}
