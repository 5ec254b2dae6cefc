public import CShims
import Engine
import Session
import Wire

// Chapter: rest response. The result of a request.

/// The result of a request: a response or a failure. It, and every pointer obtained from it, is
/// valid until the callback returns, until its call is freed (`rt_call_response`), or, after
/// `rt_rest_response_retain`, until it is freed. One thread at a time may use it. Since 0.1.
public typealias rt_rest_response = OpaquePointer

/// Keeps a response, with its body, beyond the callback that received it. Any thread. Since 0.1.
/// - Returns: the same response, which `rt_rest_response_free` frees; NULL for NULL.
@_cdecl("rt_rest_response_retain")
public func rt_rest_response_retain(_ response: rt_rest_response?) -> rt_rest_response? {
    (try? RESTView.borrow(response)).map { RESTView.export($0) }
}

/// Frees a response that was retained, once for each `rt_rest_response_retain`. NULL is accepted.
/// Any thread. Since 0.1.
@_cdecl("rt_rest_response_free")
public func rt_rest_response_free(_ response: rt_rest_response?) {
    RESTView.release(response) { _ in }
}

/// Returns the response to a request. It is valid until the call is freed, or for longer with
/// `rt_rest_response_retain`; one thread at a time may use it. Any thread. Since 0.1.
/// - Returns: the response; NULL before the answer, and for other calls.
@_cdecl("rt_call_response")
public func rt_call_response(_ call: rt_call?) -> rt_rest_response? {
    (try? PendingCall.borrow(call))?.answer?.response
}

/// The request's result. After RT_ERROR_TIMEOUT, RT_ERROR_CONNECTION_LOST, RT_ERROR_PROTOCOL and
/// RT_ERROR_DEADLINE the server may have acted on the request. Since 0.1.
/// - Returns: RT_OK for a status of 200 to 299; RT_ERROR_HTTP_STATUS for other statuses. If there
///   was no response, or only a part of one: RT_ERROR_RESOLVE, RT_ERROR_CONNECT, RT_ERROR_TLS,
///   RT_ERROR_PROXY, RT_ERROR_TIMEOUT, RT_ERROR_CONNECTION_LOST, RT_ERROR_PROTOCOL,
///   RT_ERROR_DEADLINE, RT_ERROR_REDIRECT, RT_ERROR_INSECURE_REDIRECT, RT_ERROR_AUTH,
///   RT_ERROR_QUEUE_FULL, RT_ERROR_EXPIRED, RT_ERROR_TOO_LARGE, RT_ERROR_CANCELLED or
///   RT_ERROR_CLOSED.
@_cdecl("rt_rest_response_error")
public func rt_rest_response_error(_ response: rt_rest_response?) -> rt_status {
    view(response, RT_STATUS.ERROR_INVALID_ARGUMENT.rawValue) { $0.error }
}

/// The error as a sentence; "" for RT_OK. Since 0.1.
@_cdecl("rt_rest_response_message")
public func rt_rest_response_message(_ response: rt_rest_response?) -> UnsafePointer<CChar> {
    view(response, RESTView.empty) { $0.message }
}

/// The HTTP status of the last response, or of a proxy's response that refused the tunnel
/// (RT_ERROR_PROXY); nothing else of the latter is available. 0 without a response,
/// RT_ERROR_INVALID_ARGUMENT for NULL. Since 0.1.
@_cdecl("rt_rest_response_status")
public func rt_rest_response_status(_ response: rt_rest_response?) -> Int32 {
    view(response, RT_STATUS.ERROR_INVALID_ARGUMENT.rawValue) { $0.status }
}

/// The reason phrase after the status; "" without one, as in HTTP/2. These are the server's
/// original bytes: usually ASCII, not necessarily UTF-8. Since 0.1.
@_cdecl("rt_rest_response_reason")
public func rt_rest_response_reason(_ response: rt_rest_response?) -> UnsafePointer<CChar> {
    view(response, RESTView.empty) { $0.reason }
}

/// The headers: "Name: value" lines in the order received, each ended by LF. Values are the
/// server's original bytes: usually ASCII, not necessarily UTF-8. Since 0.1.
/// - Parameter out_length: receives the length in bytes; may be NULL.
@_cdecl("rt_rest_response_headers")
public func rt_rest_response_headers(
    _ response: rt_rest_response?, _ out_length: UnsafeMutablePointer<Int>?
) -> UnsafePointer<CChar> {
    out_length?.pointee = 0
    return view(response, RESTView.empty) {
        out_length?.pointee = $0.headersLength
        return $0.headers
    }
}

/// The first value of a header, as the server's original bytes, not necessarily UTF-8; NULL if
/// there is none. Case does not matter in `name`. Since 0.1.
@_cdecl("rt_rest_response_header")
public func rt_rest_response_header(
    _ response: rt_rest_response?, _ name: UnsafePointer<CChar>?
) -> UnsafePointer<CChar>? {
    guard let name = try? text(name, "name") else { return nil }
    return view(response, nil) { $0.header(name) }
}

/// The body, decoded; never NULL. Empty if it was streamed. Since 0.1.
/// - Parameter out_length: receives the length in bytes; may be NULL.
@_cdecl("rt_rest_response_body")
public func rt_rest_response_body(
    _ response: rt_rest_response?, _ out_length: UnsafeMutablePointer<Int>?
) -> UnsafePointer<UInt8> {
    out_length?.pointee = 0
    return view(response, UnsafeRawPointer.ofNothing.assumingMemoryBound(to: UInt8.self)) {
        out_length?.pointee = $0.body.count
        return ($0.body.baseAddress ?? .ofNothing).assumingMemoryBound(to: UInt8.self)
    }
}

/// The URL of the last response, after redirects, without user and password. Since 0.1.
@_cdecl("rt_rest_response_url")
public func rt_rest_response_url(_ response: rt_rest_response?) -> UnsafePointer<CChar> {
    view(response, RESTView.empty) { $0.url }
}

/// The number of attempts made; 0 if the request never began. Since 0.1.
@_cdecl("rt_rest_response_attempts")
public func rt_rest_response_attempts(_ response: rt_rest_response?) -> UInt32 {
    view(response, 0) { UInt32(clamping: $0.outcome.attempts) }
}

/// The Retry-After of the last response in milliseconds, also if the server sent a date; -1 without
/// one. Since 0.1.
@_cdecl("rt_rest_response_retry_after_ms")
public func rt_rest_response_retry_after_ms(_ response: rt_rest_response?) -> Int64 {
    view(response, -1) { $0.retryAfter }
}

/// The HTTP version of the last response: 10, 11, 20 or 30; 0 without a response. Since 0.1.
@_cdecl("rt_rest_response_http_version")
public func rt_rest_response_http_version(_ response: rt_rest_response?) -> Int32 {
    view(response, RT_STATUS.ERROR_INVALID_ARGUMENT.rawValue) { $0.httpVersion }
}

/// The failure in the form that callbacks of other objects receive, with the response's headers and
/// the beginning of its body; NULL for RT_OK. `fatal` is always true. Since 0.1.
@_cdecl("rt_rest_response_failure")
public func rt_rest_response_failure(
    _ response: rt_rest_response?
) -> UnsafePointer<rt_failure>? {
    view(response, nil) { $0.failure }
}

/// The last response and its connection: addresses and TLS version. NULL without a response. Since
/// 0.1.
@_cdecl("rt_rest_response_opened")
public func rt_rest_response_opened(
    _ response: rt_rest_response?
) -> UnsafePointer<rt_opened>? {
    view(response, nil) { $0.opened }
}

private func view<Value>(
    _ response: rt_rest_response?, _ missing: Value, _ body: (RESTView) -> Value
) -> Value {
    guard let view = try? RESTView.borrow(response) else { return missing }
    return body(view)
}
