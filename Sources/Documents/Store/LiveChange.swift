package import Wire

/// What one transaction changed.
package struct Notification: Sendable {
    /// The documents that differ, each once, in the order in which they were first changed.
    package let changes: [DocumentChange]
    /// The live queries whose results differ, in the order in which they were made.
    package let live: [LiveChange]
}

/// Names a live query of a store. Never used again.
package struct LiveQueryID: Hashable, Sendable {
    package let number: Int

    package init(number: Int) { self.number = number }
}

/// How the result of a live query changed.
package struct LiveChange: Sendable {
    package let query: LiveQueryID
    /// The changes in observe order: applied one after the other, they turn the old result into the
    /// new one. First come the documents that are gone.
    package let changes: [ListChange]
    /// The same by index, if the query asked for it.
    package let indexes: IndexChanges?
}

extension LiveChange {
    /// The result that a query begins with, as the change from an empty one.
    package init(beginning query: LiveQueryID, _ found: [Found], indexes: Bool) {
        self.query = query
        changes = found.map { .added(id: $0.id, fields: $0.fields, before: nil) }
        guard indexes else {
            self.indexes = nil
            return
        }
        var positions = IndexChanges()
        positions.inserted = Array(found.indices)
        positions.ids = found.map { $0.id }
        self.indexes = positions
    }
}

/// How a list changed, by positions. Removing the entries of `deleted` and the sources of `moved`,
/// from the end on, and then inserting those of `inserted` and the targets of `moved`, from the
/// start on, turns the old list into the new one.
package struct IndexChanges: Equatable, Sendable {
    /// An entry's positions in the old list and in the new one.
    package struct Pair: Equatable, Sendable {
        package let old: Int
        package let new: Int
    }

    /// Positions in the old list, ascending.
    package internal(set) var deleted: [Int] = []
    /// Positions in the new list, ascending.
    package internal(set) var inserted: [Int] = []
    /// Entries that moved, by new position.
    package internal(set) var moved: [Pair] = []
    /// Entries whose fields changed, moved or not, by new position.
    package internal(set) var updated: [Pair] = []
    /// The new list.
    package internal(set) var ids: [DocumentID] = []
}
