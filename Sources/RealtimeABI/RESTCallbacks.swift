import Engine
import Wire

// Chapter: rest callbacks. Those of a client; a request has its own.

/// Sets the callback for credentials that were refused: the server answered 401, and `refusal` has
/// the answer without its body. It is called once for however many requests: set fresh credentials
/// (`rt_rest_set_bearer_token`), now or later. Requests that go out with the client's credentials
/// wait for the answer; their deadlines and `rt_rest_cancel` hold. Those submitted since go out
/// with what there is, so that one of them may fetch the token. It is best given an Authorization
/// of its own, and must not be ordered (`rt_rest_request_set_order`) as it would wait behind an
/// ordered request that was refused; refused itself, it waits as the others do, until its deadline.
///
/// RT_CREDENTIALS_NONE ends the requests that were refused with RT_ERROR_AUTH, RT_CREDENTIALS_READY
/// sends them once more, RT_CREDENTIALS_LATER has all wait for `rt_rest_credentials_ready`. Without
/// a callback a 401 is an answer like any other. Runs on the loop's thread. Before the first
/// request. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE.
@_cdecl("rt_rest_on_credentials")
public func rt_rest_on_credentials(
    _ rest: rt_rest?, _ fn: rt_credentials_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return restCall(rest) { (client) throws(RealtimeError) in
        try client.setCredentialsHandler(asked(box))
    }
}
