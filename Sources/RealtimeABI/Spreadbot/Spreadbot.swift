import Engine
import Session
import Wire

// Chapter: spreadbot. The messages of a path by WebSocket, server-sent events or long polls,
// whichever works, each message once and in order.
//
//     rt_spreadbot *spreadbot;
//     rt_event *message;
//     rt_spreadbot_new(NULL, "https://example.org", &spreadbot);  // or a loop, _on_message
//     rt_spreadbot_set_tokens(spreadbot, "access", "refresh");
//     rt_spreadbot_connect(spreadbot, "/chat", 10000);            // or _start
//     rt_spreadbot_send_text(spreadbot, "hello", 5, NULL);
//     rt_spreadbot_receive(spreadbot, -1, &message);              // message->id, message->data
//     rt_event_free(message);
//     rt_spreadbot_close(spreadbot);
//     rt_spreadbot_free(spreadbot);

/// A Spreadbot connection. Life cycle: `rt_spreadbot_new`, options and callbacks,
/// `rt_spreadbot_start`, messages and sends, `rt_spreadbot_close` or a fatal error, possibly
/// `rt_spreadbot_start` again, `rt_spreadbot_free`.
///
/// One transport is in use at a time. The WebSocket is tried first, then server-sent events, then
/// long polls. A transport that fails is retried; one that does not work here is replaced by the
/// next. While a later transport is in use, the WebSocket is tried again from time to time. Each
/// transport continues after the last message of the one before. Since 0.1.
public typealias rt_spreadbot = OpaquePointer

/// What a connection does while it is connecting. Since 0.1.
public typealias rt_spreadbot_phase = Int32

/// Values of `rt_spreadbot_phase`. Since 0.1.
public enum RT_SPREADBOT_PHASE: Int32 {
    /// The connection is not connecting.
    case NONE = 0
    /// An attempt is in progress.
    case DIALING = 1
    /// The delay before the next attempt is running.
    case BACKOFF = 2
    /// There is no network.
    case OFFLINE = 3
    /// Tokens are being refreshed.
    case AUTH = 4
}

/// The transport of a connection. Since 0.1.
public typealias rt_spreadbot_transport = Int32

/// Values of `rt_spreadbot_transport`. Since 0.1.
public enum RT_SPREADBOT_TRANSPORT: Int32 {
    /// No transport.
    case NONE = 0
    /// A WebSocket.
    case WEBSOCKET = 1
    /// Server-sent events.
    case SSE = 2
    /// Long polls.
    case POLL = 3
}

/// Creates a Spreadbot connection. Nothing is sent before `rt_spreadbot_start` or
/// `rt_spreadbot_connect`. Any thread. Since 0.1.
/// - Parameter loop: the connection's loop, which it keeps alive. NULL means the library's own
///   loop, as for `rt_websocket_new`.
/// - Parameter base_url: `http://` or `https://`, without a query, copied; paths are appended to it
///   with one slash between.
/// - Parameter out: receives the connection; free it with `rt_spreadbot_free`.
/// - Returns: RT_OK; RT_ERROR_INVALID_URL; RT_ERROR_UNSUPPORTED_SCHEME; RT_ERROR_INVALID_ARGUMENT;
///   RT_ERROR_FORKED; RT_ERROR_CLOSED on a freed loop.
@_cdecl("rt_spreadbot_new")
public func rt_spreadbot_new(
    _ loop: rt_loop?, _ base_url: UnsafePointer<CChar>?,
    _ out: UnsafeMutablePointer<rt_spreadbot?>?
) -> rt_status {
    border { () throws(RealtimeError) in
        let base = try text(base_url, "base_url")
        let out = try required(out, "out")
        out.pointee = try onLoop(loop) { loop throws(RealtimeError) in
            SpreadbotConnection.export(try SpreadbotConnection(base: base, on: loop))
        }
    }
}

/// Frees the connection and drops it without a callback: unfinished sends are not reported. NULL is
/// accepted. Any thread, also inside its callbacks. Since 0.1.
@_cdecl("rt_spreadbot_free")
public func rt_spreadbot_free(_ spreadbot: rt_spreadbot?) {
    SpreadbotConnection.release(spreadbot) {
        $0.close()
        OwnLoop.leave($0.loop)
    }
}
