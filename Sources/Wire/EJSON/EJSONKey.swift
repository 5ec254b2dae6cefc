/// A value as the key of a set. Values are compared as in queries: the order of an object's fields
/// counts, and a decimal equals a number of the same value.
package struct EJSONKey: Hashable, Sendable {
    package let value: EJSON

    package init(_ value: EJSON) { self.value = value }

    package static func == (first: EJSONKey, second: EJSONKey) -> Bool {
        first.value.equals(second.value, keyOrder: true)
    }

    package func hash(into hasher: inout Hasher) { value.hash(into: &hasher) }
}

extension EJSON {
    fileprivate func hash(into hasher: inout Hasher) {
        switch self {
        case .null: hasher.combine(0)
        case .bool(let value): hasher.combine(value ? 2 : 1)
        case .number(let value): hasher.combine(value)
        case .decimal(let text):
            guard let value = DecimalValue(text) else { return hasher.combine(4, text) }
            if let number = value.number { return hasher.combine(number) }
            hasher.combine(4)
            value.hash(into: &hasher)
        case .string(let text): hasher.combine(5, text)
        case .array(let elements):
            hasher.combine(6)
            hasher.combine(elements.count)
            for element in elements { element.hash(into: &hasher) }
        case .object(let object):
            hasher.combine(7)
            hasher.combine(object.count)
            for field in object.fields {
                hasher.combine(8, field.name)
                field.value.hash(into: &hasher)
            }
        case .date(let milliseconds):
            hasher.combine(9)
            hasher.combine(milliseconds)
        case .bytes(let bytes):
            hasher.combine(10)
            hasher.combine(bytes)
        case .objectID(let id):
            hasher.combine(11)
            hasher.combine(id)
        case .pattern(let pattern):
            hasher.combine(12, pattern.source)
            hasher.combine(13, pattern.flags)
        case .custom(let custom):
            hasher.combine(14, custom.type)
            custom.value.hash(into: &hasher)
        }
    }
}

extension Hasher {
    fileprivate mutating func combine(_ number: Double) {
        combine(3)
        combine(number.isNaN ? 0 : (number == 0 ? 0 : number.bitPattern))
    }

    fileprivate mutating func combine(_ kind: Int, _ text: String) {
        combine(kind)
        combine(ByteText(text))
    }
}
