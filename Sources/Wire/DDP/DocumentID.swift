/// A document's id in its form on the wire (ddp.md §8). Ids are equal if their forms are equal byte
/// for byte.
package struct DocumentID: Hashable, Sendable {
    private let form: ByteText

    package var wire: String { form.text }

    /// The id that a message contains. Forms of one id that no server writes, such as `~5.0` and
    /// `-abc`, are the same id as `~5` and `abc`.
    /// - Returns: nil for a `~` that no number, bool or null follows.
    package init?(wire: String) {
        switch wire.utf8.first {
        case UInt8(ascii: "~"):
            switch DocumentID(form: wire).value {
            case .number(let number)?: self.init(.number(number))
            case .bool(let isTrue)?: self.init(.bool(isTrue))
            case .null?: self.init(.null)
            case .string, .array, .object, .date, .bytes, .objectID, .decimal, .pattern, .custom,
                nil:
                return nil
            }
        case UInt8(ascii: "-") where wire.utf8.count > 1, UInt8(ascii: "{"):
            guard let value = DocumentID(form: wire).value else { return nil }
            self.init(value)
        default: self.init(form: wire)
        }
    }

    private init(form: String) { self.form = ByteText(form) }

    /// - Parameter value: a text, an ObjectID, a number, a bool or null. nil for other kinds.
    package init?(_ value: EJSON) {
        switch value {
        case .string(let text): self.init(form: DocumentID.needsMark(text) ? "-" + text : text)
        case .objectID(let id): self.init(form: id.hex)
        case .number(let number) where number.isFinite: self.init(form: "~" + value.text)
        case .bool, .null: self.init(form: "~" + value.text)
        case .number, .array, .object, .date, .bytes, .decimal, .pattern, .custom: return nil
        }
    }

    /// nil for undefined.
    package var value: EJSON? {
        let text = wire
        switch text.utf8.first {
        case UInt8(ascii: "-"):
            return text.utf8.count == 1 ? nil : .string(String(text.dropFirst()))
        case UInt8(ascii: "~"):
            return try? EJSON(parsing: Array(text.utf8.dropFirst()))
        default:
            guard DocumentID.looksLikeObjectID(text), let id = ObjectID(hex: text) else {
                return .string(text)
            }
            return .objectID(id)
        }
    }

    /// Whether a text would be read as something else.
    private static func needsMark(_ text: String) -> Bool {
        switch text.utf8.first {
        case UInt8(ascii: "-"), UInt8(ascii: "~"), UInt8(ascii: "{"): true
        default: looksLikeObjectID(text)
        }
    }

    private static func looksLikeObjectID(_ text: String) -> Bool {
        text.utf8.count == 24
            && text.utf8.allSatisfy {
                $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9")
                    || $0 >= UInt8(ascii: "a") && $0 <= UInt8(ascii: "f")
            }
    }
}
