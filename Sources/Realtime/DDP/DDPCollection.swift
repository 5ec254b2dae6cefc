internal import Documents
internal import Engine
internal import Session
import Synchronization
public import Wire

/// A collection of local documents, from `DDPClient.collection`.
///
/// Selectors are objects such as `["done": false]`, or ids; an empty object selects all documents.
public struct DDPCollection: Sendable {
    public let name: String
    let client: DDPClient

    // MARK: Writing

    /// Inserts a document, here and at the server.
    /// - Parameter document: without `_id`, the client and the server draw the same id.
    /// - Returns: the call; its `stubValue` is the id.
    @discardableResult
    public func insert(
        _ document: EJSONObject, options: DDPCallOptions = DDPCallOptions()
    ) throws -> DDPCall {
        let options = try options.engine()
        return try DDPCall { (handlers) throws(RealtimeError) in
            try client.engine.insert(name, .object(document), options: options, handlers)
        }
    }

    /// Changes a document, here and at the server.
    /// - Parameter modifier: such as `["$set": ["done": true]]`.
    @discardableResult
    public func update(
        _ id: EJSON, _ modifier: EJSONObject, options: DDPCallOptions = DDPCallOptions()
    ) throws -> DDPCall {
        let options = try options.engine()
        return try DDPCall { (handlers) throws(RealtimeError) in
            try client.engine.update(name, id: id, .object(modifier), options: options, handlers)
        }
    }

    /// Removes a document, here and at the server.
    @discardableResult
    public func remove(
        _ id: EJSON, options: DDPCallOptions = DDPCallOptions()
    ) throws -> DDPCall {
        let options = try options.engine()
        return try DDPCall { (handlers) throws(RealtimeError) in
            try client.engine.remove(name, id: id, options: options, handlers)
        }
    }

    // MARK: Reading

    /// How many documents there are.
    public var count: Int { client.engine.count(of: name) }

    /// The document that has this id; nil if it is not there.
    public subscript(id: EJSON) -> DDPDocument? {
        guard let name = DocumentID(id) else { return nil }
        let key = DocumentKey(collection: self.name, id: name)
        return client.engine.document(key).map { DDPDocument(id: id, fields: $0) }
    }

    /// The documents that a query finds, in its order.
    /// - Parameter options: `sort`, `skip`, `limit` and `fields` (or `projection`), such as
    ///   `["sort": ["text": 1], "limit": 10]`.
    /// - Throws: `.invalidArgument` for a query with a fault.
    public func find(
        _ selector: EJSON = [:], options: EJSONObject = [:]
    ) throws(RealtimeError) -> [DDPDocument] {
        let query = try Query(selector: selector, options: .object(options))
        return try client.engine.find(query, in: name).map { DDPDocument($0) }
    }

    // MARK: Live queries

    /// Reports the result of a query, and then each change of it: applied one after the other, the
    /// changes turn the old result into the new one.
    /// - Parameter handler: first receives the present result, as documents that are added.
    /// - Returns: what ends the query when it is released, or by `stop`.
    public func observe(
        _ selector: EJSON = [:], options: EJSONObject = [:],
        @_inheritActorContext _ handler: @escaping @Sendable @isolated(any) ([DDPChange]) -> Void
    ) throws(RealtimeError) -> DDPLiveQuery {
        let query = try Query(selector: selector, options: .object(options))
        let (handler, gate) = (Handler(escaping: handler), CallGate())
        let failure = QueryFailure()
        let id = try client.engine.observeFromStart(query, in: name) {
            [name, dispatcher = client.dispatcher] change, isInitial, _ in
            let changes = change.changes
            dispatcher.run(on: handler.isolation, count: changes.storedBytes, gate: gate) {
                handler.call(changes.map { DDPChange($0, in: name, isInitial: isInitial) })
            }
        } ended: {
            failure.set($0)
        }
        return DDPLiveQuery(client, gate, failure) { [engine = client.engine] in
            engine.stopObserving(id)
        }
    }
}

/// A live query, from `DDPCollection.observe` or `DDPModels.observe`. It ends with the last
/// reference to it.
public final class DDPLiveQuery: Sendable {
    /// Retained, because a client closes with its last reference.
    private let client: DDPClient
    private let gate: CallGate
    private let failure: QueryFailure
    private let end: @Sendable () -> Void

    init(
        _ client: DDPClient, _ gate: CallGate, _ failure: QueryFailure,
        end: @escaping @Sendable () -> Void
    ) {
        self.client = client
        self.gate = gate
        self.failure = failure
        self.end = end
    }

    /// - Parameters:
    ///   - isolation: the actor on which the handler runs; nil for the client's executor.
    ///   - handle: called with all that has changed together.
    convenience init(
        _ client: DDPClient, _ feed: DDPFeed, _ isolation: (any Actor)?,
        _ handle: @escaping @Sendable (LiveBatch) -> Void
    ) throws(RealtimeError) {
        let (gate, failure) = (CallGate(), QueryFailure())
        try feed.setHandler { [dispatcher = client.dispatcher] in
            while true {
                switch feed.takeNow() {
                case .batch(let batch):
                    dispatcher.run(on: isolation, count: batch.storedBytes, gate: gate) {
                        handle(batch)
                    }
                case .failed(let error): return failure.set(error)
                case .nothing, .ended: return
                }
            }
        }
        self.init(client, gate, failure) { feed.close() }
    }

    /// Why the query has ended by itself; nil if it has not. See `DDPClient.onQueryEnd`.
    public var error: RealtimeError? { failure.error }

    deinit { stop() }

    /// Ends the query. Called where its handler runs, that is not called any more.
    public func stop() {
        gate.close()
        end()
    }
}

/// Why a live query has ended by itself.
final class QueryFailure: Sendable {
    private let state = Mutex<RealtimeError?>(nil)

    var error: RealtimeError? { state.withLock { $0 } }

    func set(_ error: RealtimeError) { state.withLock { $0 = error } }
}

/// Ends a stream when the handler that fills it is released.
final class DDPStreamEnd: Sendable {
    private let end: @Sendable () -> Void

    init(_ end: @escaping @Sendable () -> Void) { self.end = end }

    deinit { end() }
}
