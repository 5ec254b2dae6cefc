public import CShims
import Engine
import Session
import Wire

// Chapter: pusher callbacks. They may be set at any time, from any thread; NULL removes a callback.
// All run on the loop's thread, one at a time, and may call any function.

/// Receives an event. Since 0.1.
public typealias rt_pusher_event_fn =
    @convention(c) (
        _ event: UnsafePointer<rt_pusher_event>?, _ user: UnsafeMutableRawPointer?
    ) -> Void

/// Receives all events of one read, in order: a text of event i is at `base` plus its offset in
/// `events[i]`. `count` is at least 1. Everything is valid until the callback returns. Since 0.1.
public typealias rt_pusher_events_fn =
    @convention(c) (
        _ base: UnsafePointer<UInt8>?, _ events: UnsafePointer<rt_pusher_record>?, _ count: Int,
        _ user: UnsafeMutableRawPointer?
    ) -> Void

/// Receives a change of the connection's state. Since 0.1.
public typealias rt_pusher_state_fn =
    @convention(c) (
        _ change: UnsafePointer<rt_pusher_state_change>?, _ user: UnsafeMutableRawPointer?
    ) -> Void

/// Receives an error that the server reported. Since 0.1.
public typealias rt_pusher_error_fn =
    @convention(c) (
        _ error: UnsafePointer<rt_pusher_error>?, _ user: UnsafeMutableRawPointer?
    ) -> Void

/// Receives the result of a subscription, or its count of subscribers. Since 0.1.
public typealias rt_pusher_subscription_fn =
    @convention(c) (
        _ subscription: UnsafePointer<rt_pusher_subscription>?, _ user: UnsafeMutableRawPointer?
    ) -> Void

/// Receives a member of a presence channel. Since 0.1.
public typealias rt_pusher_member_fn =
    @convention(c) (
        _ member: UnsafePointer<rt_pusher_member>?, _ user: UnsafeMutableRawPointer?
    ) -> Void

/// Receives a client event that was dropped. Since 0.1.
public typealias rt_pusher_trigger_failed_fn =
    @convention(c) (
        _ failure: UnsafePointer<rt_pusher_trigger_failure>?, _ user: UnsafeMutableRawPointer?
    ) -> Void

/// Receives a line about the connection's work, without the final LF. Since 0.1.
public typealias rt_pusher_debug_fn =
    @convention(c) (_ line: UnsafePointer<CChar>?, _ user: UnsafeMutableRawPointer?) -> Void

/// - Callbacks: pusher, pusherHandlers
extension PusherHandlers {
    /// Sets the callback for changes of the state. When it runs, `rt_pusher_get_state` already
    /// returns the new state. A wait for a network is reported once, by the failure that led to it
    /// or by RT_ERROR_CONNECT; `retry_in_ms` is then -1. If the connection was reconnecting before,
    /// both states are the same. Since 0.1.
    mutating func onState(_ box: CallbackBox<rt_pusher_state_fn>) {
        state = box.function.map { function in { $0.show(to: function, box.user) } }
    }

    /// Sets the callback for errors that the server reports by `pusher:error`. They do not end the
    /// connection; its end is a change of state. Since 0.1.
    mutating func onError(_ box: CallbackBox<rt_pusher_error_fn>) {
        error = box.function.map { function in { $0.show(to: function, box.user) } }
    }

    /// Sets the callback for successful subscriptions, the first time and after each reconnect. It
    /// is called after the channel's bindings for `pusher:subscription_succeeded`. Since 0.1.
    mutating func onSubscribed(_ box: CallbackBox<rt_pusher_subscription_fn>) {
        subscribed = box.function.map { function in
            { SubscriptionView(channel: $0).show(to: function, box.user) }
        }
    }

    /// Sets the callback for failed subscriptions: the authorization failed, the server refused the
    /// channel, or it has not answered for 30 s (RT_ERROR_TIMEOUT). The channel stays registered;
    /// `rt_pusher_subscribe` tries it again, and so does the next connection. If the server
    /// confirms it late, the callback of `rt_pusher_on_subscribed` follows. Since 0.1.
    mutating func onSubscriptionFailed(_ box: CallbackBox<rt_pusher_subscription_fn>) {
        subscriptionFailed = box.function.map { function in
            { SubscriptionView(channel: $0, failure: $1).show(to: function, box.user) }
        }
    }

    /// Sets the callback for the number of a channel's subscribers, in the field `count`. Servers
    /// send it if the application's settings ask for it. Since 0.1.
    mutating func onSubscriptionCount(_ box: CallbackBox<rt_pusher_subscription_fn>) {
        subscriptionCount = box.function.map { function in
            { channel, _ in SubscriptionView(channel: channel).show(to: function, box.user) }
        }
    }

    /// Sets the callback for users that join a presence channel. Those that were there before are
    /// not reported (`rt_pusher_channel_each_member`), and a user with several connections joins
    /// once. Since 0.1.
    mutating func onMemberAdded(_ box: CallbackBox<rt_pusher_member_fn>) {
        memberAdded = box.function.map { function in
            { $1.show(of: $0, to: function, box.user) }
        }
    }

    /// Sets the callback for users that leave a presence channel. It receives what was known about
    /// them. Since 0.1.
    mutating func onMemberRemoved(_ box: CallbackBox<rt_pusher_member_fn>) {
        memberRemoved = box.function.map { function in
            { $1.show(of: $0, to: function, box.user) }
        }
    }

    /// Sets the callback for events of an encrypted channel that cannot be decrypted, also after
    /// asking for a new key. Its event has the data as it was received. The event is dropped. Since
    /// 0.1.
    mutating func onDecryptionFailed(_ box: CallbackBox<rt_pusher_event_fn>) {
        decryptionFailed = box.function.map { function in
            { channel, event, data in
                showUndecrypted(channel, event, data, to: function, box.user)
            }
        }
    }

    /// Sets the callback that receives all events of a read together, for language runtimes in
    /// which each call is expensive. It receives the events that bindings without a name would
    /// (`rt_pusher_bind`), before them. A batch ends before any other callback. Since 0.1.
    mutating func onEvents(_ box: CallbackBox<rt_pusher_events_fn>) {
        events = box.function.map { function in
            { base, records in
                function(
                    base.assumingMemoryBound(to: UInt8.self), records.baseAddress, records.count,
                    box.user)
            }
        }
    }

    /// Sets the callback for debugging: it receives a line for each frame, ping and attempt,
    /// beginning with `[PUSHER DEBUG]`. Secrets and signatures are left out; the data of events is
    /// not. Since 0.1.
    mutating func onDebug(_ box: CallbackBox<rt_pusher_debug_fn>) {
        debug = box.function.map { function in
            { line in line.withCString { function($0, box.user) } }
        }
    }

    /// Sets the callback for client events that the library dropped, because too many of them
    /// waited (`rt_pusher_set_client_event_queue`). What the server rejects is reported by
    /// `rt_pusher_on_error`. Since 0.1.
    mutating func onTriggerFailed(_ box: CallbackBox<rt_pusher_trigger_failed_fn>) {
        triggerFailed = box.function.map { function in
            { channel, event, error in
                showDropped(channel, event, error, to: function, box.user)
            }
        }
    }
}

/// Adds a callback for events of all channels and of the connection itself. It is called before the
/// channel's own bindings. Bindings are called in the order in which they were added; one that was
/// added during an event begins with the next one, and one that was removed is not called any more.
/// Messages between library and server (`pusher_internal:`, pings, the greeting) are not delivered.
/// Any thread, at any time. Since 0.1.
/// - Parameter event: the name, compared byte for byte; NULL for all events.
/// - Parameter out: receives the id for `rt_pusher_unbind`; may be NULL.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for a NULL handle or function;
///   RT_ERROR_INVALID_UTF8; RT_ERROR_FORKED.
@_cdecl("rt_pusher_bind")
public func rt_pusher_bind(
    _ pusher: rt_pusher?, _ event: UnsafePointer<CChar>?, _ fn: rt_pusher_event_fn?,
    _ user: UnsafeMutableRawPointer?, _ destroy: rt_destroy_fn?,
    _ out: UnsafeMutablePointer<UInt64>?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return pusherCall(pusher) { (connection) throws(RealtimeError) in
        let id = try connection.bind(optionalText(event, "event"), eventHandler(box))
        out?.pointee = id
    }
}

/// Removes a binding of `rt_pusher_bind`. On the loop's thread, its function is not called any
/// more; for another thread, a call that has begun may end later. Any thread, also inside the
/// binding's own function. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_NOT_FOUND if the binding does not exist, or no longer exists.
@_cdecl("rt_pusher_unbind")
public func rt_pusher_unbind(_ pusher: rt_pusher?, _ binding: UInt64) -> rt_status {
    pusherCall(pusher) { (connection) throws(RealtimeError) in
        guard connection.bindings.remove(binding) else { throw noBinding(binding) }
    }
}

/// Removes all bindings of `rt_pusher_bind`; those of channels stay. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_pusher_unbind_all")
public func rt_pusher_unbind_all(_ pusher: rt_pusher?) -> rt_status {
    pusherCall(pusher) { $0.bindings.removeAll() }
}

/// Reads another member of an event's message by its name, such as one that a server adds beside
/// `event` and `data`. Inside the callback that received the event. Since 0.1.
/// - Parameter out_json: receives the member's JSON text, valid as long as the event; no NUL
///   follows it. Required.
/// - Parameter out_length: receives its length in bytes. Required.
/// - Returns: RT_OK; RT_ERROR_NOT_FOUND if the message has no such member;
///   RT_ERROR_INVALID_ARGUMENT; RT_ERROR_INVALID_UTF8.
@_cdecl("rt_pusher_event_property")
public func rt_pusher_event_property(
    _ event: UnsafePointer<rt_pusher_event>?, _ name: UnsafePointer<CChar>?,
    _ out_json: UnsafeMutablePointer<UnsafePointer<CChar>?>?,
    _ out_length: UnsafeMutablePointer<Int>?
) -> rt_status {
    border { () throws(RealtimeError) in
        let event = try required(event, "event").pointee
        let name = try text(name, "name")
        let out = try required(out_json, "out_json")
        let length = try required(out_length, "out_length")
        let message = UnsafeRawBufferPointer(start: event.message, count: event.message_length)
        guard let json = property(name, of: message) else {
            throw RealtimeError(.notFound, "the message has no member \(name.quoted())")
        }
        out.pointee = characters(json)
        length.pointee = json.count
    }
}

/// Sets handlers of a Pusher connection.
func pusherHandlers(
    _ pusher: rt_pusher?, _ body: (inout PusherHandlers) -> Void
) -> rt_status {
    pusherCall(pusher) { (connection) throws(RealtimeError) in
        try connection.setHandlers(body)
    }
}

func noBinding(_ number: UInt64) -> RealtimeError {
    RealtimeError(.notFound, "no binding has the number \(number)")
}
