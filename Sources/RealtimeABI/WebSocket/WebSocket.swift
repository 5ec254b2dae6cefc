import Engine
import Session
import Wire

// Chapter: websocket. A client connection: RFC 6455 with permessage-deflate (RFC 7692).
//
//     rt_websocket *websocket;
//     rt_received *message;
//     rt_websocket_new(NULL, "wss://example.org/", &websocket);  // or a loop, _on_message
//     rt_websocket_connect(websocket, 10000);                    // or _start
//     rt_websocket_send_text(websocket, "hello", 5);
//     rt_websocket_receive(websocket, -1, &message);             // message->data, message->length
//     rt_received_free(message);
//     rt_websocket_close(websocket, 1000, NULL);
//     rt_websocket_free(websocket);

/// A WebSocket client connection. Life cycle: `rt_websocket_new`, options and callbacks,
/// `rt_websocket_start`, messages, `rt_websocket_close` or the peer's close, `rt_websocket_free`.
/// Callbacks after start come in this order: open at most once, then messages, then error at most
/// once, then close exactly once, unless the handle is freed before. With
/// `rt_websocket_set_reconnect`, open, messages and error may repeat for each connection, reconnect
/// comes before each further connection, and close comes once at the very end. Since 0.1.
public typealias rt_websocket = OpaquePointer

/// The kind of a message. Since 0.1.
public typealias rt_message_kind = Int32

/// Values of `rt_message_kind`. Since 0.1.
public enum RT_MESSAGE: Int32 {
    /// Valid UTF-8.
    case TEXT = 1
    /// Any bytes.
    case BINARY = 2
}

/// Whether a message is compressed, if permessage-deflate was negotiated. Since 0.1.
public typealias rt_compression = Int32

/// Values of `rt_compression`. Since 0.1.
public enum RT_COMPRESSION: Int32 {
    /// Compressed if it has at least the bytes set by `rt_websocket_set_compression_min_bytes`.
    case AUTOMATIC = 0
    /// Compressed, whatever its size.
    case ALWAYS = 1
    /// Not compressed: for data that is already compressed, or that mixes a secret with an
    /// attacker's text (RFC 7692 §8).
    case NEVER = 2
}

/// Creates a connection to a `ws://` or `wss://` URL. Nothing happens before `rt_websocket_start`.
/// User and password in the URL become a basic Authorization header. Any thread. Since 0.1.
/// - Parameter loop: the connection's loop, which it keeps alive. NULL means the library's own
///   loop, whose thread calls the callbacks. That loop is created with the first object that uses
///   it, and ends when the last one is freed.
/// - Parameter out: receives the connection; free it with `rt_websocket_free`.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT; RT_ERROR_INVALID_URL; RT_ERROR_UNSUPPORTED_SCHEME;
///   RT_ERROR_FORKED; RT_ERROR_CLOSED on a freed loop.
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

/// Frees the connection. If it is open, a close frame with code 1001 is sent if that is possible
/// without waiting, and the socket is closed. For an orderly close, call `rt_websocket_close` and
/// free the handle in the close callback. No callback begins after this call returns; each
/// `destroy` runs once. When the last object on the library's own loop is freed, the call waits for
/// a running callback, unless it was called inside that callback. NULL is accepted. Any thread,
/// also inside the connection's callbacks. Since 0.1.
@_cdecl("rt_websocket_free")
public func rt_websocket_free(_ websocket: rt_websocket?) {
    WebSocketConnection.release(websocket) {
        $0.abandon()
        OwnLoop.leave($0.loop)
    }
}
