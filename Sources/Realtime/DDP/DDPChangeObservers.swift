internal import Documents
import Synchronization

/// Passes the changes of a client's documents to its models, and then to the program's handler. So
/// the handler finds the models up to date.
final class DDPChangeObservers: Sendable {
    /// Called on the loop's thread; at the end, when the client is closed, with nil.
    typealias Observer = @Sendable ([DocumentChange]?) -> Void

    private struct State {
        var handler: Handler<@Sendable ([DDPChange]) -> Void>?
        var observers: [(number: UInt64, observe: Observer)] = []
        var lastNumber: UInt64 = 0
        var isOver = false
    }

    private let state = Mutex(State())
    private let dispatcher: SourceDispatcher

    init(_ dispatcher: SourceDispatcher) { self.dispatcher = dispatcher }

    func setHandler(_ handler: Handler<@Sendable ([DDPChange]) -> Void>?) {
        let old = state.withLock { state in
            let old = state.handler
            state.handler = state.isOver ? nil : handler
            return old
        }
        withExtendedLifetime(old) {}
    }

    /// - Returns: the number for `remove`.
    func add(_ observe: @escaping Observer) -> UInt64 {
        let (number, isOver) = state.withLock { state in
            state.lastNumber += 1
            if !state.isOver { state.observers.append((state.lastNumber, observe)) }
            return (state.lastNumber, state.isOver)
        }
        if isOver { observe(nil) }
        return number
    }

    func remove(_ number: UInt64) {
        let old = state.withLock { state in
            state.observers.firstIndex { $0.number == number }.map {
                state.observers.remove(at: $0)
            }
        }
        withExtendedLifetime(old) {}
    }

    /// On the loop's thread.
    func report(_ changes: [DocumentChange]) {
        guard !changes.isEmpty else { return }
        let (handler, observers) = state.withLock { ($0.handler, $0.observers) }
        for observer in observers { observer.observe(changes) }
        guard let handler else { return }
        let count = { changes.reduce(0) { $0 + $1.storedBytes } }
        dispatcher.run(on: handler.isolation, count: count()) {
            handler.call(changes.map { DDPChange($0) })
        }
    }

    /// The client is closed.
    func end() {
        let old = state.withLock { state in
            let old = (state.handler, state.observers)
            (state.handler, state.observers, state.isOver) = (nil, [], true)
            return old
        }
        for observer in old.1 { observer.observe(nil) }
    }
}
