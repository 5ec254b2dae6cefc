internal import Wire

/// An estimate of the memory that documents take, beside that of their fields.
enum StoredBytes {
    /// What a document takes beside its fields: its entries in the collection's tables.
    static let document = 160
    /// What a collection takes beside its documents.
    static let collection = 400

    static func of(_ id: DocumentID) -> Int { document + id.byteCount }
    static func of(_ fields: EJSONObject) -> Int { fields.storedBytes }
    static func of(name: String, _ value: EJSON) -> Int { value.storedBytes(name: name) }
}
