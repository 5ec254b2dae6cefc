import Engine
import Session
import Wire

// Chapter: long poll. Messages by requests that the server answers when there is something new.
//
//     rt_longpoll *poll;
//     rt_event *message;
//     rt_longpoll_new(NULL, "https://example.org/messages", &poll);  // or a loop, _on_message
//     rt_longpoll_set_last_event_id(poll, "41");                     // continues after it
//     rt_longpoll_connect(poll, 10000);                              // or _start
//     rt_longpoll_receive(poll, -1, &message);                       // message->id, message->data
//     rt_event_free(message);
//     rt_longpoll_free(poll);

/// A long poll: one request after the other, each of which the server holds until it has a message.
/// Life cycle: `rt_longpoll_new`, options and callbacks, `rt_longpoll_start`, messages,
/// `rt_longpoll_close` or a fatal error, `rt_longpoll_free`. If a failure interrupts the delivery
/// of a message, the message comes again. If the server drops messages between two polls, the
/// library cannot notice that they are missing. Since 0.1.
public typealias rt_longpoll = OpaquePointer

/// How a poll tells the server which messages have been received. Since 0.1.
public typealias rt_longpoll_cursor = Int32

/// Values of `rt_longpoll_cursor`. Since 0.1.
public enum RT_LONGPOLL_CURSOR: Int32 {
    /// By the last response's Last-Modified and ETag, as If-Modified-Since and If-None-Match. The
    /// default.
    case VALIDATORS = 0
    /// By the id, in a Last-Event-ID header.
    case HEADER_ID = 1
    /// By the id, in a query parameter.
    case QUERY_ID = 2
    /// Polls do not say.
    case NONE = 3
}

/// Creates a long poll. Nothing is sent before `rt_longpoll_start` or `rt_longpoll_receive`. Any
/// thread. Since 0.1.
/// - Parameter loop: the long poll's loop, which it keeps alive. NULL means the library's own loop,
///   as for `rt_websocket_new`.
/// - Parameter url: `http://` or `https://`, copied; user and password become a basic Authorization
///   header.
/// - Parameter out: receives the long poll; free it with `rt_longpoll_free`.
/// - Returns: RT_OK; RT_ERROR_INVALID_URL; RT_ERROR_UNSUPPORTED_SCHEME; RT_ERROR_INVALID_ARGUMENT;
///   RT_ERROR_FORKED; RT_ERROR_CLOSED on a freed loop.
@_cdecl("rt_longpoll_new")
public func rt_longpoll_new(
    _ loop: rt_loop?, _ url: UnsafePointer<CChar>?, _ out: UnsafeMutablePointer<rt_longpoll?>?
) -> rt_status {
    border { () throws(RealtimeError) in
        let url = try text(url, "url")
        let out = try required(out, "out")
        out.pointee = try onLoop(loop) { loop throws(RealtimeError) in
            LongPollConnection.export(try LongPollConnection(url: url, on: loop))
        }
    }
}

/// Closes and frees the long poll. NULL is accepted. Any thread, also inside its callbacks. Since
/// 0.1.
@_cdecl("rt_longpoll_free")
public func rt_longpoll_free(_ longpoll: rt_longpoll?) {
    LongPollConnection.release(longpoll) {
        $0.close()
        OwnLoop.leave($0.loop)
    }
}
