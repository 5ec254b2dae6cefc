internal import Documents
internal import Engine
public import Wire

/// Reads, saves and observes the documents of a client as values of the program's own types.
///
///     let models = try DDPModels(client, TodoList.self, Todo.self)
///     for list in try models.find(TodoList.self, options: ["sort": ["name": 1]]) {
///         let todos = try models.get(list.todos)
///         print(list.name, todos.count)
///     }
///     try models.save { changes in
///         try changes.update(todo) { $0.done = true }
///         try changes.delete(old)
///     }
///
/// Selectors and options name fields of documents, not properties. Models are values: a change of
/// one reaches the documents when it is saved. Where several objects are read or observed,
/// documents that a model cannot be decoded from are left out, and reported (`onMisfit`). All
/// members may be used on any thread.
public final class DDPModels: Sendable {
    public let client: DDPClient
    let objects: DDPObjects
    private let types: [ObjectIdentifier: ModelType]
    let misfits: Misfits

    /// - Parameter models: those to which their relationships lead belong to them, too.
    /// - Throws: `RealtimeError` `.invalidArgument` for a model that is a class, cannot be encoded,
    ///   or has two properties with the same field, and for models that contradict each other: two
    ///   of one collection, an inverse that does not exist or has another inverse, or a
    ///   relationship without storage at either end; `.closed`.
    public convenience init(
        _ client: DDPClient, _ models: any DDPModel.Type...
    ) throws(RealtimeError) {
        try self.init(client, models)
    }

    /// Like the other initializer, with an array.
    public init(_ client: DDPClient, _ models: [any DDPModel.Type]) throws(RealtimeError) {
        var types: [ObjectIdentifier: ModelType] = [:]
        var entities: [Entity] = []
        var waiting = models
        while let model = waiting.popLast() {
            guard types[ObjectIdentifier(model)] == nil else { continue }
            let type = try ModelType(model)
            entities.append(type.entity)
            types[ObjectIdentifier(model)] = type
            waiting += type.destinations
        }
        let misfits = Misfits(client.dispatcher)
        objects = try DDPObjects(client.engine, entities) { misfits.setHandler(nil) }
        self.client = client
        self.types = types
        self.misfits = misfits
    }

    /// - Throws: `.invalidArgument` for a model that was not named when this was created.
    func type(of model: (some DDPModel).Type) throws(RealtimeError) -> ModelType {
        guard let type = types[ObjectIdentifier(model)] else {
            throw RealtimeError(
                .invalidArgument,
                "\(model) is not one of the models: name it when you create DDPModels")
        }
        return type
    }

    /// Called for each document that is left out because its model cannot be decoded from it, once
    /// until the document changes. The log has a warning, too.
    /// - Parameter handler: receives the `DecodingError`, whose coding path begins with the
    ///   collection and the id; nil for none. It runs as the client's handlers do.
    public func onMisfit(
        @_inheritActorContext _ handler: (@Sendable @isolated(any) (any Error) -> Void)?
    ) {
        misfits.setHandler(Handler(handler))
    }

    // MARK: Reading

    /// The objects that a query finds, in its order. A relationship without storage costs a search
    /// of its destination's collection, once for all of them.
    /// - Throws: `RealtimeError` `.invalidArgument` for a query with a fault, and for a model that
    ///   was not named.
    public func find<Model: DDPModel>(
        _ model: Model.Type, _ selector: EJSON = [:], options: EJSONObject = [:]
    ) throws(RealtimeError) -> [Model] {
        let type = try type(of: model)
        let query = try Query(selector: selector, options: .object(options))
        return type.decode(model, try objects.find(query, of: type.entity), misfits)
            .compactMap { $0 }
    }

    /// The object with an id; nil if it is not there.
    /// - Throws: `DecodingError` if the model cannot be decoded from its document.
    public func find<Model: DDPModel>(_ model: Model.Type, id: Model.ID) throws -> Model? {
        try get(DDPReference<Model>(id: id))
    }

    /// How many objects a query finds.
    public func count<Model: DDPModel>(
        _ model: Model.Type, _ selector: EJSON = [:]
    ) throws(RealtimeError) -> Int {
        let type = try type(of: model)
        let query = try Query(selector: selector)
        return try client.engine.find(query, in: type.entity.collection).count
    }

    /// The object to which a relationship leads; nil for no reference, and if the object is not
    /// there.
    /// - Throws: `DecodingError` if the model cannot be decoded from its document.
    public func get<Model: DDPModel>(_ reference: DDPReference<Model>?) throws -> Model? {
        let type = try type(of: Model.self)
        guard let id = reference.flatMap({ DocumentID($0.ejson) }),
            let found = objects.find(id, of: type.entity)
        else { return nil }
        return try type.decode(Model.self, found)
    }

    /// The objects to which a relationship leads, in its order: only those that are there, and
    /// whose documents fit the model.
    public func get<Model: DDPModel>(
        _ references: [DDPReference<Model>]
    ) throws(RealtimeError) -> [Model] {
        let type = try type(of: Model.self)
        let found = objects.find(references.compactMap { DocumentID($0.ejson) }, of: type.entity)
        return type.decode(Model.self, found, misfits).compactMap { $0 }
    }
}
