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
    border { try required(out, "out").pointee = BackoffHandle.export(BackoffHandle()) }
}

/// Gives a backoff back; what was made with it keeps what it copied. NULL is accepted. Any thread.
/// Since 0.1.
@_cdecl("rt_backoff_free")
public func rt_backoff_free(_ backoff: rt_backoff?) { BackoffHandle.release(backoff) { _ in } }

/// The delay after the first failure. Default 1,000; 0 tries again at once. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT when negative or above a year.
@_cdecl("rt_backoff_set_initial_delay_ms")
public func rt_backoff_set_initial_delay_ms(
    _ backoff: rt_backoff?, _ delay_ms: Int64
) -> rt_status {
    change(backoff) { try $0.setInitial(milliseconds(delay_ms, "delay_ms")) }
}

/// The longest delay. Default 30,000. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT when negative or above a year.
@_cdecl("rt_backoff_set_max_delay_ms")
public func rt_backoff_set_max_delay_ms(
    _ backoff: rt_backoff?, _ delay_ms: Int64
) -> rt_status {
    change(backoff) { try $0.setMaximum(milliseconds(delay_ms, "delay_ms")) }
}

/// By how much each delay is longer than the one before. Default 2. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT outside 1 to 1,000.
@_cdecl("rt_backoff_set_factor")
public func rt_backoff_set_factor(_ backoff: rt_backoff?, _ factor: Double) -> rt_status {
    change(backoff) { try $0.setFactor(factor) }
}

/// How delays are spread. Default RT_JITTER_EQUAL. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for one that is not listed.
@_cdecl("rt_backoff_set_jitter")
public func rt_backoff_set_jitter(_ backoff: rt_backoff?, _ jitter: rt_jitter) -> rt_status {
    change(backoff) {
        $0.jitter = try named(
            jitter, "jitter",
            "RT_JITTER_NONE, RT_JITTER_EQUAL, RT_JITTER_FULL or RT_JITTER_DECORRELATED")
    }
}

/// How many attempts in a row may follow a failure. Default 0: no limit. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_backoff_set_max_attempts")
public func rt_backoff_set_max_attempts(_ backoff: rt_backoff?, _ count: UInt32) -> rt_status {
    change(backoff) { $0.attemptLimit = Int(count) }
}

/// How long a connection must last before attempts are counted anew. Default 10,000. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT when negative.
@_cdecl("rt_backoff_set_stable_time_ms")
public func rt_backoff_set_stable_time_ms(
    _ backoff: rt_backoff?, _ time_ms: Int64
) -> rt_status {
    change(backoff) { $0.stableTime = try milliseconds(time_ms, "time_ms") }
}

/// For attempts of the caller's own: counts a failure. Since 0.1.
/// - Parameter out: receives the delay before the next attempt in milliseconds.
/// - Returns: RT_OK; RT_ERROR_NOT_FOUND when there is to be no other attempt;
///   RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_backoff_next_ms")
public func rt_backoff_next_ms(
    _ backoff: rt_backoff?, _ out: UnsafeMutablePointer<Int64>?
) -> rt_status {
    border {
        let backoff = try BackoffHandle.borrow(backoff)
        try required(out, "out").pointee = try backoff.next()
    }
}

/// For attempts of the caller's own: forgets the failures counted. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_backoff_reset")
public func rt_backoff_reset(_ backoff: rt_backoff?) -> rt_status {
    border { try BackoffHandle.borrow(backoff).reset() }
}

/// What an object that is given a backoff copies; nil for NULL.
func backoffConfiguration(_ backoff: rt_backoff?) throws(RealtimeError) -> BackoffConfiguration? {
    guard let backoff else { return nil }
    return try BackoffHandle.borrow(backoff).configuration
}

private func change(
    _ backoff: rt_backoff?, _ body: (inout BackoffConfiguration) throws -> Void
) -> rt_status {
    border { try BackoffHandle.borrow(backoff).change(body) }
}
