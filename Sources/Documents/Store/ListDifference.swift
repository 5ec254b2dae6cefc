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

/// The difference of two ordered lists of documents. Its steps are found in several calls if the
/// lists are long.
struct ListDifference: Sendable {
    /// Entries that follow each other in the new list, and also in the old one if they were there.
    private struct Item: Sendable {
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
    /// The part of the new list that has no items yet; nil at the end.
    private var rest: Rest?
    private var search: UnmovedBlocks?
    /// Whether each item is unmoved, and the position of the next unmoved entry after it, or -1;
    /// nil until they are known.
    private var places: (isUnmoved: [Bool], anchors: [Int])?
    private var steps: [LiveStep] = []
    /// How many of `gone`, and then of the items, have their steps.
    private var done = 0

    /// Up to this product of changes, per entry of the list, unchanged entries form blocks.
    private static let blockWork = 32

    // MARK: Two windows

    /// Costs time for both lists.
    /// - Parameter affected: the documents whose fields may have changed.
    init(from old: [LiveEntry], to new: [LiveEntry], affected: [AffectedEntry]) {
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
    init(_ affected: [AffectedEntry], count: Int) {
        self.init(
            affected, old: ListDifference.order(affected) { $0.oldIndex },
            new: ListDifference.order(affected) { $0.newIndex }, count: count)
    }

    /// - Parameters:
    ///   - old: which of the affected documents the old list has, in its order.
    ///   - new: the same of the new list.
    init(_ affected: [AffectedEntry], old: [Int], new: [Int], count: Int) {
        let work = affected.count.multipliedReportingOverflow(by: affected.count)
        rest = Rest(
            affected: affected, old: old, new: new, count: count,
            formsBlocks: !work.overflow && work.partialValue / ListDifference.blockWork <= count)
    }

    /// Those that are in a list, in its order. Sorts positions, because documents are large.
    static func order(
        _ affected: [AffectedEntry], by index: (AffectedEntry) -> Int
    ) -> [Int] {
        let indexes = affected.map(index)
        let listed = indexes.indices.filter { indexes[$0] >= 0 }
        return listed.count > 1 ? listed.sorted { indexes[$0] < indexes[$1] } : listed
    }

    /// The part of the new list that has no items yet. Entries that did not change have the same
    /// order in both lists.
    private struct Rest: Sendable {
        let affected: [AffectedEntry]
        let old: [Int]
        let new: [Int]
        let count: Int
        let formsBlocks: Bool
        /// How many of `new` were passed.
        private var next = 0
        /// Where the rest begins in the new list.
        private var start = 0
        /// The next unchanged entry's position in the old list, as far as `old` was passed.
        private var position = 0
        private var passed = 0

        init(
            affected: [AffectedEntry], old: [Int], new: [Int], count: Int, formsBlocks: Bool
        ) {
            self.affected = affected
            self.old = old
            self.new = new
            self.count = count
            self.formsBlocks = formsBlocks
        }

        /// - Returns: whether there is none left.
        mutating func list(_ items: inout [Item], _ budget: inout StepBudget) -> Bool {
            while !budget.isSpent {
                budget.spend()
                let end = next < new.count ? affected[new[next]].newIndex : count
                if start < end {
                    items.append(unchanged(upTo: end))
                } else if next < new.count {
                    let document = affected[new[next]]
                    items.append(
                        Item(
                            newStart: end, count: 1, oldStart: document.oldIndex,
                            before: document.old?.fields, isTouched: document.isTouched))
                    next += 1
                    start = end + 1
                } else {
                    return true
                }
            }
            return false
        }

        /// - Parameter end: more than `start`.
        private mutating func unchanged(upTo end: Int) -> Item {
            while passed < old.count, affected[old[passed]].oldIndex <= position {
                position += 1
                passed += 1
            }
            var count = formsBlocks ? end - start : 1
            if passed < old.count { count = min(count, affected[old[passed]].oldIndex - position) }
            defer {
                start += count
                position += count
            }
            return Item(newStart: start, count: count, oldStart: position)
        }

        /// What the new list does not have.
        var gone: [(id: DocumentID, index: Int, fields: EJSONObject?)] {
            old.filter { affected[$0].newIndex < 0 }.map {
                (affected[$0].id, affected[$0].oldIndex, affected[$0].old?.fields)
            }
        }
    }

    // MARK: The steps

    /// - Parameters:
    ///   - new: the new list.
    ///   - projection: chooses the fields that are reported; nil for all.
    func allSteps(_ new: EntryList, _ projection: Projection? = nil) -> [LiveStep] {
        var difference = self
        var budget = StepBudget.unlimited
        return difference.steps(new, projection, &budget) ?? []
    }

    /// - Returns: nil if another call must continue.
    mutating func steps(
        _ new: EntryList, _ projection: Projection?, _ budget: inout StepBudget
    ) -> [LiveStep]? {
        guard listItems(&budget), findPlaces(&budget), let places else { return nil }
        while done < gone.count + items.count {
            guard !budget.isSpent else { return nil }
            if done < gone.count {
                let document = gone[done]
                let old = document.fields.map { projection.shown($0) }
                steps.append(LiveStep(id: document.id, oldIndex: document.index, old: old))
                budget.spend()
            } else {
                appendSteps(done - gone.count, places, new, projection, &budget)
            }
            done += 1
        }
        return steps
    }

    private mutating func listItems(_ budget: inout StepBudget) -> Bool {
        guard rest != nil else { return true }
        guard rest?.list(&items, &budget) == true else { return false }
        gone = rest?.gone ?? []
        rest = nil
        return true
    }

    /// Finds which items are unmoved.
    private mutating func findPlaces(_ budget: inout StepBudget) -> Bool {
        guard places == nil else { return true }
        if search == nil {
            let known = items.filter { $0.oldStart >= 0 }
            search = UnmovedBlocks(
                known.map { UnmovedBlocks.Block(start: $0.oldStart, count: $0.count) })
        }
        guard search?.run(&budget) == true else { return false }
        var unmoved = (search?.longestRun ?? [])[...]
        search = nil
        let isUnmoved = items.map { $0.oldStart >= 0 && unmoved.removeFirst() }
        places = (isUnmoved, anchors(isUnmoved))
        // Room for them all: growing would copy many large elements.
        let changed = items.indices.reduce(gone.count) { count, number in
            let item = items[number]
            let isStill = item.oldStart >= 0 && item.before == nil && isUnmoved[number]
            return isStill ? count : count + item.count
        }
        steps.reserveCapacity(changed)
        return true
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

    private mutating func appendSteps(
        _ number: Int, _ places: (isUnmoved: [Bool], anchors: [Int]), _ new: EntryList,
        _ projection: Projection?, _ budget: inout StepBudget
    ) {
        let item = items[number]
        budget.spend()
        guard item.oldStart < 0 || item.before != nil || !places.isUnmoved[number] else { return }
        let anchor = places.anchors[number]
        let before = anchor < 0 ? nil : new[anchor].id
        if item.oldStart < 0 {
            let entry = new[item.newStart]
            steps.append(
                LiveStep(
                    id: entry.id, newIndex: item.newStart, new: projection.shown(entry.fields),
                    before: before))
        } else if let fields = item.before {
            let entry = new[item.newStart]
            var step = LiveStep(
                id: entry.id, oldIndex: item.oldStart, newIndex: item.newStart,
                isMoved: !places.isUnmoved[number])
            if step.isMoved { step.before = before }
            step.update(
                from: projection.shown(fields), to: projection.shown(entry.fields), item.isTouched)
            if step.isMoved || step.isUpdated { steps.append(step) }
            budget.spend((fields.count + entry.fields.count) / EJSONObject.fieldsOfStep)
        } else {
            for offset in 0..<item.count {
                steps.append(
                    LiveStep(
                        id: new[item.newStart + offset].id, oldIndex: item.oldStart + offset,
                        newIndex: item.newStart + offset, isMoved: true, before: before))
            }
            budget.spend(item.count)
        }
    }
}

extension EJSONObject {
    /// Comparing or copying so many fields of a document counts as a step.
    static var fieldsOfStep: Int { 8 }
}

extension Projection? {
    fileprivate func shown(_ fields: EJSONObject) -> EJSONObject { self?.apply(fields) ?? fields }
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
