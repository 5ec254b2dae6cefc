import Engine
import Session
import Wire

// Chapter: eventsource. Server-sent events (HTML §9.2): a stream of events that reconnects.
//
//     rt_eventsource *source;
//     rt_event *event;
//     rt_eventsource_new(NULL, "https://example.org/events", &source);  // or a loop, _on_message
//     rt_eventsource_set_last_event_id(source, "41");                   // continues after it
//     rt_eventsource_connect(source, 10000);                            // or _start
//     rt_eventsource_receive(source, -1, &event);                       // event->id, event->data
//     rt_event_free(event);
//     rt_eventsource_free(source);

/// An event source: a request whose response is a stream of events, and which is repeated when the
/// stream ends. Life cycle: `rt_eventsource_new`, options and callbacks, `rt_eventsource_start`,
/// events, `rt_eventsource_close` or a fatal error, `rt_eventsource_free`. Without callbacks:
/// `rt_eventsource_new`, options, `rt_eventsource_receive` for each event. Callbacks and listeners
/// may be set at any time. An error that occurs before there is an error callback is kept for it.
/// Since 0.1.
public typealias rt_eventsource = OpaquePointer

/// Creates an event source. Nothing is sent before `rt_eventsource_start` or
/// `rt_eventsource_receive`. Any thread. Since 0.1.
/// - Parameter loop: the event source's loop, which it keeps alive. NULL means the library's own
///   loop, as for `rt_websocket_new`.
/// - Parameter url: `http://` or `https://`, copied; user and password become a basic Authorization
///   header.
/// - Parameter out: receives the event source; free it with `rt_eventsource_free`.
/// - Returns: RT_OK; RT_ERROR_INVALID_URL; RT_ERROR_UNSUPPORTED_SCHEME; RT_ERROR_INVALID_ARGUMENT;
///   RT_ERROR_FORKED; RT_ERROR_CLOSED on a freed loop.
@_cdecl("rt_eventsource_new")
public func rt_eventsource_new(
    _ loop: rt_loop?, _ url: UnsafePointer<CChar>?, _ out: UnsafeMutablePointer<rt_eventsource?>?
) -> rt_status {
    border { () throws(RealtimeError) in
        let url = try text(url, "url")
        let out = try required(out, "out")
        out.pointee = try onLoop(loop) { loop throws(RealtimeError) in
            EventSourceConnection.export(try EventSourceConnection(url: url, on: loop))
        }
    }
}

/// Closes and frees the event source. NULL is accepted. Any thread, also inside its callbacks.
/// Since 0.1.
@_cdecl("rt_eventsource_free")
public func rt_eventsource_free(_ eventsource: rt_eventsource?) {
    EventSourceConnection.release(eventsource) {
        $0.close()
        OwnLoop.leave($0.loop)
    }
}
