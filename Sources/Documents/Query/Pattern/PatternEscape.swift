import Wire

/// Parses what follows a backslash in a regular expression, except what depends on groups.
struct PatternEscape {
    private let source: [UInt32]
    private let flags: PatternFlags
    private let isClass: Bool
    private(set) var position: Int

    /// - Parameter position: the character after the backslash.
    init(_ source: [UInt32], _ position: Int, _ flags: PatternFlags, isClass: Bool) {
        self.source = source
        self.position = position
        self.flags = flags
        self.isClass = isClass
    }

    mutating func parse() throws(RealtimeError) -> PatternClass {
        guard position < source.count else { throw .pattern("it ends with a backslash") }
        let character = source[position]
        position += 1
        guard let known = Unicode.Scalar(character), known.isASCII else {
            return try identity(character)
        }
        switch known {
        case "d": return PatternClass.digits
        case "D": return PatternClass.digits.negated
        case "w": return PatternClass.words
        case "W": return PatternClass.words.negated
        case "s": return PatternClass.spaces
        case "S": return PatternClass.spaces.negated
        case "t": return just(0x09)
        case "n": return just(0x0A)
        case "v": return just(0x0B)
        case "f": return just(0x0C)
        case "r": return just(0x0D)
        case "0": return try null()
        case "c": return try control()
        case "x": return try hexadecimal(2, character)
        case "u": return try unicode()
        case "p", "P":
            guard !flags.isUnicode else { throw .pattern("\\p is not supported") }
            return just(character)
        default: return try identity(character)
        }
    }

    private func just(_ character: UInt32) -> PatternClass { PatternClass(character) }

    /// A character that stands for itself. With the flag `u` only those of the syntax do.
    private func identity(_ character: UInt32) throws(RealtimeError) -> PatternClass {
        if flags.isUnicode {
            let isSyntax = "^$\\.*+?()[]{}|/".unicodeScalars.contains { $0.value == character }
            guard isSyntax else { throw .pattern("an unknown escape") }
        }
        return just(character)
    }

    private mutating func null() throws(RealtimeError) -> PatternClass {
        var value: UInt32 = 0
        while position < source.count, source[position] >= 0x30, source[position] <= 0x37,
            value * 8 + source[position] - 0x30 <= 0x1F
        {
            guard !flags.isUnicode else { throw .pattern("an unknown escape") }
            value = value * 8 + source[position] - 0x30
            position += 1
        }
        return just(value)
    }

    private mutating func control() throws(RealtimeError) -> PatternClass {
        if position < source.count {
            let letter = source[position] | 0x20
            if letter >= 0x61, letter <= 0x7A {
                position += 1
                return just(letter % 32)
            }
        }
        guard !flags.isUnicode else { throw .pattern("an unknown escape") }
        // The backslash stands for itself, and the c is read again.
        position -= 1
        return just(.ascii("\\"))
    }

    private mutating func hexadecimal(
        _ count: Int, _ letter: UInt32
    ) throws(RealtimeError) -> PatternClass {
        if let value = digits(count) { return just(value) }
        return try identity(letter)
    }

    private mutating func unicode() throws(RealtimeError) -> PatternClass {
        guard flags.isUnicode else { return try hexadecimal(4, .ascii("u")) }
        if position < source.count, source[position] == .ascii("{") {
            let end = source[position...].firstIndex(of: .ascii("}")) ?? source.count
            let count = end - position - 1
            position += 1
            guard end < source.count, let value = digits(count), value <= PatternClass.highest
            else { throw .pattern("an unknown escape") }
            position += 1
            return just(value)
        }
        guard let first = digits(4) else { throw .pattern("an unknown escape") }
        let isHigh = first >= 0xD800 && first <= 0xDBFF
        guard isHigh, position + 1 < source.count, source[position] == .ascii("\\"),
            source[position + 1] == .ascii("u")
        else { return just(first) }
        let start = position
        position += 2
        if let second = digits(4), second >= 0xDC00, second <= 0xDFFF {
            return just(0x10000 + (first - 0xD800) << 10 + (second - 0xDC00))
        }
        position = start
        return just(first)
    }

    /// nil, and nothing is read, unless there are exactly this many hexadecimal digits.
    private mutating func digits(_ count: Int) -> UInt32? {
        guard count > 0, source.count - position >= count else { return nil }
        var value: UInt32 = 0
        for character in source[position..<(position + count)] {
            guard let scalar = Unicode.Scalar(character), scalar.isASCII,
                let digit = Character(scalar).hexDigitValue
            else { return nil }
            // A value beyond all characters stays beyond them.
            value = min(value, PatternClass.highest + 1) * 16 + UInt32(digit)
        }
        position += count
        return value
    }
}
