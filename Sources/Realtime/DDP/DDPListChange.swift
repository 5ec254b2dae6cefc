internal import Documents
public import Wire

/// How the result of a live query has changed since the last change, by positions, as a list on a
/// screen wants to know it.
///
///     var todos: [Todo] = []
///     for await change in try models.changes(Todo.self) {
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
    init(documents change: LiveResult.Change) {
        self.init(
            change.edit, inserted: change.inserted.map { DDPDocument($0) },
            updated: change.updated.map { DDPDocument($0) }, count: change.count,
            isInitial: change.isInitial)
    }
}

extension DDPListChange {
    /// - Parameters:
    ///   - inserted: the elements that the edit inserts, in its order.
    ///   - updated: those that it updates.
    init(
        _ edit: ListEdit<DocumentID>, inserted: [Element], updated: [Element], count: Int,
        isInitial: Bool
    ) {
        deleted = edit.deleted.map { Deletion(index: $0.index, id: $0.id.value ?? .null) }
        self.inserted = zip(edit.inserted, inserted).map {
            Insertion(index: $0.index, element: $1)
        }
        moved = edit.moved.map { Move(old: $0.old, new: $0.new) }
        self.updated = zip(edit.updated, updated).map {
            Update(old: $0.old, new: $0.new, element: $1)
        }
        self.count = count
        self.isInitial = isInitial
    }
}
