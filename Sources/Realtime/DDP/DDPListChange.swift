internal import Documents
public import Wire

/// How the result of a live query has changed since the last change, by positions, as a list on a
/// screen wants to know it.
///
///     var todos: [Todo] = []
///     for try await change in try models.changes(Todo.self) {
///         todos.apply(change)
///     }
///
/// First, remove the rows of `deleted` and the old rows of `moved`, from the last one on. Then
/// insert those of `inserted` and the new rows of `moved`, from the first one on. Then replace
/// those of `updated`. `apply` does this to an array.
public struct DDPListChange<Element: Sendable>: Sendable {
    /// An element that has left the result.
    public struct Deletion: Sendable {
        /// The position in the old result.
        public let index: Int
        public let id: EJSON
    }

    /// An element that has come into the result.
    public struct Insertion: Sendable {
        /// The position in the new result.
        public let index: Int
        public let element: Element
    }

    /// An element that has another position relative to others.
    public struct Move: Sendable {
        /// The position in the old result.
        public let old: Int
        /// The position in the new result.
        public let new: Int
    }

    /// An element with other contents. It may have moved, too.
    public struct Update: Sendable {
        /// The position in the old result.
        public let old: Int
        /// The position in the new result.
        public let new: Int
        public let element: Element
    }

    /// By position in the old result.
    public let deleted: [Deletion]
    /// By position in the new result.
    public let inserted: [Insertion]
    /// By position in the new result.
    public let moved: [Move]
    /// By position in the new result.
    public let updated: [Update]
    /// How many elements the new result has.
    public let count: Int
    /// Whether this is the result that the query began with: all of it is inserted.
    public let isInitial: Bool
}

extension Array where Element: Sendable {
    /// Turns the old result of a live query into the new one. An array that is not the old result
    /// is a fault of the program, and may trap.
    /// - Parameter change: the change that follows those that were applied before.
    public mutating func apply(_ change: DDPListChange<Element>) {
        let leaving = (change.deleted.map { $0.index } + change.moved.map { $0.old }).sorted()
        let coming =
            (change.inserted.map { ($0.index, $0.element) }
            + change.moved.map { ($0.new, self[$0.old]) }).sorted { $0.0 < $1.0 }
        var kept: [Element] = []
        kept.reserveCapacity(change.count)
        var (next, position) = (0, 0)
        func keep(until end: Int, in old: [Element]) {
            while position < end {
                if next < leaving.count, leaving[next] == position {
                    next += 1
                } else {
                    kept.append(old[position])
                }
                position += 1
            }
        }
        for (index, element) in coming {
            while kept.count < index, position < count { keep(until: position + 1, in: self) }
            kept.append(element)
        }
        keep(until: count, in: self)
        for update in change.updated { kept[update.new] = update.element }
        self = kept
    }
}

extension DDPListChange<DDPDocument> {
    init(_ batch: LiveBatch) {
        self.init(batch) { DDPDocument($0.found) }
    }
}

extension DDPListChange {
    /// - Parameter element: makes the element of a document that is inserted or updated.
    init(_ batch: LiveBatch, _ element: (LiveStep) -> Element?) {
        var (deleted, inserted): ([Deletion], [Insertion]) = ([], [])
        var (moved, updated): ([Move], [Update]) = ([], [])
        for step in batch.steps {
            guard let new = step.newIndex else {
                if let old = step.oldIndex {
                    deleted.append(Deletion(index: old, id: step.id.value ?? .null))
                }
                continue
            }
            guard let old = step.oldIndex else {
                if let made = element(step) {
                    inserted.append(Insertion(index: new, element: made))
                }
                continue
            }
            if step.isMoved { moved.append(Move(old: old, new: new)) }
            if step.isUpdated, let made = element(step) {
                updated.append(Update(old: old, new: new, element: made))
            }
        }
        self.init(
            deleted: deleted, inserted: inserted, moved: moved, updated: updated,
            count: batch.count, isInitial: batch.isInitial)
    }
}
