import Engine
import Wire

// Chapter: using rest. Requests under way, and the client's credentials.

/// Ends all requests: each one's terminal callback is called with RT_ERROR_CLOSED. Called on the
/// loop's thread, or while nobody runs the loop, that has happened when this returns; while another
/// thread runs it, it happens there in the next turn. Closing again changes nothing. Any thread.
/// Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL; RT_ERROR_FORKED.
@_cdecl("rt_rest_close")
public func rt_rest_close(_ rest: rt_rest?) -> rt_status {
    restCall(rest) { (client) throws(RealtimeError) in
        try client.loop.checkNotForked()
        client.close()
    }
}

/// Ends a request, whose terminal callback is called with RT_ERROR_CANCELLED in the loop's next
/// turn; nothing else of it is called after this returned on the loop's thread. What the server has
/// done already stays done. A request that has ended is left alone. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_FORKED; RT_ERROR_CLOSED on a freed loop.
@_cdecl("rt_rest_cancel")
public func rt_rest_cancel(_ rest: rt_rest?, _ id: UInt64) -> rt_status {
    restCall(rest) { (client) throws(RealtimeError) in try client.cancel(id) }
}

/// Stops delivering a streamed answer. What one read brings meanwhile is kept as it came, not
/// decoded; then the server is slowed down. On an HTTP/2 connection that others use, up to 32 MiB
/// wait in libcurl: its window for a stream (`rt_rest_set_http2`). The attempt's time stands still.
/// Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_FORKED; RT_ERROR_CLOSED on a freed loop.
@_cdecl("rt_rest_pause")
public func rt_rest_pause(_ rest: rt_rest?, _ id: UInt64) -> rt_status {
    restCall(rest) { (client) throws(RealtimeError) in try client.pause(id, true) }
}

/// Goes on after `rt_rest_pause`. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_FORKED; RT_ERROR_CLOSED on a freed loop.
@_cdecl("rt_rest_resume")
public func rt_rest_resume(_ rest: rt_rest?, _ id: UInt64) -> rt_status {
    restCall(rest) { (client) throws(RealtimeError) in try client.pause(id, false) }
}

/// The source of a request's body, which had answered RT_REST_BODY_WAIT, has more. Any thread.
/// Since 0.1.
/// - Returns: RT_OK; RT_ERROR_FORKED; RT_ERROR_CLOSED on a freed loop.
@_cdecl("rt_rest_resume_body")
public func rt_rest_resume_body(_ rest: rt_rest?, _ id: UInt64) -> rt_status {
    restCall(rest) { (client) throws(RealtimeError) in try client.resumeBody(id) }
}

/// Sets a basic Authorization header (RFC 7617) for all requests that have none of their own, from
/// their next exchange on. Any thread, at any time. Since 0.1.
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

/// Sets an Authorization header with a bearer token (RFC 6750) for all requests that have none of
/// their own, from their next exchange on. Any thread, at any time. Since 0.1.
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

/// Answers what RT_CREDENTIALS_LATER had left open. Any thread. Since 0.1.
/// - Parameter fresh: true sends the requests that wait once more; false ends them with
///   RT_ERROR_AUTH.
/// - Returns: RT_OK, also when nothing was asked; RT_ERROR_FORKED; RT_ERROR_CLOSED on a freed loop.
@_cdecl("rt_rest_credentials_ready")
public func rt_rest_credentials_ready(_ rest: rt_rest?, _ fresh: Bool) -> rt_status {
    restCall(rest) { (client) throws(RealtimeError) in try client.credentialsAreReady(fresh) }
}
