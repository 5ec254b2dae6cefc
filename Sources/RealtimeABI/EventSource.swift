import Engine
import Session
import Wire

// Chapter: eventsource. Server-Sent Events (HTML §9.2): a stream of events that comes back by
// itself.

/// An event source: a request whose answer is a stream of events, made again when it ends. Life:
/// `rt_eventsource_new`, options and callbacks, `rt_eventsource_start`, events,
/// `rt_eventsource_close` or a fatal error, `rt_eventsource_free`. Without callbacks:
/// `rt_eventsource_new`, options, `rt_eventsource_receive` for each event. Callbacks and listeners
/// may be set at any time; an error that came before its callback is kept for it. Since 0.1.
public typealias rt_eventsource = OpaquePointer

/// Where an event source stands; the numbers are the standard's. Since 0.1.
public typealias rt_eventsource_state = Int32

/// Values of `rt_eventsource_state`. Since 0.1.
public enum RT_EVENTSOURCE: Int32 {
    /// Not started, connecting, or waiting to connect again.
    case CONNECTING = 0
    /// Events can come.
    case OPEN = 1
    /// Over, by a fatal error or `rt_eventsource_close`.
    case CLOSED = 2
}

/// Makes an event source; nothing is sent before `rt_eventsource_start` or
/// `rt_eventsource_receive`. Any thread. Since 0.1.
/// - Parameter loop: the loop it lives on, which it keeps alive. NULL is the library's own loop, as
///   for `rt_websocket_new`.
/// - Parameter url: `http://` or `https://`, copied; user and password become a basic Authorization
///   header.
/// - Parameter out: receives it; to be freed with `rt_eventsource_free`.
/// - Returns: RT_OK; RT_ERROR_INVALID_URL, RT_ERROR_UNSUPPORTED_SCHEME, RT_ERROR_INVALID_ARGUMENT,
///   RT_ERROR_FORKED, RT_ERROR_CLOSED for a freed loop.
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

/// Closes and gives back. NULL is accepted. Any thread; in a callback of its own too. Since 0.1.
@_cdecl("rt_eventsource_free")
public func rt_eventsource_free(_ eventsource: rt_eventsource?) {
    EventSourceConnection.release(eventsource) {
        $0.close()
        OwnLoop.leave($0.loop)
    }
}
