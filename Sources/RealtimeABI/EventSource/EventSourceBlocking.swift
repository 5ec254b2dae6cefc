public import CShims
import Engine
import Wire

// Chapter: blocking eventsource. Calls that wait, for programs without an event loop.

/// Starts the event source if necessary, and waits until its stream is open; a later call, until it
/// is open again, for example after a reconnect. If this call starts the event source, its events
/// are queued for `rt_eventsource_receive`. Another thread must drive the loop; the library's own
/// loop (NULL) has such a thread. Any thread. Since 0.1.
/// - Parameter timeout_ms: how long to wait; 0 does not wait, -1 waits as long as the event source
///   tries.
/// - Returns: RT_OK; RT_ERROR_TIMEOUT if the stream is not open in time, while the event source
///   keeps trying; RT_ERROR_CLOSED if it was closed or freed; RT_ERROR_CANCELLED after
///   `rt_eventsource_interrupt`; RT_ERROR_REENTRANT in a callback of its loop;
///   RT_ERROR_INVALID_ARGUMENT; RT_ERROR_FORKED; another error if the event source failed for good.
@_cdecl("rt_eventsource_connect")
public func rt_eventsource_connect(
    _ eventsource: rt_eventsource?, _ timeout_ms: Int64
) -> rt_status {
    border { () throws(RealtimeError) in
        try EventSourceConnection.borrow(eventsource).connect(timeout: waitLimit(timeout_ms))
    }
}

/// Waits for the next event and returns it. The first call starts the event source, unless
/// `rt_eventsource_connect` has. It reconnects by itself; the call fails only once the event source
/// has ended. Another thread must drive the loop; the library's own loop (NULL) has such a thread.
/// Any thread.
///
/// Events that have neither a callback nor a listener are queued for this call; other callbacks are
/// called as usual. The queue holds 1,024 events, or 8 MiB of them. When it is full, nothing more
/// is read, which slows the server down, until half of them are taken. When several threads wait,
/// each event goes to one of them. Events that were queued before the end, or before a callback was
/// set, can still be taken. An id is stored (`rt_eventsource_set_id_file`) when its event is
/// queued, or, with `rt_eventsource_set_confirms_ids`, when it is confirmed. Since 0.1.
/// - Parameter timeout_ms: how long to wait; 0 does not wait, and may be used in callbacks; -1
///   waits without limit.
/// - Parameter out: receives the event; free it with `rt_event_free`. Unchanged on failure.
/// - Returns: RT_OK; RT_ERROR_TIMEOUT if no event came in time; RT_ERROR_CLOSED if the event source
///   was closed or freed; otherwise the error that ended it, with RT_ERROR_CONNECTION_LOST instead
///   of RT_ERROR_TIMEOUT; RT_ERROR_CANCELLED after `rt_eventsource_interrupt`; RT_ERROR_REENTRANT
///   in a callback of its loop; RT_ERROR_STATE if `rt_eventsource_start` started it, or if
///   `rt_eventsource_on_any` has set a callback; RT_ERROR_INVALID_ARGUMENT; RT_ERROR_FORKED.
@_cdecl("rt_eventsource_receive")
public func rt_eventsource_receive(
    _ eventsource: rt_eventsource?, _ timeout_ms: Int64,
    _ out: UnsafeMutablePointer<UnsafeMutablePointer<rt_event>?>?
) -> rt_status {
    border { () throws(RealtimeError) in
        let out = try required(out, "out")
        out.pointee = try EventSourceConnection.borrow(eventsource)
            .receive(timeout: waitLimit(timeout_ms))
    }
}

/// Frees an event or message that a call returned. NULL is accepted. Any thread. Since 0.1.
@_cdecl("rt_event_free")
public func rt_event_free(_ event: UnsafeMutablePointer<rt_event>?) { Inbox.free(event) }

/// Takes all events that are there as one batch, up to `max`, and waits until there is one:
/// otherwise like `rt_eventsource_receive`, at a lower cost for each. Any thread. Since 0.1.
/// - Parameter timeout_ms: as in `rt_eventsource_receive`.
/// - Parameter max: at least 1.
/// - Parameter out: receives the batch; free it with `rt_event_batch_free`. Unchanged on failure.
/// - Returns: as `rt_eventsource_receive`.
@_cdecl("rt_eventsource_receive_batch")
public func rt_eventsource_receive_batch(
    _ eventsource: rt_eventsource?, _ timeout_ms: Int64, _ max: Int,
    _ out: UnsafeMutablePointer<UnsafeMutablePointer<rt_event_batch>?>?
) -> rt_status {
    border { () throws(RealtimeError) in
        let out = try required(out, "out")
        out.pointee = try EventSourceConnection.borrow(eventsource)
            .receiveBatch(timeout: waitLimit(timeout_ms), atMost: size(max, "max", atLeast: 1))
            .assumingMemoryBound(to: rt_event_batch.self)
    }
}

/// Frees a batch with all that is in it. NULL is accepted. Any thread. Since 0.1.
@_cdecl("rt_event_batch_free")
public func rt_event_batch_free(_ batch: UnsafeMutablePointer<rt_event_batch>?) {
    Inbox.free(batch: batch)
}

/// Ends `rt_eventsource_connect` and `rt_eventsource_receive` of other threads with
/// RT_ERROR_CANCELLED. If none of them waits, the next one that would wait ends at once. The
/// connection stays as it is. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL; RT_ERROR_FORKED.
@_cdecl("rt_eventsource_interrupt")
public func rt_eventsource_interrupt(_ eventsource: rt_eventsource?) -> rt_status {
    border { () throws(RealtimeError) in try EventSourceConnection.borrow(eventsource).interrupt() }
}
