import Synchronization

/// Handlers that any thread sets and a loop's thread calls. A change replaces all of them, so that
/// both sides can share the same memory until the next change.
///
/// Replaced handlers are released without the lock, because the destroy function of their user data
/// may call us.
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
