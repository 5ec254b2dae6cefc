public import CShims
import Engine
import Wire

// Chapter: blocking pusher. Calls that wait, for programs without an event loop.

/// Connects as `rt_pusher_start` does, and waits until the server has confirmed the connection.
/// Call it again to wait for the next one after a loss. Callbacks are called as usual. Another
/// thread must drive the loop; the library's own loop (NULL) has such a thread. Any thread. Since
/// 0.1.
/// - Parameter timeout_ms: how long to wait; 0 does not wait, -1 waits as long as the connection
///   tries.
/// - Returns: RT_OK, also if it is connected already; RT_ERROR_TIMEOUT if it is not connected in
///   time, while it keeps trying; RT_ERROR_CLOSED if it was closed or freed; RT_ERROR_CANCELLED
///   after `rt_pusher_interrupt`; RT_ERROR_REENTRANT in a callback of its loop;
///   RT_ERROR_INVALID_URL and RT_ERROR_INVALID_ARGUMENT as `rt_pusher_start`; RT_ERROR_FORKED;
///   another error if no attempt follows.
@_cdecl("rt_pusher_connect")
public func rt_pusher_connect(_ pusher: rt_pusher?, _ timeout_ms: Int64) -> rt_status {
    border { () throws(RealtimeError) in
        try PusherConnection.borrow(pusher).connect(timeout: waitLimit(timeout_ms))
    }
}

/// Waits for the next event and returns it: of all channels, as `rt_pusher_on_events` receives
/// them. From the first call on, events are queued for this one; so make it before you connect, or
/// once with a timeout of 0, to miss none. The first call connects, unless `rt_pusher_start` or
/// `rt_pusher_connect` has. Functions that are bound, and other callbacks, are called as usual. The
/// queue holds 1,024 events, or 8 MiB of them. When it is full, nothing more is read until half of
/// them are taken. When several threads wait, each event goes to one of them. Another thread must
/// drive the loop; the library's own loop (NULL) has such a thread. Any thread. Since 0.1.
/// - Parameter timeout_ms: how long to wait; 0 does not wait, and may be used in callbacks; -1
///   waits without limit.
/// - Parameter out: receives the event, whose texts a NUL follows; free it with
///   `rt_pusher_event_free`. Unchanged on failure.
/// - Returns: RT_OK; RT_ERROR_TIMEOUT if no event came in time; RT_ERROR_CLOSED if the connection
///   was closed or freed; another error if no attempt follows; RT_ERROR_CANCELLED after
///   `rt_pusher_interrupt`; RT_ERROR_REENTRANT in a callback of its loop; RT_ERROR_INVALID_URL and
///   RT_ERROR_INVALID_ARGUMENT as `rt_pusher_start`; RT_ERROR_FORKED.
@_cdecl("rt_pusher_receive")
public func rt_pusher_receive(
    _ pusher: rt_pusher?, _ timeout_ms: Int64,
    _ out: UnsafeMutablePointer<UnsafeMutablePointer<rt_pusher_event>?>?
) -> rt_status {
    border { () throws(RealtimeError) in
        let out = try required(out, "out")
        out.pointee = try PusherConnection.borrow(pusher).receive(timeout: waitLimit(timeout_ms))
    }
}

/// Frees an event that `rt_pusher_receive` returned. NULL is accepted. Any thread. Since 0.1.
@_cdecl("rt_pusher_event_free")
public func rt_pusher_event_free(_ event: UnsafeMutablePointer<rt_pusher_event>?) {
    Inbox.free(event)
}

/// Takes all events that are there as one batch, up to `max`, and waits until there is one:
/// otherwise like `rt_pusher_receive`, at a lower cost for each. Any thread. Since 0.1.
/// - Parameter timeout_ms: as in `rt_pusher_receive`.
/// - Parameter max: at least 1.
/// - Parameter out: receives the batch; free it with `rt_pusher_batch_free`. Unchanged on failure.
/// - Returns: as `rt_pusher_receive`.
@_cdecl("rt_pusher_receive_batch")
public func rt_pusher_receive_batch(
    _ pusher: rt_pusher?, _ timeout_ms: Int64, _ max: Int,
    _ out: UnsafeMutablePointer<UnsafeMutablePointer<rt_pusher_batch>?>?
) -> rt_status {
    border { () throws(RealtimeError) in
        let out = try required(out, "out")
        out.pointee = try PusherConnection.borrow(pusher)
            .receiveBatch(timeout: waitLimit(timeout_ms), atMost: size(max, "max", atLeast: 1))
            .assumingMemoryBound(to: rt_pusher_batch.self)
    }
}

/// Frees a batch with all that is in it. NULL is accepted. Any thread. Since 0.1.
@_cdecl("rt_pusher_batch_free")
public func rt_pusher_batch_free(_ batch: UnsafeMutablePointer<rt_pusher_batch>?) {
    Inbox.free(batch: batch)
}

/// Ends `rt_pusher_connect` and `rt_pusher_receive` of other threads with RT_ERROR_CANCELLED. If
/// none of them waits, the next one that would wait ends at once. The connection stays as it is.
/// Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL; RT_ERROR_FORKED.
@_cdecl("rt_pusher_interrupt")
public func rt_pusher_interrupt(_ pusher: rt_pusher?) -> rt_status {
    border { () throws(RealtimeError) in try PusherConnection.borrow(pusher).interrupt() }
}
