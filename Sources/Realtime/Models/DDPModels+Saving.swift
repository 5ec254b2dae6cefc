internal import Documents
internal import Engine
internal import Session
internal import Wire

// Saving.
extension DDPModels {
    /// Saves a set of changes, here and at the server. Here they are made at once, and are one
    /// notification; the server gets a call for each document that differs: an insertion, an update
    /// of the changed fields only, or a removal.
    ///
    /// A changed relationship is changed at both ends, as far as they have storage. Relationships
    /// without references have no field.
    ///
    /// In a stub, the changes are a part of it, and nothing is sent.
    /// - Parameters:
    ///   - options: how each of the calls is made.
    ///   - body: collects the changes, which are made when it returns. If it throws, none is.
    /// - Returns: the calls: one for each document that differs.
    /// - Throws: what `body` throws. `RealtimeError`: `.notFound` if an updated object is not
    ///   there; `.invalidArgument` if an inserted one is, or if only an object that is not there
    ///   could contain a reference; `.closed`. Then nothing is saved.
    @discardableResult
    public func save(
        options: DDPCallOptions = DDPCallOptions(), _ body: (inout DDPModelChanges) throws -> Void
    ) throws -> DDPWrites {
        var changes = DDPModelChanges(models: self)
        try body(&changes)
        let saves = changes.saves
        return try DDPWrites(options) { (options, handlers) throws(RealtimeError) in
            try objects.save(saves, options: options, handlers: handlers)
        }
    }

    /// Saves a new object; see `save`.
    @discardableResult
    public func insert(_ object: some DDPModel) throws -> DDPWrites {
        try save { try $0.insert(object) }
    }

    /// Saves a change of an object; see `DDPModelChanges.update`.
    @discardableResult
    public func update<Model: DDPModel>(
        _ object: Model, _ change: (inout Model) throws -> Void
    ) throws -> DDPWrites {
        try save { try $0.update(object, change) }
    }

    /// Deletes an object; see `DDPModelChanges.delete`.
    @discardableResult
    public func delete(_ object: some DDPModel) throws -> DDPWrites {
        try save { try $0.delete(object) }
    }
}

/// Changes of objects that are saved together, in `DDPModels.save`. Their order does not matter,
/// except that of two changes of the same object.
public struct DDPModelChanges {
    private let models: DDPModels
    private(set) var saves: [ObjectSave] = []

    init(models: DDPModels) { self.models = models }

    /// Inserts an object with its id.
    public mutating func insert<Model: DDPModel>(_ object: Model) throws {
        let type = try models.type(of: Model.self)
        saves.append(ObjectSave(inserting: try key(object), try type.encode(object), type.entity))
    }

    /// Changes an object: only what `change` changes is written, so that the object may be older
    /// than its document.
    /// - Parameter object: as it was read.
    public mutating func update<Model: DDPModel>(
        _ object: Model, _ change: (inout Model) throws -> Void
    ) throws {
        var changed = object
        try change(&changed)
        try update(from: object, to: changed)
    }

    /// Changes an object by the difference of two versions of it.
    public mutating func update<Model: DDPModel>(from old: Model, to new: Model) throws {
        guard old.id == new.id else {
            throw RealtimeError(.invalidArgument, "the id of an object cannot be changed")
        }
        let type = try models.type(of: Model.self)
        let save = ObjectSave(
            updating: try key(old), from: try type.encode(old), to: try type.encode(new),
            type.entity)
        saves.append(save)
    }

    /// Deletes an object. One that is not there is ignored. Objects that know it by two-way storage
    /// forget it; other references to it stay, and lead nowhere.
    public mutating func delete(_ object: some DDPModel) throws {
        saves.append(ObjectSave(deleting: try key(object)))
    }

    private func key<Model: DDPModel>(_ object: Model) throws(RealtimeError) -> DocumentKey {
        let type = try models.type(of: Model.self)
        guard let id = DocumentID(object.ejsonID) else {
            throw RealtimeError(.invalidArgument, "\(object.ejsonID.text) cannot be an id")
        }
        return DocumentKey(collection: type.entity.collection, id: id)
    }
}
