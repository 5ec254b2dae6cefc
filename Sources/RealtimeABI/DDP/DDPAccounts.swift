import Engine
import Session
import Wire

// Chapter: ddp accounts. The user of a client. A user who has logged in is logged in again on each
// new connection, and after a restart if the token is kept (`rt_ddp_set_token_file`). Passwords are
// sent as digests. The functions cannot be called inside a stub: RT_ERROR_REENTRANT. `fn` is
// called once, when the call is completed, on the loop's thread, never inside the call. `out_call`
// receives the call, for `rt_call_wait`.

/// Logs in with a password. Any thread. Since 0.1.
/// - Parameter user_name: an email address if it contains an `@`, otherwise a user name; or an
///   EJSON object with one member, `id`, `username` or `email`, such as `{"id":"abc"}`.
/// - Parameter code: of the second factor; NULL for none.
/// - Parameter fn: the value is an object with `id` and `token`.
/// - Returns: RT_OK; RT_ERROR_REENTRANT; RT_ERROR_INVALID_ARGUMENT; RT_ERROR_INVALID_UTF8;
///   RT_ERROR_PROTOCOL for a `user_name` that begins with `{` and is not an EJSON object;
///   RT_ERROR_SYSTEM without libcrypto; RT_ERROR_QUEUE_FULL as in `rt_ddp_call`; RT_ERROR_FORKED;
///   RT_ERROR_CLOSED on a freed loop.
@_cdecl("rt_ddp_log_in_with_password")
public func rt_ddp_log_in_with_password(
    _ ddp: rt_ddp?, _ user_name: UnsafePointer<CChar>?, _ password: UnsafePointer<CChar>?,
    _ code: UnsafePointer<CChar>?, _ fn: rt_ddp_outcome_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?,
    _ out_call: UnsafeMutablePointer<rt_call?>?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return logIn(ddp, box, out_call) { () throws(RealtimeError) in
        let name = try text(user_name, "user_name")
        let password = try text(password, "password")
        let code = try optionalText(code, "code")
        guard name.hasPrefix("{") else {
            return try .login(user: name, password: password, code: code)
        }
        guard case .object(let selector) = try ejson(user_name, "user_name") else {
            throw RealtimeError(.protocolViolation, "user_name is not an EJSON object")
        }
        return try .login(selector: selector, password: password, code: code)
    }
}

/// Logs in with the token of a login, its member `token`. Any thread. Since 0.1.
/// - Returns: as `rt_ddp_log_in_with_password`.
@_cdecl("rt_ddp_log_in_with_token")
public func rt_ddp_log_in_with_token(
    _ ddp: rt_ddp?, _ token: UnsafePointer<CChar>?, _ fn: rt_ddp_outcome_fn?,
    _ user: UnsafeMutableRawPointer?, _ destroy: rt_destroy_fn?,
    _ out_call: UnsafeMutablePointer<rt_call?>?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return logIn(ddp, box, out_call) { () throws(RealtimeError) in
        .login(token: try text(token, "token"))
    }
}

/// Calls any method that logs a user in: its result is an object with `id` and `token`. Any thread.
/// Since 0.1.
/// - Parameter params: an EJSON array; NULL for none.
/// - Returns: as `rt_ddp_log_in_with_password`, and RT_ERROR_PROTOCOL for what is not an EJSON
///   text.
@_cdecl("rt_ddp_log_in")
public func rt_ddp_log_in(
    _ ddp: rt_ddp?, _ method: UnsafePointer<CChar>?, _ params: UnsafePointer<CChar>?,
    _ fn: rt_ddp_outcome_fn?, _ user: UnsafeMutableRawPointer?, _ destroy: rt_destroy_fn?,
    _ out_call: UnsafeMutablePointer<rt_call?>?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return logIn(ddp, box, out_call) { () throws(RealtimeError) in
        DDPRequest(try text(method, "method"), try ejsonArray(params, "params"))
    }
}

/// Creates a user, and logs in. Any thread. Since 0.1.
/// - Parameter user_name: NULL for none.
/// - Parameter email: NULL for none.
/// - Parameter profile: an EJSON text; NULL for none.
/// - Returns: as `rt_ddp_log_in`.
@_cdecl("rt_ddp_create_user")
public func rt_ddp_create_user(
    _ ddp: rt_ddp?, _ user_name: UnsafePointer<CChar>?, _ email: UnsafePointer<CChar>?,
    _ password: UnsafePointer<CChar>?, _ profile: UnsafePointer<CChar>?, _ fn: rt_ddp_outcome_fn?,
    _ user: UnsafeMutableRawPointer?, _ destroy: rt_destroy_fn?,
    _ out_call: UnsafeMutablePointer<rt_call?>?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return logIn(ddp, box, out_call) { () throws(RealtimeError) in
        try .createUser(
            username: optionalText(user_name, "user_name"), email: optionalText(email, "email"),
            password: text(password, "password"),
            profile: profile == nil ? .null : ejson(profile, "profile"))
    }
}

/// Changes the password of the user who is logged in. Any thread. Since 0.1.
/// - Parameter old_password: NULL for a user who has none yet.
/// - Returns: as `rt_ddp_log_in_with_password`.
@_cdecl("rt_ddp_change_password")
public func rt_ddp_change_password(
    _ ddp: rt_ddp?, _ old_password: UnsafePointer<CChar>?, _ new_password: UnsafePointer<CChar>?,
    _ fn: rt_ddp_outcome_fn?, _ user: UnsafeMutableRawPointer?, _ destroy: rt_destroy_fn?,
    _ out_call: UnsafeMutablePointer<rt_call?>?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return accountCall(ddp, box, out_call) { (client, handlers) throws(RealtimeError) in
        let request = try DDPRequest.changePassword(
            from: optionalText(old_password, "old_password"), to: text(new_password, "new_password")
        )
        return try client.call(request, handlers)
    }
}

/// Makes the server send an email with a token for `rt_ddp_reset_password`. Any thread. Since 0.1.
/// - Returns: as `rt_ddp_log_in_with_password`.
@_cdecl("rt_ddp_forgot_password")
public func rt_ddp_forgot_password(
    _ ddp: rt_ddp?, _ email: UnsafePointer<CChar>?, _ fn: rt_ddp_outcome_fn?,
    _ user: UnsafeMutableRawPointer?, _ destroy: rt_destroy_fn?,
    _ out_call: UnsafeMutablePointer<rt_call?>?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return accountCall(ddp, box, out_call) { (client, handlers) throws(RealtimeError) in
        try client.call(.forgotPassword(email: text(email, "email")), handlers)
    }
}

/// Sets a password with the token of an email, and logs in. Any thread. Since 0.1.
/// - Returns: as `rt_ddp_log_in_with_password`.
@_cdecl("rt_ddp_reset_password")
public func rt_ddp_reset_password(
    _ ddp: rt_ddp?, _ token: UnsafePointer<CChar>?, _ new_password: UnsafePointer<CChar>?,
    _ fn: rt_ddp_outcome_fn?, _ user: UnsafeMutableRawPointer?, _ destroy: rt_destroy_fn?,
    _ out_call: UnsafeMutablePointer<rt_call?>?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return logIn(ddp, box, out_call) { () throws(RealtimeError) in
        try .resetPassword(token: text(token, "token"), to: text(new_password, "new_password"))
    }
}

/// Confirms an email address with the token of an email, and logs in. Any thread. Since 0.1.
/// - Returns: as `rt_ddp_log_in_with_password`.
@_cdecl("rt_ddp_verify_email")
public func rt_ddp_verify_email(
    _ ddp: rt_ddp?, _ token: UnsafePointer<CChar>?, _ fn: rt_ddp_outcome_fn?,
    _ user: UnsafeMutableRawPointer?, _ destroy: rt_destroy_fn?,
    _ out_call: UnsafeMutablePointer<rt_call?>?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return logIn(ddp, box, out_call) { () throws(RealtimeError) in
        .verifyEmail(token: try text(token, "token"))
    }
}

/// Logs the user out: here once the server has. Any thread. Since 0.1.
/// - Returns: as `rt_ddp_log_in_with_password`.
@_cdecl("rt_ddp_log_out")
public func rt_ddp_log_out(
    _ ddp: rt_ddp?, _ fn: rt_ddp_outcome_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?,
    _ out_call: UnsafeMutablePointer<rt_call?>?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return accountCall(ddp, box, out_call) { (client, handlers) throws(RealtimeError) in
        .success(try client.logOut(handlers))
    }
}

/// Replaces the token of the user who is logged in by a new one, which the client keeps and uses
/// from now on. Any thread. Since 0.1.
/// - Parameter fn: the value is an object with `id` and `token`.
/// - Returns: as `rt_ddp_log_in_with_password`.
@_cdecl("rt_ddp_new_token")
public func rt_ddp_new_token(
    _ ddp: rt_ddp?, _ fn: rt_ddp_outcome_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?,
    _ out_call: UnsafeMutablePointer<rt_call?>?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return logIn(ddp, box, out_call) { () throws(RealtimeError) in .newToken }
}

/// Logs all other clients of the user out. This one gets a new token first. Any thread. Since 0.1.
/// - Returns: as `rt_ddp_log_in_with_password`.
@_cdecl("rt_ddp_log_out_others")
public func rt_ddp_log_out_others(
    _ ddp: rt_ddp?, _ fn: rt_ddp_outcome_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?,
    _ out_call: UnsafeMutablePointer<rt_call?>?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return accountCall(ddp, box, out_call) { (client, handlers) throws(RealtimeError) in
        .success(try client.logOutOthers(handlers))
    }
}

/// Sets the user that stubs see, without a login, for servers with accounts of their own. Any
/// thread. Since 0.1.
/// - Parameter user_id: NULL for nobody.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT; RT_ERROR_INVALID_UTF8; RT_ERROR_FORKED;
///   RT_ERROR_CLOSED on a freed loop.
@_cdecl("rt_ddp_set_user_id")
public func rt_ddp_set_user_id(_ ddp: rt_ddp?, _ user_id: UnsafePointer<CChar>?) -> rt_status {
    ddpCall(ddp) { (client) throws(RealtimeError) in
        try client.setUserID(optionalText(user_id, "user_id"))
    }
}

private func logIn(
    _ ddp: rt_ddp?, _ box: CallbackBox<rt_ddp_outcome_fn>,
    _ out: UnsafeMutablePointer<rt_call?>?, _ request: () throws(RealtimeError) -> DDPRequest
) -> rt_status {
    accountCall(ddp, box, out) { (client, handlers) throws(RealtimeError) in
        .success(try client.logIn(request(), handlers))
    }
}

private func accountCall(
    _ ddp: rt_ddp?, _ box: CallbackBox<rt_ddp_outcome_fn>,
    _ out: UnsafeMutablePointer<rt_call?>?,
    _ body: (DDPConnection, DDPCallHandlers) throws(RealtimeError) -> Result<DDPCall, DDPError>
) -> rt_status {
    ddpCall(ddp) { (client) throws(RealtimeError) in
        let pending = PendingCall.wanted(out, on: client.loop)
        var handlers = try DDPCallWishes(nil).handlers(box)
        handlers.set(pending?.answerer)
        _ = try body(client, handlers)
        pending?.export(to: out)
    }
}
