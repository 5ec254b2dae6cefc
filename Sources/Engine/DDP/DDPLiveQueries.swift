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
            return DDPSendable(exchange(&shared.streams[ByteText(collection)], with: handler.value))
        }
        withExtendedLifetime(old) {}
    }

    /// Keeps the result of a query up to date.
    /// - Parameter ended: called if the query ends by itself, after its last change.
    /// - Returns: the query's name and its present result; each change from it is reported.
    package func observe(
        _ query: Query, in collection: String, _ changed: @escaping DDPLiveHandler,
        ended: @escaping DDPQueryEndHandler
    ) throws(RealtimeError) -> (id: LiveQueryID, found: [Found]) {
        try checkOpen()
        let handlers = DDPSendable((changed, ended))
        return try read { (shared) throws(RealtimeError) in
            let live = try shared.session.store.observe(query, in: collection)
            let (changed, ended) = handlers.value
            shared.queries[live.id.number] = DDPLiveObserver(
                changed: { change, _, isWanted in changed(change, isWanted) }, ended: ended)
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
        _ query: Query, in collection: String, _ changed: @escaping DDPStartedLiveHandler,
        ended: @escaping DDPQueryEndHandler = { _ in }
    ) throws(RealtimeError) -> LiveQueryID {
        try observeFromStart(
            query, collection,
            { change, isInitial, _, isWanted in
                changed(change, isInitial, isWanted)
            }, ended)
    }

    /// Like `observeFromStart`; a long change may come in pieces.
    package func observeInPieces(
        _ query: Query, in collection: String, _ changed: @escaping DDPLivePieceHandler
    ) throws(RealtimeError) -> LiveQueryID {
        try observeFromStart(query, collection, changed, takesPieces: true)
    }

    /// Like `observeFromStart`, by positions. Changes that follow each other are reported as one,
    /// because each report costs time for the whole result.
    package func observeIndexes(
        _ query: Query, in collection: String, _ changed: @escaping DDPIndexHandler
    ) throws(RealtimeError) -> LiveQueryID {
        let indexes = DDPIndexFeed(changed)
        return try observeFromStart(
            query, collection, { change, _, _, _ in indexes.add(change) }, indexes: indexes)
    }

    private func observeFromStart(
        _ query: Query, _ collection: String, _ changed: @escaping DDPLivePieceHandler,
        _ ended: @escaping DDPQueryEndHandler = { _ in }, indexes: DDPIndexFeed? = nil,
        takesPieces: Bool = false
    ) throws(RealtimeError) -> LiveQueryID {
        try checkOpen()
        let handlers = DDPSendable((changed, ended))
        let (id, start) = try read { (shared) throws(RealtimeError) in
            let live = try shared.session.store.observe(query, in: collection)
            let (changed, ended) = handlers.value
            let start = DDPLiveStart(LiveChange(beginning: live.id, live.found), changed, indexes)
            shared.queries[live.id.number] = DDPLiveObserver(
                start: start, takesPieces: takesPieces,
                changed: { start.changed($0, false, $1, $2) }, ended: ended)
            return (live.id, start)
        }
        loop.enqueue { [self] in
            begin(start)
            reportIndexes()
        }
        return id
    }

    /// Whether the changes of a live query may be reported in pieces.
    func takesPieces(_ query: LiveQueryID) -> Bool {
        shared.locked { shared.queries[query.number]?.takesPieces ?? false }
    }

    /// Reports that a live query has ended by itself. It is on the loop's thread.
    func report(_ ended: EndedQuery) {
        let start = shared.locked { DDPSendable(shared.queries[ended.id.number]?.start) }
        // First what it has found until then.
        if let start = start.value { begin(start) }
        if !isClosed { reportIndexes() }
        guard !isClosed else { return }
        let observer = shared.locked {
            shared.queries.removeValue(forKey: ended.id.number).map { DDPSendable($0) }
        }
        guard let observer else { return }
        Log.write(
            .warning,
            "a live query over \(ended.collection.quoted()) has ended: \(ended.error.message)")
        observer.value.ended(ended.error)
        if !isClosed { handlers.queryEnded?(ended) }
    }

    /// Reports a change of the result, or a piece of it. It is on the loop's thread.
    func report(_ change: LiveChange, isLast: Bool) {
        let observer = shared.locked { shared.queries[change.query.number].map { DDPSendable($0) } }
        if let start = observer?.value.start {
            begin(start)
            guard isObserving(change.query) else { return }
            note(start.indexes)
        }
        observer?.value.changed(change, isLast) { isObserving(change.query) }
    }

    private func note(_ indexes: DDPIndexFeed?) {
        guard let indexes, !indexes.isNoted else { return }
        indexes.isNoted = true
        indexFeeds.append(indexes)
    }

    /// Reports the changes by positions that wait.
    /// - Returns: whether there were any.
    @discardableResult func reportIndexes() -> Bool {
        let feeds = exchange(&indexFeeds, with: [])
        // A handler may end another query, or free the client.
        for feed in feeds { feed.report { isObserving($0) } }
        return !feeds.isEmpty
    }

    /// Reports the present result, unless that has been done.
    private func begin(_ start: DDPLiveStart) {
        guard let beginning = exchange(&start.beginning, with: nil) else { return }
        guard isObserving(beginning.query) else { return }
        note(start.indexes)
        start.changed(beginning, true, true) { isObserving(beginning.query) }
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
