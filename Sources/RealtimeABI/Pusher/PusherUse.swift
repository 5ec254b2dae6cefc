import Engine
import Session
import Wire

// Chapter: pusher use. Connecting, subscribing, and state.

/// Receives the name of a registered channel, and its number. The name is valid until the callback
/// returns. Since 0.1.
public typealias rt_pusher_channel_fn =
    @convention(c) (
        _ channel: UnsafePointer<CChar>?, _ number: UInt64, _ user: UnsafeMutableRawPointer?
    ) -> Void

/// Connects, and keeps connected: a lost connection is established again, unless the options or the
/// server's close code forbid it. Without a network (`rt_pusher_set_reachability`) the
/// connection waits for one, in the state reconnecting. With one, a connection that is reconnecting
/// makes the next attempt at once; while it is connecting or connected, the call has no effect. No
/// callback is called inside this call. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL, and for options that contradict each
///   other; RT_ERROR_INVALID_URL for options that make no URL; RT_ERROR_FORKED; RT_ERROR_CLOSED on
///   a freed loop.
@_cdecl("rt_pusher_start")
public func rt_pusher_start(_ pusher: rt_pusher?) -> rt_status {
    pusherCall(pusher) { (connection) throws(RealtimeError) in try connection.connect() }
}

/// Ends the connection with a closing handshake, and stops all attempts and authorizations. It
/// waits for the server's close frame, up to 5 s after the last of the events before has arrived
/// there, 50 s at most. Channels and bindings are kept for the next `rt_pusher_start`. No
/// callback is called inside this call. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL; RT_ERROR_FORKED.
@_cdecl("rt_pusher_close")
public func rt_pusher_close(_ pusher: rt_pusher?) -> rt_status {
    pusherCall(pusher) { (connection) throws(RealtimeError) in try connection.disconnect() }
}

/// Reports what the program knows about the network, in addition to what the connection observes
/// itself (`rt_pusher_set_reachability`). A connected connection checks with a ping that the server
/// still answers. If the network is reachable and the connection waits for its next attempt, it
/// makes it at once. If it is not, no attempt is made until it is, also if the program connects.
/// Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL; RT_ERROR_FORKED.
@_cdecl("rt_pusher_network_changed")
public func rt_pusher_network_changed(_ pusher: rt_pusher?, _ reachable: Bool) -> rt_status {
    pusherCall(pusher) { (connection) throws(RealtimeError) in
        try connection.networkChanged(isReachable: reachable)
    }
}

/// Tells the connection that the network is back, as `rt_pusher_network_changed` does with true: if
/// its next attempt waits, for its time or for a network, it is made at once. Failures continue to
/// count. A connected connection checks with a ping that the server still answers. Any thread.
/// Since 0.1.
/// - Returns: RT_OK, also if there is nothing to do; RT_ERROR_INVALID_ARGUMENT for NULL;
///   RT_ERROR_FORKED; RT_ERROR_CLOSED on a freed loop.
@_cdecl("rt_pusher_retry_now")
public func rt_pusher_retry_now(_ pusher: rt_pusher?) -> rt_status {
    pusherCall(pusher) { (connection) throws(RealtimeError) in try connection.retryNow() }
}

/// Stops delivering events; incoming data is held and the server is slowed down. The pings that
/// check the connection stop meanwhile. Any thread; called on a thread other than the loop's, one
/// event may still come. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_pusher_pause")
public func rt_pusher_pause(_ pusher: rt_pusher?) -> rt_status {
    pusherCall(pusher) { (connection) throws(RealtimeError) in try connection.pause() }
}

/// Continues delivering events. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_pusher_resume")
public func rt_pusher_resume(_ pusher: rt_pusher?) -> rt_status {
    pusherCall(pusher) { (connection) throws(RealtimeError) in try connection.resume() }
}

/// Subscribes to a channel, now or as soon as the connection is established, and again after each
/// reconnect. The name's prefix decides the kind: `private-`, `private-encrypted-` and `presence-`
/// need an authorization (`rt_pusher_set_auth_endpoint`, `rt_pusher_on_authorize` or
/// `rt_pusher_set_secret`). The callbacks of `rt_pusher_on_subscribed` and
/// `rt_pusher_on_subscription_failed` report the result, never inside this call. Any thread, before
/// and after `rt_pusher_start`.
///
/// For a channel that is already registered, this returns the same handle and sends nothing, unless
/// its subscription has failed: then it is tried again. Since 0.1.
/// - Parameter channel: the name, copied: 1 to 164 characters (see
///   `rt_pusher_set_max_channel_name_length`) of `A-Z`, `a-z`, `0-9` and `_-=@,.;`.
/// - Parameter out: receives the channel; free it with `rt_pusher_channel_free`, which does not
///   unsubscribe. May be NULL.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT, also for a name that is not valid; RT_ERROR_SYSTEM
///   for an encrypted channel if libsodium is not installed; RT_ERROR_INVALID_UTF8;
///   RT_ERROR_FORKED; RT_ERROR_CLOSED on a freed loop.
@_cdecl("rt_pusher_subscribe")
public func rt_pusher_subscribe(
    _ pusher: rt_pusher?, _ channel: UnsafePointer<CChar>?,
    _ out: UnsafeMutablePointer<rt_pusher_channel?>?
) -> rt_status {
    pusherCall(pusher) { (connection) throws(RealtimeError) in
        let channel = try connection.subscribe(text(channel, "channel"))
        out?.pointee = PusherChannelHandle.export(channel)
    }
}

/// Like `rt_pusher_subscribe`, with an authorization that the program already has. It is used once,
/// since it is valid only for one socket id; after a reconnect the connection asks for another one
/// as usual. Since 0.1.
/// - Parameter auth: the signature, `KEY:HEX`, copied.
/// - Parameter channel_data: the channel data that was signed, copied; required for a presence
///   channel unless a user is signed in. NULL for none.
/// - Parameter out: as in `rt_pusher_subscribe`.
/// - Returns: as `rt_pusher_subscribe`.
@_cdecl("rt_pusher_subscribe_with")
public func rt_pusher_subscribe_with(
    _ pusher: rt_pusher?, _ channel: UnsafePointer<CChar>?, _ auth: UnsafePointer<CChar>?,
    _ channel_data: UnsafePointer<CChar>?, _ out: UnsafeMutablePointer<rt_pusher_channel?>?
) -> rt_status {
    pusherCall(pusher) { (connection) throws(RealtimeError) in
        let answer = PusherAuthorizationAnswer(
            auth: try text(auth, "auth"),
            channelData: try optionalText(channel_data, "channel_data"), sharedSecret: nil)
        let channel = try connection.subscribe(text(channel, "channel"), answer: answer)
        out?.pointee = PusherChannelHandle.export(channel)
    }
}

/// Ends the subscription to a channel. Its bindings and its queued client events are removed, and
/// no callback about it begins after this call (on the loop's thread). Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_NOT_FOUND if no such channel is registered;
///   RT_ERROR_INVALID_ARGUMENT; RT_ERROR_INVALID_UTF8; RT_ERROR_FORKED.
@_cdecl("rt_pusher_unsubscribe")
public func rt_pusher_unsubscribe(
    _ pusher: rt_pusher?, _ channel: UnsafePointer<CChar>?
) -> rt_status {
    pusherCall(pusher) { (connection) throws(RealtimeError) in
        let name = try text(channel, "channel")
        guard try connection.unsubscribe(name) else { throw noChannel(name) }
    }
}

/// Ends the subscriptions to all channels, as `rt_pusher_unsubscribe`. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL; RT_ERROR_FORKED.
@_cdecl("rt_pusher_unsubscribe_all")
public func rt_pusher_unsubscribe_all(_ pusher: rt_pusher?) -> rt_status {
    pusherCall(pusher) { (connection) throws(RealtimeError) in try connection.unsubscribeAll() }
}

/// Finds a registered channel. Any thread. Since 0.1.
/// - Parameter out: receives the channel; free it with `rt_pusher_channel_free`.
/// - Returns: RT_OK; RT_ERROR_NOT_FOUND; RT_ERROR_INVALID_ARGUMENT; RT_ERROR_INVALID_UTF8.
@_cdecl("rt_pusher_find_channel")
public func rt_pusher_find_channel(
    _ pusher: rt_pusher?, _ channel: UnsafePointer<CChar>?,
    _ out: UnsafeMutablePointer<rt_pusher_channel?>?
) -> rt_status {
    pusherCall(pusher) { (connection) throws(RealtimeError) in
        let name = try text(channel, "channel")
        let out = try required(out, "out")
        guard let channel = connection.channel(named: name) else { throw noChannel(name) }
        out.pointee = PusherChannelHandle.export(channel)
    }
}

/// Calls `fn` for each registered channel, in the order of registration, inside this call. Any
/// thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_pusher_each_channel")
public func rt_pusher_each_channel(
    _ pusher: rt_pusher?, _ fn: rt_pusher_channel_fn?, _ user: UnsafeMutableRawPointer?
) -> rt_status {
    pusherCall(pusher) { (connection) throws(RealtimeError) in
        let fn = try required(fn, "fn")
        for channel in connection.allChannels {
            channel.channel.text.withCString { fn($0, channel.number, user) }
        }
    }
}

/// Returns the state. Any thread. Since 0.1.
/// - Returns: an `rt_state`; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_pusher_get_state")
public func rt_pusher_get_state(_ pusher: rt_pusher?) -> Int32 {
    borderValue { () throws(RealtimeError) in
        let connection = try PusherConnection.borrow(pusher)
        try connection.loop.checkNotForked()
        return connection.connectionState.rawValue
    }
}

/// Copies the socket id that the server has assigned; "" while not connected. Any thread. Since
/// 0.1.
/// - Parameter buffer: receives the id and a NUL, cut to `size` bytes; may be NULL if `size` is 0.
/// - Parameter out_length: receives the length of the whole id.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT.
@_cdecl("rt_pusher_get_socket_id")
public func rt_pusher_get_socket_id(
    _ pusher: rt_pusher?, _ buffer: UnsafeMutablePointer<CChar>?, _ size: Int,
    _ out_length: UnsafeMutablePointer<Int>?
) -> rt_status {
    pusherCall(pusher) { (connection) throws(RealtimeError) in
        try copy(text: connection.socketID ?? "", to: buffer, size, out_length)
    }
}

/// Calls `fn` with the server's response that opened the present or the last connection, and with
/// that connection, inside this call. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_NOT_FOUND before the first connection; RT_ERROR_INVALID_ARGUMENT for
///   NULL; RT_ERROR_FORKED.
@_cdecl("rt_pusher_get_opened")
public func rt_pusher_get_opened(
    _ pusher: rt_pusher?, _ fn: rt_opened_fn?, _ user: UnsafeMutableRawPointer?
) -> rt_status {
    pusherCall(pusher) { (connection) throws(RealtimeError) in
        try show(connection.opened, to: fn, user)
    }
}

/// Copies the URL to which the options lead, as it is or will be used. Any thread. Since 0.1.
/// - Parameter buffer: as in `rt_pusher_get_socket_id`.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT; RT_ERROR_INVALID_URL for options that make no URL.
@_cdecl("rt_pusher_get_url")
public func rt_pusher_get_url(
    _ pusher: rt_pusher?, _ buffer: UnsafeMutablePointer<CChar>?, _ size: Int,
    _ out_length: UnsafeMutablePointer<Int>?
) -> rt_status {
    pusherCall(pusher) { (connection) throws(RealtimeError) in
        try copy(text: connection.url(), to: buffer, size, out_length)
    }
}

/// Returns the number of attempts in a row that have failed since the connection was last
/// established. Any thread. Since 0.1.
/// - Returns: the number; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_pusher_get_reconnect_attempts")
public func rt_pusher_get_reconnect_attempts(_ pusher: rt_pusher?) -> Int32 {
    borderValue { () throws(RealtimeError) in
        let connection = try PusherConnection.borrow(pusher)
        try connection.loop.checkNotForked()
        return Int32(clamping: connection.reconnectAttempts)
    }
}

func noChannel(_ name: String) -> RealtimeError {
    RealtimeError(.notFound, "no channel is registered as \(name.quoted())")
}

/// Runs a call on a Pusher connection.
func pusherCall(
    _ pusher: rt_pusher?, _ body: (PusherConnection) throws(RealtimeError) -> Void
) -> rt_status {
    border { () throws(RealtimeError) in
        try PusherConnection.borrowing(pusher) { (connection) throws(RealtimeError) in
            try connection.loop.checkNotForked()
            try body(connection)
        }
    }
}
