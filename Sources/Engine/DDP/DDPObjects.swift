package import Documents
package import Session
import Synchronization
package import Wire

/// The objects of a client's models: documents, with what others refer to them by. Any thread may
/// use it.
package final class DDPObjects: Sendable {
    package let client: DDPConnection
    package let map: ModelMap
    private let hub: DDPObjectHub
    /// The hub's number at the client.
    private let number: UInt64

    /// Declares the collections, too.
    /// - Parameter ended: called when the client is closed.
    /// - Throws: `.invalidArgument` for entities that contradict each other, see `ModelMap`;
    ///   `.closed`.
    package convenience init(
        _ client: DDPConnection, _ entities: [Entity], ended: @escaping @Sendable () -> Void = {}
    ) throws(RealtimeError) {
        let map = try ModelMap(entities)
        for entity in entities { try client.declare(entity.collection, ids: entity.ids) }
        self.init(client, map, ended)
    }

    private init(
        _ client: DDPConnection, _ map: ModelMap, _ ended: @escaping @Sendable () -> Void
    ) {
        self.map = map
        self.client = client
        let hub = DDPObjectHub(map, client)
        self.hub = hub
        number = client.observeChanges { changes in
            hub.receive(changes)
            if changes == nil { ended() }
        }
    }

    deinit { client.stopObservingChanges(number) }

    // MARK: Reading

    /// The objects that a query finds, with fields for all relationships. Each relationship without
    /// storage costs a search of its destination's collection.
    /// - Throws: `.invalidArgument` for a query that takes too long: see `SearchBudget`.
    package func find(_ query: Query, of entity: Entity) throws(RealtimeError) -> [Found] {
        let documents = client.documents
        return map.complete(
            try documents.find(query, in: entity.collection), entity, in: documents)
    }

    /// The objects with these ids, as far as they are there.
    package func find(_ ids: [DocumentID], of entity: Entity) -> [Found] {
        let documents = client.documents
        let found = ids.compactMap { id in
            documents.document(DocumentKey(collection: entity.collection, id: id))
                .map { Found(id: id, fields: $0) }
        }
        return map.complete(found, entity, in: documents)
    }

    /// The same documents with fields for the relationships without storage.
    package func complete(_ found: [Found], of entity: Entity) -> [Found] {
        guard !found.isEmpty, entity.hasSearched else { return found }
        return map.complete(found, entity, in: client.documents)
    }

    /// The object with an id; nil if it is not there.
    package func find(_ id: DocumentID, of entity: Entity) -> Found? {
        find([id], of: entity).first
    }

    // MARK: Saving

    /// Saves changes of objects, here and at the server, see `ModelSavePlan`. In a stub, they are a
    /// part of it.
    /// - Parameter handlers: makes the handlers of a call.
    /// - Returns: the calls, one for each document that differs, or how those of a stub ended.
    /// - Throws: as `ModelSavePlan.writes`; `.closed`. Then nothing is saved.
    package func save(
        _ saves: [ObjectSave], options: DDPCallOptions,
        handlers: () -> DDPCallHandlers = { .init() }
    ) throws(RealtimeError) -> [Result<DDPCall, DDPError>] {
        try client.write(options: options, handlers: handlers) {
            (store: borrowing DocumentStore) throws(RealtimeError) in
            try ModelSavePlan.writes(saves, map, store)
        }
    }

    // MARK: Observing

    /// Reports which objects change, from now on.
    /// - Parameter observer: may be called before this returns, if the client is closed.
    /// - Returns: the number for `stopObserving`.
    package func observe(_ observer: @escaping DDPObjectObserver) -> UInt64 { hub.add(observer) }

    package func stopObserving(_ number: UInt64) { hub.remove(number) }

    /// Reports which objects of an entity count as updated although their documents have not
    /// changed.
    /// - Returns: the number for `stopObserving`; nil for an entity without relationships.
    package func observeRelated(
        of entity: Entity, _ touched: @escaping @Sendable ([DocumentID]) -> Void
    ) -> UInt64? {
        guard !entity.relationships.isEmpty else { return nil }
        return observe { changes in
            let ids = changes?.related.filter {
                $0.collection.utf8.elementsEqual(entity.collection.utf8)
            }
            guard let ids, !ids.isEmpty else { return }
            touched(ids.map { $0.id })
        }
    }
}

/// Observations that end together. Any thread.
package final class DDPObservations: Sendable {
    private let objects: DDPObjects
    private let numbers = Mutex<[UInt64]>([])

    package init(_ objects: DDPObjects) { self.objects = objects }

    /// - Returns: the number for `stop`.
    /// - Throws: `.closed`.
    package func begin(
        _ observer: @escaping DDPObjectObserver
    ) throws(RealtimeError) -> UInt64 {
        try objects.client.checkOpen()
        let number = objects.observe(observer)
        numbers.withLock { $0.append(number) }
        return number
    }

    /// - Parameter number: one that is not known has no effect.
    package func stop(_ number: UInt64) {
        let isKnown = numbers.withLock { numbers in
            let index = numbers.firstIndex(of: number)
            if let index { numbers.remove(at: index) }
            return index != nil
        }
        if isKnown { objects.stopObserving(number) }
    }

    package func stopAll() {
        let all = numbers.withLock { exchange(&$0, with: []) }
        for number in all { objects.stopObserving(number) }
    }
}
