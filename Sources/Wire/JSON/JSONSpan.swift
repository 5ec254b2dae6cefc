/// The text of a value, borrowed from the source. It is checked, but its content is not parsed.
struct JSONSpan {
    let source: UnsafeRawBufferPointer
    let kind: JSONToken.Kind
    /// A number without fraction and exponent; a string without escapes; an array or object that is
    /// known to contain no blanks.
    let isPlain: Bool

    /// Whether the value is this string.
    func isWord(_ word: StaticString) -> Bool { withString { $0.isWord(word) } ?? false }

    /// The value of a number without fraction and exponent, if it fits. -0 is 0.
    var integer: Int64? {
        kind == .number && isPlain ? JSONNumber.integer(source) : nil
    }

    /// Calls `body` with a string's bytes, which are those of the source if it has no escapes.
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

    /// Like `withString`, for a secret: a copy without escapes is overwritten afterwards.
    func withSecret<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result? {
        var scratch = ByteBuffer()
        scratch.isSecret = true
        defer { scratch.removeAll(keeping: 0) }
        return string(in: &scratch).map(body)
    }

    /// The bytes of a string; nil if the value is not one.
    var stringBytes: [UInt8]? {
        guard kind == .string else { return nil }
        return isPlain ? Array(inside) : JSONString.unescaped(inside)
    }

    /// The bytes of a string, which are those of the source if it has no escapes. Otherwise they
    /// are appended to `scratch`, whose reserved room must suffice for the source.
    func string(in scratch: inout ByteBuffer) -> UnsafeRawBufferPointer? {
        guard kind == .string else { return nil }
        if isPlain { return inside }
        let room = scratch.reserve(inside.count)
        let count = JSONString.unescape(inside, into: room)
        scratch.commit(count)
        return UnsafeRawBufferPointer(rebasing: room[..<count])
    }

    /// The bytes between a string's quotation marks.
    private var inside: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: source[1..<source.count - 1])
    }

    /// The text without blanks between tokens. Numbers and strings stay as written.
    var compact: [UInt8] {
        if isPlain { return Array(source) }
        return [UInt8](unsafeUninitializedCapacity: source.count) { bytes, count in
            count = writeCompact(UnsafeMutableRawBufferPointer(bytes))
        }
    }

    /// Like `compact`, but appends the text to `scratch`, whose reserved room must suffice for the
    /// source.
    func compact(in scratch: inout ByteBuffer) -> UnsafeRawBufferPointer {
        if kind != .array && kind != .object { return source }
        let room = scratch.reserve(source.count)
        let count = writeCompact(room)
        scratch.commit(count)
        return UnsafeRawBufferPointer(rebasing: room[..<count])
    }

    private func writeCompact(_ bytes: UnsafeMutableRawBufferPointer) -> Int {
        var count = 0
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
                // Backslashes occur only in strings, and an escaped byte does not end the string.
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
        return count
    }
}
