import Synchronization
import Wire

/// A result that comes once, for a thread that blocks until then. It has its own inbox, so that it
/// also ends with its loop.
final class Waiter<Value: Sendable>: Sendable {
    private let inbox: Inbox
    private let value = Mutex<Value?>(nil)

    init(on loop: Loop) { inbox = Inbox(on: loop) }

    /// Has no effect once there is a result.
    fileprivate func set(_ result: Value) {
        value.withLock { if $0 == nil { $0 = result } }
        inbox.opened()
    }

    /// There will be no result.
    fileprivate func end() {
        inbox.finish(RealtimeError(.closed, "the object was closed or freed"))
    }

    /// - Parameter timeout: nil for no limit.
    /// - Throws: `.timeout`; `.closed` if the object or its loop was freed.
    func wait(_ timeout: Duration?) throws(RealtimeError) -> Value {
        do throws(RealtimeError) {
            try inbox.waitUntilOpen(timeout)
        } catch {
            guard error.code == .timeout else { throw error }
            throw RealtimeError(.timeout, "there is no result in time")
        }
        guard let value = value.withLock({ $0 }) else {
            throw RealtimeError(.closed, "there is no result")
        }
        return value
    }
}

/// Sets the result of a waiter. Handlers hold it: once they are released, nobody can set a result
/// any more, and the wait ends.
final class Answer<Value: Sendable>: Sendable {
    private let waiter: Waiter<Value>

    init(_ waiter: Waiter<Value>) { self.waiter = waiter }

    deinit { waiter.end() }

    func set(_ result: Value) { waiter.set(result) }

    func isFor(_ waiter: Waiter<Value>) -> Bool { waiter === self.waiter }
}
