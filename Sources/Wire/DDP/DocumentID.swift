/// A document's id in its form on the wire (M8). Ids are equal if their forms are equal byte
/// for byte.
package struct DocumentID: Hashable, Sendable {
    /// Ids of Meteor have 17 bytes, and ObjectIDs 24.
    private enum Form: Hashable, Sendable {
        case short(ShortText)
        case long(ByteText)
    }

    private let form: Form

    package var wire: String {
        switch form {
        case .short(let text): text.withBytes { String(decoding: $0, as: UTF8.self) }
        case .long(let text): text.text
        }
    }

    /// How long it is on the wire.
    package var byteCount: Int {
        switch form {
        case .short(let text): text.count
        case .long(let text): text.text.utf8.count
        }
    }

    /// The id that a message contains. Forms of one id that no server writes, such as `~5.0` and
    /// `-abc`, are the same id as `~5` and `abc`.
    /// - Returns: nil for a `~` that no number, bool or null follows.
    package init?(wire: String) {
        var wire = wire
        let id = wire.withUTF8 { DocumentID(wire: UnsafeRawBufferPointer($0)) }
        guard let id else { return nil }
        self = id
    }

    /// - Parameter wire: valid UTF-8.
    package init?(wire: UnsafeRawBufferPointer) {
        switch wire.first {
        case UInt8(ascii: "~"):
            switch DocumentID(form: wire).value {
            case .number(let number)?: self.init(.number(number))
            case .bool(let isTrue)?: self.init(.bool(isTrue))
            case .null?: self.init(.null)
            case .string, .array, .object, .date, .bytes, .objectID, .decimal, .pattern, .custom,
                nil:
                return nil
            }
        case UInt8(ascii: "-") where wire.count > 1, UInt8(ascii: "{"):
            guard let value = DocumentID(form: wire).value else { return nil }
            self.init(value)
        default: self.init(form: wire)
        }
    }

    private init(form: UnsafeRawBufferPointer) {
        if let text = ShortText(form) {
            self.form = .short(text)
        } else {
            self.form = .long(ByteText(String(decoding: form, as: UTF8.self)))
        }
    }

    private init(form: String) {
        var form = form
        self = form.withUTF8 { DocumentID(form: UnsafeRawBufferPointer($0)) }
    }

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
