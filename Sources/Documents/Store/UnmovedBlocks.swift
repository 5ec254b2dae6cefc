/// Decides which entries of an ordered list count as unmoved when the list changes; all others are
/// reported as moved.
///
/// Entries that were next to each other and still are form one block, so that the cost depends on
/// the number of changes and not on the length of the list.
package struct UnmovedBlocks: Sendable {
    /// Entries at the old positions `start..<start + count`, in the same order in the new list.
    /// Blocks do not overlap, and no other block has a position between those of one.
    package struct Block: Sendable {
        let start: Int
        let count: Int

        package init(start: Int, count: Int) {
            self.start = start
            self.count = count
        }
    }

    /// Consecutive lengths of runs: the entries of a block from `skipped` on are the ends of the
    /// best runs with these lengths.
    private struct Piece: Sendable {
        let block: Int
        var skipped = 0
    }

    /// In the order of the new list.
    private let blocks: [Block]
    private var pieces: [Piece] = []
    private var predecessors: [Int] = []

    /// - Parameter blocks: in the order of the new list.
    /// - Returns: for each block, whether its entries are unmoved.
    ///
    /// The unmoved entries are a longest increasing run of old positions. Which one, when several
    /// are longest: each entry extends the longest run so far whose end stood before it in the old
    /// list, and replaces the end of the runs that are one longer. The result is the run that ends
    /// at the last such end. So does Meteor.
    package static func find(in blocks: [Block]) -> [Bool] {
        var search = UnmovedBlocks(blocks)
        var budget = StepBudget.unlimited
        _ = search.run(&budget)
        return search.longestRun
    }

    init(_ blocks: [Block]) {
        self.blocks = blocks
        predecessors.reserveCapacity(blocks.count)
    }

    /// Looks at the blocks, in several calls if they are many.
    /// - Returns: whether all are done, so that `longestRun` is the result.
    mutating func run(_ budget: inout StepBudget) -> Bool {
        // Each block that was placed has a predecessor.
        while predecessors.count < blocks.count {
            guard !budget.isSpent else { return false }
            place(predecessors.count)
            budget.spend()
        }
        return true
    }

    /// The entries of a block follow each other, so they become the ends of runs with consecutive
    /// lengths. They never split an older block: its entries have neighboring old positions, so all
    /// of them are before the new ones or all are after them.
    private mutating func place(_ block: Int) {
        let first = firstPiece(after: blocks[block].start)
        predecessors.append(first > 0 ? pieces[first - 1].block : -1)
        var left = blocks[block].count
        var end = first
        while end < pieces.count, left > 0 {
            let length = blocks[pieces[end].block].count - pieces[end].skipped
            if length > left {
                pieces[end].skipped += left
                left = 0
            } else {
                left -= length
                end += 1
            }
        }
        if end == first + 1 {
            pieces[first] = Piece(block: block)
        } else {
            pieces.replaceSubrange(first..<end, with: CollectionOfOne(Piece(block: block)))
        }
    }

    /// The ends of runs are sorted by old position.
    private func firstPiece(after position: Int) -> Int {
        var low = 0
        var high = pieces.count
        while low < high {
            let middle = low + (high - low) / 2
            if blocks[pieces[middle].block].start > position {
                high = middle
            } else {
                low = middle + 1
            }
        }
        return low
    }

    /// For each block, whether its entries are unmoved.
    var longestRun: [Bool] {
        var isUnmoved = Array(repeating: false, count: blocks.count)
        var block = pieces.last?.block ?? -1
        while block >= 0 {
            isUnmoved[block] = true
            block = predecessors[block]
        }
        return isUnmoved
    }
}
