@testable import Documents
import Testing

struct UnmovedBlocksTests {
    /// The rule as it is written, for single entries: each extends the longest run whose end is
    /// less, and becomes the end of the run of that length.
    private func unmoved(_ positions: [Int]) -> Set<Int> {
        var runs: [[Int]] = []
        for position in positions {
            let length = runs.lastIndex { $0.last ?? 0 < position }.map { $0 + 1 } ?? 0
            let run = (length > 0 ? runs[length - 1] : []) + [position]
            if length < runs.count { runs[length] = run } else { runs.append(run) }
        }
        return Set(runs.last ?? [])
    }

    private func unmovedByBlocks(_ blocks: [UnmovedBlocks.Block]) -> Set<Int> {
        var result: Set<Int> = []
        for (block, isUnmoved) in zip(blocks, UnmovedBlocks.find(in: blocks)) where isUnmoved {
            result.formUnion(block.start..<block.start + block.count)
        }
        return result
    }

    @Test func nothingIsUnmovedInAnEmptyList() {
        #expect(UnmovedBlocks.find(in: []) == [])
    }

    @Test func oneBlockIsUnmoved() {
        #expect(UnmovedBlocks.find(in: [.init(start: 3, count: 5)]) == [true])
    }

    @Test(arguments: [
        // M17: a b c d e becomes c a x e b.
        ([2, 0, 4, 1], [0, 1]), ([1, 0], [0]), ([2, 1, 0], [0]), ([0, 2, 1], [0, 1]),
        ([1, 2, 0], [1, 2]), ([2, 3, 0, 1], [0, 1]), ([3, 0, 1, 2], [0, 1, 2]),
    ])
    func ofEqualRunsTheLastWins(positions: [Int], unmoved: [Int]) {
        let blocks = positions.map { UnmovedBlocks.Block(start: $0, count: 1) }
        #expect(unmovedByBlocks(blocks) == Set(unmoved))
        #expect(self.unmoved(positions) == Set(unmoved))
    }

    @Test func blocksGiveWhatTheirEntriesGive() {
        var random = SeededNumbers(seed: 7)
        for _ in 0..<5_000 {
            var start = 0
            var blocks: [UnmovedBlocks.Block] = []
            for _ in 0..<Int.random(in: 1...9, using: &random) {
                start += Int.random(in: 0...1, using: &random)
                let count = Int.random(in: 1...4, using: &random)
                blocks.append(UnmovedBlocks.Block(start: start, count: count))
                start += count
            }
            blocks.shuffle(using: &random)
            let positions = blocks.flatMap { Array($0.start..<$0.start + $0.count) }
            #expect(unmovedByBlocks(blocks) == unmoved(positions), "\(positions)")
        }
    }
}
