internal import Wire

/// A list of entries, in one of the forms in which it is kept. It is not a protocol, because the
/// code that uses it would then be compiled once for each form.
enum EntryList {
    case live(LiveList)
    case entries([LiveEntry])
    case found([Found])

    var count: Int {
        switch self {
        case .live(let list): list.count
        case .entries(let entries): entries.count
        case .found(let found): found.count
        }
    }

    subscript(index: Int) -> (id: DocumentID, fields: EJSONObject) {
        switch self {
        case .live(let list):
            let entry = list[index]
            return (entry.id, entry.fields)
        case .entries(let entries): return (entries[index].id, entries[index].fields)
        case .found(let found): return (found[index].id, found[index].fields)
        }
    }
}

/// The difference of two ordered lists of documents.
struct ListDifference {
    /// Entries that follow each other in the new list, and also in the old one if they were there.
    private struct Item {
        let newStart: Int
        let count: Int
        /// -1: not in the old list.
        var oldStart = -1
        /// The old fields of an item with one entry that may have changed.
        var before: EJSONObject?
        /// The entry counts as changed even if its fields are the same.
        var isTouched = false
    }

    /// The whole new list, in order.
    private var items: [Item] = []
    /// What the old list had and the new one does not have, in order.
    private var gone: [(id: DocumentID, index: Int, fields: EJSONObject?)] = []

    /// Up to this product of changes, per entry of the list, unchanged entries form blocks.
    private static let blockWork = 32

    // MARK: Two windows

    /// - Parameter affected: the documents whose fields may have changed.
    init(from old: [LiveEntry], to new: [LiveEntry], affected: [LiveQuery.Affected]) {
        let changed = Set(affected.map { $0.id })
        var positions: [DocumentID: Int] = [:]
        for (index, entry) in old.enumerated() { positions[entry.id] = index }
        for (index, entry) in new.enumerated() {
            var item = Item(newStart: index, count: 1)
            if let position = positions.removeValue(forKey: entry.id) {
                item.oldStart = position
                if changed.contains(entry.id) { item.before = old[position].fields }
            }
            items.append(item)
        }
        for (index, entry) in old.enumerated() where positions[entry.id] != nil {
            gone.append((entry.id, index, entry.fields))
        }
    }

    // MARK: One list, which was changed

    /// - Parameters:
    ///   - affected: all documents that were taken from the list or put into it.
    ///   - count: how many entries it has now.
    init(_ affected: [LiveQuery.Affected], count: Int) {
        let old = ListDifference.listed(affected) { $0.oldIndex }
        let new = ListDifference.listed(affected) { $0.newIndex }
        for document in old where document.newIndex < 0 {
            gone.append((document.id, document.oldIndex, document.old?.fields))
        }
        let work = affected.count.multipliedReportingOverflow(by: affected.count)
        let formsBlocks = !work.overflow && work.partialValue / ListDifference.blockWork <= count
        var unchanged = UnchangedEntries(old: old, formsBlocks: formsBlocks)
        var next = 0
        for document in new {
            unchanged.append(next..<document.newIndex, to: &items)
            items.append(
                Item(
                    newStart: document.newIndex, count: 1, oldStart: document.oldIndex,
                    before: document.old?.fields, isTouched: document.isTouched))
            next = document.newIndex + 1
        }
        unchanged.append(next..<count, to: &items)
    }

    /// Those that are in a list, in its order. Sorts positions, because documents are large.
    private static func listed(
        _ affected: [LiveQuery.Affected], by index: (LiveQuery.Affected) -> Int
    ) -> [LiveQuery.Affected] {
        let listed = affected.filter { index($0) >= 0 }
        guard listed.count > 1 else { return listed }
        let indexes = listed.map(index)
        return indexes.indices.sorted { indexes[$0] < indexes[$1] }.map { listed[$0] }
    }

    /// Walks over the entries that did not change, in the order that they have in both lists.
    private struct UnchangedEntries {
        /// The others that the old list had, in order.
        let old: [LiveQuery.Affected]
        let formsBlocks: Bool
        /// The next entry's position in the old list, as far as `old` was passed.
        private var position = 0
        private var passed = 0

        init(old: [LiveQuery.Affected], formsBlocks: Bool) {
            self.old = old
            self.formsBlocks = formsBlocks
        }

        /// - Parameter range: the next ones, by their positions in the new list.
        mutating func append(_ range: Range<Int>, to items: inout [Item]) {
            var start = range.lowerBound
            while start < range.upperBound {
                while passed < old.count, old[passed].oldIndex <= position {
                    position += 1
                    passed += 1
                }
                var count = formsBlocks ? range.upperBound - start : 1
                if passed < old.count { count = min(count, old[passed].oldIndex - position) }
                items.append(Item(newStart: start, count: count, oldStart: position))
                start += count
                position += count
            }
        }
    }

    // MARK: The steps

    /// - Parameters:
    ///   - new: the new list.
    ///   - projection: chooses the fields that are reported; nil for all.
    func steps(_ new: EntryList, _ projection: Projection? = nil) -> [LiveStep] {
        func shown(_ fields: EJSONObject) -> EJSONObject { projection?.apply(fields) ?? fields }
        var steps = gone.map {
            LiveStep(id: $0.id, oldIndex: $0.index, old: $0.fields.map { shown($0) })
        }
        let isUnmoved = unmoved
        let anchors = anchors(isUnmoved)
        for (number, item) in items.enumerated() {
            let before = anchors[number] < 0 ? nil : new[anchors[number]].id
            if item.oldStart < 0 {
                let entry = new[item.newStart]
                steps.append(
                    LiveStep(
                        id: entry.id, newIndex: item.newStart, new: shown(entry.fields),
                        before: before))
                continue
            }
            if let fields = item.before {
                let entry = new[item.newStart]
                var step = LiveStep(
                    id: entry.id, oldIndex: item.oldStart, newIndex: item.newStart,
                    isMoved: !isUnmoved[number])
                if step.isMoved { step.before = before }
                step.update(from: shown(fields), to: shown(entry.fields), item.isTouched)
                if step.isMoved || step.isUpdated { steps.append(step) }
                continue
            }
            guard !isUnmoved[number] else { continue }
            for offset in 0..<item.count {
                steps.append(
                    LiveStep(
                        id: new[item.newStart + offset].id, oldIndex: item.oldStart + offset,
                        newIndex: item.newStart + offset, isMoved: true, before: before))
            }
        }
        return steps
    }

    /// Whether each item is unmoved.
    private var unmoved: [Bool] {
        let known = items.indices.filter { items[$0].oldStart >= 0 }
        let blocks = known.map {
            UnmovedBlocks.Block(start: items[$0].oldStart, count: items[$0].count)
        }
        var result = Array(repeating: false, count: items.count)
        for (number, isUnmoved) in zip(known, UnmovedBlocks.find(in: blocks)) {
            result[number] = isUnmoved
        }
        return result
    }

    /// For each item the position of the next unmoved entry after it; -1 if there is none.
    private func anchors(_ isUnmoved: [Bool]) -> [Int] {
        var anchors = Array(repeating: -1, count: items.count)
        var anchor = -1
        for number in items.indices.reversed() {
            anchors[number] = anchor
            if isUnmoved[number] { anchor = items[number].newStart }
        }
        return anchors
    }
}

extension LiveStep {
    /// Notes the fields, unless they are equal.
    fileprivate mutating func update(
        from old: EJSONObject, to new: EJSONObject, _ isTouched: Bool
    ) {
        let difference = FieldChanges(from: old, to: new)
        guard isTouched || !difference.isEmpty else { return }
        isUpdated = true
        self.isTouched = isTouched
        (self.old, self.new) = (old, new)
        self.difference = difference
    }
}
