import Engine
import Session
import Wire

// Chapter: eventsource use. Connecting, the end, and what it is.

/// Begins to connect. No callback comes inside this call. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE when it was started before; RT_ERROR_CLOSED.
@_cdecl("rt_eventsource_start")
public func rt_eventsource_start(_ eventsource: rt_eventsource?) -> rt_status {
    eventsourceCall(eventsource) { (source) throws(RealtimeError) in try source.start() }
}

/// Drops the connection and connects again at once, which counts as no attempt. While credentials
/// are fetched (RT_CREDENTIALS_LATER) it changes nothing: their answer connects. Any thread. Since
/// 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE before start; RT_ERROR_CLOSED.
@_cdecl("rt_eventsource_restart")
public func rt_eventsource_restart(_ eventsource: rt_eventsource?) -> rt_status {
    eventsourceCall(eventsource) { (source) throws(RealtimeError) in try source.restart() }
}

/// Answers what RT_CREDENTIALS_LATER had left open. Any thread. Since 0.1.
/// - Parameter fresh: true sends the request once more, with the headers that were set since; false
///   ends it with the server's refusal, a fatal RT_ERROR_HTTP_STATUS.
/// - Returns: RT_OK, also when nothing was asked; RT_ERROR_STATE before start; RT_ERROR_CLOSED.
@_cdecl("rt_eventsource_credentials_ready")
public func rt_eventsource_credentials_ready(
    _ eventsource: rt_eventsource?, _ fresh: Bool
) -> rt_status {
    eventsourceCall(eventsource) { (source) throws(RealtimeError) in
        try source.credentialsAreReady(fresh)
    }
}

/// Ends it for good. There is no callback for it, and none begins after this returned, except on
/// the loop's thread one that had begun. Closing again changes nothing. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_eventsource_close")
public func rt_eventsource_close(_ eventsource: rt_eventsource?) -> rt_status {
    eventsourceCall(eventsource) { $0.close() }
}

/// Stops delivering; TCP slows the server down, nothing is lost. On an HTTP/2 connection that
/// others use, up to 32 MiB wait in libcurl first: its window for a stream
/// (`rt_eventsource_set_http2`). Any thread; from another than the loop's one event may still come.
/// Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_eventsource_pause")
public func rt_eventsource_pause(_ eventsource: rt_eventsource?) -> rt_status {
    eventsourceCall(eventsource) { (source) throws(RealtimeError) in try source.pause() }
}

/// Goes on delivering. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_eventsource_resume")
public func rt_eventsource_resume(_ eventsource: rt_eventsource?) -> rt_status {
    eventsourceCall(eventsource) { (source) throws(RealtimeError) in try source.resume() }
}

/// Where it stands. Any thread. Since 0.1.
/// - Returns: an `rt_eventsource_state`; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_eventsource_get_state")
public func rt_eventsource_get_state(_ eventsource: rt_eventsource?) -> Int32 {
    borderValue { () throws(RealtimeError) in
        try EventSourceConnection.borrow(eventsource).state.rawValue
    }
}

/// Where the next attempt goes: the URL as it was set last, without user and password. Any thread.
/// Since 0.1.
/// - Parameter buffer: receives the URL and a NUL, cut to `size` bytes; may be NULL when `size` is
///   0.
/// - Parameter out_length: receives the whole URL's length.
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

/// The last event id, as the next attempt sends it; "" for none. Any thread. Since 0.1.
/// - Parameter buffer: receives the id and a NUL, cut to `size` bytes; may be NULL when `size` is
///   0.
/// - Parameter out_length: receives the whole id's length.
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

/// Where the events come from, after redirects: scheme, host and port. Any thread. Since 0.1.
/// - Parameter buffer: receives the text and a NUL, cut to `size` bytes; may be NULL when `size` is
///   0.
/// - Parameter out_length: receives the whole text's length.
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

/// The time before an attempt that follows a stable connection: the server's last `retry`, raised
/// to `min_reconnection_time`, or the option. Any thread. Since 0.1.
/// - Returns: milliseconds; -1 for NULL.
@_cdecl("rt_eventsource_get_reconnection_time_ms")
public func rt_eventsource_get_reconnection_time_ms(_ eventsource: rt_eventsource?) -> Int64 {
    var time: Int64 = -1
    _ = eventsourceCall(eventsource) { time = $0.reconnectionTime }
    return time
}

/// Whether ids are kept, in the id file and by the store callback, when `rt_eventsource_confirm_id`
/// says so, instead of after the callback of their event: for those who put events into a queue
/// there, which a crash would lose. Default false. Any thread, at any time. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_eventsource_set_confirms_ids")
public func rt_eventsource_set_confirms_ids(
    _ eventsource: rt_eventsource?, _ enabled: Bool
) -> rt_status {
    eventsourceCall(eventsource) { $0.confirmsIDs = enabled }
}

/// Says that the event with this id is done with, and all before it: the id may be kept, at most
/// once a second as ever. Any thread; also when the source was closed by a fatal error. Since 0.1.
/// - Parameter id: "" when the stream has taken the id away.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL or an id with CR or LF.
@_cdecl("rt_eventsource_confirm_id")
public func rt_eventsource_confirm_id(
    _ eventsource: rt_eventsource?, _ id: UnsafePointer<CChar>?
) -> rt_status {
    eventsourceCall(eventsource) { (source) throws(RealtimeError) in
        try source.confirm(id: text(id, "id"))
    }
}

/// Forgets the id that is stored for this source in its id file, and in a callback that of its
/// event; ids of later events, and those that are confirmed later, are stored as ever. Any thread.
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
