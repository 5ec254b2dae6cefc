import Synchronization

/// The listeners of an event source, by event type. Any thread adds and removes them; the loop's
/// thread asks for those of an event. Adding and removing take the same time for any number of
/// listeners.
///
/// Removed listeners are released without the lock, because the destroy function of their user data
/// may call us.
struct EventSourceListeners: ~Copyable, Sendable {
    struct Listener {
        var token: UInt64
        /// nil once it was removed.
        var handle: EventSourceHandlers.Event?
    }

    /// The listeners of one type, in the order they were added, which is that of their tokens.
    struct Bucket {
        var listeners: [Listener] = []
        var removed = 0

        /// - Returns: its handle, which the caller must release.
        mutating func remove(_ token: UInt64) -> EventSourceHandlers.Event? {
            var (low, high) = (0, listeners.count)
            while low < high {
                let middle = (low + high) / 2
                if listeners[middle].token < token { low = middle + 1 } else { high = middle }
            }
            guard low < listeners.count, listeners[low].token == token else { return nil }
            let handle = listeners[low].handle
            listeners[low].handle = nil
            removed += 1
            // Compacts only when half are gone, because compacting on each removal would be slow.
            if removed * 2 > listeners.count {
                listeners.removeAll { $0.handle == nil }
                removed = 0
            }
            return handle
        }
    }

    /// Unchecked for the same reason as `EventSourceHandlers`. Not private, because Swift 6.3.1
    /// fails to compile a private type in a `Mutex`.
    struct State: @unchecked Sendable {
        var buckets: [[UInt8]: Bucket] = [:]
        /// The type of each listener.
        var types: [UInt64: [UInt8]] = [:]
        var lastToken: UInt64 = 0
    }

    private let state = Mutex(State())
    private let count = Atomic<Int>(0)
    /// How often listeners were added or removed; earlier results may then be out of date.
    private let changeCount = Atomic<UInt64>(0)

    var isEmpty: Bool { count.load(ordering: .acquiring) == 0 }

    var changes: UInt64 { changeCount.load(ordering: .acquiring) }

    func add(_ type: [UInt8], _ handle: @escaping EventSourceHandlers.Event) -> UInt64 {
        // In a struct, because Swift 6.3.1 wraps a generic closure in another one.
        let listener = Unchecked(value: Listener(token: 0, handle: handle))
        return state.withLock { state in
            state.lastToken += 1
            state.types[state.lastToken] = type
            var listener = listener.value
            listener.token = state.lastToken
            state.buckets[type, default: Bucket()].listeners.append(listener)
            noteChange(state)
            return state.lastToken
        }
    }

    /// - Returns: whether the listener existed.
    func remove(_ token: UInt64) -> Bool {
        let removed = state.withLock { state -> Unchecked<EventSourceHandlers.Event?> in
            guard let type = state.types.removeValue(forKey: token) else {
                return Unchecked(value: nil)
            }
            let handle = state.buckets[type]?.remove(token)
            if state.buckets[type]?.listeners.isEmpty == true { state.buckets[type] = nil }
            noteChange(state)
            return Unchecked(value: handle)
        }
        return removed.value != nil
    }

    /// Removes those of one type.
    func removeAll(of type: [UInt8]) {
        let removed = state.withLock { state in
            let bucket = state.buckets.removeValue(forKey: type)
            for listener in bucket?.listeners ?? [] { state.types[listener.token] = nil }
            noteChange(state)
            return Unchecked(value: bucket)
        }
        withExtendedLifetime(removed) {}
    }

    func removeAll() {
        let removed = state.withLock { state in
            let old = state
            state.buckets = [:]
            state.types = [:]
            noteChange(state)
            return old
        }
        withExtendedLifetime(removed) {}
    }

    private func noteChange(_ state: borrowing State) {
        count.store(state.types.count, ordering: .releasing)
        changeCount.add(1, ordering: .releasing)
    }

    /// The current listeners of a type; some may already be removed.
    func of(_ type: UnsafeRawBufferPointer) -> [Listener] {
        state.withLock { Unchecked(value: $0.buckets[Array(type)]?.listeners ?? []) }.value
    }

    func contains(_ token: UInt64) -> Bool { state.withLock { $0.types[token] != nil } }

    /// The types that have a listener, each once, sorted bytewise.
    var types: [[UInt8]] {
        state.withLock { Array($0.buckets.keys) }.sorted { $0.lexicographicallyPrecedes($1) }
    }
}

/// A cache of the listeners of recent types, so that most events need no lock and no hash. The
/// loop's thread only, and only within one read, so that removed listeners are released soon.
struct RecentListeners {
    struct Entry {
        let type: [UInt8]
        let listeners: [EventSourceListeners.Listener]
        /// The listener's handle, if there is only one.
        let handle: EventSourceHandlers.Event?
    }

    private static let capacity = 8

    private var entries: [Entry] = []
    /// The listeners' `changes` when the cache was filled.
    private var changes: UInt64 = 0

    /// The listeners of a type; some may already be removed.
    mutating func of(
        _ type: UnsafeRawBufferPointer, in all: borrowing EventSourceListeners
    ) -> [EventSourceListeners.Listener] {
        if all.changes != changes {
            removeAll()
            changes = all.changes
        }
        if let index = index(of: type) { return entries[index].listeners }
        if entries.count == RecentListeners.capacity { entries.removeFirst() }
        let found = all.of(type).filter { $0.handle != nil }
        entries.append(
            Entry(
                type: Array(type), listeners: found,
                handle: found.count == 1 ? found[0].handle : nil))
        return found
    }

    /// The only listener of a cached type, if nothing has changed since.
    @inline(__always)
    func only(
        of type: UnsafeRawBufferPointer, in all: borrowing EventSourceListeners
    ) -> EventSourceHandlers.Event? {
        guard all.changes == changes, let index = index(of: type) else { return nil }
        return entries[index].handle
    }

    @inline(__always)
    private func index(of type: UnsafeRawBufferPointer) -> Int? {
        for index in entries.indices where entries[index].type.hasBytes(type) { return index }
        return nil
    }

    mutating func removeAll() { entries.removeAll(keepingCapacity: true) }
}

extension [UInt8] {
    fileprivate func hasBytes(_ other: UnsafeRawBufferPointer) -> Bool {
        guard count == other.count else { return false }
        return withUnsafeBytes { own in
            own.indices.allSatisfy { own[$0] == other[$0] }
        }
    }
}

/// Passes a handler into or out of a lock's closure.
private struct Unchecked<Value>: @unchecked Sendable {
    let value: Value
}
