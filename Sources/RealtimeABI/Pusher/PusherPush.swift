public import CShims
import Engine
import Session
import Wire

// Chapter: pusher push. Registering a device's interests with a push notification service. Its
// requests need no connection. Receiving notifications is the operating system's task.

/// A call for push notifications. Since 0.1.
public typealias rt_pusher_push = Int32

/// Values of `rt_pusher_push`. Since 0.1.
public enum RT_PUSHER_PUSH: Int32 {
    /// `rt_pusher_push_register`.
    case REGISTER = 0
    /// `rt_pusher_push_subscribe`.
    case SUBSCRIBE = 1
    /// `rt_pusher_push_unsubscribe`.
    case UNSUBSCRIBE = 2
    /// `rt_pusher_push_set_subscriptions`.
    case SET_SUBSCRIPTIONS = 3
}

/// Receives the result of a call for push notifications. Since 0.1.
public typealias rt_pusher_push_fn =
    @convention(c) (
        _ result: UnsafePointer<rt_pusher_push_result>?, _ user: UnsafeMutableRawPointer?
    ) -> Void

/// Registers this device. Calls about interests wait for it. Any thread. Since 0.1.
/// - Parameter token: the device token of the operating system, `length` bytes, copied.
/// - Parameter platform: `apns`, `gcm` or another name that the service knows; NULL for `apns`.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT, also for an empty token; RT_ERROR_INVALID_UTF8;
///   RT_ERROR_FORKED.
@_cdecl("rt_pusher_push_register")
public func rt_pusher_push_register(
    _ pusher: rt_pusher?, _ token: UnsafePointer<UInt8>?, _ length: Int,
    _ platform: UnsafePointer<CChar>?
) -> rt_status {
    pusherCall(pusher) { (connection) throws(RealtimeError) in
        let platform = try optionalText(platform, "platform") ?? "apns"
        let token = Array(try bytes(token, length, "token"))
        guard !token.isEmpty else { throw RealtimeError(.invalidArgument, "the token is empty") }
        try connection.push.register(token: token, platform: platform)
    }
}

/// Adds an interest. Calls about interests are made one after the other. One that fails is repeated
/// after 1, 4, 9, 16 and 25 s, and then reported. When 1,000 calls wait, further ones fail. Any
/// thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT, also for an empty name; RT_ERROR_INVALID_UTF8;
///   RT_ERROR_FORKED.
@_cdecl("rt_pusher_push_subscribe")
public func rt_pusher_push_subscribe(
    _ pusher: rt_pusher?, _ interest: UnsafePointer<CChar>?
) -> rt_status {
    pusherCall(pusher) { (connection) throws(RealtimeError) in
        try connection.push.call(.subscribe(name(interest)))
    }
}

/// Removes an interest, otherwise like `rt_pusher_push_subscribe`. Any thread. Since 0.1.
/// - Returns: as `rt_pusher_push_subscribe`.
@_cdecl("rt_pusher_push_unsubscribe")
public func rt_pusher_push_unsubscribe(
    _ pusher: rt_pusher?, _ interest: UnsafePointer<CChar>?
) -> rt_status {
    pusherCall(pusher) { (connection) throws(RealtimeError) in
        try connection.push.call(.unsubscribe(name(interest)))
    }
}

/// Replaces all interests, otherwise like `rt_pusher_push_subscribe`. Any thread. Since 0.1.
/// - Parameter interests: the names, separated by LF, copied; "" for none.
/// - Returns: as `rt_pusher_push_subscribe`.
@_cdecl("rt_pusher_push_set_subscriptions")
public func rt_pusher_push_set_subscriptions(
    _ pusher: rt_pusher?, _ interests: UnsafePointer<CChar>?
) -> rt_status {
    pusherCall(pusher) { (connection) throws(RealtimeError) in
        let names = try text(interests, "interests").split(separator: "\n").map { String($0) }
        try connection.push.call(.setSubscriptions(names))
    }
}

/// - Callbacks: pusher, pusherCall
extension PusherConnection {
    /// Sets the callback for the results of these calls. It may be set at any time, from any
    /// thread; NULL removes it. Since 0.1.
    func onPush(_ box: CallbackBox<rt_pusher_push_fn>) throws(RealtimeError) {
        try push.setHandlers { handlers in
            handlers = PushHandlers()
            guard let function = box.function else { return }
            handlers.registered = { PushView(.REGISTER, $0).show(to: function, box.user) }
            handlers.registrationFailed = {
                PushView(.REGISTER, "", $0).show(to: function, box.user)
            }
            handlers.done = { PushView($0).show(to: function, box.user) }
            handlers.failed = { PushView($0, $1).show(to: function, box.user) }
        }
    }
}

private func name(_ interest: UnsafePointer<CChar>?) throws(RealtimeError) -> String {
    let name = try text(interest, "interest")
    guard !name.isEmpty else { throw RealtimeError(.invalidArgument, "interest is empty") }
    return name
}
