public import Wire

/// Decodes EJSON as `Codable` values; see `EJSONEncoder`.
///
///     let todo = try EJSONDecoder().decode(Todo.self, from: document.fields.ejson)
public struct EJSONDecoder: Sendable {
    /// What values find in their decoder.
    public var userInfo: [CodingUserInfoKey: any Sendable] = [:]

    public init() {}

    /// Fields of objects that the type does not know are ignored. A field that is missing or null
    /// is nil for an optional property, and a fault for others.
    /// - Throws: `DecodingError`, whose coding path leads to the fault: a value is of another kind,
    ///   a number is not whole or not in the range of its type, a field is missing, or the values
    ///   are nested deeper than 128 levels.
    public func decode<Value: Decodable>(_ type: Value.Type, from value: EJSON) throws -> Value {
        try EJSONValueDecoder(value: value, userInfo: userInfo).read(type)
    }
}

/// Decodes one value.
struct EJSONValueDecoder: Decoder {
    let value: EJSON
    var codingPath: [any CodingKey] = []
    var userInfo: [CodingUserInfoKey: Any] = [:]
    /// Other names for the keys of the outermost object.
    var fields: [ByteText: String] = [:]
    /// The values of the keys that the outermost object lacks.
    var defaults = EJSONObject()

    func container<Key: CodingKey>(
        keyedBy type: Key.Type
    ) throws -> KeyedDecodingContainer<Key> {
        guard case .object(let object) = value else { throw mismatch([String: EJSON].self) }
        return KeyedDecodingContainer(EJSONKeyedDecoding(decoder: self, object: object))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        guard case .array(let elements) = value else { throw mismatch([EJSON].self) }
        return EJSONUnkeyedDecoding(decoder: self, elements: elements)
    }

    func singleValueContainer() -> any SingleValueDecodingContainer {
        EJSONSingleDecoding(decoder: self)
    }

    func part(_ value: EJSON, _ key: any CodingKey) -> EJSONValueDecoder {
        EJSONValueDecoder(value: value, codingPath: codingPath + [key], userInfo: userInfo)
    }

    func read<Value: Decodable>(_ type: Value.Type) throws -> Value {
        guard codingPath.count <= EJSON.maximumDepth + 2 else {
            let context = DecodingError.Context(
                codingPath: codingPath,
                debugDescription: "it is nested deeper than \(EJSON.maximumDepth) levels")
            throw DecodingError.dataCorrupted(context)
        }
        let converted: Any?
        if let type = type as? any EJSONConvertible.Type {
            converted = type.init(ejson: value)
        } else if let type = type as? any EJSONType.Type {
            converted = try read(application: type)
        } else {
            return try Value(from: self)
        }
        guard let converted = converted as? Value else { throw mismatch(type) }
        return converted
    }

    private func read<Value: EJSONType>(application type: Value.Type) throws -> Value? {
        do {
            return try value.decoded(as: type)
        } catch {
            let context = DecodingError.Context(
                codingPath: codingPath, debugDescription: "it cannot be \(type)",
                underlyingError: error)
            throw DecodingError.dataCorrupted(context)
        }
    }

    // MARK: Plain values

    func bool() throws -> Bool {
        guard case .bool(let bool) = value else { throw mismatch(Bool.self) }
        return bool
    }

    func string() throws -> String {
        guard case .string(let string) = value else { throw mismatch(String.self) }
        return string
    }

    func real<Real: BinaryFloatingPoint>(_ type: Real.Type) throws -> Real {
        guard case .number(let number) = value else { throw mismatch(type) }
        let real = Real(number)
        guard real.isFinite || !number.isFinite else { throw outOfRange(number, type) }
        return real
    }

    func whole<Whole: FixedWidthInteger>(_ type: Whole.Type) throws -> Whole {
        guard case .number(let number) = value else { throw mismatch(type) }
        guard let whole = Whole(exactly: number) else { throw outOfRange(number, type) }
        return whole
    }

    private func outOfRange(_ number: Double, _ type: Any.Type) -> DecodingError {
        .dataCorrupted(
            DecodingError.Context(
                codingPath: codingPath,
                debugDescription: "\(EJSON.number(number).text) does not fit into \(type)"))
    }

    private func mismatch(_ type: Any.Type) -> DecodingError {
        let context = DecodingError.Context(
            codingPath: codingPath, debugDescription: "\(value.kindName) is not \(type)")
        return value == .null ? .valueNotFound(type, context) : .typeMismatch(type, context)
    }
}

private struct EJSONSingleDecoding: SingleValueDecodingContainer {
    let decoder: EJSONValueDecoder
    var codingPath: [any CodingKey] { decoder.codingPath }

    func decodeNil() -> Bool { decoder.value == .null }
    func decode(_ type: Bool.Type) throws -> Bool { try decoder.bool() }
    func decode(_ type: String.Type) throws -> String { try decoder.string() }
    func decode(_ type: Double.Type) throws -> Double { try decoder.real(type) }
    func decode(_ type: Float.Type) throws -> Float { try decoder.real(type) }
    func decode(_ type: Int.Type) throws -> Int { try decoder.whole(type) }
    func decode(_ type: Int8.Type) throws -> Int8 { try decoder.whole(type) }
    func decode(_ type: Int16.Type) throws -> Int16 { try decoder.whole(type) }
    func decode(_ type: Int32.Type) throws -> Int32 { try decoder.whole(type) }
    func decode(_ type: Int64.Type) throws -> Int64 { try decoder.whole(type) }
    func decode(_ type: UInt.Type) throws -> UInt { try decoder.whole(type) }
    func decode(_ type: UInt8.Type) throws -> UInt8 { try decoder.whole(type) }
    func decode(_ type: UInt16.Type) throws -> UInt16 { try decoder.whole(type) }
    func decode(_ type: UInt32.Type) throws -> UInt32 { try decoder.whole(type) }
    func decode(_ type: UInt64.Type) throws -> UInt64 { try decoder.whole(type) }

    func decode<Value: Decodable>(_ type: Value.Type) throws -> Value { try decoder.read(type) }
}

private struct EJSONKeyedDecoding<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let decoder: EJSONValueDecoder
    let object: EJSONObject
    var codingPath: [any CodingKey] { decoder.codingPath }
    var allKeys: [Key] { object.fields.compactMap { Key(stringValue: $0.name) } }

    private func value(_ key: any CodingKey) -> EJSON? {
        object[decoder.fields[ByteText(key.stringValue)] ?? key.stringValue]
            ?? decoder.defaults[key.stringValue]
    }

    /// The decoder of a field.
    private func part(_ key: any CodingKey) throws -> EJSONValueDecoder {
        guard let value = value(key) else {
            let context = DecodingError.Context(
                codingPath: codingPath, debugDescription: "\(key.stringValue) is missing")
            throw DecodingError.keyNotFound(key, context)
        }
        return decoder.part(value, key)
    }

    func contains(_ key: Key) -> Bool { value(key) != nil }
    func decodeNil(forKey key: Key) throws -> Bool { try part(key).value == .null }

    func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
        try part(key).read(type)
    }

    func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type, forKey key: Key
    ) throws -> KeyedDecodingContainer<NestedKey> { try part(key).container(keyedBy: type) }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        try part(key).unkeyedContainer()
    }

    func superDecoder() throws -> any Decoder { try part(EJSONKey("super")) }
    func superDecoder(forKey key: Key) throws -> any Decoder { try part(key) }
}

private struct EJSONUnkeyedDecoding: UnkeyedDecodingContainer {
    let decoder: EJSONValueDecoder
    let elements: [EJSON]
    var currentIndex = 0
    var codingPath: [any CodingKey] { decoder.codingPath }
    var count: Int? { elements.count }
    var isAtEnd: Bool { currentIndex >= elements.count }

    init(decoder: EJSONValueDecoder, elements: [EJSON]) {
        self.decoder = decoder
        self.elements = elements
    }

    private func next(_ type: Any.Type) throws -> EJSONValueDecoder {
        let key = EJSONKey(currentIndex)
        guard !isAtEnd else {
            let context = DecodingError.Context(
                codingPath: codingPath + [key], debugDescription: "the array has ended")
            throw DecodingError.valueNotFound(type, context)
        }
        return decoder.part(elements[currentIndex], key)
    }

    mutating func decodeNil() throws -> Bool {
        guard try next(EJSON.self).value == .null else { return false }
        currentIndex += 1
        return true
    }

    mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        let value = try next(type).read(type)
        currentIndex += 1
        return value
    }

    mutating func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type
    ) throws -> KeyedDecodingContainer<NestedKey> {
        let container = try next([String: EJSON].self).container(keyedBy: type)
        currentIndex += 1
        return container
    }

    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
        let container = try next([EJSON].self).unkeyedContainer()
        currentIndex += 1
        return container
    }

    mutating func superDecoder() throws -> any Decoder {
        let decoder = try next(EJSON.self)
        currentIndex += 1
        return decoder
    }
}
