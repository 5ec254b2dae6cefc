internal import Wire

/// Takes documents out of a live query's list and puts others into it, in several calls if they are
/// many. It finds their positions before and after.
struct LiveListUpdate: Sendable {
    private(set) var affected: [AffectedEntry]
    /// Which of the affected documents the old list has, in its order. Complete at the end.
    private(set) var old: [Int] = []
    /// The same of the new list.
    private(set) var new: [Int] = []
    /// All of the list is walked over, because so much changes.
    private let isMany: Bool
    private var phase = Phase.find
    /// How many elements the phase has done.
    private var done = 0
    private var merge = LiveListMerge()

    /// If few change, the phases are these; if many do, they are those of the merge.
    private enum Phase {
        case find, remove, insert, findAgain, last
    }

    /// More changes than the list's count divided by this are merged into it in one pass.
    private static let manyChanges = 8
    /// How many steps it costs to find, insert or remove an entry of a long list.
    private static let searchSteps = 3

    init(_ affected: [AffectedEntry], of list: LiveList) {
        self.affected = affected
        isMany = affected.count > list.count / LiveListUpdate.manyChanges
    }

    /// - Returns: whether it is done.
    mutating func run(_ list: inout LiveList, _ budget: inout StepBudget) -> Bool {
        guard !isMany else {
            return merge.run(&affected, &old, &new, &list, &budget)
        }
        while phase != .last {
            guard runPhase(&list, &budget) else { return false }
            done = 0
        }
        return true
    }

    // MARK: Few changes in a long list

    private mutating func runPhase(_ list: inout LiveList, _ budget: inout StepBudget) -> Bool {
        switch phase {
        case .find:
            while let number = next(before: affected.count, &budget) {
                guard let entry = affected[number].old else { continue }
                affected[number].oldIndex = list.index(of: entry) ?? -1
            }
            guard done == affected.count else { return false }
            old = ListDifference.order(affected) { $0.oldIndex }
            phase = .remove
        case .remove:
            while let number = next(before: old.count, &budget) {
                list.remove(at: affected[old[old.count - 1 - number]].oldIndex)
            }
            guard done == old.count else { return false }
            phase = .insert
        case .insert:
            while let number = next(before: affected.count, &budget) {
                if let entry = affected[number].new { list.insert(entry) }
            }
            guard done == affected.count else { return false }
            phase = .findAgain
        case .findAgain:
            while let number = next(before: affected.count, &budget) {
                guard let entry = affected[number].new else { continue }
                affected[number].newIndex = list.index(of: entry) ?? -1
            }
            guard done == affected.count else { return false }
            new = ListDifference.order(affected) { $0.newIndex }
            phase = .last
        case .last: break
        }
        return true
    }

    /// The phase's next element; nil at the end, or if another call must continue.
    private mutating func next(before end: Int, _ budget: inout StepBudget) -> Int? {
        guard done < end, !budget.isSpent else { return nil }
        budget.spend(LiveListUpdate.searchSteps)
        defer { done += 1 }
        return done
    }
}

/// Makes a new list from all entries of an old one that stay, and those that come.
private struct LiveListMerge: Sendable {
    /// The numbers of the affected documents that the old list may have.
    private var numbers: [DocumentID: Int] = [:]
    private var named = 0
    /// The numbers of those that come, and their order.
    private var coming: [Int] = []
    private var sort: PositionSort?
    private var isSorted = false
    /// How many of `coming` are in the new list.
    private var arrived = 0
    /// The chunk of the old list that is next, and the position of its first entry.
    private var chunk = 0
    private var index = 0
    private var merged = LiveListBuilder()

    mutating func run(
        _ affected: inout [AffectedEntry], _ old: inout [Int], _ new: inout [Int],
        _ list: inout LiveList, _ budget: inout StepBudget
    ) -> Bool {
        guard nameAll(affected, &budget), sortComing(affected, list.order, &budget) else {
            return false
        }
        while chunk < list.chunkCount {
            guard !budget.isSpent else { return false }
            let entries = list.takeChunk(chunk)
            budget.spend(entries.count)
            chunk += 1
            for entry in entries {
                defer { index += 1 }
                if let number = numbers[entry.id] {
                    affected[number].oldIndex = index
                    old.append(number)
                    continue
                }
                while arrived < coming.count, let next = affected[coming[arrived]].new,
                    list.order.precedes(next, entry)
                {
                    append(next, &affected, &new)
                }
                merged.append(entry)
            }
        }
        while arrived < coming.count {
            guard !budget.isSpent else { return false }
            budget.spend()
            guard let next = affected[coming[arrived]].new else { break }
            append(next, &affected, &new)
        }
        list.fill(merged.takeChunks())
        return true
    }

    private mutating func nameAll(
        _ affected: [AffectedEntry], _ budget: inout StepBudget
    ) -> Bool {
        if named == 0 { numbers.reserveCapacity(affected.count) }
        while named < affected.count {
            guard !budget.isSpent else { return false }
            budget.spend()
            if affected[named].old != nil { numbers[affected[named].id] = named }
            if affected[named].new != nil { coming.append(named) }
            named += 1
        }
        return true
    }

    private mutating func sortComing(
        _ affected: [AffectedEntry], _ order: LiveOrder, _ budget: inout StepBudget
    ) -> Bool {
        guard !isSorted else { return true }
        if sort == nil {
            sort = PositionSort(
                count: coming.count, weights: order.weights(of: coming.map { affected[$0].new }))
        }
        let isDone =
            sort?.run(&budget) { left, right in
                guard let first = affected[coming[left]].new,
                    let second = affected[coming[right]].new
                else { return false }
                return order.precedes(first, second)
            } ?? true
        guard isDone else { return false }
        coming = sort?.positions.map { coming[$0] } ?? []
        sort = nil
        isSorted = true
        return true
    }

    private mutating func append(
        _ entry: LiveEntry, _ affected: inout [AffectedEntry], _ new: inout [Int]
    ) {
        affected[coming[arrived]].newIndex = merged.count
        new.append(coming[arrived])
        merged.append(entry)
        arrived += 1
    }
}
