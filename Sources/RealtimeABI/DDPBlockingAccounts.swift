public import CShims

// Chapter: blocking ddp accounts. The calls of the chapter on accounts, as calls that wait; see the
// chapter on blocking for `timeout_ms`, `outcome` and the statuses. A login that is not done in
// time continues (`rt_ddp_is_logging_in`).

/// Logs in with a password, as `rt_ddp_log_in_with_password` does, and waits until that is
/// completed. Any thread. Since 0.1.
/// - Returns: as `rt_ddp_call_and_wait`, and RT_ERROR_SYSTEM without libcrypto.
@_cdecl("rt_ddp_log_in_with_password_and_wait")
public func rt_ddp_log_in_with_password_and_wait(
    _ ddp: rt_ddp?, _ user_name: UnsafePointer<CChar>?, _ password: UnsafePointer<CChar>?,
    _ code: UnsafePointer<CChar>?, _ timeout_ms: Int64,
    _ outcome: UnsafeMutablePointer<UnsafeMutablePointer<rt_ddp_outcome>?>?
) -> rt_status {
    ddpLogInWithPassword(ddp, user_name, password, code, .wait(timeout_ms, outcome))
}

/// Logs in with a token, as `rt_ddp_log_in_with_token` does, and waits until that is completed. Any
/// thread. Since 0.1.
/// - Returns: as `rt_ddp_call_and_wait`.
@_cdecl("rt_ddp_log_in_with_token_and_wait")
public func rt_ddp_log_in_with_token_and_wait(
    _ ddp: rt_ddp?, _ token: UnsafePointer<CChar>?, _ timeout_ms: Int64,
    _ outcome: UnsafeMutablePointer<UnsafeMutablePointer<rt_ddp_outcome>?>?
) -> rt_status {
    ddpLogInWithToken(ddp, token, .wait(timeout_ms, outcome))
}

/// Calls a method that logs a user in, as `rt_ddp_log_in` does, and waits until that is completed.
/// Any thread. Since 0.1.
/// - Returns: as `rt_ddp_call_and_wait`.
@_cdecl("rt_ddp_log_in_and_wait")
public func rt_ddp_log_in_and_wait(
    _ ddp: rt_ddp?, _ method: UnsafePointer<CChar>?, _ params: UnsafePointer<CChar>?,
    _ timeout_ms: Int64, _ outcome: UnsafeMutablePointer<UnsafeMutablePointer<rt_ddp_outcome>?>?
) -> rt_status {
    ddpLogIn(ddp, method, params, .wait(timeout_ms, outcome))
}

/// Creates a user and logs in, as `rt_ddp_create_user` does, and waits until that is completed. Any
/// thread. Since 0.1.
/// - Returns: as `rt_ddp_call_and_wait`, and RT_ERROR_SYSTEM without libcrypto.
@_cdecl("rt_ddp_create_user_and_wait")
public func rt_ddp_create_user_and_wait(
    _ ddp: rt_ddp?, _ user_name: UnsafePointer<CChar>?, _ email: UnsafePointer<CChar>?,
    _ password: UnsafePointer<CChar>?, _ profile: UnsafePointer<CChar>?, _ timeout_ms: Int64,
    _ outcome: UnsafeMutablePointer<UnsafeMutablePointer<rt_ddp_outcome>?>?
) -> rt_status {
    ddpCreateUser(ddp, user_name, email, password, profile, .wait(timeout_ms, outcome))
}

/// Changes the password, as `rt_ddp_change_password` does, and waits until that is completed. Any
/// thread. Since 0.1.
/// - Returns: as `rt_ddp_call_and_wait`, and RT_ERROR_SYSTEM without libcrypto.
@_cdecl("rt_ddp_change_password_and_wait")
public func rt_ddp_change_password_and_wait(
    _ ddp: rt_ddp?, _ old_password: UnsafePointer<CChar>?, _ new_password: UnsafePointer<CChar>?,
    _ timeout_ms: Int64, _ outcome: UnsafeMutablePointer<UnsafeMutablePointer<rt_ddp_outcome>?>?
) -> rt_status {
    ddpChangePassword(ddp, old_password, new_password, .wait(timeout_ms, outcome))
}

/// Makes the server send an email, as `rt_ddp_forgot_password` does, and waits until it has. Any
/// thread. Since 0.1.
/// - Returns: as `rt_ddp_call_and_wait`.
@_cdecl("rt_ddp_forgot_password_and_wait")
public func rt_ddp_forgot_password_and_wait(
    _ ddp: rt_ddp?, _ email: UnsafePointer<CChar>?, _ timeout_ms: Int64,
    _ outcome: UnsafeMutablePointer<UnsafeMutablePointer<rt_ddp_outcome>?>?
) -> rt_status {
    ddpForgotPassword(ddp, email, .wait(timeout_ms, outcome))
}

/// Sets a password and logs in, as `rt_ddp_reset_password` does, and waits until that is completed.
/// Any thread. Since 0.1.
/// - Returns: as `rt_ddp_call_and_wait`, and RT_ERROR_SYSTEM without libcrypto.
@_cdecl("rt_ddp_reset_password_and_wait")
public func rt_ddp_reset_password_and_wait(
    _ ddp: rt_ddp?, _ token: UnsafePointer<CChar>?, _ new_password: UnsafePointer<CChar>?,
    _ timeout_ms: Int64, _ outcome: UnsafeMutablePointer<UnsafeMutablePointer<rt_ddp_outcome>?>?
) -> rt_status {
    ddpResetPassword(ddp, token, new_password, .wait(timeout_ms, outcome))
}

/// Confirms an email address and logs in, as `rt_ddp_verify_email` does, and waits until that is
/// completed. Any thread. Since 0.1.
/// - Returns: as `rt_ddp_call_and_wait`.
@_cdecl("rt_ddp_verify_email_and_wait")
public func rt_ddp_verify_email_and_wait(
    _ ddp: rt_ddp?, _ token: UnsafePointer<CChar>?, _ timeout_ms: Int64,
    _ outcome: UnsafeMutablePointer<UnsafeMutablePointer<rt_ddp_outcome>?>?
) -> rt_status {
    ddpVerifyEmail(ddp, token, .wait(timeout_ms, outcome))
}

/// Logs the user out, as `rt_ddp_log_out` does, and waits until that is completed. Any thread.
/// Since 0.1.
/// - Returns: as `rt_ddp_call_and_wait`.
@_cdecl("rt_ddp_log_out_and_wait")
public func rt_ddp_log_out_and_wait(
    _ ddp: rt_ddp?, _ timeout_ms: Int64,
    _ outcome: UnsafeMutablePointer<UnsafeMutablePointer<rt_ddp_outcome>?>?
) -> rt_status {
    ddpLogOut(ddp, .wait(timeout_ms, outcome))
}

/// Replaces the token of the user who is logged in, as `rt_ddp_new_token` does, and waits until
/// that is completed. Any thread. Since 0.1.
/// - Returns: as `rt_ddp_call_and_wait`.
@_cdecl("rt_ddp_new_token_and_wait")
public func rt_ddp_new_token_and_wait(
    _ ddp: rt_ddp?, _ timeout_ms: Int64,
    _ outcome: UnsafeMutablePointer<UnsafeMutablePointer<rt_ddp_outcome>?>?
) -> rt_status {
    ddpNewToken(ddp, .wait(timeout_ms, outcome))
}

/// Logs all other clients of the user out, as `rt_ddp_log_out_others` does, and waits until that is
/// completed. Any thread. Since 0.1.
/// - Returns: as `rt_ddp_call_and_wait`.
@_cdecl("rt_ddp_log_out_others_and_wait")
public func rt_ddp_log_out_others_and_wait(
    _ ddp: rt_ddp?, _ timeout_ms: Int64,
    _ outcome: UnsafeMutablePointer<UnsafeMutablePointer<rt_ddp_outcome>?>?
) -> rt_status {
    ddpLogOutOthers(ddp, .wait(timeout_ms, outcome))
}
