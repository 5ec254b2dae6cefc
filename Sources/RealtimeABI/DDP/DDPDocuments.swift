public import CShims
import Documents
import Engine
import Session
import Wire

// Chapter: ddp documents. The local documents, queries, and live queries. A selector and its
// options are EJSON objects: `{"done":false}` and `{"sort":{"text":1},"limit":10}`. Options are
// `sort`, `skip`, `limit` and `fields`, or `projection`, which is the same. Other options are
// refused. A selector may also be an id. NULL selects all documents, and NULL options mean none.

/// Receives a document, inside the call that reads it. Since 0.1.
public typealias rt_ddp_document_fn =
    @convention(c) (
        _ document: UnsafePointer<rt_ddp_document>?, _ user: UnsafeMutableRawPointer?
    ) -> Void

/// Receives the changes of a live query's result by positions. Since 0.1.
public typealias rt_ddp_index_changes_fn =
    @convention(c) (
        _ changes: UnsafePointer<rt_ddp_index_changes>?, _ user: UnsafeMutableRawPointer?
    ) -> Void

/// Declares a collection: `rt_ddp_insert`, `rt_ddp_update` and `rt_ddp_remove` then change the
/// local documents before the server has answered. Any thread. Since 0.1.
/// - Parameter ids: how the ids of its new documents are drawn, an `rt_ddp_ids`.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT; RT_ERROR_INVALID_UTF8; RT_ERROR_FORKED;
///   RT_ERROR_CLOSED on a freed loop.
@_cdecl("rt_ddp_declare")
public func rt_ddp_declare(
    _ ddp: rt_ddp?, _ collection: UnsafePointer<CChar>?, _ ids: rt_ddp_ids
) -> rt_status {
    ddpCall(ddp) { (client) throws(RealtimeError) in
        let kind: RT_DDP_IDS = try named(ids, "ids", "0 or 1")
        try client.declare(
            text(collection, "collection"), ids: kind == .STRINGS ? .strings : .objectIDs)
    }
}

/// Makes a collection a stream: its documents are events, as Rocket.Chat's servers send them. `fn`
/// receives each message about them at once, as the server has sent it: its kind, its fields and
/// the fields that it clears. Nothing is merged or kept, so that the collection has no documents,
/// and nothing is held back after a reconnect. Messages that were received before are not affected:
/// call this before the subscription. Any thread. Since 0.1.
/// - Parameter fn: called on the loop's thread. The field `last` is set. NULL makes the collection
///   an ordinary one again.
/// - Returns: as `rt_ddp_declare`.
@_cdecl("rt_ddp_set_stream")
public func rt_ddp_set_stream(
    _ ddp: rt_ddp?, _ collection: UnsafePointer<CChar>?, _ fn: rt_ddp_change_fn?,
    _ user: UnsafeMutableRawPointer?, _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return ddpCall(ddp) { (client) throws(RealtimeError) in
        let collection = try text(collection, "collection")
        guard let function = box.function else { return try client.setStream(collection, nil) }
        try client.setStream(collection) { event in
            DDPChangeView(isLast: true, collection: collection)
                .show(event, to: function, box.user)
        }
    }
}

/// Calls `fn` with the document that has this id, inside this call. Any thread. Since 0.1.
/// - Parameter id: as EJSON text: a string in quotes, or an ObjectID.
/// - Returns: RT_OK; RT_ERROR_NOT_FOUND; RT_ERROR_INVALID_ARGUMENT, also for a value that cannot be
///   an id; RT_ERROR_INVALID_UTF8; RT_ERROR_PROTOCOL for what is not an EJSON text;
///   RT_ERROR_FORKED.
@_cdecl("rt_ddp_get_document")
public func rt_ddp_get_document(
    _ ddp: rt_ddp?, _ collection: UnsafePointer<CChar>?, _ id: UnsafePointer<CChar>?,
    _ fn: rt_ddp_document_fn?, _ user: UnsafeMutableRawPointer?
) -> rt_status {
    ddpCall(ddp) { (client) throws(RealtimeError) in
        let fn = try required(fn, "fn")
        let collection = try text(collection, "collection")
        let value = try ejson(id, "id")
        let id = try documentID(value, "id")
        guard let fields = client.document(DocumentKey(collection: collection, id: id)) else {
            var shown = value.text
            if case .string(let text) = value { shown = text.quoted() }
            throw RealtimeError(
                .notFound, "\(collection.quoted()) has no document with the id \(shown)")
        }
        show(id, fields, to: fn, user)
    }
}

/// Counts the documents of a collection. Any thread. Since 0.1.
/// - Parameter out: receives their number.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT; RT_ERROR_INVALID_UTF8; RT_ERROR_FORKED.
@_cdecl("rt_ddp_count")
public func rt_ddp_count(
    _ ddp: rt_ddp?, _ collection: UnsafePointer<CChar>?, _ out: UnsafeMutablePointer<UInt64>?
) -> rt_status {
    ddpCall(ddp) { (client) throws(RealtimeError) in
        let out = try required(out, "out")
        out.pointee = UInt64(client.count(of: try text(collection, "collection")))
    }
}

/// Calls `fn` with each document that a query finds, in its order, inside this call. Inside a stub,
/// with the documents as the stub has changed them. Any thread. Since 0.1.
/// - Parameter selector: see the beginning of this chapter. NULL for all documents.
/// - Parameter options: NULL for none.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT, also for a query with a fault, or if regular
///   expressions need more than 1,000,000,000 steps; RT_ERROR_INVALID_UTF8; RT_ERROR_PROTOCOL for
///   what is not an EJSON text; RT_ERROR_FORKED.
@_cdecl("rt_ddp_find")
public func rt_ddp_find(
    _ ddp: rt_ddp?, _ collection: UnsafePointer<CChar>?, _ selector: UnsafePointer<CChar>?,
    _ options: UnsafePointer<CChar>?, _ fn: rt_ddp_document_fn?, _ user: UnsafeMutableRawPointer?
) -> rt_status {
    ddpCall(ddp) { (client) throws(RealtimeError) in
        let fn = try required(fn, "fn")
        let query = try ddpQuery(selector, options)
        for found in try client.find(query, in: try text(collection, "collection")) {
            show(found.id, found.fields, includesID: query.includesID, to: fn, user)
        }
    }
}

/// Reports the result of a query, and then each change of it, document by document: applied one
/// after the other, the changes turn the old result into the new one. A query can end by itself,
/// see `rt_ddp_on_query_end`. Any thread. Since 0.1.
/// - Parameter selector: and the following, as in `rt_ddp_find`.
/// - Parameter fn: called on the loop's thread, never inside this call. First it receives the
///   present result as documents that are added, with the field `initial`.
/// - Parameter out: receives the query's number for `rt_ddp_stop_observing`.
/// - Returns: as `rt_ddp_find`, and RT_ERROR_CLOSED on a freed loop.
@_cdecl("rt_ddp_observe")
public func rt_ddp_observe(
    _ ddp: rt_ddp?, _ collection: UnsafePointer<CChar>?, _ selector: UnsafePointer<CChar>?,
    _ options: UnsafePointer<CChar>?, _ fn: rt_ddp_change_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?, _ out: UnsafeMutablePointer<UInt64>?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return ddpCall(ddp) { (client) throws(RealtimeError) in
        let function = try required(box.function, "fn")
        let out = try required(out, "out")
        let collection = try text(collection, "collection")
        let query = try ddpQuery(selector, options)
        let id = try client.observeInPieces(query, in: collection) {
            change, isInitial, isLast, isWanted in
            let steps = change.changes
            for (index, step) in steps.enumerated() {
                DDPChangeView(
                    query: UInt64(change.query.number), isInitial: isInitial,
                    isLast: isLast && index == steps.count - 1, collection: collection
                ).show(step, to: function, box.user)
                guard isWanted() else { return }
            }
        }
        out.pointee = UInt64(id.number)
    }
}

/// Reports the result of a query, and then its changes, by positions. Changes that come together
/// are reported as one. The documents are read with `rt_ddp_find`. Any thread. Since 0.1.
/// - Parameter selector: and the following, as in `rt_ddp_find`.
/// - Parameter fn: called on the loop's thread, never inside this call. First it receives the
///   present result as positions that are inserted, with the field `initial`.
/// - Parameter out: receives the query's number for `rt_ddp_stop_observing`.
/// - Returns: as `rt_ddp_observe`.
@_cdecl("rt_ddp_observe_indexes")
public func rt_ddp_observe_indexes(
    _ ddp: rt_ddp?, _ collection: UnsafePointer<CChar>?, _ selector: UnsafePointer<CChar>?,
    _ options: UnsafePointer<CChar>?, _ fn: rt_ddp_index_changes_fn?,
    _ user: UnsafeMutableRawPointer?, _ destroy: rt_destroy_fn?,
    _ out: UnsafeMutablePointer<UInt64>?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return ddpCall(ddp) { (client) throws(RealtimeError) in
        let function = try required(box.function, "fn")
        let out = try required(out, "out")
        let collection = try text(collection, "collection")
        let query = try ddpQuery(selector, options)
        let id = try client.observeIndexes(query, in: collection) { query, changes, isInitial in
            let number = UInt64(query.number)
            show(changes, of: number, isInitial: isInitial, to: function, box.user)
        }
        out.pointee = UInt64(id.number)
    }
}

/// Ends a live query. On the loop's thread, its callback is not called any more. A number that is
/// not a query's has no effect. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for a NULL handle; RT_ERROR_FORKED.
@_cdecl("rt_ddp_stop_observing")
public func rt_ddp_stop_observing(_ ddp: rt_ddp?, _ query: UInt64) -> rt_status {
    ddpCall(ddp) { $0.stopObserving(LiveQueryID(number: Int(clamping: query))) }
}

/// Calls `fn` with the document of the user who is logged in, inside this call. It is one of the
/// collection `users`, and stays the same while the client connects again. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_NOT_FOUND if nobody is logged in, or the server has not sent the
///   document; RT_ERROR_INVALID_ARGUMENT for NULL; RT_ERROR_FORKED.
@_cdecl("rt_ddp_get_user")
public func rt_ddp_get_user(
    _ ddp: rt_ddp?, _ fn: rt_ddp_document_fn?, _ user: UnsafeMutableRawPointer?
) -> rt_status {
    ddpCall(ddp) { (client) throws(RealtimeError) in
        let fn = try required(fn, "fn")
        guard let found = client.userDocument else {
            let isKnown = client.userID != nil
            throw RealtimeError(
                .notFound,
                isKnown ? "the server has not sent the user's document" : "nobody is logged in")
        }
        show(found.id, found.fields, to: fn, user)
    }
}
