/// The order of a collection's documents while a transaction places some of them before others: a
/// list of slot positions. It costs time for all documents once in such a transaction, and nothing
/// in others; no Meteor server places documents.
struct NaturalOrder: Sendable {
    private struct Node: Sendable {
        var previous = NaturalOrder.none
        var next = NaturalOrder.none
        var isPlaced = false
    }

    private var nodes: [Node]
    private var first = NaturalOrder.none
    private var last = NaturalOrder.none

    private static let none = -1

    /// - Parameters:
    ///   - positions: in order.
    ///   - slots: how many slots there are.
    init(_ positions: [Int], slots: Int) {
        nodes = Array(repeating: Node(), count: slots)
        for position in positions { link(position, before: NaturalOrder.none) }
    }

    /// A new slot, the last one.
    mutating func append(_ position: Int) {
        nodes.append(Node())
        link(position, before: NaturalOrder.none)
    }

    /// A slot that was removed; it becomes the last one.
    mutating func restore(_ position: Int) { link(position, before: NaturalOrder.none) }

    mutating func remove(_ position: Int) {
        let node = nodes[position]
        if node.previous >= 0 { nodes[node.previous].next = node.next } else { first = node.next }
        if node.next >= 0 {
            nodes[node.next].previous = node.previous
        } else {
            last = node.previous
        }
        nodes[position] = Node()
    }

    mutating func place(_ position: Int, before target: Int?) {
        remove(position)
        link(position, before: target ?? NaturalOrder.none)
        nodes[position].isPlaced = true
    }

    private mutating func link(_ position: Int, before target: Int) {
        let previous = target >= 0 ? nodes[target].previous : last
        nodes[position].previous = previous
        nodes[position].next = target
        if previous >= 0 { nodes[previous].next = position } else { first = position }
        if target >= 0 { nodes[target].previous = position } else { last = position }
    }

    /// Ranks for the documents that were placed, between those of their neighbors; for all
    /// documents
    /// if there is no room between them.
    /// - Parameters:
    ///   - ranks: of all slots so far.
    ///   - lastRank: the highest rank of the collection.
    func newRanks(
        ranks: [Int64], lastRank: inout Int64
    ) -> [(position: Int, rank: Int64)] {
        var changes: [(position: Int, rank: Int64)] = []
        var run: [Int] = []
        var low: Int64 = 0
        var position = first
        while position >= 0 {
            if nodes[position].isPlaced {
                run.append(position)
            } else {
                let step = (ranks[position] - low) / Int64(run.count + 1)
                guard step > 0 else { return evenRanks(lastRank: &lastRank) }
                for placed in run {
                    low += step
                    changes.append((placed, low))
                }
                run.removeAll(keepingCapacity: true)
                low = ranks[position]
            }
            position = nodes[position].next
        }
        for placed in run {
            lastRank += DocumentTable.rankDistance
            changes.append((placed, lastRank))
        }
        return changes
    }

    private func evenRanks(lastRank: inout Int64) -> [(position: Int, rank: Int64)] {
        var changes: [(position: Int, rank: Int64)] = []
        lastRank = 0
        var position = first
        while position >= 0 {
            lastRank += DocumentTable.rankDistance
            changes.append((position, lastRank))
            position = nodes[position].next
        }
        return changes
    }
}
