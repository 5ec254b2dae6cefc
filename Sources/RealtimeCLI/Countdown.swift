import Synchronization

/// How many messages are still to come with --count.
final class Countdown: Sendable {
    private let left: Atomic<Int>

    /// - Parameter count: nil for no limit.
    init(_ count: Int?) { left = Atomic(count ?? .max) }

    var isOver: Bool { left.load(ordering: .relaxed) <= 0 }

    /// Counts a message; returns true for the last one.
    func countsDown() -> Bool { left.subtract(1, ordering: .relaxed).newValue == 0 }
}
