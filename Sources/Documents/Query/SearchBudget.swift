import Wire

/// How many steps the regular expressions of a query may still take, with all the documents that
/// are searched for one result, or have changed together. Once they have taken more, the query
/// fails: leaving out the documents that remain would depend on the order of the search.
package struct SearchBudget: Sendable {
    /// About ten seconds.
    package static let maximumSteps = 1_000_000_000

    private let steps: Int
    /// Negative once the budget is exceeded.
    private var remaining: Int

    package init(steps: Int = SearchBudget.maximumSteps) {
        self.steps = steps
        remaining = steps
    }

    var isExceeded: Bool { remaining < 0 }

    mutating func spend(_ budget: MatchBudget) { remaining -= budget.spent }

    /// - Throws: `.invalidArgument` once the budget is exceeded.
    func check() throws(RealtimeError) {
        guard isExceeded else { return }
        throw RealtimeError(
            .invalidArgument,
            "the regular expressions of the query need more than \(steps) steps for these "
                + "documents; simpler ones, or further conditions before them, need fewer")
    }
}
