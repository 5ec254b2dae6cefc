/// A value of Meteor's EJSON (M7): JSON, and kinds of values that JSON lacks.
///
/// Numbers are `Double`, as in JavaScript: whole numbers beyond 2^53 lose digits, as they do on the
/// server.
public enum EJSON: Sendable {
    case null
    case bool(Bool)
    case number(Double)
    case string(String)
    case array([EJSON])
    case object(EJSONObject)
    /// Milliseconds since 1970-01-01 UTC, possibly negative.
    case date(Int64)
    case bytes([UInt8])
    case objectID(ObjectID)
    /// A decimal number as its text. Decimals of the same value are equal, whatever their texts.
    case decimal(String)
    indirect case pattern(EJSONPattern)
    indirect case custom(EJSONCustom)
}

/// A regular expression of JavaScript.
public struct EJSONPattern: Sendable {
    public let source: String
    /// Of `gimuy`, in alphabetical order, each once.
    public let flags: String

    /// - Parameter flags: of the first 50 characters, those that are known are kept, each once.
    public init(source: String, flags: String) {
        self.source = source
        let known = flags.utf8.prefix(50).filter { "gimuy".utf8.contains($0) }.sorted()
        var kept: [UInt8] = []
        for flag in known where kept.last != flag { kept.append(flag) }
        self.flags = String(decoding: kept, as: UTF8.self)
    }
}

/// A value of a type that the application has registered with Meteor.
public struct EJSONCustom: Sendable {
    public let type: String
    /// Plain JSON: strings, numbers, bools, null, and arrays and objects of them.
    public let value: EJSON

    public init(type: String, value: EJSON) {
        self.type = type
        self.value = value
    }
}

extension EJSON: Equatable {
    /// Compares values. NaN equals NaN, the order of keys does not matter, and texts are compared
    /// byte for byte.
    public static func == (first: EJSON, second: EJSON) -> Bool {
        first.equals(second, keyOrder: false)
    }

    /// Compares values like `==`.
    /// - Parameter keyOrder: whether to compare as queries do: objects with their keys in another
    ///   order differ, and a decimal equals a number of the same value.
    public func equals(_ other: EJSON, keyOrder: Bool) -> Bool {
        switch (self, other) {
        case (.null, .null): true
        case (.bool(let first), .bool(let second)): first == second
        case (.number(let first), .number(let second)):
            first == second || first.isNaN && second.isNaN
        case (.string(let first), .string(let second)): first.hasSameBytes(as: second)
        case (.array(let first), .array(let second)):
            first.count == second.count
                && zip(first, second).allSatisfy { $0.equals($1, keyOrder: keyOrder) }
        case (.object(let first), .object(let second)):
            first.equals(second, keyOrder: keyOrder)
        case (.date(let first), .date(let second)): first == second
        case (.bytes(let first), .bytes(let second)): first == second
        case (.objectID(let first), .objectID(let second)): first == second
        case (.decimal(let mine), .decimal(let others)):
            mine.hasSameBytes(as: others) || hasValue(of: other)
        case (.number, .decimal), (.decimal, .number): keyOrder && hasValue(of: other)
        case (.pattern(let first), .pattern(let second)):
            first.source.hasSameBytes(as: second.source)
                && first.flags.hasSameBytes(as: second.flags)
        case (.custom(let first), .custom(let second)):
            first.type.hasSameBytes(as: second.type)
                && first.value.equals(second.value, keyOrder: keyOrder)
        default: false
        }
    }
}
