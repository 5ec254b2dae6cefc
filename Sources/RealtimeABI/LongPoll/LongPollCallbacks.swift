import CShims
import Engine
import Session
import Wire

// Chapter: long poll callbacks. They may be set at any time, from any thread; NULL removes a
// callback.

/// Sets the callback for an open long poll: the server has responded, or has held a poll for its
/// full time, for the first time or again after a failure. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for a NULL handle.
@_cdecl("rt_longpoll_on_open")
public func rt_longpoll_on_open(
    _ longpoll: rt_longpoll?, _ fn: rt_opened_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return longpollCall(longpoll) { (poll) throws(RealtimeError) in
        try poll.setHandlers { $0.open = openedHandler(box) }
    }
}

/// Sets the callback for messages. A message's `id` is the response's Last-Event-ID header. Without
/// one it is the Last-Modified time in seconds since 1970, a colon and the ETag, an id that Nchan
/// accepts on every transport. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for a NULL handle.
@_cdecl("rt_longpoll_on_message")
public func rt_longpoll_on_message(
    _ longpoll: rt_longpoll?, _ fn: rt_event_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return longpollCall(longpoll) { (poll) throws(RealtimeError) in
        try poll.setHandlers {
            $0.message = box.function.map { function in { $0.show(to: function, box.user) } }
        }
    }
}

/// Sets the callback for failed attempts. If the failure is fatal, the long poll is closed and this
/// is the last callback; otherwise another poll follows. A wait for a network is reported once, by
/// the failure that led to it or by RT_ERROR_CONNECT; `retry_in_ms` is then -1. RT_ERROR_GONE (410)
/// means that the polled resource was removed. By default it is not fatal, and polls start again
/// from the beginning. A failure that occurs before the callback is set is kept for it. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for a NULL handle.
@_cdecl("rt_longpoll_on_error")
public func rt_longpoll_on_error(
    _ longpoll: rt_longpoll?, _ fn: rt_failure_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return longpollCall(longpoll) { (poll) throws(RealtimeError) in
        try poll.setHandlers { $0.error = failureHandler(box) }
    }
}

/// Sets the callback before each poll, including the first. `attempt` is 1 unless the last poll
/// failed. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for a NULL handle.
@_cdecl("rt_longpoll_on_request")
public func rt_longpoll_on_request(
    _ longpoll: rt_longpoll?, _ fn: rt_attempt_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return longpollCall(longpoll) { (poll) throws(RealtimeError) in
        try poll.setHandlers { $0.request = attemptHandler(box) }
    }
}

/// Sets the callback for a server that requires credentials. After RT_CREDENTIALS_LATER the long
/// poll waits for `rt_longpoll_credentials_ready`. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for a NULL handle.
@_cdecl("rt_longpoll_on_credentials")
public func rt_longpoll_on_credentials(
    _ longpoll: rt_longpoll?, _ fn: rt_credentials_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return longpollCall(longpoll) { (poll) throws(RealtimeError) in
        try poll.setHandlers { $0.credentials = credentialsHandler(box) }
    }
}

extension LongPollMessage {
    /// Calls `function` with a view of a long poll's message.
    func show(to function: rt_event_fn, _ user: UnsafeMutableRawPointer?) {
        var view = rt_event(
            struct_bytes: MemoryLayout<rt_event>.size, id: characters(id), id_length: id.count,
            event: StaticText.empty, event_length: 0, data: characters(data),
            data_length: data.count, content_type: characters(contentType), had_id: hadID)
        function(&view, user)
    }
}
