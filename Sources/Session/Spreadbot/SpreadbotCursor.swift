import Wire

/// The position in the messages of a session, whichever leg delivered them, and the ids of the
/// messages delivered last (docs/spreadbot.md, B7 and B8). Ids are bytes (G1).
struct SpreadbotCursor: Sendable {
    /// The id of the last message delivered that had one; "" for none.
    private(set) var id: String
    /// The ids delivered last; a ring once it is full.
    private var recent: [[UInt8]] = []
    /// The position of each id in `recent`.
    private var positions: [[UInt8]: Int] = [:]
    private var oldest = 0
    /// After a new attach, the server may repeat delivered messages until it sends a new one.
    private var mayRepeat = false

    private static let remembered = 256

    init(id: String = "") { self.id = id }

    /// Messages from now on belong to a new attach.
    mutating func attached() { mayRepeat = !recent.isEmpty }

    /// Moves to an id that came without a message. An id that a new attach repeats does not move
    /// the cursor back.
    mutating func move(to id: UnsafeRawBufferPointer) {
        guard SpreadbotID.isCursor(id), !(mayRepeat && positions[Array(id)] != nil) else { return }
        self.id = String(decoding: id, as: UTF8.self)
    }

    /// Handles a message.
    /// - Parameter id: the message's id; nil for a message without one, which is never a duplicate.
    /// - Returns: false if the message was delivered before.
    mutating func accepts(_ id: UnsafeRawBufferPointer?) -> Bool {
        // With an id that does not fit into a header, each later attempt would fail.
        guard let id, SpreadbotID.isCursor(id) else { return true }
        let bytes = Array(id)
        if mayRepeat {
            if positions[bytes] != nil { return false }
            mayRepeat = false
        }
        self.id = String(decoding: id, as: UTF8.self)
        remember(bytes)
        return true
    }

    /// A server that restarts its count may use an id twice; the later position replaces the
    /// earlier.
    private mutating func remember(_ id: [UInt8]) {
        if recent.count < SpreadbotCursor.remembered {
            positions[id] = recent.count
            recent.append(id)
            return
        }
        if positions[recent[oldest]] == oldest { positions[recent[oldest]] = nil }
        recent[oldest] = id
        positions[id] = oldest
        oldest = (oldest + 1) % SpreadbotCursor.remembered
    }
}
