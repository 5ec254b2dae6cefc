import CShims
import Engine
import Session
import Wire

// Chapter: eventsource options. "Before start": the request and credentials callbacks may set the
// option too, for the attempts that follow. "Before start only": the option takes effect at start,
// and setting it in a callback is RT_ERROR_STATE.

/// Changes the URL from the next attempt on. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_URL; RT_ERROR_UNSUPPORTED_SCHEME; RT_ERROR_STATE.
@_cdecl("rt_eventsource_set_url")
public func rt_eventsource_set_url(
    _ eventsource: rt_eventsource?, _ url: UnsafePointer<CChar>?
) -> rt_status {
    eventsourceCall(eventsource) { (source) throws(RealtimeError) in
        try source.setURL(text(url, "url"))
    }
}

/// Sets the request's method. Default: GET. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for text that is not a token, for HEAD and for
///   CONNECT; RT_ERROR_STATE.
@_cdecl("rt_eventsource_set_method")
public func rt_eventsource_set_method(
    _ eventsource: rt_eventsource?, _ method: UnsafePointer<CChar>?
) -> rt_status {
    eventsourceOptions(eventsource) { (options) throws(RealtimeError) in
        try options.setMethod(text(method, "method"))
    }
}

/// Sets the request's body, which is copied and sent with each attempt, usually with the method
/// POST. Without a Content-Type header, it is sent as text/plain in UTF-8. Default: none. Before
/// start. Since 0.1.
/// - Parameter data: NULL removes the body.
/// - Returns: RT_OK; RT_ERROR_TOO_LARGE; RT_ERROR_STATE.
@_cdecl("rt_eventsource_set_body")
public func rt_eventsource_set_body(
    _ eventsource: rt_eventsource?, _ data: UnsafePointer<UInt8>?, _ length: Int
) -> rt_status {
    eventsourceOptions(eventsource) { (options) throws(RealtimeError) in
        let bytes = try bytes(data, data == nil ? 0 : length, "data")
        options.body = data == nil ? nil : Array(bytes)
    }
}

/// Sets the last event id that the first request sends; it overrides the id file. "" sends none.
/// Before start only. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for an id with CR or LF; RT_ERROR_STATE.
@_cdecl("rt_eventsource_set_last_event_id")
public func rt_eventsource_set_last_event_id(
    _ eventsource: rt_eventsource?, _ id: UnsafePointer<CChar>?
) -> rt_status {
    eventsourceOptions(eventsource, once: true) { (options) throws(RealtimeError) in
        try options.setLastEventID(text(id, "id"))
    }
}

/// Keeps the last event id in a file, so that the next run continues where this one stopped.
/// Default: none. Before start only.
///
/// Any number of sources and processes may share the file. Only its owner can read it. It is
/// written at most once a second and at close, and replaced as a whole; a lock file `path`.lock is
/// beside it. Sources of a loop that name the same path write together. An id is stored after the
/// callback of its event has returned (see also `rt_eventsource_set_confirms_ids`), so a crash
/// repeats events but loses none.
///
/// Writing blocks the loop for as long as the disk takes. While another process holds the lock, the
/// loop waits for it up to 40 ms each second. At close it waits up to 500 ms, shared by all sources
/// that close within a second; an id that cannot be written then is only reported in the log. The
/// file holds at most 16 MiB; an id that does not fit is reported to the error callback as
/// RT_ERROR_STORE. Since 0.1.
/// - Parameter path: NULL for no file; the key is still used for `rt_eventsource_on_store`.
/// - Parameter key: the key under which this source's id is stored; NULL for its URL at start,
///   whatever the request callback sets later.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for ""; RT_ERROR_STATE. If the file cannot be used,
///   the error callback receives a non-fatal RT_ERROR_STORE, and the source starts without an id. A
///   damaged file is replaced. A file or lock file that does not belong to the library is left
///   unchanged: one that has other content, is not a regular file (a symbolic link included), is
///   not owned by the effective user, or is writable by others.
@_cdecl("rt_eventsource_set_id_file")
public func rt_eventsource_set_id_file(
    _ eventsource: rt_eventsource?, _ path: UnsafePointer<CChar>?, _ key: UnsafePointer<CChar>?
) -> rt_status {
    eventsourceOptions(eventsource, once: true) { (options) throws(RealtimeError) in
        try options.setIDFile(
            optionalText(path, "path"), key: optionalText(key, "key"))
    }
}

/// Adds an HTTP status on which the event source reconnects instead of failing, after the usual
/// delay or the server's Retry-After, up to five minutes. By the standard every status but 200 is
/// fatal. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT outside 400 to 599, for 401 and for 407;
///   RT_ERROR_STATE.
@_cdecl("rt_eventsource_add_retry_status")
public func rt_eventsource_add_retry_status(
    _ eventsource: rt_eventsource?, _ http_status: Int32
) -> rt_status {
    eventsourceOptions(eventsource) { (options) throws(RealtimeError) in
        try options.addRetryStatus(Int(http_status))
    }
}

/// Adds the retry statuses that are usually temporary, such as those of proxies: 408, 425, 429,
/// 500, 502, 503, 504, and Cloudflare's 520 to 524 and 530. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE.
@_cdecl("rt_eventsource_set_resilient")
public func rt_eventsource_set_resilient(
    _ eventsource: rt_eventsource?
) -> rt_status {
    eventsourceOptions(eventsource) { (options) throws(RealtimeError) in
        for status in EventSourceConfiguration.resilientStatuses {
            try options.addRetryStatus(status)
        }
    }
}

/// Changes an event source's options.
func eventsourceOptions(
    _ eventsource: rt_eventsource?, once: Bool = false,
    _ body: (inout EventSourceConfiguration) throws(RealtimeError) -> Void
) -> rt_status {
    eventsourceCall(eventsource) { (source) throws(RealtimeError) in
        try source.configure(once: once, body)
    }
}
