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
/// client is closed.
public struct DDPLiveChanges: AsyncSequence, Sendable {
    public typealias Element = DDPListChange<DDPDocument>

    let query: LiveChangesQuery

    public struct AsyncIterator: AsyncIteratorProtocol {
        let query: LiveChangesQuery

        /// - Returns: nil when the client is closed, or the task is cancelled.
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async -> DDPListChange<DDPDocument>? {
            await query.result.next().map { DDPListChange($0) }
        }

        public mutating func next() async -> DDPListChange<DDPDocument>? {
            await next(isolation: #isolation)
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
        let query = try Query(selector: selector, options: .object(options))
        let (handler, gate) = (Handler(escaping: handler), CallGate())
        let result = LiveResult()
        let id = try client.engine.observeFromStart(query, in: name) {
            [dispatcher = client.dispatcher] change, _, _ in
            result.report(change)
            guard let batch = result.take() else { return }
            dispatcher.run(on: handler.isolation, count: batch.storedBytes, gate: gate) {
                handler.call(DDPListChange(batch))
            }
        }
        return DDPLiveQuery(client, id.number, gate)
    }

    /// The changes of a query's result by positions, beginning with the present result.
    /// - Throws: `.invalidArgument` for a query with a fault; `.closed`.
    public func changes(
        _ selector: EJSON = [:], options: EJSONObject = [:]
    ) throws(RealtimeError) -> DDPLiveChanges {
        let query = try Query(selector: selector, options: .object(options))
        return DDPLiveChanges(query: try LiveChangesQuery(client, query, in: name, LiveResult()))
    }
}

/// Receives the result of a live query, on the loop's thread.
protocol LiveReceiver: Sendable {
    /// - Parameter change: the first one is the present result.
    func report(_ change: LiveChange)
    /// Nothing follows.
    func finish()
}

typealias LiveChangesQuery = LiveReceiverQuery<LiveResult>

/// A live query whose result goes to a receiver. It ends when it is released.
final class LiveReceiverQuery<Result: LiveReceiver>: Sendable {
    let result: Result
    private let client: DDPClient
    private let number: Int

    /// - Parameter changed: called on the loop's thread after each change of the result.
    init(
        _ client: DDPClient, _ query: Query, in collection: String, _ result: Result,
        changed: (@Sendable (Result) -> Void)? = nil
    ) throws(RealtimeError) {
        let end = DDPStreamEnd { result.finish() }
        let id = try client.engine.observeFromStart(query, in: collection) { change, _, _ in
            withExtendedLifetime(end) {
                result.report(change)
                changed?(result)
            }
        }
        self.result = result
        self.client = client
        number = id.number
    }

    deinit { stop() }

    func stop() { client.engine.stopObserving(LiveQueryID(number: number)) }
}
