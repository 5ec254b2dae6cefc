package import Wire

/// A document that a stub wrote, as it was before.
package struct OriginalDocument: Sendable {
    package let key: DocumentKey
    /// nil: the stub inserted it.
    package let fields: EJSONObject?
    /// Its place, for the transaction with this number.
    let rank: Int64
    let transaction: Int
}

/// The documents that the running stub wrote.
struct OriginalDocuments: Sendable {
    struct Name: Hashable, Sendable {
        let collection: Int
        let id: DocumentID
    }

    var known: Set<Name> = []
    var documents: [(name: Name, original: OriginalDocument)] = []
}

extension DocumentStore {
    /// From now on the store remembers how each document was before its first write by the program.
    package mutating func beginOriginals() { originals = OriginalDocuments() }

    /// The documents that were written since `beginOriginals`, in the order in which their
    /// collections were declared, then of the first write. Collections that nobody declared come
    /// last. An update that changes nothing counts as a write; one that finds no document, and an
    /// insert that fails, do not.
    package mutating func takeOriginals() -> [OriginalDocument] {
        let written = originals?.documents ?? []
        originals = nil
        return written.enumerated()
            .sorted { left, right in
                let leftOrder = declarationOrder(left.element.name.collection)
                let rightOrder = declarationOrder(right.element.name.collection)
                return leftOrder == rightOrder ? left.offset < right.offset : leftOrder < rightOrder
            }
            .map { $0.element.original }
    }

    /// Makes documents as they were. In the batch in which they were written, they get their places
    /// back as well.
    package mutating func rollBack(_ originals: [OriginalDocument]) {
        for original in originals { restore(original) }
    }

    mutating func recordOriginal(_ collection: Int, _ id: DocumentID, before: EJSONObject?) {
        guard originals != nil else { return }
        let name = OriginalDocuments.Name(collection: collection, id: id)
        guard originals?.known.insert(name).inserted == true else { return }
        let position = collections[collection].table.position(of: id)
        let original = OriginalDocument(
            key: DocumentKey(collection: collections[collection].name, id: id), fields: before,
            rank: position.map { collections[collection].table.slots[$0].rank } ?? 0,
            transaction: transaction.number)
        originals?.documents.append((name, original))
    }

    private mutating func restore(_ original: OriginalDocument) {
        let collection = positionOfCollection(original.key.collection)
        let id = original.key.id
        let position = collections[collection].table.position(of: id)
        let present = position.flatMap { collections[collection].table.slots[$0].fields }
        switch (original.fields, present) {
        case (nil, nil): return
        case (nil, _?): remove(collection, id)
        case (let fields?, _):
            guard let position, original.transaction == transaction.number else {
                if present == nil {
                    append(collection, id, fields)
                } else {
                    replace(collection, id, fields)
                }
                return
            }
            touch(collection, position)
            bytes += StoredBytes.of(fields) - (present.map { StoredBytes.of($0) } ?? 0)
            if present == nil { bytes += StoredBytes.of(id) }
            collections[collection].table.restore(at: position, fields, rank: original.rank)
        }
    }

    private func declarationOrder(_ collection: Int) -> (Int, Int) {
        (collections[collection].declaration ?? Int.max, collection)
    }
}
