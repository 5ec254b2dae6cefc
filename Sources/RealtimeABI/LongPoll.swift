import Engine
import Session
import Wire

// Chapter: long poll. Messages by requests that the server answers when there is something new.

/// A long poll: one request after the other, each held by the server until it has something. Life:
/// `rt_longpoll_new`, options and callbacks, `rt_longpoll_start`, messages, `rt_longpoll_close` or
/// a fatal error, `rt_longpoll_free`. A message whose delivery was cut off by a failure comes
/// again; messages that the server has dropped meanwhile are not known to be missing. Since 0.1.
public typealias rt_longpoll = OpaquePointer

/// Where a long poll stands. Since 0.1.
public typealias rt_longpoll_state = Int32

/// Values of `rt_longpoll_state`. Since 0.1.
public enum RT_LONGPOLL: Int32 {
    /// Not started, no answer yet, or the last attempt failed.
    case CONNECTING = 0
    /// The server answers, or has held a poll for its whole time.
    case OPEN = 1
    /// Over, by a fatal error or `rt_longpoll_close`.
    case CLOSED = 2
}

/// How polls say what they have seen already. Since 0.1.
public typealias rt_longpoll_cursor = Int32

/// Values of `rt_longpoll_cursor`. Since 0.1.
public enum RT_LONGPOLL_CURSOR: Int32 {
    /// The latest answer's Last-Modified and ETag, as If-Modified-Since and If-None-Match. The
    /// default.
    case VALIDATORS = 0
    /// The id, as a Last-Event-ID header.
    case HEADER_ID = 1
    /// The id, as a query parameter.
    case QUERY_ID = 2
    /// Not at all.
    case NONE = 3
}

/// The server answers, or has held a poll for its whole time: for the first time, or again after a
/// failure. Since 0.1.
public typealias rt_longpoll_open_fn =
    @convention(c) (_ user: UnsafeMutableRawPointer?) -> Void

/// A message. `id` says how far the messages have come, "" before the server said so; it is the
/// answer's Last-Event-ID header, or its Last-Modified in seconds since 1970, a colon and its ETag,
/// which Nchan takes on every transport. `had_id` tells whether this message has one of its own: of
/// the parts of a multipart answer only the last. `content_type` is "" when the server did not say.
/// All have a NUL behind their length and are valid until the callback returns; `data` is bytes.
/// Since 0.1.
public typealias rt_longpoll_message_fn =
    @convention(c) (
        _ id: UnsafePointer<CChar>?, _ id_length: Int, _ content_type: UnsafePointer<CChar>?,
        _ data: UnsafePointer<UInt8>?, _ length: Int, _ had_id: Bool,
        _ user: UnsafeMutableRawPointer?
    ) -> Void

/// An attempt failed. When `fatal` is false another follows: `retry_in_ms` is the time until it, -1
/// while there is no network, and `attempt` its number since the last that succeeded. When `fatal`
/// is true the poll is closed, and this is the last callback. `http_status` is the answer's, or
/// that of a proxy that refused the tunnel (RT_ERROR_PROXY); 0 without one. RT_ERROR_GONE (410) is
/// not fatal by default: what was polled was removed, and polls begin anew. `message` names host
/// and cause, valid until the callback returns. Since 0.1.
public typealias rt_longpoll_error_fn =
    @convention(c) (
        _ status: rt_status, _ message: UnsafePointer<CChar>?, _ http_status: Int32,
        _ fatal: Bool, _ retry_in_ms: Int64, _ attempt: UInt32, _ user: UnsafeMutableRawPointer?
    ) -> Void

/// A poll begins, the first one too; `attempt` is 1 unless the last one failed. Here, as before
/// start, options may be changed: headers with a fresh token, the URL; not the one that is for
/// before start alone. To return false closes it. Since 0.1.
public typealias rt_longpoll_request_fn =
    @convention(c) (_ attempt: UInt32, _ user: UnsafeMutableRawPointer?) -> Bool

/// The server answered 401, or the proxy 407 (`rt_network_set_proxy`). Here, as before start,
/// headers may be changed. Asked once a poll: a second refusal is fatal. RT_CREDENTIALS_LATER waits
/// for `rt_longpoll_credentials_ready`. Since 0.1.
public typealias rt_longpoll_credentials_fn =
    @convention(c) (_ http_status: Int32, _ user: UnsafeMutableRawPointer?) -> rt_credentials

/// Makes a long poll on a loop; nothing is sent before `rt_longpoll_start`. Any thread. Since 0.1.
/// - Parameter url: `http://` or `https://`, copied; user and password become a basic Authorization
///   header.
/// - Parameter out: receives it; to be freed with `rt_longpoll_free`.
/// - Returns: RT_OK; RT_ERROR_INVALID_URL, RT_ERROR_UNSUPPORTED_SCHEME, RT_ERROR_INVALID_ARGUMENT,
///   RT_ERROR_CLOSED for a freed loop.
@_cdecl("rt_longpoll_new")
public func rt_longpoll_new(
    _ loop: rt_loop?, _ url: UnsafePointer<CChar>?, _ out: UnsafeMutablePointer<rt_longpoll?>?
) -> rt_status {
    border {
        let loop = try LoopHandle.borrow(loop).loop
        let out = try required(out, "out")
        let poll = try LongPollConnection(url: text(url, "url"), on: loop)
        out.pointee = LongPollConnection.export(poll)
    }
}

/// Closes and gives back. NULL is accepted. Any thread; in a callback of its own too. Since 0.1.
@_cdecl("rt_longpoll_free")
public func rt_longpoll_free(_ longpoll: rt_longpoll?) {
    LongPollConnection.release(longpoll) { $0.close() }
}

/// Begins to poll. No callback comes inside this call. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for a last event id that does not fit the cursor;
///   RT_ERROR_STATE when it was started before; RT_ERROR_CLOSED.
@_cdecl("rt_longpoll_start")
public func rt_longpoll_start(_ longpoll: rt_longpoll?) -> rt_status {
    poll(longpoll) { try $0.start() }
}

/// Drops the poll in flight and polls again at once. An answer that is being delivered, or waits in
/// a pause, is delivered first. While credentials are fetched (RT_CREDENTIALS_LATER) it changes
/// nothing: their answer polls. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE before start; RT_ERROR_CLOSED.
@_cdecl("rt_longpoll_restart")
public func rt_longpoll_restart(_ longpoll: rt_longpoll?) -> rt_status {
    poll(longpoll) { try $0.restart() }
}

/// Answers what RT_CREDENTIALS_LATER had left open. Any thread. Since 0.1.
/// - Parameter fresh: true polls once more, with the headers that were set since; false
///   ends it with the server's refusal, a fatal RT_ERROR_HTTP_STATUS.
/// - Returns: RT_OK, also when nothing was asked; RT_ERROR_STATE before start; RT_ERROR_CLOSED.
@_cdecl("rt_longpoll_credentials_ready")
public func rt_longpoll_credentials_ready(
    _ longpoll: rt_longpoll?, _ fresh: Bool
) -> rt_status {
    poll(longpoll) { try $0.credentialsAreReady(fresh) }
}

/// Ends it for good and aborts the request in flight. There is no callback for it, and none begins
/// after this returned, except on the loop's thread one that had begun. Closing again changes
/// nothing. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_longpoll_close")
public func rt_longpoll_close(_ longpoll: rt_longpoll?) -> rt_status {
    poll(longpoll) { $0.close() }
}

/// Stops delivering; what comes waits, at most one answer, and no further poll is made before it is
/// delivered. Any thread; from another than the loop's one message may still come. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_longpoll_pause")
public func rt_longpoll_pause(_ longpoll: rt_longpoll?) -> rt_status {
    poll(longpoll) { try $0.pause() }
}

/// Goes on delivering. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_longpoll_resume")
public func rt_longpoll_resume(_ longpoll: rt_longpoll?) -> rt_status {
    poll(longpoll) { try $0.resume() }
}

/// Where it stands. Any thread. Since 0.1.
/// - Returns: an `rt_longpoll_state`; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_longpoll_get_state")
public func rt_longpoll_get_state(_ longpoll: rt_longpoll?) -> Int32 {
    borderValue { try LongPollConnection.borrow(longpoll).state.rawValue }
}

/// Where the next poll goes: the URL as it was set last, without user and password. Any thread.
/// Since 0.1.
/// - Parameter buffer: receives the URL and a NUL, cut to `size` bytes; may be NULL when `size` is
///   0.
/// - Parameter out_length: receives the whole URL's length.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT.
@_cdecl("rt_longpoll_get_url")
public func rt_longpoll_get_url(
    _ longpoll: rt_longpoll?, _ buffer: UnsafeMutablePointer<CChar>?, _ size: Int,
    _ out_length: UnsafeMutablePointer<Int>?
) -> rt_status {
    poll(longpoll) { try copy(text: $0.url, to: buffer, size, out_length) }
}

/// How far the messages have come, as the next poll says it; "" for the beginning. It moves when
/// the callback of an answer's last message has returned. To begin there another time, see
/// `rt_longpoll_set_last_event_id`. Any thread. Since 0.1.
/// - Parameter buffer: receives the id and a NUL, cut to `size` bytes; may be NULL when `size` is
///   0.
/// - Parameter out_length: receives the whole id's length.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT.
@_cdecl("rt_longpoll_get_last_event_id")
public func rt_longpoll_get_last_event_id(
    _ longpoll: rt_longpoll?, _ buffer: UnsafeMutablePointer<CChar>?, _ size: Int,
    _ out_length: UnsafeMutablePointer<Int>?
) -> rt_status {
    poll(longpoll) { try copy(text: $0.lastEventID, to: buffer, size, out_length) }
}

/// Runs a call on a long poll.
func poll(
    _ longpoll: rt_longpoll?, _ body: (LongPollConnection) throws -> Void
) -> rt_status {
    border { try LongPollConnection.borrowing(longpoll, body) }
}
