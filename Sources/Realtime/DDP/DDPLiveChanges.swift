internal import Documents
internal import Engine
public import Wire

/// The changes of a live query's result, in order, from `DDPCollection.changes`. The first one is
/// the present result.
///
/// An iteration that is slow misses nothing: each element is the difference between the result that
/// the element before has led to, and the present one. What changed several times in between is in
/// it once. So what waits never takes more memory than the two results. One task iterates it; the
/// query ends with the last reference to the sequence and its iterator, and the iteration when the
/// client is closed. It throws if the query has ended by itself, see `DDPClient.onQueryEnd`.
public struct DDPLiveChanges: AsyncSequence, Sendable {
    public typealias Element = DDPListChange<DDPDocument>
    public typealias Failure = RealtimeError

    let query: LiveChangesQuery

    public struct AsyncIterator: AsyncIteratorProtocol {
        let query: LiveChangesQuery

        /// - Returns: nil when the client is closed, or the task is cancelled.
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(RealtimeError) -> DDPListChange<DDPDocument>? {
            try await query.next().map { DDPListChange($0) }
        }

        public mutating func next() async throws(RealtimeError) -> DDPListChange<DDPDocument>? {
            try await next(isolation: #isolation)
        }
    }

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(query: query) }
}

extension DDPCollection {
    /// Reports the result of a query by positions, as a list on a screen wants to know it, and then
    /// each change of it. `observe` reports the same by the ids of neighbours.
    /// - Parameter handler: called once for all changes that are made together. First it receives
    ///   the present result, all of it inserted.
    /// - Returns: what ends the query when it is released, or by `stop`.
    /// - Throws: `.invalidArgument` for a query with a fault; `.closed`.
    public func observeList(
        _ selector: EJSON = [:], options: EJSONObject = [:],
        @_inheritActorContext _ handler:
            @escaping @Sendable @isolated(any) (DDPListChange<DDPDocument>) -> Void
    ) throws(RealtimeError) -> DDPLiveQuery {
        let handler = Handler(escaping: handler)
        return try DDPLiveQuery(client, feed(selector, options), handler.isolation) {
            handler.call(DDPListChange($0))
        }
    }

    /// The changes of a query's result by positions, beginning with the present result.
    /// - Throws: `.invalidArgument` for a query with a fault; `.closed`.
    public func changes(
        _ selector: EJSON = [:], options: EJSONObject = [:]
    ) throws(RealtimeError) -> DDPLiveChanges {
        DDPLiveChanges(query: LiveChangesQuery(client, try feed(selector, options)))
    }

    private func feed(
        _ selector: EJSON, _ options: EJSONObject
    ) throws(RealtimeError) -> DDPFeed {
        try DDPFeed(
            client.engine, Query(selector: selector, options: .object(options)), in: name)
    }
}

/// A live query for one task, which takes the changes when it wants to. It ends when it is
/// released.
final class LiveChangesQuery: Sendable {
    private let client: DDPClient
    private let feed: DDPFeed
    private let waiters = TaskWaiters()

    init(_ client: DDPClient, _ feed: DDPFeed) {
        self.client = client
        self.feed = feed
        let end = DDPStreamEnd { [waiters] in waiters.resumeAll(.success(())) }
        // Fails if the client is closed; then the feed has ended.
        try? feed.setHandler { [waiters] in
            withExtendedLifetime(end) { waiters.resumeAll(.success(())) }
        }
    }

    deinit { feed.close() }

    /// Waits for the next change.
    /// - Returns: nil at the end, and if the task is cancelled.
    /// - Throws: the error of a query that has ended by itself.
    func next() async throws(RealtimeError) -> LiveBatch? {
        while !Task.isCancelled {
            switch feed.takeNow() {
            case .batch(let batch): return batch
            case .ended: return nil
            case .failed(let error): throw error
            case .nothing: break
            }
            let isWoken: Void? = try? await waiters.wait { feed.hasNews ? .success(()) : nil }
            guard isWoken != nil else { return nil }
        }
        return nil
    }
}

extension LiveStep {
    /// The document as it is now.
    var found: Found { Found(id: id, fields: new ?? [:]) }
}
