import Synchronization

/// How many are still wanted, with --count.
final class Countdown: Sendable {
    private let left: Atomic<Int>

    /// - Parameter count: nil for no end.
    init(_ count: Int?) { left = Atomic(count ?? .max) }

    var isOver: Bool { left.load(ordering: .relaxed) <= 0 }

    /// One has come; true for the last.
    func countsDown() -> Bool { left.subtract(1, ordering: .relaxed).newValue == 0 }
}
