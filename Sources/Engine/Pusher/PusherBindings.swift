import Synchronization
import Wire

/// A handler that is bound to an event, or to all events.
///
/// Unchecked because handlers are called on the loop's thread only.
package final class PusherBinding<Channel: AnyObject>: @unchecked Sendable {
    package typealias Handle = (PusherEventView, Channel?, PusherBinding) -> Void

    /// Grows in the order of binding.
    let id: UInt64
    /// nil for every event.
    fileprivate let event: String?
    fileprivate let handle: Handle
    fileprivate let ended: (() -> Void)?
    private let bound = Atomic<Bool>(true)

    fileprivate init(
        _ id: UInt64, _ event: String?, _ ended: (() -> Void)?, _ handle: @escaping Handle
    ) {
        self.id = id
        self.event = event
        self.ended = ended
        self.handle = handle
    }

    /// False from the moment when it is unbound, even in a dispatch that has begun.
    package var isBound: Bool { bound.load(ordering: .acquiring) }

    fileprivate func unbind() { bound.store(false, ordering: .releasing) }
}

/// The handlers of a connection, a channel or a user. Any thread binds and unbinds them; the loop's
/// thread calls them.
///
/// Unbound handlers are released without the lock, because the destroy function of their user data
/// may call us.
package final class PusherBindings<Channel: AnyObject>: Sendable {
    package typealias Binding = PusherBinding<Channel>

    /// In an object of its own, so that adding to it copies nothing.
    fileprivate final class Bucket {
        var bindings: [Binding] = []
    }

    /// Unchecked because the lock guards it.
    struct State: @unchecked Sendable {
        var everything: [Binding] = []
        fileprivate var named = ByteTable<Bucket>()
        var byID: [UInt64: Binding] = [:]
        var isEnded = false
    }

    private let state = Mutex(State())
    private let count = Atomic<Int>(0)

    /// The handlers of one event when its dispatch began, in two lists, each in binding order.
    struct Snapshot {
        fileprivate var everything: [Binding] = []
        fileprivate var named: [Binding] = []

        /// Calls the handlers in binding order.
        func call(
            _ view: PusherEventView, _ channel: Channel?,
            _ gate: borrowing DeliveryGate
        ) {
            var (first, second) = (0, 0)
            while first < everything.count || second < named.count {
                let isFirst =
                    second == named.count
                    || first < everything.count && everything[first].id < named[second].id
                let binding = isFirst ? everything[first] : named[second]
                if isFirst { first += 1 } else { second += 1 }
                if binding.isBound, !gate.isClosed { binding.handle(view, channel, binding) }
            }
        }
    }

    /// - Parameters:
    ///   - event: nil for every event.
    ///   - ended: called once, without the lock, when it is unbound.
    /// - Returns: false if nothing can be bound any more.
    func add(
        _ id: UInt64, _ event: String?, ended: (() -> Void)? = nil,
        _ handle: @escaping Binding.Handle
    ) -> Bool {
        let binding = Binding(id, event, ended, handle)
        return state.withLock { state in
            guard !state.isEnded else { return false }
            state.byID[id] = binding
            if let event {
                if let bucket = state.named[event] {
                    insert(binding, into: &bucket.bindings)
                } else {
                    let bucket = Bucket()
                    bucket.bindings.append(binding)
                    state.named[event] = bucket
                }
            } else {
                insert(binding, into: &state.everything)
            }
            count.store(state.byID.count, ordering: .releasing)
            return true
        }
    }

    /// Threads that bind at the same time may come here in another order than that of their ids.
    private func insert(_ binding: Binding, into bindings: inout [Binding]) {
        let place = bindings.lastIndex { $0.id < binding.id }.map { $0 + 1 } ?? 0
        bindings.insert(binding, at: place)
    }

    /// - Returns: whether it was bound.
    @discardableResult package func remove(_ id: UInt64) -> Bool {
        let removed = state.withLock { state -> Binding? in
            guard let binding = state.byID.removeValue(forKey: id) else { return nil }
            binding.unbind()
            if let event = binding.event {
                if let bucket = state.named[event] {
                    bucket.bindings.removeAll { $0 === binding }
                    if bucket.bindings.isEmpty { state.named[event] = nil }
                }
            } else {
                state.everything.removeAll { $0 === binding }
            }
            count.store(state.byID.count, ordering: .releasing)
            return binding
        }
        removed?.ended?()
        return removed != nil
    }

    /// Unbinds the handlers of one event.
    package func removeAll(of event: String) {
        let removed = state.withLock { state -> [Binding] in
            let bindings = state.named[event]?.bindings ?? []
            state.named[event] = nil
            for binding in bindings {
                binding.unbind()
                state.byID[binding.id] = nil
            }
            count.store(state.byID.count, ordering: .releasing)
            return bindings
        }
        for binding in removed { binding.ended?() }
    }

    /// Unbinds all handlers.
    package func removeAll() { removeAll(forGood: false) }

    /// - Parameter forGood: nothing can be bound afterwards.
    func removeAll(forGood: Bool) {
        let removed = state.withLock { state -> State in
            let old = state
            for binding in old.byID.values { binding.unbind() }
            state = State()
            state.isEnded = old.isEnded || forGood
            count.store(0, ordering: .releasing)
            return old
        }
        for binding in removed.byID.values { binding.ended?() }
    }

    /// The handlers of an event. The loop's owner only.
    @inline(__always)
    func handlers(of event: UnsafeRawBufferPointer) -> Snapshot {
        if count.load(ordering: .acquiring) == 0 { return Snapshot() }
        return state.withLock {
            Snapshot(everything: $0.everything, named: $0.named[event]?.bindings ?? [])
        }
    }
}
