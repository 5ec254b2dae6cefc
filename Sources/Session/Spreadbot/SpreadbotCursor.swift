import Wire

/// How far the messages of a session have come, whichever leg brought them, and which ones were
/// delivered already (docs/spreadbot.md, B7 and B8). Ids are bytes (G1).
struct SpreadbotCursor: Sendable {
    /// Of the last message delivered that had one; "" for none.
    private(set) var id: String
    /// Those delivered last, a ring once it is full.
    private var recent: [[UInt8]] = []
    /// Where each was delivered last.
    private var places: [[UInt8]: Int] = [:]
    private var oldest = 0
    /// A new attach may repeat what was delivered, until it brings something new.
    private var mayRepeat = false

    private static let remembered = 256

    init(id: String = "") { self.id = id }

    /// What comes from now on is of a new attach.
    mutating func attached() { mayRepeat = !recent.isEmpty }

    /// It stands behind this id, without a message that had it. An id that a new attach repeats
    /// does not lead back.
    mutating func move(to id: UnsafeRawBufferPointer) {
        guard SpreadbotID.isCursor(id), !(mayRepeat && places[Array(id)] != nil) else { return }
        self.id = String(decoding: id, as: UTF8.self)
    }

    /// A message has come.
    /// - Parameter id: its own; nil for a message without one, which is never a duplicate.
    /// - Returns: false for one that was delivered before.
    mutating func accepts(_ id: UnsafeRawBufferPointer?) -> Bool {
        // What no header can say would have every later attempt fail.
        guard let id, SpreadbotID.isCursor(id) else { return true }
        let bytes = Array(id)
        if mayRepeat {
            if places[bytes] != nil { return false }
            mayRepeat = false
        }
        self.id = String(decoding: id, as: UTF8.self)
        remember(bytes)
        return true
    }

    /// A server that counts anew gives an id twice: the later place holds.
    private mutating func remember(_ id: [UInt8]) {
        if recent.count < SpreadbotCursor.remembered {
            places[id] = recent.count
            recent.append(id)
            return
        }
        if places[recent[oldest]] == oldest { places[recent[oldest]] = nil }
        recent[oldest] = id
        places[id] = oldest
        oldest = (oldest + 1) % SpreadbotCursor.remembered
    }
}
