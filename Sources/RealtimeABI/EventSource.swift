import Engine
import Session
import Wire

// Chapter: eventsource. Server-Sent Events (HTML §9.2): a stream of events that comes back by
// itself.

/// An event source: a request whose answer is a stream of events, made again when it ends. Life:
/// `rt_eventsource_new`, options and callbacks, `rt_eventsource_start`, events,
/// `rt_eventsource_close` or a fatal error, `rt_eventsource_free`. Callbacks and listeners may be
/// set at any time; an error that came before its callback is kept for it. Since 0.1.
public typealias rt_eventsource = OpaquePointer

/// Where an event source stands; the numbers are the standard's. Since 0.1.
public typealias rt_eventsource_state = Int32

/// Values of `rt_eventsource_state`. Since 0.1.
public enum RT_EVENTSOURCE: Int32 {
    /// Not started, connecting, or waiting to connect again.
    case CONNECTING = 0
    /// Events can come.
    case OPEN = 1
    /// Over, by a fatal error or `rt_eventsource_close`.
    case CLOSED = 2
}

/// What a callback answers when the server wants credentials. Since 0.1.
public typealias rt_credentials = Int32

/// Values of `rt_credentials`. Since 0.1.
public enum RT_CREDENTIALS: Int32 {
    /// There are none: a fatal RT_ERROR_HTTP_STATUS.
    case NONE = 0
    /// They are in the headers now: the request goes out once more, at once.
    case READY = 1
    /// They are being fetched: the source waits for `rt_eventsource_credentials_ready`.
    case LATER = 2
}

/// The stream is open: the server answered 200 with text/event-stream. Since 0.1.
public typealias rt_eventsource_open_fn =
    @convention(c) (_ user: UnsafeMutableRawPointer?) -> Void

/// An event. `id` is the last event id, which stays until another comes; "" without. `event` is
/// its type, "message" when the stream named none. `had_id` tells whether this event had an id of
/// its own. All texts are valid UTF-8 with a NUL behind their length, may hold NULs, and are valid
/// until the callback returns. Since 0.1.
public typealias rt_eventsource_event_fn =
    @convention(c) (
        _ id: UnsafePointer<CChar>?, _ id_length: Int, _ event: UnsafePointer<CChar>?,
        _ event_length: Int, _ data: UnsafePointer<CChar>?, _ data_length: Int, _ had_id: Bool,
        _ user: UnsafeMutableRawPointer?
    ) -> Void

/// A comment, what is behind its colon; servers send them to keep a connection alive. Valid UTF-8
/// with a NUL behind its length, maybe holding NULs; valid until the callback returns. Since 0.1.
public typealias rt_eventsource_comment_fn =
    @convention(c) (
        _ comment: UnsafePointer<CChar>?, _ length: Int, _ user: UnsafeMutableRawPointer?
    ) -> Void

/// The stream gave a reconnection time, in milliseconds and at most a day. Since 0.1.
public typealias rt_eventsource_retry_fn =
    @convention(c) (_ time_ms: Int64, _ user: UnsafeMutableRawPointer?) -> Void

/// An attempt failed, or the stream ended. When `fatal` is false the source is connecting again:
/// `retry_in_ms` is the time until the next attempt, -1 while there is no network, and `attempt`
/// its number since the last connection that was stable; -1 and 0 when the connection goes on (an
/// id file that cannot be used). When `fatal` is true it is closed, and this is the last callback.
/// `http_status` is the answer's, or that of a proxy that refused the tunnel (RT_ERROR_PROXY); 0
/// without one. A stream that ended in order is RT_ERROR_CLOSED. `message` names host and cause,
/// valid until the callback returns. Since 0.1.
public typealias rt_eventsource_error_fn =
    @convention(c) (
        _ status: rt_status, _ message: UnsafePointer<CChar>?, _ http_status: Int32,
        _ fatal: Bool, _ retry_in_ms: Int64, _ attempt: UInt32, _ user: UnsafeMutableRawPointer?
    ) -> Void

/// An attempt begins, the first one too; `attempt` counts from 1 since the last that was stable.
/// Here, as before start, options may be changed: headers with a fresh token, the URL; not those
/// that are for before start alone. To return false closes the source. Since 0.1.
public typealias rt_eventsource_request_fn =
    @convention(c) (_ attempt: UInt32, _ user: UnsafeMutableRawPointer?) -> Bool

/// The server answered 401, or the proxy 407 (`rt_network_set_proxy`). Here, as before start,
/// headers may be changed. Asked once an attempt: a second refusal is fatal. Since 0.1.
public typealias rt_eventsource_credentials_fn =
    @convention(c) (_ http_status: Int32, _ user: UnsafeMutableRawPointer?) -> rt_credentials

/// An id is to be kept under `key` for the next run, "" to forget it; called after the callback of
/// its event, at most once a second, and at the end. The key is that of
/// `rt_eventsource_set_id_file`, or the URL as it was at start. Both NUL-terminated, valid until
/// the callback returns. Since 0.1.
public typealias rt_eventsource_store_fn =
    @convention(c) (
        _ key: UnsafePointer<CChar>?, _ id: UnsafePointer<CChar>?, _ id_length: Int,
        _ user: UnsafeMutableRawPointer?
    ) -> Void

/// One of the types that are listened to. Since 0.1.
public typealias rt_eventsource_name_fn =
    @convention(c) (
        _ event: UnsafePointer<CChar>?, _ length: Int, _ user: UnsafeMutableRawPointer?
    ) -> Void

/// Makes an event source on a loop; nothing is sent before `rt_eventsource_start`. Any thread.
/// Since 0.1.
/// - Parameter url: `http://` or `https://`, copied; user and password become a basic Authorization
///   header.
/// - Parameter out: receives it; to be freed with `rt_eventsource_free`.
/// - Returns: RT_OK; RT_ERROR_INVALID_URL, RT_ERROR_UNSUPPORTED_SCHEME, RT_ERROR_INVALID_ARGUMENT,
///   RT_ERROR_CLOSED for a freed loop.
@_cdecl("rt_eventsource_new")
public func rt_eventsource_new(
    _ loop: rt_loop?, _ url: UnsafePointer<CChar>?, _ out: UnsafeMutablePointer<rt_eventsource?>?
) -> rt_status {
    border {
        let loop = try LoopHandle.borrow(loop).loop
        let out = try required(out, "out")
        let source = try EventSourceConnection(url: text(url, "url"), on: loop)
        out.pointee = EventSourceConnection.export(source)
    }
}

/// Closes and gives back. NULL is accepted. Any thread; in a callback of its own too. Since 0.1.
@_cdecl("rt_eventsource_free")
public func rt_eventsource_free(_ eventsource: rt_eventsource?) {
    EventSourceConnection.release(eventsource) { $0.close() }
}

/// Begins to connect. No callback comes inside this call. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE when it was started before; RT_ERROR_CLOSED.
@_cdecl("rt_eventsource_start")
public func rt_eventsource_start(_ eventsource: rt_eventsource?) -> rt_status {
    source(eventsource) { try $0.start() }
}

/// Drops the connection and connects again at once, which counts as no attempt. While credentials
/// are fetched (RT_CREDENTIALS_LATER) it changes nothing: their answer connects. Any thread. Since
/// 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE before start; RT_ERROR_CLOSED.
@_cdecl("rt_eventsource_restart")
public func rt_eventsource_restart(_ eventsource: rt_eventsource?) -> rt_status {
    source(eventsource) { try $0.restart() }
}

/// Answers what RT_CREDENTIALS_LATER had left open. Any thread. Since 0.1.
/// - Parameter fresh: true sends the request once more, with the headers that were set since; false
///   ends it with the server's refusal, a fatal RT_ERROR_HTTP_STATUS.
/// - Returns: RT_OK, also when nothing was asked; RT_ERROR_STATE before start; RT_ERROR_CLOSED.
@_cdecl("rt_eventsource_credentials_ready")
public func rt_eventsource_credentials_ready(
    _ eventsource: rt_eventsource?, _ fresh: Bool
) -> rt_status {
    source(eventsource) { try $0.credentialsAreReady(fresh) }
}

/// Ends it for good. There is no callback for it, and none begins after this returned, except on
/// the loop's thread one that had begun. Closing again changes nothing. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_eventsource_close")
public func rt_eventsource_close(_ eventsource: rt_eventsource?) -> rt_status {
    source(eventsource) { $0.close() }
}

/// Stops delivering; TCP slows the server down, nothing is lost. On an HTTP/2 connection that
/// others use, up to 32 MiB wait in libcurl first: its window for a stream
/// (`rt_eventsource_set_http2`). Any thread; from another than the loop's one event may still come.
/// Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_eventsource_pause")
public func rt_eventsource_pause(_ eventsource: rt_eventsource?) -> rt_status {
    source(eventsource) { try $0.pause() }
}

/// Goes on delivering. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_eventsource_resume")
public func rt_eventsource_resume(_ eventsource: rt_eventsource?) -> rt_status {
    source(eventsource) { try $0.resume() }
}

/// Where it stands. Any thread. Since 0.1.
/// - Returns: an `rt_eventsource_state`; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_eventsource_get_state")
public func rt_eventsource_get_state(_ eventsource: rt_eventsource?) -> Int32 {
    borderValue { try EventSourceConnection.borrow(eventsource).state.rawValue }
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
    source(eventsource) { try copy(text: $0.url, to: buffer, size, out_length) }
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
    source(eventsource) { try copy(text: $0.lastEventID, to: buffer, size, out_length) }
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
    source(eventsource) { try copy(text: $0.origin, to: buffer, size, out_length) }
}

/// The time before an attempt that follows a stable connection: the server's last `retry`, raised
/// to `min_reconnection_time`, or the option. Any thread. Since 0.1.
/// - Returns: milliseconds; -1 for NULL.
@_cdecl("rt_eventsource_get_reconnection_time_ms")
public func rt_eventsource_get_reconnection_time_ms(_ eventsource: rt_eventsource?) -> Int64 {
    var time: Int64 = -1
    _ = source(eventsource) { time = $0.reconnectionTime }
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
    source(eventsource) { $0.confirmsIDs = enabled }
}

/// Says that the event with this id is done with, and all before it: the id may be kept, at most
/// once a second as ever. Any thread; also when the source was closed by a fatal error. Since 0.1.
/// - Parameter id: "" when the stream has taken the id away.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL or an id with CR or LF.
@_cdecl("rt_eventsource_confirm_id")
public func rt_eventsource_confirm_id(
    _ eventsource: rt_eventsource?, _ id: UnsafePointer<CChar>?
) -> rt_status {
    source(eventsource) { try $0.confirm(id: text(id, "id")) }
}

/// Forgets the id that is stored for this source in its id file, and in a callback that of its
/// event; ids of later events, and those that are confirmed later, are stored as ever. Any thread.
/// Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE without an id file; RT_ERROR_STORE.
@_cdecl("rt_eventsource_reset_stored_id")
public func rt_eventsource_reset_stored_id(_ eventsource: rt_eventsource?) -> rt_status {
    source(eventsource) { try $0.resetStoredID() }
}

/// Runs a call on an event source.
func source(
    _ eventsource: rt_eventsource?, _ body: (EventSourceConnection) throws -> Void
) -> rt_status {
    border { try EventSourceConnection.borrowing(eventsource, body) }
}
