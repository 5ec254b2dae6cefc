package import Documents
import Synchronization

/// Called on the loop's thread, once for all changes of objects that are made together, before live
/// queries are reported; at the end, when the client is closed, with nil.
package typealias DDPObjectObserver = @Sendable (ObjectChanges?) -> Void

/// Tells observers which objects of a client have changed. It follows the documents from the first
/// observer on. The client retains it.
final class DDPObjectHub: Sendable {
    private struct State {
        /// nil until somebody observes.
        var tracker: ModelChangeTracker?
        /// The changes that have come since the tracker was begun, until it is ready; nil before.
        var backlog: [[DocumentChange]]?
        var observers: [UInt64: DDPObjectObserver] = [:]
        var lastNumber: UInt64 = 0
        var isOver = false

        /// - Returns: what must be reported to the observers, in order.
        mutating func receive(_ changes: [DocumentChange]) -> [ObjectChanges] {
            guard tracker != nil else {
                backlog?.append(changes)
                return []
            }
            let all = (backlog ?? []) + [changes]
            backlog = nil
            return all.compactMap { tracker?.track($0) }.filter { !$0.isEmpty }
        }
    }

    private let map: ModelMap
    private let client: DDPConnection
    private let state = Mutex(State())

    init(_ map: ModelMap, _ client: DDPConnection) {
        self.map = map
        self.client = client
    }

    /// - Parameter observer: may be called before this returns, if the client is closed.
    /// - Returns: the number for `remove`.
    func add(_ observer: @escaping DDPObjectObserver) -> UInt64 {
        begin()
        let (number, isOver) = state.withLock { state in
            state.lastNumber += 1
            if !state.isOver { state.observers[state.lastNumber] = observer }
            return (state.lastNumber, state.isOver)
        }
        if isOver { observer(nil) }
        return number
    }

    /// Makes the tracker, unless there is one. The changes that come meanwhile are kept: that the
    /// tracker's documents contain some of them already does no harm.
    private func begin() {
        let isNeeded = state.withLock { state in
            guard state.tracker == nil, !state.isOver else { return false }
            if state.backlog == nil { state.backlog = [] }
            return true
        }
        guard isNeeded else { return }
        // Not with the lock: a stub, which keeps other threads from the documents, may observe too.
        let tracker = ModelChangeTracker(map, client.documents)
        let isBehind = state.withLock { state in
            if state.tracker == nil { state.tracker = tracker }
            return !(state.backlog?.isEmpty ?? true)
        }
        if isBehind { client.loop.enqueue { [self] in receive([]) } }
    }

    func remove(_ number: UInt64) {
        let old = state.withLock { $0.observers.removeValue(forKey: number) }
        withExtendedLifetime(old) {}
    }

    /// On the loop's thread.
    /// - Parameter changes: nil when the client is closed.
    func receive(_ changes: [DocumentChange]?) {
        guard let changes else { return end() }
        let (reports, numbers) = state.withLock { state in
            (state.receive(changes), state.observers.keys.sorted())
        }
        for report in reports {
            for number in numbers {
                // An observer may end another one.
                let observer = state.withLock { $0.observers[number] }
                observer?(report)
            }
        }
    }

    private func end() {
        let observers = state.withLock { state in
            state.isOver = true
            return exchange(&state.observers, with: [:])
        }
        for (_, observer) in observers.sorted(by: { $0.key < $1.key }) { observer(nil) }
    }
}
