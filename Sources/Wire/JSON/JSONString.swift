/// The escapes of JSON's strings (RFC 8259 §7).
enum JSONString {
    /// Appends what the inside of a string means, which a scanner has accepted.
    static func unescape(_ inside: UnsafeRawBufferPointer, to bytes: inout [UInt8]) {
        var start = 0
        var index = 0
        while index < inside.count {
            guard inside[index] == UInt8(ascii: "\\"), index + 1 < inside.count else {
                index += 1
                continue
            }
            bytes.append(contentsOf: inside[start..<index])
            let escape = inside[index + 1]
            index += 2
            switch escape {
            case UInt8(ascii: "b"): bytes.append(0x08)
            case UInt8(ascii: "f"): bytes.append(0x0C)
            case UInt8(ascii: "n"): bytes.append(0x0A)
            case UInt8(ascii: "r"): bytes.append(0x0D)
            case UInt8(ascii: "t"): bytes.append(0x09)
            case UInt8(ascii: "u"): appendScalar(inside, &index, to: &bytes)
            default: bytes.append(escape)
            }
            start = index
        }
        bytes.append(contentsOf: inside[start...])
    }

    /// Appends a string with its quotation marks: escaped is what must be, and nothing else.
    static func write(_ text: String, to bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "\""))
        var text = text
        text.withUTF8 { text in
            var start = 0
            for (index, byte) in text.enumerated() {
                guard byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\")
                else { continue }
                bytes.append(contentsOf: text[start..<index])
                writeEscape(of: byte, to: &bytes)
                start = index + 1
            }
            bytes.append(contentsOf: text[start...])
        }
        bytes.append(UInt8(ascii: "\""))
    }

    private static func writeEscape(of byte: UInt8, to bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "\\"))
        switch byte {
        case 0x08: bytes.append(UInt8(ascii: "b"))
        case 0x0C: bytes.append(UInt8(ascii: "f"))
        case 0x0A: bytes.append(UInt8(ascii: "n"))
        case 0x0D: bytes.append(UInt8(ascii: "r"))
        case 0x09: bytes.append(UInt8(ascii: "t"))
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes.append(byte)
        default:
            let low = byte & 0xF
            bytes.append(contentsOf: "u00".utf8)
            bytes.append(UInt8(ascii: "0") + byte >> 4)
            bytes.append(low < 10 ? UInt8(ascii: "0") + low : UInt8(ascii: "a") + low - 10)
        }
    }

    /// The character of the digits at `index`, with the second half of a pair if it is one.
    private static func appendScalar(
        _ inside: UnsafeRawBufferPointer, _ index: inout Int, to bytes: inout [UInt8]
    ) {
        var units = [unit(inside, &index)]
        if 0xD800...0xDBFF ~= units[0], inside.count - index >= 6 {
            index += 2
            units.append(unit(inside, &index))
        }
        bytes.append(contentsOf: String(decoding: units, as: UTF16.self).utf8)
    }

    private static func unit(_ inside: UnsafeRawBufferPointer, _ index: inout Int) -> UInt16 {
        var unit: UInt16 = 0
        let end = min(index + 4, inside.count)
        while index < end {
            unit = unit << 4 | UInt16(inside[index].hexDigitValue ?? 0)
            index += 1
        }
        return unit
    }
}
