import CShims

/// Reads the tokens of a JSON text that is valid UTF-8. It never reads past the end.
struct JSONScanner {
    private let text: UnsafeRawBufferPointer
    private let end: Int
    var offset: Int
    /// How many blanks have been skipped so far.
    private(set) var blanks = 0

    init(_ text: UnsafeRawBufferPointer, from offset: Int = 0) {
        self.text = text
        end = text.count
        self.offset = offset
    }

    /// The text from `start` to the current offset.
    func source(from start: Int) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: text[start..<offset])
    }

    var isAtEnd: Bool { offset == end }

    /// The current byte; 0, which never occurs in JSON, at the end.
    var byte: UInt8 { offset < end ? text[offset] : 0 }

    /// Skips the current byte and the blanks after it.
    mutating func skip() {
        offset += 1
        skipBlanks()
    }

    mutating func skipBlanks() {
        while offset < end {
            switch text[offset] {
            case 0x20, 0x0A, 0x0D, 0x09:
                offset += 1
                blanks += 1
            default: return
            }
        }
    }

    /// Reads null, false or true.
    mutating func readLiteral() throws(RealtimeError) -> JSONToken.Kind {
        switch byte {
        case UInt8(ascii: "n") where takes("null"): return .null
        case UInt8(ascii: "f") where takes("false"): return .false
        case UInt8(ascii: "t") where takes("true"): return .true
        default: throw unexpected("where a value belongs")
        }
    }

    /// Reads a number by the grammar of RFC 8259 §6.
    /// - Returns: whether it has neither fraction nor exponent.
    mutating func readNumber() throws(RealtimeError) -> Bool {
        if byte == UInt8(ascii: "-") { offset += 1 }
        if byte == UInt8(ascii: "0") {
            offset += 1
            if byte.isASCIIDigit { throw unexpected("after a leading zero") }
        } else {
            try readDigits()
        }
        var isInteger = true
        if byte == UInt8(ascii: ".") {
            isInteger = false
            offset += 1
            try readDigits()
        }
        if byte | 0x20 == UInt8(ascii: "e") {
            isInteger = false
            offset += 1
            if byte == UInt8(ascii: "+") || byte == UInt8(ascii: "-") { offset += 1 }
            try readDigits()
        }
        return isInteger
    }

    /// Reads a string, starting at its opening quotation mark.
    /// - Returns: whether it has no escapes.
    mutating func readString() throws(RealtimeError) -> Bool {
        offset += 1
        var isPlain = true
        while true {
            if let bytes = text.baseAddress?.assumingMemoryBound(to: UInt8.self) {
                offset += shim_json_string(bytes + offset, end - offset, &isPlain)
            }
            switch byte {
            case UInt8(ascii: "\""):
                offset += 1
                return isPlain
            case UInt8(ascii: "\\"):
                isPlain = false
                try readEscape()
            default:
                throw isAtEnd
                    ? JSONTape.fault(at: offset, "the text ends within a string")
                    : unexpected("within a string, where it must be escaped")
            }
        }
    }

    /// The error at this offset: an unexpected byte, or the end of the text.
    func unexpected(_ context: String) -> RealtimeError {
        guard !isAtEnd else { return JSONTape.fault(at: offset, "the text ends \(context)") }
        let found =
            (0x21...0x7E).contains(byte)
            ? String(decoding: [UInt8(ascii: "\""), byte, UInt8(ascii: "\"")], as: UTF8.self)
            : "a byte of value \(byte)"
        return JSONTape.fault(at: offset, "\(found) \(context)")
    }

    private mutating func takes(_ word: StaticString) -> Bool {
        guard end - offset >= word.utf8CodeUnitCount else { return false }
        for index in 0..<word.utf8CodeUnitCount {
            guard text[offset + index] == word.utf8Start[index] else { return false }
        }
        offset += word.utf8CodeUnitCount
        return true
    }

    private mutating func readDigits() throws(RealtimeError) {
        guard byte.isASCIIDigit else { throw unexpected("where a digit belongs") }
        repeat { offset += 1 } while byte.isASCIIDigit
    }

    /// Reads an escape. Half a surrogate pair, which JavaScript can write, stands for U+FFFD.
    private mutating func readEscape() throws(RealtimeError) {
        offset += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"),
            UInt8(ascii: "f"), UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
            offset += 1
        case UInt8(ascii: "u"):
            guard case 0xD800...0xDBFF = try readUnit() else { return }
            let end = offset
            if takes("\\"), byte == UInt8(ascii: "u"), case 0xDC00...0xDFFF = try readUnit() {
                return
            }
            offset = end
        default:
            throw unexpected("after a backslash")
        }
    }

    /// Reads the four hexadecimal digits after the "u" here.
    private mutating func readUnit() throws(RealtimeError) -> UInt16 {
        var unit: UInt16 = 0
        for _ in 0..<4 {
            offset += 1
            guard let digit = byte.hexDigitValue else {
                throw unexpected("where a hexadecimal digit belongs")
            }
            unit = unit << 4 | UInt16(digit)
        }
        offset += 1
        return unit
    }
}

extension UInt8 {
    /// The value of a hexadecimal digit in either case.
    var hexDigitValue: UInt8? {
        switch self {
        case 0x30...0x39: self - 0x30
        case 0x41...0x46: self - 0x41 + 10
        case 0x61...0x66: self - 0x61 + 10
        default: nil
        }
    }
}
