import Engine
import Session
import Wire

// Chapter: spreadbot. Messages of a path by WebSocket, by server-sent events or by long polls,
// whichever works: each once and in order, whatever happens on the way.

/// A Spreadbot connection. Life: `rt_spreadbot_new`, options and callbacks,
/// `rt_spreadbot_establish`, messages and sends, `rt_spreadbot_disconnect` or a fatal error, maybe
/// `rt_spreadbot_establish` again, `rt_spreadbot_free`.
///
/// One transport is in use at a time. The WebSocket is tried first, then server-sent events, then
/// long polls: a transport that fails is tried again, one that does not work here is left for the
/// next. While a later one is in use, the WebSocket is tried again from time to time. Each
/// transport continues after the last message of the one before. Since 0.1.
public typealias rt_spreadbot = OpaquePointer

/// Where a connection stands. Since 0.1.
public typealias rt_spreadbot_state = Int32

/// Values of `rt_spreadbot_state`. Since 0.1.
public enum RT_SPREADBOT: Int32 {
    /// A transport is tried, or waited for.
    case CONNECTING = 0
    /// A transport is open.
    case CONNECTED = 1
    /// Not established, or over by a fatal error or `rt_spreadbot_disconnect`.
    case DISCONNECTED = 2
}

/// What is done while it is connecting. Since 0.1.
public typealias rt_spreadbot_phase = Int32

/// Values of `rt_spreadbot_phase`. Since 0.1.
public enum RT_SPREADBOT_PHASE: Int32 {
    /// It is not connecting.
    case NONE = 0
    /// An attempt is under way.
    case DIALING = 1
    /// The delay before the next attempt.
    case BACKOFF = 2
    /// There is no network.
    case OFFLINE = 3
    /// Tokens are being refreshed.
    case AUTH = 4
}

/// A way that messages come. Since 0.1.
public typealias rt_spreadbot_transport = Int32

/// Values of `rt_spreadbot_transport`. Since 0.1.
public enum RT_SPREADBOT_TRANSPORT: Int32 {
    /// None, or none any more.
    case NONE = 0
    /// A WebSocket.
    case WEBSOCKET = 1
    /// Server-sent events.
    case SSE = 2
    /// Long polls.
    case POLL = 3
}

/// Makes a Spreadbot connection; nothing is sent before `rt_spreadbot_establish` or
/// `rt_spreadbot_connect`. Any thread. Since 0.1.
/// - Parameter loop: the loop it lives on, which it keeps alive. NULL is the library's own loop, as
///   for `rt_websocket_new`.
/// - Parameter base_url: `http://` or `https://`, without a query, copied; paths are appended to it
///   with one slash between.
/// - Parameter out: receives it; to be freed with `rt_spreadbot_free`.
/// - Returns: RT_OK; RT_ERROR_INVALID_URL, RT_ERROR_UNSUPPORTED_SCHEME, RT_ERROR_INVALID_ARGUMENT,
///   RT_ERROR_FORKED, RT_ERROR_CLOSED for a freed loop.
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

/// Gives it back and drops what is there, without a callback: sends under way are not told. NULL is
/// accepted. Any thread; in a callback of its own too. Since 0.1.
@_cdecl("rt_spreadbot_free")
public func rt_spreadbot_free(_ spreadbot: rt_spreadbot?) {
    SpreadbotConnection.release(spreadbot) {
        $0.close()
        OwnLoop.leave($0.loop)
    }
}
