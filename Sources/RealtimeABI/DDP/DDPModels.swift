public import CShims
import Documents
import Engine
import Session
import Wire

// Chapter: ddp models. Documents as objects that refer to each other. A schema says which models
// there are and which relationships they have; saving a change of an object then changes all
// documents that must contain it, and an object is reported as changed also when only a reference
// to it has come or gone.
//
//     void on_document(const rt_ddp_document *document, void *user);
//     rt_ddp *ddp;
//     rt_ddp_models *models;
//     rt_ddp_new(NULL, "wss://example.org/websocket", &ddp);
//     rt_ddp_models_new(ddp, "[{\"name\":\"Todo\"}]", &models);
//     rt_ddp_connect(ddp, 10000);
//     rt_ddp_models_find(models, "Todo", NULL, NULL, on_document, NULL);
//     rt_ddp_models_free(models);
//     rt_ddp_free(ddp);
//
// A schema is a JSON array with an object for each model. "name" is the only member that must be
// there: "collection" is its plural otherwise, "ids" is "strings" or "objectIDs", and
// "relationships" are objects with the members "name", "to" (a model), "many" (default false),
// "field" (default: the name with Id, or its singular with Ids), "storage" (whether documents of
// this model contain the references, default true) and "inverse" (the other model's name of the
// relationship). For example:
//
// [{"name":"TodoList","relationships":[{"name":"todos","to":"Todo","many":true,"inverse":"list",
// "storage":false}]},{"name":"Todo","relationships":[{"name":"list","to":"TodoList",
// "inverse":"todos"}]}]
//
// Objects are documents that have the fields of all relationships: those without storage are found
// by searching the other model's collection.

/// The models of a Meteor client, from `rt_ddp_models_new`. It keeps its client's memory alive, so
/// that the two may be freed in any order. Since 0.1.
public typealias rt_ddp_models = OpaquePointer

/// Creates the models of a client, and declares their collections. Any thread. Since 0.1.
/// - Parameter schema: see the beginning of this chapter.
/// - Parameter out: receives the models; free them with `rt_ddp_models_free`.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT, also for models that contradict each other: two of
///   one collection, an inverse that does not exist or has another inverse, a relationship without
///   storage at either end; RT_ERROR_INVALID_UTF8; RT_ERROR_PROTOCOL for what is not a JSON text;
///   RT_ERROR_FORKED; RT_ERROR_CLOSED on a freed loop.
@_cdecl("rt_ddp_models_new")
public func rt_ddp_models_new(
    _ ddp: rt_ddp?, _ schema: UnsafePointer<CChar>?, _ out: UnsafeMutablePointer<rt_ddp_models?>?
) -> rt_status {
    border { () throws(RealtimeError) in
        let client = try DDPConnection.borrow(ddp)
        try client.loop.checkNotForked()
        let out = try required(out, "out")
        let entities = try ModelSchema.entities(ejson(schema, "schema"))
        out.pointee = ModelsHandle.export(
            ModelsHandle(try DDPObjects(client, entities), ModelSchema.value(entities).text))
    }
}

/// Frees the models. Their feeds stay. What `rt_ddp_models_observe` has begun ends: on the loop's
/// thread, its callback is not called any more. NULL is accepted. Any thread. Since 0.1.
@_cdecl("rt_ddp_models_free")
public func rt_ddp_models_free(_ models: rt_ddp_models?) {
    ModelsHandle.release(models) { $0.observations.stopAll() }
}

/// Returns the schema with all collections and fields, also those that the program's has left to
/// the library. Any thread. Since 0.1.
/// - Returns: a JSON text that is valid until the models are freed; NULL for NULL.
@_cdecl("rt_ddp_models_schema")
public func rt_ddp_models_schema(_ models: rt_ddp_models?) -> UnsafePointer<CChar>? {
    models.map { ModelsHandle.exported($0).schema }
}

/// Calls `fn` with each object that a query finds, in its order, inside this call. Any thread.
/// Since 0.1.
/// - Parameter model: its name in the schema.
/// - Parameter selector: and the following, as in `rt_ddp_find`; it names fields of documents.
/// - Returns: as `rt_ddp_find`; RT_ERROR_INVALID_ARGUMENT also for a model that is not there.
@_cdecl("rt_ddp_models_find")
public func rt_ddp_models_find(
    _ models: rt_ddp_models?, _ model: UnsafePointer<CChar>?, _ selector: UnsafePointer<CChar>?,
    _ options: UnsafePointer<CChar>?, _ fn: rt_ddp_document_fn?, _ user: UnsafeMutableRawPointer?
) -> rt_status {
    modelCall(models, model) { (objects, entity) throws(RealtimeError) in
        let fn = try required(fn, "fn")
        let query = try ddpQuery(selector, options)
        for found in try objects.find(query, of: entity) {
            show(found.id, found.fields, includesID: query.includesID, to: fn, user)
        }
    }
}

/// Calls `fn` with the object that has this id, inside this call. Any thread. Since 0.1.
/// - Parameter model: its name in the schema.
/// - Parameter id: as EJSON text: a string in quotes, or an ObjectID.
/// - Returns: as `rt_ddp_get_document`; RT_ERROR_INVALID_ARGUMENT also for a model that is not
///   there.
@_cdecl("rt_ddp_models_get")
public func rt_ddp_models_get(
    _ models: rt_ddp_models?, _ model: UnsafePointer<CChar>?, _ id: UnsafePointer<CChar>?,
    _ fn: rt_ddp_document_fn?, _ user: UnsafeMutableRawPointer?
) -> rt_status {
    modelCall(models, model) { (objects, entity) throws(RealtimeError) in
        let fn = try required(fn, "fn")
        let id = try documentID(ejson(id, "id"), "id")
        guard let found = objects.find(id, of: entity) else {
            throw RealtimeError(
                .notFound, "\(entity.name) \(id.value?.idText ?? "") is not there")
        }
        show(id, found.fields, to: fn, user)
    }
}

/// Saves changes of objects. Here they are made at once, and are one notification; the server gets
/// a call for each document that differs: an insertion, an update of the changed fields only, or a
/// removal. Inside a stub, they are a part of it. Any thread. Since 0.1.
///
/// A changed reference is changed at both ends, as far as they have storage. To add an object to a
/// relationship to one object replaces the old one. Deleting an object removes it from the objects
/// that know it by storage at both ends; other references to it stay, and lead nowhere.
/// - Parameter changes: an EJSON array whose elements are `{"insert":MODEL,"id":ID,"object":{…}}`,
///   `{"update":MODEL,"id":ID,"from":{…},"to":{…}}` or `{"delete":MODEL,"id":ID}`. An update writes
///   what differs between two versions of the object. Without `from`, it sets the fields of `to`
///   and leaves all others.
/// - Parameter options: NULL for the defaults; for each of the calls.
/// - Parameter fn: as in `rt_ddp_call`, for each document that differs. The outcome's `index` says
///   which one it is. It may be called before this returns.
/// - Parameter out_call: as in `rt_ddp_write`.
/// - Parameter out: receives how many documents differ; may be NULL.
/// - Returns: as `rt_ddp_write`; RT_ERROR_NOT_FOUND if an object of `update` is not there;
///   RT_ERROR_INVALID_ARGUMENT also if an object of `insert` is there already, or if only an object
///   that is not there could contain a reference. Then nothing is saved.
@_cdecl("rt_ddp_models_save")
public func rt_ddp_models_save(
    _ models: rt_ddp_models?, _ changes: UnsafePointer<CChar>?,
    _ options: UnsafePointer<rt_ddp_call_options>?, _ fn: rt_ddp_outcome_fn?,
    _ user: UnsafeMutableRawPointer?, _ destroy: rt_destroy_fn?,
    _ out_call: UnsafeMutablePointer<rt_call?>?, _ out: UnsafeMutablePointer<Int>?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return border { () throws(RealtimeError) in
        let objects = try ModelsHandle.borrow(models).objects
        try objects.client.loop.checkNotForked()
        let wishes = try DDPCallWishes(options)
        _ = try required(changes, "changes")
        var saves: [ObjectSave] = []
        for (index, change) in try ejsonArray(changes, "changes").enumerated() {
            saves.append(try objectSave(change, "changes[\(index)]", objects))
        }
        var count = 0
        let pending = PendingCall.wanted(out_call, on: objects.client.loop)
        let end = pending.map { writesEnd($0.answerer) }
        let outcomes = try objects.save(saves, options: wishes.options) {
            defer { count += 1 }
            var handlers = wishes.handlers(box, index: count)
            end?.add(to: &handlers)
            return handlers
        }
        out?.pointee = outcomes.count
        try wishes.report(outcomes, to: box)
        pending?.export(to: out_call)
    }
}

/// Reports which objects change, from now on: also those to which a reference has come or gone in
/// another document, and those whose references lead to objects that have come or gone. Any thread.
/// Since 0.1.
/// - Parameter fn: called on the loop's thread for each object, before live queries are reported.
///   The change has its kind, its collection, its id and `last`; it has no fields.
/// - Parameter out: receives the number for `rt_ddp_models_stop_observing`.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT; RT_ERROR_FORKED; RT_ERROR_CLOSED if the client or
///   its loop was freed.
@_cdecl("rt_ddp_models_observe")
public func rt_ddp_models_observe(
    _ models: rt_ddp_models?, _ fn: rt_ddp_change_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?, _ out: UnsafeMutablePointer<UInt64>?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return border { () throws(RealtimeError) in
        let handle = try ModelsHandle.borrow(models)
        let function = try required(box.function, "fn")
        let out = try required(out, "out")
        out.pointee = try handle.observations.begin { $0?.show(to: function, box.user) }
    }
}

/// Ends what `rt_ddp_models_observe` has begun. On the loop's thread, its callback is not called
/// any more. A number that is not known has no effect. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for a NULL handle; RT_ERROR_FORKED.
@_cdecl("rt_ddp_models_stop_observing")
public func rt_ddp_models_stop_observing(_ models: rt_ddp_models?, _ number: UInt64) -> rt_status {
    border { () throws(RealtimeError) in
        let handle = try ModelsHandle.borrow(models)
        try handle.objects.client.loop.checkNotForked()
        handle.observations.stop(number)
    }
}

/// Begins to follow the objects that a query finds, as `rt_ddp_feed_new` follows documents. An
/// object is reported as changed also if a reference to it, or an object to which it refers, has
/// come or gone. Any thread. Since 0.1.
/// - Parameter model: its name in the schema.
/// - Parameter selector: and the following, as in `rt_ddp_models_find`.
/// - Parameter parts: as in `rt_ddp_feed_new`. The fields that have changed are those of documents.
/// - Parameter out: receives the feed; free it with `rt_ddp_feed_free`.
/// - Returns: as `rt_ddp_feed_new`; RT_ERROR_INVALID_ARGUMENT also for a model that is not there.
@_cdecl("rt_ddp_models_feed_new")
public func rt_ddp_models_feed_new(
    _ models: rt_ddp_models?, _ model: UnsafePointer<CChar>?, _ selector: UnsafePointer<CChar>?,
    _ options: UnsafePointer<CChar>?, _ parts: rt_ddp_feed_parts,
    _ out: UnsafeMutablePointer<rt_ddp_feed?>?
) -> rt_status {
    modelCall(models, model) { (objects, entity) throws(RealtimeError) in
        let out = try required(out, "out")
        let query = try ddpQuery(selector, options)
        out.pointee = FeedHandle.export(
            FeedHandle(
                try DDPFeed(objects, query, of: entity),
                try FeedTexts(parts, includesID: query.includesID)))
    }
}

/// Runs a call on the objects of a model.
private func modelCall(
    _ models: rt_ddp_models?, _ model: UnsafePointer<CChar>?,
    _ body: (DDPObjects, Entity) throws(RealtimeError) -> Void
) -> rt_status {
    border { () throws(RealtimeError) in
        let objects = try ModelsHandle.borrow(models).objects
        try objects.client.loop.checkNotForked()
        try body(objects, objects.map.entity(named: text(model, "model")))
    }
}

/// - Parameter place: of the change in the array, for messages.
private func objectSave(
    _ change: EJSON, _ place: String, _ objects: DDPObjects
) throws(RealtimeError) -> ObjectSave {
    let wrong = RealtimeError(
        .invalidArgument,
        "\(place) has not the members insert, id and object, or update, id, to and perhaps from, "
            + "or delete and id")
    guard case .object(let change) = change, let id = change["id"] else { throw wrong }
    func key(_ verb: String) throws(RealtimeError) -> (DocumentKey, Entity)? {
        guard case .string(let model)? = change[verb] else { return nil }
        let entity = try objects.map.entity(named: model)
        let id = try documentID(id, "id of \(place)")
        return (DocumentKey(collection: entity.collection, id: id), entity)
    }
    func object(_ member: String) throws(RealtimeError) -> EJSONObject {
        guard case .object(let object)? = change[member] else { throw wrong }
        return object.without(["_id"])
    }
    if let (key, entity) = try key("insert"), change.count == 3 {
        return ObjectSave(inserting: key, try object("object"), entity)
    }
    if let (key, entity) = try key("update"), change.count == (change["from"] == nil ? 3 : 4) {
        let new = try object("to")
        guard change["from"] == nil else {
            return ObjectSave(updating: key, from: try object("from"), to: new, entity)
        }
        return ObjectSave(setting: new, of: key, entity)
    }
    if let (key, _) = try key("delete"), change.count == 2 { return ObjectSave(deleting: key) }
    throw wrong
}

extension ObjectChanges {
    /// Calls `function` with a view of each object.
    fileprivate func show(to function: rt_ddp_change_fn, _ user: UnsafeMutableRawPointer?) {
        let all =
            inserted.map { (RT_DDP_CHANGE.ADDED, $0) } + updated.map { (.CHANGED, $0) }
            + deleted.map { (.REMOVED, $0) }
        for (index, (kind, key)) in all.enumerated() {
            DDPChangeView(isLast: index == all.count - 1, collection: key.collection)
                .show(kind, key.id, to: function, user)
        }
    }
}

private final class ModelsHandle: Handle {
    static let name = "models"
    let objects: DDPObjects
    let schema: UnsafePointer<CChar>
    /// What `rt_ddp_models_observe` has begun.
    let observations: DDPObservations
    var owningLoop: Loop? { objects.client.loop }

    init(_ objects: DDPObjects, _ schema: String) {
        self.objects = objects
        observations = DDPObservations(objects)
        let text = ContiguousArray(schema.utf8) + [0]
        let copy = UnsafeMutablePointer<CChar>.allocate(capacity: text.count)
        for (index, byte) in text.enumerated() { copy[index] = CChar(bitPattern: byte) }
        self.schema = UnsafePointer(copy)
    }

    deinit { schema.deallocate() }
}
