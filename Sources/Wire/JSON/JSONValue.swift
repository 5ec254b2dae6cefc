/// A JSON value (RFC 8259). `==` compares strings and names byte for byte, and members in any
/// order. An integer never equals a number, because 1 and 1.0 are different texts.
public enum JSONValue: Sendable, Equatable {
    case null
    case bool(Bool)
    /// A number without fraction and exponent that fits into 64 bits, except -0: it is a `number`,
    /// because an integer would lose its sign.
    case integer(Int64)
    case number(Double)
    case string(String)
    case array([JSONValue])
    case object(JSONObject)

    /// Parses a whole text: valid UTF-8 without a byte order mark, one value, and blanks around it.
    /// Integers beyond 64 bits become the nearest number. If several members have the same name,
    /// the last counts.
    /// - Throws: `.protocolViolation` with the offset if the text violates RFC 8259, has a
    ///   number beyond the range of `Double` (1e400), or is nested deeper than `maximumDepth`,
    ///   which is at most 512. Half a surrogate pair is read as U+FFFD.
    public init(
        parsing text: UnsafeRawBufferPointer, maximumDepth: Int = 128
    ) throws(RealtimeError) {
        var document = JSONDocument()
        self = try document.read(text, maximumDepth: maximumDepth) { root throws(RealtimeError) in
            try root.value
        }
    }

    public init(
        parsing text: [UInt8], maximumDepth: Int = 128
    ) throws(RealtimeError) {
        self = try text.withUnsafeBufferPointer { text throws(RealtimeError) in
            try JSONValue(parsing: UnsafeRawBufferPointer(text), maximumDepth: maximumDepth)
        }
    }

    public init(
        parsing text: String, maximumDepth: Int = 128
    ) throws(RealtimeError) {
        try self.init(parsing: Array(text.utf8), maximumDepth: maximumDepth)
    }

    public static func == (first: JSONValue, second: JSONValue) -> Bool {
        switch (first, second) {
        case (.null, .null): true
        case (.bool(let first), .bool(let second)): first == second
        case (.integer(let first), .integer(let second)): first == second
        case (.number(let first), .number(let second)): first == second
        case (.string(let first), .string(let second)): first.utf8.elementsEqual(second.utf8)
        case (.array(let first), .array(let second)): first == second
        case (.object(let first), .object(let second)): first == second
        case (.null, _), (.bool, _), (.integer, _), (.number, _), (.string, _), (.array, _),
            (.object, _):
            false
        }
    }

    /// A member of an object; nil if it does not exist, or the value is not an object.
    public subscript(name: String) -> JSONValue? { objectValue?[name] }

    /// An element of an array; nil if it does not exist, or the value is not an array.
    public subscript(index: Int) -> JSONValue? {
        guard case .array(let elements) = self, elements.indices.contains(index) else { return nil }
        return elements[index]
    }

    public var boolValue: Bool? {
        if case .bool(let value) = self { value } else { nil }
    }

    public var integerValue: Int64? {
        if case .integer(let value) = self { value } else { nil }
    }

    /// An integer or a number; an integer is rounded to the nearest `Double`.
    public var doubleValue: Double? {
        switch self {
        case .integer(let value): Double(value)
        case .number(let value): value
        case .null, .bool, .string, .array, .object: nil
        }
    }

    public var stringValue: String? {
        if case .string(let value) = self { value } else { nil }
    }

    public var arrayValue: [JSONValue]? {
        if case .array(let value) = self { value } else { nil }
    }

    public var objectValue: JSONObject? {
        if case .object(let value) = self { value } else { nil }
    }
}

extension JSONNode {
    /// A copy of the value and everything inside it.
    /// - Throws: `.protocolViolation` for a number beyond the range of `Double`.
    package var value: JSONValue {
        get throws(RealtimeError) {
            switch kind {
            case .null:
                return .null
            case .bool:
                return .bool(bool ?? false)
            case .number:
                return try number
            case .string:
                return .string(string ?? "")
            case .array:
                var values: [JSONValue] = []
                for element in elements { values.append(try element.value) }
                return .array(values)
            case .object:
                var object = JSONObject()
                for (name, value) in members {
                    object[name.string ?? ""] = try value.value
                }
                return .object(object)
            }
        }
    }

    private var number: JSONValue {
        get throws(RealtimeError) {
            if let integer, integer != 0 || source.first != UInt8(ascii: "-") {
                return .integer(integer)
            }
            guard let double else {
                throw JSONTape.fault(at: offset, "a number beyond the range of a double")
            }
            return .number(double)
        }
    }
}

extension JSONValue: ExpressibleByNilLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral, ExpressibleByStringLiteral,
    ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    public init(nilLiteral: ()) { self = .null }
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    public init(integerLiteral value: Int64) { self = .integer(value) }
    public init(floatLiteral value: Double) { self = .number(value) }
    public init(stringLiteral value: String) { self = .string(value) }
    public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
    public init(dictionaryLiteral members: (String, JSONValue)...) {
        var object = JSONObject()
        for (name, value) in members { object[name] = value }
        self = .object(object)
    }
}
