/// Sorts positions, in several calls if they are many: runs first, which are then merged.
struct PositionSort: Sendable {
    /// The positions. In order at the end.
    private(set) var positions: [Int]
    /// What comparing an element costs beside one step; nil if nothing.
    private let weights: [Int]?
    private var merged: [Int] = []
    /// The length of the runs that are in order; 0 while they are made.
    private var width = 0
    /// How far this pass is.
    private var start = 0
    /// Of the two runs that are being merged, what is not merged yet; nil between two pairs.
    private var pair: (left: Range<Int>, right: Range<Int>)?

    /// A run is sorted at once.
    private static let run = 256

    init(count: Int, weights: [Int]?) {
        positions = Array(0..<count)
        self.weights = weights
    }

    /// - Returns: whether all are in order.
    mutating func run(_ budget: inout StepBudget, by precedes: (Int, Int) -> Bool) -> Bool {
        guard weights != nil || positions.count > PositionSort.run else {
            positions = positions.sorted(by: precedes)
            budget.spend(positions.count)
            return true
        }
        if width == 0 {
            while start < positions.count {
                guard !budget.isSpent else { return false }
                sortRun(&budget, by: precedes)
            }
            width = runLength
            start = positions.count
        }
        while width < positions.count {
            guard mergeRuns(&budget, by: precedes) else { return false }
        }
        return true
    }

    /// Elements that are costly to compare are not sorted in long runs.
    private var runLength: Int { weights == nil ? PositionSort.run : 1 }

    private mutating func sortRun(_ budget: inout StepBudget, by precedes: (Int, Int) -> Bool) {
        let end = min(start + runLength, positions.count)
        if end - start > 1 {
            positions.replaceSubrange(
                start..<end, with: positions[start..<end].sorted(by: precedes))
        }
        budget.spend(end - start)
        start = end
    }

    /// Merges pairs of runs, and begins the next pass after the last of them.
    private mutating func mergeRuns(
        _ budget: inout StepBudget, by precedes: (Int, Int) -> Bool
    ) -> Bool {
        if start >= positions.count, pair == nil {
            start = 0
            merged.removeAll(keepingCapacity: true)
            merged.reserveCapacity(positions.count)
        }
        while start < positions.count {
            let middle = min(start + width, positions.count)
            let end = min(middle + width, positions.count)
            var (left, right) = pair ?? (start..<middle, middle..<end)
            while !left.isEmpty, !right.isEmpty {
                guard !budget.isSpent else {
                    pair = (left, right)
                    return false
                }
                let (first, second) = (positions[left.lowerBound], positions[right.lowerBound])
                budget.spend(1 + min(weights?[first] ?? 0, weights?[second] ?? 0))
                if precedes(second, first) {
                    merged.append(second)
                    right = right.dropFirst()
                } else {
                    merged.append(first)
                    left = left.dropFirst()
                }
            }
            merged += positions[left]
            merged += positions[right]
            pair = nil
            start = end
        }
        swap(&positions, &merged)
        width *= 2
        return true
    }
}
