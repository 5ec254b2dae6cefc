// An estimate of the memory that values take. It is the same whenever it is made for the same
// value, so that a sum of added and subtracted estimates stays right.

extension EJSONObject {
    /// What the fields take, as if no other object shared their names.
    package var storedBytes: Int { storedBytes(depth: 0) }

    fileprivate func storedBytes(depth: Int) -> Int {
        var bytes = EJSON.fieldBytes * count + nameBytes
        for position in 0..<count { bytes += value(at: position).storedBytes(depth: depth) }
        return bytes
    }
}

extension EJSON {
    /// What a field takes beside its name and its value.
    fileprivate static let fieldBytes = 40
    /// Deeper values do not count. Text from a server has a smaller limit for its depth.
    private static let countedDepth = 256

    /// What a field with this value takes.
    package func storedBytes(name: String) -> Int {
        EJSON.fieldBytes + name.utf8.count + storedBytes(depth: 0)
    }

    /// What a value takes beside its place in an array or a field.
    fileprivate func storedBytes(depth: Int) -> Int {
        switch self {
        case .null, .bool, .number, .date, .objectID: return 0
        case .string(let text), .decimal(let text): return text.utf8.count
        case .bytes(let bytes): return 32 + bytes.count
        case .pattern(let pattern): return 96 + pattern.source.utf8.count
        case .array(let elements):
            guard depth < EJSON.countedDepth else { return 0 }
            return elements.reduce(32) { $0 + 24 + $1.storedBytes(depth: depth + 1) }
        case .object(let fields):
            guard depth < EJSON.countedDepth else { return 0 }
            return 32 + fields.storedBytes(depth: depth + 1)
        case .custom(let custom):
            guard depth < EJSON.countedDepth else { return 0 }
            return 96 + custom.type.utf8.count + custom.value.storedBytes(depth: depth + 1)
        }
    }
}
