public import CShims
import Engine
import Session
import Wire

// Chapter: websocket callbacks. They may be set at any time, from any thread; NULL takes one away.

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

/// A piece of a message has come. It is valid until the callback returns. Since 0.1.
public typealias rt_websocket_piece_fn =
    @convention(c) (
        _ piece: UnsafePointer<rt_websocket_piece>?, _ user: UnsafeMutableRawPointer?
    ) -> Void

/// The send buffer is empty again, after it had been above its high-water mark or a call had been
/// refused with RT_ERROR_BUFFER_FULL. Since 0.1.
public typealias rt_websocket_drained_fn = @convention(c) (_ user: UnsafeMutableRawPointer?) -> Void

/// A pong answered one of our pings after `round_trip_us` microseconds. Since 0.1.
public typealias rt_websocket_pong_fn =
    @convention(c) (
        _ round_trip_us: Int64, _ user: UnsafeMutableRawPointer?
    ) -> Void

/// Sets the callback for the opened connection. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for a NULL handle.
@_cdecl("rt_websocket_on_open")
public func rt_websocket_on_open(
    _ websocket: rt_websocket?, _ fn: rt_opened_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return websocketCall(websocket) { (connection) throws(RealtimeError) in
        try connection.setOpen(box)
    }
}

/// Sets the callback for single messages; takes the other message callbacks' place.
/// Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for a NULL handle.
@_cdecl("rt_websocket_on_message")
public func rt_websocket_on_message(
    _ websocket: rt_websocket?, _ fn: rt_websocket_message_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return websocketCall(websocket) { (connection) throws(RealtimeError) in
        try connection.setMessage(box)
    }
}

/// Sets the callback for all messages of one read together, for runtimes where each call costs;
/// takes the other message callbacks' place. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for a NULL handle.
@_cdecl("rt_websocket_on_messages")
public func rt_websocket_on_messages(
    _ websocket: rt_websocket?, _ fn: rt_websocket_messages_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return websocketCall(websocket) { (connection) throws(RealtimeError) in
        try connection.setMessages(box)
    }
}

/// Sets the callback for messages in pieces as they come, for those larger than memory should hold;
/// takes the other message callbacks' place. `max_message_bytes` does not count then. A change
/// between pieces and whole messages counts from the next message on: one that is coming ends as it
/// began, and what is left of one in pieces is not told.
/// Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for a NULL handle.
@_cdecl("rt_websocket_on_piece")
public func rt_websocket_on_piece(
    _ websocket: rt_websocket?, _ fn: rt_websocket_piece_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return websocketCall(websocket) { (connection) throws(RealtimeError) in
        try connection.setPiece(box)
    }
}

/// Sets the callback for a connection that was lost or was not made. Unless the failure is fatal
/// another attempt follows; a connection that the peer closed in order is RT_ERROR_CLOSED then.
/// Without a network (`rt_websocket_set_reachability`) `retry_in_ms` is -1, the next attempt
/// follows within a second when there is one again, and nothing is counted: `attempt` is the number
/// of the one that was lost, 0 for the first connection. When the failure is fatal the close
/// callback follows. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for a NULL handle.
@_cdecl("rt_websocket_on_error")
public func rt_websocket_on_error(
    _ websocket: rt_websocket?, _ fn: rt_failure_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return websocketCall(websocket) { (connection) throws(RealtimeError) in
        try connection.setError(box)
    }
}

/// Sets the callback before each attempt after the first connection. Here its URL, headers and
/// network may be changed. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for a NULL handle.
@_cdecl("rt_websocket_on_reconnect")
public func rt_websocket_on_reconnect(
    _ websocket: rt_websocket?, _ fn: rt_attempt_fn?,
    _ user: UnsafeMutableRawPointer?, _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return websocketCall(websocket) { (connection) throws(RealtimeError) in
        try connection.setReconnect(box)
    }
}

/// Sets the callback for the end of the connection, which is the last callback. When the peer did
/// not answer our close frame within the close timeout `code` is 1006, without a failure.
/// Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for a NULL handle.
@_cdecl("rt_websocket_on_close")
public func rt_websocket_on_close(
    _ websocket: rt_websocket?, _ fn: rt_closed_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return websocketCall(websocket) { (connection) throws(RealtimeError) in
        try connection.setClose(box)
    }
}

/// Sets the callback for a send buffer that has emptied. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for a NULL handle.
@_cdecl("rt_websocket_on_drained")
public func rt_websocket_on_drained(
    _ websocket: rt_websocket?, _ fn: rt_websocket_drained_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return websocketCall(websocket) { (connection) throws(RealtimeError) in
        try connection.setDrained(box)
    }
}

/// Sets the callback for answered pings. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for a NULL handle.
@_cdecl("rt_websocket_on_pong")
public func rt_websocket_on_pong(
    _ websocket: rt_websocket?, _ fn: rt_websocket_pong_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return websocketCall(websocket) { (connection) throws(RealtimeError) in
        try connection.setPong(box)
    }
}
