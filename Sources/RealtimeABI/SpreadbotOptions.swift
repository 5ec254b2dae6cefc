import Engine
import Session
import Wire

// Chapter: spreadbot options. Each is set before the first `rt_spreadbot_establish`, send or
// `rt_spreadbot_new_rest`; RT_ERROR_STATE later.

/// Which legs are tried, in this order. Default WebSocket, SSE, long poll. Since 0.1.
/// - Parameter transports: `count` of `rt_spreadbot_transport`, copied.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for none, one twice, or one that is not listed;
///   RT_ERROR_STATE.
@_cdecl("rt_spreadbot_set_transports")
public func rt_spreadbot_set_transports(
    _ spreadbot: rt_spreadbot?, _ transports: UnsafePointer<Int32>?, _ count: Int
) -> rt_status {
    change(spreadbot) {
        let numbers = try bytes(transports, size(count, "count") * 4, "transports")
        let list = try (0..<count).map { index throws -> SpreadbotTransport in
            try named(
                numbers.loadUnaligned(fromByteOffset: index * 4, as: Int32.self), "a transport",
                "RT_SPREADBOT_TRANSPORT_WEBSOCKET, _SSE or _POLL")
        }
        try $0.setTransports(list)
    }
}

/// Where one leg connects, in the place of base URL and path. Default none. Since 0.1.
/// - Parameter url: whole; `http`, `https`, `ws` or `wss`, whichever leg it is.
/// - Returns: RT_OK; RT_ERROR_INVALID_URL, RT_ERROR_UNSUPPORTED_SCHEME; RT_ERROR_INVALID_ARGUMENT;
///   RT_ERROR_STATE.
@_cdecl("rt_spreadbot_set_transport_url")
public func rt_spreadbot_set_transport_url(
    _ spreadbot: rt_spreadbot?, _ transport: rt_spreadbot_transport, _ url: UnsafePointer<CChar>?
) -> rt_status {
    change(spreadbot) {
        let transport: SpreadbotTransport = try named(
            transport, "transport", "RT_SPREADBOT_TRANSPORT_WEBSOCKET, _SSE or _POLL")
        try $0.setURL(of: transport, text(url, "url"))
    }
}

/// Where sends are posted, in the place of base URL and path. Default none. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_URL, RT_ERROR_UNSUPPORTED_SCHEME; RT_ERROR_INVALID_ARGUMENT;
///   RT_ERROR_STATE.
@_cdecl("rt_spreadbot_set_send_url")
public func rt_spreadbot_set_send_url(
    _ spreadbot: rt_spreadbot?, _ url: UnsafePointer<CChar>?
) -> rt_status {
    change(spreadbot) { try $0.setSendURL(text(url, "url")) }
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
    change(spreadbot) {
        try $0.setAuthURL(text(url, "url"))
        try $0.setBasicCredentials(text(basic_credentials, "basic_credentials"))
    }
}

/// Sends the access token as this query parameter too, for servers or proxies that do not look at
/// headers. Default none. Since 0.1.
/// - Parameter name: NULL or "" for none.
/// - Returns: RT_OK; RT_ERROR_STATE.
@_cdecl("rt_spreadbot_set_token_query_parameter")
public func rt_spreadbot_set_token_query_parameter(
    _ spreadbot: rt_spreadbot?, _ name: UnsafePointer<CChar>?
) -> rt_status {
    change(spreadbot) {
        let name = try name.map { try text($0, "name") } ?? ""
        $0.tokenQueryParameter = name.isEmpty ? nil : name
    }
}

/// Sends the last event id as this query parameter too, for servers or proxies that do not look at
/// headers. Default none. Since 0.1.
/// - Parameter name: NULL or "" for none.
/// - Returns: RT_OK; RT_ERROR_STATE.
@_cdecl("rt_spreadbot_set_id_query_parameter")
public func rt_spreadbot_set_id_query_parameter(
    _ spreadbot: rt_spreadbot?, _ name: UnsafePointer<CChar>?
) -> rt_status {
    change(spreadbot) {
        let name = try name.map { try text($0, "name") } ?? ""
        $0.idQueryParameter = name.isEmpty ? nil : name
    }
}

/// Begins behind the message with this id. Default "". Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for a control character; RT_ERROR_STATE.
@_cdecl("rt_spreadbot_set_last_event_id")
public func rt_spreadbot_set_last_event_id(
    _ spreadbot: rt_spreadbot?, _ id: UnsafePointer<CChar>?
) -> rt_status {
    change(spreadbot) { try $0.setLastEventID(text(id, "id")) }
}

/// Adds a header to every request and handshake. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_HEADER, which Authorization, Accept and Last-Event-ID are
///   too: they are the connection's own; and Expect, by which each would wait; RT_ERROR_STATE.
@_cdecl("rt_spreadbot_add_header")
public func rt_spreadbot_add_header(
    _ spreadbot: rt_spreadbot?, _ name: UnsafePointer<CChar>?, _ value: UnsafePointer<CChar>?
) -> rt_status {
    change(spreadbot) { try $0.addHeader(name: text(name, "name"), value: text(value, "value")) }
}

/// Sets how connections are made, by a copy; NULL for the defaults. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE.
@_cdecl("rt_spreadbot_set_network")
public func rt_spreadbot_set_network(
    _ spreadbot: rt_spreadbot?, _ network: rt_network?
) -> rt_status {
    change(spreadbot) {
        $0.network =
            try network.map { try NetworkHandle.borrow($0).configuration }
            ?? NetworkConfiguration()
    }
}

/// Who says whether there is a network. It is kept alive, and not copied. NULL is the default:
/// RT_REACHABILITY_AUTO, one for all objects of the loop. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for one of another loop; RT_ERROR_STATE.
@_cdecl("rt_spreadbot_set_reachability")
public func rt_spreadbot_set_reachability(
    _ spreadbot: rt_spreadbot?, _ reachability: rt_reachability?
) -> rt_status {
    spreadbotCall(spreadbot) {
        try $0.setReachability(reachability.map { try Reachability.borrow($0) })
    }
}

/// Whether compression is offered: permessage-deflate by WebSocket, content codings by HTTP
/// (`rt_eventsource_set_compression`). Default true. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE.
@_cdecl("rt_spreadbot_set_compression")
public func rt_spreadbot_set_compression(
    _ spreadbot: rt_spreadbot?, _ enabled: Bool
) -> rt_status {
    change(spreadbot) { $0.compression = enabled }
}

/// Whether HTTP/2 is offered by TLS, to all but the WebSocket; never through a proxy. Default true.
/// Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE.
@_cdecl("rt_spreadbot_set_http2")
public func rt_spreadbot_set_http2(
    _ spreadbot: rt_spreadbot?, _ enabled: Bool
) -> rt_status {
    change(spreadbot) { $0.http2 = enabled }
}

/// How many redirects a request follows, as `rt_websocket_set_max_redirects`. Default 20; 0
/// follows none. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT outside 0 to 20; RT_ERROR_STATE.
@_cdecl("rt_spreadbot_set_max_redirects")
public func rt_spreadbot_set_max_redirects(
    _ spreadbot: rt_spreadbot?, _ count: Int32
) -> rt_status {
    change(spreadbot) { $0.redirects.maximum = try number(count, "count", in: 0...20) }
}

/// Attempts in a row on one leg after one that failed, before the next leg is tried. A message, or
/// a connection that holds, begins the count anew. Default 3. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE.
@_cdecl("rt_spreadbot_set_max_reconnects")
public func rt_spreadbot_set_max_reconnects(
    _ spreadbot: rt_spreadbot?, _ count: UInt32
) -> rt_status {
    change(spreadbot) { $0.maxReconnects = Int(count) }
}

/// Sets how often in a row all legs may fail before the connection ends with
/// RT_ERROR_RECONNECTS_EXHAUSTED. Until then each further round begins with the first leg, after a
/// delay that starts at 0.5 to 1 s and doubles up to `rt_spreadbot_set_max_delay_ms`; the error
/// callback gets RT_ERROR_RECONNECTS_EXHAUSTED with `fatal` false and the delay. A message, a
/// connection that holds, or a network that returns resets the count. A server that refuses the
/// client (403, 404, close codes 1008, 3003 and 4403, tokens that cannot be refreshed) ends the
/// connection in any round. Default 1; 0 for no limit. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE.
@_cdecl("rt_spreadbot_set_max_rounds")
public func rt_spreadbot_set_max_rounds(
    _ spreadbot: rt_spreadbot?, _ count: UInt32
) -> rt_status {
    change(spreadbot) { $0.maxRounds = Int(count) }
}

/// The longest delay between attempts on one leg, and between rounds over all legs; these delays
/// begin at 0.5 to 1 s and double. Default 30,000. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT when negative; RT_ERROR_STATE.
@_cdecl("rt_spreadbot_set_max_delay_ms")
public func rt_spreadbot_set_max_delay_ms(
    _ spreadbot: rt_spreadbot?, _ delay_ms: Int64
) -> rt_status {
    change(spreadbot) { $0.maxDelay = try milliseconds(delay_ms, "delay_ms") }
}

/// How long a connection must hold to count as one, without a message. Default 10,000. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT when negative; RT_ERROR_STATE.
@_cdecl("rt_spreadbot_set_stable_time_ms")
public func rt_spreadbot_set_stable_time_ms(
    _ spreadbot: rt_spreadbot?, _ time_ms: Int64
) -> rt_status {
    change(spreadbot) { $0.stableTime = try milliseconds(time_ms, "time_ms") }
}

/// When the WebSocket is tried again while a lower leg is in use; the time doubles with each try
/// that fails, up to `max_interval_ms`, and a change of the network has it tried at once. Default
/// 300,000 and 3,600,000; 0 for never. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT when negative; RT_ERROR_STATE.
@_cdecl("rt_spreadbot_set_upgrade_interval_ms")
public func rt_spreadbot_set_upgrade_interval_ms(
    _ spreadbot: rt_spreadbot?, _ interval_ms: Int64, _ max_interval_ms: Int64
) -> rt_status {
    change(spreadbot) {
        $0.upgradeInterval = try milliseconds(interval_ms, "interval_ms")
        $0.maxUpgradeInterval = try milliseconds(max_interval_ms, "max_interval_ms")
    }
}

/// The longest time to a connection that stands. Default 10,000; 0 for no limit of its own. Since
/// 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT when negative; RT_ERROR_STATE.
@_cdecl("rt_spreadbot_set_connect_timeout_ms")
public func rt_spreadbot_set_connect_timeout_ms(
    _ spreadbot: rt_spreadbot?, _ timeout_ms: Int64
) -> rt_status {
    change(spreadbot) { $0.connectTimeout = try milliseconds(timeout_ms, "timeout_ms") }
}

/// The longest time from there to the head of the answer, by WebSocket and SSE: a leg that passes
/// it is left for the next one. Default 5,000. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT when negative; RT_ERROR_STATE.
@_cdecl("rt_spreadbot_set_answer_timeout_ms")
public func rt_spreadbot_set_answer_timeout_ms(
    _ spreadbot: rt_spreadbot?, _ timeout_ms: Int64
) -> rt_status {
    change(spreadbot) { $0.answerTimeout = try milliseconds(timeout_ms, "timeout_ms") }
}

/// The time between the pings that keep a WebSocket alive, and for the answer to each: without it
/// the connection is lost. Default 20,000; 0 for none. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT when negative; RT_ERROR_STATE.
@_cdecl("rt_spreadbot_set_ping_interval_ms")
public func rt_spreadbot_set_ping_interval_ms(
    _ spreadbot: rt_spreadbot?, _ interval_ms: Int64
) -> rt_status {
    change(spreadbot) { $0.pingInterval = try milliseconds(interval_ms, "interval_ms") }
}

/// As `rt_longpoll_set_interval_ms`. Default 15,000. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT when negative; RT_ERROR_STATE.
@_cdecl("rt_spreadbot_set_poll_interval_ms")
public func rt_spreadbot_set_poll_interval_ms(
    _ spreadbot: rt_spreadbot?, _ interval_ms: Int64
) -> rt_status {
    change(spreadbot) { $0.pollInterval = try milliseconds(interval_ms, "interval_ms") }
}

/// As `rt_longpoll_set_poll_timeout_ms`. Default 60,000. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT when negative; RT_ERROR_STATE.
@_cdecl("rt_spreadbot_set_poll_timeout_ms")
public func rt_spreadbot_set_poll_timeout_ms(
    _ spreadbot: rt_spreadbot?, _ timeout_ms: Int64
) -> rt_status {
    change(spreadbot) { $0.pollTimeout = try milliseconds(timeout_ms, "timeout_ms") }
}

/// Sends that may wait for a connection, and which one ends with RT_ERROR_QUEUE_FULL when there
/// are more. Frames that a WebSocket was given do not count. Default 100,
/// RT_REST_OVERFLOW_REJECT_NEW. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for an overflow that is not listed; RT_ERROR_STATE.
@_cdecl("rt_spreadbot_set_queue")
public func rt_spreadbot_set_queue(
    _ spreadbot: rt_spreadbot?, _ capacity: UInt32, _ overflow: rt_rest_overflow
) -> rt_status {
    change(spreadbot) {
        $0.queueCapacity = Int(capacity)
        $0.overflow = try named(
            overflow, "overflow",
            "RT_REST_OVERFLOW_REJECT_NEW or RT_REST_OVERFLOW_DROP_OLDEST")
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
    spreadbotCall(spreadbot) { try $0.setOutbox(text(path, "path")) }
}

/// The largest message received. A message as JSON, and a batch of them, ends its transport with
/// RT_ERROR_TOO_LARGE above 16 MiB whatever is set. Default 64 MiB; 0 for no limit. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT above SIZE_MAX / 2; RT_ERROR_STATE.
@_cdecl("rt_spreadbot_set_max_message_bytes")
public func rt_spreadbot_set_max_message_bytes(
    _ spreadbot: rt_spreadbot?, _ bytes: Int
) -> rt_status {
    change(spreadbot) { $0.maxMessageBytes = try size(bytes, "bytes") }
}

/// Runs a change of a connection's options.
private func change(
    _ spreadbot: rt_spreadbot?, _ body: (inout SpreadbotConfiguration) throws -> Void
) -> rt_status {
    spreadbotCall(spreadbot) { try $0.configure(body) }
}
