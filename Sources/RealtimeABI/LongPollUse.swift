import Engine
import Session
import Wire

// Chapter: long poll use. Polling, the end, and what it is.

/// Begins to poll. No callback comes inside this call. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for a last event id that does not fit the cursor;
///   RT_ERROR_STATE when it was started before; RT_ERROR_CLOSED.
@_cdecl("rt_longpoll_start")
public func rt_longpoll_start(_ longpoll: rt_longpoll?) -> rt_status {
    longpollCall(longpoll) { (poll) throws(RealtimeError) in try poll.start() }
}

/// Drops the poll in flight and polls again at once. An answer that is being delivered, or waits in
/// a pause, is delivered first. While credentials are fetched (RT_CREDENTIALS_LATER) it changes
/// nothing: their answer polls. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE before start; RT_ERROR_CLOSED.
@_cdecl("rt_longpoll_restart")
public func rt_longpoll_restart(_ longpoll: rt_longpoll?) -> rt_status {
    longpollCall(longpoll) { (poll) throws(RealtimeError) in try poll.restart() }
}

/// Answers what RT_CREDENTIALS_LATER had left open. Any thread. Since 0.1.
/// - Parameter fresh: true polls once more, with the headers that were set since; false
///   ends it with the server's refusal, a fatal RT_ERROR_HTTP_STATUS.
/// - Returns: RT_OK, also when nothing was asked; RT_ERROR_STATE before start; RT_ERROR_CLOSED.
@_cdecl("rt_longpoll_credentials_ready")
public func rt_longpoll_credentials_ready(
    _ longpoll: rt_longpoll?, _ fresh: Bool
) -> rt_status {
    longpollCall(longpoll) { (poll) throws(RealtimeError) in try poll.credentialsAreReady(fresh) }
}

/// Ends it for good and aborts the request in flight. There is no callback for it, and none begins
/// after this returned, except on the loop's thread one that had begun. Closing again changes
/// nothing. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_longpoll_close")
public func rt_longpoll_close(_ longpoll: rt_longpoll?) -> rt_status {
    longpollCall(longpoll) { $0.close() }
}

/// Stops delivering; what comes waits, at most one answer, and no further poll is made before it is
/// delivered. Any thread; from another than the loop's one message may still come. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_longpoll_pause")
public func rt_longpoll_pause(_ longpoll: rt_longpoll?) -> rt_status {
    longpollCall(longpoll) { (poll) throws(RealtimeError) in try poll.pause() }
}

/// Goes on delivering. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_longpoll_resume")
public func rt_longpoll_resume(_ longpoll: rt_longpoll?) -> rt_status {
    longpollCall(longpoll) { (poll) throws(RealtimeError) in try poll.resume() }
}

/// Where it stands. Any thread. Since 0.1.
/// - Returns: an `rt_longpoll_state`; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_longpoll_get_state")
public func rt_longpoll_get_state(_ longpoll: rt_longpoll?) -> Int32 {
    borderValue { () throws(RealtimeError) in try LongPollConnection.borrow(longpoll).state.rawValue
    }
}

/// Where the next poll goes: the URL as it was set last, without user and password. Any thread.
/// Since 0.1.
/// - Parameter buffer: receives the URL and a NUL, cut to `size` bytes; may be NULL when `size` is
///   0.
/// - Parameter out_length: receives the whole URL's length.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT.
@_cdecl("rt_longpoll_get_url")
public func rt_longpoll_get_url(
    _ longpoll: rt_longpoll?, _ buffer: UnsafeMutablePointer<CChar>?, _ size: Int,
    _ out_length: UnsafeMutablePointer<Int>?
) -> rt_status {
    longpollCall(longpoll) { (poll) throws(RealtimeError) in
        try copy(text: poll.url, to: buffer, size, out_length)
    }
}

/// How far the messages have come, as the next poll says it; "" for the beginning. It moves when
/// the callback of an answer's last message has returned. To begin there another time, see
/// `rt_longpoll_set_last_event_id`. Any thread. Since 0.1.
/// - Parameter buffer: receives the id and a NUL, cut to `size` bytes; may be NULL when `size` is
///   0.
/// - Parameter out_length: receives the whole id's length.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT.
@_cdecl("rt_longpoll_get_last_event_id")
public func rt_longpoll_get_last_event_id(
    _ longpoll: rt_longpoll?, _ buffer: UnsafeMutablePointer<CChar>?, _ size: Int,
    _ out_length: UnsafeMutablePointer<Int>?
) -> rt_status {
    longpollCall(longpoll) { (poll) throws(RealtimeError) in
        try copy(text: poll.lastEventID, to: buffer, size, out_length)
    }
}

/// Runs a call on a long poll.
func longpollCall(
    _ longpoll: rt_longpoll?, _ body: (LongPollConnection) throws(RealtimeError) -> Void
) -> rt_status {
    border { () throws(RealtimeError) in try LongPollConnection.borrowing(longpoll, body) }
}
