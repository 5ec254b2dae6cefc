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
        let rare = isUnicode ? PatternCase.rareFolded : PatternCase.rareCapitals
        for pair in rare where pair.canonical == character && pair.letter != character {
            variants.append(pair.letter)
        }
        return variants
    }

    // Computed once, because each canonical form costs a few texts.
    private static let rareCapitals = canonicalForms(isUnicode: false)
    private static let rareFolded = canonicalForms(isUnicode: true)

    private static func canonicalForms(
        isUnicode: Bool
    ) -> [(letter: UInt32, canonical: UInt32)] {
        let letters = PatternCase(isUnicode: isUnicode)
        return rare.map { ($0, letters.canonical($0)) }
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
