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
    eventsourceCall(eventsource) { (source) throws(RealtimeError) in
        try source.setURL(text(url, "url"))
    }
}

/// The request's method. Default GET. Before start. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for what is no token, for HEAD and for CONNECT;
/// RT_ERROR_STATE.
@_cdecl("rt_eventsource_set_method")
public func rt_eventsource_set_method(
    _ eventsource: rt_eventsource?, _ method: UnsafePointer<CChar>?
) -> rt_status {
    eventsourceOptions(eventsource) { (options) throws(RealtimeError) in
        try options.setMethod(text(method, "method"))
    }
}

/// The request's body, copied, sent with each attempt; with it the method is usually POST. Without
/// a Content-Type header it is text/plain in UTF-8. Default none. Before start. Since 0.1.
/// - Parameter data: NULL takes it away.
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

/// The id that the first request sends, whatever an id file says; "" for none. Before start alone.
/// Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for an id with CR or LF; RT_ERROR_STATE.
@_cdecl("rt_eventsource_set_last_event_id")
public func rt_eventsource_set_last_event_id(
    _ eventsource: rt_eventsource?, _ id: UnsafePointer<CChar>?
) -> rt_status {
    eventsourceOptions(eventsource, once: true) { (options) throws(RealtimeError) in
        try options.setLastEventID(text(id, "id"))
    }
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
    eventsourceOptions(eventsource, once: true) { (options) throws(RealtimeError) in
        try options.setIDFile(
            optionalText(path, "path"), key: optionalText(key, "key"))
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
    eventsourceOptions(eventsource) { (options) throws(RealtimeError) in
        try options.addRetryStatus(Int(http_status))
    }
}

/// Adds the statuses that pass, of servers behind proxies: 408, 425, 429, 500, 502, 503, 504.
/// Before start. Since 0.1.
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

/// Runs a change of an event source's options.
func eventsourceOptions(
    _ eventsource: rt_eventsource?, once: Bool = false,
    _ body: (inout EventSourceConfiguration) throws(RealtimeError) -> Void
) -> rt_status {
    eventsourceCall(eventsource) { (source) throws(RealtimeError) in
        try source.configure(once: once, body)
    }
}
