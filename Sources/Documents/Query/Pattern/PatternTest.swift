import Wire

/// Tests values with a regular expression, of JavaScript's syntax and without back-references.
struct PatternTest: Sendable {
    private let source: String
    private let flags: String
    private let program: PatternProgram

    /// How many instructions the expression has become.
    var size: Int { program.size }

    /// - Parameter flags: any of `dgimsuy`, each once.
    /// - Throws: `.invalidArgument` with the reason.
    init(_ source: String, flags: String) throws(RealtimeError) {
        var known = PatternFlags()
        var seen: [UInt8] = []
        for flag in flags.utf8 {
            guard !seen.contains(flag) else { throw .pattern("a flag occurs twice") }
            seen.append(flag)
            switch flag {
            case UInt8(ascii: "i"): known.ignoresCase = true
            case UInt8(ascii: "m"): known.isMultiline = true
            case UInt8(ascii: "s"): known.dotMatchesAll = true
            case UInt8(ascii: "u"): known.isUnicode = true
            case UInt8(ascii: "y"): known.isSticky = true
            case UInt8(ascii: "d"), UInt8(ascii: "g"): break
            default: throw .pattern("an unknown flag")
            }
        }
        self.source = source
        self.flags = String(decoding: seen.sorted(), as: UTF8.self)
        program = try PatternProgram(source, known)
    }

    /// Texts match if they contain a match. A regular expression matches if it is the same one.
    func matches(_ value: EJSON?, _ budget: inout MatchBudget) -> Bool {
        switch value {
        case .string(let text): PatternMatch.isMatch(program, text, &budget)
        case .pattern(let pattern):
            pattern.source.hasSameBytes(as: source)
                && pattern.flags.hasSameBytes(as: flags)
        default: false
        }
    }
}
