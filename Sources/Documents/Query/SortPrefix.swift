import Wire

/// The beginning of a sort key, as bytes that compare like the values. It decides most comparisons
/// without a look at the values, which lie elsewhere in memory.
struct SortPrefix: Sendable {
    // Big-endian, so that they compare like their bytes.
    private var words: (UInt64, UInt64, UInt64) = (0, 0, 0)
    /// How many bytes there are.
    private var count: UInt8 = 0
    /// Whether the whole key is in them.
    private var isComplete = true

    private static let size: UInt8 = 24

    /// - Returns: like `SortOrder.compare`; nil if the prefixes do not decide.
    static func order(_ first: SortPrefix, _ second: SortPrefix) -> Int? {
        var place = 0
        var (mine, other) = (first.words.0, second.words.0)
        if mine == other {
            (mine, other) = (first.words.1, second.words.1)
            place = 8
        }
        if mine == other {
            (mine, other) = (first.words.2, second.words.2)
            place = 16
        }
        place += (mine ^ other).leadingZeroBitCount / 8
        // A byte beyond the end of one prefix says nothing.
        if place < Int(min(first.count, second.count)) { return mine < other ? -1 : 1 }
        let areEqual = first.isComplete && second.isComplete && first.count == second.count
        return areEqual ? 0 : nil
    }

    /// Adds the value of the next path.
    mutating func append(_ value: EJSON?, isDescending: Bool) {
        guard isComplete else { return }
        let mask: UInt8 = isDescending ? 0xFF : 0
        guard let value else { return appendByte(0, mask) }
        appendByte(UInt8(truncatingIfNeeded: value.kind.rank + 1), mask)
        switch value {
        case .null: break
        case .bool(let value): appendByte(value ? 1 : 0, mask)
        case .number(let number): appendNumber(SortPrefix.ordered(number), mask)
        case .date(let milliseconds):
            appendNumber(UInt64(bitPattern: milliseconds) ^ 1 << 63, mask)
        case .string(let text): appendText(text, mask)
        case .objectID(let id): appendText(id.hex, mask)
        case .array, .object, .bytes, .decimal, .pattern, .custom: isComplete = false
        }
    }

    /// Numbers in the order of queries: NaN first, and -0 equal to 0.
    private static func ordered(_ number: Double) -> UInt64 {
        if number.isNaN { return 0 }
        let bits = (number == 0 ? 0 : number).bitPattern
        return bits >> 63 == 1 ? ~bits : bits | 1 << 63
    }

    private mutating func appendNumber(_ number: UInt64, _ mask: UInt8) {
        for shift in stride(from: 56, through: 0, by: -8) {
            appendByte(UInt8(truncatingIfNeeded: number >> UInt64(shift)), mask)
        }
    }

    private mutating func appendText(_ text: String, _ mask: UInt8) {
        for byte in text.utf8 {
            switch byte {
            // NUL is the end.
            case 0: isComplete = false
            // UTF-16 puts the characters from U+E000 on after those above U+FFFF.
            case 0xEE, 0xEF: appendByte(byte + 5, mask)
            case 0xF0...0xF4: appendByte(byte - 2, mask)
            default: appendByte(byte, mask)
            }
            guard isComplete else { return }
        }
        appendByte(0, mask)
    }

    private mutating func appendByte(_ byte: UInt8, _ mask: UInt8) {
        guard isComplete, count < SortPrefix.size else {
            isComplete = false
            return
        }
        let bits = UInt64(byte ^ mask) << UInt64(56 - count % 8 * 8)
        switch count / 8 {
        case 0: words.0 |= bits
        case 1: words.1 |= bits
        default: words.2 |= bits
        }
        count += 1
    }
}
