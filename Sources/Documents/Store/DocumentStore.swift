package import Wire

/// The documents that a client has, in collections.
///
/// Data from the server is buffered until `flush` applies it. Whatever changes documents is a
/// transaction: a flush, or a batch of the caller, which may contain other batches. At its end
/// comes one notification about the net difference. Reads see the changes of the running batch, but
/// never a part of a flush: one that takes several calls is finished before the store is used.
package struct DocumentStore: Sendable {
    /// The most memory, in bytes as the store estimates them, that documents from the server may
    /// take; and the same again for data that is buffered. Collections count, also empty ones.
    /// Documents that the program writes count, but are never refused.
    package let maximumBytes: Int
    /// The estimated size of all documents and collections.
    package internal(set) var bytes = 0

    var collections: [DocumentCollection] = []
    var positions = ByteTable<Int>()
    private var lastCollection = 0
    private var declarations = 0
    /// How many batches are open, one in the other.
    private var openBatches = 0
    var transaction = DocumentTransaction()
    var buffer = UpdateBuffer()
    var originals: OriginalDocuments?
    var queries: [LiveQuery] = []
    var lastQuery = 0
    /// The flush that is in progress, and the end of its transaction.
    var work: FlushWork?

    package init(maximumBytes: Int = .max) {
        self.maximumBytes = maximumBytes
    }

    // MARK: Collections

    /// Declares a collection, which may have documents already. The order of declaration is that in
    /// which `takeOriginals` lists documents. Declaring it again changes only the kind of its ids.
    package mutating func declare(_ collection: String, ids: NewDocumentIDs = .strings) {
        let position = positionOfCollection(collection)
        if collections[position].declaration == nil {
            collections[position].declaration = declarations
            declarations += 1
        }
        collections[position].newIDs = ids
    }

    package func isDeclared(_ collection: String) -> Bool {
        positions[collection].map { collections[$0].declaration != nil } ?? false
    }

    /// The ids that a collection gives to new documents: strings unless it was declared otherwise.
    package func newIDs(of collection: String) -> NewDocumentIDs {
        positions[collection].map { collections[$0].newIDs } ?? .strings
    }

    mutating func positionOfCollection(_ name: String) -> Int {
        // Mostly the same as the last time.
        if lastCollection < collections.count,
            collections[lastCollection].name.hasSameBytes(as: name)
        {
            return lastCollection
        }
        lastCollection = findOrAddCollection(name)
        return lastCollection
    }

    private mutating func findOrAddCollection(_ name: String) -> Int {
        if let position = positions[name] { return position }
        bytes += StoredBytes.collection + name.utf8.count
        positions[name] = collections.count
        collections.append(DocumentCollection(name: name))
        return collections.count - 1
    }

    // MARK: Reading

    /// The fields of a document, without its id; nil if it is not there.
    package func document(_ key: DocumentKey) -> EJSONObject? {
        positions[key.collection].flatMap { collections[$0].table.fields(of: key.id) }
    }

    package func count(of collection: String) -> Int {
        positions[collection].map { collections[$0].table.count } ?? 0
    }

    /// The documents of a collection in their natural order.
    package func documents(in collection: String) -> [(id: DocumentID, fields: EJSONObject)] {
        guard let position = positions[collection] else { return [] }
        return collections[position].table.documents.map { (id: $0, fields: $1) }
    }

    /// A collection as it is now; nil if it never had a document.
    package func collection(_ name: String) -> DocumentCollection? {
        positions[name].map { collections[$0] }
    }

    /// The names of all collections that have, or had, documents or a declaration.
    package var names: [String] { collections.map { $0.name } }

    /// - Throws: `.invalidArgument` for a query that takes too long: see `SearchBudget`.
    package func find(
        _ query: Query, in collection: String
    ) throws(RealtimeError) -> [Found] {
        guard let position = positions[collection] else { return [] }
        return try collections[position].find(query)
    }

    // MARK: Batches

    package var isInBatch: Bool { openBatches > 0 }

    /// Begins a batch. Each batch is ended by `endBatch`, also when its owner fails.
    package mutating func beginBatch() { openBatches += 1 }

    /// - Returns: at the end of the outermost batch the net difference since its begin, or nil if
    ///   there is none; at other ends nil.
    package mutating func endBatch() -> Notification? {
        endsTransaction() ? commit() : nil
    }

    /// Closes a batch.
    /// - Returns: whether it was the outermost one.
    mutating func endsTransaction() -> Bool {
        precondition(openBatches > 0, "endBatch without beginBatch")
        openBatches -= 1
        return openBatches == 0
    }

    private mutating func commit() -> Notification? {
        var end = TransactionEnd()
        var budget = StepBudget.unlimited
        _ = finish(&end, &budget)
        return end.notification
    }

    // MARK: Writing

    /// Inserts a document at the end of its collection. In a batch.
    /// - Returns: false if its id is there already; then nothing changes.
    package mutating func insert(_ key: DocumentKey, _ fields: EJSONObject) -> Bool {
        let collection = positionOfCollection(key.collection)
        guard collections[collection].table.fields(of: key.id) == nil else { return false }
        recordOriginal(collection, key.id, before: nil)
        append(collection, key.id, fields.withoutID)
        return true
    }

    /// Changes a document. In a batch.
    /// - Returns: 1, or 0 if the document is not there.
    /// - Throws: what the modifier throws; then nothing changes.
    package mutating func update(
        _ key: DocumentKey, _ modifier: Modifier
    ) throws(RealtimeError) -> Int {
        guard let collection = positions[key.collection],
            let fields = collections[collection].table.fields(of: key.id)
        else { return 0 }
        let changed = try modifier.apply(to: fields, id: key.id)
        recordOriginal(collection, key.id, before: fields)
        replace(collection, key.id, changed)
        return 1
    }

    /// Removes a document. In a batch.
    /// - Returns: 1, or 0 if the document is not there.
    package mutating func remove(_ key: DocumentKey) -> Int {
        guard let collection = positions[key.collection],
            let fields = collections[collection].table.fields(of: key.id)
        else { return 0 }
        recordOriginal(collection, key.id, before: fields)
        remove(collection, key.id)
        return 1
    }
}
