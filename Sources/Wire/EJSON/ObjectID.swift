/// MongoDB's id of 12 bytes, written as 24 hexadecimal digits.
public struct ObjectID: Hashable, Sendable {
    private let high: UInt64
    private let low: UInt32

    /// - Parameter hex: 24 hexadecimal digits; capitals count as small letters. nil for anything
    ///   else.
    public init?(hex: String) {
        var hex = hex
        let id = hex.withUTF8 { ObjectID(hex: UnsafeRawBufferPointer($0)) }
        guard let id else { return nil }
        self = id
    }

    package init?(hex: UnsafeRawBufferPointer) {
        guard hex.count == 24 else { return nil }
        var (high, low): (UInt64, UInt32) = (0, 0)
        for (index, digit) in hex.enumerated() {
            guard let value = Character(Unicode.Scalar(digit)).hexDigitValue else { return nil }
            if index < 16 {
                high = high << 4 | UInt64(value)
            } else {
                low = low << 4 | UInt32(value)
            }
        }
        self.high = high
        self.low = low
    }

    /// 24 hexadecimal digits in small letters.
    public var hex: String {
        String(unsafeUninitializedCapacity: 24) { text in
            for index in 0..<24 {
                let digit =
                    index < 16
                    ? UInt8(high >> (60 - 4 * index) & 15) : UInt8(low >> (92 - 4 * index) & 15)
                text[index] = hexDigit(digit)
            }
            return 24
        }
    }
}
