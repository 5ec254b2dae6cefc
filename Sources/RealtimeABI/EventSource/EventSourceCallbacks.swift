import CShims
import Engine
import Session
import Wire

// Chapter: eventsource callbacks. They may be set at any time, from any thread; NULL removes a
// callback.

/// Receives a comment: the text after its colon. Servers send comments to keep a connection alive.
/// The text is valid UTF-8 and may contain NULs; a NUL follows its last byte. It is valid until the
/// callback returns. Since 0.1.
public typealias rt_eventsource_comment_fn =
    @convention(c) (
        _ comment: UnsafePointer<CChar>?, _ length: Int, _ user: UnsafeMutableRawPointer?
    ) -> Void

/// The stream set a reconnection time, in milliseconds, at most a day. Since 0.1.
public typealias rt_eventsource_retry_fn =
    @convention(c) (_ time_ms: Int64, _ user: UnsafeMutableRawPointer?) -> Void

/// Asks the program to store `id` under `key` for the next run; "" means to delete it. Called after
/// the callback of the id's event, at most once a second, and at the end. The key is that of
/// `rt_eventsource_set_id_file`, or the URL at start. Both are NUL-terminated and valid until the
/// callback returns. Since 0.1.
public typealias rt_eventsource_store_fn =
    @convention(c) (
        _ key: UnsafePointer<CChar>?, _ id: UnsafePointer<CChar>?, _ id_length: Int,
        _ user: UnsafeMutableRawPointer?
    ) -> Void

/// Receives an event type that has a listener. Since 0.1.
public typealias rt_eventsource_name_fn =
    @convention(c) (
        _ event: UnsafePointer<CChar>?, _ length: Int, _ user: UnsafeMutableRawPointer?
    ) -> Void

/// - Callbacks: eventsource, eventsourceHandlers
extension EventSourceHandlers {
    /// Sets the callback for an open stream: the server responded with 200 and text/event-stream.
    /// Since 0.1.
    mutating func onOpen(_ box: CallbackBox<rt_opened_fn>) { open = openedHandler(box) }

    /// Sets the callback for events of the type "message", which is also the type of events without
    /// one. Other types go to listeners. Since 0.1.
    mutating func onMessage(_ box: CallbackBox<rt_event_fn>) { message = handler(box) }

    /// Sets the callback for events of all types. It is called after the listeners of the event's
    /// type. Since 0.1.
    mutating func onAny(_ box: CallbackBox<rt_event_fn>) { any = handler(box) }

    /// Sets the callback for comments. It is called as each comment is read. Since 0.1.
    mutating func onComment(_ box: CallbackBox<rt_eventsource_comment_fn>) {
        comment = box.function.map { function in
            { function(characters($0), $0.count, box.user) }
        }
    }

    /// Sets the callback for reconnection times. It is called at the end of each `retry` line.
    /// Since 0.1.
    mutating func onRetry(_ box: CallbackBox<rt_eventsource_retry_fn>) {
        retry = box.function.map { function in { function($0, box.user) } }
    }

    /// Sets the callback for failed attempts and ended streams. `status` is RT_ERROR_CLOSED for a
    /// stream that ended in order. If the failure is fatal, the event source is closed and this is
    /// the last callback; otherwise it reconnects. A wait for a network is reported once, by the
    /// failure that led to it or by RT_ERROR_CONNECT; `retry_in_ms` is then -1. A failure with
    /// `attempt` 0 does not affect the connection (an id file that cannot be used). A failure that
    /// occurs before the callback is set is kept for it. Since 0.1.
    mutating func onError(_ box: CallbackBox<rt_failure_fn>) { error = failureHandler(box) }

    /// Sets the callback before each attempt, including the first. Since 0.1.
    mutating func onRequest(_ box: CallbackBox<rt_attempt_fn>) { request = attemptHandler(box) }

    /// Sets the callback for a server that requires credentials. After RT_CREDENTIALS_LATER the
    /// event source waits for `rt_eventsource_credentials_ready`. Since 0.1.
    mutating func onCredentials(_ box: CallbackBox<rt_credentials_fn>) {
        credentials = credentialsHandler(box)
    }

    /// Sets the callback that stores ids wherever the program keeps them. In the next run, pass the
    /// stored id to `rt_eventsource_set_last_event_id`. Since 0.1.
    mutating func onStore(_ box: CallbackBox<rt_eventsource_store_fn>) {
        storeID = box.function.map { function in
            { key, id in
                key.withCString { key in
                    id.withCString { function(key, $0, id.utf8.count, box.user) }
                }
            }
        }
    }
}

/// Adds a listener for events of one type. Listeners are called in the order in which they were
/// added. Any thread, at any time. Since 0.1.
/// - Parameter event: the type, compared byte for byte; "message" for events without one.
/// - Parameter out: receives the id for `rt_eventsource_remove_listener`; may be NULL.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for a NULL or empty type or a NULL function.
@_cdecl("rt_eventsource_add_listener")
public func rt_eventsource_add_listener(
    _ eventsource: rt_eventsource?, _ event: UnsafePointer<CChar>?,
    _ fn: rt_event_fn?, _ user: UnsafeMutableRawPointer?, _ destroy: rt_destroy_fn?,
    _ out: UnsafeMutablePointer<UInt64>?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return eventsourceCall(eventsource) { (source) throws(RealtimeError) in
        let type = try type(event)
        let handle = try required(handler(box), "fn")
        let token = try source.addListener(type, handle)
        out?.pointee = token
    }
}

/// Removes a listener. A listener may remove itself. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_NOT_FOUND if the listener does not exist, or no longer exists.
@_cdecl("rt_eventsource_remove_listener")
public func rt_eventsource_remove_listener(
    _ eventsource: rt_eventsource?, _ listener: UInt64
) -> rt_status {
    eventsourceCall(eventsource) { (source) throws(RealtimeError) in
        guard try source.removeListener(listener) else {
            throw RealtimeError(.notFound, "no listener has the number \(listener)")
        }
    }
}

/// Removes all listeners for events of one type. Any thread. Since 0.1.
/// - Returns: RT_OK, also if there were none; RT_ERROR_INVALID_ARGUMENT.
@_cdecl("rt_eventsource_remove_listeners")
public func rt_eventsource_remove_listeners(
    _ eventsource: rt_eventsource?, _ event: UnsafePointer<CChar>?
) -> rt_status {
    eventsourceCall(eventsource) { (source) throws(RealtimeError) in
        let type = try type(event)
        try source.removeListeners(type)
    }
}

/// Calls `fn` once for each type that has a listener, in bytewise order, inside this call. Any
/// thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_eventsource_event_names")
public func rt_eventsource_event_names(
    _ eventsource: rt_eventsource?, _ fn: rt_eventsource_name_fn?,
    _ user: UnsafeMutableRawPointer?
) -> rt_status {
    eventsourceCall(eventsource) { (source) throws(RealtimeError) in
        let fn = try required(fn, "fn")
        for type in source.listenedTypes {
            let text = type.map { CChar(bitPattern: $0) } + [0]
            text.withUnsafeBufferPointer { fn($0.baseAddress, type.count, user) }
        }
    }
}

/// Sets handlers of an event source.
func eventsourceHandlers(
    _ eventsource: rt_eventsource?, _ body: (inout EventSourceHandlers) -> Void
) -> rt_status {
    eventsourceCall(eventsource) { (source) throws(RealtimeError) in
        try source.setHandlers(body)
    }
}

private func type(_ event: UnsafePointer<CChar>?) throws(RealtimeError) -> [UInt8] {
    let type = Array(try text(event, "event").utf8)
    guard !type.isEmpty else {
        throw RealtimeError(
            .invalidArgument, "the event type is empty; events without one have \"message\"")
    }
    return type
}

private func handler(
    _ box: CallbackBox<rt_event_fn>
) -> EventSourceHandlers.Event? {
    guard let function = box.function else { return nil }
    return { $0.show(to: function, box.user) }
}

extension StreamEvent {
    /// Calls `function` with a view of an event source's event.
    func show(to function: rt_event_fn, _ user: UnsafeMutableRawPointer?) {
        var view = rt_event(
            struct_bytes: MemoryLayout<rt_event>.size, id: characters(id), id_length: id.count,
            event: characters(type), event_length: type.count, data: characters(data),
            data_length: data.count, content_type: StaticText.empty, had_id: hadID)
        function(&view, user)
    }
}
