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

/// An answer, or what came instead: valid until the callback that is given it returns, and with it
/// all that the functions below return. Since 0.1.
public typealias rt_rest_response = OpaquePointer

/// A request has ended; its last callback. Since 0.1.
public typealias rt_rest_done_fn =
    @convention(c) (_ response: rt_rest_response?, _ user: UnsafeMutableRawPointer?) -> Void

/// The server refused the client's credentials with 401, once for however many requests: set fresh
/// ones (`rt_rest_set_bearer_token`), now or later. Requests that go out with the client's
/// credentials wait for the answer; their deadlines and `rt_rest_cancel` hold. Those submitted
/// since go out with what there is, so that one of them may fetch the token. It is best given an
/// Authorization of its own, and must not be ordered (`rt_rest_request_set_order`) as it would wait
/// behind an ordered request that was refused; refused itself, it waits as the others do, until its
/// deadline. Runs on the loop's thread. Since 0.1.
/// - Returns: an `rt_credentials`: NONE ends the requests that were refused with RT_ERROR_AUTH,
///   READY sends them once more, LATER has all wait for `rt_rest_credentials_ready`.
public typealias rt_rest_credentials_fn =
    @convention(c) (_ user: UnsafeMutableRawPointer?) -> rt_credentials

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
    border {
        let loop = try LoopHandle.borrow(loop).loop
        let base = try base_url.map { try text($0, "base_url") }
        let out = try required(out, "out")
        out.pointee = RESTClient.export(try RESTClient(base: base, on: loop))
    }
}

/// Gives the client back, after `rt_rest_close`. NULL is accepted. Any thread, also inside a
/// callback of its own. Since 0.1.
@_cdecl("rt_rest_free")
public func rt_rest_free(_ rest: rt_rest?) { RESTClient.release(rest) { $0.close() } }

/// Ends all requests: each one's terminal callback is called with RT_ERROR_CLOSED. Called on the
/// loop's thread, or while nobody runs the loop, that has happened when this returns; while another
/// thread runs it, it happens there in the next turn. Closing again changes nothing. Any thread.
/// Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL; RT_ERROR_FORKED.
@_cdecl("rt_rest_close")
public func rt_rest_close(_ rest: rt_rest?) -> rt_status {
    client(rest) {
        try $0.loop.checkNotForked()
        $0.close()
    }
}

/// Ends a request, whose terminal callback is called with RT_ERROR_CANCELLED in the loop's next
/// turn; nothing else of it is called after this returned on the loop's thread. What the server has
/// done already stays done. A request that has ended is left alone. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_FORKED; RT_ERROR_CLOSED on a freed loop.
@_cdecl("rt_rest_cancel")
public func rt_rest_cancel(_ rest: rt_rest?, _ id: UInt64) -> rt_status {
    client(rest) { try $0.cancel(id) }
}

/// Stops delivering a streamed answer. What one read brings meanwhile is kept as it came, not
/// decoded; then the server is slowed down. On an HTTP/2 connection that others use, up to 32 MiB
/// wait in libcurl: its window for a stream (`rt_rest_set_http2`). The attempt's time stands still.
/// Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_FORKED; RT_ERROR_CLOSED on a freed loop.
@_cdecl("rt_rest_pause")
public func rt_rest_pause(_ rest: rt_rest?, _ id: UInt64) -> rt_status {
    client(rest) { try $0.pause(id, true) }
}

/// Goes on after `rt_rest_pause`. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_FORKED; RT_ERROR_CLOSED on a freed loop.
@_cdecl("rt_rest_resume")
public func rt_rest_resume(_ rest: rt_rest?, _ id: UInt64) -> rt_status {
    client(rest) { try $0.pause(id, false) }
}

/// The source of a request's body, which had answered RT_REST_BODY_WAIT, has more. Any thread.
/// Since 0.1.
/// - Returns: RT_OK; RT_ERROR_FORKED; RT_ERROR_CLOSED on a freed loop.
@_cdecl("rt_rest_resume_body")
public func rt_rest_resume_body(_ rest: rt_rest?, _ id: UInt64) -> rt_status {
    client(rest) { try $0.resumeBody(id) }
}

// MARK: Credentials

/// Sets a basic Authorization header (RFC 7617) for all requests that have none of their own, from
/// their next exchange on. Any thread, at any time. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for a user with a colon; RT_ERROR_INVALID_HEADER.
@_cdecl("rt_rest_set_basic_auth")
public func rt_rest_set_basic_auth(
    _ rest: rt_rest?, _ user_name: UnsafePointer<CChar>?, _ password: UnsafePointer<CChar>?
) -> rt_status {
    client(rest) {
        let user = try text(user_name, "user_name")
        let password = try text(password, "password")
        try $0.setCredential(HeaderField.basicAuthorization(user: user, password: password))
    }
}

/// Sets an Authorization header with a bearer token (RFC 6750) for all requests that have none of
/// their own, from their next exchange on. Any thread, at any time. Since 0.1.
/// - Parameter token: NULL for no Authorization at all.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for ""; RT_ERROR_INVALID_HEADER.
@_cdecl("rt_rest_set_bearer_token")
public func rt_rest_set_bearer_token(
    _ rest: rt_rest?, _ token: UnsafePointer<CChar>?
) -> rt_status {
    client(rest) {
        try $0.setCredential(
            token.map { try HeaderField.bearerAuthorization(text($0, "token")) })
    }
}

/// Sets the callback for credentials that were refused. Without one a 401 is an answer like any
/// other. Before the first request. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE.
@_cdecl("rt_rest_on_credentials")
public func rt_rest_on_credentials(
    _ rest: rt_rest?, _ fn: rt_rest_credentials_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return client(rest) { try $0.setCredentials(box) }
}

/// Answers what RT_CREDENTIALS_LATER had left open. Any thread. Since 0.1.
/// - Parameter fresh: true sends the requests that wait once more; false ends them with
///   RT_ERROR_AUTH.
/// - Returns: RT_OK, also when nothing was asked; RT_ERROR_FORKED; RT_ERROR_CLOSED on a freed loop.
@_cdecl("rt_rest_credentials_ready")
public func rt_rest_credentials_ready(_ rest: rt_rest?, _ fresh: Bool) -> rt_status {
    client(rest) { try $0.credentialsAreReady(fresh) }
}

// MARK: The answer

/// How the request ended: RT_OK for a status of 200 to 299, RT_ERROR_HTTP_STATUS for another. An
/// answer that did not come, or not whole, has its reason: RT_ERROR_RESOLVE, RT_ERROR_CONNECT,
/// RT_ERROR_TLS, RT_ERROR_PROXY, RT_ERROR_TIMEOUT, RT_ERROR_CONNECTION_LOST, RT_ERROR_PROTOCOL,
/// RT_ERROR_DEADLINE, RT_ERROR_REDIRECT, RT_ERROR_INSECURE_REDIRECT, RT_ERROR_AUTH,
/// RT_ERROR_QUEUE_FULL, RT_ERROR_EXPIRED, RT_ERROR_TOO_LARGE, RT_ERROR_CANCELLED, RT_ERROR_CLOSED.
/// After RT_ERROR_TIMEOUT, RT_ERROR_CONNECTION_LOST, RT_ERROR_PROTOCOL and RT_ERROR_DEADLINE the
/// server may have acted on the request. Since 0.1.
@_cdecl("rt_rest_response_error")
public func rt_rest_response_error(_ response: rt_rest_response?) -> rt_status {
    view(response, RT_STATUS.ERROR_INVALID_ARGUMENT.rawValue) { $0.error }
}

/// The error as a sentence, "" for RT_OK. Since 0.1.
@_cdecl("rt_rest_response_message")
public func rt_rest_response_message(_ response: rt_rest_response?) -> UnsafePointer<CChar> {
    view(response, RESTView.empty) { $0.message }
}

/// The HTTP status of the last answer, or that of a proxy that refused the tunnel (RT_ERROR_PROXY),
/// of whose answer nothing else is shown; 0 when none came, RT_ERROR_INVALID_ARGUMENT for NULL.
/// Since 0.1.
@_cdecl("rt_rest_response_status")
public func rt_rest_response_status(_ response: rt_rest_response?) -> Int32 {
    view(response, RT_STATUS.ERROR_INVALID_ARGUMENT.rawValue) { $0.status }
}

/// The reason behind the status, "" without: HTTP/2 has none. These are the bytes that the server
/// sent: usually ASCII, and not necessarily UTF-8. Since 0.1.
@_cdecl("rt_rest_response_reason")
public func rt_rest_response_reason(_ response: rt_rest_response?) -> UnsafePointer<CChar> {
    view(response, RESTView.empty) { $0.reason }
}

/// The headers: "Name: value" lines in the order of the wire, each ended by LF. Values are the
/// bytes that the server sent: usually ASCII, and not necessarily UTF-8. Since 0.1.
/// - Parameter out_length: receives the length in bytes; may be NULL.
@_cdecl("rt_rest_response_headers")
public func rt_rest_response_headers(
    _ response: rt_rest_response?, _ out_length: UnsafeMutablePointer<Int>?
) -> UnsafePointer<CChar> {
    view(response, RESTView.empty) {
        out_length?.pointee = $0.headersLength
        return $0.headers
    }
}

/// The first value of a header, whose name may be in any case, as the bytes that the server sent;
/// NULL without. Since 0.1.
@_cdecl("rt_rest_response_header")
public func rt_rest_response_header(
    _ response: rt_rest_response?, _ name: UnsafePointer<CChar>?
) -> UnsafePointer<CChar>? {
    guard let name = try? text(name, "name") else { return nil }
    return view(response, nil) { $0.header(name) }
}

/// The body, decoded; never NULL. Empty when it was streamed. Since 0.1.
/// - Parameter out_length: receives the length in bytes; may be NULL.
@_cdecl("rt_rest_response_body")
public func rt_rest_response_body(
    _ response: rt_rest_response?, _ out_length: UnsafeMutablePointer<Int>?
) -> UnsafePointer<UInt8> {
    view(response, emptyBase.assumingMemoryBound(to: UInt8.self)) {
        out_length?.pointee = $0.body.count
        return ($0.body.baseAddress ?? emptyBase).assumingMemoryBound(to: UInt8.self)
    }
}

/// Where the last answer came from, after redirects, without user and password. Since 0.1.
@_cdecl("rt_rest_response_url")
public func rt_rest_response_url(_ response: rt_rest_response?) -> UnsafePointer<CChar> {
    view(response, RESTView.empty) { $0.url }
}

/// How many attempts were made; 0 when it never began. Since 0.1.
@_cdecl("rt_rest_response_attempts")
public func rt_rest_response_attempts(_ response: rt_rest_response?) -> UInt32 {
    view(response, 0) { UInt32(clamping: $0.outcome.attempts) }
}

/// The Retry-After of the last answer in milliseconds, from its date; -1 without. Since 0.1.
@_cdecl("rt_rest_response_retry_after_ms")
public func rt_rest_response_retry_after_ms(_ response: rt_rest_response?) -> Int64 {
    view(response, -1) { $0.retryAfter }
}

/// The version of HTTP of the last answer: 10, 11, 20 or 30; 0 when none came. Since 0.1.
@_cdecl("rt_rest_response_http_version")
public func rt_rest_response_http_version(_ response: rt_rest_response?) -> Int32 {
    view(response, RT_STATUS.ERROR_INVALID_ARGUMENT.rawValue) { $0.httpVersion }
}

/// Runs a call on a client.
func client(_ rest: rt_rest?, _ body: (RESTClient) throws -> Void) -> rt_status {
    border { try body(RESTClient.borrow(rest)) }
}

private func view<Value>(
    _ response: rt_rest_response?, _ missing: Value, _ body: (RESTView) -> Value
) -> Value {
    guard let view = try? RESTView.borrow(response) else { return missing }
    return body(view)
}
