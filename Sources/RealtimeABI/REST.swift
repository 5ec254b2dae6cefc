import Engine
import Session
import Wire

// Chapter: rest. HTTP requests that are tried again, wait for the network and keep their order.

/// A client for HTTP requests. Life: `rt_rest_new`, options, requests (`rt_rest_request_new`,
/// `rt_rest_request_send`), `rt_rest_close` or `rt_rest_free`.
///
/// A request is tried again when that is safe: after an error that came before it was sent, after
/// 408, 429 and 503, and, if its method is idempotent or it has an Idempotency-Key, after a
/// connection that broke, a time that ran out, 425, 500, 502 and 504. A request whose method is not
/// idempotent is not sent again after a 2xx whose body cannot be read (RT_ERROR_PROTOCOL): the
/// server has done what it asks. Without a network requests wait in a queue, in their order. Each
/// has one terminal callback. Since 0.1.
public typealias rt_rest = OpaquePointer

/// Makes a client. Any thread. Since 0.1.
/// - Parameter loop: the loop it lives on, which it keeps alive.
/// - Parameter base_url: what paths are resolved against, without a query; user and password in it
///   become a basic Authorization header of all requests to its origin. NULL when all requests name
///   whole URLs.
/// - Parameter out: receives the client; to be freed with `rt_rest_free`.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT; RT_ERROR_INVALID_URL;
///   RT_ERROR_UNSUPPORTED_SCHEME; RT_ERROR_FORKED; RT_ERROR_CLOSED on a freed loop.
@_cdecl("rt_rest_new")
public func rt_rest_new(
    _ loop: rt_loop?, _ base_url: UnsafePointer<CChar>?, _ out: UnsafeMutablePointer<rt_rest?>?
) -> rt_status {
    border { () throws(RealtimeError) in
        let loop = try LoopHandle.borrow(loop).loop
        let base = try optionalText(base_url, "base_url")
        let out = try required(out, "out")
        out.pointee = RESTClient.export(try RESTClient(base: base, on: loop))
    }
}

/// Gives the client back, after `rt_rest_close`. NULL is accepted. Any thread, also inside a
/// callback of its own. Since 0.1.
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
