import Engine
import Session
import Wire

// Chapter: spreadbot options. All are set before the first `rt_spreadbot_start`, send or
// `rt_spreadbot_new_rest`; later they return RT_ERROR_STATE.

/// Sets the transports to try, in order. Default: WebSocket, SSE, long poll. Since 0.1.
/// - Parameter transports: `count` of `rt_spreadbot_transport`, copied.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for no transport, a duplicate or an unknown one;
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

/// Sets the URL of one transport, instead of base URL and path. Default: none. Since 0.1.
/// - Parameter url: an absolute URL; `http`, `https`, `ws` or `wss` for every transport.
/// - Returns: RT_OK; RT_ERROR_INVALID_URL; RT_ERROR_UNSUPPORTED_SCHEME; RT_ERROR_INVALID_ARGUMENT;
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

/// Sets the URL to which sends are posted, instead of base URL and path. Default: none. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_URL; RT_ERROR_UNSUPPORTED_SCHEME; RT_ERROR_INVALID_ARGUMENT;
///   RT_ERROR_STATE.
@_cdecl("rt_spreadbot_set_send_url")
public func rt_spreadbot_set_send_url(
    _ spreadbot: rt_spreadbot?, _ url: UnsafePointer<CChar>?
) -> rt_status {
    spreadbotOptions(spreadbot) { (options) throws(RealtimeError) in
        try options.setSendURL(text(url, "url"))
    }
}

/// Sets the URL at which a refused access token is refreshed (RFC 6749 §6): a POST with the refresh
/// token, answered with JSON. One refresh serves all that wait for it, and redirects are not
/// followed. Without this URL a refusal is fatal. `http` is accepted, with a warning in the log.
/// Default: none.
///
/// A refresh may take up to 30 s. If its request is lost or not answered in time, the next attempt
/// uses the same refresh token again, since the client cannot know whether the server has accepted
/// it. Since 0.1.
/// - Parameter url: an absolute URL.
/// - Parameter basic_credentials: base64 of "client:secret", sent unchanged.
/// - Returns: RT_OK; RT_ERROR_INVALID_URL; RT_ERROR_UNSUPPORTED_SCHEME; RT_ERROR_INVALID_HEADER;
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

/// Starts after the message with this id. Default: "". Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for a control character; RT_ERROR_STATE.
@_cdecl("rt_spreadbot_set_last_event_id")
public func rt_spreadbot_set_last_event_id(
    _ spreadbot: rt_spreadbot?, _ id: UnsafePointer<CChar>?
) -> rt_status {
    spreadbotOptions(spreadbot) { (options) throws(RealtimeError) in
        try options.setLastEventID(text(id, "id"))
    }
}

/// Keeps sends in a file until the server has them. When a send returns RT_OK, it is on the disk.
/// If the process crashes, the next connection with this outbox sends it. Default: none; sends are
/// queued in memory.
///
/// A send in an outbox is retried as often as needed, and never ends with RT_ERROR_CONNECTION_LOST
/// or RT_ERROR_CLOSED. It may arrive twice if a connection is lost or the process crashes; a POST
/// then has the same Idempotency-Key. Messages go to the path for which they were sent, once a
/// connection is established; requests go at once. An outbox holds 10,000 sends and 64 MiB. Since
/// 0.1.
/// - Parameter path: the file, created with the mode 0600 if it does not exist. It must be a
///   regular file, not a symbolic link, owned by the effective user, that no other user may read or
///   write.
/// - Returns: RT_OK; RT_ERROR_BUSY while another connection or process has it open; RT_ERROR_STORE
///   for any other file, which is not changed, and for failures of the system;
///   RT_ERROR_INVALID_ARGUMENT; RT_ERROR_STATE if an outbox is already set.
@_cdecl("rt_spreadbot_set_outbox")
public func rt_spreadbot_set_outbox(
    _ spreadbot: rt_spreadbot?, _ path: UnsafePointer<CChar>?
) -> rt_status {
    spreadbotCall(spreadbot) { (connection) throws(RealtimeError) in
        try connection.setOutbox(text(path, "path"))
    }
}

/// Changes a connection's options.
func spreadbotOptions(
    _ spreadbot: rt_spreadbot?, once: Bool = false,
    _ body: (inout SpreadbotConfiguration) throws(RealtimeError) -> Void
) -> rt_status {
    spreadbotCall(spreadbot) { (connection) throws(RealtimeError) in
        try connection.configure(once: once, body)
    }
}
