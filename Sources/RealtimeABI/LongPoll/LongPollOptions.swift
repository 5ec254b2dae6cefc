import Engine
import Session
import Wire

// Chapter: long poll options. "Before start": the request and credentials callbacks may set the
// option too, for the polls that follow. "Before start only": the option takes effect at start, and
// setting it in a callback is RT_ERROR_STATE.

/// Changes the URL from the next poll on. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_URL; RT_ERROR_UNSUPPORTED_SCHEME; RT_ERROR_INVALID_ARGUMENT;
///   RT_ERROR_STATE.
@_cdecl("rt_longpoll_set_url")
public func rt_longpoll_set_url(
    _ longpoll: rt_longpoll?, _ url: UnsafePointer<CChar>?
) -> rt_status {
    longpollCall(longpoll) { (poll) throws(RealtimeError) in try poll.setURL(text(url, "url")) }
}

/// How polls tell the server which messages have been received. Default:
/// RT_LONGPOLL_CURSOR_VALIDATORS. Before start. Since 0.1.
/// - Parameter query_parameter: the name of the query parameter, with RT_LONGPOLL_CURSOR_QUERY_ID;
///   NULL for `last_event_id`.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for an unknown cursor; RT_ERROR_STATE.
@_cdecl("rt_longpoll_set_cursor")
public func rt_longpoll_set_cursor(
    _ longpoll: rt_longpoll?, _ cursor: rt_longpoll_cursor, _ query_parameter: UnsafePointer<CChar>?
) -> rt_status {
    longpollOptions(longpoll) { (options) throws(RealtimeError) in
        let mode: LongPollCursorMode = try named(
            cursor, "cursor", "one of RT_LONGPOLL_CURSOR_VALIDATORS to RT_LONGPOLL_CURSOR_NONE")
        let name = try optionalText(query_parameter, "query_parameter")
        try options.setCursor(mode, queryParameter: name)
    }
}

/// Starts after the message with this id. With validators it must have the form of message ids: a
/// time in seconds since 1970, a colon and an ETag. Default: "". Before start only. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for a control character; RT_ERROR_STATE.
@_cdecl("rt_longpoll_set_last_event_id")
public func rt_longpoll_set_last_event_id(
    _ longpoll: rt_longpoll?, _ id: UnsafePointer<CChar>?
) -> rt_status {
    longpollCall(longpoll) { (poll) throws(RealtimeError) in
        try poll.configure(once: true) { (options) throws(RealtimeError) in
            try options.setLastEventID(text(id, "id"))
        }
    }
}

/// Changes a long poll's options.
func longpollOptions(
    _ longpoll: rt_longpoll?, once: Bool = false,
    _ body: (inout LongPollConfiguration) throws(RealtimeError) -> Void
) -> rt_status {
    longpollCall(longpoll) { (poll) throws(RealtimeError) in try poll.configure(once: once, body) }
}
