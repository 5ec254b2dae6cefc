public import CShims
import Engine
import Wire

// Chapter: blocking websocket. Calls that wait, for programs without an event loop.

/// Starts a connection and waits until it is open. Called again, it waits while there is no
/// connection, as before a reconnect. Messages wait for `rt_websocket_receive`, unless there is a
/// callback for them; the other callbacks are called as ever. Another thread must drive the loop,
/// as that of a connection made with the loop NULL does. Any thread. Since 0.1.
/// - Parameter timeout_ms: how long to wait; -1 waits as long as the connection tries, which
///   `rt_websocket_set_open_timeout_ms` limits.
/// - Returns: RT_OK; RT_ERROR_TIMEOUT when it is not open in time; it keeps trying; another error
///   when it did not open, and will not; RT_ERROR_CLOSED when it was closed or freed;
///   RT_ERROR_REENTRANT in a callback of its loop; RT_ERROR_STATE when it was started by
///   `rt_websocket_start`; RT_ERROR_INVALID_ARGUMENT below -1; RT_ERROR_FORKED.
@_cdecl("rt_websocket_connect")
public func rt_websocket_connect(_ websocket: rt_websocket?, _ timeout_ms: Int64) -> rt_status {
    border { () throws(RealtimeError) in
        try WebSocketConnection.borrow(websocket).connect(timeout: patience(timeout_ms))
    }
}

/// Takes the next message of a connection that `rt_websocket_connect` opened, and waits until there
/// is one. 1,024 messages may wait, or 8 MiB of them: then nothing more is read, and the peer is
/// slowed down, until half of them are taken. Pings are not answered meanwhile either: a server
/// that insists on pongs closes the connection. Several threads may wait, and each message goes to
/// one. What came before the end, or before there was a callback for messages, can be taken after
/// it. Any thread. Since 0.1.
/// - Parameter timeout_ms: how long to wait; 0 takes what is there, -1 waits without limit.
/// - Parameter out: receives the message, to be freed with `rt_received_free`; unchanged when there
///   is none.
/// - Returns: RT_OK; RT_ERROR_TIMEOUT when no message came in time; RT_ERROR_CLOSED when the
///   connection was closed in order, or freed meanwhile; why it failed, where RT_ERROR_TIMEOUT is
///   RT_ERROR_CONNECTION_LOST; RT_ERROR_REENTRANT in a callback of its loop; RT_ERROR_STATE without
///   `rt_websocket_connect`, or with a callback for messages; RT_ERROR_INVALID_ARGUMENT;
///   RT_ERROR_FORKED.
@_cdecl("rt_websocket_receive")
public func rt_websocket_receive(
    _ websocket: rt_websocket?, _ timeout_ms: Int64,
    _ out: UnsafeMutablePointer<UnsafeMutablePointer<rt_received>?>?
) -> rt_status {
    border { () throws(RealtimeError) in
        let out = try required(out, "out")
        out.pointee = try WebSocketConnection.borrow(websocket)
            .receive(timeout: patience(timeout_ms))
    }
}

/// Gives a received message back. NULL is accepted. Any thread. Since 0.1.
@_cdecl("rt_received_free")
public func rt_received_free(_ received: UnsafeMutablePointer<rt_received>?) {
    Inbox.free(received)
}
