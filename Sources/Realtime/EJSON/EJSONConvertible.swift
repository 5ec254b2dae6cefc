public import Wire

/// A type that has an EJSON value of its own, such as a date. `EJSONEncoder` and `EJSONDecoder` use
/// that value instead of the type's `Codable` members.
///
/// Coders of other formats write the value's EJSON text, as a string.
public protocol EJSONConvertible: Codable {
    var ejson: EJSON { get }

    /// - Returns: nil if the value is of another kind.
    init?(ejson: EJSON)
}

extension EJSONConvertible {
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let value = (decoder as? EJSONValueDecoder)?.value
        let parsed = try value ?? EJSON(parsing: try container.decode(String.self))
        guard let converted = Self(ejson: parsed) else {
            throw DecodingError.dataCorruptedError(
                in: container, debugDescription: "\(parsed.text) is not \(Self.self)")
        }
        self = converted
    }

    public func encode(to encoder: any Encoder) throws {
        if let encoder = encoder as? EJSONValueEncoder {
            encoder.node.content = .value(ejson)
        } else {
            var container = encoder.singleValueContainer()
            try container.encode(ejson.text)
        }
    }
}

// MARK: What is EJSON already

/// Any value, passed through as it is.
extension EJSON: EJSONConvertible {
    public var ejson: EJSON { self }
    public init?(ejson: EJSON) { self = ejson }
}

extension EJSONObject: EJSONConvertible {
    public var ejson: EJSON { .object(self) }

    public init?(ejson: EJSON) {
        guard case .object(let object) = ejson else { return nil }
        self = object
    }
}

extension ObjectID: EJSONConvertible {
    public var ejson: EJSON { .objectID(self) }

    public init?(ejson: EJSON) {
        guard case .objectID(let id) = ejson else { return nil }
        self = id
    }
}

extension EJSONPattern: EJSONConvertible, Equatable {
    public static func == (left: Self, right: Self) -> Bool { left.ejson == right.ejson }

    public var ejson: EJSON { .pattern(self) }

    public init?(ejson: EJSON) {
        guard case .pattern(let pattern) = ejson else { return nil }
        self = pattern
    }
}

extension EJSONCustom: EJSONConvertible, Equatable {
    public static func == (left: Self, right: Self) -> Bool { left.ejson == right.ejson }

    public var ejson: EJSON { .custom(self) }

    public init?(ejson: EJSON) {
        guard case .custom(let custom) = ejson else { return nil }
        self = custom
    }
}

/// A decimal number of MongoDB, which Meteor calls `Decimal`, as its text: `EJSON.decimal`.
/// `RealtimeFoundation` converts Foundation's `Decimal` from and to it, and `Decimal` may also be
/// used in its place. Two of them are equal if their texts are.
public struct EJSONDecimal: Hashable, Sendable, EJSONConvertible {
    /// Such as `12.50`.
    public var text: String

    public init(_ text: String) { self.text = text }

    public var ejson: EJSON { .decimal(text) }

    public init?(ejson: EJSON) {
        guard case .decimal(let text) = ejson else { return nil }
        self.init(text)
    }
}

/// Bytes: EJSON's binary data, and not an array of numbers.
extension [UInt8]: EJSONConvertible {
    public var ejson: EJSON { .bytes(self) }

    public init?(ejson: EJSON) {
        guard case .bytes(let bytes) = ejson else { return nil }
        self = bytes
    }
}

// MARK: Kinds

extension EJSON {
    /// What errors call the value.
    var kindName: String {
        switch self {
        case .null: "null"
        case .bool: "a bool"
        case .number: "a number"
        case .string: "a string"
        case .array: "an array"
        case .object: "an object"
        case .date: "a date"
        case .bytes: "bytes"
        case .objectID: "an ObjectID"
        case .decimal: "a decimal"
        case .pattern: "a regular expression"
        case .custom(let custom): "a value of type \(custom.type)"
        }
    }
}

/// A document that other values refer to: encoded as a part of one, it is its id. Each `DDPModel`
/// is one.
public protocol EJSONDocument {
    /// The id as the value of a field.
    var ejsonID: EJSON { get }
}
