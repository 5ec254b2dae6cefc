package import Documents
import Session
package import Wire

// Live queries, and streams.
extension DDPConnection {
    /// Makes a collection a stream, whose documents are events: each message about them is passed
    /// to the handler, in the order in which they come, and nothing is kept. nil makes it an
    /// ordinary collection again.
    package func setStream(
        _ collection: String, _ handler: DDPStreamHandler?
    ) throws(RealtimeError) {
        try checkOpen()
        let handler = DDPSendable(handler)
        let old = read { shared in
            shared.session.setStream(collection, handler.value != nil)
            return DDPSendable(exchange(&shared.streams[collection], with: handler.value))
        }
        withExtendedLifetime(old) {}
    }

    /// Keeps the result of a query up to date.
    /// - Parameter indexes: whether changes are reported by index too.
    /// - Returns: the query's name and its present result; each change from it is reported.
    package func observe(
        _ query: Query, in collection: String, indexes: Bool = false,
        _ changed: @escaping DDPLiveHandler
    ) throws(RealtimeError) -> (id: LiveQueryID, found: [Found]) {
        try checkOpen()
        let handler = DDPSendable(changed)
        return try read { (shared) throws(RealtimeError) in
            let live = try shared.session.store.observe(query, in: collection, indexes: indexes)
            shared.queries[live.id.number] = DDPLiveObserver(changed: handler.value)
            return live
        }
    }

    package func stopObserving(_ id: LiveQueryID) {
        let old = read { shared in
            shared.session.store.stopObserving(id)
            return shared.queries.removeValue(forKey: id.number).map { DDPSendable($0) }
        }
        withExtendedLifetime(old) {}
    }

    /// Like `observe`, but its present result is reported too: first of all, as the change from an
    /// empty one.
    package func observeFromStart(
        _ query: Query, in collection: String, indexes: Bool = false,
        _ changed: @escaping DDPStartedLiveHandler
    ) throws(RealtimeError) -> LiveQueryID {
        try checkOpen()
        let handler = DDPSendable(changed)
        let (id, start) = try read { (shared) throws(RealtimeError) in
            let live = try shared.session.store.observe(query, in: collection, indexes: indexes)
            let start = DDPLiveStart(
                LiveChange(beginning: live.id, live.found, indexes: indexes), handler.value)
            shared.queries[live.id.number] = DDPLiveObserver(start: start) {
                start.changed($0, false, $1)
            }
            return (live.id, start)
        }
        loop.enqueue { [self] in begin(start) }
        return id
    }

    /// Reports a change of the result. It is on the loop's thread.
    func report(_ change: LiveChange) {
        let observer = shared.locked { shared.queries[change.query.number].map { DDPSendable($0) } }
        if let start = observer?.value.start {
            begin(start)
            guard isObserving(change.query) else { return }
        }
        observer?.value.changed(change) { isObserving(change.query) }
    }

    /// Reports the present result, unless that has been done.
    private func begin(_ start: DDPLiveStart) {
        guard let beginning = exchange(&start.beginning, with: nil) else { return }
        guard isObserving(beginning.query) else { return }
        start.changed(beginning, true) { isObserving(beginning.query) }
    }

    private func isObserving(_ id: LiveQueryID) -> Bool {
        !isClosed && shared.locked { shared.queries[id.number] != nil }
    }
}

// What follows all changes of a client's documents.
extension DDPConnection {
    /// - Parameter observer: called on the loop's thread before the program's handler; at the end,
    ///   when the client is closed, with nil. It may be called before this returns.
    /// - Returns: the number for `stopObservingChanges`.
    func observeChanges(_ observer: @escaping DDPChangeObserver) -> UInt64 {
        let (number, isOver) = shared.addChangeObserver(observer)
        if isOver { observer(nil) }
        return number
    }

    func stopObservingChanges(_ number: UInt64) { shared.removeChangeObserver(number) }
}
