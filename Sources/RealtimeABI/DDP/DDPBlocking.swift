public import CShims
import Engine
import Wire

// Chapter: blocking ddp. Calls that wait, for programs without an event loop. Another thread must
// drive the client's loop; the library's own loop (NULL) has such a thread. Callbacks are called as
// usual, on that thread. `rt_call_wait` waits for methods, logins and subscriptions,
// `rt_ddp_feed_receive` for changes.

/// Connects as `rt_ddp_start` does, and waits until the server has confirmed the connection. An
/// attempt that is being made continues. Any thread. Since 0.1.
/// - Parameter timeout_ms: -1 waits as long as the client tries.
/// - Returns: RT_OK, also if it is connected already; RT_ERROR_TIMEOUT if it is not connected in
///   time, while it keeps trying: the message names the last failure; RT_ERROR_CLOSED if it was
///   disconnected or freed; RT_ERROR_CANCELLED after `rt_ddp_interrupt`; RT_ERROR_REENTRANT;
///   RT_ERROR_STORE and RT_ERROR_INVALID_ARGUMENT as `rt_ddp_start`; RT_ERROR_FORKED; another error
///   if the client has failed for good.
@_cdecl("rt_ddp_connect")
public func rt_ddp_connect(_ ddp: rt_ddp?, _ timeout_ms: Int64) -> rt_status {
    border { () throws(RealtimeError) in
        try DDPConnection.borrow(ddp).connect(timeout: waitLimit(timeout_ms))
    }
}

/// Returns the outcome of a Meteor call; its `error` says why it failed. The value of a
/// subscription is null. It is valid until the call is freed. Any thread. Since 0.1.
/// - Returns: the outcome; NULL before the answer, and for other calls.
@_cdecl("rt_call_outcome")
public func rt_call_outcome(_ call: rt_call?) -> UnsafePointer<rt_ddp_outcome>? {
    guard let answer = (try? PendingCall.borrow(call))?.answer else { return nil }
    return UnsafePointer(answer.outcome)
}

/// Ends the `rt_ddp_connect` of other threads with RT_ERROR_CANCELLED. If none waits, the next one
/// that would wait ends at once. The connection stays as it is. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL; RT_ERROR_FORKED.
@_cdecl("rt_ddp_interrupt")
public func rt_ddp_interrupt(_ ddp: rt_ddp?) -> rt_status {
    border { () throws(RealtimeError) in try DDPConnection.borrow(ddp).interrupt() }
}
