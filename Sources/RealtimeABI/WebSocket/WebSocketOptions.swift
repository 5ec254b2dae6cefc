import Engine
import Session
import Wire

// Chapter: websocket options. All are set before rt_websocket_start; the reconnect and credentials
// callbacks may set them too, for the attempts that follow.

/// Sets the Origin header (RFC 6454 §7), which servers may require of browsers:
/// "https://example.org". NULL for none. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_HEADER; RT_ERROR_STATE.
@_cdecl("rt_websocket_set_origin")
public func rt_websocket_set_origin(
    _ websocket: rt_websocket?, _ origin: UnsafePointer<CChar>?
) -> rt_status {
    websocketOptions(websocket) { (options) throws(RealtimeError) in
        try options.setHeader(name: "Origin", value: optionalText(origin, "origin"))
    }
}

/// Sets the Cookie header (RFC 6265 §4.2): "name=value; other=value". NULL for none. Before start.
/// Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_HEADER; RT_ERROR_STATE.
@_cdecl("rt_websocket_set_cookie")
public func rt_websocket_set_cookie(
    _ websocket: rt_websocket?, _ cookie: UnsafePointer<CChar>?
) -> rt_status {
    websocketOptions(websocket) { (options) throws(RealtimeError) in
        try options.setHeader(name: "Cookie", value: optionalText(cookie, "cookie"))
    }
}

/// Sets the User-Agent header. NULL for the default, "librealtime/" and the version. Before start.
/// Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_HEADER; RT_ERROR_STATE.
@_cdecl("rt_websocket_set_user_agent")
public func rt_websocket_set_user_agent(
    _ websocket: rt_websocket?, _ user_agent: UnsafePointer<CChar>?
) -> rt_status {
    websocketOptions(websocket) { (options) throws(RealtimeError) in
        try options.setHeader(name: "User-Agent", value: optionalText(user_agent, "user_agent"))
    }
}

/// Changes the URL from the next attempt on. Before start, and in the reconnect callback. Since
/// 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_URL; RT_ERROR_UNSUPPORTED_SCHEME; RT_ERROR_STATE.
@_cdecl("rt_websocket_set_url")
public func rt_websocket_set_url(
    _ websocket: rt_websocket?, _ url: UnsafePointer<CChar>?
) -> rt_status {
    websocketCall(websocket) { (connection) throws(RealtimeError) in
        try connection.setURL(text(url, "url"))
    }
}

/// Adds an HTTP status of a refused handshake after which a connection that reconnects tries again,
/// after the usual delay or the server's Retry-After, up to five minutes. Without it the 4xx other
/// than 408, 425 and 429 are final; all other statuses are retried. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT outside 400 to 599, for 401 and for 407;
///   RT_ERROR_STATE.
@_cdecl("rt_websocket_add_retry_status")
public func rt_websocket_add_retry_status(
    _ websocket: rt_websocket?, _ http_status: Int32
) -> rt_status {
    websocketOptions(websocket) { (options) throws(RealtimeError) in
        try options.addRetryStatus(Int(http_status))
    }
}

/// Trusts the certificates in this PEM file instead of the system's. Same as
/// `rt_network_set_ca_file`, for this connection only. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL or ""; RT_ERROR_STATE. If the file cannot
///   be read, the connection fails with RT_ERROR_TLS.
@_cdecl("rt_websocket_set_ca_file")
public func rt_websocket_set_ca_file(
    _ websocket: rt_websocket?, _ path: UnsafePointer<CChar>?
) -> rt_status {
    websocketOptions(websocket) { (options) throws(RealtimeError) in
        options.network.caFile = try filePath(required(path, "path"), "path")
    }
}

/// Changes a WebSocket's options.
func websocketOptions(
    _ websocket: rt_websocket?, once: Bool = false,
    _ change: (inout WebSocketConfiguration) throws(RealtimeError) -> Void
) -> rt_status {
    border { () throws(RealtimeError) in
        try WebSocketConnection.borrow(websocket).configure(once: once, change)
    }
}
