import Synchronization

/// Handlers that any thread sets and a loop's thread calls. They are replaced as a whole, so that
/// both know the same ones, in the same memory, except between a change and its notice.
///
/// What is replaced is released outside the lock: the destroy of its user data may call us.
struct SharedHandlers<Handlers: Sendable>: ~Copyable, Sendable {
    private let handlers: Mutex<Shared<Handlers>>

    init(_ handlers: Shared<Handlers>) { self.handlers = Mutex(handlers) }

    var current: Shared<Handlers> { handlers.withLock { $0 } }

    func change(_ change: (inout Handlers) -> Void) {
        var old: Shared<Handlers>?
        defer { withExtendedLifetime(old) {} }
        handlers.withLock { handlers in
            old = handlers
            let new = Shared(handlers.value)
            change(&new.value)
            handlers = new
        }
    }
}
