public import CShims
import Engine
import Wire

// Chapter: blocking websocket. Calls that wait, for programs without an event loop.

/// Starts the connection if necessary, and waits until it is open. Later calls wait while there is
/// no connection, for example before a reconnect. If this call starts the connection, its messages
/// are queued for `rt_websocket_receive`, unless there is a message callback; other callbacks are
/// called as usual. Another thread must drive the loop; the library's own loop (NULL) has such a
/// thread. Any thread. Since 0.1.
/// - Parameter timeout_ms: how long to wait; -1 waits as long as the connection tries, which
///   `rt_websocket_set_open_timeout_ms` limits.
/// - Returns: RT_OK; RT_ERROR_TIMEOUT if it is not open in time, while it keeps trying;
///   RT_ERROR_CLOSED if it was closed or freed; RT_ERROR_CANCELLED after `rt_websocket_interrupt`;
///   RT_ERROR_REENTRANT in a callback of its loop; RT_ERROR_INVALID_ARGUMENT below -1;
///   RT_ERROR_FORKED; another error if the connection failed for good.
@_cdecl("rt_websocket_connect")
public func rt_websocket_connect(_ websocket: rt_websocket?, _ timeout_ms: Int64) -> rt_status {
    border { () throws(RealtimeError) in
        try WebSocketConnection.borrow(websocket).connect(timeout: waitLimit(timeout_ms))
    }
}

/// Waits for the next message of a connection that `rt_websocket_connect` opened, and returns it.
/// The queue holds 1,024 messages, or 8 MiB of them. When it is full, nothing more is read, which
/// slows the peer down, until half of them are taken. Pings are not answered meanwhile either: a
/// server that insists on pongs closes the connection. When several threads wait, each message goes
/// to one of them. Messages that were queued before the end, or before a callback was set, can
/// still be taken. Any thread. Since 0.1.
/// - Parameter timeout_ms: how long to wait; 0 does not wait, and may be used in callbacks; -1
///   waits without limit.
/// - Parameter out: receives the message; free it with `rt_received_free`. Unchanged on failure.
/// - Returns: RT_OK; RT_ERROR_TIMEOUT if no message came in time; RT_ERROR_CLOSED if the connection
///   was closed in order or freed; otherwise the error that ended it, with RT_ERROR_CONNECTION_LOST
///   instead of RT_ERROR_TIMEOUT; RT_ERROR_CANCELLED after `rt_websocket_interrupt`;
///   RT_ERROR_REENTRANT in a callback of its loop; RT_ERROR_STATE without `rt_websocket_connect`,
///   or if there is a message callback; RT_ERROR_INVALID_ARGUMENT; RT_ERROR_FORKED.
@_cdecl("rt_websocket_receive")
public func rt_websocket_receive(
    _ websocket: rt_websocket?, _ timeout_ms: Int64,
    _ out: UnsafeMutablePointer<UnsafeMutablePointer<rt_received>?>?
) -> rt_status {
    border { () throws(RealtimeError) in
        let out = try required(out, "out")
        out.pointee = try WebSocketConnection.borrow(websocket)
            .receive(timeout: waitLimit(timeout_ms))
    }
}

/// Frees a received message. NULL is accepted. Any thread. Since 0.1.
@_cdecl("rt_received_free")
public func rt_received_free(_ received: UnsafeMutablePointer<rt_received>?) {
    Inbox.free(received)
}

/// Takes all messages that are there as one batch, up to `max`, and waits until there is one:
/// otherwise like `rt_websocket_receive`, at a lower cost for each. Any thread. Since 0.1.
/// - Parameter timeout_ms: as in `rt_websocket_receive`.
/// - Parameter max: at least 1.
/// - Parameter out: receives the batch; free it with `rt_received_batch_free`. Unchanged on
///   failure.
/// - Returns: as `rt_websocket_receive`.
@_cdecl("rt_websocket_receive_batch")
public func rt_websocket_receive_batch(
    _ websocket: rt_websocket?, _ timeout_ms: Int64, _ max: Int,
    _ out: UnsafeMutablePointer<UnsafeMutablePointer<rt_received_batch>?>?
) -> rt_status {
    border { () throws(RealtimeError) in
        let out = try required(out, "out")
        out.pointee = try WebSocketConnection.borrow(websocket)
            .receiveBatch(timeout: waitLimit(timeout_ms), atMost: size(max, "max", atLeast: 1))
            .assumingMemoryBound(to: rt_received_batch.self)
    }
}

/// Frees a batch with all that is in it. NULL is accepted. Any thread. Since 0.1.
@_cdecl("rt_received_batch_free")
public func rt_received_batch_free(_ batch: UnsafeMutablePointer<rt_received_batch>?) {
    Inbox.free(batch: batch)
}

/// Ends `rt_websocket_connect` and `rt_websocket_receive` of other threads with RT_ERROR_CANCELLED.
/// If none of them waits, the next one that would wait ends at once. The connection stays as it is.
/// Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL; RT_ERROR_FORKED.
@_cdecl("rt_websocket_interrupt")
public func rt_websocket_interrupt(_ websocket: rt_websocket?) -> rt_status {
    border { () throws(RealtimeError) in try WebSocketConnection.borrow(websocket).interrupt() }
}
