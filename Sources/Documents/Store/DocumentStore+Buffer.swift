internal import Wire

/// Updates that wait for the next flush.
struct UpdateBuffer: Sendable {
    struct Entry: Sendable {
        let collection: Int
        let id: DocumentID
        var update: DocumentUpdate
        /// Their estimated size.
        let bytes: Int
        /// What applying it costs.
        let steps: Int
    }

    var entries: [Entry] = []
    /// Their estimated size.
    var bytes = 0
    /// The collections in which they place documents before others.
    var placing: Set<Int> = []
    /// How many documents these had.
    var placingCost = 0
    /// What applying them costs.
    var steps = 0
}

/// What a flush has still to do.
struct FlushWork: Sendable {
    /// The collection that is emptied next; nil if none is.
    var emptied: Int?
    let kept: DocumentKey?
    /// The updates; those that were applied have lost their fields.
    var entries: [UpdateBuffer.Entry]
    /// How many slots of the collection, or how many entries, are done.
    var next = 0
    /// All updates are applied, and what follows is `end`.
    var isApplied = false
    var end = TransactionEnd()
}

extension DocumentStore {
    /// Whether updates wait for the next flush.
    package var isBuffering: Bool { !buffer.entries.isEmpty }

    /// What applying the updates that wait costs, in steps of a `StepBudget`.
    package var bufferedSteps: Int { buffer.steps }

    /// To remove a field takes time for the fields that follow it: for so many a step.
    private static let followingFieldsOfStep = 256

    /// The documents whose order the next flush looks at, because it places some before others.
    package var placingCost: Int { buffer.placingCost }

    /// Keeps an update for the next flush.
    /// - Returns: false if the documents, or the updates that wait, take as much memory as they
    ///   may. The update is dropped then, so the store differs from what the server means it to be.
    package mutating func buffer(
        _ update: consuming DocumentUpdate, for key: DocumentKey
    ) -> Bool {
        let size = StoredBytes.of(key.id) + update.storedBytes
        guard bytes <= maximumBytes, size <= maximumBytes - buffer.bytes else { return false }
        buffer.bytes += size
        let collection = positionOfCollection(key.collection)
        if update.places, buffer.placing.insert(collection).inserted {
            buffer.placingCost += collections[collection].table.slots.count
        }
        var steps = update.steps
        if update.clears {
            let fields = collections[collection].table.fields(of: key.id)?.count ?? 0
            steps += fields / DocumentStore.followingFieldsOfStep
        }
        buffer.steps += steps
        buffer.entries.append(
            UpdateBuffer.Entry(
                collection: collection, id: key.id, update: update, bytes: size, steps: steps))
        return true
    }

    /// Drops the updates that wait.
    package mutating func dropBuffer() { buffer = UpdateBuffer() }

    /// Applies the updates that wait, in order, as one transaction or as a part of the running one.
    /// - Parameters:
    ///   - emptying: removes all documents of all collections first.
    ///   - kept: but not this one.
    /// - Returns: the net difference; nil if there is none, or in a batch.
    package mutating func flush(
        emptying: Bool = false, except kept: DocumentKey? = nil
    ) -> Notification? {
        beginFlush(emptying: emptying, except: kept)
        var budget = StepBudget.unlimited
        return continueFlush(&budget)
    }

    /// Begins a flush. Until `continueFlush` has finished it, nothing else may be done with the
    /// store. Does nothing if nothing waits.
    package mutating func beginFlush(emptying: Bool = false, except kept: DocumentKey? = nil) {
        guard emptying || isBuffering else { return }
        beginBatch()
        work = FlushWork(emptied: emptying ? 0 : nil, kept: kept, entries: buffer.entries)
        buffer = UpdateBuffer()
    }

    /// Whether there is a flush that `continueFlush` has not finished.
    package var isFlushing: Bool { work != nil }

    /// - Returns: the net difference, once the flush is finished; nil before, if there is none, and
    ///   in a batch.
    package mutating func continueFlush(_ budget: inout StepBudget) -> Notification? {
        // Taken out, so that nothing is copied.
        guard var work = exchange(&work, with: nil) else { return nil }
        guard emptyCollections(&work, &budget), applyEntries(&work, &budget) else {
            self.work = work
            return nil
        }
        if !work.isApplied {
            guard endsTransaction() else { return nil }
            (work.entries, work.next) = ([], 0)
            work.isApplied = true
        }
        guard finish(&work.end, &budget) else {
            self.work = work
            return nil
        }
        return work.end.notification
    }

    private mutating func emptyCollections(
        _ work: inout FlushWork, _ budget: inout StepBudget
    ) -> Bool {
        while let collection = work.emptied {
            guard collection < collections.count else {
                work.emptied = nil
                break
            }
            var keptSlot: Int?
            if let kept = work.kept,
                kept.collection.hasSameBytes(as: collections[collection].name)
            {
                keptSlot = collections[collection].table.position(of: kept.id)
            }
            while work.next < collections[collection].table.slots.count {
                guard !budget.isSpent else { return false }
                budget.spend()
                if work.next != keptSlot { remove(collection, at: work.next) }
                work.next += 1
            }
            (work.emptied, work.next) = (collection + 1, 0)
        }
        return true
    }

    private mutating func applyEntries(
        _ work: inout FlushWork, _ budget: inout StepBudget
    ) -> Bool {
        while work.next < work.entries.count {
            guard !budget.isSpent else { return false }
            var update = DocumentUpdate.removed
            swap(&update, &work.entries[work.next].update)
            budget.spend(work.entries[work.next].steps)
            apply(
                update, work.entries[work.next].collection, work.entries[work.next].id,
                work.entries[work.next].bytes)
            work.next += 1
        }
        return true
    }

    /// - Parameter bytes: the estimated size of the id and the update.
    private mutating func apply(
        _ update: consuming DocumentUpdate, _ collection: Int, _ id: DocumentID, _ bytes: Int
    ) {
        switch consume update {
        case .added(let fields):
            let bytes = fields.hasID ? nil : bytes
            merge(collection, id, fields, cleared: [], bytes: bytes)
        case .changed(let fields, let cleared): merge(collection, id, fields, cleared: cleared)
        case .removed: remove(collection, id)
        case .replaced(nil): remove(collection, id)
        case .replaced(let fields?):
            if collections[collection].table.fields(of: id) != nil {
                replace(collection, id, fields.withoutID)
            } else {
                append(collection, id, fields.withoutID)
            }
        case .addedBefore(let fields, let before):
            merge(collection, id, fields, cleared: [])
            place(collection, id, before: before)
        case .movedBefore(let fields, let before):
            guard collections[collection].table.fields(of: id) != nil else { return }
            merge(collection, id, fields, cleared: [])
            place(collection, id, before: before)
        }
    }

    /// - Parameter bytes: the size of the id and the fields, if it is known.
    private mutating func merge(
        _ collection: Int, _ id: DocumentID, _ fields: consuming EJSONObject, cleared: [String],
        bytes size: Int? = nil
    ) {
        if fields.hasID { fields = fields.withoutID }
        let place = collections[collection].table.place(of: id)
        guard let position = place.position,
            collections[collection].table.slots[position].fields != nil
        else {
            let size = size ?? StoredBytes.of(id) + StoredBytes.of(fields)
            append(collection, id, fields, at: place, bytes: size)
            return
        }
        touch(collection, position)
        bytes +=
            collections[collection].table.merge(at: position, fields, cleared: cleared) ?? 0
    }

    private mutating func place(_ collection: Int, _ id: DocumentID, before: DocumentID?) {
        guard let position = collections[collection].table.position(of: id) else { return }
        transaction.placed.insert(collection)
        collections[collection].table.place(position, before: before)
    }
}

extension DocumentUpdate {
    /// What applying it costs.
    fileprivate var steps: Int {
        switch self {
        case .added(let fields), .changed(let fields, _), .replaced(let fields?),
            .addedBefore(let fields, _), .movedBefore(let fields, _):
            1 + fields.count / EJSONObject.fieldsOfStep
        case .removed, .replaced(nil): 1
        }
    }

    /// Whether it says where a document belongs.
    fileprivate var places: Bool {
        switch self {
        case .addedBefore, .movedBefore: true
        case .added, .changed, .removed, .replaced: false
        }
    }

    fileprivate var clears: Bool {
        if case .changed(_, let cleared) = self { !cleared.isEmpty } else { false }
    }

    fileprivate var storedBytes: Int {
        switch self {
        case .added(let fields), .replaced(let fields?): return StoredBytes.of(fields)
        case .addedBefore(let fields, let before), .movedBefore(let fields, let before):
            return StoredBytes.of(fields) + (before.map { $0.byteCount } ?? 0)
        case .changed(let fields, let cleared):
            return cleared.reduce(StoredBytes.of(fields)) { $0 + 16 + $1.utf8.count }
        case .removed, .replaced(nil): return 0
        }
    }
}
