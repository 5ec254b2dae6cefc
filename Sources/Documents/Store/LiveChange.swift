package import Wire

/// What one transaction changed.
package struct Notification: Sendable {
    /// The documents that differ, each once, in the order in which they were first changed.
    package var changes: [DocumentChange]
    /// The live queries whose results differ, in the order in which they were made.
    package let live: [LiveChange]
    /// The live queries that have ended: these changes were too much for them.
    package var ended: [EndedQuery] = []
}

/// A live query that has ended by itself.
package struct EndedQuery: Sendable, Equatable {
    package let id: LiveQueryID
    package let collection: String
    package let error: RealtimeError
}

/// Names a live query of a store. Never used again.
package struct LiveQueryID: Hashable, Sendable {
    package let number: Int

    package init(number: Int) { self.number = number }
}

/// How the result of a live query changed.
package struct LiveChange: Sendable {
    package let query: LiveQueryID
    /// In observe order: first the documents that are gone, by their old positions, then the others
    /// by their new ones. None that stays as it was is among them.
    package let steps: [LiveStep]
}

extension LiveChange {
    /// The result that a query begins with, as the change from an empty one.
    package init(beginning query: LiveQueryID, _ found: [Found]) {
        self.query = query
        steps = found.enumerated().map { LiveStep(id: $1.id, newIndex: $0, new: $1.fields) }
    }

    /// A part of it, for a reader that takes documents one by one.
    package func piece(_ range: Range<Int>) -> LiveChange {
        LiveChange(query: query, steps: Array(steps[range]))
    }

    /// The changes in observe order: applied one after the other, they turn the old result into the
    /// new one.
    package var changes: [ListChange] { steps.listChanges }
}

/// What a change of a live query's result does to one document of it.
package struct LiveStep: Sendable {
    package let id: DocumentID
    /// The document's position in the old result; nil if it is new.
    package var oldIndex: Int?
    /// Its position in the new result; nil if it is gone.
    package var newIndex: Int?
    /// It was and is in the result, and its place relative to others has changed.
    package var isMoved = false
    /// It was and is in the result, and its fields have changed.
    package var isUpdated = false
    /// It counts as updated even if its fields are the same.
    var isTouched = false
    /// The fields that the query chose, as they were in the old result; nil if the document is new,
    /// or has only moved.
    package var old: EJSONObject?
    /// The same in the new result; nil if the document is gone, or has only moved.
    package var new: EJSONObject?
    /// Of a document that is new or has moved: the id of the document before which observe order
    /// places it; nil at the end.
    package var before: DocumentID?
    /// The difference of `old` and `new`, if it is known.
    var difference: FieldChanges?

    /// The fields that are new or have another value, and the names of those that are gone.
    package var changes: FieldChanges {
        difference ?? FieldChanges(from: old ?? EJSONObject(), to: new ?? EJSONObject())
    }
}

extension [LiveStep] {
    /// The steps in the form that names neighbours.
    package var listChanges: [ListChange] {
        var changes: [ListChange] = []
        changes.reserveCapacity(count)
        for step in self {
            guard step.newIndex != nil else {
                changes.append(.removed(id: step.id))
                continue
            }
            guard step.oldIndex != nil else {
                let fields = step.new ?? EJSONObject()
                changes.append(.added(id: step.id, fields: fields, before: step.before))
                continue
            }
            if step.isUpdated {
                let changed = step.changes
                changes.append(
                    .changed(id: step.id, fields: changed.fields, cleared: changed.cleared))
            }
            if step.isMoved { changes.append(.moved(id: step.id, before: step.before)) }
        }
        return changes
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

extension IndexChanges {
    /// - Parameters:
    ///   - steps: from the old list to the new one, in observe order.
    ///   - ids: the new list.
    init(_ steps: [LiveStep], ids: [DocumentID]) {
        self.ids = ids
        for step in steps { append(step) }
    }

    private mutating func append(_ step: LiveStep) {
        switch (step.oldIndex, step.newIndex) {
        case (let old?, let new?):
            if step.isMoved { moved.append(Pair(old: old, new: new)) }
            if step.isUpdated { updated.append(Pair(old: old, new: new)) }
        case (let old?, nil): deleted.append(old)
        case (nil, let new?): inserted.append(new)
        case (nil, nil): break
        }
    }
}
