internal import Documents
internal import Engine
import Synchronization
public import Wire

/// Which objects have changed together; each is in one list at most. From `DDPModels.objectChanges`
/// and `DDPModels.observeObjects`.
///
/// An object is updated if its document has changed, if a reference to it has come or gone in
/// another document, and if an object to which it refers has come or gone.
public struct DDPObjectChanges: Sendable {
    /// An object of any model.
    public struct Object: Hashable, Sendable {
        let key: DocumentKey

        public var collection: String { key.collection }
        /// A string or an ObjectID.
        public var id: EJSON { key.id.value ?? .null }
    }

    let changes: ObjectChanges

    public var inserted: [Object] { changes.inserted.map { Object(key: $0) } }
    public var updated: [Object] { changes.updated.map { Object(key: $0) } }
    public var deleted: [Object] { changes.deleted.map { Object(key: $0) } }

    /// The ids of the inserted objects of a model.
    public func inserted<Model: DDPModel>(_ type: Model.Type) -> [Model.ID] {
        ids(type, changes.inserted)
    }

    /// The ids of the updated objects of a model.
    public func updated<Model: DDPModel>(_ type: Model.Type) -> [Model.ID] {
        ids(type, changes.updated)
    }

    /// The ids of the deleted objects of a model.
    public func deleted<Model: DDPModel>(_ type: Model.Type) -> [Model.ID] {
        ids(type, changes.deleted)
    }

    private func ids<Model: DDPModel>(_ type: Model.Type, _ keys: [DocumentKey]) -> [Model.ID] {
        let collection = Model.collection
        return keys.filter { $0.collection.utf8.elementsEqual(collection.utf8) }
            .compactMap { $0.id.value.flatMap { Model.ID(ejson: $0) } }
    }
}

/// Changes of objects, in order. An iteration that is slow misses nothing: each element has all
/// objects that have changed since the element before. One task iterates it.
public struct DDPObjectChangeSequence: AsyncSequence, Sendable {
    public typealias Element = DDPObjectChanges

    let queue: ObjectChangeQueue

    public struct AsyncIterator: AsyncIteratorProtocol {
        let queue: ObjectChangeQueue

        /// - Returns: nil when the client is closed, or the task is cancelled.
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async -> DDPObjectChanges? { await queue.next() }

        public mutating func next() async -> DDPObjectChanges? { await queue.next() }
    }

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(queue: queue) }
}

/// Changes of objects that a task has not taken yet. It observes until it is released.
final class ObjectChangeQueue: Sendable {
    private let changes = Changes()
    private let observation: DDPModelObservation

    init(_ objects: DDPObjects) {
        observation = DDPModelObservation(
            objects, objects.observe { [changes] in changes.put($0) }, CallGate())
    }

    func next() async -> DDPObjectChanges? {
        await changes.next().map { DDPObjectChanges(changes: $0) }
    }
}

/// The part of the queue that the hub retains.
private final class Changes: Sendable {
    private let pending = Mutex(PendingChanges<ObjectChanges>())
    private let isOver = Atomic(false)
    private let waiters = TaskWaiters()

    /// - Parameter changes: nil at the end.
    func put(_ changes: ObjectChanges?) {
        if let changes {
            pending.withLock { $0.append(changes) }
        } else {
            isOver.store(true, ordering: .releasing)
        }
        waiters.resumeAll(.success(()))
    }

    func next() async -> ObjectChanges? {
        while !Task.isCancelled {
            // Before the changes are taken, so that the last ones are not missed.
            let isLast = isOver.load(ordering: .acquiring)
            if let changes = pending.withLock({ $0.take() }), !changes.isEmpty {
                return changes
            }
            if isLast { return nil }
            let isWoken: Void? = try? await waiters.wait {
                isOver.load(ordering: .acquiring) || pending.withLock { !$0.isEmpty }
                    ? .success(()) : nil
            }
            guard isWoken != nil else { return nil }
        }
        return nil
    }
}

extension ObjectChanges {
    private static let bytesOfKey = 64

    var storedBytes: Int {
        ObjectChanges.bytesOfKey * (inserted.count + updated.count + deleted.count)
    }
}
