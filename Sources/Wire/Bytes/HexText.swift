/// Bytes as lower-case hexadecimal digits.
func hexText(_ bytes: [UInt8]) -> String {
    String(unsafeUninitializedCapacity: 2 * bytes.count) { text in
        for (index, byte) in bytes.enumerated() {
            text[2 * index] = hexDigit(byte >> 4)
            text[2 * index + 1] = hexDigit(byte & 15)
        }
        return 2 * bytes.count
    }
}

/// - Parameter value: below 16.
func hexDigit(_ value: UInt8) -> UInt8 {
    value < 10 ? value + UInt8(ascii: "0") : value - 10 + UInt8(ascii: "a")
}
