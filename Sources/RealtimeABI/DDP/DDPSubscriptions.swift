public import CShims
import Engine
import Session
import Wire

// Chapter: ddp subscriptions. Which documents the server sends.

/// Receives what happened to a subscription. Since 0.1.
public typealias rt_ddp_subscription_fn =
    @convention(c) (
        _ event: UnsafePointer<rt_ddp_subscription_event>?, _ user: UnsafeMutableRawPointer?
    ) -> Void

/// The subscriptions of a loader are all ready: `error` is NULL; or have failed, with this first
/// error. Since 0.1.
public typealias rt_ddp_loaded_fn =
    @convention(c) (_ error: UnsafePointer<rt_ddp_error>?, _ user: UnsafeMutableRawPointer?) -> Void

/// Subscribes to a publication, now or as soon as the connection is established, and again after
/// each loss. Equal subscriptions are shared: the server is asked once. Any thread. Since 0.1.
/// - Parameter params: an EJSON array; NULL for none.
/// - Parameter fn: called on the loop's thread, never inside this call. NULL for nobody.
/// - Parameter keep_ms: how long it is kept after its last use, so that using it again needs no
///   request; -1 for `rt_ddp_set_unused_subscription_time_ms`.
/// - Parameter out: receives the subscription's number; give it up with
///   `rt_ddp_release_subscription` or `rt_ddp_stop_subscription`.
/// - Parameter out_call: receives a call that is answered when the subscription is ready, or when
///   the server has ended it, for `rt_call_wait`; free it with `rt_call_free`. NULL if no thread
///   waits.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT; RT_ERROR_INVALID_UTF8; RT_ERROR_PROTOCOL for what
///   is not an EJSON text; RT_ERROR_FORKED; RT_ERROR_CLOSED on a freed loop.
@_cdecl("rt_ddp_subscribe")
public func rt_ddp_subscribe(
    _ ddp: rt_ddp?, _ name: UnsafePointer<CChar>?, _ params: UnsafePointer<CChar>?,
    _ keep_ms: Int64, _ fn: rt_ddp_subscription_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?, _ out: UnsafeMutablePointer<UInt64>?,
    _ out_call: UnsafeMutablePointer<rt_call?>?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return ddpCall(ddp) { (client) throws(RealtimeError) in
        let out = try required(out, "out")
        let pending = PendingCall.wanted(out_call, on: client.loop)
        out.pointee = try client.subscribe(
            text(name, "name"), ejsonArray(params, "params"), keep: ddpKeep(keep_ms),
            subscriptionHandlers(box, pending?.answerer))
        pending?.export(to: out_call)
    }
}

/// Returns whether the initial documents of a subscription are there. Any thread. Since 0.1.
/// - Returns: 1 or 0, also 0 for a number that is not a subscription's; RT_ERROR_INVALID_ARGUMENT
///   for NULL; RT_ERROR_FORKED.
@_cdecl("rt_ddp_is_ready")
public func rt_ddp_is_ready(_ ddp: rt_ddp?, _ subscription: UInt64) -> Int32 {
    ddpValue(ddp) { $0.isReady(subscription) ? 1 : 0 }
}

/// Gives a subscription up. After its last use it is kept for a while. Its callback is not called
/// any more, except when it ends with `rt_ddp_set_report_own_stops`. A number that is not a
/// subscription's has no effect. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for a NULL handle; RT_ERROR_FORKED; RT_ERROR_CLOSED
///   on a freed loop.
@_cdecl("rt_ddp_release_subscription")
public func rt_ddp_release_subscription(_ ddp: rt_ddp?, _ subscription: UInt64) -> rt_status {
    ddpCall(ddp) { (client) throws(RealtimeError) in try client.release(subscription) }
}

/// Gives a subscription up, as `rt_ddp_release_subscription`. If nobody else uses it, it ends at
/// once. Any thread. Since 0.1.
/// - Returns: as `rt_ddp_release_subscription`.
@_cdecl("rt_ddp_stop_subscription")
public func rt_ddp_stop_subscription(_ ddp: rt_ddp?, _ subscription: UInt64) -> rt_status {
    ddpCall(ddp) { (client) throws(RealtimeError) in try client.stop(subscription) }
}

/// Subscribes to several publications, and waits for them together. Any thread. Since 0.1.
/// - Parameter publications: an EJSON array with an array for each publication: its name, and then
///   its parameters, such as `[["lists"],["tasks","abc"]]`. NULL or empty for none: the callback
///   is then called in the loop's next turn.
/// - Parameter fn: called once on the loop's thread, never inside this call.
/// - Parameter out: receives the loader's number for `rt_ddp_close_loader`.
/// - Parameter out_call: as in `rt_ddp_subscribe`, for all of them; with the first error.
/// - Returns: as `rt_ddp_subscribe`.
@_cdecl("rt_ddp_load")
public func rt_ddp_load(
    _ ddp: rt_ddp?, _ publications: UnsafePointer<CChar>?, _ fn: rt_ddp_loaded_fn?,
    _ user: UnsafeMutableRawPointer?, _ destroy: rt_destroy_fn?,
    _ out: UnsafeMutablePointer<UInt64>?, _ out_call: UnsafeMutablePointer<rt_call?>?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return ddpCall(ddp) { (client) throws(RealtimeError) in
        let out = try required(out, "out")
        let pending = PendingCall.wanted(out_call, on: client.loop)
        out.pointee = try client.load(
            ddpPublications(publications), loadHandler(box, pending?.answerer))
        pending?.export(to: out_call)
    }
}

/// Closes a loader: its callback is not called any more, and its subscriptions are released
/// (`rt_ddp_release_subscription`). A number that is not a loader's has no effect. Any thread.
/// Since 0.1.
/// - Returns: as `rt_ddp_release_subscription`.
@_cdecl("rt_ddp_close_loader")
public func rt_ddp_close_loader(_ ddp: rt_ddp?, _ loader: UInt64) -> rt_status {
    ddpCall(ddp) { (client) throws(RealtimeError) in try client.closeLoader(loader) }
}

// Of their own, so that handlers alone own the answerer.

private func subscriptionHandlers(
    _ box: CallbackBox<rt_ddp_subscription_fn>, _ answerer: CallAnswerer?
) -> DDPSubscriptionHandlers {
    guard box.function != nil || answerer != nil else { return DDPSubscriptionHandlers() }
    return DDPSubscriptionHandlers(
        ready: {
            if let function = box.function { show(.READY, nil, to: function, box.user) }
            answerer?.set(CallAnswer(.success(.null)))
        },
        stopped: { error in
            if let function = box.function { show(.STOPPED, error, to: function, box.user) }
            let end = DDPError(.server, "stopped", reason: "the server has ended it")
            answerer?.set(CallAnswer(.failure(error ?? end)))
        })
}

private func loadHandler(
    _ box: CallbackBox<rt_ddp_loaded_fn>, _ answerer: CallAnswerer?
) -> DDPLoadHandler {
    { error in
        if let function = box.function { show(error, to: function, box.user) }
        answerer?.set(CallAnswer(error.map { .failure($0) } ?? .success(.null)))
    }
}

/// How long a subscription is kept; nil for the client's option.
private func ddpKeep(_ keep_ms: Int64) throws(RealtimeError) -> Duration? {
    keep_ms == -1 ? nil : try milliseconds(keep_ms, "keep_ms")
}

/// Names of publications with their parameters, from C.
private func ddpPublications(
    _ publications: UnsafePointer<CChar>?
) throws(RealtimeError) -> [(name: String, params: [EJSON])] {
    var wanted: [(name: String, params: [EJSON])] = []
    for one in try ejsonArray(publications, "publications") {
        guard case .array(let parts) = one, case .string(let name)? = parts.first else {
            throw RealtimeError(
                .invalidArgument,
                "publications has an entry that is not an array with a name at first")
        }
        wanted.append((name, Array(parts.dropFirst())))
    }
    return wanted
}
