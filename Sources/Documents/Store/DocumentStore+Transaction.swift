internal import Wire

/// What the running transaction changed: each document once, as it was before.
struct DocumentTransaction: Sendable {
    struct Touch: Sendable {
        let collection: Int32
        /// The document's slot.
        var slot: Int32
        let rankBefore: Int64
        let before: EJSONObject?
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
    mutating func commit() -> Notification? {
        guard !transaction.touches.isEmpty || !transaction.placed.isEmpty else { return nil }
        for collection in transaction.placed.sorted() { settleOrder(of: collection) }
        let (changes, groups) = netChanges()
        let live = notifyQueries(groups)
        endTouches()
        guard !changes.isEmpty || !live.isEmpty else { return nil }
        return Notification(changes: changes, live: live)
    }

    private mutating func settleOrder(of collection: Int) {
        for change in collections[collection].table.takeNewRanks() {
            touch(collection, change.position)
            collections[collection].table.setRank(change.rank, at: change.position)
        }
    }

    /// The documents that differ from what they were, and for each collection with live queries
    /// those that differ or moved.
    private mutating func netChanges() -> ([DocumentChange], [[NetChange]]) {
        var changes: [DocumentChange] = []
        changes.reserveCapacity(transaction.touches.count)
        var groups: [[NetChange]] = []
        for index in transaction.touches.indices {
            let collection = Int(transaction.touches[index].collection)
            let position = Int(transaction.touches[index].slot)
            let before = transaction.touches[index].before
            let after = collections[collection].table.slots[position].fields
            guard before != nil || after != nil,
                let id = collections[collection].table.slots[position].id
            else { continue }
            let isEqual = before == after
            if !isEqual {
                let key = DocumentKey(collection: collections[collection].name, id: id)
                changes.append(DocumentChange(key: key, before: before, after: after))
            }
            guard collections[collection].queries > 0 else { continue }
            let rankBefore = transaction.touches[index].rankBefore
            let rank = collections[collection].table.slots[position].rank
            guard !isEqual || rank != rankBefore else { continue }
            if collections[collection].group < 0 {
                collections[collection].group = groups.count
                groups.append([])
            }
            groups[collections[collection].group].append(
                NetChange(
                    id: id, before: before, rankBefore: rankBefore, after: after,
                    rankAfter: rank))
        }
        return (changes, groups)
    }

    private mutating func notifyQueries(_ groups: [[NetChange]]) -> [LiveChange] {
        guard !groups.isEmpty else { return [] }
        var live: [LiveChange] = []
        var ended: [LiveQueryID] = []
        for index in queries.indices {
            let collection = queries[index].collection
            let group = collections[collection].group
            guard group >= 0 else { continue }
            do throws(RealtimeError) {
                if let change = try queries[index].apply(groups[group]) { live.append(change) }
            } catch {
                collectionOfEndedQuery = collections[collection].name
                ended.append(queries[index].id)
            }
        }
        for query in ended { stopObserving(query) }
        return live
    }

    private mutating func endTouches() {
        var last = -1
        for index in transaction.touches.indices {
            let collection = Int(transaction.touches[index].collection)
            collections[collection].table.endTouch(at: Int(transaction.touches[index].slot))
            collections[collection].group = -1
        }
        for index in transaction.touches.indices
        where Int(transaction.touches[index].collection) != last {
            last = Int(transaction.touches[index].collection)
            collections[last].table.finish()
        }
        let keepsCapacity = transaction.touches.count < 1_024
        transaction.touches.removeAll(keepingCapacity: keepsCapacity)
        transaction.placed.removeAll()
        transaction.number += 1
    }
}
