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
    longpollCall(longpoll) { try $0.setURL(text(url, "url")) }
}

/// Sets a request header in the place of all of its name. Unless it is set, Accept takes anything.
/// Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_HEADER, which Expect is, too, and an Accept that names
///   text/event-stream; RT_ERROR_STATE.
@_cdecl("rt_longpoll_set_header")
public func rt_longpoll_set_header(
    _ longpoll: rt_longpoll?, _ name: UnsafePointer<CChar>?, _ value: UnsafePointer<CChar>?
) -> rt_status {
    longpollOptions(longpoll) {
        try $0.setHeader(name: text(name, "name"), value: optionalText(value, "value"))
    }
}

/// Adds a request header beside others of its name. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_HEADER, as `rt_longpoll_set_header`; RT_ERROR_STATE.
@_cdecl("rt_longpoll_add_header")
public func rt_longpoll_add_header(
    _ longpoll: rt_longpoll?, _ name: UnsafePointer<CChar>?, _ value: UnsafePointer<CChar>?
) -> rt_status {
    longpollOptions(longpoll) {
        try $0.addHeader(name: text(name, "name"), value: text(value, "value"))
    }
}

/// Takes all headers away that were set. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE.
@_cdecl("rt_longpoll_clear_headers")
public func rt_longpoll_clear_headers(
    _ longpoll: rt_longpoll?
) -> rt_status {
    longpollOptions(longpoll) { $0.clearHeaders() }
}

/// Sets an Authorization header with basic credentials (RFC 7617). Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for a user name with a colon; RT_ERROR_STATE.
@_cdecl("rt_longpoll_set_basic_auth")
public func rt_longpoll_set_basic_auth(
    _ longpoll: rt_longpoll?, _ user_name: UnsafePointer<CChar>?, _ password: UnsafePointer<CChar>?
) -> rt_status {
    longpollOptions(longpoll) {
        try $0.setBasicAuthorization(credentials(user_name, password))
    }
}

/// Sets an Authorization header with a bearer token (RFC 6750). Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_HEADER, RT_ERROR_INVALID_ARGUMENT; RT_ERROR_STATE.
@_cdecl("rt_longpoll_set_bearer_token")
public func rt_longpoll_set_bearer_token(
    _ longpoll: rt_longpoll?, _ token: UnsafePointer<CChar>?
) -> rt_status {
    longpollOptions(longpoll) {
        try $0.setBearerToken(optionalText(token, "token"))
    }
}

/// Delays attempts after one that failed by a copy of this backoff, in the place of
/// `rt_longpoll_set_max_delay_ms`. When it limits attempts and none is left, the long poll ends
/// with RT_ERROR_RECONNECTS_EXHAUSTED. Its stable time is not used: a good answer counts at once.
/// NULL, the default, leaves it to that option, with no limit. Before start alone. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE.
@_cdecl("rt_longpoll_set_backoff")
public func rt_longpoll_set_backoff(
    _ longpoll: rt_longpoll?, _ backoff: rt_backoff?
) -> rt_status {
    longpollCall(longpoll) {
        try $0.configure(once: true) { $0.backoff = try backoffConfiguration(backoff) }
    }
}

/// Sets how connections are made, by a copy. NULL is the default. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE.
@_cdecl("rt_longpoll_set_network")
public func rt_longpoll_set_network(
    _ longpoll: rt_longpoll?, _ network: rt_network?
) -> rt_status {
    longpollOptions(longpoll) { $0.network = try networkConfiguration(network) }
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
    longpollCall(longpoll) {
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
    longpollOptions(longpoll) {
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
    longpollCall(longpoll) {
        try $0.configure(once: true) { try $0.setLastEventID(text(id, "id")) }
    }
}

/// Lets this header of the caller's go along when a redirect leads to another origin. Before start.
/// Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_HEADER for what is no token; RT_ERROR_STATE.
@_cdecl("rt_longpoll_add_safe_header")
public func rt_longpoll_add_safe_header(
    _ longpoll: rt_longpoll?, _ name: UnsafePointer<CChar>?
) -> rt_status {
    longpollOptions(longpoll) { try $0.redirects.addSafeName(text(name, "name")) }
}

/// Runs a change of a long poll's options.
func longpollOptions(
    _ longpoll: rt_longpoll?, once: Bool = false,
    _ body: (inout LongPollConfiguration) throws -> Void
) -> rt_status {
    longpollCall(longpoll) { try $0.configure(once: once, body) }
}
