public import CShims
import Engine
import Session
import Wire

// Chapter: rest request. One request being made: what it is, how it is tried, whom it tells.

/// A request being made. `rt_rest_request_send` takes a copy, so that one may be sent any number of
/// times, changed in between, and freed at once. It keeps its client alive, and belongs to one
/// thread at a time. Since 0.1.
public typealias rt_rest_request = OpaquePointer

/// A request has ended; its last callback. Since 0.1.
public typealias rt_rest_done_fn =
    @convention(c) (_ response: rt_rest_response?, _ user: UnsafeMutableRawPointer?) -> Void

/// Writes the next bytes of a request's body into `buffer`, which has `capacity` bytes, 16,384 at
/// least. Runs on the loop's thread. Since 0.1.
/// - Returns: how many were written; or an `rt_rest_body`.
public typealias rt_rest_source_fn =
    @convention(c) (
        _ buffer: UnsafeMutablePointer<UInt8>?, _ capacity: Int, _ user: UnsafeMutableRawPointer?
    ) -> Int64

/// Has the source begin anew: the request is sent again. Runs on the loop's thread. Since 0.1.
/// - Returns: false when it cannot, which ends the request with RT_ERROR_CANCELLED.
public typealias rt_rest_rewind_fn = @convention(c) (_ user: UnsafeMutableRawPointer?) -> Bool

/// What a source answers instead of a count. Since 0.1.
public typealias rt_rest_body = Int32

/// Values of `rt_rest_body`. Since 0.1.
public enum RT_REST_BODY: Int32 {
    /// The body is whole.
    case END = 0
    /// There will be more: `rt_rest_resume_body` asks again.
    case WAIT = -1
    /// It cannot be had: the request ends with RT_ERROR_CANCELLED.
    case FAIL = -2
}

/// The head of an answer that is streamed: all of `rt_rest_response` but the body. It is the last
/// one; answers that are followed by another attempt are not told. Runs on the loop's thread. Since
/// 0.1.
public typealias rt_rest_head_fn =
    @convention(c) (_ response: rt_rest_response?, _ user: UnsafeMutableRawPointer?) -> Void

/// A piece of a streamed answer, decoded; valid until the callback returns, never NULL. Runs on the
/// loop's thread. Since 0.1.
public typealias rt_rest_body_fn =
    @convention(c) (
        _ data: UnsafePointer<UInt8>?, _ length: Int, _ user: UnsafeMutableRawPointer?
    ) -> Void

/// How far an exchange has come. Runs on the loop's thread. Since 0.1.
public typealias rt_rest_progress_fn =
    @convention(c) (
        _ progress: UnsafePointer<rt_rest_progress>?, _ user: UnsafeMutableRawPointer?
    ) -> Void

/// Makes a request, with the client's options of this moment. Any thread. Since 0.1.
/// - Parameter method: GET, POST and so on; a token of at most 64 bytes, in the case it is sent in.
/// - Parameter path: below the client's base URL, with exactly one slash between; or a whole URL,
///   which the client's credential goes to only where `rt_rest_add_credential_origin` says so.
/// - Parameter out: receives it; to be freed with `rt_rest_request_free`.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT; RT_ERROR_INVALID_URL, also for a path that leads
///   out of the base URL by ".."; RT_ERROR_UNSUPPORTED_SCHEME.
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

/// Gives a request back; what was sent of it goes on. NULL is accepted. Any thread. Since 0.1.
@_cdecl("rt_rest_request_free")
public func rt_rest_request_free(_ request: rt_rest_request?) {
    RESTRequestBuilder.release(request) { _ in }
}

/// Adds a header; with it the client's of that name are not sent. Behind `Expect: 100-continue` the
/// body is sent when the server asks for it, or has said nothing for a second, and stays here when
/// it answers 300 or more instead, which the request ends with. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_HEADER.
@_cdecl("rt_rest_request_add_header")
public func rt_rest_request_add_header(
    _ request: rt_rest_request?, _ name: UnsafePointer<CChar>?, _ value: UnsafePointer<CChar>?
) -> rt_status {
    builder(request) { (request) throws(RealtimeError) in
        try request.addHeader(text(name, "name"), text(value, "value"))
    }
}

/// Sets a header in the place of all of its name. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_HEADER.
@_cdecl("rt_rest_request_set_header")
public func rt_rest_request_set_header(
    _ request: rt_rest_request?, _ name: UnsafePointer<CChar>?, _ value: UnsafePointer<CChar>?
) -> rt_status {
    builder(request) { (request) throws(RealtimeError) in
        try request.setHeader(text(name, "name"), optionalText(value, "value"))
    }
}

/// Takes the request's own headers away; those of the client stay. Since 0.1.
/// - Returns: RT_OK.
@_cdecl("rt_rest_request_clear_headers")
public func rt_rest_request_clear_headers(_ request: rt_rest_request?) -> rt_status {
    builder(request) { $0.clearHeaders() }
}

/// Adds a query parameter behind those of the path; both are percent-encoded. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT; RT_ERROR_INVALID_UTF8.
@_cdecl("rt_rest_request_add_query")
public func rt_rest_request_add_query(
    _ request: rt_rest_request?, _ name: UnsafePointer<CChar>?, _ value: UnsafePointer<CChar>?
) -> rt_status {
    builder(request) { (request) throws(RealtimeError) in
        request.addQuery(try text(name, "name"), try text(value, "value"))
    }
}

/// Sets the body, which is copied. Since 0.1.
/// - Parameter data: `length` bytes; may be NULL when `length` is 0.
/// - Parameter content_type: sets the Content-Type header; NULL leaves it as it is.
/// - Returns: RT_OK; RT_ERROR_TOO_LARGE; RT_ERROR_INVALID_HEADER.
@_cdecl("rt_rest_request_set_body")
public func rt_rest_request_set_body(
    _ request: rt_rest_request?, _ data: UnsafePointer<UInt8>?, _ length: Int,
    _ content_type: UnsafePointer<CChar>?
) -> rt_status {
    builder(request) { (request) throws(RealtimeError) in
        try request.setBody(
            Array(bytes(data, length, "data")),
            type: optionalText(content_type, "content_type"))
    }
}

/// Has the body written by `fn` while it is sent. One request at a time takes it: when this one is
/// sent again, `rewind` is called first. Since 0.1.
/// - Parameter length: of the body in bytes, which ends the request with RT_ERROR_INVALID_ARGUMENT
///   when it has more or less; -1 when it is not known, and then it is sent in chunks (RFC 9112
///   §7.1).
/// - Parameter rewind: NULL when the source cannot begin anew: then a request that has begun to
///   send its body is not tried again, and `rt_rest_request_send` works once.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT without `fn` or for another length.
@_cdecl("rt_rest_request_set_body_source")
public func rt_rest_request_set_body_source(
    _ request: rt_rest_request?, _ length: Int64, _ fn: rt_rest_source_fn?,
    _ rewind: rt_rest_rewind_fn?, _ user: UnsafeMutableRawPointer?, _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return builder(request) { (request) throws(RealtimeError) in
        guard length >= -1 else {
            throw RealtimeError(
                .invalidArgument, "length is \(length), 0 or more is expected, or -1")
        }
        _ = try required(fn, "fn")
        request.setSource(box, rewind, length: length < 0 ? nil : Int(length))
    }
}

/// Sets the callback for the head of a streamed answer; without `rt_rest_request_on_body` it comes
/// before the whole answer is there. NULL takes it away. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for no request.
@_cdecl("rt_rest_request_on_head")
public func rt_rest_request_on_head(
    _ request: rt_rest_request?, _ fn: rt_rest_head_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return builder(request) { $0.setHead(box) }
}

/// Streams the answer: its pieces go to `fn` as they come, and the body of the terminal callback is
/// empty. An answer that has begun to come is the last: when it breaks off there is no other
/// attempt. It may take as long as bytes flow: the attempt timeout limits the time without one, and
/// only `rt_rest_request_set_deadline_ms` the whole. A request that is ordered, as a POST is, keeps
/// those behind it waiting until its answer has ended: RT_REST_ORDER_NEVER does not. NULL keeps the
/// answer whole. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for no request.
@_cdecl("rt_rest_request_on_body")
public func rt_rest_request_on_body(
    _ request: rt_rest_request?, _ fn: rt_rest_body_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return builder(request) { $0.setPieces(box) }
}

/// Sets the callback for progress. NULL takes it away. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for no request.
@_cdecl("rt_rest_request_on_progress")
public func rt_rest_request_on_progress(
    _ request: rt_rest_request?, _ fn: rt_rest_progress_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return builder(request) { $0.setProgress(box) }
}

/// Sends the request. Any thread. `fn` is called exactly once, never inside this call, on the
/// loop's thread: with the answer, a failure, RT_ERROR_CANCELLED or RT_ERROR_CLOSED. Since 0.1.
/// - Parameter fn: NULL when nobody wants to know.
/// - Parameter out_id: receives a number for `rt_rest_cancel`; may be NULL.
/// - Returns: RT_OK; RT_ERROR_CLOSED after close or on a freed loop; RT_ERROR_INVALID_URL for a
///   query that does not fit; RT_ERROR_INVALID_ARGUMENT for a HEAD request with a body;
///   RT_ERROR_STATE when the source of its body belongs to a request that has not ended, or was
///   used and has no `rewind`; RT_ERROR_FORKED. What fails later, a full queue too, comes to `fn`.
@_cdecl("rt_rest_request_send")
public func rt_rest_request_send(
    _ request: rt_rest_request?, _ fn: rt_rest_done_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?, _ out_id: UnsafeMutablePointer<UInt64>?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return builder(request) { (request) throws(RealtimeError) in
        let id = try request.send(to: box)
        out_id?.pointee = id
    }
}

/// Runs a change of a request's options.
func restRequestOptions(
    _ request: rt_rest_request?, _ body: (inout RESTPolicy) throws(RealtimeError) -> Void
) -> rt_status {
    builder(request) { (request) throws(RealtimeError) in try body(&request.policy) }
}

private func builder(
    _ request: rt_rest_request?, _ body: (RESTRequestBuilder) throws(RealtimeError) -> Void
) -> rt_status {
    border { () throws(RealtimeError) in try body(RESTRequestBuilder.borrow(request)) }
}
