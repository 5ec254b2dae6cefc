import Wire

/// Decides which polls may follow each other at once. A server that is asked again with the same
/// cursor may return the same response forever.
///
/// Without a cursor, one kind of server knows which messages its client has seen: it returns those
/// that are waiting, and then holds a poll. Another kind never holds polls. It has one page for all
/// clients, which may change with each request.
struct LongPollBurst: Sendable {
    private struct Body: Sendable, Equatable {
        var checksum: UInt32 = 0
        var count = 0
    }

    private var last: Body?
    private var current = Body()
    /// Messages in a row that arrived at once.
    private var messages = 0
    /// Messages in a row that equalled the one before.
    private var repeats = 0

    /// The cursors of the latest polls since the server last held one.
    private var positions: [LongPollCursor] = []

    private static let mostPositions = 8
    private static let mostMessages = 20
    /// A queue may hold the same message several times.
    private static let mostRepeats = 4

    mutating func beginAnswer() { current = Body() }

    /// Counts bytes of the response's body.
    mutating func received(_ bytes: UnsafeRawBufferPointer) {
        current.checksum = crc(bytes, after: current.checksum)
        current.count += bytes.count
    }

    /// The response was delivered.
    /// - Returns: whether the next poll must wait, because the burst is over.
    mutating func delivered(wasHeld: Bool) -> Bool {
        if wasHeld {
            self.wasHeld()
        } else {
            messages += 1
            repeats = current == last ? repeats + 1 : 0
        }
        last = current
        return messages > LongPollBurst.mostMessages || repeats > LongPollBurst.mostRepeats
    }

    /// The response was delivered, and contains a cursor.
    /// - Returns: whether the next poll must wait, because one of the latest polls had the same
    ///   cursor.
    mutating func delivered(
        from position: LongPollCursor, to next: LongPollCursor,
        _ configuration: LongPollConfiguration, wasHeld: Bool
    ) -> Bool {
        if wasHeld { self.wasHeld() }
        if positions.count == LongPollBurst.mostPositions { positions.removeFirst() }
        positions.append(position)
        return !positions.allSatisfy { next.asksForMore(than: $0, configuration) }
    }

    /// A poll was held, with any response: a new burst may begin.
    mutating func wasHeld() { (messages, repeats, positions) = (0, 0, []) }
}
