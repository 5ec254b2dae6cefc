/// How many entries each chunk of a list has. Finding the chunk of a position, and the position of
/// a chunk, costs the logarithm of the number of chunks (a Fenwick tree).
struct ChunkCounts: Sendable {
    private var counts: [Int]
    /// At `i - 1`: the sum of the counts before `i` whose number is as large as the lowest bit of
    /// `i`.
    private var sums: [Int] = []
    private(set) var total = 0

    init(_ counts: [Int] = []) {
        self.counts = counts
        sum()
    }

    subscript(chunk: Int) -> Int { counts[chunk] }

    mutating func add(_ change: Int, to chunk: Int) {
        counts[chunk] += change
        total += change
        var next = chunk + 1
        while next <= sums.count {
            sums[next - 1] += change
            next += next & -next
        }
    }

    /// Replaces a chunk by others. Costs time for all chunks.
    mutating func replace(_ chunk: Int, by others: [Int]) {
        counts.replaceSubrange(chunk...chunk, with: others)
        sum()
    }

    /// The position of the chunk's first entry.
    func start(of chunk: Int) -> Int {
        var start = 0
        var next = chunk
        while next > 0 {
            start += sums[next - 1]
            next &= next - 1
        }
        return start
    }

    /// The chunk with the entry at a position.
    /// - Parameter position: less than `total`.
    func place(of position: Int) -> (chunk: Int, offset: Int) {
        var chunk = 0
        var offset = position
        var step = sums.isEmpty ? 0 : 1 << (Int.bitWidth - 1 - sums.count.leadingZeroBitCount)
        while step > 0 {
            if chunk + step <= sums.count, sums[chunk + step - 1] <= offset {
                chunk += step
                offset -= sums[chunk - 1]
            }
            step /= 2
        }
        return (chunk, offset)
    }

    private mutating func sum() {
        sums = counts
        total = counts.reduce(0) { $0 + $1 }
        for index in 1..<max(sums.count + 1, 1) {
            let parent = index + (index & -index)
            if parent <= sums.count { sums[parent - 1] += sums[index - 1] }
        }
    }
}
