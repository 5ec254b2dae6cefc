public import CShims
import Engine
import Session
import Wire

// Chapter: websocket. A client connection: RFC 6455 with permessage-deflate (RFC 7692).

/// A WebSocket client connection. Life: `rt_websocket_new`, options and callbacks,
/// `rt_websocket_start`, messages, `rt_websocket_close` or the peer's close, `rt_websocket_free`.
/// After start the callbacks come in this order: open at most once, then messages, then error at
/// most once, then close exactly once, unless the handle is freed before. With
/// `rt_websocket_set_reconnect` open, messages and error may come again for each connection, with
/// lost and reconnect between them, and close once at the very end. Since 0.1.
public typealias rt_websocket = OpaquePointer

/// What a message holds. Since 0.1.
public typealias rt_message_kind = Int32

/// Values of `rt_message_kind`. Since 0.1.
public enum RT_MESSAGE: Int32 {
    /// Valid UTF-8.
    case TEXT = 1
    /// Any bytes.
    case BINARY = 2
}

/// Whether one message is compressed, where permessage-deflate was agreed. Since 0.1.
public typealias rt_compression = Int32

/// Values of `rt_compression`. Since 0.1.
public enum RT_COMPRESSION: Int32 {
    /// From `rt_websocket_set_compression_min_bytes` on.
    case AUTOMATIC = 0
    /// Whatever its size.
    case ALWAYS = 1
    /// For what is compressed already, or holds a secret beside an attacker's text (RFC 7692 §8).
    case NEVER = 2
}

/// Where a connection stands. Since 0.1.
public typealias rt_websocket_state = Int32

/// Values of `rt_websocket_state`. Since 0.1.
public enum RT_WEBSOCKET: Int32 {
    /// Made, not started.
    case NEW = 0
    /// Started: resolving, connecting, TLS, handshake.
    case CONNECTING = 1
    /// Messages can be sent and received.
    case OPEN = 2
    /// One side has begun the closing handshake.
    case CLOSING = 3
    /// Over: the close callback has come, or comes next.
    case CLOSED = 4
    /// Lost, and the time of the next attempt has not come.
    case WAITING = 5
}

/// The connection is open. `subprotocol` is the one the server selected, `extensions` its
/// Sec-WebSocket-Extensions; "" without. Both valid until the callback returns. Since 0.1.
public typealias rt_websocket_open_fn =
    @convention(c) (
        _ subprotocol: UnsafePointer<CChar>?, _ extensions: UnsafePointer<CChar>?,
        _ user: UnsafeMutableRawPointer?
    ) -> Void

/// One whole message. `data` is valid until the callback returns; it is not NUL-terminated, since
/// it points into the receive buffer. Never NULL, also when `length` is 0. Since 0.1.
public typealias rt_websocket_message_fn =
    @convention(c) (
        _ kind: rt_message_kind, _ data: UnsafePointer<UInt8>?, _ length: Int,
        _ user: UnsafeMutableRawPointer?
    ) -> Void

/// All messages of one read, in order: message i has `messages[i].length` bytes at
/// `base + messages[i].offset`. `count` is at least 1. All valid until the callback returns. Since
/// 0.1.
public typealias rt_websocket_messages_fn =
    @convention(c) (
        _ base: UnsafePointer<UInt8>?, _ messages: UnsafePointer<rt_message>?, _ count: Int,
        _ user: UnsafeMutableRawPointer?
    ) -> Void

/// A piece of a message, as it came: `first` begins a message, `last` ends it, and a small message
/// is both at once. Text is cut between characters, so that each piece is valid UTF-8. `data` is
/// valid until the callback returns, and never NULL. Since 0.1.
public typealias rt_websocket_piece_fn =
    @convention(c) (
        _ kind: rt_message_kind, _ data: UnsafePointer<UInt8>?, _ length: Int, _ first: Bool,
        _ last: Bool, _ user: UnsafeMutableRawPointer?
    ) -> Void

/// Why the connection failed: a status and a sentence that names host, cause and limit, valid
/// until the callback returns. The close callback follows. Since 0.1.
public typealias rt_websocket_error_fn =
    @convention(c) (
        _ status: rt_status, _ message: UnsafePointer<CChar>?, _ user: UnsafeMutableRawPointer?
    ) -> Void

/// The server refused the handshake with a status other than 101; the error callback follows with
/// RT_ERROR_HTTP_STATUS. Or the proxy refused the tunnel, with RT_ERROR_PROXY; then there are no
/// headers and no body. `headers` holds "Name: value" lines, each ended by LF, `headers_length`
/// bytes in all. `reason` and values are the bytes that the server sent: usually ASCII, and not
/// necessarily UTF-8. `body` is the beginning of the answer's body, at most 64 KiB. All valid until
/// the callback returns. Since 0.1.
public typealias rt_websocket_refused_fn =
    @convention(c) (
        _ http_status: Int32, _ reason: UnsafePointer<CChar>?, _ headers: UnsafePointer<CChar>?,
        _ headers_length: Int, _ body: UnsafePointer<UInt8>?, _ body_length: Int,
        _ user: UnsafeMutableRawPointer?
    ) -> Void

/// The connection was lost, or an attempt to make it failed, and another attempt follows after
/// `delay_ms`; `attempt` counts from 1 since the last connection that was stable. `code` and
/// `reason` as in the close callback. Without a network (`rt_websocket_set_reachability`)
/// `delay_ms` is -1, the next attempt follows within a second when there is one again, and nothing
/// is counted: `attempt` is the number of the one that was lost, 0 for the first connection. Since
/// 0.1.
public typealias rt_websocket_lost_fn =
    @convention(c) (
        _ code: UInt16, _ reason: UnsafePointer<CChar>?, _ reason_length: Int, _ delay_ms: Int64,
        _ attempt: UInt32, _ user: UnsafeMutableRawPointer?
    ) -> Void

/// An attempt begins now. Here, as before start, options of the connection may be changed: its URL
/// by `rt_websocket_set_url`, its headers, its network. To return false ends the connection: the
/// close callback comes. Since 0.1.
public typealias rt_websocket_reconnect_fn =
    @convention(c) (_ attempt: UInt32, _ user: UnsafeMutableRawPointer?) -> Bool

/// The connection is over; the last callback. `code` is the peer's close code, or 1005 when its
/// close frame had none, or 1006 when there was no close frame; after a failure of the peer's the
/// code that was sent to it. When the peer did not answer our close frame within the close timeout
/// it is 1006, without an error callback. `reason` is NUL-terminated UTF-8 of `reason_length`
/// bytes, valid until the callback returns. `clean` is true when both close frames were exchanged.
/// Since 0.1.
public typealias rt_websocket_close_fn =
    @convention(c) (
        _ code: UInt16, _ reason: UnsafePointer<CChar>?, _ reason_length: Int, _ clean: Bool,
        _ user: UnsafeMutableRawPointer?
    ) -> Void

/// The send buffer is empty again, after it had been above its high-water mark or a call had been
/// refused with RT_ERROR_BUFFER_FULL. Since 0.1.
public typealias rt_websocket_drained_fn = @convention(c) (_ user: UnsafeMutableRawPointer?) -> Void

/// A pong answered one of our pings after `round_trip_us` microseconds. Since 0.1.
public typealias rt_websocket_pong_fn =
    @convention(c) (
        _ round_trip_us: Int64, _ user: UnsafeMutableRawPointer?
    ) -> Void

/// Makes a connection to a `ws://` or `wss://` URL; nothing happens before `rt_websocket_start`.
/// User and password in the URL become a basic Authorization header. Any thread. Since 0.1.
/// - Parameter loop: the loop it lives on, which it keeps alive.
/// - Parameter out: receives the connection; to be freed with `rt_websocket_free`.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT; RT_ERROR_INVALID_URL;
///   RT_ERROR_UNSUPPORTED_SCHEME; RT_ERROR_FORKED; RT_ERROR_CLOSED on a freed loop.
@_cdecl("rt_websocket_new")
public func rt_websocket_new(
    _ loop: rt_loop?, _ url: UnsafePointer<CChar>?, _ out: UnsafeMutablePointer<rt_websocket?>?
) -> rt_status {
    border {
        let loop = try LoopHandle.borrow(loop).loop
        let url = try text(url, "url")
        let out = try required(out, "out")
        let connection = try WebSocketConnection(url: url, on: loop)
        out.pointee = WebSocketConnection.export(connection)
    }
}

/// Gives the connection back. One that is open is dropped: a close frame with code 1001 is sent if
/// it can be without waiting, then the descriptor is closed. To close in order, call
/// `rt_websocket_close` and free in the close callback. No callback begins after this returned,
/// each `destroy` runs once. NULL is accepted. Any thread, also inside its own callbacks. Since
/// 0.1.
@_cdecl("rt_websocket_free")
public func rt_websocket_free(_ websocket: rt_websocket?) {
    WebSocketConnection.release(websocket) { $0.abandon() }
}

/// Starts connecting. Nothing is called before this returned. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE when it was started before; RT_ERROR_FORKED; RT_ERROR_CLOSED
///   on a freed loop. All that goes wrong later comes to the error callback.
@_cdecl("rt_websocket_start")
public func rt_websocket_start(_ websocket: rt_websocket?) -> rt_status {
    connection(websocket) { try $0.start() }
}

/// Queues a text message; it is written at the end of the loop's turn, or at once when 64 KiB
/// wait. `text` is copied. Any thread; one thread's messages keep their order. Since 0.1.
/// - Parameter text: UTF-8, `length` bytes; may be NULL when `length` is 0.
/// - Returns: RT_OK; RT_ERROR_INVALID_UTF8; RT_ERROR_STATE before open; RT_ERROR_CLOSED once
///   closing began; RT_ERROR_BUFFER_FULL; RT_ERROR_FORKED.
@_cdecl("rt_websocket_send_text")
public func rt_websocket_send_text(
    _ websocket: rt_websocket?, _ text: UnsafePointer<CChar>?, _ length: Int
) -> rt_status {
    connection(websocket) { try $0.send(.text, bytes(text, length, "text")) }
}

/// Queues a binary message; it is written at the end of the loop's turn, or at once when 64 KiB
/// wait. `data` is copied. Any thread; one thread's messages keep their order. Since 0.1.
/// - Parameter data: `length` bytes; may be NULL when `length` is 0.
/// - Returns: as `rt_websocket_send_text`, without RT_ERROR_INVALID_UTF8.
@_cdecl("rt_websocket_send_binary")
public func rt_websocket_send_binary(
    _ websocket: rt_websocket?, _ data: UnsafePointer<UInt8>?, _ length: Int
) -> rt_status {
    connection(websocket) { try $0.send(.binary, bytes(data, length, "data")) }
}

/// Queues a message; the two calls above with a choice of compression. Any thread. Since 0.1.
/// - Parameter kind: an `rt_message_kind`.
/// - Parameter data: `length` bytes; may be NULL when `length` is 0.
/// - Parameter compression: an `rt_compression`; without agreed compression all are the same.
/// - Returns: as `rt_websocket_send_text`; RT_ERROR_INVALID_ARGUMENT for a kind or choice that is
///   not listed.
@_cdecl("rt_websocket_send")
public func rt_websocket_send(
    _ websocket: rt_websocket?, _ kind: rt_message_kind, _ data: UnsafePointer<UInt8>?,
    _ length: Int, _ compression: rt_compression
) -> rt_status {
    connection(websocket) {
        try $0.send(
            named(kind, "kind", kinds), bytes(data, length, "data"),
            compression: named(compression, "compression", choices))
    }
}

/// Begins a message that is sent in pieces, for what is larger than memory should hold or not known
/// whole (RFC 6455 §5.4). Until `rt_websocket_end_message` no other message can be sent; what
/// another thread had queued before waits. Any thread. Since 0.1.
/// - Parameter kind: an `rt_message_kind`.
/// - Parameter compression: an `rt_compression`; automatic compresses where that was agreed.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT; RT_ERROR_STATE before open and while a message is
///   sent in pieces; RT_ERROR_CLOSED; RT_ERROR_FORKED.
@_cdecl("rt_websocket_begin_message")
public func rt_websocket_begin_message(
    _ websocket: rt_websocket?, _ kind: rt_message_kind, _ compression: rt_compression
) -> rt_status {
    connection(websocket) {
        try $0.beginMessage(
            named(kind, "kind", kinds), compression: named(compression, "compression", choices))
    }
}

/// Sends the next piece of the message begun, as one frame. Text may be cut anywhere, also inside a
/// character. `data` is copied; the drained callback and the limits of a send hold for it. Any
/// thread. Since 0.1.
/// - Parameter data: `length` bytes; may be NULL when `length` is 0, which sends nothing.
/// - Returns: RT_OK; RT_ERROR_INVALID_UTF8, with nothing taken; RT_ERROR_STATE when none was begun;
///   RT_ERROR_CLOSED; RT_ERROR_BUFFER_FULL; RT_ERROR_FORKED.
@_cdecl("rt_websocket_continue_message")
public func rt_websocket_continue_message(
    _ websocket: rt_websocket?, _ data: UnsafePointer<UInt8>?, _ length: Int
) -> rt_status {
    connection(websocket) { try $0.continueMessage(bytes(data, length, "data")) }
}

/// Ends the message begun. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_UTF8 when the text ends inside a character, with the message
///   still open; RT_ERROR_STATE when none was begun; RT_ERROR_CLOSED; RT_ERROR_FORKED.
@_cdecl("rt_websocket_end_message")
public func rt_websocket_end_message(_ websocket: rt_websocket?) -> rt_status {
    connection(websocket) { try $0.endMessage() }
}

private let kinds = "RT_MESSAGE_TEXT or RT_MESSAGE_BINARY"
private let choices = "RT_COMPRESSION_AUTOMATIC, RT_COMPRESSION_ALWAYS or RT_COMPRESSION_NEVER"

/// Sends a ping with a payload of the caller's, beside those of the interval; the pong callback
/// tells its round trip. `data` is copied. Any thread. Since 0.1.
/// - Parameter data: at most 125 bytes; NULL for a payload of the library's own.
/// - Returns: RT_OK; RT_ERROR_TOO_LARGE; RT_ERROR_STATE; RT_ERROR_CLOSED; RT_ERROR_BUFFER_FULL;
///   RT_ERROR_FORKED.
@_cdecl("rt_websocket_ping")
public func rt_websocket_ping(
    _ websocket: rt_websocket?, _ data: UnsafePointer<UInt8>?, _ length: Int
) -> rt_status {
    connection(websocket) { try $0.ping(bytes(data, length, "data")) }
}

/// Closes in order: what was queued is sent, then a close frame, then the peer's answer is awaited
/// up to the close timeout. No message callback begins after this returned; the close callback
/// tells the end. Before open it cancels the attempt. Closing again changes nothing. Any thread.
/// Since 0.1.
/// - Parameter code: 1000 for a normal end, 3000–4999 for the application's own; 0 sends none.
/// - Parameter reason: at most 123 bytes of UTF-8, NUL-terminated; NULL for none.
/// - Returns: RT_OK; RT_ERROR_INVALID_CLOSE_CODE; RT_ERROR_CLOSE_REASON_TOO_LONG;
///   RT_ERROR_INVALID_UTF8; RT_ERROR_INVALID_ARGUMENT for a reason without a code; RT_ERROR_STATE
///   before start; RT_ERROR_FORKED.
@_cdecl("rt_websocket_close")
public func rt_websocket_close(
    _ websocket: rt_websocket?, _ code: UInt16, _ reason: UnsafePointer<CChar>?
) -> rt_status {
    connection(websocket) {
        try $0.close(code: code, reason: reason.map { try text($0, "reason") } ?? "")
    }
}

/// Stops receiving: no message callback begins after this returned on the loop's thread; called on
/// another thread, those for one read of the socket may still come. TCP slows the peer down. Pongs
/// are not read either, so the pong timeout stands still. Any thread. Since 0.1.
/// - Returns: RT_OK, also when it was paused already; RT_ERROR_FORKED.
@_cdecl("rt_websocket_pause")
public func rt_websocket_pause(_ websocket: rt_websocket?) -> rt_status {
    connection(websocket) { try $0.pause() }
}

/// Goes on receiving after `rt_websocket_pause`. Any thread. Since 0.1.
/// - Returns: RT_OK, also when it was not paused; RT_ERROR_FORKED.
@_cdecl("rt_websocket_resume")
public func rt_websocket_resume(_ websocket: rt_websocket?) -> rt_status {
    connection(websocket) { try $0.resume() }
}

/// Where the connection stands. Any thread. Since 0.1.
/// - Returns: an `rt_websocket_state`, or a negative `rt_status`.
@_cdecl("rt_websocket_get_state")
public func rt_websocket_get_state(_ websocket: rt_websocket?) -> Int32 {
    borderValue {
        let connection = try WebSocketConnection.borrow(websocket)
        try connection.loop.checkNotForked()
        return connection.state.rawValue
    }
}

/// What went through the connection. Any thread. Since 0.1.
/// - Parameter out: receives the numbers.
/// - Parameter size: `sizeof(rt_websocket_statistics)`, by which a later version knows yours.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL or a size of 0; RT_ERROR_FORKED.
@_cdecl("rt_websocket_get_statistics")
public func rt_websocket_get_statistics(
    _ websocket: rt_websocket?, _ out: UnsafeMutablePointer<rt_websocket_statistics>?,
    _ size: Int
) -> rt_status {
    connection(websocket) {
        try $0.loop.checkNotForked()
        try copy($0.statistics, to: out, size)
    }
}

/// Bytes queued and not yet taken by the kernel, frame headers included. Any thread. Since 0.1.
/// - Returns: the count; 0 for NULL.
@_cdecl("rt_websocket_buffered_bytes")
public func rt_websocket_buffered_bytes(_ websocket: rt_websocket?) -> Int {
    (try? WebSocketConnection.borrow(websocket).bufferedBytes) ?? 0
}

/// The round trip of the last answered ping in microseconds. Any thread. Since 0.1.
/// - Returns: microseconds; -1 before the first pong, and for NULL.
@_cdecl("rt_websocket_round_trip_us")
public func rt_websocket_round_trip_us(_ websocket: rt_websocket?) -> Int64 {
    (try? WebSocketConnection.borrow(websocket).roundTripMicroseconds) ?? -1
}
