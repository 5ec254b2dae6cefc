import CShims
import Engine
import Session
import Wire

// Chapter: long poll callbacks. They may be set at any time, from any thread; NULL takes one away.

/// Sets the callback for a server that answers, or has held a poll for its whole time: for the
/// first time, or again after a failure. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for a NULL handle.
@_cdecl("rt_longpoll_on_open")
public func rt_longpoll_on_open(
    _ longpoll: rt_longpoll?, _ fn: rt_opened_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return longpollCall(longpoll) { (poll) throws(RealtimeError) in
        try poll.setHandlers { $0.open = opened(box) }
    }
}

/// Sets the callback for messages. Their `id` is the answer's Last-Event-ID header, or its
/// Last-Modified in seconds since 1970, a colon and its ETag, which Nchan takes on every transport.
/// Since 0.1.
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

/// Sets the callback for attempts that failed. Unless the failure is fatal another poll follows.
/// RT_ERROR_GONE (410) is not fatal by default: what was polled was removed, and polls begin anew.
/// When it is fatal the poll is closed, and this is the last callback. A failure that came before
/// its callback is kept for it. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for a NULL handle.
@_cdecl("rt_longpoll_on_error")
public func rt_longpoll_on_error(
    _ longpoll: rt_longpoll?, _ fn: rt_failure_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return longpollCall(longpoll) { (poll) throws(RealtimeError) in
        try poll.setHandlers { $0.error = failed(box) }
    }
}

/// Sets the callback for the beginning of each poll, the first one too; `attempt` is 1 unless the
/// last one failed. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for a NULL handle.
@_cdecl("rt_longpoll_on_request")
public func rt_longpoll_on_request(
    _ longpoll: rt_longpoll?, _ fn: rt_attempt_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return longpollCall(longpoll) { (poll) throws(RealtimeError) in
        try poll.setHandlers { $0.request = attempting(box) }
    }
}

/// Sets the callback for a server that wants credentials; RT_CREDENTIALS_LATER waits for
/// `rt_longpoll_credentials_ready`. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for a NULL handle.
@_cdecl("rt_longpoll_on_credentials")
public func rt_longpoll_on_credentials(
    _ longpoll: rt_longpoll?, _ fn: rt_credentials_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return longpollCall(longpoll) { (poll) throws(RealtimeError) in
        try poll.setHandlers { $0.credentials = asked(box) }
    }
}
