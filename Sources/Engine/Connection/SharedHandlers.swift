import Synchronization

/// Handlers that any thread sets and a loop's thread calls, from a copy that it takes when they
/// changed.
///
/// What is replaced is released outside the lock: the destroy of its user data may call us.
struct SharedHandlers<Handlers: Sendable>: ~Copyable, Sendable {
    private let handlers: Mutex<Handlers>

    init(_ handlers: Handlers) { self.handlers = Mutex(handlers) }

    var current: Handlers { handlers.withLock { $0 } }

    func change<Result>(_ change: (inout Handlers) -> Result) -> Result {
        var old: Handlers?
        defer { withExtendedLifetime(old) {} }
        return handlers.withLock { handlers in
            old = handlers
            return change(&handlers)
        }
    }
}
