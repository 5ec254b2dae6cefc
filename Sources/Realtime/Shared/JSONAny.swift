import Wire

extension JSONValue {
    /// The value as Swift values; nil for null. A null inside an array or object stays
    /// `JSONValue.null`.
    var anyValue: Any? {
        if case .null = self { return nil }
        return inner
    }

    private var inner: Any {
        switch self {
        case .null: self
        case .bool(let value): value
        case .integer(let value): Int(value)
        case .number(let value): value
        case .string(let value): value
        case .array(let values): values.map(\.inner)
        case .object(let object):
            Dictionary(
                object.members.map { ($0.name, $0.value.inner) }, uniquingKeysWith: { $1 })
        }
    }

    /// Converts Swift values; nil if JSON has no form for one of them.
    init?(any value: Any?) {
        switch value {
        case nil: self = .null
        case let value as JSONValue: self = value
        case let value as any OptionalValue: self.init(any: value.wrapped)
        case let value as Bool: self = .bool(value)
        case let value as String: self = .string(value)
        case let value as Substring: self = .string(String(value))
        case let value as any BinaryInteger:
            self = Int64(exactly: value).map { .integer($0) } ?? .number(Double(value))
        case let value as any BinaryFloatingPoint:
            let number = Double(value)
            guard number.isFinite else { return nil }
            self = .number(number)
        case let values as [Any]:
            var array: [JSONValue] = []
            for value in values {
                guard let value = JSONValue(any: value) else { return nil }
                array.append(value)
            }
            self = .array(array)
        case let values as [String: Any]:
            var object = JSONObject()
            for (name, value) in values.sorted(by: { $0.key < $1.key }) {
                guard let value = JSONValue(any: value) else { return nil }
                object[name] = value
            }
            self = .object(object)
        default: return nil
        }
    }

    /// Converts Swift values, or takes their description.
    init(describing value: Any) {
        self = JSONValue(any: value) ?? .string(String(describing: value))
    }
}

/// An optional inside `Any`.
private protocol OptionalValue {
    var wrapped: Any? { get }
}

extension Optional: OptionalValue {
    fileprivate var wrapped: Any? { self }
}
