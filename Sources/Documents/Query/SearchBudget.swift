import Wire

/// How many steps the regular expressions of a query may still take, with all the documents that
/// are searched for one result, or have changed together. Once they have taken more, the query
/// fails: leaving out the documents that remain would depend on the order of the search.
package struct SearchBudget: Sendable {
    /// About ten seconds, for which the caller waits.
    package static let maximumSteps = 1_000_000_000

    /// What a live query may take for documents that have changed together: nobody waits for that,
    /// and the server decides how often it happens.
    /// - Parameter count: how many documents. Two steps a character are enough for simple
    ///   expressions.
    static func live(_ count: Int) -> Int { 10_000_000 + 2_000 * min(count, 100_000) }

    private let steps: Int
    /// Negative once the budget is exceeded.
    private var remaining: Int
    /// How many steps `takeUnits` has not returned.
    private var untaken = 0

    package init(steps: Int = SearchBudget.maximumSteps) {
        self.steps = steps
        remaining = steps
    }

    var isExceeded: Bool { remaining < 0 }

    mutating func spend(_ budget: MatchBudget) {
        remaining -= budget.spent
        untaken += budget.spent
    }

    /// What was spent since the last call, in steps of a `StepBudget`, each of which is worth many
    /// of these.
    mutating func takeUnits() -> Int {
        guard untaken >= SearchBudget.stepsOfUnit else { return 0 }
        defer { untaken %= SearchBudget.stepsOfUnit }
        return untaken / SearchBudget.stepsOfUnit
    }

    private static let stepsOfUnit = 32

    /// - Throws: `.invalidArgument` once the budget is exceeded.
    func check() throws(RealtimeError) {
        guard isExceeded else { return }
        throw RealtimeError(
            .invalidArgument,
            "the regular expressions of the query need more than \(steps) steps for these "
                + "documents; simpler ones, or further conditions before them, need fewer")
    }
}
