import Engine
import Wire

// Chapter: using rest. Requests in progress, and the client's credentials.

/// Ends all requests: each terminal callback is called with RT_ERROR_CLOSED. If another thread is
/// running the loop, the callbacks are called there in the next turn; otherwise they have been
/// called when this returns. Further calls have no effect. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL; RT_ERROR_FORKED.
@_cdecl("rt_rest_close")
public func rt_rest_close(_ rest: rt_rest?) -> rt_status {
    restCall(rest) { (client) throws(RealtimeError) in
        try client.loop.checkNotForked()
        client.close()
    }
}

/// Cancels a request. Its terminal callback is called with RT_ERROR_CANCELLED in the loop's next
/// turn; called on the loop's thread, no other callback of it begins after this returns. It does
/// not undo what the server has already done. If the request has ended, the call has no effect. Any
/// thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_FORKED; RT_ERROR_CLOSED on a freed loop.
@_cdecl("rt_rest_cancel")
public func rt_rest_cancel(_ rest: rt_rest?, _ id: UInt64) -> rt_status {
    restCall(rest) { (client) throws(RealtimeError) in try client.cancel(id) }
}

/// Stops delivering a streamed response. One read is kept undecoded, then the server is slowed
/// down. If other requests share the HTTP/2 connection, libcurl buffers up to 32 MiB, its window
/// for a stream (`rt_rest_set_http2`). The attempt timeout does not run meanwhile. Any thread.
/// Since 0.1.
/// - Returns: RT_OK; RT_ERROR_FORKED; RT_ERROR_CLOSED on a freed loop.
@_cdecl("rt_rest_pause")
public func rt_rest_pause(_ rest: rt_rest?, _ id: UInt64) -> rt_status {
    restCall(rest) { (client) throws(RealtimeError) in try client.pause(id, true) }
}

/// Continues after `rt_rest_pause`. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_FORKED; RT_ERROR_CLOSED on a freed loop.
@_cdecl("rt_rest_resume")
public func rt_rest_resume(_ rest: rt_rest?, _ id: UInt64) -> rt_status {
    restCall(rest) { (client) throws(RealtimeError) in try client.pause(id, false) }
}

/// Continues sending a request's body, after its source returned RT_REST_BODY_WAIT. Any thread.
/// Since 0.1.
/// - Returns: RT_OK; RT_ERROR_FORKED; RT_ERROR_CLOSED on a freed loop.
@_cdecl("rt_rest_resume_body")
public func rt_rest_resume_body(_ rest: rt_rest?, _ id: UInt64) -> rt_status {
    restCall(rest) { (client) throws(RealtimeError) in try client.resumeBody(id) }
}

/// Sets a basic Authorization header (RFC 7617) for all requests without one of their own, from
/// their next exchange on. NULL as `user_name` removes it. Any thread, at any time. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for a user with a colon.
@_cdecl("rt_rest_set_basic_auth")
public func rt_rest_set_basic_auth(
    _ rest: rt_rest?, _ user_name: UnsafePointer<CChar>?, _ password: UnsafePointer<CChar>?
) -> rt_status {
    restCall(rest) { (client) throws(RealtimeError) in
        guard let (user, password) = try credentials(user_name, password) else {
            return try client.setCredential(nil)
        }
        try client.setCredential(HeaderField.basicAuthorization(user: user, password: password))
    }
}

/// Sets an Authorization header with a bearer token (RFC 6750) for all requests without one of
/// their own, from their next exchange on. NULL removes it. Any thread, at any time. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for ""; RT_ERROR_INVALID_HEADER.
@_cdecl("rt_rest_set_bearer_token")
public func rt_rest_set_bearer_token(
    _ rest: rt_rest?, _ token: UnsafePointer<CChar>?
) -> rt_status {
    restCall(rest) { (client) throws(RealtimeError) in
        guard let token = try optionalText(token, "token") else {
            return try client.setCredential(nil)
        }
        try client.setCredential(HeaderField.bearerAuthorization(token))
    }
}

/// Reports the result of fetching credentials, after RT_CREDENTIALS_LATER. Any thread. Since 0.1.
/// - Parameter fresh: true repeats the waiting requests; false ends them with RT_ERROR_AUTH.
/// - Returns: RT_OK, also if no credentials were requested; RT_ERROR_FORKED; RT_ERROR_CLOSED on a
///   freed loop.
@_cdecl("rt_rest_credentials_ready")
public func rt_rest_credentials_ready(_ rest: rt_rest?, _ fresh: Bool) -> rt_status {
    restCall(rest) { (client) throws(RealtimeError) in try client.credentialsAreReady(fresh) }
}
