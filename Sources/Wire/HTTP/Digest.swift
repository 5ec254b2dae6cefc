import CShims

/// Base64 with padding (RFC 4648 §4). For headers: a few KiB at most.
package func base64(_ bytes: [UInt8]) -> String {
    // One more byte for the NUL that is written after the text.
    let capacity = 4 * ((bytes.count + 2) / 3) + 1
    return String(unsafeUninitializedCapacity: capacity) { text in
        shim_base64(bytes, bytes.count, text.baseAddress)
        return capacity - 1
    }
}

/// The SHA-1 digest; nil if libcrypto cannot compute one.
package func sha1(_ bytes: [UInt8]) -> [UInt8]? {
    var succeeded = false
    let digest = [UInt8](unsafeUninitializedCapacity: 20) { digest, count in
        succeeded = shim_sha1(bytes, bytes.count, digest.baseAddress)
        count = succeeded ? 20 : 0
    }
    return succeeded ? digest : nil
}

/// Decodes base64 with padding and nothing else: no blanks, no line ends, no bits that are lost.
/// - Returns: the count of bytes written; nil if the text is not base64, or `bytes` is too small.
package func decodeBase64(
    _ text: UnsafeRawBufferPointer, into bytes: UnsafeMutableRawBufferPointer
) -> Int? {
    guard text.count % 4 == 0 else { return nil }
    guard text.count > 0 else { return 0 }
    let pads = text[text.count - 1] != 0x3D ? 0 : text[text.count - 2] != 0x3D ? 1 : 2
    let total = text.count / 4 * 3 - pads
    guard total <= bytes.count else { return nil }
    var bits: UInt32 = 0
    var count = 0
    for index in 0..<text.count - pads {
        guard let digit = base64Digit(text[index]) else { return nil }
        bits = bits << 6 | digit
        // Each digit but the first of a group completes a byte.
        let unused = 6 - index % 4 * 2
        if unused < 6 {
            bytes[count] = UInt8(truncatingIfNeeded: bits >> unused)
            count += 1
        }
    }
    // The last digit's unused bits.
    return bits & (1 << (2 * pads) - 1) == 0 ? count : nil
}

private func base64Digit(_ byte: UInt8) -> UInt32? {
    switch byte {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(byte - UInt8(ascii: "A"))
    case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(byte - UInt8(ascii: "a") + 26)
    case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(byte - UInt8(ascii: "0") + 52)
    case UInt8(ascii: "+"): 62
    case UInt8(ascii: "/"): 63
    default: nil
    }
}
