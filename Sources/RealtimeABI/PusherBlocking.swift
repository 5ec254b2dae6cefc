import Engine
import Wire

// Chapter: blocking pusher. A call that waits, for programs without an event loop.

/// Connects as `rt_pusher_start` does, and waits until the server has confirmed the connection.
/// Call it again to wait for the next one after a loss. Callbacks are called as usual. Another
/// thread must drive the loop; the library's own loop (NULL) has such a thread. Any thread. Since
/// 0.1.
/// - Parameter timeout_ms: how long to wait; 0 does not wait, -1 waits as long as the connection
///   tries.
/// - Returns: RT_OK, also if it is connected already; RT_ERROR_TIMEOUT if it is not connected in
///   time, while it keeps trying; RT_ERROR_CLOSED if it was closed or freed; RT_ERROR_REENTRANT in
///   a callback of its loop; RT_ERROR_INVALID_URL and RT_ERROR_INVALID_ARGUMENT as
///   `rt_pusher_start`; RT_ERROR_FORKED; another error if no attempt follows.
@_cdecl("rt_pusher_connect")
public func rt_pusher_connect(_ pusher: rt_pusher?, _ timeout_ms: Int64) -> rt_status {
    border { () throws(RealtimeError) in
        try PusherConnection.borrow(pusher).connect(timeout: waitLimit(timeout_ms))
    }
}
