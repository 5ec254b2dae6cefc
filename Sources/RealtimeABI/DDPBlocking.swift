public import CShims
import Engine
import Session
import Wire

// Chapter: blocking ddp. Calls that wait, for programs without an event loop. Another thread must
// drive the client's loop; the library's own loop (NULL) has such a thread. Callbacks are called as
// usual, on that thread. The functions do everything at once that those without `_and_wait` do, and
// then wait; without a connection they wait for one. In a callback of the loop, and in a stub, they
// do nothing and return RT_ERROR_REENTRANT.
//
// `timeout_ms` is how long to wait: 0 does not wait, -1 waits without limit. After RT_ERROR_TIMEOUT
// a call stays outstanding, and may still run on the server; its outcome is dropped.
// RT_ERROR_CLOSED means that the client or its loop was freed.
//
// `outcome` receives the outcome with RT_OK, and with RT_ERROR_METHOD, which means that the call
// has failed: its field `error` says why, with the server's error as EJSON text. Free it with
// `rt_ddp_outcome_free`. It is unchanged with every other status, and may be NULL.

/// Connects as `rt_ddp_start` does, and waits until the server has confirmed the connection. An
/// attempt that is being made continues. Any thread. Since 0.1.
/// - Parameter timeout_ms: -1 waits as long as the client tries.
/// - Returns: RT_OK, also if it is connected already; RT_ERROR_TIMEOUT if it is not connected in
///   time, while it keeps trying: the message names the last failure; RT_ERROR_CLOSED if it was
///   disconnected or freed; RT_ERROR_REENTRANT; RT_ERROR_STORE and RT_ERROR_INVALID_ARGUMENT as
///   `rt_ddp_start`; RT_ERROR_FORKED; another error if the client has failed for good.
@_cdecl("rt_ddp_connect")
public func rt_ddp_connect(_ ddp: rt_ddp?, _ timeout_ms: Int64) -> rt_status {
    border { () throws(RealtimeError) in
        try DDPConnection.borrow(ddp).connect(timeout: waitLimit(timeout_ms))
    }
}

/// Calls a method as `rt_ddp_call` does, and waits until it is completed. Any thread. Since 0.1.
/// - Parameter options: as in `rt_ddp_call`, without `stages`.
/// - Parameter outcome: see the beginning of this chapter. A stub's error is one, too, if the
///   options say so.
/// - Returns: RT_OK; RT_ERROR_METHOD; RT_ERROR_TIMEOUT; RT_ERROR_CLOSED; RT_ERROR_REENTRANT;
///   RT_ERROR_INVALID_ARGUMENT; RT_ERROR_INVALID_UTF8; RT_ERROR_PROTOCOL for what is not an EJSON
///   text; RT_ERROR_FORKED.
@_cdecl("rt_ddp_call_and_wait")
public func rt_ddp_call_and_wait(
    _ ddp: rt_ddp?, _ method: UnsafePointer<CChar>?, _ params: UnsafePointer<CChar>?,
    _ options: UnsafePointer<rt_ddp_call_options>?, _ timeout_ms: Int64,
    _ outcome: UnsafeMutablePointer<UnsafeMutablePointer<rt_ddp_outcome>?>?
) -> rt_status {
    ddpCallMethod(ddp, method, params, options, .wait(timeout_ms, outcome))
}

/// Inserts a document as `rt_ddp_insert` does, and waits until that is completed. The value is the
/// document's id. Any thread. Since 0.1.
/// - Returns: as `rt_ddp_call_and_wait`.
@_cdecl("rt_ddp_insert_and_wait")
public func rt_ddp_insert_and_wait(
    _ ddp: rt_ddp?, _ collection: UnsafePointer<CChar>?, _ document: UnsafePointer<CChar>?,
    _ options: UnsafePointer<rt_ddp_call_options>?, _ timeout_ms: Int64,
    _ outcome: UnsafeMutablePointer<UnsafeMutablePointer<rt_ddp_outcome>?>?
) -> rt_status {
    ddpInsert(ddp, collection, document, options, .wait(timeout_ms, outcome))
}

/// Changes a document as `rt_ddp_update` does, and waits until that is completed. Any thread. Since
/// 0.1.
/// - Returns: as `rt_ddp_call_and_wait`.
@_cdecl("rt_ddp_update_and_wait")
public func rt_ddp_update_and_wait(
    _ ddp: rt_ddp?, _ collection: UnsafePointer<CChar>?, _ id: UnsafePointer<CChar>?,
    _ modifier: UnsafePointer<CChar>?, _ options: UnsafePointer<rt_ddp_call_options>?,
    _ timeout_ms: Int64, _ outcome: UnsafeMutablePointer<UnsafeMutablePointer<rt_ddp_outcome>?>?
) -> rt_status {
    ddpUpdate(ddp, collection, id, modifier, options, .wait(timeout_ms, outcome))
}

/// Removes a document as `rt_ddp_remove` does, and waits until that is completed. Any thread. Since
/// 0.1.
/// - Returns: as `rt_ddp_call_and_wait`.
@_cdecl("rt_ddp_remove_and_wait")
public func rt_ddp_remove_and_wait(
    _ ddp: rt_ddp?, _ collection: UnsafePointer<CChar>?, _ id: UnsafePointer<CChar>?,
    _ options: UnsafePointer<rt_ddp_call_options>?, _ timeout_ms: Int64,
    _ outcome: UnsafeMutablePointer<UnsafeMutablePointer<rt_ddp_outcome>?>?
) -> rt_status {
    ddpRemove(ddp, collection, id, options, .wait(timeout_ms, outcome))
}

/// Subscribes as `rt_ddp_subscribe` does, and waits until the initial documents are there. Any
/// thread. Since 0.1.
/// - Parameter keep_ms: as in `rt_ddp_subscribe`.
/// - Parameter out: receives the subscription's number, only with RT_OK. A subscription that is not
///   ready in time is released, as by `rt_ddp_release_subscription`.
/// - Parameter outcome: see the beginning of this chapter. The value is null. The error is the one
///   with which the server has ended the subscription.
/// - Returns: as `rt_ddp_call_and_wait`.
@_cdecl("rt_ddp_subscribe_and_wait")
public func rt_ddp_subscribe_and_wait(
    _ ddp: rt_ddp?, _ name: UnsafePointer<CChar>?, _ params: UnsafePointer<CChar>?,
    _ keep_ms: Int64, _ timeout_ms: Int64, _ out: UnsafeMutablePointer<UInt64>?,
    _ outcome: UnsafeMutablePointer<UnsafeMutablePointer<rt_ddp_outcome>?>?
) -> rt_status {
    ddpSubscribed(ddp, outcome) { (client) throws(RealtimeError) in
        let out = try required(out, "out")
        let made = try client.subscribe(
            text(name, "name"), ejsonArray(params, "params"), keep: ddpKeep(keep_ms),
            timeout: waitLimit(timeout_ms))
        return made.map { out.pointee = $0 }
    }
}

/// Subscribes to several publications as `rt_ddp_load` does, and waits until they are all ready.
/// Any thread. Since 0.1.
/// - Parameter out: receives the loader's number, only with RT_OK. Otherwise all subscriptions are
///   released.
/// - Parameter outcome: as in `rt_ddp_subscribe_and_wait`, with the first error.
/// - Returns: as `rt_ddp_call_and_wait`.
@_cdecl("rt_ddp_load_and_wait")
public func rt_ddp_load_and_wait(
    _ ddp: rt_ddp?, _ publications: UnsafePointer<CChar>?, _ timeout_ms: Int64,
    _ out: UnsafeMutablePointer<UInt64>?,
    _ outcome: UnsafeMutablePointer<UnsafeMutablePointer<rt_ddp_outcome>?>?
) -> rt_status {
    ddpSubscribed(ddp, outcome) { (client) throws(RealtimeError) in
        let out = try required(out, "out")
        let made = try client.load(
            ddpPublications(publications), timeout: waitLimit(timeout_ms))
        return made.map { out.pointee = $0 }
    }
}

/// Frees the outcome of a call. NULL is accepted. Any thread. Since 0.1.
@_cdecl("rt_ddp_outcome_free")
public func rt_ddp_outcome_free(_ outcome: UnsafeMutablePointer<rt_ddp_outcome>?) {
    Inbox.free(outcome)
}

typealias DDPOutcomeOut = UnsafeMutablePointer<UnsafeMutablePointer<rt_ddp_outcome>?>

/// Makes a call, waits until it is completed, and returns its outcome.
func ddpWait(
    _ ddp: rt_ddp?, _ timeout_ms: Int64, _ outcome: DDPOutcomeOut?,
    _ make: (DDPConnection, DDPCallHandlers) throws(RealtimeError) -> Result<DDPCall, DDPError>
) -> rt_status {
    border { () throws(RealtimeError) in
        let client = try DDPConnection.borrow(ddp)
        let ended = try client.wait(waitLimit(timeout_ms)) { (handlers) throws(RealtimeError) in
            try make(client, handlers)
        }
        try give(ended, to: outcome, "the call has failed")
    }
}

private func ddpSubscribed(
    _ ddp: rt_ddp?, _ outcome: DDPOutcomeOut?,
    _ make: (DDPConnection) throws(RealtimeError) -> Result<Void, DDPError>
) -> rt_status {
    border { () throws(RealtimeError) in
        let made = try make(DDPConnection.borrow(ddp))
        try give(made.map { .null }, to: outcome, "the subscription has failed")
    }
}

private func give(
    _ ended: DDPStubOutcome, to outcome: DDPOutcomeOut?, _ what: String
) throws(RealtimeError) {
    outcome?.pointee = copied(ended)
    if case .failure(let error) = ended { throw error.realtimeError(what) }
}
