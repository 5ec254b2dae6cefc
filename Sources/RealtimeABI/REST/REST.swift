import Engine
import Session
import Wire

// Chapter: rest. HTTP requests that are retried, wait for the network and keep their order.
//
//     rt_rest *rest;
//     rt_rest_request *request;
//     rt_call *call;
//     size_t length;
//     rt_rest_new(NULL, "https://example.org", &rest);
//     rt_rest_request_new(rest, "POST", "/items", &request);
//     rt_rest_request_set_body(request, (const uint8_t *)"{}", 2, "application/json");
//     rt_rest_request_send(request, NULL, NULL, NULL, NULL, &call);  // or a completion
//     rt_call_wait(call, -1);
//     rt_rest_response_body(rt_call_response(call), &length);        // valid as long as the call
//     rt_call_free(call);
//     rt_rest_request_free(request);
//     rt_rest_free(rest);

/// A client for HTTP requests. Life cycle: `rt_rest_new`, options, requests (`rt_rest_request_new`,
/// `rt_rest_request_send`), `rt_rest_close` or `rt_rest_free`.
///
/// A request is retried when that is safe: after an error that occurred before it was sent, and
/// after 408, 429 and 503. A request whose method is idempotent, or that has an Idempotency-Key, is
/// also retried after a lost connection, a timeout, 425, 500, 502, 504, and Cloudflare's 520 to 524
/// and 530. A request whose method is not idempotent is not repeated after a 2xx whose body cannot
/// be read (RT_ERROR_PROTOCOL), because the server has already acted on it. Without a network,
/// requests wait in a queue, in order. Each request has exactly one terminal callback. Since 0.1.
public typealias rt_rest = OpaquePointer

/// Creates a client. Any thread. Since 0.1.
/// - Parameter loop: the client's loop, which it keeps alive; NULL for the library's own, whose
///   thread calls the callbacks.
/// - Parameter base_url: the URL to which request paths are appended, without a query. Its user and
///   password become a basic Authorization header of all requests to its origin. NULL if all
///   requests have absolute URLs.
/// - Parameter out: receives the client; free it with `rt_rest_free`.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT; RT_ERROR_INVALID_URL; RT_ERROR_UNSUPPORTED_SCHEME;
///   RT_ERROR_FORKED; RT_ERROR_CLOSED on a freed loop.
@_cdecl("rt_rest_new")
public func rt_rest_new(
    _ loop: rt_loop?, _ base_url: UnsafePointer<CChar>?, _ out: UnsafeMutablePointer<rt_rest?>?
) -> rt_status {
    border { () throws(RealtimeError) in
        let base = try optionalText(base_url, "base_url")
        let out = try required(out, "out")
        out.pointee = try onLoop(loop) { (loop) throws(RealtimeError) in
            RESTClient.export(try RESTClient(base: base, on: loop))
        }
    }
}

/// Closes the client, as `rt_rest_close` does, and frees it. NULL is accepted. Any thread, also
/// inside its callbacks. Since 0.1.
@_cdecl("rt_rest_free")
public func rt_rest_free(_ rest: rt_rest?) {
    RESTClient.release(rest) {
        $0.close()
        OwnLoop.leave($0.loop)
    }
}

/// Runs a call on a client.
func restCall(_ rest: rt_rest?, _ body: (RESTClient) throws(RealtimeError) -> Void) -> rt_status {
    border { () throws(RealtimeError) in try body(RESTClient.borrow(rest)) }
}
