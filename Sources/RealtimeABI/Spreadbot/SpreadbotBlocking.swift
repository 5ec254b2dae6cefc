public import CShims
import Engine
import Wire

// Chapter: blocking spreadbot. Calls that wait, for programs without an event loop.

/// Connects to a path as `rt_spreadbot_start` does, and waits until it is connected. From the first
/// call on, messages are queued for `rt_spreadbot_receive`, unless there is a message callback;
/// other callbacks are called as usual. Another thread must drive the loop; the library's own loop
/// (NULL) has such a thread. Any thread. Since 0.1.
/// - Parameter path: as in `rt_spreadbot_start`.
/// - Parameter timeout_ms: how long to wait; -1 waits as long as the connection tries.
/// - Returns: RT_OK; RT_ERROR_TIMEOUT if it is not connected in time, while it keeps trying;
///   RT_ERROR_CLOSED if it was disconnected or freed; RT_ERROR_CANCELLED after
///   `rt_spreadbot_interrupt`; RT_ERROR_REENTRANT in a callback of its loop; RT_ERROR_INVALID_URL;
///   RT_ERROR_INVALID_UTF8; RT_ERROR_INVALID_ARGUMENT; RT_ERROR_FORKED; otherwise the error that
///   ended the connection.
@_cdecl("rt_spreadbot_connect")
public func rt_spreadbot_connect(
    _ spreadbot: rt_spreadbot?, _ path: UnsafePointer<CChar>?, _ timeout_ms: Int64
) -> rt_status {
    border { () throws(RealtimeError) in
        try SpreadbotConnection.borrow(spreadbot)
            .connect(path: text(path, "path"), timeout: waitLimit(timeout_ms))
    }
}

/// Waits for the next message of a connection that `rt_spreadbot_connect` established, and returns
/// it. A lost transport is replaced; the call fails only once the connection has ended. Any thread.
///
/// The queue holds 1,024 messages, or 8 MiB of them. When it is full, delivery stops, as after
/// `rt_spreadbot_pause`, until half of them are taken. The cursor counts a queued message as
/// received. When several threads wait, each message goes to one of them. Messages that were queued
/// before the end, before a callback was set, or for an earlier path, can still be taken. Since
/// 0.1.
/// - Parameter timeout_ms: how long to wait; 0 does not wait, and may be used in callbacks; -1
///   waits without limit.
/// - Parameter out: receives the message; free it with `rt_event_free`. Unchanged on failure.
/// - Returns: RT_OK; RT_ERROR_TIMEOUT if no message came in time; RT_ERROR_CLOSED if it was
///   disconnected or freed; otherwise the error that ended it, with RT_ERROR_CONNECTION_LOST
///   instead of RT_ERROR_TIMEOUT; RT_ERROR_CANCELLED after `rt_spreadbot_interrupt`;
///   RT_ERROR_REENTRANT in a callback of its loop; RT_ERROR_STATE without `rt_spreadbot_connect`,
///   or if there is a message callback; RT_ERROR_INVALID_ARGUMENT; RT_ERROR_FORKED.
@_cdecl("rt_spreadbot_receive")
public func rt_spreadbot_receive(
    _ spreadbot: rt_spreadbot?, _ timeout_ms: Int64,
    _ out: UnsafeMutablePointer<UnsafeMutablePointer<rt_event>?>?
) -> rt_status {
    border { () throws(RealtimeError) in
        let out = try required(out, "out")
        out.pointee = try SpreadbotConnection.borrow(spreadbot)
            .receive(timeout: waitLimit(timeout_ms))
    }
}

/// Takes all messages that are there as one batch, up to `max`, and waits until there is one:
/// otherwise like `rt_spreadbot_receive`, at a lower cost for each. Any thread. Since 0.1.
/// - Parameter timeout_ms: as in `rt_spreadbot_receive`.
/// - Parameter max: at least 1.
/// - Parameter out: receives the batch; free it with `rt_event_batch_free`. Unchanged on failure.
/// - Returns: as `rt_spreadbot_receive`.
@_cdecl("rt_spreadbot_receive_batch")
public func rt_spreadbot_receive_batch(
    _ spreadbot: rt_spreadbot?, _ timeout_ms: Int64, _ max: Int,
    _ out: UnsafeMutablePointer<UnsafeMutablePointer<rt_event_batch>?>?
) -> rt_status {
    border { () throws(RealtimeError) in
        let out = try required(out, "out")
        out.pointee = try SpreadbotConnection.borrow(spreadbot)
            .receiveBatch(timeout: waitLimit(timeout_ms), atMost: size(max, "max", atLeast: 1))
            .assumingMemoryBound(to: rt_event_batch.self)
    }
}

/// Ends `rt_spreadbot_connect` and `rt_spreadbot_receive` of other threads with RT_ERROR_CANCELLED.
/// If none of them waits, the next one that would wait ends at once. The connection stays as it is.
/// Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL; RT_ERROR_FORKED.
@_cdecl("rt_spreadbot_interrupt")
public func rt_spreadbot_interrupt(_ spreadbot: rt_spreadbot?) -> rt_status {
    border { () throws(RealtimeError) in try SpreadbotConnection.borrow(spreadbot).interrupt() }
}
