public import CShims
import Engine
import Wire

// Chapter: blocking long poll. A call that waits, for programs without an event loop.

/// Waits for the next message and returns it. The first call starts the long poll. Without a
/// message callback, messages wait in a queue for this call; other callbacks are called as ever.
/// The queue holds 1,024 messages, or 8 MiB of them: then no more are delivered until half of them
/// are taken. The cursor counts a queued message as received. Failed polls are repeated, and the
/// call fails only once the long poll has ended. When several threads wait, each message goes to
/// one of them. Messages that were queued before the end, or before a callback was set, can still
/// be taken. Another thread must drive the loop; with the loop NULL the library's own does. Any
/// thread. Since 0.1.
/// - Parameter timeout_ms: how long to wait; 0 does not wait, -1 waits without limit.
/// - Parameter out: receives the message, to be freed with `rt_event_free`; unchanged on failure.
/// - Returns: RT_OK; RT_ERROR_TIMEOUT when no message came in time; RT_ERROR_CLOSED when the long
///   poll was closed or freed; otherwise the error that ended it, with RT_ERROR_CONNECTION_LOST in
///   the place of RT_ERROR_TIMEOUT; RT_ERROR_REENTRANT in a callback of its loop; RT_ERROR_STATE
///   when `rt_longpoll_start` started it, or when there is a message callback;
///   RT_ERROR_INVALID_ARGUMENT; RT_ERROR_FORKED.
@_cdecl("rt_longpoll_receive")
public func rt_longpoll_receive(
    _ longpoll: rt_longpoll?, _ timeout_ms: Int64,
    _ out: UnsafeMutablePointer<UnsafeMutablePointer<rt_event>?>?
) -> rt_status {
    border { () throws(RealtimeError) in
        let out = try required(out, "out")
        out.pointee = try LongPollConnection.borrow(longpoll)
            .receive(timeout: patience(timeout_ms))
    }
}
