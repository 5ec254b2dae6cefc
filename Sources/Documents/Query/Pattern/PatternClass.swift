/// A set of characters: UTF-16 code units, or with the flag `u` code points.
struct PatternClass: Sendable {
    /// Ascending, and no two of them meet.
    let ranges: [ClosedRange<UInt32>]
    /// Whether the class is all characters outside the ranges.
    let isNegated: Bool
    /// The ASCII characters in the ranges, a bit for each.
    private let low: UInt64
    private let high: UInt64

    static let highest: UInt32 = 0x10FFFF

    static let digits = PatternClass([0x30...0x39])
    /// ECMA-262, WordCharacters.
    static let words = PatternClass([0x30...0x39, 0x41...0x5A, 0x5F...0x5F, 0x61...0x7A])
    /// ECMA-262, WhiteSpace and LineTerminator.
    static let spaces = PatternClass([
        0x09...0x0D, 0x20...0x20, 0xA0...0xA0, 0x1680...0x1680, 0x2000...0x200A,
        0x2028...0x2029, 0x202F...0x202F, 0x205F...0x205F, 0x3000...0x3000, 0xFEFF...0xFEFF,
    ])
    static let lineEnds = PatternClass([0x0A...0x0A, 0x0D...0x0D, 0x2028...0x2029])

    /// - Parameter ranges: in any order; they may overlap.
    init(_ ranges: [ClosedRange<UInt32>], isNegated: Bool = false) {
        var merged: [ClosedRange<UInt32>] = []
        for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) {
            if let last = merged.last, range.lowerBound <= last.upperBound + 1 {
                let end = max(last.upperBound, range.upperBound)
                merged[merged.count - 1] = last.lowerBound...end
            } else {
                merged.append(range)
            }
        }
        var bits: (low: UInt64, high: UInt64) = (0, 0)
        for range in merged where range.lowerBound < 0x80 {
            for character in range.lowerBound...min(range.upperBound, 0x7F) {
                if character < 64 { bits.low |= 1 << character }
                if character >= 64 { bits.high |= 1 << (character - 64) }
            }
        }
        self.ranges = merged
        self.isNegated = isNegated
        (low, high) = bits
    }

    init(_ character: UInt32) { self.init([character...character]) }

    var negated: PatternClass { PatternClass(ranges, isNegated: !isNegated) }

    func contains(_ character: UInt32) -> Bool { isInRanges(character) != isNegated }

    /// Whether the class has a character that differs at most in case.
    /// - Parameter variants: the character's, see `PatternCase`.
    func contains(anyOf variants: [UInt32]) -> Bool {
        variants.contains { isInRanges($0) } != isNegated
    }

    private func isInRanges(_ character: UInt32) -> Bool {
        if character < 64 { return low >> character & 1 == 1 }
        if character < 0x80 { return high >> (character - 64) & 1 == 1 }
        var (start, end) = (0, ranges.count)
        while start < end {
            let middle = (start + end) / 2
            if ranges[middle].upperBound < character { start = middle + 1 } else { end = middle }
        }
        return start < ranges.count && ranges[start].lowerBound <= character
    }

    /// The ranges of all its characters, negated or not.
    var members: [ClosedRange<UInt32>] {
        guard isNegated else { return ranges }
        var members: [ClosedRange<UInt32>] = []
        var next: UInt32 = 0
        for range in ranges {
            if next < range.lowerBound { members.append(next...(range.lowerBound - 1)) }
            next = range.upperBound + 1
        }
        if next <= PatternClass.highest { members.append(next...PatternClass.highest) }
        return members
    }
}
