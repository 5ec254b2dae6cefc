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

extension LiveBatch {
    /// The same changes with other documents.
    /// - Parameter complete: returns as many documents as it gets, in the same order.
    package func completed(_ complete: ([Found]) -> [Found]) -> LiveBatch {
        let found = steps.compactMap { step in step.new.map { Found(id: step.id, fields: $0) } }
        var left = complete(found)[...]
        var steps = steps
        for index in steps.indices where steps[index].new != nil {
            // Which fields have changed is known of the documents only.
            if steps[index].isUpdated { steps[index].difference = steps[index].changes }
            steps[index].new = left.removeFirst().fields
        }
        return LiveBatch(steps: steps, count: count, isInitial: isInitial)
    }
}

/// The changes of a live query's result that its reader has not taken yet. It takes all of them as
/// one, so none is lost however slow it is. They never take more memory than the result that the
/// reader knows and the present one.
package struct LiveFeed: Sendable {
    /// The present result.
    private var result: [Found] = []
    /// The change that waits, if it is the only one.
    private var single: [LiveStep]?
    /// The changes that wait, otherwise.
    private var pending = PendingChanges<LiveEdit>()
    /// The documents of `pending`: the number in `old` of each that changed or is gone, and -1 for
    /// each that is new to the reader.
    private var numbers: [DocumentID: Int] = [:]
    /// Documents as the reader knows them.
    private var old: [EJSONObject] = []
    private var hasTaken = false

    package init() {}

    /// Whether something waits. Its changes may cancel each other out.
    package var isFilled: Bool { single != nil || !pending.isEmpty }

    /// How many changes are kept apart, and how many documents with them. For tests.
    var waiting: (changes: Int, documents: Int) { (pending.count, numbers.count) }

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
            if let number = numbers[step.id] {
                if number < 0, step.newIndex == nil { numbers[step.id] = nil }
            } else if step.oldIndex == nil {
                numbers[step.id] = -1
            } else if let document = step.old {
                numbers[step.id] = old.count
                old.append(document)
            }
        }
        pending.append(LiveEdit(steps))
    }

    // MARK: The reader

    /// - Returns: nil if the result is as it was. The first batch is returned also if it is empty.
    package mutating func take() -> LiveBatch? {
        let isInitial = !hasTaken
        guard let steps = takeSteps(), isInitial || !steps.isEmpty else { return nil }
        hasTaken = true
        return LiveBatch(steps: steps, count: result.count, isInitial: isInitial)
    }

    /// Like `take`, by positions. That costs time for the whole result.
    package mutating func takeIndexes() -> (changes: IndexChanges, isInitial: Bool)? {
        take().map { batch in
            (IndexChanges(batch.steps, ids: result.map { $0.id }), batch.isInitial)
        }
    }

    private mutating func takeSteps() -> [LiveStep]? {
        if let steps = exchange(&single, with: nil) { return steps }
        guard let edit = pending.take() else { return nil }
        defer { (numbers, old) = ([:], []) }
        // Leaves out what is as it was, and what has moved in vain.
        let affected = edit.entries.map { entry in
            let number = numbers[entry.id] ?? -1
            return AffectedEntry(
                id: entry.id, old: number < 0 ? nil : LiveEntry(entry.id, old[number]),
                oldIndex: entry.oldIndex ?? -1, newIndex: entry.newIndex ?? -1,
                isTouched: entry.isTouched)
        }
        return ListDifference(affected, count: result.count).allSteps(.found(result))
    }
}

extension LiveEntry {
    /// Its order is not asked for.
    fileprivate init(_ id: DocumentID, _ fields: EJSONObject) {
        self.init(id: id, fields: fields, key: nil, rank: 0)
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
            let fields = old.map { self[$0].fields } ?? step.new ?? EJSONObject()
            coming.append((new, Found(id: step.id, fields: fields)))
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
