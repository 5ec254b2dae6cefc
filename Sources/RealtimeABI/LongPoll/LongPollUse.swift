import Engine
import Session
import Wire

// Chapter: long poll use. Polling, closing, and state.

/// Starts polling. No callback is called inside this call. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for a last event id that does not fit the cursor;
///   RT_ERROR_STATE if it was started before; RT_ERROR_CLOSED.
@_cdecl("rt_longpoll_start")
public func rt_longpoll_start(_ longpoll: rt_longpoll?) -> rt_status {
    longpollCall(longpoll) { (poll) throws(RealtimeError) in try poll.start() }
}

/// Drops the current poll and polls again at once. A response that is being delivered, or that
/// waits because of a pause, is delivered first. While credentials are being fetched
/// (RT_CREDENTIALS_LATER), the call has no effect; polling continues once they are ready. Any
/// thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE before start; RT_ERROR_CLOSED.
@_cdecl("rt_longpoll_restart")
public func rt_longpoll_restart(_ longpoll: rt_longpoll?) -> rt_status {
    longpollCall(longpoll) { (poll) throws(RealtimeError) in try poll.restart() }
}

/// Tells the long poll that the network is back. If its next attempt waits, for its time or for a
/// network, it is made at once. Failures continue to count. A poll that is being made continues
/// (`rt_longpoll_restart` replaces it). To report the loss of the network, use a manual
/// reachability monitor (`rt_longpoll_set_reachability`). Any thread. Since 0.1.
/// - Returns: RT_OK, also if there is nothing to do; RT_ERROR_INVALID_ARGUMENT for NULL;
///   RT_ERROR_FORKED; RT_ERROR_CLOSED on a freed loop.
@_cdecl("rt_longpoll_retry_now")
public func rt_longpoll_retry_now(_ longpoll: rt_longpoll?) -> rt_status {
    longpollCall(longpoll) { (poll) throws(RealtimeError) in try poll.retryNow() }
}

/// Reports the result of fetching credentials, after RT_CREDENTIALS_LATER. Any thread. Since 0.1.
/// - Parameter fresh: true repeats the poll with the headers set since; false fails with the
///   server's refusal, a fatal RT_ERROR_HTTP_STATUS.
/// - Returns: RT_OK, also if no credentials were requested; RT_ERROR_STATE before start;
///   RT_ERROR_CLOSED.
@_cdecl("rt_longpoll_credentials_ready")
public func rt_longpoll_credentials_ready(
    _ longpoll: rt_longpoll?, _ fresh: Bool
) -> rt_status {
    longpollCall(longpoll) { (poll) throws(RealtimeError) in try poll.completeCredentials(fresh) }
}

/// Defers the attempt that begins. Call it inside the request callback, which then returns true.
/// The long poll waits for `rt_longpoll_attempt_ready`, without a time limit. Meanwhile any thread
/// may change the options that the callback may change. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE outside of the callback; RT_ERROR_CLOSED.
@_cdecl("rt_longpoll_defer_attempt")
public func rt_longpoll_defer_attempt(_ longpoll: rt_longpoll?) -> rt_status {
    longpollCall(longpoll) { (poll) throws(RealtimeError) in try poll.deferAttempt() }
}

/// Makes the attempt that was deferred, with the options set since. Any thread. Since 0.1.
/// - Parameter continues: false closes the long poll, as the callback can.
/// - Returns: RT_OK, also if no attempt was deferred; RT_ERROR_STATE before start; RT_ERROR_CLOSED.
@_cdecl("rt_longpoll_attempt_ready")
public func rt_longpoll_attempt_ready(
    _ longpoll: rt_longpoll?, _ continues: Bool
) -> rt_status {
    longpollCall(longpoll) { (poll) throws(RealtimeError) in
        try poll.attemptIsReady(continues)
    }
}

/// Closes the long poll for good and aborts the current request. No callback reports this, and none
/// begins after this returns; called on a thread other than the loop's, one that has begun may
/// still be running. Further calls have no effect. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_longpoll_close")
public func rt_longpoll_close(_ longpoll: rt_longpoll?) -> rt_status {
    longpollCall(longpoll) { $0.close() }
}

/// Stops delivering messages. At most one response waits, and no further poll is made before it is
/// delivered. Any thread; called on a thread other than the loop's, one message may still come.
/// Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_longpoll_pause")
public func rt_longpoll_pause(_ longpoll: rt_longpoll?) -> rt_status {
    longpollCall(longpoll) { (poll) throws(RealtimeError) in try poll.pause() }
}

/// Continues delivering messages. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_longpoll_resume")
public func rt_longpoll_resume(_ longpoll: rt_longpoll?) -> rt_status {
    longpollCall(longpoll) { (poll) throws(RealtimeError) in try poll.resume() }
}

/// Returns the state. Any thread. Since 0.1.
/// - Returns: an `rt_state`; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_longpoll_get_state")
public func rt_longpoll_get_state(_ longpoll: rt_longpoll?) -> Int32 {
    borderValue { () throws(RealtimeError) in
        try LongPollConnection.borrow(longpoll).connectionState.rawValue
    }
}

/// Copies the URL of the next poll, without user and password. Any thread. Since 0.1.
/// - Parameter buffer: receives the URL and a NUL, cut to `size` bytes; may be NULL if `size` is 0.
/// - Parameter out_length: receives the length of the whole URL.
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

/// Copies the cursor that the next poll will send: the id of the last message received, "" at the
/// beginning. It changes when the callback for a response's last message has returned. To continue
/// there in another run, pass it to `rt_longpoll_set_last_event_id`. Any thread. Since 0.1.
/// - Parameter buffer: receives the id and a NUL, cut to `size` bytes; may be NULL if `size` is 0.
/// - Parameter out_length: receives the length of the whole id.
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
