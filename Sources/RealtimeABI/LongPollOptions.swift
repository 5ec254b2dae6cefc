import Engine
import Session
import Wire

// Chapter: long poll options. "Before start" says when each may be set; a request or credentials
// callback may set them too, for the polls that follow. What is "before start alone" is taken once,
// at the start: RT_ERROR_STATE in callbacks too.

/// Changes where polls go. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_URL, RT_ERROR_UNSUPPORTED_SCHEME,
///   RT_ERROR_INVALID_ARGUMENT; RT_ERROR_STATE.
@_cdecl("rt_longpoll_set_url")
public func rt_longpoll_set_url(
    _ longpoll: rt_longpoll?, _ url: UnsafePointer<CChar>?
) -> rt_status {
    poll(longpoll) { try $0.setURL(text(url, "url")) }
}

/// Sets a request header in the place of all of its name. Unless it is set, Accept takes anything.
/// Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_HEADER, which Expect is, too, and an Accept that names
///   text/event-stream; RT_ERROR_STATE.
@_cdecl("rt_longpoll_set_header")
public func rt_longpoll_set_header(
    _ longpoll: rt_longpoll?, _ name: UnsafePointer<CChar>?, _ value: UnsafePointer<CChar>?
) -> rt_status {
    change(longpoll) { try $0.setHeader(name: text(name, "name"), value: text(value, "value")) }
}

/// Adds a request header beside others of its name. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_HEADER, as `rt_longpoll_set_header`; RT_ERROR_STATE.
@_cdecl("rt_longpoll_add_header")
public func rt_longpoll_add_header(
    _ longpoll: rt_longpoll?, _ name: UnsafePointer<CChar>?, _ value: UnsafePointer<CChar>?
) -> rt_status {
    change(longpoll) { try $0.addHeader(name: text(name, "name"), value: text(value, "value")) }
}

/// Takes all headers away that were set. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE.
@_cdecl("rt_longpoll_clear_headers")
public func rt_longpoll_clear_headers(
    _ longpoll: rt_longpoll?
) -> rt_status {
    change(longpoll) { $0.clearHeaders() }
}

/// Sets an Authorization header with basic credentials (RFC 7617). Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for a user name with a colon; RT_ERROR_STATE.
@_cdecl("rt_longpoll_set_basic_auth")
public func rt_longpoll_set_basic_auth(
    _ longpoll: rt_longpoll?, _ user_name: UnsafePointer<CChar>?, _ password: UnsafePointer<CChar>?
) -> rt_status {
    change(longpoll) {
        let value = try HeaderField.basicAuthorization(
            user: text(user_name, "user_name"), password: text(password, "password"))
        try $0.setHeader(name: "Authorization", value: value)
    }
}

/// Sets an Authorization header with a bearer token (RFC 6750). Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_HEADER, RT_ERROR_INVALID_ARGUMENT; RT_ERROR_STATE.
@_cdecl("rt_longpoll_set_bearer_token")
public func rt_longpoll_set_bearer_token(
    _ longpoll: rt_longpoll?, _ token: UnsafePointer<CChar>?
) -> rt_status {
    change(longpoll) {
        let value = try HeaderField.bearerAuthorization(text(token, "token"))
        try $0.setHeader(name: "Authorization", value: value)
    }
}

/// Sets how connections are made, by a copy; NULL for the defaults. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE.
@_cdecl("rt_longpoll_set_network")
public func rt_longpoll_set_network(
    _ longpoll: rt_longpoll?, _ network: rt_network?
) -> rt_status {
    change(longpoll) {
        $0.network =
            try network.map { try NetworkHandle.borrow($0).configuration }
            ?? NetworkConfiguration()
    }
}

/// Who says whether a poll makes sense: while there is no network none is made and none is
/// counted, and when there is one again it follows within a second. It is kept alive, and not
/// copied. NULL is the default: RT_REACHABILITY_AUTO, one for all objects of the loop. Before
/// start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for one of another loop; RT_ERROR_STATE.
@_cdecl("rt_longpoll_set_reachability")
public func rt_longpoll_set_reachability(
    _ longpoll: rt_longpoll?, _ reachability: rt_reachability?
) -> rt_status {
    poll(longpoll) {
        try $0.setReachability(reachability.map { try Reachability.borrow($0) })
    }
}

/// How polls say what they have seen already. Default RT_LONGPOLL_CURSOR_VALIDATORS. Before start.
/// Since 0.1.
/// - Parameter query_parameter: the name of the id's, with RT_LONGPOLL_CURSOR_QUERY_ID; NULL for
///   `last_event_id`.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for one that is not listed; RT_ERROR_STATE.
@_cdecl("rt_longpoll_set_cursor")
public func rt_longpoll_set_cursor(
    _ longpoll: rt_longpoll?, _ cursor: rt_longpoll_cursor, _ query_parameter: UnsafePointer<CChar>?
) -> rt_status {
    change(longpoll) {
        let mode: LongPollCursorMode = try named(
            cursor, "cursor", "one of RT_LONGPOLL_CURSOR_VALIDATORS to RT_LONGPOLL_CURSOR_NONE")
        let name = try query_parameter.map { try text($0, "query_parameter") }
        try $0.setCursor(mode, queryParameter: name)
    }
}

/// Begins behind the message with this id. With validators it must be a time in seconds since 1970,
/// a colon and an ETag, as the ids of messages are. Default "". Before start alone. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for a control character; RT_ERROR_STATE.
@_cdecl("rt_longpoll_set_last_event_id")
public func rt_longpoll_set_last_event_id(
    _ longpoll: rt_longpoll?, _ id: UnsafePointer<CChar>?
) -> rt_status {
    poll(longpoll) {
        try $0.configureOnce { try $0.setLastEventID(text(id, "id")) }
    }
}

/// Sets how often a server is asked that does not hold polls: the time between the starts of two
/// polls that it answers before `min_hold` with nothing, or with a message that leaves the cursor
/// where it was or moves it back to where one of the last eight polls started. Without a cursor
/// (RT_LONGPOLL_CURSOR_NONE, or the server names none) the next poll starts at once after up to 20
/// messages in a row that come before `min_hold`, or five that are the same; after further ones it
/// waits, until a poll was held. After messages that move the cursor on, the next poll starts at
/// once, for the first 1,000 polls, and then up to 100 times a second. Default 15,000. Before
/// start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT when negative; RT_ERROR_STATE.
@_cdecl("rt_longpoll_set_interval_ms")
public func rt_longpoll_set_interval_ms(
    _ longpoll: rt_longpoll?, _ time_ms: Int64
) -> rt_status {
    change(longpoll) { $0.interval = try milliseconds(time_ms, "time_ms") }
}

/// How long a poll may be held before the next is made, and how long an answer may stand still.
/// Default 60,000; 0 for ever. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT when negative; RT_ERROR_STATE.
@_cdecl("rt_longpoll_set_poll_timeout_ms")
public func rt_longpoll_set_poll_timeout_ms(
    _ longpoll: rt_longpoll?, _ time_ms: Int64
) -> rt_status {
    change(longpoll) { $0.pollTimeout = try milliseconds(time_ms, "time_ms") }
}

/// After a poll that was held for so long the next is made at once, though nothing came or the
/// cursor did not move. Default 1,000. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT when negative; RT_ERROR_STATE.
@_cdecl("rt_longpoll_set_min_hold_ms")
public func rt_longpoll_set_min_hold_ms(
    _ longpoll: rt_longpoll?, _ time_ms: Int64
) -> rt_status {
    change(longpoll) { $0.minHold = try milliseconds(time_ms, "time_ms") }
}

/// The time to a ready connection: name, TCP, TLS. Default 15,000; 0 for none. Before start. Since
/// 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT when negative; RT_ERROR_STATE.
@_cdecl("rt_longpoll_set_connect_timeout_ms")
public func rt_longpoll_set_connect_timeout_ms(
    _ longpoll: rt_longpoll?, _ time_ms: Int64
) -> rt_status {
    change(longpoll) { $0.connectTimeout = try milliseconds(time_ms, "time_ms") }
}

/// The longest delay after an attempt that failed; the first is up to 1,000. A server's Retry-After
/// goes before it where it is longer, up to five minutes. Default 30,000. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT when negative; RT_ERROR_STATE.
@_cdecl("rt_longpoll_set_max_delay_ms")
public func rt_longpoll_set_max_delay_ms(
    _ longpoll: rt_longpoll?, _ time_ms: Int64
) -> rt_status {
    change(longpoll) { $0.maxDelay = try milliseconds(time_ms, "time_ms") }
}

/// Whether 410 is a fatal RT_ERROR_GONE, instead of one that begins anew. Default false. Before
/// start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE.
@_cdecl("rt_longpoll_set_fail_when_gone")
public func rt_longpoll_set_fail_when_gone(
    _ longpoll: rt_longpoll?, _ enabled: Bool
) -> rt_status {
    change(longpoll) { $0.failsWhenGone = enabled }
}

/// Whether compressed answers are requested: gzip, deflate, and br and zstd where libbrotlidec and
/// libzstd are installed. An answer that cannot be decoded is an RT_ERROR_PROTOCOL. Default true.
/// Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE.
@_cdecl("rt_longpoll_set_compression")
public func rt_longpoll_set_compression(
    _ longpoll: rt_longpoll?, _ enabled: Bool
) -> rt_status {
    change(longpoll) { $0.compression = enabled }
}

/// Whether HTTP/2 is offered by TLS; never through a proxy. Default true. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE.
@_cdecl("rt_longpoll_set_http2")
public func rt_longpoll_set_http2(
    _ longpoll: rt_longpoll?, _ enabled: Bool
) -> rt_status {
    change(longpoll) { $0.http2 = enabled }
}

/// The largest answer, decoded. Default 64 MiB; 0 for no limit. Above it: a fatal
/// RT_ERROR_TOO_LARGE, since the server would answer the same again. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT above SIZE_MAX / 2; RT_ERROR_STATE.
@_cdecl("rt_longpoll_set_max_body_bytes")
public func rt_longpoll_set_max_body_bytes(
    _ longpoll: rt_longpoll?, _ bytes: Int
) -> rt_status {
    change(longpoll) { $0.maxBodyBytes = try size(bytes, "bytes") }
}

/// How many redirects a poll follows, as `rt_websocket_set_max_redirects`. Default 20; 0 follows
/// none. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT outside 0 to 20; RT_ERROR_STATE.
@_cdecl("rt_longpoll_set_max_redirects")
public func rt_longpoll_set_max_redirects(
    _ longpoll: rt_longpoll?, _ count: Int32
) -> rt_status {
    change(longpoll) { $0.redirects.maximum = try number(count, "count", in: 0...20) }
}

/// Whether a redirect may lead from https to http. Default false. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE.
@_cdecl("rt_longpoll_set_allow_insecure_redirects")
public func rt_longpoll_set_allow_insecure_redirects(
    _ longpoll: rt_longpoll?, _ enabled: Bool
) -> rt_status {
    change(longpoll) { $0.redirects.allowsInsecure = enabled }
}

/// Lets this header of the caller's go along when a redirect leads to another origin. Before start.
/// Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_HEADER for what is no token; RT_ERROR_STATE.
@_cdecl("rt_longpoll_add_safe_header")
public func rt_longpoll_add_safe_header(
    _ longpoll: rt_longpoll?, _ name: UnsafePointer<CChar>?
) -> rt_status {
    change(longpoll) {
        let name = try text(name, "name")
        try HeaderField.validate(name: name, value: "")
        $0.redirects.safeNames.append(name)
    }
}

/// Runs a change of a long poll's options.
private func change(
    _ longpoll: rt_longpoll?, _ body: (inout LongPollConfiguration) throws -> Void
) -> rt_status {
    poll(longpoll) { try $0.configure(body) }
}
