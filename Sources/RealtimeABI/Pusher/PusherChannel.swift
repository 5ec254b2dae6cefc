import Engine
import Session
import Wire

// Chapter: pusher channels. A channel's events, members and state. Unless a comment says otherwise,
// any thread may call these functions at any time.

/// The kind of a channel, by the prefix of its name. Since 0.1.
public typealias rt_pusher_channel_kind = Int32

/// Values of `rt_pusher_channel_kind`. Since 0.1.
public enum RT_PUSHER_CHANNEL_KIND: Int32 {
    /// No prefix: everybody who has the key may subscribe.
    case PUBLIC = 0
    /// `private-`: needs an authorization.
    case PRIVATE = 1
    /// `private-encrypted-`: the events are encrypted end to end.
    case ENCRYPTED = 2
    /// `presence-`: has a table of the users who are subscribed.
    case PRESENCE = 3
}

/// The state of a channel's subscription. Since 0.1.
public typealias rt_pusher_channel_state = Int32

/// Values of `rt_pusher_channel_state`. Since 0.1.
public enum RT_PUSHER_CHANNEL: Int32 {
    /// Registered, and waiting for a connection, or for the server to answer an earlier
    /// subscription of the channel that was ended.
    case IDLE = 0
    /// The authorization is awaited.
    case AUTHORIZING = 1
    /// The server's answer is awaited.
    case SENT = 2
    /// Events arrive.
    case SUBSCRIBED = 3
    /// The subscription failed; `rt_pusher_subscribe` and the next connection try it again.
    case FAILED = 4
    /// Unsubscribed: the handle is of no further use.
    case UNSUBSCRIBED = 5
}

/// Frees a channel's handle. The subscription and the bindings stay: see `rt_pusher_unsubscribe`.
/// NULL is accepted. Since 0.1.
@_cdecl("rt_pusher_channel_free")
public func rt_pusher_channel_free(_ channel: rt_pusher_channel?) {
    PusherChannelHandle.release(channel) { _ in }
}

/// Adds a callback for this channel's events. It is called after those of `rt_pusher_bind`, under
/// the same rules. Bindings survive reconnects, and end with the subscription. Since 0.1.
/// - Parameter event: the name, compared byte for byte; NULL for all events.
/// - Parameter out: receives the id for `rt_pusher_channel_unbind`; may be NULL.
/// - Returns: RT_OK; RT_ERROR_STATE for an unsubscribed channel; RT_ERROR_INVALID_ARGUMENT for a
///   NULL handle or function; RT_ERROR_INVALID_UTF8; RT_ERROR_FORKED.
@_cdecl("rt_pusher_channel_bind")
public func rt_pusher_channel_bind(
    _ channel: rt_pusher_channel?, _ event: UnsafePointer<CChar>?, _ fn: rt_pusher_event_fn?,
    _ user: UnsafeMutableRawPointer?, _ destroy: rt_destroy_fn?,
    _ out: UnsafeMutablePointer<UInt64>?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return channelCall(channel) { (channel) throws(RealtimeError) in
        let id = try channel.bind(optionalText(event, "event"), eventHandler(box))
        out?.pointee = id
    }
}

/// Removes a binding of `rt_pusher_channel_bind`, also inside the binding's own function. On the
/// loop's thread, that is not called any more; for another thread, a call that has begun may end
/// later. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_NOT_FOUND if the binding does not exist, or no longer exists.
@_cdecl("rt_pusher_channel_unbind")
public func rt_pusher_channel_unbind(
    _ channel: rt_pusher_channel?, _ binding: UInt64
) -> rt_status {
    channelCall(channel) { (channel) throws(RealtimeError) in
        guard channel.bindings.remove(binding) else { throw noBinding(binding) }
    }
}

/// Removes the channel's bindings for one event. Since 0.1.
/// - Returns: RT_OK, also if there were none; RT_ERROR_INVALID_ARGUMENT; RT_ERROR_INVALID_UTF8.
@_cdecl("rt_pusher_channel_unbind_event")
public func rt_pusher_channel_unbind_event(
    _ channel: rt_pusher_channel?, _ event: UnsafePointer<CChar>?
) -> rt_status {
    channelCall(channel) { (channel) throws(RealtimeError) in
        channel.bindings.removeAll(of: try text(event, "event"))
    }
}

/// Removes all bindings of the channel. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_pusher_channel_unbind_all")
public func rt_pusher_channel_unbind_all(_ channel: rt_pusher_channel?) -> rt_status {
    channelCall(channel) { $0.bindings.removeAll() }
}

/// Sends a client event to the other subscribers of a private or presence channel. Before the
/// subscription succeeds it is queued; see `rt_pusher_on_trigger_failed`. What the server rejects
/// is reported to the callback of `rt_pusher_on_error`. Since 0.1.
/// - Parameter event: begins with `client-`.
/// - Parameter json: the data as JSON text, `length` bytes, copied.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for another name, for data that is not JSON, and for
///   a channel of another kind; RT_ERROR_STATE for an unsubscribed channel; RT_ERROR_BUFFER_FULL if
///   8 MiB wait to be sent; RT_ERROR_TOO_LARGE for an event above 8 MiB; RT_ERROR_INVALID_UTF8;
///   RT_ERROR_FORKED.
@_cdecl("rt_pusher_channel_trigger")
public func rt_pusher_channel_trigger(
    _ channel: rt_pusher_channel?, _ event: UnsafePointer<CChar>?,
    _ json: UnsafePointer<CChar>?, _ length: Int
) -> rt_status {
    channelCall(channel) { (channel) throws(RealtimeError) in
        try channel.trigger(text(event, "event"), bytes(json, length, "json"))
    }
}

/// Ends the channel's subscription, like `rt_pusher_unsubscribe`. Since 0.1.
/// - Returns: RT_OK, also if it is already unsubscribed; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_pusher_channel_unsubscribe")
public func rt_pusher_channel_unsubscribe(_ channel: rt_pusher_channel?) -> rt_status {
    channelCall(channel) { (channel) throws(RealtimeError) in try channel.unsubscribe() }
}

/// Copies the channel's name. Since 0.1.
/// - Parameter buffer: receives the name and a NUL, cut to `size` bytes; may be NULL if `size` is
///   0.
/// - Parameter out_length: receives the length of the whole name.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT.
@_cdecl("rt_pusher_channel_get_name")
public func rt_pusher_channel_get_name(
    _ channel: rt_pusher_channel?, _ buffer: UnsafeMutablePointer<CChar>?, _ size: Int,
    _ out_length: UnsafeMutablePointer<Int>?
) -> rt_status {
    channelCall(channel) { (channel) throws(RealtimeError) in
        try copy(text: channel.channel.text, to: buffer, size, out_length)
    }
}

/// Returns the number of this subscription, which its events and other callbacks carry. A later
/// subscription to the same name has another one. Since 0.1.
/// - Returns: the number, from 1; 0 for NULL.
@_cdecl("rt_pusher_channel_get_number")
public func rt_pusher_channel_get_number(_ channel: rt_pusher_channel?) -> UInt64 {
    guard let channel else { return 0 }
    return PusherChannelHandle.exported(channel).number
}

/// Returns the channel's kind. Since 0.1.
/// - Returns: an `rt_pusher_channel_kind`; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_pusher_channel_get_kind")
public func rt_pusher_channel_get_kind(_ channel: rt_pusher_channel?) -> Int32 {
    borderValue { () throws(RealtimeError) in
        let kind: RT_PUSHER_CHANNEL_KIND =
            switch try PusherChannelHandle.borrow(channel).kind {
            case .public, .serverToUser: .PUBLIC
            case .private: .PRIVATE
            case .encrypted: .ENCRYPTED
            case .presence: .PRESENCE
            }
        return kind.rawValue
    }
}

/// Returns the state of the channel's subscription. Since 0.1.
/// - Returns: an `rt_pusher_channel_state`; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_pusher_channel_get_state")
public func rt_pusher_channel_get_state(_ channel: rt_pusher_channel?) -> Int32 {
    borderValue { () throws(RealtimeError) in
        let channel = try PusherChannelHandle.borrow(channel)
        try channel.loop?.checkNotForked()
        guard channel.isRegistered else { return RT_PUSHER_CHANNEL.UNSUBSCRIBED.rawValue }
        return channel.state.rawValue
    }
}

/// Returns the number of subscribers that the server sent last. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_NOT_FOUND if it has sent none; RT_ERROR_INVALID_ARGUMENT.
@_cdecl("rt_pusher_channel_get_subscription_count")
public func rt_pusher_channel_get_subscription_count(
    _ channel: rt_pusher_channel?, _ out: UnsafeMutablePointer<UInt64>?
) -> rt_status {
    channelCall(channel) { (channel) throws(RealtimeError) in
        let out = try required(out, "out")
        guard let count = channel.subscriptionCount else {
            throw RealtimeError(
                .notFound, "the server has sent no count for \(channel.channel.text)")
        }
        out.pointee = UInt64(clamping: count)
    }
}

/// Copies the own user id on a presence channel; "" for other channels, and while the channel is
/// not subscribed. Since 0.1.
/// - Parameter buffer: as in `rt_pusher_channel_get_name`.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT.
@_cdecl("rt_pusher_channel_get_my_id")
public func rt_pusher_channel_get_my_id(
    _ channel: rt_pusher_channel?, _ buffer: UnsafeMutablePointer<CChar>?, _ size: Int,
    _ out_length: UnsafeMutablePointer<Int>?
) -> rt_status {
    channelCall(channel) { (channel) throws(RealtimeError) in
        try copy(text: channel.members.myID ?? "", to: buffer, size, out_length)
    }
}

/// Calls `fn` for each member of a presence channel, in the order in which they came, inside this
/// call. There are none while the channel is not subscribed. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_pusher_channel_each_member")
public func rt_pusher_channel_each_member(
    _ channel: rt_pusher_channel?, _ fn: rt_pusher_member_fn?, _ user: UnsafeMutableRawPointer?
) -> rt_status {
    channelCall(channel) { (channel) throws(RealtimeError) in
        let fn = try required(fn, "fn")
        for member in channel.members.table.members { member.show(of: channel, to: fn, user) }
    }
}

/// Calls `fn` for the member of a presence channel with this id, inside this call. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_NOT_FOUND without a call; RT_ERROR_INVALID_ARGUMENT;
///   RT_ERROR_INVALID_UTF8.
@_cdecl("rt_pusher_channel_find_member")
public func rt_pusher_channel_find_member(
    _ channel: rt_pusher_channel?, _ user_id: UnsafePointer<CChar>?, _ fn: rt_pusher_member_fn?,
    _ user: UnsafeMutableRawPointer?
) -> rt_status {
    channelCall(channel) { (channel) throws(RealtimeError) in
        let id = try text(user_id, "user_id")
        let fn = try required(fn, "fn")
        guard let member = channel.members.table[id] else {
            throw RealtimeError(
                .notFound, "no member of \(channel.channel.text) is \(id.quoted())")
        }
        member.show(of: channel, to: fn, user)
    }
}

private func channelCall(
    _ channel: rt_pusher_channel?,
    _ body: (PusherChannelHandle) throws(RealtimeError) -> Void
) -> rt_status {
    border { () throws(RealtimeError) in
        try PusherChannelHandle.borrowing(channel) { (channel) throws(RealtimeError) in
            try channel.loop?.checkNotForked()
            try body(channel)
        }
    }
}
