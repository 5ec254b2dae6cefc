/// How much a call may still do of work that later calls can continue. A step takes about as long
/// as applying one usual change of a document: less than a microsecond.
package struct StepBudget: Sendable {
    private var left: Int

    package init(_ steps: Int) { left = steps }

    /// For work that is done at once.
    package static let unlimited = StepBudget(.max)

    package var isSpent: Bool { left <= 0 }

    package mutating func spend(_ steps: Int = 1) { left -= steps }
}
