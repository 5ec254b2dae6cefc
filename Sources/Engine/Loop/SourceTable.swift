/// The sources that a loop watches, by the tokens that epoll returns. A token consists of an index
/// and a generation, so that a late event for a removed source does not reach the next one.
struct SourceTable {
    private struct Slot {
        var source: (any LoopSource)?
        var generation: UInt32
    }

    private var slots: [Slot] = []
    private var free: [Int] = []

    var all: [any LoopSource] { slots.compactMap { $0.source } }

    /// The source, or nil if it was removed.
    subscript(token: UInt64) -> (any LoopSource)? {
        let index = SourceTable.index(of: token)
        guard index < slots.count, slots[index].generation == UInt32(token >> 32) else {
            return nil
        }
        return slots[index].source
    }

    /// - Returns: the source's token, below 1 << 62.
    mutating func add(_ source: any LoopSource) -> UInt64 {
        let index = free.popLast() ?? slots.count
        if index == slots.count { slots.append(Slot(source: nil, generation: 0)) }
        slots[index].source = source
        return UInt64(slots[index].generation) << 32 | UInt64(index)
    }

    mutating func remove(_ token: UInt64) {
        let index = SourceTable.index(of: token)
        slots[index].source = nil
        // 30 bits; see `add`.
        slots[index].generation = (slots[index].generation + 1) & 0x3FFF_FFFF
        free.append(index)
    }

    private static func index(of token: UInt64) -> Int {
        Int(UInt32(truncatingIfNeeded: token))
    }
}
