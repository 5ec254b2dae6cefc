/// How many steps the regular expressions of one selector may still take with one document. Once
/// they have taken more, the document does not match, whatever the selector negates.
struct MatchBudget {
    /// A few hundredths of a second. A simple expression takes two or three steps a character.
    static let maximumSteps = 4_000_000

    /// Negative once the budget is exceeded.
    private(set) var remaining = MatchBudget.maximumSteps

    var isExceeded: Bool { remaining < 0 }
    var spent: Int { MatchBudget.maximumSteps - remaining }

    /// - Returns: whether the budget allows these steps. None are allowed once it is exceeded.
    mutating func spend(_ steps: Int) -> Bool {
        guard remaining >= 0 else { return false }
        remaining -= steps
        return remaining >= 0
    }
}
