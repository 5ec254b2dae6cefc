package import Wire

/// What a reader of a live query takes at once: how the result that it knows became the present
/// one. Each document is in it once, however often it changed.
package struct LiveBatch: Sendable {
    /// In observe order, see `LiveChange`.
    package let steps: [LiveStep]
    /// How many documents the result has now.
    package let count: Int
    /// It is the first one, so the result before was empty.
    package let isInitial: Bool
}

/// The changes of a live query's result that its reader has not taken yet. It takes all of them as
/// one, so none is lost however slow it is, and what waits never takes more memory than the result
/// that the reader knows and the present one.
package struct LiveFeed: Sendable {
    /// The present result.
    private var result: [Found] = []
    /// The change that waits, if it is the only one.
    private var single: [LiveStep]?
    /// The changes that wait, otherwise.
    private var pending = PendingChanges<LiveEdit>()
    /// Documents that `pending` changes or deletes, as the reader knows them.
    private var known: [DocumentID: EJSONObject] = [:]
    /// Documents that `pending` inserts, and the reader does not know.
    private var fresh: Set<DocumentID> = []
    private var hasTaken = false

    package init() {}

    /// Whether something waits. Its changes may cancel each other out.
    package var isFilled: Bool { single != nil || !pending.isEmpty }

    /// How many changes are kept apart, and how many documents with them. For tests.
    var waiting: (changes: Int, documents: Int) { (pending.count, known.count + fresh.count) }

    // MARK: What comes

    /// - Parameter change: the one that follows those before. The first one is the result with
    ///   which the query begins.
    package mutating func append(_ change: LiveChange) {
        result.apply(change.steps)
        append(change.steps)
    }

    /// Lets some documents count as updated, because what belongs to them has changed.
    /// - Returns: whether one of them is in the result.
    package mutating func touch(_ ids: [DocumentID]) -> Bool {
        let touched = Set(ids)
        let steps = result.enumerated().filter { touched.contains($1.id) }.map { index, found in
            LiveStep(
                id: found.id, oldIndex: index, newIndex: index, isUpdated: true, isTouched: true,
                old: found.fields, new: found.fields)
        }
        if !steps.isEmpty { append(steps) }
        return !steps.isEmpty
    }

    private mutating func append(_ steps: [LiveStep]) {
        guard isFilled else {
            single = steps
            return
        }
        if let first = exchange(&single, with: nil) { keep(first) }
        keep(steps)
    }

    /// Keeps of several changes only the oldest documents: the newest ones are in the result.
    private mutating func keep(_ steps: [LiveStep]) {
        for step in steps {
            if step.oldIndex == nil {
                if known[step.id] == nil { fresh.insert(step.id) }
            } else if fresh.contains(step.id) {
                if step.newIndex == nil { fresh.remove(step.id) }
            } else if known[step.id] == nil, let old = step.old {
                known[step.id] = old
            }
        }
        pending.append(LiveEdit(steps.map { $0.withoutDocuments }))
    }

    // MARK: The reader

    /// - Returns: nil if the result is as it was. The first batch is returned also if it is empty.
    package mutating func take() -> LiveBatch? {
        let isInitial = !hasTaken
        guard let steps = takeSteps(), isInitial || !steps.isEmpty else { return nil }
        hasTaken = true
        return LiveBatch(steps: steps, count: result.count, isInitial: isInitial)
    }

    private mutating func takeSteps() -> [LiveStep]? {
        if let steps = exchange(&single, with: nil) { return steps }
        guard let edit = pending.take() else { return nil }
        let old = exchange(&known, with: [:])
        fresh = []
        // Leaves out what is as it was, and what has moved in vain.
        let affected = edit.steps.map { step in
            LiveQuery.Affected(
                id: step.id, old: old[step.id].map { LiveEntry(Found(id: step.id, fields: $0)) },
                oldIndex: step.oldIndex ?? -1, newIndex: step.newIndex ?? -1,
                isTouched: step.isTouched)
        }
        return ListDifference(affected, count: result.count).steps(FoundList(found: result))
    }
}

extension LiveStep {
    fileprivate var withoutDocuments: LiveStep {
        LiveStep(
            id: id, oldIndex: oldIndex, newIndex: newIndex, isMoved: isMoved, isTouched: isTouched)
    }
}

/// A result as a list of entries.
private struct FoundList: EntryList {
    let found: [Found]

    var count: Int { found.count }
    subscript(index: Int) -> LiveEntry { LiveEntry(found[index]) }
}

extension LiveEntry {
    /// Its order is not asked for.
    fileprivate init(_ found: Found) {
        self.init(id: found.id, fields: found.fields, key: nil, rank: 0)
    }
}

extension [Found] {
    /// Up to so many documents are moved in the list itself.
    private static let few = 16

    /// Turns the old result of a live query into the new one.
    /// - Parameter steps: those of a change, in its order.
    package mutating func apply(_ steps: [LiveStep]) {
        var leaving: [Int] = []
        var coming: [(index: Int, found: Found)] = []
        for step in steps {
            let old = step.oldIndex
            let isStill = old != nil && step.newIndex != nil && !step.isMoved
            if let old, let fields = step.new { self[old] = Found(id: step.id, fields: fields) }
            guard !isStill else { continue }
            if let old { leaving.append(old) }
            guard let new = step.newIndex else { continue }
            let found = old.map { self[$0] } ?? Found(id: step.id, fields: step.new ?? [:])
            coming.append((new, found))
        }
        leaving.sort()
        guard leaving.count + coming.count > [Found].few else {
            for index in leaving.reversed() { remove(at: index) }
            for (index, found) in coming { insert(found, at: index) }
            return
        }
        var new: [Found] = []
        new.reserveCapacity(count - leaving.count + coming.count)
        var (left, come) = (leaving[...], coming[...])
        for (index, found) in enumerated() {
            if left.first == index {
                left.removeFirst()
                continue
            }
            while let next = come.first, next.index == new.count {
                new.append(next.found)
                come.removeFirst()
            }
            new.append(found)
        }
        new += come.map { $0.found }
        self = new
    }
}
