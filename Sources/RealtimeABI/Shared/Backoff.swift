import Engine
import Session
import Wire

// Chapter: backoff. How often and how soon failed operations are retried.
//
//     rt_backoff *backoff;
//     rt_websocket *websocket;
//     rt_backoff_new(&backoff);
//     rt_backoff_set_max_delay_ms(backoff, 60000);
//     rt_websocket_new(NULL, "wss://example.org/", &websocket);
//     rt_websocket_set_reconnect(websocket, backoff);  // copied
//     rt_websocket_free(websocket);
//     rt_backoff_free(backoff);

/// The delays between attempts: initial, initial · factor, initial · factor² … up to the maximum,
/// each randomized by the jitter. One backoff can serve any number of objects: each copies the
/// settings when it receives the backoff, so it may be changed or freed right after. A program can
/// also use a backoff for its own retries (`rt_backoff_next_ms`). It belongs to no loop. Only one
/// thread at a time may use it. Since 0.1.
public typealias rt_backoff = OpaquePointer

/// How delays are randomized, so that the clients of a restarted server do not all reconnect at the
/// same time. U is uniform in [0, 1). Since 0.1.
public typealias rt_jitter = Int32

/// Values of `rt_jitter`. Since 0.1.
public enum RT_JITTER: Int32 {
    /// The delay itself.
    case NONE = 0
    /// Half the delay plus U times the other half. The default.
    case EQUAL = 1
    /// U times the delay.
    case FULL = 2
    /// min(maximum, initial + U · (3 · previous − initial)).
    case DECORRELATED = 3
}

/// Creates a backoff with the defaults. Any thread. Since 0.1.
/// - Parameter out: receives the backoff; free it with `rt_backoff_free`.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_backoff_new")
public func rt_backoff_new(_ out: UnsafeMutablePointer<rt_backoff?>?) -> rt_status {
    border { () throws(RealtimeError) in
        try required(out, "out").pointee = BackoffHandle.export(BackoffHandle())
    }
}

/// Frees a backoff. Objects that received it keep their copy. NULL is accepted. Any thread. Since
/// 0.1.
@_cdecl("rt_backoff_free")
public func rt_backoff_free(_ backoff: rt_backoff?) { BackoffHandle.release(backoff) { _ in } }

/// For the program's own retries: counts a failure and returns the next delay. Since 0.1.
/// - Parameter out: receives the delay before the next attempt in milliseconds.
/// - Returns: RT_OK; RT_ERROR_NOT_FOUND if no attempt is left; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_backoff_next_ms")
public func rt_backoff_next_ms(
    _ backoff: rt_backoff?, _ out: UnsafeMutablePointer<Int64>?
) -> rt_status {
    border { () throws(RealtimeError) in
        let backoff = try BackoffHandle.borrow(backoff)
        try required(out, "out").pointee = try backoff.next()
    }
}

/// For the program's own retries: resets the failure count. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_backoff_reset")
public func rt_backoff_reset(_ backoff: rt_backoff?) -> rt_status {
    border { () throws(RealtimeError) in try BackoffHandle.borrow(backoff).reset() }
}

/// The configuration of a backoff handle; nil for NULL.
func backoffConfiguration(_ backoff: rt_backoff?) throws(RealtimeError) -> BackoffConfiguration? {
    guard let backoff else { return nil }
    return try BackoffHandle.borrow(backoff).configuration
}

/// Changes a backoff's options.
func backoffOptions(
    _ backoff: rt_backoff?, _ body: (inout BackoffConfiguration) throws(RealtimeError) -> Void
) -> rt_status {
    border { () throws(RealtimeError) in try BackoffHandle.borrow(backoff).change(body) }
}
