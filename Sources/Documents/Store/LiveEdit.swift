package import Wire

/// How a result changed, by positions (M17). Edits that follow each other can be merged: this is
/// what lets a reader fall behind without missing a change.
struct LiveEdit: MergeableChange {
    /// A document that is new, gone, moved or changed.
    struct Entry: Sendable {
        let id: DocumentID
        /// As in `LiveStep`.
        var oldIndex: Int?
        var newIndex: Int?
        var isMoved = false
        var isTouched = false
    }

    /// In any order; documents that are not among them keep theirs. Once edits were merged, more
    /// documents may be moved than need to be.
    private(set) var entries: [Entry]

    init(_ steps: [LiveStep]) { entries = steps.map { Entry($0) } }

    private init() { entries = [] }

    var size: Int { entries.count }

    /// Halves are merged first, so that many small edits do not each cost the size of what came
    /// before.
    static func merged(_ edits: ArraySlice<LiveEdit>) -> LiveEdit {
        guard edits.count > 1 else { return edits.first ?? LiveEdit() }
        let middle = edits.startIndex + edits.count / 2
        var edit = merged(edits[..<middle])
        edit.follow(with: merged(edits[middle...]))
        return edit
    }

    /// Makes this edit, and then another one, one edit. A document that was inserted and then
    /// deleted is not in it any more, so its size is limited by the lengths of the first and the
    /// last list.
    private mutating func follow(with next: LiveEdit) {
        let (mine, others) = (StillEntries(entries), StillEntries(next.entries))
        // What the next edit may continue: by position in the list between, or by id if it is gone.
        var present: [Int: Int] = [:]
        var gone: [DocumentID: Int] = [:]
        for (number, entry) in entries.enumerated() {
            if let middle = entry.newIndex {
                present[middle] = number
            } else {
                gone[entry.id] = number
            }
        }
        var isContinued = Array(repeating: false, count: entries.count)
        var merged: [Entry] = []
        merged.reserveCapacity(entries.count + next.entries.count)
        for var entry in next.entries {
            let first: Int?
            if let middle = entry.oldIndex {
                first = present[middle]
            } else {
                first = gone[entry.id]
            }
            if let first {
                isContinued[first] = true
                if let both = entries[first].followed(by: entry) { merged.append(both) }
            } else {
                if let middle = entry.oldIndex { entry.oldIndex = mine.oldIndex(of: middle) }
                merged.append(entry)
            }
        }
        for (number, var entry) in entries.enumerated() where !isContinued[number] {
            if let middle = entry.newIndex { entry.newIndex = others.newIndex(of: middle) }
            merged.append(entry)
        }
        entries = merged
    }
}

extension LiveEdit.Entry {
    init(_ step: LiveStep) {
        self.init(
            id: step.id, oldIndex: step.oldIndex, newIndex: step.newIndex, isMoved: step.isMoved,
            isTouched: step.isTouched)
    }

    /// This entry, and then another one of the same document, as one entry.
    /// - Returns: nil if the document comes and goes.
    fileprivate func followed(by next: LiveEdit.Entry) -> LiveEdit.Entry? {
        guard oldIndex != nil || next.newIndex != nil else { return nil }
        var entry = LiveEdit.Entry(id: id, oldIndex: oldIndex, newIndex: next.newIndex)
        guard oldIndex != nil, next.newIndex != nil else { return entry }
        // It may have been gone meanwhile: then it may be back in any place.
        entry.isMoved = isMoved || next.isMoved || newIndex == nil
        entry.isTouched = isTouched || next.isTouched
        return entry
    }
}

/// Maps the positions of entries that stay where they are relative to each other.
private struct StillEntries {
    /// What leaves the old list, and what comes into the new one, ascending.
    private let removed: [Int]
    private let added: [Int]

    init(_ entries: [LiveEdit.Entry]) {
        removed = entries.compactMap { $0.newIndex == nil || $0.isMoved ? $0.oldIndex : nil }
            .sorted()
        added = entries.compactMap { $0.oldIndex == nil || $0.isMoved ? $0.newIndex : nil }
            .sorted()
    }

    func newIndex(of old: Int) -> Int {
        StillEntries.position(old - removed.count(below: old), around: added)
    }

    func oldIndex(of new: Int) -> Int {
        StillEntries.position(new - added.count(below: new), around: removed)
    }

    /// The position of the entry with this number among those that are not in `taken`.
    private static func position(_ number: Int, around taken: [Int]) -> Int {
        var (low, high) = (0, taken.count)
        while low < high {
            let middle = (low + high) / 2
            if taken[middle] - middle <= number { low = middle + 1 } else { high = middle }
        }
        return number + low
    }
}

extension [Int] {
    /// How many elements of a sorted array are less than a number.
    fileprivate func count(below limit: Int) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            if self[middle] < limit { low = middle + 1 } else { high = middle }
        }
        return low
    }
}

extension LiveBatch {
    /// The same changes for a reader who does not see some documents.
    /// - Parameters:
    ///   - hidden: the positions of those documents, ascending: in the old result, and after the
    ///     call in the new one.
    ///   - isHidden: whether a document that was inserted or updated is hidden from now on.
    /// - Returns: the positions are those in the results without them. `before` is nil.
    package func hiding(_ hidden: inout [Int], _ isHidden: (DocumentID) -> Bool) -> LiveBatch {
        let before = hidden
        hidden = hiddenAfter(before, isHidden)
        let (wereHidden, areHidden) = (Set(before), Set(hidden))
        var (gone, present): ([LiveStep], [LiveStep]) = ([], [])
        for var step in steps {
            step.oldIndex = step.oldIndex.flatMap { old in
                wereHidden.contains(old) ? nil : old - before.count(below: old)
            }
            step.newIndex = step.newIndex.flatMap { new in
                areHidden.contains(new) ? nil : new - hidden.count(below: new)
            }
            guard step.oldIndex != nil || step.newIndex != nil else { continue }
            if step.oldIndex == nil || step.newIndex == nil {
                (step.isMoved, step.isUpdated) = (false, false)
            }
            step.before = nil
            if step.newIndex == nil { gone.append(step) } else { present.append(step) }
        }
        gone.sort { ($0.oldIndex ?? 0) < ($1.oldIndex ?? 0) }
        return LiveBatch(
            steps: gone + present, count: count - hidden.count, isInitial: isInitial)
    }

    /// The positions of hidden documents in the new result, ascending.
    private func hiddenAfter(_ before: [Int], _ isHidden: (DocumentID) -> Bool) -> [Int] {
        let still = StillEntries(steps.map { LiveEdit.Entry($0) })
        var after: [Int] = []
        var known: Set<Int> = []
        let wereHidden = Set(before)
        for step in steps {
            if let old = step.oldIndex { known.insert(old) }
            guard let new = step.newIndex else { continue }
            // One that only moved stays what it was.
            let isNew = step.oldIndex == nil || step.isUpdated
            let isStaying = step.oldIndex.map { wereHidden.contains($0) } ?? false
            if isNew ? isHidden(step.id) : isStaying { after.append(new) }
        }
        // So do those that the steps do not mention.
        after += before.filter { !known.contains($0) }.map { still.newIndex(of: $0) }
        return after.sorted()
    }
}
