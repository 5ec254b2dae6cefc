import Engine
import Session
import Wire

// Chapter: pusher. Pusher Channels: events by named channels over one WebSocket, from Pusher or any
// server that speaks its protocol 7.
//
//     rt_pusher *pusher;
//     rt_pusher_channel *channel;
//     rt_pusher_event *event;
//     rt_pusher_new(NULL, "APP_KEY", &pusher);                  // or a loop, _channel_bind
//     rt_pusher_connect(pusher, 10000);                         // or _start
//     rt_pusher_subscribe(pusher, "private-chat", &channel);
//     rt_pusher_channel_trigger(channel, "client-typing", "{}", 2);
//     rt_pusher_receive(pusher, -1, &event);                    // event->channel, ->event, ->data
//     rt_pusher_event_free(event);
//     rt_pusher_channel_free(channel);
//     rt_pusher_free(pusher);

/// A Pusher connection. Life cycle: `rt_pusher_new`, options, callbacks and subscriptions,
/// `rt_pusher_start`, events, `rt_pusher_close` or a fatal error, possibly `rt_pusher_start` again,
/// `rt_pusher_free`.
///
/// A lost connection is established again, and all channels are subscribed again. Subscriptions and
/// bindings may be made at any time, also before the connection is established. Since 0.1.
public typealias rt_pusher = OpaquePointer

/// A subscribed channel, from `rt_pusher_subscribe`. It stays valid after `rt_pusher_unsubscribe`
/// and after the connection's end; calls that need the subscription then return RT_ERROR_STATE.
/// Each `rt_pusher_subscribe` and `rt_pusher_find_channel` that returns it needs one
/// `rt_pusher_channel_free`. Since 0.1.
public typealias rt_pusher_channel = OpaquePointer

/// The form of an event's data. Since 0.1.
public typealias rt_pusher_data = Int32

/// Values of `rt_pusher_data`. Since 0.1.
public enum RT_PUSHER_DATA: Int32 {
    /// The event has no data.
    case NONE = 0
    /// The server sent a string, as Pusher always does: usually JSON text, but any text is allowed.
    case TEXT = 1
    /// The server sent another JSON value, here in compact form.
    case JSON = 2
}

/// Creates a Pusher connection. Nothing is sent before `rt_pusher_start`. Any thread. Since 0.1.
/// - Parameter loop: the connection's loop, which it keeps alive. NULL means the library's own
///   loop, as for `rt_websocket_new`.
/// - Parameter key: the application's key, copied.
/// - Parameter out: receives the connection; free it with `rt_pusher_free`.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT, also for an empty key; RT_ERROR_INVALID_UTF8;
///   RT_ERROR_FORKED; RT_ERROR_CLOSED on a freed loop.
@_cdecl("rt_pusher_new")
public func rt_pusher_new(
    _ loop: rt_loop?, _ key: UnsafePointer<CChar>?, _ out: UnsafeMutablePointer<rt_pusher?>?
) -> rt_status {
    border { () throws(RealtimeError) in
        let key = try text(key, "key")
        let out = try required(out, "out")
        out.pointee = try onLoop(loop) { loop throws(RealtimeError) in
            PusherConnection.export(try PusherConnection(key: key, on: loop))
        }
    }
}

/// Frees the connection and drops it without a callback. Its channels' handles stay valid. NULL is
/// accepted. Any thread, also inside its callbacks. Since 0.1.
@_cdecl("rt_pusher_free")
public func rt_pusher_free(_ pusher: rt_pusher?) {
    PusherConnection.release(pusher) {
        $0.close()
        OwnLoop.leave($0.loop)
    }
}
