/// A set of characters: UTF-16 code units, or with the flag `u` code points.
struct PatternClass: Sendable {
    /// In any order.
    private(set) var ranges: [ClosedRange<UInt32>] = []
    /// Whether the class is all characters outside the ranges.
    var isNegated = false

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

    init(_ ranges: [ClosedRange<UInt32>] = [], isNegated: Bool = false) {
        self.ranges = ranges
        self.isNegated = isNegated
    }

    var negated: PatternClass { PatternClass(ranges, isNegated: !isNegated) }

    func contains(_ character: UInt32) -> Bool {
        ranges.contains { $0.contains(character) } != isNegated
    }

    /// Whether the class has a character that differs at most in case.
    /// - Parameter variants: the character's, see `PatternCase`.
    func contains(anyOf variants: [UInt32]) -> Bool {
        variants.contains { character in ranges.contains { $0.contains(character) } } != isNegated
    }

    mutating func insert(_ range: ClosedRange<UInt32>) { ranges.append(range) }

    mutating func insert(_ other: PatternClass) {
        guard other.isNegated else {
            ranges += other.ranges
            return
        }
        var next: UInt32 = 0
        for range in other.ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) {
            if next < range.lowerBound { ranges.append(next...(range.lowerBound - 1)) }
            next = max(next, range.upperBound + 1)
        }
        if next <= PatternClass.highest { ranges.append(next...PatternClass.highest) }
    }
}

/// Which characters are equal without regard to case (ECMA-262, Canonicalize).
struct PatternCase: Sendable {
    /// Whether the pattern has the flag `u`, with which case folding is used instead of capitals.
    let isUnicode: Bool

    /// The form in which two characters are compared.
    func canonical(_ character: UInt32) -> UInt32 {
        if character < 0x80 {
            return character >= 0x61 && character <= 0x7A ? character - 0x20 : character
        }
        if isUnicode { return folded(character) }
        guard let scalar = Unicode.Scalar(character),
            let capital = PatternCase.single(scalar.properties.uppercaseMapping)
        else { return character }
        return capital < 0x80 || (capital > 0xFFFF) != (character > 0xFFFF) ? character : capital
    }

    /// The characters with the same canonical form.
    func variants(ofCanonical character: UInt32) -> [UInt32] {
        var variants = [character]
        if character < 0x80 {
            if character >= 0x41, character <= 0x5A { variants.append(character + 0x20) }
            if isUnicode, character == 0x4B { variants.append(0x212A) }
            if isUnicode, character == 0x53 { variants.append(0x17F) }
            return variants
        }
        if let scalar = Unicode.Scalar(character),
            let small = PatternCase.single(scalar.properties.lowercaseMapping),
            small != character, canonical(small) == character
        {
            variants.append(small)
        }
        for rare in PatternCase.rare where canonical(rare) == character && rare != character {
            variants.append(rare)
        }
        return variants
    }

    /// Small letters that are not the small form of their capital, such as the final sigma.
    private static let rare: [UInt32] = [
        0xB5, 0x1C5, 0x1C8, 0x1CB, 0x1F2, 0x345, 0x3C2, 0x3D0, 0x3D1, 0x3D5, 0x3D6, 0x3F0, 0x3F1,
        0x3F4,
        0x3F5, 0x1C80, 0x1C81, 0x1C82, 0x1C83, 0x1C84, 0x1C85, 0x1C86, 0x1C87, 0x1C88, 0x1E9B,
        0x1E9E, 0x1FBE, 0x2126, 0x212A, 0x212B,
    ]

    /// The capital of the small letter. So the Kelvin sign and the long s equal ASCII letters.
    private func folded(_ character: UInt32) -> UInt32 {
        // The small i without a dot equals no other letter, and the sharp s has no simple capital.
        if character == 0x131 { return character }
        if character == 0x1E9E { return 0xDF }
        guard let scalar = Unicode.Scalar(character) else { return character }
        let small = PatternCase.single(scalar.properties.lowercaseMapping) ?? character
        guard let smallScalar = Unicode.Scalar(small) else { return small }
        return PatternCase.single(smallScalar.properties.uppercaseMapping)
            ?? PatternCase.single(smallScalar.properties.titlecaseMapping) ?? small
    }

    /// The character of a text that has one.
    private static func single(_ text: String) -> UInt32? {
        var scalars = text.unicodeScalars.makeIterator()
        guard let first = scalars.next(), scalars.next() == nil else { return nil }
        return first.value
    }
}
