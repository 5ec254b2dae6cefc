package import Documents
import Session
import Synchronization
package import Wire

/// The changes of a live query's result, for a reader that takes them when it wants to. A slow
/// reader misses nothing: see `LiveFeed`. Any thread.
package final class DDPFeed: Sendable {
    package enum Taken {
        case batch(LiveBatch)
        case nothing, ended
        /// The query has ended by itself.
        case failed(RealtimeError)
    }

    package let client: DDPConnection
    private let collection: String
    private let query: LiveQueryID
    private let source: DDPFeedSource
    /// Whose objects the documents are; nil for plain documents.
    private let objects: (all: DDPObjects, entity: Entity)?
    /// The number of what lets related objects count as updated.
    private let relatedNumber: UInt64?

    /// The changes of documents. The present result can be taken at once.
    package convenience init(
        _ client: DDPConnection, _ query: Query, in collection: String
    ) throws(RealtimeError) {
        let source = DDPFeedSource()
        let id = try DDPFeed.begin(client, query, collection, source)
        self.init(client, collection, id, source, nil, nil)
    }

    /// The changes of objects, with fields for all relationships. An object is updated also if a
    /// reference to it, or an object to which it refers, has come or gone.
    package convenience init(
        _ objects: DDPObjects, _ query: Query, of entity: Entity
    ) throws(RealtimeError) {
        let source = DDPFeedSource()
        // Observed before the query begins, so that its first result misses nothing.
        let number = objects.observeRelated(of: entity) { source.touch($0) }
        do throws(RealtimeError) {
            let id = try DDPFeed.begin(objects.client, query, entity.collection, source)
            self.init(
                objects.client, entity.collection, id, source, (objects, entity), number)
        } catch {
            if let number { objects.stopObserving(number) }
            throw error
        }
    }

    private static func begin(
        _ client: DDPConnection, _ query: Query, _ collection: String, _ source: DDPFeedSource
    ) throws(RealtimeError) -> LiveQueryID {
        let end = DDPFeedEnd(source)
        // Released after `begin`, because its end takes the source's lock.
        defer { withExtendedLifetime(end) {} }
        return try source.begin { () throws(RealtimeError) in
            try client.observe(query, in: collection) { change, _ in
                end.source.report(change)
            } ended: { error in
                end.source.fail(error)
            }
        }
    }

    private init(
        _ client: DDPConnection, _ collection: String, _ query: LiveQueryID,
        _ source: DDPFeedSource, _ objects: (all: DDPObjects, entity: Entity)?,
        _ relatedNumber: UInt64?
    ) {
        self.client = client
        self.collection = collection
        self.query = query
        self.source = source
        self.objects = objects
        self.relatedNumber = relatedNumber
    }

    /// Takes all that has changed since the last call, and blocks until something has.
    /// - Parameter timeout: nil for no limit. Without a wait, callbacks and stubs may call this.
    /// - Throws: `.timeout`; `.closed` if the client, its loop or the feed was freed; the error of
    ///   a query that has ended by itself.
    package func take(timeout: Duration?) throws(RealtimeError) -> LiveBatch {
        try client.loop.checkNotForked()
        let due = timeout.map { Loop.now() + $0 }
        if timeout != .zero { try client.loop.checkMayWait() }
        while true {
            switch takeNow() {
            case .batch(let batch): return batch
            case .ended: throw ended
            case .failed(let error): throw error
            case .nothing: break
            }
            let left = due.map { $0 - Loop.now() }
            guard left != .zero else {
                throw RealtimeError(
                    .timeout, "the result in \(collection.quoted()) has not changed in time")
            }
            try waitForNews(left)
        }
    }

    /// Takes all that has changed since the last call. What waits at the end can still be taken.
    package func takeNow() -> Taken {
        let taken = source.take()
        guard let objects, case .batch(let batch) = taken else { return taken }
        return .batch(batch.completed { objects.all.complete($0, of: objects.entity) })
    }

    /// Whether there may be something to take, or nothing follows.
    package var hasNews: Bool { source.hasNews }

    private var ended: RealtimeError {
        RealtimeError(
            .closed,
            "the feed of \(collection.quoted()) has ended: its client, loop or it was freed")
    }

    /// - Parameter limit: nil for none. The call returns also when the time is up.
    private func waitForNews(_ limit: Duration?) throws(RealtimeError) {
        let waiter = Waiter<Bool>(on: client.loop)
        guard let number = source.awaitNews(waiter) else { return }
        defer { source.forgetWait(number) }
        do throws(RealtimeError) {
            _ = try waiter.wait(limit)
        } catch {
            if error.code == .cancelled { throw error }
            // The loop may end before it releases the feed's source.
            if error.code != .timeout, !source.isFilled { throw ended }
        }
    }

    /// Sets what is called on the loop's thread when something can be taken, and not again before
    /// it has been taken; nil for nothing. It is released at the end.
    package func setHandler(_ handler: (() -> Void)?) throws(RealtimeError) {
        try client.checkOpen()
        source.setHandler(handler)
        client.loop.enqueue { [client, source] in
            if !client.isClosed { source.remind() }
        }
    }

    /// Ends the calls that wait with `.cancelled`. If none waits, the next one that would ends.
    package func interrupt() throws(RealtimeError) {
        try client.loop.checkNotForked()
        source.interrupt()
    }

    /// Ends the query, and the calls that wait.
    package func close() {
        client.stopObserving(query)
        if let objects, let relatedNumber { objects.all.stopObserving(relatedNumber) }
        source.finish()
    }
}

/// Ends a feed when the client releases the handler that fills it.
private final class DDPFeedEnd: Sendable {
    let source: DDPFeedSource

    init(_ source: DDPFeedSource) { self.source = source }

    deinit { source.finish() }
}

/// The part of a feed to which the client refers.
private final class DDPFeedSource: Sendable {
    private struct State {
        var feed = LiveFeed()
        var isOver = false
        /// Why the query has ended by itself; nil if it has not.
        var failure: RealtimeError?
        /// Called when something can be taken, and could not before.
        var handler = DDPSendable<(() -> Void)?>(nil)
        /// It was called, and nothing was taken since.
        var isAnnounced = false
        /// The threads that wait, by number.
        var waiting: [UInt64: Answer<Bool>] = [:]
        var lastWait: UInt64 = 0
        /// The next wait ends.
        var isInterrupted = false

        /// The handler, if it must be called now.
        mutating func announce() -> DDPSendable<(() -> Void)?> {
            guard feed.isFilled || failure != nil, !isAnnounced, handler.value != nil else {
                return DDPSendable(nil)
            }
            isAnnounced = true
            return handler
        }
    }

    private let state = Mutex(State())

    /// - Parameter observe: begins the query. Its changes can be reported before this has returned:
    ///   they wait for the lock.
    func begin(
        _ observe: () throws(RealtimeError) -> (id: LiveQueryID, found: [Found])
    ) throws(RealtimeError) -> LiveQueryID {
        try state.withLock { (state) throws(RealtimeError) in
            let live = try observe()
            state.feed.append(LiveChange(beginning: live.id, live.found))
            return live.id
        }
    }

    // MARK: The loop's thread

    func report(_ change: LiveChange) {
        add { feed in
            feed.append(change)
            return true
        }
    }

    /// Some documents count as updated, because what belongs to them has changed.
    func touch(_ ids: [DocumentID]) { add { $0.touch(ids) } }

    /// The query has ended by itself. What waits can still be taken.
    func fail(_ error: RealtimeError) {
        change { state in
            state.failure = error
            return true
        }
    }

    /// - Parameter body: returns whether it has added something.
    private func add(_ body: (inout LiveFeed) -> Bool) { change { body(&$0.feed) } }

    /// - Parameter body: returns whether there is something new to take.
    private func change(_ body: (inout State) -> Bool) {
        let news: (waiting: [UInt64: Answer<Bool>], handler: DDPSendable<(() -> Void)?>)?
        news = state.withLock { state in
            guard body(&state) else { return nil }
            return (exchange(&state.waiting, with: [:]), state.announce())
        }
        guard let news else { return }
        for answer in news.waiting.values { answer.set(true) }
        news.handler.value?()
    }

    /// Calls the handler if something can be taken already.
    func remind() {
        let handler = state.withLock { $0.announce() }
        handler.value?()
    }

    // MARK: Any thread

    var isFilled: Bool { state.withLock { $0.feed.isFilled } }
    var hasNews: Bool { state.withLock { $0.feed.isFilled || $0.isOver || $0.failure != nil } }

    func take() -> DDPFeed.Taken {
        state.withLock { state in
            state.isAnnounced = false
            if let batch = state.feed.take() { return .batch(batch) }
            if let error = state.failure { return .failed(error) }
            return state.isOver ? .ended : .nothing
        }
    }

    /// - Returns: the number of the wait; nil if there is nothing to wait for.
    func awaitNews(_ waiter: Waiter<Bool>) -> UInt64? {
        let answer = Answer(waiter)
        return state.withLock { state in
            guard !state.feed.isFilled, !state.isOver, state.failure == nil else { return nil }
            if state.isInterrupted { answer.interrupt() }
            state.isInterrupted = false
            state.lastWait += 1
            state.waiting[state.lastWait] = answer
            return state.lastWait
        }
    }

    func interrupt() {
        let waiting = state.withLock { state in
            state.isInterrupted = state.waiting.isEmpty
            return state.waiting
        }
        for answer in waiting.values { answer.interrupt() }
    }

    func forgetWait(_ number: UInt64) {
        let old = state.withLock { $0.waiting.removeValue(forKey: number) }
        withExtendedLifetime(old) {}
    }

    func setHandler(_ handler: (() -> Void)?) {
        let handler = DDPSendable(handler)
        let old = state.withLock { state in
            state.isAnnounced = false
            return state.isOver ? handler : exchange(&state.handler, with: handler)
        }
        withExtendedLifetime(old) {}
    }

    /// Nothing follows. What waits can still be taken.
    func finish() {
        let (waiting, handler) = state.withLock { state in
            state.isOver = true
            return (
                exchange(&state.waiting, with: [:]),
                exchange(&state.handler, with: DDPSendable(nil))
            )
        }
        for answer in waiting.values { answer.set(false) }
        withExtendedLifetime(handler) {}
    }
}
