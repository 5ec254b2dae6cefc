import Testing
import Wire

@testable import Documents

/// The time of regular expressions, counted in steps.
struct PatternBudgetTests {
    /// How many steps a regular expression takes, and whether it matches.
    private func run(
        _ source: String, _ flags: String = "", _ text: String
    ) throws -> (matches: Bool, steps: Int, isExceeded: Bool) {
        var budget = MatchBudget()
        let matches = try PatternTest(source, flags: flags).matches(.string(text), &budget)
        return (matches, MatchBudget.maximumSteps - budget.remaining, budget.isExceeded)
    }

    /// - Returns: `count` characters, no two of which are neighbors.
    private func characters(_ count: Int) -> String {
        var text = ""
        for number in 0..<count {
            // Beyond the surrogates.
            let value = 0x4E00 + 2 * UInt32(number)
            let scalar = Unicode.Scalar(value < 0xD800 ? value : value + 0x10000)
            if let scalar { text.unicodeScalars.append(scalar) }
        }
        return text
    }

    @Test func simpleExpressionsTakeAFewStepsForEachCharacter() throws {
        let text = String(repeating: "some words and ", count: 4_000)
        for (source, flags) in [
            ("needle", ""), ("Needle", "i"), ("\\bneedle\\b", ""), ("n[e-f]+d", "i"),
        ] {
            let result = try run(source, flags, text)
            #expect(!result.matches && !result.isExceeded, "\(source)")
            #expect(result.steps < 8 * text.utf8.count, "\(source): \(result.steps)")
            #expect(try run(source, flags, text + "needle").matches, "\(source)")
        }
    }

    /// Each of them would keep more than a thousand states at each of 65,536 characters.
    @Test(arguments: [
        "x(?:[CLASS]|a){300}y", "^(?:[CLASS]|a)*(?:[CLASS]|a){300}y", "(?:a?){900}y",
        "(?=(?:[CLASS]|a){300}y)b", "(?<=b(?:[CLASS]|a){300})y", "(?:(?:a*)*){90}y",
    ])
    func stepsAreLimited(source: String) throws {
        let parts = source.split(separator: "CLASS", omittingEmptySubsequences: false)
        let source = parts.joined(separator: characters(600))
        let result = try run(source, "", "x" + String(repeating: "a", count: 65_536))
        #expect(!result.matches)
        // What one character costs may exceed the budget.
        #expect(result.steps < MatchBudget.maximumSteps + 4 * PatternProgram.maximumInstructions)
    }

    @Test func aBudgetThatIsExceededEndsTheMatch() throws {
        let text = "x" + String(repeating: "a", count: 65_536) + "y"
        #expect(try run("(?:a?){900}y", "", text).isExceeded)
        #expect(try run("(?:a?){900}y", "", "xaay").matches)
    }

    @Test func rangesAreLimited() {
        let most = PatternParser.maximumRanges
        func isRefused(_ source: String) -> Bool {
            isInvalid { _ = try PatternTest(source, flags: "") }
        }
        #expect(!isRefused("[\(characters(most))]"))
        #expect(isRefused("[\(characters(most + 1))]"))
        #expect(isRefused("[\(characters(most / 2))]|[\(characters(most / 2 + 1))]"))
        #expect(isRefused("(?:[\(characters(20_000))]|a){300}x"))
        // Each stands for several ranges.
        #expect(isRefused("[" + String(repeating: "\\W", count: most) + "]"))
    }

    /// Classes against the plain list of their ranges.
    @Test func classesContainTheirRanges() {
        var numbers = SeededNumbers(seed: 7)
        for _ in 0..<300 {
            let ends: [UInt32] = [0x90, 0x300, PatternClass.highest]
            let end = ends[Int.random(in: 0..<ends.count, using: &numbers)]
            let ranges = (0..<Int.random(in: 0..<12, using: &numbers)).map { _ in
                let first = UInt32.random(in: 0...end, using: &numbers)
                return first...min(end, first + UInt32.random(in: 0...40, using: &numbers))
            }
            let isNegated = Bool.random(using: &numbers)
            let characters = PatternClass(ranges, isNegated: isNegated)
            let members = PatternClass(characters.members)
            var probes = ranges.flatMap { range in
                [range.lowerBound, range.upperBound, range.lowerBound &- 1, range.upperBound + 1]
            }
            probes += (0..<50).map { _ in UInt32.random(in: 0...end, using: &numbers) }
            for probe in probes where probe <= PatternClass.highest {
                let isMember = ranges.contains { $0.contains(probe) } != isNegated
                #expect(characters.contains(probe) == isMember, "\(probe) in \(ranges)")
                #expect(members.contains(probe) == isMember, "\(probe) in \(ranges)")
            }
        }
    }

    // MARK: Selectors

    private let id = DocumentID("a")

    /// Whether a selector matches `{text: …}`.
    private func selects(_ condition: EJSON, _ text: String) throws -> Bool {
        try Selector(["text": condition]).matches(["text": .string(text)], id: id)
    }

    @Test func allExpressionsOfASelectorShareTheBudget() throws {
        let text = String(repeating: "a", count: 65_536)
        let patterns = (0..<10_000).map {
            EJSON.pattern(EJSONPattern(source: "x\($0)$", flags: ""))
        }
        #expect(try !selects(["$in": .array(patterns)], text))
        // Neither a selector nor its opposite matches, because nobody knows the result.
        #expect(try !selects(["$nin": .array(patterns)], text))
        #expect(try selects(["$nin": .array(Array(patterns[..<10]))], text))
        #expect(try selects(["$in": .array(patterns)], "ax9999"))
        let negated: EJSON = ["$not": ["$regex": "(?:a?){900}y"]]
        #expect(try !selects(negated, text))
        #expect(try selects(negated, "aa"))
        let none: EJSON = ["$nor": [["text": ["$regex": "(?:a?){900}y"]]]]
        #expect(try !Selector(none).matches(["text": .string(text)], id: id))
    }

    @Test func allExpressionsOfASelectorShareTheirSize() {
        let large = EJSON.pattern(EJSONPattern(source: "a{1000}", flags: ""))
        func isRefused(_ count: Int) -> Bool {
            let patterns = EJSON.array(Array(repeating: large, count: count))
            return isInvalid { _ = try Selector(["a": ["$in": patterns]]) }
        }
        #expect(!isRefused(190))
        #expect(isRefused(200))
        let parts = Array(repeating: EJSON.object(["a": ["$not": large]]), count: 200)
        #expect(isInvalid { _ = try Selector(["$or": .array(parts)]) })
    }

    @Test func aQueryHasABudgetForAllDocuments() throws {
        var query = try Query(selector: ["text": ["$regex": "b$"]])
        let fields: EJSONObject = ["text": "aaaaaaaaab"]
        let documents = (0..<10).map { (DocumentID("\($0)"), fields) }
        #expect(try query.results(of: documents).count == 10)
        // Enough for some of them, and then for all of them again.
        query.maximumSteps = 100
        #expect(try query.results(of: documents.prefix(1)).count == 1)
        #expect(isInvalid { _ = try query.results(of: documents) })
        query.maximumSteps = 1_000
        #expect(try query.results(of: documents).count == 10)
        // What is decided without an expression costs nothing.
        query = try Query(selector: ["n": 1, "text": ["$regex": "b$"]])
        query.maximumSteps = 0
        #expect(try query.results(of: documents).isEmpty)
    }

    @Test func pullWithTooManyStepsFails() throws {
        let modifier = try Modifier(["$pull": ["list": ["$regex": "(?:a?){900}y"]]], now: 0)
        let text = EJSON.string(String(repeating: "a", count: 65_536))
        #expect(isInvalid { _ = try modifier.apply(to: ["list": [text]], id: id) })
        let changed = try modifier.apply(to: ["list": ["aay", "b"]], id: id)
        #expect(changed == ["list": ["b"]])
    }
}
