import Synchronization
package import Wire

/// A result that comes once, for a thread that blocks until then. It has its own inbox, so that it
/// also ends with its loop.
package final class Waiter<Value: Sendable>: Sendable {
    private let inbox: Inbox
    private let value = Mutex<Value?>(nil)
    fileprivate let isGivenUp = Atomic<Bool>(false)

    package init(on loop: Loop) { inbox = Inbox(on: loop) }

    /// Has no effect once there is a result.
    fileprivate func set(_ result: Value) {
        value.withLock { if $0 == nil { $0 = result } }
        inbox.opened()
    }

    /// The result; nil before it.
    package var result: Value? { value.withLock { $0 } }

    /// There will be no result.
    package func end() {
        inbox.finish(RealtimeError(.closed, "the object was closed or freed"))
    }

    /// No thread waits for the result any more.
    func giveUp() { isGivenUp.store(true, ordering: .relaxed) }

    /// Ends the waits of all threads with `.cancelled`, or the next one.
    package func interrupt() { inbox.interrupt() }

    /// - Parameter timeout: nil for no limit.
    /// - Throws: `.timeout`; `.closed` if the object or its loop was freed; `.cancelled` after
    ///   `interrupt`.
    package func wait(_ timeout: Duration?) throws(RealtimeError) -> Value {
        do throws(RealtimeError) {
            try inbox.waitUntilOpen(timeout)
        } catch {
            giveUp()
            guard error.code == .timeout else { throw error }
            throw RealtimeError(.timeout, "there is no result in time")
        }
        guard let value = result else {
            throw RealtimeError(.closed, "there is no result")
        }
        return value
    }
}

/// Sets the result of a waiter. Handlers hold it: once they are released, nobody can set a result
/// any more, and the wait ends.
package final class Answer<Value: Sendable>: Sendable {
    private let waiter: Waiter<Value>

    package init(_ waiter: Waiter<Value>) { self.waiter = waiter }

    deinit { waiter.end() }

    package func set(_ result: Value) { waiter.set(result) }

    func interrupt() { waiter.interrupt() }

    /// Whether a thread may wait for the result; for waiters of a single thread.
    var isAwaited: Bool { !waiter.isGivenUp.load(ordering: .relaxed) }

    func isFor(_ waiter: Waiter<Value>) -> Bool { waiter === self.waiter }
}
