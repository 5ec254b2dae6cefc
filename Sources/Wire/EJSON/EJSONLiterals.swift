// Literals: `["text": "milk", "done": false, "tags": ["a", .null]]`. There is none for null: `nil`
// removes a field of an object.

extension EJSON: ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByFloatLiteral, ExpressibleByStringLiteral, ExpressibleByArrayLiteral,
    ExpressibleByDictionaryLiteral
{
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    public init(integerLiteral value: Int) { self = .number(Double(value)) }
    public init(floatLiteral value: Double) { self = .number(value) }
    public init(stringLiteral value: String) { self = .string(value) }
    public init(arrayLiteral elements: EJSON...) { self = .array(elements) }

    public init(dictionaryLiteral elements: (String, EJSON)...) {
        self = .object(EJSONObject(elements))
    }
}

extension EJSONObject: ExpressibleByDictionaryLiteral {
    public init(dictionaryLiteral elements: (String, EJSON)...) { self.init(elements) }

    /// Of fields of the same name, the last one counts.
    public init(_ fields: some Sequence<(String, EJSON)>) {
        self.init()
        for (name, value) in fields { self[name] = value }
    }
}
