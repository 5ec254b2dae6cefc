import Testing
import Wire

@testable import Documents

struct PatternTests {
    private func matches(_ source: String, _ flags: String, _ text: String) throws -> Bool {
        var budget = MatchBudget()
        return try PatternTest(source, flags: flags).matches(.string(text), &budget)
    }

    /// The results are those of V8.
    @Test(
        arguments: [
            ("", "", "", true), ("b", "", "abc", true), ("^b", "", "abc", false),
            ("^a.c$", "", "abc", true), ("a.c", "", "a\nc", false), ("a.c", "s", "a\nc", true),
            ("^b$", "", "a\nb", false), ("^b$", "m", "a\nb", true), ("^b", "m", "a\u{2028}b", true),
            ("B", "", "abc", false), ("B", "i", "abc", true), ("[A-C]+$", "i", "xabc", true),
            ("[^A-C]", "i", "abc", false), ("é", "i", "É", true), ("ς", "i", "Σ", true),
            ("\u{212A}", "i", "k", false), ("\u{212A}", "iu", "k", true), ("ſ", "iu", "S", true),
            ("[ſ]", "i", "s", false), ("ß", "iu", "\u{1E9E}", true), ("ı", "iu", "I", false),
            ("a|b|", "", "c", true), ("^(a|b)c$", "", "bc", true), ("^(?:ab)+$", "", "abab", true),
            ("^(?<name>ab)?$", "", "ab", true), ("^a{2}$", "", "aaa", false),
            ("^a{2,}$", "", "aaa", true), ("^a{1,2}?$", "", "aaa", false), ("a{", "", "a{", true),
            ("a{,2}", "", "a{,2}", true), ("^(a*)*$", "", "aaab", false), ("]", "", "]", true),
            ("^.$", "", "😀", false), ("^.$", "u", "😀", true), ("^..$", "", "😀", true),
            (#"^\u{1F600}$"#, "u", "😀", true), (#"^\uD83D\uDE00$"#, "u", "😀", true),
            (#"\uD83D"#, "", "😀", true), (#"\uD83D"#, "u", "😀", false),
            (#"\bword\b"#, "", "a word.", true), (#"\bor"#, "", "word", false),
            (#"\Bor"#, "", "word", true), (#"^\d+\D\w\W\s\S$"#, "", "12a_- x", true),
            (#"\s"#, "", "\u{FEFF}", true), (#"[\d-x]"#, "", "-", true),
            (#"[\b]"#, "", "\u{8}", true),
            (#"\x41\u0042\t\cA\0"#, "", "AB\t\u{1}\0", true), (#"\101"#, "", "A", true),
            (#"\8"#, "", "8", true), (#"\c"#, "", #"\c"#, true), (#"[\c1]"#, "", "\u{11}", true),
            ("[]", "", "a", false), ("[^]", "", "\n", true), ("b", "y", "ab", false),
            ("a", "y", "ab", true), ("a", "g", "ba", true), ("foo(?=bar)", "", "foobar", true),
            ("foo(?=bar)", "", "foobaz", false), ("^(?!foo)", "", "foobar", false),
            ("(?<=a)b", "", "ab", true), ("(?<!a)b", "", "ab", false),
            ("^(?=.*\\d)(?=.*[a-z]).{4,}$", "", "ab12", true),
            ("^(?=.*\\d)(?=.*[a-z]).{4,}$", "", "abcd", false),
            ("(?<=^(?:ab)+)c", "", "ababc", true),
            ("(?=a)*b", "", "b", true), ("(?!(?=b).)c", "", "bc", true),
        ])
    func matchesAsInJavaScript(
        source: String, flags: String, text: String, matches: Bool
    ) throws {
        #expect(try self.matches(source, flags, text) == matches, "/\(source)/\(flags) \(text)")
    }

    @Test(
        arguments: [
            ("(", ""), (")", ""), ("[", ""), ("[b-a]", ""), ("*", ""), ("a**", ""), ("a{2,1}", ""),
            ("{1}", ""), ("\\", ""), ("(?a)", ""), ("(?<1>a)", ""), ("(?<a)", ""), ("a", "x"),
            ("a", "gg"), ("a", "v"), ("]", "u"), ("{", "u"), (#"\-"#, "u"), (#"\u{110000}"#, "u"),
            (#"\u{}"#, "u"), (#"[\d-x]"#, "u"), (#"\00"#, "u"), (#"\c"#, "u"), ("(?=a)*", "u"),
            (#"(?<=a)*"#, ""),
            // No matcher can bound the time of these.
            (#"(a)\1"#, ""), (#"(?<n>a)\k<n>"#, ""), (#"\1"#, "u"), (#"\p{L}"#, "u"),
        ])
    func invalidOnesAreRefused(source: String, flags: String) {
        #expect(isInvalid { _ = try PatternTest(source, flags: flags) }, "/\(source)/\(flags)")
    }

    @Test func aPatternMatchesAnEqualPattern() throws {
        let test = try PatternTest("a", flags: "mi")
        func matches(_ value: EJSON?) -> Bool {
            var budget = MatchBudget()
            return test.matches(value, &budget)
        }
        #expect(matches(.pattern(EJSONPattern(source: "a", flags: "im"))))
        #expect(!matches(.pattern(EJSONPattern(source: "a", flags: "i"))))
        #expect(!matches(.number(1)))
        #expect(!matches(nil))
    }

    // MARK: Limits

    /// These take exponential time where a matcher tries one way after the other. Here the number
    /// of steps is at most the text's length times the number of instructions.
    @Test(
        arguments: ["^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "(.*)*x", "^(?:a?){30}a{30}b$", "(a*)*b"])
    func timeIsBounded(source: String) throws {
        let text = String(repeating: "a", count: 20_000)
        #expect(try !matches(source, "", text + "!"))
    }

    @Test func sizeIsLimited() {
        let most = PatternProgram.maximumInstructions
        #expect(!isInvalid { _ = try PatternTest("a{\(most - 1)}", flags: "") })
        #expect(isInvalid { _ = try PatternTest("a{\(most)}", flags: "") })
        #expect(isInvalid { _ = try PatternTest("((a{100}){100}){100}", flags: "") })
        #expect(isInvalid { _ = try PatternTest("a{99999999999999999999}", flags: "") })
        #expect(isInvalid { _ = try PatternTest("(?:(?:){99999999}){99999999}", flags: "") })
    }

    @Test func depthIsLimited() {
        func source(_ levels: Int) -> String {
            String(repeating: "(", count: levels) + String(repeating: ")", count: levels)
        }
        let most = PatternParser.maximumDepth
        #expect(!isInvalid { _ = try PatternTest(source(most - 1), flags: "") })
        #expect(isInvalid { _ = try PatternTest(source(most), flags: "") })
        #expect(isInvalid { _ = try PatternTest(source(1_000_000), flags: "") })
    }
}
