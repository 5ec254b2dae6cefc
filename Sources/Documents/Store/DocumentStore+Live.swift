package import Wire

extension DocumentStore {
    /// Keeps the result of a query up to date. In a batch, the query begins with the documents as
    /// they were before it.
    /// - Returns: the query's name and its present result. Each later notification in which the
    ///   result differs has its changes.
    /// - Throws: `.invalidArgument` for a query that takes too long: see `SearchBudget`.
    package mutating func observe(
        _ query: Query, in collection: String
    ) throws(RealtimeError) -> (id: LiveQueryID, found: [Found]) {
        let position = positionOfCollection(collection)
        lastQuery += 1
        let id = LiveQueryID(number: lastQuery)
        let live = try LiveQuery(
            id: id, collection: position, query: query,
            documents: documentsBefore(position, query.selector))
        queries.append(live)
        collections[position].queries += 1
        return (id, live.found)
    }

    /// Ends a live query; one that has ended already is ignored.
    package mutating func stopObserving(_ id: LiveQueryID) {
        guard let index = queries.firstIndex(where: { $0.id == id }) else { return }
        collections[queries[index].collection].queries -= 1
        queries.remove(at: index)
    }

    /// The documents as they were before the running transaction.
    private func documentsBefore(_ collection: Int, _ selector: Selector) -> [RankedDocument] {
        collections[collection].candidates(selector).compactMap { position in
            let slot = collections[collection].table.slots[position]
            let touch = slot.touch > 0 ? transaction.touches[Int(slot.touch) - 1] : nil
            guard let id = slot.id, let fields = touch.map({ $0.before }) ?? slot.fields else {
                return nil
            }
            return RankedDocument(id: id, fields: fields, rank: touch?.rankBefore ?? slot.rank)
        }
    }
}
