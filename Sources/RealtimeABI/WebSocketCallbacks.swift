import Engine
import Session
import Wire

// Chapter: websocket callbacks. All are set before rt_websocket_start; NULL takes one away.

/// Sets the callback for the opened connection. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE after start.
@_cdecl("rt_websocket_on_open")
public func rt_websocket_on_open(
    _ websocket: rt_websocket?, _ fn: rt_websocket_open_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return connection(websocket) { try $0.setOpen(box) }
}

/// Sets the callback for single messages; takes the other message callbacks' place. Before start.
/// Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE after start.
@_cdecl("rt_websocket_on_message")
public func rt_websocket_on_message(
    _ websocket: rt_websocket?, _ fn: rt_websocket_message_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return connection(websocket) { try $0.setMessage(box) }
}

/// Sets the callback for all messages of one read together, for runtimes where each call costs;
/// takes the other message callbacks' place. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE after start.
@_cdecl("rt_websocket_on_messages")
public func rt_websocket_on_messages(
    _ websocket: rt_websocket?, _ fn: rt_websocket_messages_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return connection(websocket) { try $0.setMessages(box) }
}

/// Sets the callback for messages in pieces as they come, for those larger than memory should hold;
/// takes the other message callbacks' place. `max_message_bytes` does not count then. Before start.
/// Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE after start.
@_cdecl("rt_websocket_on_piece")
public func rt_websocket_on_piece(
    _ websocket: rt_websocket?, _ fn: rt_websocket_piece_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return connection(websocket) { try $0.setPiece(box) }
}

/// Sets the callback for a failure. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE after start.
@_cdecl("rt_websocket_on_error")
public func rt_websocket_on_error(
    _ websocket: rt_websocket?, _ fn: rt_websocket_error_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return connection(websocket) { try $0.setError(box) }
}

/// Sets the callback for a refused handshake. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE after start.
@_cdecl("rt_websocket_on_refused")
public func rt_websocket_on_refused(
    _ websocket: rt_websocket?, _ fn: rt_websocket_refused_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return connection(websocket) { try $0.setRefused(box) }
}

/// Sets the callback for a connection that is lost and will be made again. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE after start.
@_cdecl("rt_websocket_on_lost")
public func rt_websocket_on_lost(
    _ websocket: rt_websocket?, _ fn: rt_websocket_lost_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return connection(websocket) { try $0.setLost(box) }
}

/// Sets the callback before each further attempt. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE after start.
@_cdecl("rt_websocket_on_reconnect")
public func rt_websocket_on_reconnect(
    _ websocket: rt_websocket?, _ fn: rt_websocket_reconnect_fn?,
    _ user: UnsafeMutableRawPointer?, _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return connection(websocket) { try $0.setReconnect(box) }
}

/// Sets the callback for the end of the connection. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE after start.
@_cdecl("rt_websocket_on_close")
public func rt_websocket_on_close(
    _ websocket: rt_websocket?, _ fn: rt_websocket_close_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return connection(websocket) { try $0.setClose(box) }
}

/// Sets the callback for a send buffer that has emptied. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE after start.
@_cdecl("rt_websocket_on_drained")
public func rt_websocket_on_drained(
    _ websocket: rt_websocket?, _ fn: rt_websocket_drained_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return connection(websocket) { try $0.setDrained(box) }
}

/// Sets the callback for answered pings. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE after start.
@_cdecl("rt_websocket_on_pong")
public func rt_websocket_on_pong(
    _ websocket: rt_websocket?, _ fn: rt_websocket_pong_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return connection(websocket) { try $0.setPong(box) }
}
