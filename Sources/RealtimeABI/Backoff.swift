import Engine
import Session
import Wire

// Chapter: backoff. How often and how soon something that failed is tried again.

/// The delays between attempts: initial, initial · factor, initial · factor² … up to the maximum,
/// each spread by the jitter. Made once, it serves any number of objects: each copies what is set
/// when it is given to it, so that it may be changed or freed at once. One made with rt_backoff_new
/// can also count attempts of the caller's own (`rt_backoff_next_ms`). It belongs to no loop, and
/// to one thread at a time. Since 0.1.
public typealias rt_backoff = OpaquePointer

/// How delays are spread, so that the clients of a server that restarted do not all come back at
/// once; U is uniform in [0, 1). Since 0.1.
public typealias rt_jitter = Int32

/// Values of `rt_jitter`. Since 0.1.
public enum RT_JITTER: Int32 {
    /// The delay itself.
    case NONE = 0
    /// Half the delay, and U times the other half. The default.
    case EQUAL = 1
    /// U times the delay.
    case FULL = 2
    /// min(maximum, initial + U · (3 · previous − initial)).
    case DECORRELATED = 3
}

/// Makes a backoff with the defaults. Any thread. Since 0.1.
/// - Parameter out: receives it; to be freed with `rt_backoff_free`.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_backoff_new")
public func rt_backoff_new(_ out: UnsafeMutablePointer<rt_backoff?>?) -> rt_status {
    border { () throws(RealtimeError) in
        try required(out, "out").pointee = BackoffHandle.export(BackoffHandle())
    }
}

/// Gives a backoff back; what was made with it keeps what it copied. NULL is accepted. Any thread.
/// Since 0.1.
@_cdecl("rt_backoff_free")
public func rt_backoff_free(_ backoff: rt_backoff?) { BackoffHandle.release(backoff) { _ in } }

/// For attempts of the caller's own: counts a failure. Since 0.1.
/// - Parameter out: receives the delay before the next attempt in milliseconds.
/// - Returns: RT_OK; RT_ERROR_NOT_FOUND when there is to be no other attempt;
///   RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_backoff_next_ms")
public func rt_backoff_next_ms(
    _ backoff: rt_backoff?, _ out: UnsafeMutablePointer<Int64>?
) -> rt_status {
    border { () throws(RealtimeError) in
        let backoff = try BackoffHandle.borrow(backoff)
        try required(out, "out").pointee = try backoff.next()
    }
}

/// For attempts of the caller's own: forgets the failures counted. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_backoff_reset")
public func rt_backoff_reset(_ backoff: rt_backoff?) -> rt_status {
    border { () throws(RealtimeError) in try BackoffHandle.borrow(backoff).reset() }
}

/// What an object that is given a backoff copies; nil for NULL.
func backoffConfiguration(_ backoff: rt_backoff?) throws(RealtimeError) -> BackoffConfiguration? {
    guard let backoff else { return nil }
    return try BackoffHandle.borrow(backoff).configuration
}

/// Runs a change of a backoff's options.
func backoffOptions(
    _ backoff: rt_backoff?, _ body: (inout BackoffConfiguration) throws(RealtimeError) -> Void
) -> rt_status {
    border { () throws(RealtimeError) in try BackoffHandle.borrow(backoff).change(body) }
}
