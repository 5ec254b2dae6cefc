internal import Documents
internal import Engine
import Synchronization
public import Wire

// Observing.
extension DDPModels {
    /// Which objects change, from now on.
    ///
    ///     for await changes in models.objectChanges {
    ///         for id in changes.updated(Todo.self) { … }
    ///     }
    public var objectChanges: DDPObjectChangeSequence {
        DDPObjectChangeSequence(queue: ObjectChangeQueue(objects))
    }

    /// Reports which objects change, from now on.
    /// - Parameter handler: called once for all changes that are made together. Live queries are
    ///   reported after it.
    /// - Returns: what ends the observation when it is released, or by `stop`.
    public func observeObjects(
        @_inheritActorContext _ handler:
            @escaping @Sendable @isolated(any) (DDPObjectChanges) -> Void
    ) -> DDPModelObservation {
        let (handler, gate) = (Handler(escaping: handler), CallGate())
        let number = objects.observe { [dispatcher = client.dispatcher] changes in
            guard let changes else { return }
            dispatcher.run(on: handler.isolation, count: changes.storedBytes, gate: gate) {
                handler.call(DDPObjectChanges(changes: changes))
            }
        }
        return DDPModelObservation(objects, number, gate)
    }

    /// The changes of a query's result by positions, beginning with the present result.
    ///
    ///     var todos: [Todo] = []
    ///     for try await change in try models.changes(Todo.self, ["done": false]) {
    ///         todos.apply(change)
    ///     }
    ///
    /// An object is updated also if a reference to it, or an object to which it refers, has come or
    /// gone (M18). One whose document ceases to fit the model is deleted, and inserted when it fits
    /// again.
    /// - Throws: `RealtimeError`: `.invalidArgument` for a query with a fault, and for a model that
    ///   was not named; `.closed`.
    public func changes<Model: DDPModel>(
        _ model: Model.Type, _ selector: EJSON = [:], options: EJSONObject = [:]
    ) throws(RealtimeError) -> DDPModelLiveChanges<Model> {
        let reader = try ModelReader<Model>(self)
        let feed = try feed(reader, selector, options)
        return DDPModelLiveChanges(query: LiveChangesQuery(client, feed), reader: reader)
    }

    /// Reports the result of a query by positions, and then each change of it.
    ///
    /// An object is updated also if a reference to it, or an object to which it refers, has come or
    /// gone (M18). One whose document ceases to fit the model is deleted, and inserted when it fits
    /// again.
    /// - Parameter handler: first receives the present result, all of it inserted.
    /// - Returns: what ends the query when it is released, or by `stop`.
    /// - Throws: `RealtimeError`: `.invalidArgument` for a query with a fault, and for a model that
    ///   was not named; `.closed`.
    public func observe<Model: DDPModel>(
        _ model: Model.Type, _ selector: EJSON = [:], options: EJSONObject = [:],
        @_inheritActorContext _ handler:
            @escaping @Sendable @isolated(any) (DDPListChange<Model>) -> Void
    ) throws(RealtimeError) -> DDPLiveQuery {
        // The models retain no query: they live as long as the query's owner wants.
        let reader = try ModelReader<Model>(self)
        let handler = Handler(escaping: handler)
        let feed = try feed(reader, selector, options)
        return try DDPLiveQuery(client, feed, handler.isolation) { batch in
            // Decoding is the program's code, too.
            if let change = reader.read(batch) { handler.call(change) }
        }
    }

    private func feed<Model>(
        _ reader: ModelReader<Model>, _ selector: EJSON, _ options: EJSONObject
    ) throws(RealtimeError) -> DDPFeed {
        try DDPFeed(
            objects, Query(selector: selector, options: .object(options)), of: reader.type.entity)
    }
}

/// Makes objects of documents that a live query has found.
final class ModelReader<Model: DDPModel>: Sendable {
    let type: ModelType
    private let misfits: Misfits
    /// The positions of documents in the query's result that the model cannot be decoded from.
    private let hidden = Mutex<[Int]>([])

    init(_ models: DDPModels) throws(RealtimeError) {
        type = try models.type(of: Model.self)
        misfits = models.misfits
    }

    /// - Returns: nil if only documents that do not fit have changed.
    func read(_ batch: LiveBatch) -> DDPListChange<Model>? {
        let found = batch.steps.filter { $0.new != nil }.map { $0.found }
        let decoded = type.decode(Model.self, found, misfits)
        var objects: [DocumentID: Model] = [:]
        for (found, object) in zip(found, decoded) { objects[found.id] = object }
        return hidden.withLock { hidden in
            guard objects.count < found.count || !hidden.isEmpty else {
                return DDPListChange(batch) { objects[$0.id] }
            }
            let shown = batch.hiding(&hidden) { objects[$0] == nil }
            guard !shown.steps.isEmpty || shown.isInitial else { return nil }
            return DDPListChange(shown) { objects[$0.id] }
        }
    }
}

/// The changes of a live query's result as objects, in order, from `DDPModels.changes`. See
/// `DDPLiveChanges` for slow iterations.
public struct DDPModelLiveChanges<Model: DDPModel>: AsyncSequence, Sendable {
    public typealias Element = DDPListChange<Model>
    public typealias Failure = RealtimeError

    let query: LiveChangesQuery
    let reader: ModelReader<Model>

    public struct AsyncIterator: AsyncIteratorProtocol {
        let query: LiveChangesQuery
        let reader: ModelReader<Model>

        /// - Returns: nil when the client is closed, or the task is cancelled.
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(RealtimeError) -> DDPListChange<Model>? {
            while let batch = try await query.next() {
                if let change = reader.read(batch) { return change }
            }
            return nil
        }

        public mutating func next() async throws(RealtimeError) -> DDPListChange<Model>? {
            try await next(isolation: #isolation)
        }
    }

    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(query: query, reader: reader)
    }
}

/// An observation, from `DDPModels.observeObjects`. It ends with the last reference to it.
public final class DDPModelObservation: Sendable {
    private let objects: DDPObjects
    private let number: UInt64
    private let gate: CallGate

    init(_ objects: DDPObjects, _ number: UInt64, _ gate: CallGate) {
        self.objects = objects
        self.number = number
        self.gate = gate
    }

    deinit { stop() }

    /// Ends the observation. Called where its handler runs, that is not called any more.
    public func stop() {
        gate.close()
        objects.stopObserving(number)
    }
}
