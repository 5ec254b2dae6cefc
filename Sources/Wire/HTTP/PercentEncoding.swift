// Text in URLs and forms (RFC 3986 §2.1).

package let formMediaType = "application/x-www-form-urlencoded"

/// Encodes a form's name or value. A space becomes %20, which every server understands, in a query
/// and in a body.
package func formEncoded(_ text: String) -> String { percentEncoded(text, keeping: isUnreserved) }

/// Decodes a form's name. A percent sign without two digits is kept.
func formDecoded(_ text: Substring) -> [UInt8] {
    var result: [UInt8] = []
    var rest = text.utf8[...]
    while let byte = rest.popFirst() {
        let digits = rest.prefix(2).compactMap { $0.hexDigitValue }
        if byte == UInt8(ascii: "%"), digits.count == 2 {
            rest = rest.dropFirst(2)
            result.append(digits[0] << 4 | digits[1])
        } else {
            result.append(byte == UInt8(ascii: "+") ? 0x20 : byte)
        }
    }
    return result
}

func percentEncoded(_ text: String, keeping isKept: (UInt8) -> Bool) -> String {
    text.hasBytes(only: isKept) ? text : percentEncoded(text.utf8, keeping: isKept)
}

func percentEncoded(
    _ bytes: some Collection<UInt8>, keeping isKept: (UInt8) -> Bool
) -> String {
    let digits = Array("0123456789ABCDEF".utf8)
    var result: [UInt8] = []
    for byte in bytes {
        if isKept(byte) {
            result.append(byte)
        } else {
            result += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
        }
    }
    return String(decoding: result, as: UTF8.self)
}

/// An unreserved character (RFC 3986 §2.3).
func isUnreserved(_ byte: UInt8) -> Bool {
    isAlphanumeric(byte) || "-._~".utf8.contains(byte)
}
