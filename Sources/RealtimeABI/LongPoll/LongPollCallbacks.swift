import CShims
import Engine
import Session
import Wire

// Chapter: long poll callbacks. They may be set at any time, from any thread; NULL removes a
// callback.

/// - Callbacks: longpoll, longpollHandlers
extension LongPollHandlers {
    /// Sets the callback for an open long poll: the server has responded, or has held a poll for
    /// its full time, for the first time or again after a failure. Since 0.1.
    mutating func onOpen(_ box: CallbackBox<rt_opened_fn>) { open = openedHandler(box) }

    /// Sets the callback for messages. A message's `id` is the response's Last-Event-ID header.
    /// Without one it is the Last-Modified time in seconds since 1970, a colon and the ETag, an id
    /// that Nchan accepts on every transport. Since 0.1.
    mutating func onMessage(_ box: CallbackBox<rt_event_fn>) {
        message = box.function.map { function in { $0.show(to: function, box.user) } }
    }

    /// Sets the callback for failed attempts. If the failure is fatal, the long poll is closed and
    /// this is the last callback; otherwise another poll follows. A wait for a network is reported
    /// once, by the failure that led to it or by RT_ERROR_CONNECT; `retry_in_ms` is then -1.
    /// RT_ERROR_GONE (410) means that the polled resource was removed. By default it is not fatal,
    /// and polls start again from the beginning. A failure that occurs before the callback is set
    /// is kept for it. Since 0.1.
    mutating func onError(_ box: CallbackBox<rt_failure_fn>) { error = failureHandler(box) }

    /// Sets the callback before each poll, including the first. `attempt` is 1 unless the last poll
    /// failed. Since 0.1.
    mutating func onRequest(_ box: CallbackBox<rt_attempt_fn>) { request = attemptHandler(box) }

    /// Sets the callback for a server that requires credentials. After RT_CREDENTIALS_LATER the
    /// long poll waits for `rt_longpoll_credentials_ready`. Since 0.1.
    mutating func onCredentials(_ box: CallbackBox<rt_credentials_fn>) {
        credentials = credentialsHandler(box)
    }
}

/// Sets handlers of a long poll.
func longpollHandlers(
    _ longpoll: rt_longpoll?, _ body: (inout LongPollHandlers) -> Void
) -> rt_status {
    longpollCall(longpoll) { (poll) throws(RealtimeError) in try poll.setHandlers(body) }
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
