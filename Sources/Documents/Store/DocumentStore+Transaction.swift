internal import Wire

/// What the running transaction changed: each document once, as it was before.
struct DocumentTransaction: Sendable {
    struct Touch: Sendable {
        let collection: Int32
        /// The document's slot.
        var slot: Int32
        let rankBefore: Int64
        var before: EJSONObject?
    }

    /// Grows with each transaction that changed something.
    var number = 0
    var touches: [Touch] = []
    /// Collections in which documents were placed before others.
    var placed: Set<Int> = []
}

/// A document that a transaction changed or moved.
struct NetChange: Sendable {
    let id: DocumentID
    let before: EJSONObject?
    let rankBefore: Int64
    let after: EJSONObject?
    let rankAfter: Int64
}

/// What the end of a transaction has still to do, and what it has found.
struct TransactionEnd: Sendable {
    enum Phase: Sendable {
        case order, compare, queries, release
    }

    var phase = Phase.order
    /// How many of the phase's elements are done.
    var next = 0
    /// The collection whose documents get new ranks.
    var collection: Int?
    var ranks: [(position: Int, rank: Int64)] = []
    var changes: [DocumentChange] = []
    /// The changes of each collection with live queries.
    var groups: [[NetChange]] = []
    /// What is done for the query that is unfinished: one element, because it is large and rare.
    var unfinished: [LiveQuery.Work] = []
    var live: [LiveChange] = []
    var ended: [EndedQuery] = []

    /// nil if nothing differs.
    var notification: Notification? {
        guard !changes.isEmpty || !live.isEmpty || !ended.isEmpty else { return nil }
        return Notification(changes: changes, live: live, ended: ended)
    }
}

extension DocumentStore {
    // MARK: Changing documents

    /// Inserts a document that is not there.
    mutating func append(_ collection: Int, _ id: DocumentID, _ fields: EJSONObject) {
        let place = collections[collection].table.place(of: id)
        let size = StoredBytes.of(id) + StoredBytes.of(fields)
        append(collection, id, fields, at: place, bytes: size)
    }

    /// - Parameter size: the estimated size of the id and the fields.
    mutating func append(
        _ collection: Int, _ id: DocumentID, _ fields: consuming EJSONObject,
        at place: DocumentTable.Place, bytes size: Int
    ) {
        bytes += size
        let (position, previous) = collections[collection].table.append(id, fields, at: place)
        guard previous == nil else {
            let touch = Int(collections[collection].table.slots[position].touch)
            transaction.touches[touch - 1].slot = Int32(position)
            return
        }
        record(collection, position, before: nil)
    }

    /// - Parameter id: of a document that is there.
    mutating func replace(_ collection: Int, _ id: DocumentID, _ fields: EJSONObject) {
        guard let position = collections[collection].table.position(of: id),
            let old = collections[collection].table.slots[position].fields, old != fields
        else { return }
        bytes += StoredBytes.of(fields) - StoredBytes.of(old)
        touch(collection, position)
        collections[collection].table.replace(at: position, fields)
    }

    /// - Parameter id: of a document that is there.
    mutating func remove(_ collection: Int, _ id: DocumentID) {
        guard let position = collections[collection].table.position(of: id) else { return }
        remove(collection, at: position)
    }

    mutating func remove(_ collection: Int, at position: Int) {
        guard let id = collections[collection].table.slots[position].id,
            let fields = collections[collection].table.slots[position].fields
        else { return }
        bytes -= StoredBytes.of(id) + StoredBytes.of(fields)
        touch(collection, position)
        collections[collection].table.remove(at: position)
    }

    /// Records how a document is, before its first change in the transaction.
    mutating func touch(_ collection: Int, _ position: Int) {
        guard collections[collection].table.slots[position].touch == 0 else { return }
        record(collection, position, before: collections[collection].table.slots[position].fields)
    }

    private mutating func record(_ collection: Int, _ position: Int, before: EJSONObject?) {
        transaction.touches.append(
            DocumentTransaction.Touch(
                collection: Int32(truncatingIfNeeded: collection),
                slot: Int32(truncatingIfNeeded: position),
                rankBefore: collections[collection].table.slots[position].rank, before: before))
        collections[collection].table.setTouch(transaction.touches.count, at: position)
    }

    // MARK: The end

    /// Ends the transaction.
    /// - Returns: whether that is done; otherwise another call must continue.
    mutating func finish(_ end: inout TransactionEnd, _ budget: inout StepBudget) -> Bool {
        guard !transaction.touches.isEmpty || !transaction.placed.isEmpty else { return true }
        while true {
            switch end.phase {
            case .order:
                guard settleOrder(&end, &budget) else { return false }
                end.changes.reserveCapacity(transaction.touches.count)
                end.phase = .compare
            case .compare:
                guard compare(&end, &budget) else { return false }
                (end.phase, end.next) = (.queries, 0)
            case .queries:
                guard notifyQueries(&end, &budget) else { return false }
                (end.phase, end.next) = (.release, 0)
            case .release:
                guard releaseTouches(&end, &budget) else { return false }
                finishTables(&budget)
                return true
            }
        }
    }

    /// Gives the documents that were placed before others new ranks.
    private mutating func settleOrder(
        _ end: inout TransactionEnd, _ budget: inout StepBudget
    ) -> Bool {
        while let collection = end.collection ?? transaction.placed.min() {
            if end.collection == nil {
                guard !budget.isSpent else { return false }
                transaction.placed.remove(collection)
                end.collection = collection
                end.ranks = collections[collection].table.takeNewRanks()
                // A short walk over all documents, which is not divided.
                budget.spend(
                    collections[collection].table.slots.count / DocumentStore.walkedPerStep)
            }
            while end.next < end.ranks.count {
                guard !budget.isSpent else { return false }
                budget.spend()
                let change = end.ranks[end.next]
                touch(collection, change.position)
                collections[collection].table.setRank(change.rank, at: change.position)
                end.next += 1
            }
            (end.collection, end.ranks, end.next) = (nil, [], 0)
        }
        return true
    }

    /// To look at so many documents costs as much as changing one.
    private static let walkedPerStep = 8

    /// Finds the documents that differ from what they were, and for each collection with live
    /// queries those that differ or moved.
    private mutating func compare(
        _ end: inout TransactionEnd, _ budget: inout StepBudget
    ) -> Bool {
        while end.next < transaction.touches.count {
            guard !budget.isSpent else { return false }
            budget.spend()
            let collection = Int(transaction.touches[end.next].collection)
            let position = Int(transaction.touches[end.next].slot)
            let before = transaction.touches[end.next].before
            let rankBefore = transaction.touches[end.next].rankBefore
            end.next += 1
            let after = collections[collection].table.slots[position].fields
            guard before != nil || after != nil,
                let id = collections[collection].table.slots[position].id
            else { continue }
            budget.spend((before?.count ?? 0) / EJSONObject.fieldsOfStep)
            let isEqual = before == after
            if !isEqual {
                let key = DocumentKey(collection: collections[collection].name, id: id)
                end.changes.append(DocumentChange(key: key, before: before, after: after))
            }
            guard collections[collection].queries > 0 else { continue }
            let rank = collections[collection].table.slots[position].rank
            guard !isEqual || rank != rankBefore else { continue }
            if collections[collection].group < 0 {
                collections[collection].group = end.groups.count
                end.groups.append([])
            }
            end.groups[collections[collection].group].append(
                NetChange(
                    id: id, before: before, rankBefore: rankBefore, after: after,
                    rankAfter: rank))
        }
        return true
    }

    private mutating func notifyQueries(
        _ end: inout TransactionEnd, _ budget: inout StepBudget
    ) -> Bool {
        guard !end.groups.isEmpty else { return true }
        while end.next < queries.count {
            let group = collections[queries[end.next].collection].group
            guard group >= 0 else {
                end.next += 1
                continue
            }
            guard notifyQuery(end.next, group, &end, &budget) else { return false }
            end.next += 1
        }
        for query in end.ended { stopObserving(query.id) }
        return true
    }

    /// - Returns: whether the query has all changes, or has ended.
    private mutating func notifyQuery(
        _ index: Int, _ group: Int, _ end: inout TransactionEnd, _ budget: inout StepBudget
    ) -> Bool {
        do throws(RealtimeError) {
            if end.groups[group].count == 1 {
                let change = try queries[index].apply(end.groups[group][0])
                if let change { end.live.append(change) }
                return true
            }
            // Taken out, so that nothing is copied.
            var work = end.unfinished.popLast() ?? queries[index].begin(end.groups[group])
            let outcome = try queries[index].apply(end.groups[group], &work, &budget)
            guard case .finished(let change) = outcome else {
                end.unfinished.append(work)
                return false
            }
            if let change { end.live.append(change) }
        } catch {
            end.ended.append(
                EndedQuery(
                    id: queries[index].id,
                    collection: collections[queries[index].collection].name, error: error))
        }
        return true
    }

    private mutating func releaseTouches(
        _ end: inout TransactionEnd, _ budget: inout StepBudget
    ) -> Bool {
        while end.next < transaction.touches.count {
            guard !budget.isSpent else { return false }
            budget.spend()
            let collection = Int(transaction.touches[end.next].collection)
            collections[collection].table.endTouch(at: Int(transaction.touches[end.next].slot))
            collections[collection].group = -1
            transaction.touches[end.next].before = nil
            end.next += 1
        }
        return true
    }

    private mutating func finishTables(_ budget: inout StepBudget) {
        var last = -1
        for index in transaction.touches.indices
        where Int(transaction.touches[index].collection) != last {
            last = Int(transaction.touches[index].collection)
            if collections[last].table.finish() {
                budget.spend(collections[last].table.slots.count / DocumentStore.walkedPerStep)
            }
        }
        let keepsCapacity = transaction.touches.count < 1_024
        transaction.touches.removeAll(keepingCapacity: keepsCapacity)
        transaction.number += 1
    }
}
