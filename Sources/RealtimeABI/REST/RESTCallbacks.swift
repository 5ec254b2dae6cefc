import Engine
import Wire

// Chapter: rest callbacks. The callbacks of a client; each request has its own.

/// - Callbacks: rest, restCall
extension RESTClient {
    /// Sets the callback for refused credentials: the server responded with 401, and `refusal`
    /// describes the response, without its body. It is called once, however many requests were
    /// refused. Set fresh credentials (`rt_rest_set_bearer_token`) now or later. Meanwhile requests
    /// with the client's credentials wait; their deadlines and `rt_rest_cancel` still apply.
    ///
    /// Requests submitted meanwhile are sent with the current credentials, so one of them can fetch
    /// the token. Give that request its own Authorization header, because if it is refused, it too
    /// waits until its deadline. Set it to RT_REST_ORDER_NEVER (`rt_rest_request_set_order`),
    /// because otherwise it waits for a refused ordered request.
    ///
    /// RT_CREDENTIALS_NONE ends the refused requests with RT_ERROR_AUTH, RT_CREDENTIALS_READY
    /// repeats them, and RT_CREDENTIALS_LATER makes them wait for `rt_rest_credentials_ready`.
    /// Without a callback, 401 is treated like any other status. Runs on the loop's thread. Before
    /// the first request. Since 0.1.
    /// - Returns: RT_OK; RT_ERROR_STATE.
    func onCredentials(_ box: CallbackBox<rt_credentials_fn>) throws(RealtimeError) {
        try setCredentialsHandler(credentialsHandler(box))
    }
}
