import Engine
import Session
import Wire

// Chapter: rest options. They hold for all requests of a client, and most can be set for a single
// one, too. All are set before the first request is sent.

/// Which requests are sent in the order of submission. Since 0.1.
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

/// Which request ends when the queue is full. Since 0.1.
public typealias rt_rest_overflow = Int32

/// Values of `rt_rest_overflow`. Since 0.1.
public enum RT_REST_OVERFLOW: Int32 {
    /// The new one. The default.
    case REJECT_NEW = 0
    /// The one that has waited longest.
    case DROP_OLDEST = 1
}

/// Adds a header to every request; one of a request itself takes the place of all of its name.
/// Requests to origins other than the base URL's go without it, like those that are redirected
/// there; see `rt_rest_add_credential_origin` and `rt_rest_add_safe_header`. Before the first
/// request. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_HEADER; RT_ERROR_STATE.
@_cdecl("rt_rest_add_header")
public func rt_rest_add_header(
    _ rest: rt_rest?, _ name: UnsafePointer<CChar>?, _ value: UnsafePointer<CChar>?
) -> rt_status {
    change(rest) {
        try $0.addHeader(text(name, "name"), text(value, "value"))
    }
}

/// As `rt_rest_add_header`, in the place of all headers of this name; NULL takes them away. Before
/// the first request. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_HEADER; RT_ERROR_STATE.
@_cdecl("rt_rest_set_header")
public func rt_rest_set_header(
    _ rest: rt_rest?, _ name: UnsafePointer<CChar>?, _ value: UnsafePointer<CChar>?
) -> rt_status {
    change(rest) {
        try $0.setHeader(text(name, "name"), value.map { try text($0, "value") })
    }
}

/// Adds an origin that receives the client's own credential (basic, bearer token, Authorization)
/// and headers. The base URL's origin always does. A request may name any absolute URL, and other
/// origins receive only headers that reveal nothing: Accept, Accept-Encoding, Accept-Language,
/// Cache-Control, Content-Type, Last-Event-ID, User-Agent and those of `rt_rest_add_safe_header`.
/// Headers set on the request itself always go along. A redirect never takes a credential to
/// another origin, not even to one of these. Default: none; but a client without a base URL and
/// without such an origin sends everything to each URL that it is given. Before the first request.
/// Since 0.1.
/// - Parameter origin: scheme, host and port, such as "https://files.example.org"; "*" for all.
/// - Returns: RT_OK; RT_ERROR_INVALID_URL, also with user, path or query;
///   RT_ERROR_UNSUPPORTED_SCHEME; RT_ERROR_INVALID_ARGUMENT; RT_ERROR_STATE.
@_cdecl("rt_rest_add_credential_origin")
public func rt_rest_add_credential_origin(
    _ rest: rt_rest?, _ origin: UnsafePointer<CChar>?
) -> rt_status {
    change(rest) { try $0.addCredentialOrigin(text(origin, "origin")) }
}

/// How often a request is tried in all. Default 3; 1 never tries again. Before the first request.
/// Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT outside 1 to 1,000; RT_ERROR_STATE.
@_cdecl("rt_rest_set_attempts")
public func rt_rest_set_attempts(
    _ rest: rt_rest?, _ count: UInt32
) -> rt_status {
    change(rest) {
        try $0.policy.setAttempts(Int(count))
    }
}

/// How long one attempt may take, from name resolution to the last byte of its answer, redirects
/// included. While the request's body is sent, and while an answer is streamed to the caller
/// (`rt_rest_request_on_body`), it limits the time without a byte instead: each byte starts it
/// anew, and it stands still while the caller itself pauses the answer or has no more of the body
/// yet. Default 5,000; 0 means no limit. Before the first request. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT when negative; RT_ERROR_STATE.
@_cdecl("rt_rest_set_attempt_timeout_ms")
public func rt_rest_set_attempt_timeout_ms(
    _ rest: rt_rest?, _ timeout_ms: Int64
) -> rt_status {
    change(rest) {
        $0.policy.attemptTimeout = try milliseconds(timeout_ms, "timeout_ms")
    }
}

/// How long it may take to a connection that is ready, TLS included. Default 0: only the attempt's
/// time counts. Before the first request. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT when negative; RT_ERROR_STATE.
@_cdecl("rt_rest_set_connect_timeout_ms")
public func rt_rest_set_connect_timeout_ms(
    _ rest: rt_rest?, _ timeout_ms: Int64
) -> rt_status {
    change(rest) {
        $0.policy.connectTimeout = try milliseconds(timeout_ms, "timeout_ms")
    }
}

/// The delay before the second attempt, of which a random half to whole is waited. Default 1,000.
/// Before the first request. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT when negative or above a year; RT_ERROR_STATE.
@_cdecl("rt_rest_set_base_delay_ms")
public func rt_rest_set_base_delay_ms(
    _ rest: rt_rest?, _ delay_ms: Int64
) -> rt_status {
    change(rest) {
        try $0.policy.backoff.setInitial(milliseconds(delay_ms, "delay_ms"))
    }
}

/// The longest delay between attempts, save one that the server asks for. Default 30,000. Before
/// the first request. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT when negative or above a year; RT_ERROR_STATE.
@_cdecl("rt_rest_set_max_delay_ms")
public func rt_rest_set_max_delay_ms(
    _ rest: rt_rest?, _ delay_ms: Int64
) -> rt_status {
    change(rest) {
        try $0.policy.backoff.setMaximum(milliseconds(delay_ms, "delay_ms"))
    }
}

/// By how much each delay is longer than the one before. Default 2. Before the first request. Since
/// 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT outside 1 to 1,000; RT_ERROR_STATE.
@_cdecl("rt_rest_set_delay_factor")
public func rt_rest_set_delay_factor(
    _ rest: rt_rest?, _ factor: Double
) -> rt_status {
    change(rest) {
        try $0.policy.backoff.setFactor(factor)
    }
}

/// How delays are spread. Default RT_JITTER_EQUAL. Before the first request. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for one that is not listed; RT_ERROR_STATE.
@_cdecl("rt_rest_set_jitter")
public func rt_rest_set_jitter(
    _ rest: rt_rest?, _ jitter: rt_jitter
) -> rt_status {
    change(rest) {
        $0.policy.backoff.jitter = try named(
            jitter, "jitter",
            "RT_JITTER_NONE, RT_JITTER_EQUAL, RT_JITTER_FULL or RT_JITTER_DECORRELATED")
    }
}

/// How long a request may take with all its attempts and delays; time without a network does not
/// count. An attempt or a wait that the deadline would cut off does not begin: the request ends
/// with its last result instead. An answer that is streamed (`rt_rest_request_on_body`) and has
/// begun may take longer, as long as bytes flow, unless its request has a deadline of its own.
/// Default 30,000; 0 means no limit. Before the first request. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT when negative; RT_ERROR_STATE.
@_cdecl("rt_rest_set_deadline_ms")
public func rt_rest_set_deadline_ms(
    _ rest: rt_rest?, _ deadline_ms: Int64
) -> rt_status {
    change(rest) {
        $0.policy.deadline = try milliseconds(deadline_ms, "deadline_ms")
    }
}

/// The longest Retry-After that is waited for; an answer that asks for more ends the request at
/// once. Default 60,000. Before the first request. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT when negative; RT_ERROR_STATE.
@_cdecl("rt_rest_set_max_retry_after_ms")
public func rt_rest_set_max_retry_after_ms(
    _ rest: rt_rest?, _ delay_ms: Int64
) -> rt_status {
    change(rest) {
        $0.policy.retryAfterLimit = try milliseconds(delay_ms, "delay_ms")
    }
}

/// How long a request may wait to begin, with a network or without; then it ends with
/// RT_ERROR_EXPIRED. Default 0: no limit. Before the first request. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT when negative; RT_ERROR_STATE.
@_cdecl("rt_rest_set_queue_ttl_ms")
public func rt_rest_set_queue_ttl_ms(
    _ rest: rt_rest?, _ time_ms: Int64
) -> rt_status {
    change(rest) {
        $0.policy.queueTime = try milliseconds(time_ms, "time_ms")
    }
}

/// How many requests may wait for the network, or behind an ordered one; those beyond end with
/// RT_ERROR_QUEUE_FULL. Requests that wait for one of their host's connections alone do not count;
/// of all that have not ended there may be 65,536. Default 100. Before the first request. Since
/// 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE.
@_cdecl("rt_rest_set_queue_capacity")
public func rt_rest_set_queue_capacity(
    _ rest: rt_rest?, _ count: UInt32
) -> rt_status {
    change(rest) {
        $0.queueCapacity = Int(count)
    }
}

/// Which request ends when the queue is full. Default RT_REST_OVERFLOW_REJECT_NEW. Before the first
/// request. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for one that is not listed; RT_ERROR_STATE.
@_cdecl("rt_rest_set_queue_overflow")
public func rt_rest_set_queue_overflow(
    _ rest: rt_rest?, _ overflow: rt_rest_overflow
) -> rt_status {
    change(rest) {
        $0.overflow = try named(
            overflow, "overflow",
            "RT_REST_OVERFLOW_REJECT_NEW or RT_REST_OVERFLOW_DROP_OLDEST")
    }
}

/// Which requests are sent one after the other, each behind the terminal callback of the one
/// before. Default RT_REST_ORDER_AUTOMATIC. Before the first request. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for one that is not listed; RT_ERROR_STATE.
@_cdecl("rt_rest_set_order")
public func rt_rest_set_order(
    _ rest: rt_rest?, _ order: rt_rest_order
) -> rt_status {
    change(rest) {
        $0.policy.isOrdered = try ordered(order)
    }
}

/// Gives each request that may not be repeated (POST, PATCH) an Idempotency-Key, a random UUID that
/// is the same in all its attempts, so that it may. For servers that know that header. Default
/// false. Before the first request. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE.
@_cdecl("rt_rest_set_idempotency_keys")
public func rt_rest_set_idempotency_keys(
    _ rest: rt_rest?, _ enabled: Bool
) -> rt_status {
    change(rest) {
        $0.policy.addsIdempotencyKey = enabled
    }
}

/// Repeats any request after a connection that broke or a time that ran out, whatever the server
/// has done already. Default false. Before the first request. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE.
@_cdecl("rt_rest_set_retry_unsafe")
public func rt_rest_set_retry_unsafe(
    _ rest: rt_rest?, _ enabled: Bool
) -> rt_status {
    change(rest) {
        $0.policy.retriesUnsafe = enabled
    }
}

/// The longest answer that is kept whole, decoded; a longer one is an RT_ERROR_TOO_LARGE. Default
/// 64 MiB; 0 means no limit. It does not apply to answers that are streamed. Before the first
/// request. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT above SIZE_MAX / 2; RT_ERROR_STATE.
@_cdecl("rt_rest_set_max_body_bytes")
public func rt_rest_set_max_body_bytes(
    _ rest: rt_rest?, _ bytes: Int
) -> rt_status {
    change(rest) {
        $0.policy.bodyLimit = try size(bytes, "bytes")
    }
}

/// How many redirects a request follows (301, 302, 303, 307, 308). On the way to another origin
/// credentials are left behind: of the headers only Accept, Accept-Encoding, Accept-Language,
/// Cache-Control, Content-Type, Last-Event-ID and User-Agent go along, and those of
/// `rt_rest_add_safe_header`. Default 20; 0 follows none. Before the first request. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT outside 0 to 20; RT_ERROR_STATE.
@_cdecl("rt_rest_set_max_redirects")
public func rt_rest_set_max_redirects(
    _ rest: rt_rest?, _ count: Int32
) -> rt_status {
    change(rest) {
        $0.policy.redirects.maximum = try number(count, "count", in: 0...20)
    }
}

/// Whether a redirect may lead from https to http. Default false. Before the first request. Since
/// 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE.
@_cdecl("rt_rest_set_allow_insecure_redirects")
public func rt_rest_set_allow_insecure_redirects(
    _ rest: rt_rest?, _ enabled: Bool
) -> rt_status {
    change(rest) {
        $0.policy.redirects.allowsInsecure = enabled
    }
}

/// Names a header that another origin may see, too, when a redirect leads there. Before the first
/// request. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_HEADER; RT_ERROR_STATE.
@_cdecl("rt_rest_add_safe_header")
public func rt_rest_add_safe_header(
    _ rest: rt_rest?, _ name: UnsafePointer<CChar>?
) -> rt_status {
    change(rest) {
        let name = try text(name, "name")
        try HeaderField.validate(name: name, value: "")
        $0.policy.redirects.safeNames.append(name)
    }
}

/// How many connections to one origin are used at a time. Over HTTP/1.1 that is the number of
/// exchanges under way; the others wait. Over HTTP/2 exchanges share a connection: up to 100 are
/// under way, or `count` if that is more; the server says how many of them one connection carries
/// (SETTINGS_MAX_CONCURRENT_STREAMS). Default 6. Before the first request. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT outside 1 to 1,000; RT_ERROR_STATE.
@_cdecl("rt_rest_set_max_per_host")
public func rt_rest_set_max_per_host(
    _ rest: rt_rest?, _ count: UInt32
) -> rt_status {
    change(rest) {
        try $0.setPerHost(Int(count))
    }
}

/// Whether content codings are offered, and answers decoded: gzip, deflate, and br and zstd where
/// libbrotlidec and libzstd are installed. An answer in another coding, damaged or cut short is an
/// RT_ERROR_PROTOCOL. A request with an Accept-Encoding of its own gets the answer as it came.
/// Default true. Before the first request. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE.
@_cdecl("rt_rest_set_compression")
public func rt_rest_set_compression(
    _ rest: rt_rest?, _ enabled: Bool
) -> rt_status {
    change(rest) {
        $0.decodes = enabled
    }
}

/// Whether HTTP/2 is offered over TLS, where requests share a connection; never through a proxy.
/// Default true. Before the first request. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE.
@_cdecl("rt_rest_set_http2")
public func rt_rest_set_http2(
    _ rest: rt_rest?, _ enabled: Bool
) -> rt_status {
    change(rest) {
        $0.offersHTTP2 = enabled
    }
}

/// Makes connections by this network, of which it takes a copy. Before the first request. Since
/// 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL; RT_ERROR_STATE.
@_cdecl("rt_rest_set_network")
public func rt_rest_set_network(
    _ rest: rt_rest?, _ network: rt_network?
) -> rt_status {
    change(rest) {
        $0.network = try NetworkHandle.borrow(network).configuration
    }
}

/// Asks this reachability whether there is a network, which it keeps alive. Default: that of the
/// loop, by the kernel's word. Before the first request. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL or one of another loop; RT_ERROR_STATE.
@_cdecl("rt_rest_set_reachability")
public func rt_rest_set_reachability(
    _ rest: rt_rest?, _ reachability: rt_reachability?
) -> rt_status {
    client(rest) { try $0.setReachability(Reachability.borrow(reachability)) }
}

private func change(
    _ rest: rt_rest?, _ body: (inout RESTConfiguration) throws -> Void
) -> rt_status {
    client(rest) { try $0.configure(body) }
}

func ordered(_ order: rt_rest_order) throws(RealtimeError) -> Bool? {
    let order: RT_REST_ORDER = try named(
        order, "order", "RT_REST_ORDER_AUTOMATIC, RT_REST_ORDER_ALWAYS or RT_REST_ORDER_NEVER")
    return switch order {
    case .AUTOMATIC: nil
    case .ALWAYS: true
    case .NEVER: false
    }
}
