public import Wire

/// Encodes `Codable` values as EJSON.
///
///     let fields = try EJSONEncoder().encode(["text": "milk", "due": EJSONDate.now])
///
/// Types that conform to `EJSONConvertible` become their own values: `EJSONDate` a date, `[UInt8]`
/// binary data, `ObjectID` an ObjectID, `EJSONDecimal` a decimal, and with `RealtimeFoundation`
/// also `Date`, `Data`, `Decimal` and `URL`. Types of the application that conform to `EJSONType`
/// become custom values. All others become strings, numbers, bools, arrays and objects, as their
/// `Codable` conformance says: nil properties are left out. A `DDPModel` inside another value
/// becomes its id.
public struct EJSONEncoder: Sendable {
    /// What values find in their encoder.
    public var userInfo: [CodingUserInfoKey: any Sendable] = [:]

    public init() {}

    /// - Parameter value: also a `DDPModel`, which becomes an object with all its properties.
    /// - Throws: `EncodingError` for a whole number beyond 2^53, which a double cannot hold, and
    ///   for values that are nested deeper than 128 levels; what the values themselves throw.
    public func encode(_ value: some Encodable) throws -> EJSON {
        let encoder = EJSONValueEncoder(userInfo: userInfo)
        try encoder.write(value, isModelWhole: true)
        let encoded = encoder.node.ejson
        guard !encoded.isTooDeep else { throw encoder.tooDeep(value) }
        return encoded
    }
}

/// A part of a value, as far as it has been encoded.
final class EJSONNode {
    enum Content {
        case nothing
        case value(EJSON)
        case array([EJSONNode])
        case object([(String, EJSONNode)])
    }

    var content = Content.nothing

    init(_ content: Content = .nothing) { self.content = content }

    /// An encoder that writes nothing means an empty object.
    var ejson: EJSON {
        switch content {
        case .nothing: .object([:])
        case .value(let value): value
        case .array(let nodes): .array(nodes.map { $0.ejson })
        case .object(let members): .object(EJSONObject(members.lazy.map { ($0.0, $0.1.ejson) }))
        }
    }

    func append(_ node: EJSONNode) {
        var nodes: [EJSONNode] = []
        if case .array(let old) = content { nodes = old }
        // The old array must not be retained while the new one grows.
        content = .nothing
        nodes.append(node)
        content = .array(nodes)
    }

    func append(_ name: String, _ node: EJSONNode) {
        var members: [(String, EJSONNode)] = []
        if case .object(let old) = content { members = old }
        content = .nothing
        members.append((name, node))
        content = .object(members)
    }

    /// The node of a nested container: that of an earlier one of the same name, or a new one.
    func node(named name: String) -> EJSONNode {
        if case .object(let members) = content,
            let member = members.last(where: { $0.0.utf8.elementsEqual(name.utf8) })
        {
            return member.1
        }
        let node = EJSONNode()
        append(name, node)
        return node
    }
}

/// Encodes one value into a node.
struct EJSONValueEncoder: Encoder {
    let node: EJSONNode
    var codingPath: [any CodingKey] = []
    let userInfo: [CodingUserInfoKey: Any]
    /// Other names for the keys of the outermost object.
    let fields: [ByteText: String]

    init(
        userInfo: [CodingUserInfoKey: Any] = [:], fields: [ByteText: String] = [:],
        codingPath: [any CodingKey] = [], into node: EJSONNode = EJSONNode()
    ) {
        self.node = node
        self.userInfo = userInfo
        self.fields = fields
        self.codingPath = codingPath
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        if case .nothing = node.content { node.content = .object([]) }
        return KeyedEncodingContainer(EJSONKeyedEncoding<Key>(encoder: self))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        if case .nothing = node.content { node.content = .array([]) }
        return EJSONUnkeyedEncoding(encoder: self)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer {
        EJSONSingleEncoding(encoder: self)
    }

    /// Encodes a part of this encoder's value.
    func part(_ value: some Encodable, _ key: any CodingKey) throws -> EJSONNode {
        let encoder = EJSONValueEncoder(userInfo: userInfo, codingPath: codingPath + [key])
        try encoder.write(value)
        return encoder.node
    }

    func tooDeep(_ value: Any) -> EncodingError {
        let context = EncodingError.Context(
            codingPath: codingPath,
            debugDescription: "it is nested deeper than \(EJSON.maximumDepth) levels")
        return .invalidValue(value, context)
    }

    /// - Parameter isModelWhole: whether a model is encoded with its properties.
    func write(_ value: some Encodable, isModelWhole: Bool = false) throws {
        // A value may contain itself. One level more, because a parameter has its position too.
        guard codingPath.count <= EJSON.maximumDepth + 1 else { throw tooDeep(value) }
        if let value = value as? any EJSONConvertible {
            node.content = .value(value.ejson)
        } else if let value = value as? any EJSONType {
            node.content = .value(EJSON(value))
        } else if !isModelWhole, let document = value as? any EJSONDocument {
            node.content = .value(document.ejsonID)
        } else {
            try value.encode(to: self)
        }
    }

    /// - Throws: for a number that a double cannot hold.
    func number(_ value: some BinaryInteger) throws -> EJSON {
        guard let number = Double(exactly: value), number.magnitude <= 0x1p53 else {
            throw EncodingError.invalidValue(
                value,
                EncodingError.Context(
                    codingPath: codingPath,
                    debugDescription: "\(value) is beyond 2^53, the most that a number can hold"))
        }
        return .number(number)
    }
}

private struct EJSONSingleEncoding: SingleValueEncodingContainer {
    let encoder: EJSONValueEncoder
    var codingPath: [any CodingKey] { encoder.codingPath }

    private func set(_ value: EJSON) { encoder.node.content = .value(value) }

    mutating func encodeNil() { set(.null) }
    mutating func encode(_ value: Bool) { set(.bool(value)) }
    mutating func encode(_ value: String) { set(.string(value)) }
    mutating func encode(_ value: Double) { set(.number(value)) }
    mutating func encode(_ value: Float) { set(.number(Double(value))) }
    mutating func encode(_ value: Int) throws { set(try encoder.number(value)) }
    mutating func encode(_ value: Int8) throws { set(try encoder.number(value)) }
    mutating func encode(_ value: Int16) throws { set(try encoder.number(value)) }
    mutating func encode(_ value: Int32) throws { set(try encoder.number(value)) }
    mutating func encode(_ value: Int64) throws { set(try encoder.number(value)) }
    mutating func encode(_ value: UInt) throws { set(try encoder.number(value)) }
    mutating func encode(_ value: UInt8) throws { set(try encoder.number(value)) }
    mutating func encode(_ value: UInt16) throws { set(try encoder.number(value)) }
    mutating func encode(_ value: UInt32) throws { set(try encoder.number(value)) }
    mutating func encode(_ value: UInt64) throws { set(try encoder.number(value)) }

    mutating func encode<Value: Encodable>(_ value: Value) throws { try encoder.write(value) }
}

private struct EJSONKeyedEncoding<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let encoder: EJSONValueEncoder
    var codingPath: [any CodingKey] { encoder.codingPath }

    private func name(_ key: any CodingKey) -> String {
        encoder.fields[ByteText(key.stringValue)] ?? key.stringValue
    }

    mutating func encodeNil(forKey key: Key) {
        encoder.node.append(name(key), EJSONNode(.value(.null)))
    }

    mutating func encode<Value: Encodable>(_ value: Value, forKey key: Key) throws {
        encoder.node.append(name(key), try encoder.part(value, key))
    }

    mutating func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type, forKey key: Key
    ) -> KeyedEncodingContainer<NestedKey> { nested(key).container(keyedBy: type) }

    mutating func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        nested(key).unkeyedContainer()
    }

    mutating func superEncoder() -> any Encoder { nested(EJSONKey("super")) }
    mutating func superEncoder(forKey key: Key) -> any Encoder { nested(key) }

    private func nested(_ key: any CodingKey) -> EJSONValueEncoder {
        EJSONValueEncoder(
            userInfo: encoder.userInfo, codingPath: encoder.codingPath + [key],
            into: encoder.node.node(named: name(key)))
    }
}

private struct EJSONUnkeyedEncoding: UnkeyedEncodingContainer {
    let encoder: EJSONValueEncoder
    var codingPath: [any CodingKey] { encoder.codingPath }
    var count: Int {
        if case .array(let nodes) = encoder.node.content { nodes.count } else { 0 }
    }

    mutating func encodeNil() { encoder.node.append(EJSONNode(.value(.null))) }

    mutating func encode<Value: Encodable>(_ value: Value) throws {
        encoder.node.append(try encoder.part(value, EJSONKey(count)))
    }

    mutating func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type
    ) -> KeyedEncodingContainer<NestedKey> { nested().container(keyedBy: type) }

    mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
        nested().unkeyedContainer()
    }

    mutating func superEncoder() -> any Encoder { nested() }

    private func nested() -> EJSONValueEncoder {
        let nested = EJSONValueEncoder(
            userInfo: encoder.userInfo, codingPath: encoder.codingPath + [EJSONKey(count)])
        encoder.node.append(nested.node)
        return nested
    }
}

/// A field's name, or a position in an array.
struct EJSONKey: CodingKey {
    let stringValue: String
    let intValue: Int?

    init(_ name: String) {
        stringValue = name
        intValue = nil
    }

    init(_ index: Int) {
        stringValue = "\(index)"
        intValue = index
    }

    init(stringValue: String) { self.init(stringValue) }
    init(intValue: Int) { self.init(intValue) }
}
