/// How far the messages of a session have come, whichever leg brought them, and which ones were
/// delivered already (sse-poll-rest.md, B7 and B8). Ids are bytes (G1).
struct SpreadbotCursor: Sendable {
    /// Of the last message delivered that had one; "" for none.
    private(set) var id: String
    /// Those delivered last, a ring once it is full.
    private var recent: [[UInt8]] = []
    private var known: Set<[UInt8]> = []
    private var oldest = 0
    /// A new attach may repeat what was delivered, until it brings something new.
    private var mayRepeat = false

    private static let remembered = 256

    init(id: String = "") { self.id = id }

    /// What comes from now on is of a new attach.
    mutating func attached() { mayRepeat = !recent.isEmpty }

    /// A message has come.
    /// - Parameter id: its own; nil for a message without one, which is never a duplicate.
    /// - Returns: false for one that was delivered before.
    mutating func accepts(_ id: UnsafeRawBufferPointer?) -> Bool {
        guard let id, !id.isEmpty else { return true }
        let bytes = Array(id)
        if mayRepeat {
            if known.contains(bytes) { return false }
            mayRepeat = false
        }
        self.id = String(decoding: id, as: UTF8.self)
        remember(bytes)
        return true
    }

    private mutating func remember(_ id: [UInt8]) {
        guard known.insert(id).inserted else { return }
        if recent.count < SpreadbotCursor.remembered {
            recent.append(id)
        } else {
            known.remove(recent[oldest])
            recent[oldest] = id
            oldest = (oldest + 1) % SpreadbotCursor.remembered
        }
    }
}
