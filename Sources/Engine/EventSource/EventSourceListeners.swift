import Synchronization

/// The listeners of an event source, by the type of event. Any thread adds and removes them; the
/// loop's thread asks for those of an event. Adding and removing take the same time however many
/// there are.
///
/// What is removed is released outside the lock: the destroy of its user data may call us.
struct EventSourceListeners: ~Copyable, Sendable {
    struct Listener {
        var token: UInt64
        /// nil once it was removed.
        var handle: EventSourceHandlers.Event?
    }

    /// Those of one type, in the order they were added, which is the order of their tokens.
    struct Bucket {
        var listeners: [Listener] = []
        var removed = 0

        /// - Returns: its handle, for the caller to release.
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
            // Closing each gap would be slow for many.
            if removed * 2 > listeners.count {
                listeners.removeAll { $0.handle == nil }
                removed = 0
            }
            return handle
        }
    }

    /// Unchecked because handlers may be set on any thread and are called on the loop's, as
    /// `EventSourceHandlers` says. Not private: Swift 6.3.1 fails to compile that in a `Mutex`.
    struct State: @unchecked Sendable {
        var buckets: [[UInt8]: Bucket] = [:]
        /// The type of each listener.
        var types: [UInt64: [UInt8]] = [:]
        var lastToken: UInt64 = 0
    }

    private let state = Mutex(State())
    private let count = Atomic<Int>(0)
    /// How often listeners were added or removed: what was found before may be out of date.
    private let changeCount = Atomic<UInt64>(0)

    var isEmpty: Bool { count.load(ordering: .acquiring) == 0 }

    var changes: UInt64 { changeCount.load(ordering: .acquiring) }

    func add(_ type: [UInt8], _ handle: @escaping EventSourceHandlers.Event) -> UInt64 {
        // In a struct, since a closure that is generic is wrapped in another (Swift 6.3.1).
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

    /// - Returns: whether there was one.
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

    /// Those of a type as they are now, some of which may be removed.
    func of(_ type: UnsafeRawBufferPointer) -> [Listener] {
        state.withLock { Unchecked(value: $0.buckets[Array(type)]?.listeners ?? []) }.value
    }

    func contains(_ token: UInt64) -> Bool { state.withLock { $0.types[token] != nil } }

    /// Types with a listener, each once, sorted bytewise.
    var types: [[UInt8]] {
        state.withLock { Array($0.buckets.keys) }.sorted { $0.lexicographicallyPrecedes($1) }
    }
}

/// The listeners of the types that came last, so that most events need no lock and no hash. The
/// loop's thread only, and only within one read: what is removed is released at its end.
struct RecentListeners {
    struct Entry {
        let type: [UInt8]
        let listeners: [EventSourceListeners.Listener]
        /// Of the only listener.
        let handle: EventSourceHandlers.Event?
    }

    private static let capacity = 8

    private var entries: [Entry] = []
    /// `changes` of the listeners when these were found.
    private var changes: UInt64 = 0

    /// Those of a type, some of which may be removed by now.
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

    /// The only listener of a type that came before, when nothing has changed since.
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

/// Takes a handler over the border of a lock.
private struct Unchecked<Value>: @unchecked Sendable {
    let value: Value
}
