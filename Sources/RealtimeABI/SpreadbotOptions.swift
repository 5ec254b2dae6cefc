import Engine
import Session
import Wire

// Chapter: spreadbot options. Each is set before the first `rt_spreadbot_establish`, send or
// `rt_spreadbot_new_rest`; RT_ERROR_STATE later.

/// Which transports are tried, in this order. Default WebSocket, SSE, long poll. Since 0.1.
/// - Parameter transports: `count` of `rt_spreadbot_transport`, copied.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for none, one twice, or one that is not listed;
///   RT_ERROR_STATE.
@_cdecl("rt_spreadbot_set_transports")
public func rt_spreadbot_set_transports(
    _ spreadbot: rt_spreadbot?, _ transports: UnsafePointer<Int32>?, _ count: Int
) -> rt_status {
    spreadbotOptions(spreadbot) { (options) throws(RealtimeError) in
        let numbers = try bytes(transports, size(count, "count") * 4, "transports")
        let list = try (0..<count).map { index throws(RealtimeError) -> SpreadbotTransport in
            try named(
                numbers.loadUnaligned(fromByteOffset: index * 4, as: Int32.self), "a transport",
                "RT_SPREADBOT_TRANSPORT_WEBSOCKET, _SSE or _POLL")
        }
        try options.setTransports(list)
    }
}

/// Where one transport connects, instead of to base URL and path. Default none. Since 0.1.
/// - Parameter url: whole; `http`, `https`, `ws` or `wss`, whichever transport it is.
/// - Returns: RT_OK; RT_ERROR_INVALID_URL, RT_ERROR_UNSUPPORTED_SCHEME; RT_ERROR_INVALID_ARGUMENT;
///   RT_ERROR_STATE.
@_cdecl("rt_spreadbot_set_transport_url")
public func rt_spreadbot_set_transport_url(
    _ spreadbot: rt_spreadbot?, _ transport: rt_spreadbot_transport, _ url: UnsafePointer<CChar>?
) -> rt_status {
    spreadbotOptions(spreadbot) { (options) throws(RealtimeError) in
        let transport: SpreadbotTransport = try named(
            transport, "transport", "RT_SPREADBOT_TRANSPORT_WEBSOCKET, _SSE or _POLL")
        try options.setURL(of: transport, text(url, "url"))
    }
}

/// Where sends are posted, in the place of base URL and path. Default none. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_URL, RT_ERROR_UNSUPPORTED_SCHEME; RT_ERROR_INVALID_ARGUMENT;
///   RT_ERROR_STATE.
@_cdecl("rt_spreadbot_set_send_url")
public func rt_spreadbot_set_send_url(
    _ spreadbot: rt_spreadbot?, _ url: UnsafePointer<CChar>?
) -> rt_status {
    spreadbotOptions(spreadbot) { (options) throws(RealtimeError) in
        try options.setSendURL(text(url, "url"))
    }
}

/// Where a refused access token is refreshed (RFC 6749 §6): a POST with the refresh token, whose
/// answer is JSON. It is made once for all that wait for it, and not redirected. Without it a
/// refusal is fatal. `http` is accepted, with a warning in the log. The answer is waited for up to
/// 30 s; a token whose request is lost, or not answered by then, is spent again with the next
/// attempt, as nothing tells whether the server has taken it. Default none. Since 0.1.
/// - Parameter url: whole.
/// - Parameter basic_credentials: base64 of "client:secret", sent as it is.
/// - Returns: RT_OK; RT_ERROR_INVALID_URL, RT_ERROR_UNSUPPORTED_SCHEME, RT_ERROR_INVALID_HEADER;
///   RT_ERROR_INVALID_ARGUMENT; RT_ERROR_STATE.
@_cdecl("rt_spreadbot_set_auth")
public func rt_spreadbot_set_auth(
    _ spreadbot: rt_spreadbot?, _ url: UnsafePointer<CChar>?,
    _ basic_credentials: UnsafePointer<CChar>?
) -> rt_status {
    spreadbotOptions(spreadbot) { (options) throws(RealtimeError) in
        try options.setAuthURL(text(url, "url"))
        try options.setBasicCredentials(text(basic_credentials, "basic_credentials"))
    }
}

/// Begins behind the message with this id. Default "". Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for a control character; RT_ERROR_STATE.
@_cdecl("rt_spreadbot_set_last_event_id")
public func rt_spreadbot_set_last_event_id(
    _ spreadbot: rt_spreadbot?, _ id: UnsafePointer<CChar>?
) -> rt_status {
    spreadbotOptions(spreadbot) { (options) throws(RealtimeError) in
        try options.setLastEventID(text(id, "id"))
    }
}

/// Keeps sends in a file until the server has them: a message or request whose call has returned
/// RT_OK is on the disk, and is sent after a crash of the process, too, by the next connection with
/// this outbox, once it is used. It is sent as often as it takes, and never ends with
/// RT_ERROR_CONNECTION_LOST or RT_ERROR_CLOSED: when a connection is lost, or in the moment of a
/// crash, it may arrive twice, a POST with the same Idempotency-Key. Messages go to the path they
/// were sent to, once a connection is established, requests at once. It holds 10,000 of them, and
/// 64 MiB. Default none: the queue in memory. Since 0.1.
/// - Parameter path: of the file, made with the mode 0600 when it is not there. It must be a
///   regular file, not a symbolic link, that belongs to the effective user and that no other user
///   may read or write.
/// - Returns: RT_OK; RT_ERROR_BUSY while another connection or process has it open; RT_ERROR_STORE
///   for any other file, which is left as it is, and for what the system refuses;
///   RT_ERROR_INVALID_ARGUMENT; RT_ERROR_STATE when one is set already.
@_cdecl("rt_spreadbot_set_outbox")
public func rt_spreadbot_set_outbox(
    _ spreadbot: rt_spreadbot?, _ path: UnsafePointer<CChar>?
) -> rt_status {
    spreadbotCall(spreadbot) { (connection) throws(RealtimeError) in
        try connection.setOutbox(text(path, "path"))
    }
}

/// Runs a change of a connection's options.
func spreadbotOptions(
    _ spreadbot: rt_spreadbot?, once: Bool = false,
    _ body: (inout SpreadbotConfiguration) throws(RealtimeError) -> Void
) -> rt_status {
    spreadbotCall(spreadbot) { (connection) throws(RealtimeError) in
        try connection.configure(once: once, body)
    }
}
