public import CShims
import Engine
import Wire

// Chapter: blocking long poll. Calls that wait, for programs without an event loop.

/// Starts the long poll if necessary, and waits until the server answers polls. Later calls wait
/// while it does not, for example before a retry. If this call starts the long poll, its messages
/// are queued for `rt_longpoll_receive`. Another thread must drive the loop; the library's own loop
/// (NULL) has such a thread. Any thread. Since 0.1.
/// - Parameter timeout_ms: how long to wait; 0 does not wait, -1 waits as long as the long poll
///   tries.
/// - Returns: RT_OK; RT_ERROR_TIMEOUT if the server has not answered in time, while the long poll
///   keeps trying; RT_ERROR_CLOSED if it was closed or freed; RT_ERROR_CANCELLED after
///   `rt_longpoll_interrupt`; RT_ERROR_REENTRANT in a callback of its loop;
///   RT_ERROR_INVALID_ARGUMENT, also for a last event id that does not fit the cursor;
///   RT_ERROR_FORKED; another error if the long poll failed for good.
@_cdecl("rt_longpoll_connect")
public func rt_longpoll_connect(_ longpoll: rt_longpoll?, _ timeout_ms: Int64) -> rt_status {
    border { () throws(RealtimeError) in
        try LongPollConnection.borrow(longpoll).connect(timeout: waitLimit(timeout_ms))
    }
}

/// Waits for the next message and returns it. The first call starts the long poll, unless
/// `rt_longpoll_connect` has. Failed polls are repeated; the call fails only once the long poll has
/// ended. Another thread must drive the loop; the library's own loop (NULL) has such a thread. Any
/// thread.
///
/// Without a message callback, messages are queued for this call; other callbacks are called as
/// usual. The queue holds 1,024 messages, or 8 MiB of them. When it is full, no more are delivered
/// until half of them are taken. The cursor counts a queued message as received. When several
/// threads wait, each message goes to one of them. Messages that were queued before the end, or
/// before a callback was set, can still be taken. Since 0.1.
/// - Parameter timeout_ms: how long to wait; 0 does not wait, and may be used in callbacks; -1
///   waits without limit.
/// - Parameter out: receives the message; free it with `rt_event_free`. Unchanged on failure.
/// - Returns: RT_OK; RT_ERROR_TIMEOUT if no message came in time; RT_ERROR_CLOSED if the long poll
///   was closed or freed; otherwise the error that ended it, with RT_ERROR_CONNECTION_LOST instead
///   of RT_ERROR_TIMEOUT; RT_ERROR_CANCELLED after `rt_longpoll_interrupt`; RT_ERROR_REENTRANT in a
///   callback of its loop; RT_ERROR_STATE if `rt_longpoll_start` started it, or if there is a
///   message callback; RT_ERROR_INVALID_ARGUMENT; RT_ERROR_FORKED.
@_cdecl("rt_longpoll_receive")
public func rt_longpoll_receive(
    _ longpoll: rt_longpoll?, _ timeout_ms: Int64,
    _ out: UnsafeMutablePointer<UnsafeMutablePointer<rt_event>?>?
) -> rt_status {
    border { () throws(RealtimeError) in
        let out = try required(out, "out")
        out.pointee = try LongPollConnection.borrow(longpoll)
            .receive(timeout: waitLimit(timeout_ms))
    }
}

/// Takes all messages that are there as one batch, up to `max`, and waits until there is one:
/// otherwise like `rt_longpoll_receive`, at a lower cost for each. Any thread. Since 0.1.
/// - Parameter timeout_ms: as in `rt_longpoll_receive`.
/// - Parameter max: at least 1.
/// - Parameter out: receives the batch; free it with `rt_event_batch_free`. Unchanged on failure.
/// - Returns: as `rt_longpoll_receive`.
@_cdecl("rt_longpoll_receive_batch")
public func rt_longpoll_receive_batch(
    _ longpoll: rt_longpoll?, _ timeout_ms: Int64, _ max: Int,
    _ out: UnsafeMutablePointer<UnsafeMutablePointer<rt_event_batch>?>?
) -> rt_status {
    border { () throws(RealtimeError) in
        let out = try required(out, "out")
        out.pointee = try LongPollConnection.borrow(longpoll)
            .receiveBatch(timeout: waitLimit(timeout_ms), atMost: size(max, "max", atLeast: 1))
            .assumingMemoryBound(to: rt_event_batch.self)
    }
}

/// Ends `rt_longpoll_connect` and `rt_longpoll_receive` of other threads with RT_ERROR_CANCELLED.
/// If none of them waits, the next one that would wait ends at once. The connection stays as it is.
/// Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL; RT_ERROR_FORKED.
@_cdecl("rt_longpoll_interrupt")
public func rt_longpoll_interrupt(_ longpoll: rt_longpoll?) -> rt_status {
    border { () throws(RealtimeError) in try LongPollConnection.borrow(longpoll).interrupt() }
}
