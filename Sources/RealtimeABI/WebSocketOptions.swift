import Engine
import Session
import Wire

// Chapter: websocket options. All are set before rt_websocket_start.

/// Adds a request header to the handshake; a name may be added more than once. Before start. Since
/// 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_HEADER for a name that is no token, a value with CR, LF or
///   NUL, or a header of the handshake itself; RT_ERROR_STATE after start.
@_cdecl("rt_websocket_add_header")
public func rt_websocket_add_header(
    _ websocket: rt_websocket?, _ name: UnsafePointer<CChar>?, _ value: UnsafePointer<CChar>?
) -> rt_status {
    websocketOptions(websocket) {
        try $0.addHeader(name: text(name, "name"), value: text(value, "value"))
    }
}

/// Sets a request header of the handshake in the place of all of its name. Before start. Since 0.1.
/// - Returns: as `rt_websocket_add_header`.
@_cdecl("rt_websocket_set_header")
public func rt_websocket_set_header(
    _ websocket: rt_websocket?, _ name: UnsafePointer<CChar>?, _ value: UnsafePointer<CChar>?
) -> rt_status {
    websocketOptions(websocket) {
        try $0.setHeader(name: text(name, "name"), value: optionalText(value, "value"))
    }
}

/// Sets the Origin header (RFC 6454 §7), which servers may ask of browsers: "https://example.org".
/// Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_HEADER; RT_ERROR_STATE.
@_cdecl("rt_websocket_set_origin")
public func rt_websocket_set_origin(
    _ websocket: rt_websocket?, _ origin: UnsafePointer<CChar>?
) -> rt_status {
    websocketOptions(websocket) {
        try $0.setHeader(name: "Origin", value: optionalText(origin, "origin"))
    }
}

/// Sets the Cookie header (RFC 6265 §4.2): "name=value; other=value". Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_HEADER; RT_ERROR_STATE.
@_cdecl("rt_websocket_set_cookie")
public func rt_websocket_set_cookie(
    _ websocket: rt_websocket?, _ cookie: UnsafePointer<CChar>?
) -> rt_status {
    websocketOptions(websocket) {
        try $0.setHeader(name: "Cookie", value: optionalText(cookie, "cookie"))
    }
}

/// Sets the User-Agent header. Default "librealtime/" and the version. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_HEADER; RT_ERROR_STATE.
@_cdecl("rt_websocket_set_user_agent")
public func rt_websocket_set_user_agent(
    _ websocket: rt_websocket?, _ user_agent: UnsafePointer<CChar>?
) -> rt_status {
    websocketOptions(websocket) {
        try $0.setHeader(name: "User-Agent", value: optionalText(user_agent, "user_agent"))
    }
}

/// Sets a basic Authorization header (RFC 7617), in the place of the URL's user and password.
/// Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for a user with a colon; RT_ERROR_STATE.
@_cdecl("rt_websocket_set_basic_auth")
public func rt_websocket_set_basic_auth(
    _ websocket: rt_websocket?, _ user_name: UnsafePointer<CChar>?,
    _ password: UnsafePointer<CChar>?
) -> rt_status {
    websocketOptions(websocket) {
        try $0.setBasicAuthorization(credentials(user_name, password))
    }
}

/// Sets an Authorization header with a bearer token (RFC 6750). Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for ""; RT_ERROR_INVALID_HEADER; RT_ERROR_STATE.
@_cdecl("rt_websocket_set_bearer_token")
public func rt_websocket_set_bearer_token(
    _ websocket: rt_websocket?, _ token: UnsafePointer<CChar>?
) -> rt_status {
    websocketOptions(websocket) { try $0.setBearerToken(optionalText(token, "token")) }
}

/// Offers a subprotocol; first added, first preferred. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_SUBPROTOCOL for no token or one offered already;
///   RT_ERROR_STATE.
@_cdecl("rt_websocket_add_subprotocol")
public func rt_websocket_add_subprotocol(
    _ websocket: rt_websocket?, _ name: UnsafePointer<CChar>?
) -> rt_status {
    websocketOptions(websocket) { try $0.addSubprotocol(text(name, "name")) }
}

/// Connects to another URL from the next attempt on; for the reconnect callback. Before start.
/// Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_URL; RT_ERROR_UNSUPPORTED_SCHEME; RT_ERROR_STATE.
@_cdecl("rt_websocket_set_url")
public func rt_websocket_set_url(
    _ websocket: rt_websocket?, _ url: UnsafePointer<CChar>?
) -> rt_status {
    websocketCall(websocket) { try $0.setURL(text(url, "url")) }
}

/// Takes away every header that was added or set, those of the other setters too. Before start.
/// Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE.
@_cdecl("rt_websocket_clear_headers")
public func rt_websocket_clear_headers(_ websocket: rt_websocket?) -> rt_status {
    websocketOptions(websocket) { $0.clearHeaders() }
}

/// Lets this header of the caller's go along when a redirect leads to another origin. Before start.
/// Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_HEADER for what is no token; RT_ERROR_STATE.
@_cdecl("rt_websocket_add_safe_header")
public func rt_websocket_add_safe_header(
    _ websocket: rt_websocket?, _ name: UnsafePointer<CChar>?
) -> rt_status {
    websocketOptions(websocket) { try $0.redirects.addSafeName(text(name, "name")) }
}

/// Makes the connection again when it is lost or cannot be made, by a copy of this backoff; NULL,
/// the default, does not. It ends after a close of ours, after the peer's close codes 1000 (unless
/// `rt_websocket_set_reconnect_after_normal_close` is set), 1002, 1003 and 1007 to 1010, after a
/// 4xx answer other than 408, 425 and 429, after a redirect or message that is refused, and when no
/// attempt is left. Retry-After, in seconds or as a date, is waited for up to five minutes. Before
/// start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE.
@_cdecl("rt_websocket_set_reconnect")
public func rt_websocket_set_reconnect(
    _ websocket: rt_websocket?, _ backoff: rt_backoff?
) -> rt_status {
    websocketOptions(websocket) {
        $0.reconnect = try backoffConfiguration(backoff)
    }
}

/// Who says whether an attempt to come back makes sense: while there is no network none is made and
/// none is counted, and when there is one again it follows within a second. It is kept alive, and
/// not copied. NULL is the default: RT_REACHABILITY_AUTO, one for all connections of the loop that
/// come back. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for one of another loop; RT_ERROR_STATE.
@_cdecl("rt_websocket_set_reachability")
public func rt_websocket_set_reachability(
    _ websocket: rt_websocket?, _ reachability: rt_reachability?
) -> rt_status {
    websocketCall(websocket) {
        try $0.setReachability(reachability.map { try Reachability.borrow($0) })
    }
}

/// Sets how connections are made, by a copy. NULL is the default. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE.
@_cdecl("rt_websocket_set_network")
public func rt_websocket_set_network(
    _ websocket: rt_websocket?, _ network: rt_network?
) -> rt_status {
    websocketOptions(websocket) { $0.network = try networkConfiguration(network) }
}

/// Trusts the certificates of this PEM file instead of the system's; `rt_network_set_ca_file` for
/// this connection alone. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL or ""; RT_ERROR_STATE. A file that cannot
///   be read is an RT_ERROR_TLS of the connection.
@_cdecl("rt_websocket_set_ca_file")
public func rt_websocket_set_ca_file(
    _ websocket: rt_websocket?, _ path: UnsafePointer<CChar>?
) -> rt_status {
    websocketOptions(websocket) { $0.network.caFile = try filePath(required(path, "path"), "path") }
}
