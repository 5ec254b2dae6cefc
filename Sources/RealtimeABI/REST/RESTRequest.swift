public import CShims
import Engine
import Session
import Wire

// Chapter: rest request. A request under construction: its content, options and callbacks.
//
//     rt_rest *rest;
//     rt_rest_request *request;
//     rt_rest_new(NULL, "https://example.org", &rest);
//     rt_rest_request_new(rest, "GET", "/items", &request);
//     rt_rest_request_add_header(request, "Accept", "application/json");
//     rt_rest_request_add_query(request, "page", "2");
//     rt_rest_request_send(request, NULL, NULL, NULL, NULL, NULL);
//     rt_rest_request_free(request);  // the request that was sent continues
//     rt_rest_free(rest);

/// A request under construction. `rt_rest_request_send` copies it, so it may be sent any number of
/// times, changed in between, and freed right after. It keeps its client alive. Only one thread at
/// a time may use it. Since 0.1.
public typealias rt_rest_request = OpaquePointer

/// Receives the result of a request. It is the request's last callback. Since 0.1.
public typealias rt_rest_done_fn =
    @convention(c) (_ response: rt_rest_response?, _ user: UnsafeMutableRawPointer?) -> Void

/// Writes the next bytes of a request's body into `buffer`. `capacity` is at least 16,384. Runs on
/// the loop's thread. Since 0.1.
/// - Returns: the number of bytes written, or an `rt_rest_body`.
public typealias rt_rest_source_fn =
    @convention(c) (
        _ buffer: UnsafeMutablePointer<UInt8>?, _ capacity: Int, _ user: UnsafeMutableRawPointer?
    ) -> Int64

/// Restarts the body source from the beginning, because the request is sent again. Runs on the
/// loop's thread. Since 0.1.
/// - Returns: false if it cannot, which ends the request with RT_ERROR_CANCELLED.
public typealias rt_rest_rewind_fn = @convention(c) (_ user: UnsafeMutableRawPointer?) -> Bool

/// What a body source returns instead of a count. Since 0.1.
public typealias rt_rest_body = Int32

/// Values of `rt_rest_body`. Since 0.1.
public enum RT_REST_BODY: Int32 {
    /// The body is complete.
    case END = 0
    /// No bytes are ready yet; `rt_rest_resume_body` calls the source again.
    case WAIT = -1
    /// The source failed: the request ends with RT_ERROR_CANCELLED.
    case FAIL = -2
}

/// Receives the head of a response: everything in `rt_rest_response` but the body. It is called for
/// the last response only, not for those that are retried. Runs on the loop's thread. Since 0.1.
public typealias rt_rest_head_fn =
    @convention(c) (_ response: rt_rest_response?, _ user: UnsafeMutableRawPointer?) -> Void

/// Receives a decoded piece of a streamed response. `data` is never NULL, and valid until the
/// callback returns. Runs on the loop's thread. Since 0.1.
public typealias rt_rest_body_fn =
    @convention(c) (
        _ data: UnsafePointer<UInt8>?, _ length: Int, _ user: UnsafeMutableRawPointer?
    ) -> Void

/// Receives the progress of an exchange. Runs on the loop's thread. Since 0.1.
public typealias rt_rest_progress_fn =
    @convention(c) (
        _ progress: UnsafePointer<rt_rest_progress>?, _ user: UnsafeMutableRawPointer?
    ) -> Void

/// Creates a request with the client's current options. Any thread. Since 0.1.
/// - Parameter method: GET, POST and so on: a token of at most 64 bytes, sent in the case given.
/// - Parameter path: appended to the base URL with exactly one slash between; or an absolute URL,
///   which receives the client's credential only if `rt_rest_add_credential_origin` allows it.
/// - Parameter out: receives the request; free it with `rt_rest_request_free`.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT; RT_ERROR_INVALID_URL, also for a path that leaves
///   the base URL by ".."; RT_ERROR_UNSUPPORTED_SCHEME.
@_cdecl("rt_rest_request_new")
public func rt_rest_request_new(
    _ rest: rt_rest?, _ method: UnsafePointer<CChar>?, _ path: UnsafePointer<CChar>?,
    _ out: UnsafeMutablePointer<rt_rest_request?>?
) -> rt_status {
    border { () throws(RealtimeError) in
        let client = try RESTClient.borrow(rest)
        let method = try text(method, "method")
        let path = try text(path, "path")
        let out = try required(out, "out")
        out.pointee = RESTRequestBuilder.export(try RESTRequestBuilder(client, method, path))
    }
}

/// Frees a request. Copies that were sent continue. NULL is accepted. Any thread. Since 0.1.
@_cdecl("rt_rest_request_free")
public func rt_rest_request_free(_ request: rt_rest_request?) {
    RESTRequestBuilder.release(request) { _ in }
}

/// Changes the method and the URL, for a request that a callback receives
/// (`rt_pusher_on_prepare_authorization`). Query parameters that were added are removed. Since 0.1.
/// - Parameter method: and path, as in `rt_rest_request_new`.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT; RT_ERROR_INVALID_URL; RT_ERROR_UNSUPPORTED_SCHEME.
@_cdecl("rt_rest_request_set_target")
public func rt_rest_request_set_target(
    _ request: rt_rest_request?, _ method: UnsafePointer<CChar>?, _ path: UnsafePointer<CChar>?
) -> rt_status {
    restRequestCall(request) { (request) throws(RealtimeError) in
        try request.setTarget(text(method, "method"), text(path, "path"))
    }
}

/// Adds a header. The client's headers of that name are then not sent. With `Expect: 100-continue`,
/// the body is sent once the server asks for it or has been silent for a second; if the server
/// responds with 300 or more instead, the body is not sent and the request ends with that response.
/// Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_HEADER.
@_cdecl("rt_rest_request_add_header")
public func rt_rest_request_add_header(
    _ request: rt_rest_request?, _ name: UnsafePointer<CChar>?, _ value: UnsafePointer<CChar>?
) -> rt_status {
    restRequestCall(request) { (request) throws(RealtimeError) in
        try request.addHeader(text(name, "name"), text(value, "value"))
    }
}

/// Sets a header, replacing all of that name; NULL removes them. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_HEADER.
@_cdecl("rt_rest_request_set_header")
public func rt_rest_request_set_header(
    _ request: rt_rest_request?, _ name: UnsafePointer<CChar>?, _ value: UnsafePointer<CChar>?
) -> rt_status {
    restRequestCall(request) { (request) throws(RealtimeError) in
        try request.setHeader(text(name, "name"), optionalText(value, "value"))
    }
}

/// Removes the request's own headers; the client's stay. Since 0.1.
/// - Returns: RT_OK.
@_cdecl("rt_rest_request_clear_headers")
public func rt_rest_request_clear_headers(_ request: rt_rest_request?) -> rt_status {
    restRequestCall(request) { $0.clearHeaders() }
}

/// Adds a query parameter after those of the path. Name and value are percent-encoded. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT; RT_ERROR_INVALID_UTF8.
@_cdecl("rt_rest_request_add_query")
public func rt_rest_request_add_query(
    _ request: rt_rest_request?, _ name: UnsafePointer<CChar>?, _ value: UnsafePointer<CChar>?
) -> rt_status {
    restRequestCall(request) { (request) throws(RealtimeError) in
        request.addQuery(try text(name, "name"), try text(value, "value"))
    }
}

/// Adds a parameter to the body, a form (application/x-www-form-urlencoded), after those it has. A
/// request without a body gets one. Name and value are percent-encoded. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_STATE if the request has a body of another type;
///   RT_ERROR_INVALID_ARGUMENT; RT_ERROR_INVALID_UTF8.
@_cdecl("rt_rest_request_add_form_parameter")
public func rt_rest_request_add_form_parameter(
    _ request: rt_rest_request?, _ name: UnsafePointer<CChar>?, _ value: UnsafePointer<CChar>?
) -> rt_status {
    restRequestCall(request) { (request) throws(RealtimeError) in
        try request.addFormParameter(text(name, "name"), text(value, "value"))
    }
}

/// Sets the body, which is copied. Since 0.1.
/// - Parameter data: `length` bytes; may be NULL if `length` is 0.
/// - Parameter content_type: sets the Content-Type header; NULL does not change it.
/// - Returns: RT_OK; RT_ERROR_TOO_LARGE; RT_ERROR_INVALID_HEADER.
@_cdecl("rt_rest_request_set_body")
public func rt_rest_request_set_body(
    _ request: rt_rest_request?, _ data: UnsafePointer<UInt8>?, _ length: Int,
    _ content_type: UnsafePointer<CChar>?
) -> rt_status {
    restRequestCall(request) { (request) throws(RealtimeError) in
        try request.setBody(
            Array(bytes(data, length, "data")),
            type: optionalText(content_type, "content_type"))
    }
}

/// Sets a source that writes the body while it is sent. One request at a time can use a source.
/// Before the request is sent again, `rewind` is called. Since 0.1.
/// - Parameter length: the body's length in bytes; if the source writes more or fewer, the request
///   ends with RT_ERROR_INVALID_ARGUMENT. -1 if the length is not known; the body is then sent in
///   chunks (RFC 9112 §7.1).
/// - Parameter rewind: NULL if the source cannot restart. Then the request is not retried once its
///   body has begun, and `rt_rest_request_send` works only once.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT without `fn` or for an invalid length.
@_cdecl("rt_rest_request_set_body_source")
public func rt_rest_request_set_body_source(
    _ request: rt_rest_request?, _ length: Int64, _ fn: rt_rest_source_fn?,
    _ rewind: rt_rest_rewind_fn?, _ user: UnsafeMutableRawPointer?, _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return restRequestCall(request) { (request) throws(RealtimeError) in
        guard length >= -1 else {
            throw RealtimeError(
                .invalidArgument, "length is \(length), 0 or more is expected, or -1")
        }
        _ = try required(fn, "fn")
        request.setSource(box, rewind, length: length < 0 ? nil : Int(length))
    }
}

/// - Callbacks: rest_request, restRequestCall
extension RESTRequestBuilder {
    /// Sets the callback for the response's head. Without `rt_rest_request_on_body` it is called
    /// too, before the whole response has arrived. NULL removes it. Since 0.1.
    func onHead(_ box: CallbackBox<rt_rest_head_fn>) {
        changeHandlers {
            $0.head = box.function.map { function in
                { head in
                    let result = RESTResult(
                        outcome: head.outcome, body: .empty, httpVersion: head.httpVersion,
                        connection: head.connection)
                    RESTView.show(result) { function($0, box.user) }
                }
            }
        }
    }

    /// Streams the response: its pieces are passed to `fn` as they arrive, and the body in the
    /// terminal callback is empty. Once the response has begun, the request is not retried if it
    /// breaks off. It may take as long as bytes arrive: the attempt timeout limits the time without
    /// a byte, and only `rt_rest_request_set_deadline_ms` limits the whole. An ordered request,
    /// such as a POST, makes later ordered requests wait until its response has ended, unless
    /// RT_REST_ORDER_NEVER is set. NULL keeps the response whole. Since 0.1.
    func onBody(_ box: CallbackBox<rt_rest_body_fn>) {
        changeHandlers {
            $0.body = box.function.map { function in
                { bytes in
                    let base = (bytes.baseAddress ?? .ofNothing).assumingMemoryBound(to: UInt8.self)
                    function(base, bytes.count, box.user)
                }
            }
        }
    }

    /// Sets the callback for progress. NULL removes it. Since 0.1.
    func onProgress(_ box: CallbackBox<rt_rest_progress_fn>) {
        changeHandlers {
            $0.progress = box.function.map { function in
                { progress in
                    var view = rt_rest_progress(
                        struct_bytes: MemoryLayout<rt_rest_progress>.size, sent: progress.sent,
                        to_send: progress.toSend, received: progress.received,
                        to_receive: progress.toReceive)
                    function(&view, box.user)
                }
            }
        }
    }

    /// Sets a callback for each attempt that has failed and is followed by another: `retry_in_ms`
    /// is the delay before that, `attempt` its number, from 2, and `http_status` and `headers` are
    /// those of the response that refused the last one, if there was one; its body is not kept.
    /// Also called once each time that the request begins to wait for a network: `retry_in_ms` is
    /// then -1. Runs on the loop's thread. NULL removes it. Since 0.1.
    func onRetry(_ box: CallbackBox<rt_failure_fn>) {
        changeHandlers {
            $0.retry = box.function.map { function in
                { retry in
                    let failure = FailureView(
                        error: retry.cause, httpStatus: retry.cause.response?.status ?? 0,
                        retryIn: retry.delay, attempt: retry.attempt)
                    failure.show { function($0, box.user) }
                }
            }
        }
    }
}

/// Sends the request. `fn` is called exactly once, on the loop's thread, never inside this call:
/// with the response, a failure, RT_ERROR_CANCELLED or RT_ERROR_CLOSED. Any thread. Since 0.1.
/// - Parameter fn: NULL if the result does not matter.
/// - Parameter out_id: receives the id for `rt_rest_cancel`; may be NULL.
/// - Parameter out_call: receives the call, for `rt_call_wait` and `rt_call_response`; free it with
///   `rt_call_free`. NULL if no thread waits.
/// - Returns: RT_OK; RT_ERROR_CLOSED after close or on a freed loop; RT_ERROR_INVALID_URL for a
///   query that does not fit; RT_ERROR_INVALID_ARGUMENT for a HEAD request with a body;
///   RT_ERROR_STATE if its body source belongs to an unfinished request, or was used and has no
///   `rewind`; RT_ERROR_FORKED. Later failures, such as a full queue, are reported to `fn`.
@_cdecl("rt_rest_request_send")
public func rt_rest_request_send(
    _ request: rt_rest_request?, _ fn: rt_rest_done_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?, _ out_id: UnsafeMutablePointer<UInt64>?,
    _ out_call: UnsafeMutablePointer<rt_call?>?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return restRequestCall(request) { (request) throws(RealtimeError) in
        let pending = PendingCall.wanted(out_call, on: request.client.loop)
        let id = try request.send(to: box, pending?.answerer)
        out_id?.pointee = id
        pending?.export(to: out_call)
    }
}

/// Changes a request's options.
func restRequestOptions(
    _ request: rt_rest_request?, _ body: (inout RESTPolicy) throws(RealtimeError) -> Void
) -> rt_status {
    restRequestCall(request) { (request) throws(RealtimeError) in try body(&request.policy) }
}

/// Runs a call on a request under construction.
func restRequestCall(
    _ request: rt_rest_request?, _ body: (RESTRequestBuilder) throws(RealtimeError) -> Void
) -> rt_status {
    border { () throws(RealtimeError) in try body(RESTRequestBuilder.borrow(request)) }
}
