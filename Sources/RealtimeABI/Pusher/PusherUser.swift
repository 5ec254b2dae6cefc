public import CShims
import Engine
import Session
import Wire

// Chapter: pusher user. Signing in as a user, the user's own events, and the watchlist.

/// Receives the signed-in user. Since 0.1.
public typealias rt_pusher_user_fn =
    @convention(c) (
        _ signed_in: UnsafePointer<rt_pusher_user>?, _ user: UnsafeMutableRawPointer?
    ) -> Void

/// Receives the result of one call of `rt_pusher_sign_in`: `failure` is NULL if the user is signed
/// in. Since 0.1.
public typealias rt_pusher_sign_in_fn =
    @convention(c) (
        _ failure: UnsafePointer<rt_failure>?, _ user: UnsafeMutableRawPointer?
    ) -> Void

/// Receives users who went online or offline. Since 0.1.
public typealias rt_pusher_watchlist_fn =
    @convention(c) (
        _ watchlist: UnsafePointer<rt_pusher_watchlist>?, _ user: UnsafeMutableRawPointer?
    ) -> Void

/// Signs in as a user, now or as soon as the connection is established, and again after each
/// reconnect. The sign-in is authorized by `rt_pusher_set_user_auth_endpoint`,
/// `rt_pusher_on_authorize` or `rt_pusher_set_secret`. The callbacks of `rt_pusher_on_signed_in`
/// and `rt_pusher_on_sign_in_failed` report each result, never inside this call. Any thread. Since
/// 0.1.
/// - Parameter fn: called once on the loop's thread, with the next result, after those callbacks. A
///   result is also RT_ERROR_CANCELLED after `rt_pusher_sign_out`, and why the connection has ended
///   if no attempt follows. NULL for nobody.
/// - Parameter out_call: receives a call that is answered with the same result, for `rt_call_wait`;
///   free it with `rt_call_free`. NULL if no thread waits.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL; RT_ERROR_FORKED; RT_ERROR_CLOSED on a
///   freed loop.
@_cdecl("rt_pusher_sign_in")
public func rt_pusher_sign_in(
    _ pusher: rt_pusher?, _ fn: rt_pusher_sign_in_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?, _ out_call: UnsafeMutablePointer<rt_call?>?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return pusherCall(pusher) { (connection) throws(RealtimeError) in
        let pending = PendingCall.wanted(out_call, on: connection.loop)
        try connection.signIn(SignInCall(box, pending?.answerer))
        pending?.export(to: out_call)
    }
}

/// Unchecked because it does not change; callers of the C interface must ensure that their
/// functions allow calls on the loop's thread.
private final class SignInCall: PusherSignInCall, @unchecked Sendable {
    private let box: CallbackBox<rt_pusher_sign_in_fn>
    private let answerer: CallAnswerer?

    init(_ box: CallbackBox<rt_pusher_sign_in_fn>, _ answerer: CallAnswerer?) {
        self.box = box
        self.answerer = answerer
    }

    func answered(_ failure: PusherSubscriptionFailure?) {
        if let function = box.function {
            if let failure {
                failure.view.show { function($0, box.user) }
            } else {
                function(nil, box.user)
            }
        }
        answerer?.set(CallAnswer(error: failure?.error))
    }
}

/// Signs the user out in this client: no more events for the user are delivered, and later
/// connections do not sign in. The protocol has no message for this, so the server considers the
/// user signed in until the connection ends. A sign-in that has no result yet fails with
/// RT_ERROR_CANCELLED. Bindings and channels stay. Without a sign-in, the call has no effect. Any
/// thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL; RT_ERROR_FORKED.
@_cdecl("rt_pusher_sign_out")
public func rt_pusher_sign_out(_ pusher: rt_pusher?) -> rt_status {
    pusherCall(pusher) { (connection) throws(RealtimeError) in try connection.signOut() }
}

/// - Callbacks: pusher, pusherHandlers
extension PusherHandlers {
    /// Sets the callback for a successful sign-in. Since 0.1.
    mutating func onSignedIn(_ box: CallbackBox<rt_pusher_user_fn>) {
        signedIn = box.function.map { function in
            { id, data in showUser(id, data, to: function, box.user) }
        }
    }

    /// Sets the callback for a failed sign-in. It does not end the connection. Its status is
    /// RT_ERROR_CANCELLED after `rt_pusher_sign_out`. Since 0.1.
    mutating func onSignInFailed(_ box: CallbackBox<rt_failure_fn>) {
        signInFailed = box.function.map { function in
            { failure in failure.view.show { function($0, box.user) } }
        }
    }

    /// Sets the callback for the watchlist of the signed-in user. Since 0.1.
    mutating func onWatchlist(_ box: CallbackBox<rt_pusher_watchlist_fn>) {
        watchlist = box.function.map { function in { $0.show(to: function, box.user) } }
    }
}

/// Adds a callback for events that the server sends to the signed-in user, on any connection of
/// this user. Any thread, at any time, also before the sign-in. Since 0.1.
/// - Parameter event: the name, compared byte for byte; NULL for all events.
/// - Parameter out: receives the id for `rt_pusher_user_unbind`; may be NULL.
/// - Returns: as `rt_pusher_bind`.
@_cdecl("rt_pusher_user_bind")
public func rt_pusher_user_bind(
    _ pusher: rt_pusher?, _ event: UnsafePointer<CChar>?, _ fn: rt_pusher_event_fn?,
    _ user: UnsafeMutableRawPointer?, _ destroy: rt_destroy_fn?,
    _ out: UnsafeMutablePointer<UInt64>?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return pusherCall(pusher) { (connection) throws(RealtimeError) in
        let id = try connection.bindUser(optionalText(event, "event"), eventHandler(box))
        out?.pointee = id
    }
}

/// Removes a binding of `rt_pusher_user_bind`. On the loop's thread, its function is not called any
/// more; for another thread, a call that has begun may end later. Any thread, also inside the
/// binding's own function. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_NOT_FOUND if the binding does not exist, or no longer exists.
@_cdecl("rt_pusher_user_unbind")
public func rt_pusher_user_unbind(_ pusher: rt_pusher?, _ binding: UInt64) -> rt_status {
    pusherCall(pusher) { (connection) throws(RealtimeError) in
        guard connection.userBindings.remove(binding) else { throw noBinding(binding) }
    }
}

/// Removes all bindings of `rt_pusher_user_bind`. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_pusher_user_unbind_all")
public func rt_pusher_user_unbind_all(_ pusher: rt_pusher?) -> rt_status {
    pusherCall(pusher) { $0.userBindings.removeAll() }
}

/// Copies the id of the signed-in user; "" while nobody is signed in. Any thread. Since 0.1.
/// - Parameter buffer: as in `rt_pusher_get_socket_id`.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT.
@_cdecl("rt_pusher_get_user_id")
public func rt_pusher_get_user_id(
    _ pusher: rt_pusher?, _ buffer: UnsafeMutablePointer<CChar>?, _ size: Int,
    _ out_length: UnsafeMutablePointer<Int>?
) -> rt_status {
    pusherCall(pusher) { (connection) throws(RealtimeError) in
        try copy(text: connection.userID ?? "", to: buffer, size, out_length)
    }
}
