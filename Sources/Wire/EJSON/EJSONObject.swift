/// An object's fields, in the order in which they came. Names are compared byte for byte.
public struct EJSONObject: Sendable {
    public struct Field: Sendable {
        public let name: String
        public internal(set) var value: EJSON
    }

    public private(set) var fields: [Field] = []
    /// The position of each name, once there are too many fields to search.
    private var positions: [ByteText: Int] = [:]
    private static let searchedCount = 16

    public init() {}

    public var count: Int { fields.count }
    public var isEmpty: Bool { fields.isEmpty }

    /// The value of a field. A new field is added at the end, and a new value keeps its field's
    /// position. Setting nil removes the field.
    public subscript(name: String) -> EJSON? {
        get { position(of: name).map { fields[$0].value } }
        set {
            switch (position(of: name), newValue) {
            case (let position?, let value?): fields[position].value = value
            case (let position?, nil):
                fields.remove(at: position)
                positions = [:]
                index(from: 0)
            case (nil, let value?): append(name, value)
            case (nil, nil): break
            }
        }
    }

    package subscript(name: UnsafeRawBufferPointer) -> EJSON? {
        guard positions.isEmpty else { return self[String(decoding: name, as: UTF8.self)] }
        for position in fields.indices where fields[position].name.hasBytes(name) {
            return fields[position].value
        }
        return nil
    }

    /// Adds a field at the end. The caller knows that no field has the name.
    package mutating func append(_ name: String, _ value: EJSON) {
        fields.append(Field(name: name, value: value))
        index(from: positions.isEmpty ? 0 : fields.count - 1)
    }

    package mutating func reserveCapacity(_ count: Int) { fields.reserveCapacity(count) }

    private func position(of name: String) -> Int? {
        guard positions.isEmpty else { return positions[ByteText(name)] }
        return fields.indices.first { fields[$0].name.hasSameBytes(as: name) }
    }

    private mutating func index(from first: Int) {
        guard fields.count > EJSONObject.searchedCount else { return }
        for position in first..<fields.count {
            positions[ByteText(fields[position].name)] = position
        }
    }
}

extension EJSONObject: Equatable {
    /// Whether both have the same fields, in any order.
    public static func == (first: EJSONObject, second: EJSONObject) -> Bool {
        first.equals(second, keyOrder: false)
    }

    func equals(_ other: EJSONObject, keyOrder: Bool) -> Bool {
        guard count == other.count else { return false }
        return fields.indices.allSatisfy { position in
            let (field, second) = (fields[position], other.fields[position])
            // The order is mostly the same.
            if field.name.hasSameBytes(as: second.name) {
                return field.value.equals(second.value, keyOrder: keyOrder)
            }
            guard !keyOrder, let value = other[field.name] else { return false }
            return field.value.equals(value, keyOrder: keyOrder)
        }
    }
}
