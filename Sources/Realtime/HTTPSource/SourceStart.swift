import Synchronization
import Wire

/// Starts an event source or a long poll that was created with `start: false`: when the program
/// does, or when it waits for the first message, which would otherwise never come.
final class SourceStart: Sendable {
    private static let none: UInt8 = 0
    private static let byIteration: UInt8 = 1
    private static let byProgram: UInt8 = 2

    private let started = Atomic<UInt8>(SourceStart.none)
    private let start: @Sendable () throws(RealtimeError) -> Void

    init(_ start: @escaping @Sendable () throws(RealtimeError) -> Void) { self.start = start }

    /// - Throws: the error of `start`; not `.state` if only an iteration has started it, which may
    ///   have happened in another task.
    func begin() throws(RealtimeError) {
        let old = started.exchange(SourceStart.byProgram, ordering: .acquiringAndReleasing)
        if old != SourceStart.byIteration { try start() }
    }

    /// An iteration waits for a message.
    /// - Throws: the error of `start`, unless the object is closed: then the iteration ends.
    func beginIterating() throws(RealtimeError) {
        guard started.load(ordering: .relaxed) == SourceStart.none else { return }
        let change = started.compareExchange(
            expected: SourceStart.none, desired: SourceStart.byIteration,
            ordering: .acquiringAndReleasing)
        guard change.exchanged else { return }
        do throws(RealtimeError) {
            try start()
        } catch {
            // The next iteration fails, too, and does not wait.
            started.store(SourceStart.none, ordering: .releasing)
            if error.code != .closed { throw error }
        }
    }
}
