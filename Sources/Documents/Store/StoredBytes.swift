internal import Wire

/// An estimate of the memory that documents take. It is the same whenever it is made for the same
/// value, so that a sum of added and subtracted estimates stays right.
enum StoredBytes {
    /// What a document takes beside its fields: its entries in the collection's tables.
    static let document = 160
    /// What a collection takes beside its documents.
    static let collection = 400
    /// Deeper values do not count. Text from a server has a smaller limit for its depth.
    private static let maximumDepth = 256

    static func of(_ id: DocumentID) -> Int { document + id.wire.utf8.count }

    static func of(_ fields: EJSONObject) -> Int { of(fields, depth: 0) }

    static func of(name: String, _ value: EJSON) -> Int {
        40 + name.utf8.count + of(value, depth: 0)
    }

    private static func of(_ fields: EJSONObject, depth: Int) -> Int {
        var bytes = 0
        for field in fields.fields {
            bytes += 40 + field.name.utf8.count + of(field.value, depth: depth)
        }
        return bytes
    }

    /// What a value takes beside its place in an array or a field.
    private static func of(_ value: EJSON, depth: Int) -> Int {
        switch value {
        case .null, .bool, .number, .date, .objectID: return 0
        case .string(let text), .decimal(let text): return text.utf8.count
        case .bytes(let bytes): return 32 + bytes.count
        case .pattern: return 96
        case .array(let elements):
            guard depth < maximumDepth else { return 0 }
            return elements.reduce(32) { $0 + 24 + of($1, depth: depth + 1) }
        case .object(let fields):
            guard depth < maximumDepth else { return 0 }
            return 32 + of(fields, depth: depth + 1)
        case .custom(let custom):
            guard depth < maximumDepth else { return 0 }
            return 96 + of(custom.value, depth: depth + 1)
        }
    }
}
