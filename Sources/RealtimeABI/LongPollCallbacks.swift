import CShims
import Engine
import Session
import Wire

// Chapter: long poll callbacks. They may be set at any time, from any thread; NULL takes one away.
// An error that came before its callback is kept for it.

/// Sets the callback for a server that answers. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_longpoll_on_open")
public func rt_longpoll_on_open(
    _ longpoll: rt_longpoll?, _ fn: rt_longpoll_open_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return poll(longpoll) { poll in
        try poll.setHandlers {
            $0.open = box.function.map { function in { function(box.user) } }
        }
    }
}

/// Sets the callback for messages. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_longpoll_on_message")
public func rt_longpoll_on_message(
    _ longpoll: rt_longpoll?, _ fn: rt_longpoll_message_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return poll(longpoll) { poll in
        try poll.setHandlers {
            $0.message = box.function.map { function in
                { message in
                    let (id, data) = (message.id, message.data)
                    let base = data.baseAddress ?? emptyBase
                    function(
                        characters(id), id.count, characters(message.contentType),
                        base.assumingMemoryBound(to: UInt8.self), data.count, message.hadID,
                        box.user)
                }
            }
        }
    }
}

/// Sets the callback for attempts that failed. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_longpoll_on_error")
public func rt_longpoll_on_error(
    _ longpoll: rt_longpoll?, _ fn: rt_longpoll_error_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return poll(longpoll) { poll in
        try poll.setHandlers {
            $0.error = box.function.map { function in
                { failure in
                    let delay = failure.retryIn.map { EventSourceConnection.milliseconds($0) }
                    failure.error.message.withCString {
                        function(
                            failure.error.code.rawValue, $0, Int32(clamping: failure.status),
                            failure.isFatal, delay ?? -1,
                            UInt32(clamping: failure.attempt), box.user)
                    }
                }
            }
        }
    }
}

/// Sets the callback for the beginning of each poll. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_longpoll_on_request")
public func rt_longpoll_on_request(
    _ longpoll: rt_longpoll?, _ fn: rt_longpoll_request_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return poll(longpoll) { poll in
        try poll.setHandlers {
            $0.request = box.function.map { function in
                { function(UInt32(clamping: $0), box.user) }
            }
        }
    }
}

/// Sets the callback for a server that wants credentials. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_longpoll_on_credentials")
public func rt_longpoll_on_credentials(
    _ longpoll: rt_longpoll?, _ fn: rt_longpoll_credentials_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return poll(longpoll) { poll in
        try poll.setHandlers {
            $0.credentials = box.function.map { function in
                { response in
                    try named(
                        function(Int32(clamping: response.status), box.user),
                        "the answer of the credentials callback",
                        "RT_CREDENTIALS_NONE, RT_CREDENTIALS_READY or RT_CREDENTIALS_LATER")
                }
            }
        }
    }
}
