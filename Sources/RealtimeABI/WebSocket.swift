import Engine
import Session
import Wire

// Chapter: websocket. A client connection: RFC 6455 with permessage-deflate (RFC 7692).

/// A WebSocket client connection. Life: `rt_websocket_new`, options and callbacks,
/// `rt_websocket_start`, messages, `rt_websocket_close` or the peer's close, `rt_websocket_free`.
/// After start the callbacks come in this order: open at most once, then messages, then error at
/// most once, then close exactly once, unless the handle is freed before. With
/// `rt_websocket_set_reconnect` open, messages and error may come again for each connection, with
/// reconnect before each further one, and close once at the very end. Since 0.1.
public typealias rt_websocket = OpaquePointer

/// What a message holds. Since 0.1.
public typealias rt_message_kind = Int32

/// Values of `rt_message_kind`. Since 0.1.
public enum RT_MESSAGE: Int32 {
    /// Valid UTF-8.
    case TEXT = 1
    /// Any bytes.
    case BINARY = 2
}

/// Whether one message is compressed, where permessage-deflate was agreed. Since 0.1.
public typealias rt_compression = Int32

/// Values of `rt_compression`. Since 0.1.
public enum RT_COMPRESSION: Int32 {
    /// From `rt_websocket_set_compression_min_bytes` on.
    case AUTOMATIC = 0
    /// Whatever its size.
    case ALWAYS = 1
    /// For what is compressed already, or holds a secret beside an attacker's text (RFC 7692 §8).
    case NEVER = 2
}

/// Where a connection stands. Since 0.1.
public typealias rt_websocket_state = Int32

/// Values of `rt_websocket_state`. Since 0.1.
public enum RT_WEBSOCKET: Int32 {
    /// Made, not started.
    case NEW = 0
    /// Started: resolving, connecting, TLS, handshake.
    case CONNECTING = 1
    /// Messages can be sent and received.
    case OPEN = 2
    /// One side has begun the closing handshake.
    case CLOSING = 3
    /// Over: the close callback has come, or comes next.
    case CLOSED = 4
    /// Lost, and the time of the next attempt has not come.
    case WAITING = 5
}

/// Makes a connection to a `ws://` or `wss://` URL; nothing happens before `rt_websocket_start`.
/// User and password in the URL become a basic Authorization header. Any thread. Since 0.1.
/// - Parameter loop: the loop it lives on, which it keeps alive. NULL is a loop of the library's
///   own, on a thread where callbacks are called: it is made with the first such connection, and
///   ends when the last one is freed.
/// - Parameter out: receives the connection; to be freed with `rt_websocket_free`.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT; RT_ERROR_INVALID_URL;
///   RT_ERROR_UNSUPPORTED_SCHEME; RT_ERROR_FORKED; RT_ERROR_CLOSED on a freed loop.
@_cdecl("rt_websocket_new")
public func rt_websocket_new(
    _ loop: rt_loop?, _ url: UnsafePointer<CChar>?, _ out: UnsafeMutablePointer<rt_websocket?>?
) -> rt_status {
    border { () throws(RealtimeError) in
        let url = try text(url, "url")
        let out = try required(out, "out")
        out.pointee = try onLoop(loop) { loop throws(RealtimeError) in
            WebSocketConnection.export(try WebSocketConnection(url: url, on: loop))
        }
    }
}

/// Gives the connection back. One that is open is dropped: a close frame with code 1001 is sent if
/// it can be without waiting, then the descriptor is closed. To close in order, call
/// `rt_websocket_close` and free in the close callback. No callback begins after this returned,
/// each `destroy` runs once. The last one that was made without a loop waits for a callback that
/// runs, unless it is freed inside it. NULL is accepted. Any thread, also inside its own callbacks.
/// Since 0.1.
@_cdecl("rt_websocket_free")
public func rt_websocket_free(_ websocket: rt_websocket?) {
    WebSocketConnection.release(websocket) {
        $0.abandon()
        OwnLoop.leave($0.loop)
    }
}
