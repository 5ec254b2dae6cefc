import CShims

/// Reads and writes the escapes of JSON strings (RFC 8259 §7).
enum JSONString {
    /// Decodes the inside of a string that a scanner has accepted. The result is never longer.
    static func unescaped(_ inside: UnsafeRawBufferPointer) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: inside.count) { bytes, count in
            count = unescape(inside, into: UnsafeMutableRawBufferPointer(bytes))
        }
    }

    /// Decodes into storage of at least the same length.
    /// - Returns: the count of bytes written.
    static func unescape(
        _ inside: UnsafeRawBufferPointer, into bytes: UnsafeMutableRawBufferPointer
    ) -> Int {
        guard let text = inside.baseAddress?.assumingMemoryBound(to: UInt8.self),
            let target = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
        else { return 0 }
        var count = 0
        var index = 0
        while true {
            var read = 0
            count += shim_json_unescape(target + count, text + index, inside.count - index, &read)
            index += read
            guard index + 1 < inside.count else { return count }
            index += 2
            writeScalar(inside, &index, bytes, &count)
        }
    }

    /// Appends a string with quotation marks, and escapes only what must be escaped.
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

    /// Writes the character of the four digits at `index`, and reads the second escape of a
    /// surrogate pair. Half a pair becomes U+FFFD, because UTF-8 cannot encode it.
    private static func writeScalar(
        _ inside: UnsafeRawBufferPointer, _ index: inout Int,
        _ bytes: UnsafeMutableRawBufferPointer, _ count: inout Int
    ) {
        var scalar = unit(inside, &index)
        if 0xD800...0xDFFF ~= scalar {
            if let low = secondHalf(of: scalar, inside, &index) {
                scalar = 0x10000 + (scalar & 0x3FF) << 10 + low & 0x3FF
            } else {
                scalar = 0xFFFD
            }
        }
        let length = scalar < 0x80 ? 1 : scalar < 0x800 ? 2 : scalar < 0x10000 ? 3 : 4
        for position in (1..<length).reversed() {
            bytes[count + position] = UInt8(truncatingIfNeeded: 0x80 | scalar & 0x3F)
            scalar >>= 6
        }
        let mark: UInt32 = length == 1 ? 0 : 0xF00 >> length
        bytes[count] = UInt8(truncatingIfNeeded: mark | scalar)
        count += length
    }

    private static func secondHalf(
        of first: UInt32, _ inside: UnsafeRawBufferPointer, _ index: inout Int
    ) -> UInt32? {
        guard first < 0xDC00, inside.count - index >= 6, inside[index] == UInt8(ascii: "\\"),
            inside[index + 1] == UInt8(ascii: "u")
        else { return nil }
        var next = index + 2
        let second = unit(inside, &next)
        guard 0xDC00...0xDFFF ~= second else { return nil }
        index = next
        return second
    }

    private static func unit(_ inside: UnsafeRawBufferPointer, _ index: inout Int) -> UInt32 {
        var unit: UInt32 = 0
        for position in index..<index + 4 {
            unit = unit << 4 | UInt32(inside[position].hexDigitValue ?? 0)
        }
        index += 4
        return unit
    }
}
