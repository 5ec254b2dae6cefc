import Wire

/// Parses JavaScript's regular expressions (ECMA-262 §22.2 with Annex B). Back-references are
/// refused, because no matcher can bound their time.
struct PatternParser {
    /// How deep groups may be nested.
    static let maximumDepth = 100
    /// The most characters and ranges in all brackets together.
    static let maximumRanges = 2_000

    private let source: [UInt32]
    private let flags: PatternFlags
    private var position = 0
    private var depth = 0
    /// How many groups capture. Only larger numbers after a backslash can be characters.
    private var groupCount = 0
    private var hasNamedGroups = false
    private var rangeCount = 0
    /// The classes that nodes refer to.
    private(set) var classes: [PatternClass] = []

    init(_ source: String, _ flags: PatternFlags) {
        self.source =
            flags.isUnicode
            ? source.unicodeScalars.map { $0.value } : source.utf16.map { UInt32($0) }
        self.flags = flags
        countGroups()
    }

    mutating func parse() throws(RealtimeError) -> PatternNode {
        let node = try choice()
        guard position == source.count else { throw .pattern("a ) without (") }
        return node
    }

    // MARK: Reading

    private var next: UInt32? { position < source.count ? source[position] : nil }

    private func isNext(_ text: StaticString) -> Bool {
        let count = text.utf8CodeUnitCount
        guard source.count - position >= count else { return false }
        return (0..<count).allSatisfy { source[position + $0] == UInt32(text.utf8Start[$0]) }
    }

    private mutating func skip(_ text: StaticString) -> Bool {
        guard isNext(text) else { return false }
        position += text.utf8CodeUnitCount
        return true
    }

    private mutating func countGroups() {
        var isClass = false
        var index = 0
        while index < source.count {
            switch source[index] {
            case .ascii("\\"): index += 1
            case .ascii("["): isClass = true
            case .ascii("]"): isClass = false
            case .ascii("(") where !isClass:
                position = index + 1
                let isNamed = isNext("?<") && !isNext("?<=") && !isNext("?<!")
                if isNamed { hasNamedGroups = true }
                if isNamed || !isNext("?") { groupCount += 1 }
            default: break
            }
            index += 1
        }
        position = 0
    }

    // MARK: Terms

    private mutating func choice() throws(RealtimeError) -> PatternNode {
        depth += 1
        guard depth <= PatternParser.maximumDepth else {
            throw .pattern("groups are nested more than \(PatternParser.maximumDepth) levels deep")
        }
        var choices = [try sequence()]
        while skip("|") { choices.append(try sequence()) }
        depth -= 1
        return choices.count == 1 ? choices[0] : .choice(choices)
    }

    private mutating func sequence() throws(RealtimeError) -> PatternNode {
        var nodes: [PatternNode] = []
        while position < source.count, !isNext("|"), !isNext(")") { nodes.append(try term()) }
        return nodes.count == 1 ? nodes[0] : .sequence(nodes)
    }

    private mutating func term() throws(RealtimeError) -> PatternNode {
        if skip("^") { return .assertion(flags.isMultiline ? .lineStart : .start) }
        if skip("$") { return .assertion(flags.isMultiline ? .lineEnd : .end) }
        if skip("\\b") { return .assertion(.word) }
        if skip("\\B") { return .assertion(.noWord) }
        if skip("(?<=") { return try look(isAhead: false, isNegated: false) }
        if skip("(?<!") { return try look(isAhead: false, isNegated: true) }
        var node: PatternNode
        var isQuantifiable = true
        if isNext("(?=") || isNext("(?!") {
            let isNegated = isNext("(?!")
            position += 3
            node = try look(isAhead: true, isNegated: isNegated)
            isQuantifiable = !flags.isUnicode
        } else {
            node = try atom()
        }
        if isQuantifiable, let (least, most) = try quantifier() {
            node = .repeated(node, least: least, most: most)
        }
        return node
    }

    private mutating func look(
        isAhead: Bool, isNegated: Bool
    ) throws(RealtimeError) -> PatternNode {
        .look(try groupEnd(), isAhead: isAhead, isNegated: isNegated)
    }

    private mutating func groupEnd() throws(RealtimeError) -> PatternNode {
        let node = try choice()
        guard skip(")") else { throw .pattern("a ( without )") }
        return node
    }

    private mutating func atom() throws(RealtimeError) -> PatternNode {
        if skip("(?:") { return try groupEnd() }
        if skip("(?<") {
            try name()
            return try groupEnd()
        }
        if isNext("(?") { throw .pattern("unknown kind of group") }
        if skip("(") { return try groupEnd() }
        if skip("[") { return node(try characters()) }
        if skip(".") {
            return node(
                flags.dotMatchesAll
                    ? PatternClass([], isNegated: true) : PatternClass.lineEnds.negated)
        }
        if skip("\\") { return try escape() }
        if isNext("*") || isNext("+") || isNext("?") { throw .pattern("nothing to repeat") }
        if isNext("{") {
            let start = position
            guard !flags.isUnicode, try quantifier() == nil else {
                throw .pattern("nothing to repeat")
            }
            position = start
        }
        if flags.isUnicode, isNext("}") || isNext("]") { throw .pattern("a lone bracket") }
        return .character(try character())
    }

    private mutating func node(_ characters: PatternClass) -> PatternNode {
        classes.append(characters)
        return .characters(classes.count - 1)
    }

    private mutating func character() throws(RealtimeError) -> UInt32 {
        guard let character = next else { throw .pattern("it ends too early") }
        position += 1
        return character
    }

    /// The name of a group and its `>`.
    private mutating func name() throws(RealtimeError) {
        let start = position
        while let character = next, character != .ascii(">") {
            let isName =
                PatternClass.words.contains(character) || character == .ascii("$")
                || character >= 0x80
            guard isName, position > start || !PatternClass.digits.contains(character) else {
                throw .pattern("an invalid name of a group")
            }
            position += 1
        }
        guard position > start, skip(">") else { throw .pattern("an invalid name of a group") }
    }

    // MARK: Quantifiers

    /// nil if there is no quantifier here.
    private mutating func quantifier() throws(RealtimeError) -> (least: Int, most: Int?)? {
        var range: (least: Int, most: Int?)?
        if skip("*") { range = (0, nil) }
        if range == nil, skip("+") { range = (1, nil) }
        if range == nil, skip("?") { range = (0, 1) }
        if range == nil { range = try braces() }
        // Lazy or not, the expression matches the same texts.
        if range != nil { _ = skip("?") }
        return range
    }

    private mutating func braces() throws(RealtimeError) -> (least: Int, most: Int?)? {
        let start = position
        guard skip("{") else { return nil }
        if let least = number() {
            var most: Int? = least
            if skip(",") { most = number() }
            if skip("}") {
                if let most, most < least { throw .pattern("numbers out of order in {}") }
                return (least, most)
            }
        }
        guard !flags.isUnicode else { throw .pattern("a lone bracket") }
        position = start
        return nil
    }

    /// nil if there is no digit. A number that is too large is larger than all limits.
    private mutating func number() -> Int? {
        let start = position
        var number = 0
        while let digit = next, PatternClass.digits.contains(digit) {
            number = min(number * 10 + Int(digit - 0x30), 1 << 30)
            position += 1
        }
        return position > start ? number : nil
    }

    // MARK: Classes

    /// The characters up to `]`.
    private mutating func characters() throws(RealtimeError) -> PatternClass {
        let isNegated = skip("^")
        var ranges: [ClosedRange<UInt32>] = []
        while !skip("]") {
            guard rangeCount + ranges.count < PatternParser.maximumRanges else {
                throw .pattern(
                    "more than \(PatternParser.maximumRanges) characters and ranges in brackets")
            }
            let first = try member()
            guard isNext("-"), !isNext("-]") else {
                ranges += first.members
                continue
            }
            position += 1
            let last = try member()
            guard let low = first.single, let high = last.single else {
                guard !flags.isUnicode else { throw .pattern("a class in a range") }
                ranges += first.members + [.ascii("-")...(.ascii("-"))] + last.members
                continue
            }
            guard low <= high else { throw .pattern("a range out of order") }
            ranges.append(low...high)
        }
        rangeCount += ranges.count
        return PatternClass(ranges, isNegated: isNegated)
    }

    private mutating func member() throws(RealtimeError) -> PatternClass {
        guard position < source.count else { throw .pattern("a [ without ]") }
        guard skip("\\") else {
            return PatternClass(try character())
        }
        if skip("b") { return PatternClass(8) }
        if flags.isUnicode, skip("-") { return PatternClass(.ascii("-")) }
        if !flags.isUnicode, isNext("c"), position + 1 < source.count {
            let control = source[position + 1]
            if PatternClass.digits.contains(control) || control == .ascii("_") {
                position += 2
                return PatternClass(control % 32)
            }
        }
        if !flags.isUnicode,
            isNext("1") || isNext("2") || isNext("3") || isNext("4")
                || isNext("5") || isNext("6") || isNext("7")
        {
            return PatternClass(octal())
        }
        var escapes = PatternEscape(source, position, flags, isClass: true)
        let result = try escapes.parse()
        position = escapes.position
        return result
    }

    private func isReference(_ number: Int) -> Bool { flags.isUnicode || number <= groupCount }

    /// What follows a backslash outside a class.
    private mutating func escape() throws(RealtimeError) -> PatternNode {
        if hasNamedGroups || flags.isUnicode, isNext("k") {
            throw .pattern("back-references are not supported")
        }
        if let digit = next, digit >= 0x31, digit <= 0x39 {
            let start = position
            let number = number() ?? 0
            guard !isReference(number) else { throw .pattern("back-references are not supported") }
            position = start
            return .character(digit >= 0x38 ? try character() : octal())
        }
        var escapes = PatternEscape(source, position, flags, isClass: false)
        let result = try escapes.parse()
        position = escapes.position
        if let character = result.single { return .character(character) }
        return node(result)
    }

    /// An octal number of at most three digits, up to 377.
    private mutating func octal() -> UInt32 {
        var value: UInt32 = 0
        while let digit = next, digit >= 0x30, digit <= 0x37, value * 8 + digit - 0x30 <= 0xFF {
            value = value * 8 + digit - 0x30
            position += 1
        }
        return value
    }
}

extension UInt32 {
    static func ascii(_ character: Unicode.Scalar) -> UInt32 { character.value }
}

extension PatternClass {
    /// The character, if the class has just one.
    var single: UInt32? {
        guard !isNegated, ranges.count == 1, let range = ranges.first,
            range.lowerBound == range.upperBound
        else { return nil }
        return range.lowerBound
    }
}
