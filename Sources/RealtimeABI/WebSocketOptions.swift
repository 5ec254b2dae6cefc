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
    configure(websocket) { try $0.addHeader(name: text(name, "name"), value: text(value, "value")) }
}

/// Sets a request header of the handshake in the place of all of its name. Before start. Since 0.1.
/// - Returns: as `rt_websocket_add_header`.
@_cdecl("rt_websocket_set_header")
public func rt_websocket_set_header(
    _ websocket: rt_websocket?, _ name: UnsafePointer<CChar>?, _ value: UnsafePointer<CChar>?
) -> rt_status {
    configure(websocket) { try $0.setHeader(name: text(name, "name"), value: text(value, "value")) }
}

/// Sets the Origin header (RFC 6454 §7), which servers may ask of browsers: "https://example.org".
/// Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_HEADER; RT_ERROR_STATE.
@_cdecl("rt_websocket_set_origin")
public func rt_websocket_set_origin(
    _ websocket: rt_websocket?, _ origin: UnsafePointer<CChar>?
) -> rt_status {
    configure(websocket) { try $0.setHeader(name: "Origin", value: text(origin, "origin")) }
}

/// Sets the Cookie header (RFC 6265 §4.2): "name=value; other=value". Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_HEADER; RT_ERROR_STATE.
@_cdecl("rt_websocket_set_cookie")
public func rt_websocket_set_cookie(
    _ websocket: rt_websocket?, _ cookie: UnsafePointer<CChar>?
) -> rt_status {
    configure(websocket) { try $0.setHeader(name: "Cookie", value: text(cookie, "cookie")) }
}

/// Sets the User-Agent header. Default "librealtime/" and the version. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_HEADER; RT_ERROR_STATE.
@_cdecl("rt_websocket_set_user_agent")
public func rt_websocket_set_user_agent(
    _ websocket: rt_websocket?, _ user_agent: UnsafePointer<CChar>?
) -> rt_status {
    configure(websocket) {
        try $0.setHeader(name: "User-Agent", value: text(user_agent, "user_agent"))
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
    configure(websocket) {
        try $0.setBasicAuthorization(
            user: text(user_name, "user_name"), password: text(password, "password"))
    }
}

/// Sets an Authorization header with a bearer token (RFC 6750). Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for ""; RT_ERROR_INVALID_HEADER; RT_ERROR_STATE.
@_cdecl("rt_websocket_set_bearer_token")
public func rt_websocket_set_bearer_token(
    _ websocket: rt_websocket?, _ token: UnsafePointer<CChar>?
) -> rt_status {
    configure(websocket) { try $0.setBearerToken(text(token, "token")) }
}

/// Offers a subprotocol; first added, first preferred. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_SUBPROTOCOL for no token or one offered already;
///   RT_ERROR_STATE.
@_cdecl("rt_websocket_add_subprotocol")
public func rt_websocket_add_subprotocol(
    _ websocket: rt_websocket?, _ name: UnsafePointer<CChar>?
) -> rt_status {
    configure(websocket) { try $0.addSubprotocol(text(name, "name")) }
}

/// Connects to another URL from the next attempt on; for the reconnect callback. Before start.
/// Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_URL; RT_ERROR_UNSUPPORTED_SCHEME; RT_ERROR_STATE.
@_cdecl("rt_websocket_set_url")
public func rt_websocket_set_url(
    _ websocket: rt_websocket?, _ url: UnsafePointer<CChar>?
) -> rt_status {
    connection(websocket) { try $0.setURL(text(url, "url")) }
}

/// Takes away every header that was added or set, those of the other setters too. Before start.
/// Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE.
@_cdecl("rt_websocket_clear_headers")
public func rt_websocket_clear_headers(_ websocket: rt_websocket?) -> rt_status {
    configure(websocket) { $0.clearHeaders() }
}

/// How many redirects the handshake follows (301, 302, 303, 307, 308). On the way to another origin
/// credentials are left behind: of the headers only Accept, Accept-Encoding, Accept-Language,
/// Cache-Control, Content-Type, Last-Event-ID and User-Agent go along. Default 5; 0 follows none.
/// Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT outside 0 to 20; RT_ERROR_STATE.
@_cdecl("rt_websocket_set_max_redirects")
public func rt_websocket_set_max_redirects(
    _ websocket: rt_websocket?, _ count: Int32
) -> rt_status {
    configure(websocket) { $0.redirects.maximum = try number(count, "count", in: 0...20) }
}

/// Whether a redirect may lead from wss to ws. Default false. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE.
@_cdecl("rt_websocket_set_allow_insecure_redirects")
public func rt_websocket_set_allow_insecure_redirects(
    _ websocket: rt_websocket?, _ enabled: Bool
) -> rt_status {
    configure(websocket) { $0.redirects.allowsInsecure = enabled }
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
    configure(websocket) {
        $0.reconnect = try backoff.map { try BackoffHandle.borrow($0).configuration }
    }
}

/// Whether a connection with `rt_websocket_set_reconnect` also reconnects after the peer closed it
/// with code 1000. Some servers send that code when they restart. `rt_websocket_close` always ends
/// the connection for good. Default: false. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE.
@_cdecl("rt_websocket_set_reconnect_after_normal_close")
public func rt_websocket_set_reconnect_after_normal_close(
    _ websocket: rt_websocket?, _ enabled: Bool
) -> rt_status {
    configure(websocket) { $0.reconnectsAfterNormalClose = enabled }
}

/// How many messages may wait while there is no connection; they are sent when there is one, behind
/// what the open callback sends. Above, or above the send limit by their bytes, a send answers
/// RT_ERROR_BUFFER_FULL, and the drained callback tells when they are gone. What was sent before a
/// loss is not sent again. Default 0: a send answers RT_ERROR_STATE. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT above SIZE_MAX / 2; RT_ERROR_STATE.
@_cdecl("rt_websocket_set_offline_queue")
public func rt_websocket_set_offline_queue(
    _ websocket: rt_websocket?, _ max_messages: Int
) -> rt_status {
    configure(websocket) { $0.offlineQueueLimit = try size(max_messages, "max_messages") }
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
    connection(websocket) {
        try $0.setReachability(reachability.map { try Reachability.borrow($0) })
    }
}

/// Makes the connection by this network, of which it takes a copy; a CA file set before is
/// forgotten. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL; RT_ERROR_STATE.
@_cdecl("rt_websocket_set_network")
public func rt_websocket_set_network(
    _ websocket: rt_websocket?, _ network: rt_network?
) -> rt_status {
    configure(websocket) { $0.network = try NetworkHandle.borrow(network).configuration }
}

/// Trusts the certificates of this PEM file instead of the system's; `rt_network_set_ca_file` for
/// this connection alone. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL or ""; RT_ERROR_STATE. A file that cannot
///   be read is an RT_ERROR_TLS of the connection.
@_cdecl("rt_websocket_set_ca_file")
public func rt_websocket_set_ca_file(
    _ websocket: rt_websocket?, _ path: UnsafePointer<CChar>?
) -> rt_status {
    configure(websocket) { try $0.network.setCAFile(text(path, "path")) }
}

/// How long start may take until open: name resolution, connection, TLS and handshake together.
/// Default 10,000; 0 means no limit. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT when negative; RT_ERROR_STATE.
@_cdecl("rt_websocket_set_open_timeout_ms")
public func rt_websocket_set_open_timeout_ms(
    _ websocket: rt_websocket?, _ timeout_ms: Int64
) -> rt_status {
    configure(websocket) { $0.openTimeout = try milliseconds(timeout_ms, "timeout_ms") }
}

/// How long the closing handshake may take, from our close frame to the end of the connection.
/// Default 10,000. 0 means no limit, but for a peer that broke the protocol it means 10,000. Before
/// start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT when negative; RT_ERROR_STATE.
@_cdecl("rt_websocket_set_close_timeout_ms")
public func rt_websocket_set_close_timeout_ms(
    _ websocket: rt_websocket?, _ timeout_ms: Int64
) -> rt_status {
    configure(websocket) { $0.closeTimeout = try milliseconds(timeout_ms, "timeout_ms") }
}

/// How long the peer may send no message before the connection fails with RT_ERROR_TIMEOUT and
/// close code 1001; pings and pongs do not count, nor does the time while receiving is paused. For
/// feeds that are known to speak. Default 0: for ever. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT when negative; RT_ERROR_STATE.
@_cdecl("rt_websocket_set_idle_timeout_ms")
public func rt_websocket_set_idle_timeout_ms(
    _ websocket: rt_websocket?, _ timeout_ms: Int64
) -> rt_status {
    configure(websocket) { $0.idleTimeout = try milliseconds(timeout_ms, "timeout_ms") }
}

/// How often a ping is sent on an open connection. Default 20,000; 0 sends none. Before start.
/// Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT when negative; RT_ERROR_STATE.
@_cdecl("rt_websocket_set_ping_interval_ms")
public func rt_websocket_set_ping_interval_ms(
    _ websocket: rt_websocket?, _ interval_ms: Int64
) -> rt_status {
    configure(websocket) { $0.pingInterval = try milliseconds(interval_ms, "interval_ms") }
}

/// How long a ping of the interval may stay unanswered before the connection fails with
/// RT_ERROR_TIMEOUT. Time with receiving paused does not count. Default 20,000; 0 means no limit.
/// Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT when negative; RT_ERROR_STATE.
@_cdecl("rt_websocket_set_pong_timeout_ms")
public func rt_websocket_set_pong_timeout_ms(
    _ websocket: rt_websocket?, _ timeout_ms: Int64
) -> rt_status {
    configure(websocket) { $0.pongTimeout = try milliseconds(timeout_ms, "timeout_ms") }
}

/// The largest message accepted, in bytes after decompression; a larger one fails the connection
/// with close code 1009. Default 64 MiB; 0 means no limit. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT above SIZE_MAX / 2; RT_ERROR_STATE.
@_cdecl("rt_websocket_set_max_message_bytes")
public func rt_websocket_set_max_message_bytes(
    _ websocket: rt_websocket?, _ bytes: Int
) -> rt_status {
    configure(websocket) { $0.limits.messageBytes = try size(bytes, "bytes") }
}

/// The largest handshake answer accepted, status line and headers, in bytes. Default 64 KiB;
/// 1,024 or more. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT below 1,024; RT_ERROR_STATE.
@_cdecl("rt_websocket_set_max_header_bytes")
public func rt_websocket_set_max_header_bytes(
    _ websocket: rt_websocket?, _ bytes: Int
) -> rt_status {
    configure(websocket) { $0.limits.headerBytes = try size(bytes, "bytes", atLeast: 1024) }
}

/// How many times its size on the wire a compressed message may grow, checked once it is past
/// 64 KiB; above it the connection fails with close code 1009. Deflate reaches 1,032. Default 0:
/// only `max_message_bytes` limits it. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE.
@_cdecl("rt_websocket_set_max_inflate_ratio")
public func rt_websocket_set_max_inflate_ratio(
    _ websocket: rt_websocket?, _ ratio: UInt32
) -> rt_status {
    configure(websocket) { $0.limits.inflateRatio = Int(ratio) }
}

/// Splits messages sent into frames of at most this many bytes of payload. Default 0: one frame a
/// message. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT above SIZE_MAX / 2; RT_ERROR_STATE.
@_cdecl("rt_websocket_set_max_frame_bytes")
public func rt_websocket_set_max_frame_bytes(
    _ websocket: rt_websocket?, _ bytes: Int
) -> rt_status {
    configure(websocket) { $0.maxFrameBytes = try size(bytes, "bytes") }
}

/// Above this many unsent bytes the drained callback is armed: it comes once the buffer is empty
/// again. Default 256 KiB, which stays in the processor's cache. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT above SIZE_MAX / 2; RT_ERROR_STATE.
@_cdecl("rt_websocket_set_send_high_water_bytes")
public func rt_websocket_set_send_high_water_bytes(
    _ websocket: rt_websocket?, _ bytes: Int
) -> rt_status {
    configure(websocket) { $0.sendHighWater = try size(bytes, "bytes") }
}

/// A send that would take the unsent bytes above this limit answers RT_ERROR_BUFFER_FULL and takes
/// nothing; with an empty buffer any message is accepted. Default 64 MiB; 0 means no limit. Before
/// start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT above SIZE_MAX / 2; RT_ERROR_STATE.
@_cdecl("rt_websocket_set_send_limit_bytes")
public func rt_websocket_set_send_limit_bytes(
    _ websocket: rt_websocket?, _ bytes: Int
) -> rt_status {
    configure(websocket) { $0.sendLimit = try size(bytes, "bytes") }
}

/// Whether permessage-deflate is offered. Default true. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE.
@_cdecl("rt_websocket_set_compression")
public func rt_websocket_set_compression(
    _ websocket: rt_websocket?, _ enabled: Bool
) -> rt_status {
    configure(websocket) { $0.compression.enabled = enabled }
}

/// zlib's level for messages sent, 1 (fast) to 9 (small), 0 to send uncompressed while still
/// accepting compressed messages. Default 1. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT outside 0–9; RT_ERROR_STATE.
@_cdecl("rt_websocket_set_compression_level")
public func rt_websocket_set_compression_level(
    _ websocket: rt_websocket?, _ level: Int32
) -> rt_status {
    configure(websocket) { $0.compression.level = try number(level, "level", in: 0...9) }
}

/// zlib's memory level for messages sent, 1 to 9: with a window of 2^w bytes a connection holds
/// 2^(w+2) + 2^(level+9) bytes once it has compressed a message, 256 KiB by default and 36 KiB with
/// 12 window bits and level 5. Default 8. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT outside 1–9; RT_ERROR_STATE.
@_cdecl("rt_websocket_set_compression_memory_level")
public func rt_websocket_set_compression_memory_level(
    _ websocket: rt_websocket?, _ level: Int32
) -> rt_status {
    configure(websocket) { $0.compression.memoryLevel = try number(level, "level", in: 1...9) }
}

/// Messages of fewer bytes are sent uncompressed. Default 100. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT above SIZE_MAX / 2; RT_ERROR_STATE.
@_cdecl("rt_websocket_set_compression_min_bytes")
public func rt_websocket_set_compression_min_bytes(
    _ websocket: rt_websocket?, _ bytes: Int
) -> rt_status {
    configure(websocket) { $0.compression.minimumBytes = try size(bytes, "bytes") }
}

/// The window of messages sent, as a power of two: `client_max_window_bits` of RFC 7692 §7.1.2.2.
/// Default 15. The server may ask for less. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT outside 9–15 (zlib cannot compress with 8);
///   RT_ERROR_STATE.
@_cdecl("rt_websocket_set_client_max_window_bits")
public func rt_websocket_set_client_max_window_bits(
    _ websocket: rt_websocket?, _ bits: Int32
) -> rt_status {
    configure(websocket) {
        $0.compression.clientMaxWindowBits = try number(bits, "bits", in: 9...15)
    }
}

/// The window asked of the server for messages received: `server_max_window_bits` of RFC 7692
/// §7.1.2.1. Default 15, which asks for nothing. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT outside 8–15; RT_ERROR_STATE.
@_cdecl("rt_websocket_set_server_max_window_bits")
public func rt_websocket_set_server_max_window_bits(
    _ websocket: rt_websocket?, _ bits: Int32
) -> rt_status {
    configure(websocket) {
        $0.compression.serverMaxWindowBits = try number(bits, "bits", in: 8...15)
    }
}

/// Compresses each message sent on its own: less memory, larger messages. Default false. Before
/// start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE.
@_cdecl("rt_websocket_set_client_no_context_takeover")
public func rt_websocket_set_client_no_context_takeover(
    _ websocket: rt_websocket?, _ enabled: Bool
) -> rt_status {
    configure(websocket) { $0.compression.clientNoContextTakeover = enabled }
}

/// Asks the server to compress each of its messages on its own. Default false. Before start. Since
/// 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE.
@_cdecl("rt_websocket_set_server_no_context_takeover")
public func rt_websocket_set_server_no_context_takeover(
    _ websocket: rt_websocket?, _ enabled: Bool
) -> rt_status {
    configure(websocket) { $0.compression.serverNoContextTakeover = enabled }
}
