import Wire

/// Which polls may follow one another at once: the ones that the server's answers show to be worth
/// it. A server that is asked where it was asked before may give the same answers for ever.
///
/// Without a cursor, a server that knows by itself what its reader has seen hands out what has
/// gathered, and then holds a poll. One that never does has a page for everyone: the same each
/// time, or another with each look.
struct LongPollBurst: Sendable {
    private struct Body: Sendable, Equatable {
        var checksum: UInt32 = 0
        var count = 0
    }

    private var last: Body?
    private var current = Body()
    /// Messages in a row that came at once.
    private var messages = 0
    /// Those in a row that equalled the one before.
    private var repeats = 0

    /// Where the latest polls began, since one was held.
    private var places: [LongPollCursor] = []

    private static let mostPlaces = 8
    private static let mostMessages = 20
    /// A queue may well hold the same message a few times.
    private static let mostRepeats = 4

    mutating func beginAnswer() { current = Body() }

    /// Bytes of the answer's body have come.
    mutating func received(_ bytes: UnsafeRawBufferPointer) {
        current.checksum = crc(bytes, after: current.checksum)
        current.count += bytes.count
    }

    /// The answer was delivered.
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

    /// The answer was delivered, and names a cursor.
    /// - Returns: whether the next poll must wait, because one of the latest asked the same.
    mutating func delivered(
        from place: LongPollCursor, to next: LongPollCursor,
        _ configuration: LongPollConfiguration, wasHeld: Bool
    ) -> Bool {
        if wasHeld { self.wasHeld() }
        if places.count == LongPollBurst.mostPlaces { places.removeFirst() }
        places.append(place)
        return !places.allSatisfy { next.asksForMore(than: $0, configuration) }
    }

    /// A poll was held, whatever its answer: the burst is whole again.
    mutating func wasHeld() { (messages, repeats, places) = (0, 0, []) }
}
