internal import Engine
import Synchronization

/// The handlers of a channel, a connection or a user, by the numbers that the engine gave them. A
/// handler that was unbound is not called any more, even if a call waits for its executor.
final class PusherBindingTable: Sendable {
    typealias EngineHandler = (PusherEventView, PusherChannelHandle?) -> Void

    private final class Entry: Sendable {
        /// nil for every event.
        let event: String?
        private let ended: (@Sendable () -> Void)?
        private let bound = Atomic<Bool>(true)

        var isBound: Bool { bound.load(ordering: .acquiring) }

        init(_ event: String?, _ ended: (@Sendable () -> Void)?) {
            self.event = event
            self.ended = ended
        }

        func end() {
            bound.store(false, ordering: .releasing)
            ended?()
        }
    }

    private struct State {
        var entries: [UInt64: Entry] = [:]
        /// Nothing can be bound any more.
        var isEnded = false
    }

    private let state = Mutex(State())

    /// Binds a handler, which runs on the actor to which it is isolated, or on the user's executor.
    /// - Parameters:
    ///   - event: nil for every event.
    ///   - bind: binds the function to the engine's object.
    /// - Returns: the text that unbinds it; "" if nothing can be bound any more.
    func add(
        _ event: String?, _ handler: Handler<@Sendable (PusherEvent) -> Void>,
        by dispatcher: PusherDispatcher,
        _ bind: (String?, @escaping EngineHandler) throws -> UInt64?
    ) -> String {
        let entry = Entry(event, nil)
        let id = add(entry) {
            try bind(event) { view, channel in
                let event = dispatcher.event(view, channel)
                dispatcher.run(on: handler.isolation, count: event.count) {
                    if entry.isBound { handler.call(event) }
                }
            }
        }
        return id.map { String($0) } ?? ""
    }

    /// Binds a function that is called inside the loop's callback.
    /// - Parameter ended: called once, when it is unbound or can never be called again.
    /// - Returns: nil if nothing can be bound any more.
    func add(
        _ event: String?, by dispatcher: PusherDispatcher, ended: @escaping @Sendable () -> Void,
        _ bind: (String?, @escaping EngineHandler) throws -> UInt64?,
        _ call: @escaping @Sendable (PusherEvent) -> Void
    ) -> UInt64? {
        let entry = Entry(event, ended)
        return add(entry) {
            try bind(event) { view, channel in
                if entry.isBound { call(dispatcher.event(view, channel)) }
            }
        }
    }

    private func add(_ entry: Entry, _ bind: () throws -> UInt64?) -> UInt64? {
        state.withLock { state in
            guard !state.isEnded, let id = try? bind() else { return nil }
            state.entries[id] = entry
            return id
        }
    }

    /// - Returns: whether it was bound.
    @discardableResult
    func remove(_ id: UInt64) -> Bool {
        guard let entry = state.withLock({ $0.entries.removeValue(forKey: id) }) else {
            return false
        }
        entry.end()
        return true
    }

    /// Removes the handlers of an event.
    /// - Returns: their numbers.
    func removeAll(of event: String) -> [UInt64] { removeAll { $0.event == event } }

    /// Removes all handlers.
    /// - Returns: their numbers.
    func removeAll() -> [UInt64] { removeAll { _ in true } }

    private func removeAll(where isIncluded: (Entry) -> Bool) -> [UInt64] {
        let removed = state.withLock { state in
            let removed = state.entries.filter { isIncluded($0.value) }
            for id in removed.keys { state.entries[id] = nil }
            return removed
        }
        for entry in removed.values { entry.end() }
        return Array(removed.keys)
    }

    /// Removes all handlers, for good.
    func end() {
        state.withLock { $0.isEnded = true }
        _ = removeAll()
    }
}
