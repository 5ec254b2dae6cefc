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
    restOptions(rest) {
        try $0.addHeader(name: text(name, "name"), value: text(value, "value"))
    }
}

/// As `rt_rest_add_header`, in the place of all headers of this name; NULL takes them away. Before
/// the first request. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_HEADER; RT_ERROR_STATE.
@_cdecl("rt_rest_set_header")
public func rt_rest_set_header(
    _ rest: rt_rest?, _ name: UnsafePointer<CChar>?, _ value: UnsafePointer<CChar>?
) -> rt_status {
    restOptions(rest) {
        try $0.setHeader(name: text(name, "name"), value: optionalText(value, "value"))
    }
}

/// Takes all headers away that were set or added. Before the first request. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE.
@_cdecl("rt_rest_clear_headers")
public func rt_rest_clear_headers(_ rest: rt_rest?) -> rt_status {
    restOptions(rest) { $0.clearHeaders() }
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
    restOptions(rest) { try $0.addCredentialOrigin(text(origin, "origin")) }
}

/// Delays attempts by a copy of this backoff: what `rt_rest_set_base_delay_ms`,
/// `rt_rest_set_max_delay_ms`, `rt_rest_set_delay_factor` and `rt_rest_set_jitter` set, at once.
/// Its limit of attempts and its stable time are not used: `rt_rest_set_attempts` counts. NULL is
/// the default of each. Before the first request. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE.
@_cdecl("rt_rest_set_backoff")
public func rt_rest_set_backoff(
    _ rest: rt_rest?, _ backoff: rt_backoff?
) -> rt_status {
    restOptions(rest) {
        $0.policy.backoff = try backoffConfiguration(backoff) ?? BackoffConfiguration()
        $0.policy.backoff.attemptLimit = 0
    }
}

/// Names a header that another origin may see, too, when a redirect leads there. Before the first
/// request. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_HEADER; RT_ERROR_STATE.
@_cdecl("rt_rest_add_safe_header")
public func rt_rest_add_safe_header(
    _ rest: rt_rest?, _ name: UnsafePointer<CChar>?
) -> rt_status {
    restOptions(rest) { try $0.policy.redirects.addSafeName(text(name, "name")) }
}

/// Sets how connections are made, by a copy. NULL is the default. Before the first request. Since
/// 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE.
@_cdecl("rt_rest_set_network")
public func rt_rest_set_network(
    _ rest: rt_rest?, _ network: rt_network?
) -> rt_status {
    restOptions(rest) { $0.network = try networkConfiguration(network) }
}

/// Asks this reachability whether there is a network. It is kept alive, and not copied. NULL is the
/// default: RT_REACHABILITY_AUTO, one for all objects of the loop. Before the first request. Since
/// 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for one of another loop; RT_ERROR_STATE.
@_cdecl("rt_rest_set_reachability")
public func rt_rest_set_reachability(
    _ rest: rt_rest?, _ reachability: rt_reachability?
) -> rt_status {
    restCall(rest) { try $0.setReachability(reachability.map { try Reachability.borrow($0) }) }
}

func restOptions(
    _ rest: rt_rest?, once: Bool = false, _ body: (inout RESTConfiguration) throws -> Void
) -> rt_status {
    restCall(rest) { try $0.configure(once: once, body) }
}
