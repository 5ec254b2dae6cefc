package import Wire

/// One collection: its documents, and what the program declared about it. A copy shares the
/// documents until one of them changes.
package struct DocumentCollection: Sendable {
    let name: String
    var table = DocumentTable()
    /// The number of its declaration, from 0; nil until it is declared.
    var declaration: Int?
    var newIDs = NewDocumentIDs.strings
    /// How many live queries it has.
    var queries = 0
    /// Where `commit` gathers its changes; -1 outside of that.
    var group = -1

    init(name: String) { self.name = name }

    /// - Throws: `.invalidArgument` for a query that takes too long: see `SearchBudget`.
    package func find(_ query: Query) throws(RealtimeError) -> [Found] {
        guard let ids = query.selector.ids else { return try query.results(of: table.documents) }
        let slots = positions(ids).map { table.slots[$0] }.sorted { $0.rank < $1.rank }
        let documents: [(DocumentID, EJSONObject)] = slots.compactMap { slot in
            guard let id = slot.id, let fields = slot.fields else { return nil }
            return (id, fields)
        }
        return try query.results(of: documents)
    }

    /// The slots of the documents that the selector can match.
    func candidates(_ selector: Selector) -> [Int] {
        selector.ids.map { positions($0) } ?? Array(table.slots.indices)
    }

    private func positions(_ ids: [DocumentID]) -> [Int] {
        Set(ids.compactMap { table.position(of: $0) }).sorted()
    }
}
