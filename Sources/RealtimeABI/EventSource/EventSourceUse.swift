import Engine
import Session
import Wire

// Chapter: eventsource use. Connecting, closing, and state.

/// Starts connecting. No callback is called inside this call. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE if it was started before; RT_ERROR_CLOSED.
@_cdecl("rt_eventsource_start")
public func rt_eventsource_start(_ eventsource: rt_eventsource?) -> rt_status {
    eventsourceCall(eventsource) { (source) throws(RealtimeError) in try source.start() }
}

/// Drops the connection and reconnects at once. This does not count as an attempt. While
/// credentials are being fetched (RT_CREDENTIALS_LATER), the call has no effect; the event source
/// connects once they are ready. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE before start; RT_ERROR_CLOSED.
@_cdecl("rt_eventsource_restart")
public func rt_eventsource_restart(_ eventsource: rt_eventsource?) -> rt_status {
    eventsourceCall(eventsource) { (source) throws(RealtimeError) in try source.restart() }
}

/// Tells the event source that the network is back. If its next attempt waits, for its time or for
/// a network, it is made at once. Failures continue to count. An open stream continues
/// (`rt_eventsource_restart` replaces it). To report the loss of the network, use a manual
/// reachability monitor (`rt_eventsource_set_reachability`). Any thread. Since 0.1.
/// - Returns: RT_OK, also if there is nothing to do; RT_ERROR_INVALID_ARGUMENT for NULL;
///   RT_ERROR_FORKED; RT_ERROR_CLOSED on a freed loop.
@_cdecl("rt_eventsource_retry_now")
public func rt_eventsource_retry_now(_ eventsource: rt_eventsource?) -> rt_status {
    eventsourceCall(eventsource) { (source) throws(RealtimeError) in try source.retryNow() }
}

/// Reports the result of fetching credentials, after RT_CREDENTIALS_LATER. Any thread. Since 0.1.
/// - Parameter fresh: true repeats the request with the headers set since; false fails with the
///   server's refusal, a fatal RT_ERROR_HTTP_STATUS.
/// - Returns: RT_OK, also if no credentials were requested; RT_ERROR_STATE before start;
///   RT_ERROR_CLOSED.
@_cdecl("rt_eventsource_credentials_ready")
public func rt_eventsource_credentials_ready(
    _ eventsource: rt_eventsource?, _ fresh: Bool
) -> rt_status {
    eventsourceCall(eventsource) { (source) throws(RealtimeError) in
        try source.completeCredentials(fresh)
    }
}

/// Defers the attempt that begins. Call it inside the request callback, which then returns true.
/// The event source waits for `rt_eventsource_attempt_ready`, without a time limit. Meanwhile any
/// thread may change the options that the callback may change. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE outside of the callback; RT_ERROR_CLOSED.
@_cdecl("rt_eventsource_defer_attempt")
public func rt_eventsource_defer_attempt(_ eventsource: rt_eventsource?) -> rt_status {
    eventsourceCall(eventsource) { (source) throws(RealtimeError) in try source.deferAttempt() }
}

/// Makes the attempt that was deferred, with the options set since. Any thread. Since 0.1.
/// - Parameter continues: false closes the event source, as the callback can.
/// - Returns: RT_OK, also if no attempt was deferred; RT_ERROR_STATE before start; RT_ERROR_CLOSED.
@_cdecl("rt_eventsource_attempt_ready")
public func rt_eventsource_attempt_ready(
    _ eventsource: rt_eventsource?, _ continues: Bool
) -> rt_status {
    eventsourceCall(eventsource) { (source) throws(RealtimeError) in
        try source.attemptIsReady(continues)
    }
}

/// Closes the event source for good. No callback reports this, and none begins after this returns;
/// called on a thread other than the loop's, one that has begun may still be running. Further calls
/// have no effect. Any thread. Since 0.1.
///
/// If ids are stored, and not confirmed, a call on another thread waits up to 500 ms for such a
/// callback. So when this returns, the id of the last event whose callback has returned is in the
/// file, or was passed to the store callback, and the program may exit. `rt_eventsource_free` does
/// the same.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_eventsource_close")
public func rt_eventsource_close(_ eventsource: rt_eventsource?) -> rt_status {
    eventsourceCall(eventsource) { $0.close() }
}

/// Stops delivering events. TCP slows the server down; no events are lost. If other requests share
/// the HTTP/2 connection, libcurl first buffers up to 32 MiB, its window for a stream
/// (`rt_eventsource_set_http2`). Any thread; called on a thread other than the loop's, one event
/// may still come. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_eventsource_pause")
public func rt_eventsource_pause(_ eventsource: rt_eventsource?) -> rt_status {
    eventsourceCall(eventsource) { (source) throws(RealtimeError) in try source.pause() }
}

/// Continues delivering events. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_eventsource_resume")
public func rt_eventsource_resume(_ eventsource: rt_eventsource?) -> rt_status {
    eventsourceCall(eventsource) { (source) throws(RealtimeError) in try source.resume() }
}

/// Returns the state. Any thread. Since 0.1.
/// - Returns: an `rt_state`; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_eventsource_get_state")
public func rt_eventsource_get_state(_ eventsource: rt_eventsource?) -> Int32 {
    borderValue { () throws(RealtimeError) in
        try EventSourceConnection.borrow(eventsource).connectionState.rawValue
    }
}

/// Copies the URL of the next attempt, without user and password. Any thread. Since 0.1.
/// - Parameter buffer: receives the URL and a NUL, cut to `size` bytes; may be NULL if `size` is 0.
/// - Parameter out_length: receives the length of the whole URL.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT.
@_cdecl("rt_eventsource_get_url")
public func rt_eventsource_get_url(
    _ eventsource: rt_eventsource?, _ buffer: UnsafeMutablePointer<CChar>?, _ size: Int,
    _ out_length: UnsafeMutablePointer<Int>?
) -> rt_status {
    eventsourceCall(eventsource) { (source) throws(RealtimeError) in
        try copy(text: source.url, to: buffer, size, out_length)
    }
}

/// Copies the last event id, as the next attempt will send it; "" for none. Any thread. Since 0.1.
/// - Parameter buffer: receives the id and a NUL, cut to `size` bytes; may be NULL if `size` is 0.
/// - Parameter out_length: receives the length of the whole id.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT.
@_cdecl("rt_eventsource_get_last_event_id")
public func rt_eventsource_get_last_event_id(
    _ eventsource: rt_eventsource?, _ buffer: UnsafeMutablePointer<CChar>?, _ size: Int,
    _ out_length: UnsafeMutablePointer<Int>?
) -> rt_status {
    eventsourceCall(eventsource) { (source) throws(RealtimeError) in
        try copy(text: source.lastEventID, to: buffer, size, out_length)
    }
}

/// Copies the origin of the events, after redirects: scheme, host and port. Any thread. Since 0.1.
/// - Parameter buffer: receives the text and a NUL, cut to `size` bytes; may be NULL if `size` is
///   0.
/// - Parameter out_length: receives the length of the whole text.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT.
@_cdecl("rt_eventsource_get_origin")
public func rt_eventsource_get_origin(
    _ eventsource: rt_eventsource?, _ buffer: UnsafeMutablePointer<CChar>?, _ size: Int,
    _ out_length: UnsafeMutablePointer<Int>?
) -> rt_status {
    eventsourceCall(eventsource) { (source) throws(RealtimeError) in
        try copy(text: source.origin, to: buffer, size, out_length)
    }
}

/// The delay before an attempt that follows a stable connection: the server's last `retry`, but at
/// least `min_reconnection_time_ms`, or the option if there was none. Any thread. Since 0.1.
/// - Returns: milliseconds; -1 for NULL.
@_cdecl("rt_eventsource_get_reconnection_time_ms")
public func rt_eventsource_get_reconnection_time_ms(_ eventsource: rt_eventsource?) -> Int64 {
    var time: Int64 = -1
    _ = eventsourceCall(eventsource) { time = $0.reconnectionTime }
    return time
}

/// Whether an id is stored (by the id file and the store callback) only once
/// `rt_eventsource_confirm_id` confirms it, rather than after the callback of its event. Use it if
/// callbacks put events into a queue, which a crash would lose. Default: false. Any thread, at any
/// time. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_eventsource_set_confirms_ids")
public func rt_eventsource_set_confirms_ids(
    _ eventsource: rt_eventsource?, _ enabled: Bool
) -> rt_status {
    eventsourceCall(eventsource) { $0.confirmsIDs = enabled }
}

/// Confirms that the event with this id, and all before it, have been processed, so that the id may
/// be stored, at most once a second. Any thread, even after a fatal error. Since 0.1.
/// - Parameter id: "" if the stream has reset the id.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL or an id with CR or LF.
@_cdecl("rt_eventsource_confirm_id")
public func rt_eventsource_confirm_id(
    _ eventsource: rt_eventsource?, _ id: UnsafePointer<CChar>?
) -> rt_status {
    eventsourceCall(eventsource) { (source) throws(RealtimeError) in
        try source.confirm(id: text(id, "id"))
    }
}

/// Deletes the id that the id file stores for this source; inside a callback, also the id of that
/// callback's event. Ids of later events, and ids confirmed later, are stored as usual. Any thread.
/// Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE without an id file; RT_ERROR_STORE.
@_cdecl("rt_eventsource_reset_stored_id")
public func rt_eventsource_reset_stored_id(_ eventsource: rt_eventsource?) -> rt_status {
    eventsourceCall(eventsource) { (source) throws(RealtimeError) in try source.resetStoredID() }
}

/// Runs a call on an event source.
func eventsourceCall(
    _ eventsource: rt_eventsource?, _ body: (EventSourceConnection) throws(RealtimeError) -> Void
) -> rt_status {
    border { () throws(RealtimeError) in try EventSourceConnection.borrowing(eventsource, body) }
}
