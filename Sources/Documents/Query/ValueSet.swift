import Wire

/// What `$in` allows: values, and texts that match a regular expression.
struct ValueSet: Sendable {
    private var values = EJSONSet()
    /// Whether null and a missing value are allowed.
    private var includesNull = false
    private var patterns: [PatternTest] = []

    /// Adds what a test allows.
    /// - Returns: false, and nothing is added, if the test is of another kind.
    mutating func insert(_ test: ElementTest) -> Bool {
        switch test {
        case .equals(let value?): values.insert(value)
        case .equals(nil): includesNull = true
        case .pattern(let pattern): patterns.append(pattern)
        case .compares, .remainder, .among, .size, .type, .exists, .hasElement: return false
        }
        return true
    }

    func contains(_ value: EJSON?, _ budget: inout MatchBudget) -> Bool {
        guard let value, value.kind != .null else { return includesNull }
        return values.contains(value) || patterns.contains { $0.matches(value, &budget) }
    }
}

extension ElementTest {
    /// Whether it can be part of `$in`.
    var isMember: Bool {
        var set = ValueSet()
        return set.insert(self)
    }

    /// - Parameter tests: of values and regular expressions.
    static func any(of tests: [ElementTest]) -> ElementTest {
        if tests.count == 1 { return tests[0] }
        var set = ValueSet()
        for test in tests { _ = set.insert(test) }
        return .among(set)
    }
}
