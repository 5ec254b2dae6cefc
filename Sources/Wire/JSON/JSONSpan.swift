/// A value's text as it came, borrowed: nothing is known of what is inside it.
struct JSONSpan {
    let source: UnsafeRawBufferPointer
    let kind: JSONToken.Kind
    /// A number without fraction and exponent; a string without escapes; an array or object that
    /// is known to have no blanks.
    let isPlain: Bool

    /// A number that is written without fraction and exponent, and fits. -0 is 0.
    var integer: Int64? {
        kind == .number && isPlain ? JSONNumber.integer(source) : nil
    }

    /// Calls `body` with a string's bytes: those of the text where it has no escape.
    /// - Returns: nil if the value is not a string.
    func withString<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result? {
        guard kind == .string else { return nil }
        if isPlain { return body(inside) }
        guard inside.count <= 64 else { return JSONString.unescaped(inside).withUnsafeBytes(body) }
        return withUnsafeTemporaryAllocation(byteCount: inside.count, alignment: 1) { bytes in
            let count = JSONString.unescape(inside, into: bytes)
            return body(UnsafeRawBufferPointer(rebasing: bytes[..<count]))
        }
    }

    /// The bytes of a string; nil if the value is not one.
    var stringBytes: [UInt8]? {
        guard kind == .string else { return nil }
        return isPlain ? Array(inside) : JSONString.unescaped(inside)
    }

    /// What is between a string's quotation marks.
    private var inside: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: source[1..<source.count - 1])
    }

    /// The text without the blanks between its parts: numbers and strings stay as they were
    /// written.
    var compact: [UInt8] {
        if isPlain { return Array(source) }
        return [UInt8](unsafeUninitializedCapacity: source.count) { bytes, count in
            var isInString = false
            var index = 0
            while index < source.count {
                let byte = source[index]
                index += 1
                switch byte {
                case 0x20, 0x0A, 0x0D, 0x09:
                    if !isInString { continue }
                case UInt8(ascii: "\""):
                    isInString.toggle()
                case UInt8(ascii: "\\"):
                    // Only strings have it, and the byte that it escapes does not end one.
                    bytes[count] = byte
                    bytes[count + 1] = source[index]
                    count += 2
                    index += 1
                    continue
                default:
                    break
                }
                bytes[count] = byte
                count += 1
            }
        }
    }
}
