import CShims
import Engine
import Session
import Wire

// Chapter: eventsource options. All are set before rt_eventsource_start, or in the callbacks for a
// request and for credentials, for the attempts that follow. Those "before start alone" are taken
// once, at the start: RT_ERROR_STATE in callbacks too.

/// Connects to another URL from the next attempt on. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_URL; RT_ERROR_UNSUPPORTED_SCHEME; RT_ERROR_STATE.
@_cdecl("rt_eventsource_set_url")
public func rt_eventsource_set_url(
    _ eventsource: rt_eventsource?, _ url: UnsafePointer<CChar>?
) -> rt_status {
    eventsourceCall(eventsource) { try $0.setURL(text(url, "url")) }
}

/// The request's method. Default GET. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for what is no token, for HEAD and for CONNECT;
/// RT_ERROR_STATE.
@_cdecl("rt_eventsource_set_method")
public func rt_eventsource_set_method(
    _ eventsource: rt_eventsource?, _ method: UnsafePointer<CChar>?
) -> rt_status {
    eventsourceOptions(eventsource) { try $0.setMethod(text(method, "method")) }
}

/// The request's body, copied, sent with each attempt; with it the method is usually POST. Without
/// a Content-Type header it is text/plain in UTF-8. Default none. Before start. Since 0.1.
/// - Parameter data: NULL takes it away.
/// - Returns: RT_OK; RT_ERROR_TOO_LARGE; RT_ERROR_STATE.
@_cdecl("rt_eventsource_set_body")
public func rt_eventsource_set_body(
    _ eventsource: rt_eventsource?, _ data: UnsafePointer<UInt8>?, _ length: Int
) -> rt_status {
    eventsourceOptions(eventsource) {
        let bytes = try bytes(data, data == nil ? 0 : length, "data")
        $0.body = data == nil ? nil : Array(bytes)
    }
}

/// Adds a header to the requests. Accept is kept when it names text/event-stream; Cache-Control and
/// Last-Event-ID are the source's own. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_HEADER, which Expect is, too; RT_ERROR_STATE.
@_cdecl("rt_eventsource_add_header")
public func rt_eventsource_add_header(
    _ eventsource: rt_eventsource?, _ name: UnsafePointer<CChar>?, _ value: UnsafePointer<CChar>?
) -> rt_status {
    eventsourceOptions(eventsource) {
        try $0.addHeader(name: text(name, "name"), value: text(value, "value"))
    }
}

/// Sets a header in the place of all of its name. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_HEADER, which Expect is, too; RT_ERROR_STATE.
@_cdecl("rt_eventsource_set_header")
public func rt_eventsource_set_header(
    _ eventsource: rt_eventsource?, _ name: UnsafePointer<CChar>?, _ value: UnsafePointer<CChar>?
) -> rt_status {
    eventsourceOptions(eventsource) {
        try $0.setHeader(name: text(name, "name"), value: optionalText(value, "value"))
    }
}

/// Takes away every header that was added or set, those of the other setters too. Before start.
/// Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE.
@_cdecl("rt_eventsource_clear_headers")
public func rt_eventsource_clear_headers(
    _ eventsource: rt_eventsource?
) -> rt_status {
    eventsourceOptions(eventsource) { $0.clearHeaders() }
}

/// Sends a basic Authorization header (RFC 7617). Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for a user name with a colon; RT_ERROR_STATE.
@_cdecl("rt_eventsource_set_basic_auth")
public func rt_eventsource_set_basic_auth(
    _ eventsource: rt_eventsource?, _ user_name: UnsafePointer<CChar>?,
    _ password: UnsafePointer<CChar>?
) -> rt_status {
    eventsourceOptions(eventsource) {
        try $0.setBasicAuthorization(credentials(user_name, password))
    }
}

/// Sends a bearer Authorization header (RFC 6750). Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for ""; RT_ERROR_INVALID_HEADER; RT_ERROR_STATE.
@_cdecl("rt_eventsource_set_bearer_token")
public func rt_eventsource_set_bearer_token(
    _ eventsource: rt_eventsource?, _ token: UnsafePointer<CChar>?
) -> rt_status {
    eventsourceOptions(eventsource) {
        try $0.setBearerToken(optionalText(token, "token"))
    }
}

/// Delays attempts, and limits them, by a copy of this backoff, in the place of
/// `rt_eventsource_set_reconnection_time_ms`, `rt_eventsource_set_max_delay_ms`,
/// `rt_eventsource_set_max_reconnects` and `rt_eventsource_set_stable_time_ms`. A `retry` field of
/// the server still sets the initial delay. NULL, the default, leaves it to those. Before start
/// alone. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE.
@_cdecl("rt_eventsource_set_backoff")
public func rt_eventsource_set_backoff(
    _ eventsource: rt_eventsource?, _ backoff: rt_backoff?
) -> rt_status {
    eventsourceOptions(eventsource, once: true) { $0.backoff = try backoffConfiguration(backoff) }
}

/// Sets how connections are made, by a copy. NULL is the default. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE.
@_cdecl("rt_eventsource_set_network")
public func rt_eventsource_set_network(
    _ eventsource: rt_eventsource?, _ network: rt_network?
) -> rt_status {
    eventsourceOptions(eventsource) { $0.network = try networkConfiguration(network) }
}

/// Who says whether an attempt makes sense: while there is no network none is made and none is
/// counted, and when there is one again it follows within a second. It is kept alive, and not
/// copied. NULL is the default: RT_REACHABILITY_AUTO, one for all objects of the loop. Before
/// start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for one of another loop; RT_ERROR_STATE.
@_cdecl("rt_eventsource_set_reachability")
public func rt_eventsource_set_reachability(
    _ eventsource: rt_eventsource?, _ reachability: rt_reachability?
) -> rt_status {
    eventsourceCall(eventsource) {
        try $0.setReachability(reachability.map { try Reachability.borrow($0) })
    }
}

/// The id that the first request sends, whatever an id file says; "" for none. Before start alone.
/// Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for an id with CR or LF; RT_ERROR_STATE.
@_cdecl("rt_eventsource_set_last_event_id")
public func rt_eventsource_set_last_event_id(
    _ eventsource: rt_eventsource?, _ id: UnsafePointer<CChar>?
) -> rt_status {
    eventsourceOptions(eventsource, once: true) { try $0.setLastEventID(text(id, "id")) }
}

/// Keeps the last event id in this file, so that the next run goes on where this one stopped. Any
/// number of sources and processes may share it. It is readable by its owner alone, written at most
/// once a second and at close, and replaced as a whole; `path`.lock is used beside it. An id is
/// stored after the callback of its event (see also
/// `rt_eventsource_set_confirms_ids`): a crash repeats events, and loses none. Those of a loop that
/// name the same path write together. Writing blocks the loop for as long as the disk does. While
/// another process has the lock, the loop waits for it up to 40 ms each second. At close it waits
/// up to 500 ms, which all sources share that close within a second. If an id cannot be written at
/// close, only the log says so. The file has at most 16 MiB; an id for which it has no room is
/// reported to the error callback as RT_ERROR_STORE. Default none. Before start alone. Since 0.1.
/// - Parameter path: NULL for no file; the key still counts for `rt_eventsource_on_store`.
/// - Parameter key: under what this source's id is kept; NULL for its URL as it is at start,
///   whatever the request callback sets later.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for ""; RT_ERROR_STATE. A file that cannot be used
/// is an RT_ERROR_STORE of the error callback, not fatal, and the source starts without an id. A
/// damaged file is then replaced. One that is not the library's is left as it is: other content, a
/// symbolic link, not a regular file, another owner than the effective user, or a mode that lets
/// others write; the same for its lock.
@_cdecl("rt_eventsource_set_id_file")
public func rt_eventsource_set_id_file(
    _ eventsource: rt_eventsource?, _ path: UnsafePointer<CChar>?, _ key: UnsafePointer<CChar>?
) -> rt_status {
    eventsourceOptions(eventsource, once: true) {
        try $0.setIDFile(path.map { try text($0, "path") }, key: key.map { try text($0, "key") })
    }
}

/// Reconnects on this HTTP status instead of failing, after the usual delay or Retry-After up to
/// five minutes. By the standard every status but 200 is fatal. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT outside 400 to 599, for 401 and for 407;
/// RT_ERROR_STATE.
@_cdecl("rt_eventsource_add_retry_status")
public func rt_eventsource_add_retry_status(
    _ eventsource: rt_eventsource?, _ http_status: Int32
) -> rt_status {
    eventsourceOptions(eventsource) { try $0.addRetryStatus(Int(http_status)) }
}

/// Adds the statuses that pass, of servers behind proxies: 408, 425, 429, 500, 502, 503, 504.
/// Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE.
@_cdecl("rt_eventsource_set_resilient")
public func rt_eventsource_set_resilient(
    _ eventsource: rt_eventsource?
) -> rt_status {
    eventsourceOptions(eventsource) {
        for status in EventSourceConfiguration.resilientStatuses { try $0.addRetryStatus(status) }
    }
}

/// Lets this header of the caller's go along when a redirect leads to another origin. Before start.
/// Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_HEADER for what is no token; RT_ERROR_STATE.
@_cdecl("rt_eventsource_add_safe_header")
public func rt_eventsource_add_safe_header(
    _ eventsource: rt_eventsource?, _ name: UnsafePointer<CChar>?
) -> rt_status {
    eventsourceOptions(eventsource) { try $0.redirects.addSafeName(text(name, "name")) }
}

/// Runs a change of an event source's options.
func eventsourceOptions(
    _ eventsource: rt_eventsource?, once: Bool = false,
    _ body: (inout EventSourceConfiguration) throws -> Void
) -> rt_status {
    eventsourceCall(eventsource) { try $0.configure(once: once, body) }
}
