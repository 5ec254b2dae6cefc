/// How a list of documents changed, by positions (M17, index form). Edits that follow each
/// other can be merged: this is what lets a reader fall behind without missing a change.
struct ListEdit<ID: Hashable & Sendable>: Sendable {
    struct Place: Sendable, Equatable {
        let index: Int
        let id: ID
    }

    /// A position in the old list and the one in the new list.
    struct Pair: Sendable, Equatable {
        let old: Int
        let new: Int
        let id: ID
    }

    /// Positions in the old list, ascending.
    var deleted: [Place] = []
    /// Positions in the new list, ascending.
    var inserted: [Place] = []
    /// By new position.
    var moved: [Pair] = []
    /// By new position. Those that moved are among them if their fields changed.
    var updated: [Pair] = []

    var isEmpty: Bool {
        deleted.isEmpty && inserted.isEmpty && moved.isEmpty && updated.isEmpty
    }

    /// How much there is to remember.
    var size: Int { deleted.count + inserted.count + moved.count + updated.count }

    /// This edit, and then another one, as one edit. A document that was inserted and then deleted
    /// is not in it any more, so its size is limited by the lengths of the first and the last list.
    func followed(by next: ListEdit) -> ListEdit {
        if isEmpty { return next }
        if next.isEmpty { return self }
        let (mine, others) = (Positions(self), Positions(next))
        var result = ListEdit()

        /// Where the entries come from that this edit has put into the middle list: their old
        /// position, or nil if they are new.
        var sources: [Int: Int?] = [:]
        for place in inserted { sources[place.index] = .some(nil) }
        for pair in moved { sources[pair.new] = pair.old }
        /// The old position of an entry of the middle list.
        func source(_ middle: Int) -> Int? { sources[middle] ?? mine.oldIndex(of: middle) }

        var removed: Set<Int> = []
        result.deleted = deleted
        for place in next.deleted {
            removed.insert(place.index)
            if let old = source(place.index) {
                result.deleted.append(Place(index: old, id: place.id))
            }
        }
        result.inserted = next.inserted
        var targets: [Int: Int] = [:]
        for pair in next.moved {
            targets[pair.old] = pair.new
            if let old = source(pair.old) {
                result.moved.append(Pair(old: old, new: pair.new, id: pair.id))
            } else {
                result.inserted.append(Place(index: pair.new, id: pair.id))
            }
        }
        /// The new position of an entry of the middle list that stays.
        func target(_ middle: Int) -> Int? {
            removed.contains(middle) ? nil : targets[middle] ?? others.newIndex(of: middle)
        }
        for place in inserted where targets[place.index] == nil {
            guard let new = target(place.index) else { continue }
            result.inserted.append(Place(index: new, id: place.id))
        }
        for pair in moved where targets[pair.new] == nil {
            guard let new = target(pair.new) else { continue }
            result.moved.append(Pair(old: pair.old, new: new, id: pair.id))
        }
        var isUpdated: Set<Int> = []
        for pair in next.updated {
            guard let old = source(pair.old), isUpdated.insert(pair.new).inserted else { continue }
            result.updated.append(Pair(old: old, new: pair.new, id: pair.id))
        }
        for pair in updated {
            guard let new = target(pair.new), isUpdated.insert(new).inserted else { continue }
            result.updated.append(Pair(old: pair.old, new: new, id: pair.id))
        }
        result.sort()
        return result
    }

    /// The same change for a reader who does not see some entries.
    /// - Parameters:
    ///   - hidden: the positions of those entries, ascending: in the old list, and after the call
    ///     in the new one.
    ///   - isHidden: whether an entry that was inserted or updated is hidden from now on.
    func hiding(_ hidden: inout [Int], _ isHidden: (ID) -> Bool) -> ListEdit {
        let before = hidden
        hidden = hiddenAfter(before, isHidden)
        let (wereHidden, areHidden) = (Set(before), Set(hidden))
        var result = ListEdit()
        func delete(_ index: Int, _ id: ID) {
            result.deleted.append(
                Place(index: index - Positions.count(in: before, below: index), id: id))
        }
        func insert(_ index: Int, _ id: ID) {
            result.inserted.append(
                Place(index: index - Positions.count(in: hidden, below: index), id: id))
        }
        func shown(_ pair: Pair) -> Pair {
            Pair(
                old: pair.old - Positions.count(in: before, below: pair.old),
                new: pair.new - Positions.count(in: hidden, below: pair.new), id: pair.id)
        }
        for place in deleted where !wereHidden.contains(place.index) {
            delete(place.index, place.id)
        }
        for place in inserted where !areHidden.contains(place.index) {
            insert(place.index, place.id)
        }
        for pair in moved where !wereHidden.contains(pair.old) && !areHidden.contains(pair.new) {
            result.moved.append(shown(pair))
        }
        for pair in updated {
            switch (wereHidden.contains(pair.old), areHidden.contains(pair.new)) {
            case (false, false): result.updated.append(shown(pair))
            case (false, true): delete(pair.old, pair.id)
            case (true, false): insert(pair.new, pair.id)
            case (true, true): break
            }
        }
        result.sort()
        return result
    }

    /// The positions of hidden entries in the new list, ascending.
    private func hiddenAfter(_ before: [Int], _ isHidden: (ID) -> Bool) -> [Int] {
        let positions = Positions(self)
        let gone = Set(deleted.map { $0.index })
        let targets = Dictionary(moved.map { ($0.old, $0.new) }, uniquingKeysWith: { $1 })
        let written = Set(updated.map { $0.new })
        // Those that nothing was said of stay hidden.
        let staying = before.filter { !gone.contains($0) }
            .map { targets[$0] ?? positions.newIndex(of: $0) }.filter { !written.contains($0) }
        let fresh =
            inserted.filter { isHidden($0.id) }.map { $0.index }
            + updated.filter { isHidden($0.id) }.map { $0.new }
        return (staying + fresh).sorted()
    }

    /// Edits that follow each other, as one. Halves are merged first, so that many small edits do
    /// not each cost the size of what came before.
    static func merged(_ edits: ArraySlice<ListEdit>) -> ListEdit {
        guard edits.count > 1 else { return edits.first ?? ListEdit() }
        let middle = edits.startIndex + edits.count / 2
        return merged(edits[..<middle]).followed(by: merged(edits[middle...]))
    }

    private mutating func sort() {
        deleted.sort { $0.index < $1.index }
        inserted.sort { $0.index < $1.index }
        moved.sort { $0.new < $1.new }
        updated.sort { $0.new < $1.new }
    }

    /// Maps the positions of entries that an edit leaves where they are relative to each other.
    private struct Positions {
        /// What leaves the old list, and what comes into the new one, ascending.
        private let removed: [Int]
        private let added: [Int]

        init(_ edit: ListEdit) {
            removed = (edit.deleted.map { $0.index } + edit.moved.map { $0.old }).sorted()
            added = (edit.inserted.map { $0.index } + edit.moved.map { $0.new }).sorted()
        }

        func newIndex(of old: Int) -> Int {
            Positions.position(old - Positions.count(in: removed, below: old), around: added)
        }

        func oldIndex(of new: Int) -> Int {
            Positions.position(new - Positions.count(in: added, below: new), around: removed)
        }

        static func count(in sorted: [Int], below limit: Int) -> Int {
            sorted.partitioningIndex { $0 >= limit }
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
}

extension [Int] {
    /// The first index of a sorted array whose element satisfies the condition, as do all after it.
    fileprivate func partitioningIndex(where isAfter: (Int) -> Bool) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            if isAfter(self[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}

extension ListEdit: MergeableChange {}
