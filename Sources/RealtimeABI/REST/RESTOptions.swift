import Engine
import Session
import Wire

// Chapter: rest options. They apply to all requests of a client; most can also be set for a single
// request. All are set before the first request is sent.

/// Which requests are sent one at a time, in the order of submission. Since 0.1.
public typealias rt_rest_order = Int32

/// Values of `rt_rest_order`. Since 0.1.
public enum RT_REST_ORDER: Int32 {
    /// All but GET and HEAD. The default.
    case AUTOMATIC = 0
    /// All.
    case ALWAYS = 1
    /// None.
    case NEVER = 2
}

/// Which request fails when the queue is full. Since 0.1.
public typealias rt_rest_overflow = Int32

/// Values of `rt_rest_overflow`. Since 0.1.
public enum RT_REST_OVERFLOW: Int32 {
    /// The new one. The default.
    case REJECT_NEW = 0
    /// The one that has waited longest.
    case DROP_OLDEST = 1
}

func restOptions(
    _ rest: rt_rest?, once: Bool = false,
    _ body: (inout RESTConfiguration) throws(RealtimeError) -> Void
) -> rt_status {
    restCall(rest) { (client) throws(RealtimeError) in try client.configure(once: once, body) }
}
