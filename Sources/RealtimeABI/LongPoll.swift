import Engine
import Session
import Wire

// Chapter: long poll. Messages by requests that the server answers when there is something new.

/// A long poll: one request after the other, each held by the server until it has something. Life:
/// `rt_longpoll_new`, options and callbacks, `rt_longpoll_start`, messages, `rt_longpoll_close` or
/// a fatal error, `rt_longpoll_free`. A message whose delivery was cut off by a failure comes
/// again; messages that the server has dropped meanwhile are not known to be missing. Since 0.1.
public typealias rt_longpoll = OpaquePointer

/// Where a long poll stands. Since 0.1.
public typealias rt_longpoll_state = Int32

/// Values of `rt_longpoll_state`. Since 0.1.
public enum RT_LONGPOLL: Int32 {
    /// Not started, no answer yet, or the last attempt failed.
    case CONNECTING = 0
    /// The server answers, or has held a poll for its whole time.
    case OPEN = 1
    /// Over, by a fatal error or `rt_longpoll_close`.
    case CLOSED = 2
}

/// How polls say what they have seen already. Since 0.1.
public typealias rt_longpoll_cursor = Int32

/// Values of `rt_longpoll_cursor`. Since 0.1.
public enum RT_LONGPOLL_CURSOR: Int32 {
    /// The latest answer's Last-Modified and ETag, as If-Modified-Since and If-None-Match. The
    /// default.
    case VALIDATORS = 0
    /// The id, as a Last-Event-ID header.
    case HEADER_ID = 1
    /// The id, as a query parameter.
    case QUERY_ID = 2
    /// Not at all.
    case NONE = 3
}

/// Makes a long poll; nothing is sent before `rt_longpoll_start` or `rt_longpoll_receive`. Any
/// thread. Since 0.1.
/// - Parameter loop: the loop it lives on, which it keeps alive. NULL is the library's own loop, as
///   for `rt_websocket_new`.
/// - Parameter url: `http://` or `https://`, copied; user and password become a basic Authorization
///   header.
/// - Parameter out: receives it; to be freed with `rt_longpoll_free`.
/// - Returns: RT_OK; RT_ERROR_INVALID_URL, RT_ERROR_UNSUPPORTED_SCHEME, RT_ERROR_INVALID_ARGUMENT,
///   RT_ERROR_FORKED, RT_ERROR_CLOSED for a freed loop.
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

/// Closes and gives back. NULL is accepted. Any thread; in a callback of its own too. Since 0.1.
@_cdecl("rt_longpoll_free")
public func rt_longpoll_free(_ longpoll: rt_longpoll?) {
    LongPollConnection.release(longpoll) {
        $0.close()
        OwnLoop.leave($0.loop)
    }
}
