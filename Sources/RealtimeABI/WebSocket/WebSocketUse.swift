public import CShims
import Engine
import Session
import Wire

// Chapter: websocket use. Connecting, messages, closing, and state.

/// Starts connecting. No callback is called before this returns. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE if it was started before; RT_ERROR_FORKED; RT_ERROR_CLOSED on a
///   freed loop. Later failures are reported to the error callback.
@_cdecl("rt_websocket_start")
public func rt_websocket_start(_ websocket: rt_websocket?) -> rt_status {
    websocketCall(websocket) { (connection) throws(RealtimeError) in try connection.start() }
}

/// Queues a text message. It is written at the end of the loop's turn, or at once if more than 64
/// KiB are queued. `text` is copied. Any thread; messages of one thread stay in order. Since 0.1.
/// - Parameter text: UTF-8, `length` bytes; may be NULL if `length` is 0.
/// - Returns: RT_OK; RT_ERROR_INVALID_UTF8; RT_ERROR_STATE before open; RT_ERROR_CLOSED once
///   closing has begun; RT_ERROR_BUFFER_FULL; RT_ERROR_FORKED.
@_cdecl("rt_websocket_send_text")
public func rt_websocket_send_text(
    _ websocket: rt_websocket?, _ text: UnsafePointer<CChar>?, _ length: Int
) -> rt_status {
    websocketCall(websocket) { (connection) throws(RealtimeError) in
        try connection.send(.text, bytes(text, length, "text"))
    }
}

/// Queues a binary message. It is written at the end of the loop's turn, or at once if more than 64
/// KiB are queued. `data` is copied. Any thread; messages of one thread stay in order. Since 0.1.
/// - Parameter data: `length` bytes; may be NULL if `length` is 0.
/// - Returns: as `rt_websocket_send_text`, without RT_ERROR_INVALID_UTF8.
@_cdecl("rt_websocket_send_binary")
public func rt_websocket_send_binary(
    _ websocket: rt_websocket?, _ data: UnsafePointer<UInt8>?, _ length: Int
) -> rt_status {
    websocketCall(websocket) { (connection) throws(RealtimeError) in
        try connection.send(.binary, bytes(data, length, "data"))
    }
}

/// Queues a message like the two calls above, with a choice of compression. Any thread. Since 0.1.
/// - Parameter kind: an `rt_message_kind`.
/// - Parameter data: `length` bytes; may be NULL if `length` is 0.
/// - Parameter compression: an `rt_compression`; ignored if compression was not negotiated.
/// - Returns: as `rt_websocket_send_text`; RT_ERROR_INVALID_ARGUMENT for an unknown kind or
///   compression.
@_cdecl("rt_websocket_send")
public func rt_websocket_send(
    _ websocket: rt_websocket?, _ kind: rt_message_kind, _ data: UnsafePointer<UInt8>?,
    _ length: Int, _ compression: rt_compression
) -> rt_status {
    websocketCall(websocket) { (connection) throws(RealtimeError) in
        try connection.send(
            named(kind, "kind", kinds), bytes(data, length, "data"),
            compression: named(compression, "compression", choices))
    }
}

/// Begins a message that is sent in pieces (RFC 6455 §5.4), for data that is too large for memory
/// or not yet complete. Until `rt_websocket_end_message`, no other message can be sent; messages
/// that other threads have already queued wait. Any thread. Since 0.1.
/// - Parameter kind: an `rt_message_kind`.
/// - Parameter compression: an `rt_compression`; automatic compresses if compression was
///   negotiated.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT; RT_ERROR_STATE before open and while another
///   message is sent in pieces; RT_ERROR_CLOSED; RT_ERROR_FORKED.
@_cdecl("rt_websocket_begin_message")
public func rt_websocket_begin_message(
    _ websocket: rt_websocket?, _ kind: rt_message_kind, _ compression: rt_compression
) -> rt_status {
    websocketCall(websocket) { (connection) throws(RealtimeError) in
        try connection.beginMessage(
            named(kind, "kind", kinds), compression: named(compression, "compression", choices))
    }
}

/// Sends the next piece of the current message as one frame. Text may be cut anywhere, even inside
/// a character. `data` is copied. The send limits and the drained callback apply as for whole
/// messages. Any thread. Since 0.1.
/// - Parameter data: `length` bytes; may be NULL if `length` is 0, which sends nothing.
/// - Returns: RT_OK; RT_ERROR_INVALID_UTF8, with nothing sent; RT_ERROR_STATE if no message was
///   begun; RT_ERROR_CLOSED; RT_ERROR_BUFFER_FULL; RT_ERROR_FORKED.
@_cdecl("rt_websocket_continue_message")
public func rt_websocket_continue_message(
    _ websocket: rt_websocket?, _ data: UnsafePointer<UInt8>?, _ length: Int
) -> rt_status {
    websocketCall(websocket) { (connection) throws(RealtimeError) in
        try connection.continueMessage(bytes(data, length, "data"))
    }
}

/// Ends a message that is sent in pieces. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_UTF8 if the text ends inside a character, with the message
///   still open; RT_ERROR_STATE if no message was begun; RT_ERROR_CLOSED; RT_ERROR_FORKED.
@_cdecl("rt_websocket_end_message")
public func rt_websocket_end_message(_ websocket: rt_websocket?) -> rt_status {
    websocketCall(websocket) { (connection) throws(RealtimeError) in try connection.endMessage() }
}

private let kinds = "RT_MESSAGE_TEXT or RT_MESSAGE_BINARY"
private let choices = "RT_COMPRESSION_AUTOMATIC, RT_COMPRESSION_ALWAYS or RT_COMPRESSION_NEVER"

/// Sends a ping with a payload of your choice, in addition to the automatic pings. The pong
/// callback reports its round trip. `data` is copied. Any thread. Since 0.1.
/// - Parameter data: at most 125 bytes; NULL for a payload chosen by the library.
/// - Returns: RT_OK; RT_ERROR_TOO_LARGE; RT_ERROR_STATE; RT_ERROR_CLOSED; RT_ERROR_BUFFER_FULL;
///   RT_ERROR_FORKED.
@_cdecl("rt_websocket_ping")
public func rt_websocket_ping(
    _ websocket: rt_websocket?, _ data: UnsafePointer<UInt8>?, _ length: Int
) -> rt_status {
    websocketCall(websocket) { (connection) throws(RealtimeError) in
        try connection.ping(bytes(data, length, "data"))
    }
}

/// Closes in order: sends what is queued and a close frame, then waits up to the close timeout for
/// the peer's close frame. No message callback begins after this returns; the close callback
/// reports the end. Before open, it cancels the attempt. Between two connections, the end has this
/// code and reason. Further calls have no effect. Any thread. Since 0.1.
/// - Parameter code: 1000 for a normal end, 3000–4999 for application codes, 0 for none.
/// - Parameter reason: at most 123 bytes of UTF-8, NUL-terminated; NULL for none.
/// - Returns: RT_OK; RT_ERROR_INVALID_CLOSE_CODE; RT_ERROR_CLOSE_REASON_TOO_LONG;
///   RT_ERROR_INVALID_UTF8; RT_ERROR_INVALID_ARGUMENT for a reason without a code; RT_ERROR_STATE
///   before start; RT_ERROR_FORKED.
@_cdecl("rt_websocket_close")
public func rt_websocket_close(
    _ websocket: rt_websocket?, _ code: UInt16, _ reason: UnsafePointer<CChar>?
) -> rt_status {
    websocketCall(websocket) { (connection) throws(RealtimeError) in
        try connection.close(code: code, reason: optionalText(reason, "reason") ?? "")
    }
}

/// Tells the connection that the network is back. If its next attempt waits, for its time or for a
/// network, it is made at once. Failures continue to count. An open connection is checked by a
/// ping, also if `rt_websocket_set_ping_interval_ms` has switched pings off. To report the loss of
/// the network, use a manual reachability monitor (`rt_websocket_set_reachability`). Any thread.
/// Since 0.1.
/// - Returns: RT_OK, also if there is nothing to do; RT_ERROR_INVALID_ARGUMENT for NULL;
///   RT_ERROR_FORKED; RT_ERROR_CLOSED on a freed loop.
@_cdecl("rt_websocket_retry_now")
public func rt_websocket_retry_now(_ websocket: rt_websocket?) -> rt_status {
    websocketCall(websocket) { (connection) throws(RealtimeError) in try connection.retryNow() }
}

/// Reports the result of fetching credentials, after RT_CREDENTIALS_LATER. Any thread. Since 0.1.
/// - Parameter fresh: true repeats the handshake with the headers set since; false fails with the
///   server's refusal, a fatal RT_ERROR_HTTP_STATUS, or RT_ERROR_PROXY of a proxy.
/// - Returns: RT_OK, also if no credentials were requested; RT_ERROR_STATE before start;
///   RT_ERROR_CLOSED.
@_cdecl("rt_websocket_credentials_ready")
public func rt_websocket_credentials_ready(_ websocket: rt_websocket?, _ fresh: Bool) -> rt_status {
    websocketCall(websocket) { (connection) throws(RealtimeError) in
        try connection.completeCredentials(fresh)
    }
}

/// Defers the attempt that begins. Call it inside the reconnect callback, which then returns true.
/// The connection waits for `rt_websocket_attempt_ready`, without a time limit. Meanwhile any
/// thread may change the options that the callback may change. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE outside of the callback; RT_ERROR_CLOSED.
@_cdecl("rt_websocket_defer_attempt")
public func rt_websocket_defer_attempt(_ websocket: rt_websocket?) -> rt_status {
    websocketCall(websocket) { (connection) throws(RealtimeError) in try connection.deferAttempt() }
}

/// Makes the attempt that was deferred, with the options set since. Any thread. Since 0.1.
/// - Parameter continues: false closes the connection, as the callback can.
/// - Returns: RT_OK, also if no attempt was deferred; RT_ERROR_STATE before start; RT_ERROR_CLOSED.
@_cdecl("rt_websocket_attempt_ready")
public func rt_websocket_attempt_ready(
    _ websocket: rt_websocket?, _ continues: Bool
) -> rt_status {
    websocketCall(websocket) { (connection) throws(RealtimeError) in
        try connection.attemptIsReady(continues)
    }
}

/// Stops receiving. TCP slows the peer down. Called on the loop's thread, no message callback
/// begins after this returns; called on another thread, callbacks for one read of the socket may
/// still come. Pongs are not read either, so the pong timeout does not run. Any thread. Since 0.1.
/// - Returns: RT_OK, also if it was already paused; RT_ERROR_FORKED.
@_cdecl("rt_websocket_pause")
public func rt_websocket_pause(_ websocket: rt_websocket?) -> rt_status {
    websocketCall(websocket) { (connection) throws(RealtimeError) in try connection.pause() }
}

/// Continues to receive after `rt_websocket_pause`. Any thread. Since 0.1.
/// - Returns: RT_OK, also if it was not paused; RT_ERROR_FORKED.
@_cdecl("rt_websocket_resume")
public func rt_websocket_resume(_ websocket: rt_websocket?) -> rt_status {
    websocketCall(websocket) { (connection) throws(RealtimeError) in try connection.resume() }
}

/// Returns the connection's state. Any thread. Since 0.1.
/// - Returns: an `rt_state`, or a negative `rt_status`.
@_cdecl("rt_websocket_get_state")
public func rt_websocket_get_state(_ websocket: rt_websocket?) -> Int32 {
    borderValue { () throws(RealtimeError) in
        let connection = try WebSocketConnection.borrow(websocket)
        try connection.loop.checkNotForked()
        return connection.connectionState.rawValue
    }
}

/// Reads the connection's statistics. Any thread. Since 0.1.
/// - Parameter out: receives the numbers.
/// - Parameter size: `sizeof(rt_websocket_statistics)`, from which a later version of the library
///   knows the size of your struct.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL or a size of 0; RT_ERROR_FORKED.
@_cdecl("rt_websocket_get_statistics")
public func rt_websocket_get_statistics(
    _ websocket: rt_websocket?, _ out: UnsafeMutablePointer<rt_websocket_statistics>?,
    _ size: Int
) -> rt_status {
    websocketCall(websocket) { (connection) throws(RealtimeError) in
        try connection.loop.checkNotForked()
        try copy(connection.statistics, to: out, size)
    }
}

/// Bytes that are queued and that the kernel has not accepted yet, frame headers included. Any
/// thread. Since 0.1.
/// - Returns: the count; 0 for NULL.
@_cdecl("rt_websocket_buffered_bytes")
public func rt_websocket_buffered_bytes(_ websocket: rt_websocket?) -> Int {
    (try? WebSocketConnection.borrow(websocket).bufferedBytes) ?? 0
}

/// The round-trip time of the last answered ping in microseconds. Any thread. Since 0.1.
/// - Returns: microseconds; -1 before the first pong, and for NULL.
@_cdecl("rt_websocket_round_trip_us")
public func rt_websocket_round_trip_us(_ websocket: rt_websocket?) -> Int64 {
    (try? WebSocketConnection.borrow(websocket).roundTripMicroseconds) ?? -1
}

/// Runs a call on a WebSocket.
func websocketCall(
    _ websocket: rt_websocket?, _ body: (WebSocketConnection) throws(RealtimeError) -> Void
) -> rt_status {
    border { () throws(RealtimeError) in try WebSocketConnection.borrowing(websocket, body) }
}
