public import CShims
import Engine
import Wire

// Chapter: blocking spreadbot. Calls that wait, for programs without an event loop.

/// Connects to a path, as `rt_spreadbot_establish` does, and waits until it is connected. From the
/// first call on, messages wait in a queue for `rt_spreadbot_receive`, unless there is a message
/// callback; other callbacks are called as ever. Another thread must drive the loop; with the loop
/// NULL the library's own does. Any thread. Since 0.1.
/// - Parameter path: as in `rt_spreadbot_establish`.
/// - Parameter timeout_ms: how long to wait; -1 waits as long as the connection is tried.
/// - Returns: RT_OK; RT_ERROR_TIMEOUT when it is not connected in time; it keeps trying; the
///   error that ended it; RT_ERROR_CLOSED when it was disconnected or freed; RT_ERROR_REENTRANT in
///   a callback of its loop; RT_ERROR_INVALID_URL; RT_ERROR_INVALID_UTF8;
///   RT_ERROR_INVALID_ARGUMENT; RT_ERROR_FORKED.
@_cdecl("rt_spreadbot_connect")
public func rt_spreadbot_connect(
    _ spreadbot: rt_spreadbot?, _ path: UnsafePointer<CChar>?, _ timeout_ms: Int64
) -> rt_status {
    border { () throws(RealtimeError) in
        try SpreadbotConnection.borrow(spreadbot)
            .connect(path: text(path, "path"), timeout: patience(timeout_ms))
    }
}

/// Waits for the next message of a connection that `rt_spreadbot_connect` made, and returns it. The
/// queue holds 1,024 messages, or 8 MiB of them: then delivery stops, as after
/// `rt_spreadbot_pause`, until half of them are taken. The cursor counts a queued message as
/// received. A transport that is lost is replaced, and the call fails only once the connection has
/// ended. When several threads wait, each message goes to one of them. Messages that were queued
/// before the end, before a callback was set, or of an earlier path, can still be taken. Any
/// thread. Since 0.1.
/// - Parameter timeout_ms: how long to wait; 0 does not wait, -1 waits without limit.
/// - Parameter out: receives the message, to be freed with `rt_event_free`; unchanged on failure.
/// - Returns: RT_OK; RT_ERROR_TIMEOUT when no message came in time; RT_ERROR_CLOSED when it was
///   disconnected or freed; otherwise the error that ended it, with RT_ERROR_CONNECTION_LOST in the
///   place of RT_ERROR_TIMEOUT; RT_ERROR_REENTRANT in a callback of its loop; RT_ERROR_STATE
///   without `rt_spreadbot_connect`, or when there is a message callback;
///   RT_ERROR_INVALID_ARGUMENT; RT_ERROR_FORKED.
@_cdecl("rt_spreadbot_receive")
public func rt_spreadbot_receive(
    _ spreadbot: rt_spreadbot?, _ timeout_ms: Int64,
    _ out: UnsafeMutablePointer<UnsafeMutablePointer<rt_event>?>?
) -> rt_status {
    border { () throws(RealtimeError) in
        let out = try required(out, "out")
        out.pointee = try SpreadbotConnection.borrow(spreadbot)
            .receive(timeout: patience(timeout_ms))
    }
}
