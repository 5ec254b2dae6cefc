internal import Wire

/// Entries by position.
protocol EntryList {
    var count: Int { get }
    subscript(index: Int) -> LiveEntry { get }
}

extension LiveList: EntryList {}
extension [LiveEntry]: EntryList {}

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
    }

    /// The whole new list, in order.
    private var items: [Item] = []
    /// What the old list had and the new one does not have, in order.
    private var gone: [(id: DocumentID, index: Int)] = []

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
            gone.append((entry.id, index))
        }
    }

    // MARK: One list, which was changed

    /// - Parameters:
    ///   - affected: all documents that were taken from the list or put into it.
    ///   - count: how many entries it has now.
    init(_ affected: [LiveQuery.Affected], count: Int) {
        let old = affected.filter { $0.oldIndex >= 0 }.sorted { $0.oldIndex < $1.oldIndex }
        let new = affected.filter { $0.newIndex >= 0 }.sorted { $0.newIndex < $1.newIndex }
        for document in old where document.newIndex < 0 {
            gone.append((document.id, document.oldIndex))
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
                    before: document.old?.fields))
            next = document.newIndex + 1
        }
        unchanged.append(next..<count, to: &items)
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

    // MARK: The report

    /// - Parameter new: the new list.
    func report(
        _ id: LiveQueryID, _ query: Query, _ new: some EntryList, indexes: Bool
    ) -> LiveChange {
        var report = Report(query: query, changes: gone.map { .removed(id: $0.id) })
        report.indexes.deleted = gone.map { $0.index }
        let isUnmoved = unmoved
        let anchors = anchors(isUnmoved)
        for (number, item) in items.enumerated() {
            let before = anchors[number] < 0 ? nil : new[anchors[number]].id
            if item.oldStart < 0 {
                report.add(new[item.newStart], at: item.newStart, before: before)
                continue
            }
            if let fields = item.before {
                report.change(new[item.newStart], from: fields, item.oldStart, item.newStart)
            }
            guard !isUnmoved[number] else { continue }
            for offset in 0..<item.count {
                report.move(
                    new[item.newStart + offset].id, item.oldStart + offset,
                    item.newStart + offset, before: before)
            }
        }
        guard indexes else { return LiveChange(query: id, changes: report.changes, indexes: nil) }
        report.indexes.ids.reserveCapacity(new.count)
        for index in 0..<new.count { report.indexes.ids.append(new[index].id) }
        return LiveChange(query: id, changes: report.changes, indexes: report.indexes)
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

    /// The report as far as it is made.
    private struct Report {
        let query: Query
        var changes: [ListChange]
        var indexes = IndexChanges()

        mutating func add(_ entry: LiveEntry, at index: Int, before: DocumentID?) {
            changes.append(
                .added(id: entry.id, fields: query.project(entry.fields), before: before))
            indexes.inserted.append(index)
        }

        mutating func change(
            _ entry: LiveEntry, from fields: EJSONObject, _ old: Int, _ new: Int
        ) {
            let difference = FieldChanges(
                from: query.project(fields), to: query.project(entry.fields))
            guard !difference.isEmpty else { return }
            changes.append(
                .changed(id: entry.id, fields: difference.fields, cleared: difference.cleared))
            indexes.updated.append(IndexChanges.Pair(old: old, new: new))
        }

        mutating func move(_ id: DocumentID, _ old: Int, _ new: Int, before: DocumentID?) {
            changes.append(.moved(id: id, before: before))
            indexes.moved.append(IndexChanges.Pair(old: old, new: new))
        }
    }
}
