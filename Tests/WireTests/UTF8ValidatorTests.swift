import Testing

@testable import Wire

private func accepts(_ pieces: [[UInt8]]) -> Bool {
    var validator = UTF8Validator()
    for piece in pieces {
        guard piece.withUnsafeBytes({ validator.accepts($0) }) else { return false }
    }
    return validator.isComplete
}

@Suite struct UTF8ValidatorTests {
    /// RFC 3629 §4: the ends of every range, and the values just outside.
    @Test(
        arguments: [
            ([0x00], true), ([0x7F], true), ([0x80], false), ([0xBF], false),
            ([0xC0, 0x80], false),
            ([0xC1, 0xBF], false), ([0xC2, 0x80], true), ([0xDF, 0xBF], true),
            ([0xC2, 0x7F], false),
            ([0xC2, 0xC0], false), ([0xE0, 0x9F, 0xBF], false), ([0xE0, 0xA0, 0x80], true),
            ([0xE1, 0x80, 0x80], true), ([0xEC, 0xBF, 0xBF], true), ([0xED, 0x9F, 0xBF], true),
            ([0xED, 0xA0, 0x80], false), ([0xED, 0xBF, 0xBF], false), ([0xEE, 0x80, 0x80], true),
            ([0xEF, 0xBF, 0xBF], true), ([0xF0, 0x8F, 0xBF, 0xBF], false),
            ([0xF0, 0x90, 0x80, 0x80], true), ([0xF3, 0xBF, 0xBF, 0xBF], true),
            ([0xF4, 0x8F, 0xBF, 0xBF], true), ([0xF4, 0x90, 0x80, 0x80], false),
            ([0xF5, 0x80, 0x80, 0x80], false), ([0xFF], false), ([0xE2, 0x82], false),
        ] as [([UInt8], Bool)])
    func rangesEndWhereTheyShould(bytes: [UInt8], isValid: Bool) {
        // After enough ASCII to use every stride of the fast path.
        for padding in [0, 1, 7, 8, 31, 32, 40] {
            let padded = [UInt8](repeating: 0x61, count: padding) + bytes
            for pieces in splits(padded) { #expect(accepts(pieces) == isValid) }
            #expect(padded.withUnsafeBytes { UTF8Validator.isValid($0) } == isValid)
        }
    }

    @Test func itFailsAtTheFirstBadByte() {
        var validator = UTF8Validator()
        #expect([0xF4 as UInt8].withUnsafeBytes { validator.accepts($0) })
        // No second byte above 8F can follow F4.
        #expect(![0x90 as UInt8].withUnsafeBytes { validator.accepts($0) })
    }

    @Test func itAgreesWithTheStandardLibrary() {
        var random = SeededGenerator(seed: 20_261_121)
        let alphabet: [UInt8] = [
            0x61, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC2, 0xDF, 0xE0, 0xE1, 0xED, 0xEF,
            0xF0, 0xF1, 0xF4, 0xF5,
        ]
        for round in 0..<20_000 {
            let count = Int.random(in: 0..<12, using: &random)
            let bytes = (0..<count).map { _ in alphabet.randomElement(using: &random) ?? 0 }
            let expected = String(validating: bytes, as: UTF8.self) != nil
            #expect(
                bytes.withUnsafeBytes { UTF8Validator.isValid($0) } == expected,
                "round \(round): \(bytes)")
            #expect(accepts(bytes.map { [$0] }) == expected, "round \(round): \(bytes)")
        }
    }

    /// Each sequence of up to four bytes at the ends of the ranges, where a block of the wide
    /// validator ends, compared with the standard library; whole and in two pieces.
    @Test func everySequenceAgreesWithTheStandardLibrary() {
        let borders: [UInt8] = [
            0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1,
            0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF4, 0xF5, 0xFF,
        ]
        var text = [UInt8](repeating: 0x61, count: 70)
        var offset = 0
        for first in borders.dropFirst(2) {
            for second in borders {
                for third in borders {
                    for fourth in [0x61, 0x80, 0xBF, 0xC2] as [UInt8] {
                        // Every offset in turn, around the ends of the blocks.
                        offset = (offset + 1) % 36
                        let place = 30 + offset
                        text.replaceSubrange(
                            place..<(place + 4), with: [first, second, third, fourth])
                        let expected = String(validating: text, as: UTF8.self) != nil
                        #expect(text.withUnsafeBytes { UTF8Validator.isValid($0) } == expected)
                        let cut = Array(text[..<(place + 2)])
                        let rest = Array(text[(place + 2)...])
                        #expect(accepts([cut, rest]) == expected, "\(text)")
                        text.replaceSubrange(
                            place..<(place + 4), with: [0x61, 0x61, 0x61, 0x61])
                    }
                }
            }
        }
    }

    /// A bad byte, or a whole character, at every offset of ASCII texts of every length.
    @Test func badBytesAreFoundInLongASCII() {
        for length in 20..<300 {
            var text = [UInt8](repeating: 0x61, count: length)
            #expect(text.withUnsafeBytes { UTF8Validator.isValid($0) })
            for place in 0..<length {
                text[place] = 0xC3
                #expect(!text.withUnsafeBytes { UTF8Validator.isValid($0) }, "\(place)")
                if place + 1 < length {
                    text[place + 1] = 0xA9
                    #expect(text.withUnsafeBytes { UTF8Validator.isValid($0) })
                    text[place + 1] = 0x61
                }
                text[place] = 0x61
            }
        }
    }

    @Test func longTextsAgreeWithTheStandardLibrary() {
        var random = SeededGenerator(seed: 20)
        let scalars: [Unicode.Scalar] = ["a", "é", "€", "🐎", "\u{7FF}", "\u{FFFF}"]
        for round in 0..<3000 {
            let characters = (0..<Int.random(in: 1...90, using: &random)).map { _ in
                scalars.randomElement(using: &random) ?? "a"
            }
            var bytes = Array(characters.map { String($0) }.joined().utf8)
            if round % 2 == 1 {
                let place = Int.random(in: bytes.indices, using: &random)
                bytes[place] = UInt8.random(in: 0...255, using: &random)
            }
            let expected = String(validating: bytes, as: UTF8.self) != nil
            #expect(bytes.withUnsafeBytes { UTF8Validator.isValid($0) } == expected, "\(bytes)")
            let cut = Int.random(in: 0...bytes.count, using: &random)
            #expect(
                accepts([Array(bytes[..<cut]), Array(bytes[cut...])]) == expected,
                "\(bytes) cut at \(cut)")
        }
    }
}

/// SplitMix64: the same numbers for a seed on every machine.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
