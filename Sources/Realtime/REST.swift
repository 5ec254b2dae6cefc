internal import Engine
internal import Session
import Synchronization
public import Wire

/// A client for HTTP requests that are tried again, wait for the network and keep their order.
///
///     let rest = try REST("https://example.org/api")
///     let user = try await rest.get("users/1").text
///     try await rest.post("events", body: .json(#"{"kind":"seen"}"#))
///
/// An answer of 2xx is returned, everything else thrown as a `REST.Failure`, which has the answer
/// when there was one. A request is tried again when that is safe: after an error from before it
/// was sent, after 408, 429 and 503, and, if its method is idempotent or it has an Idempotency-Key,
/// after a connection that broke, a time that ran out, 425, 500, 502 and 504. Cancelling the task
/// that waits cancels the request. The last reference gone closes the client. All members may be
/// used on any thread.
public final class REST: Sendable {
    /// The answer to a request; its body is decoded when it is asked.
    public struct Response: Sendable {
        public let status: Int
        /// As the server put it, "" without: HTTP/2 has none.
        public let reason: String
        /// In the order of the wire.
        public let headers: [HTTPResponse.Header]
        /// Empty when it is streamed.
        public let body: [UInt8]
        /// Where it came from, after redirects, without user and password.
        public let url: String
        /// How often the request was tried.
        public let attempts: Int
        /// What its Retry-After asks for.
        public let retryAfter: Duration?
        /// 10, 11, 20 or 30.
        public let httpVersion: Int
        /// The same answer without its body, and by which connection it came: addresses and TLS.
        public let opened: Opened?
        /// Host and port of the proxy that answered in the server's place; nil for the server.
        public let proxy: String?

        /// The body as text; what is ill-formed is replaced by U+FFFD.
        public var text: String { String(decoding: body, as: UTF8.self) }

        /// The first value of a header, whose name may be in any case.
        public func header(_ name: String) -> String? {
            headers.first { $0.name.equalsIgnoringASCIICase(name) }?.value
        }
    }

    /// What came instead of an answer of 2xx.
    public struct Failure: Error, Sendable, CustomStringConvertible {
        /// `.httpStatus` for an answer of another status, which `response` is; otherwise why there
        /// is none.
        public let code: RealtimeError.Code
        /// A sentence that names the culprit, never a credential.
        public let message: String
        public let response: Response?
        /// With `.proxy`, the status by which the proxy refused a tunnel; nil without.
        public let proxyStatus: Int?
        /// 0 when it never began.
        public let attempts: Int

        public var description: String { "\(message) (\(code))" }
    }

    /// Names a request that was sent with a callback.
    public struct ID: Hashable, Sendable {
        let number: UInt64
    }

    let client: RESTClient
    /// Held, since the last reference to a loop ends it and all that is on it.
    private let loop: Loop

    /// - Parameter baseURL: what paths are resolved against, `http://` or `https://` without a
    ///   query; nil when all requests name whole URLs.
    /// - Throws: `RealtimeError` for a bad URL or option.
    public init(
        _ baseURL: String? = nil, options: Options = Options(), on loop: Loop = .shared
    ) throws {
        client = try RESTClient(base: baseURL, on: loop.engine)
        self.loop = loop
        try options.apply(to: client)
    }

    /// With a client that is made already.
    init(_ client: RESTClient, on loop: Loop) {
        self.client = client
        self.loop = loop
    }

    deinit { client.close() }

    // MARK: Requests

    public func get(
        _ path: String, query: [(name: String, value: String)] = [],
        headers: [(name: String, value: String)] = []
    ) async throws -> Response {
        try await send(Request("GET", path, query: query, headers: headers))
    }

    public func head(
        _ path: String, query: [(name: String, value: String)] = [],
        headers: [(name: String, value: String)] = []
    ) async throws -> Response {
        try await send(Request("HEAD", path, query: query, headers: headers))
    }

    @discardableResult
    public func post(
        _ path: String, body: Request.Body = .none, query: [(name: String, value: String)] = [],
        headers: [(name: String, value: String)] = []
    ) async throws -> Response {
        try await send(Request("POST", path, body: body, query: query, headers: headers))
    }

    @discardableResult
    public func put(
        _ path: String, body: Request.Body = .none, query: [(name: String, value: String)] = [],
        headers: [(name: String, value: String)] = []
    ) async throws -> Response {
        try await send(Request("PUT", path, body: body, query: query, headers: headers))
    }

    @discardableResult
    public func patch(
        _ path: String, body: Request.Body = .none, query: [(name: String, value: String)] = [],
        headers: [(name: String, value: String)] = []
    ) async throws -> Response {
        try await send(Request("PATCH", path, body: body, query: query, headers: headers))
    }

    @discardableResult
    public func delete(
        _ path: String, query: [(name: String, value: String)] = [],
        headers: [(name: String, value: String)] = []
    ) async throws -> Response {
        try await send(Request("DELETE", path, query: query, headers: headers))
    }

    /// Sends a request and waits for its answer.
    /// - Throws: `RealtimeError` for a request that cannot be sent, `Failure` for all but 2xx,
    ///   `CancellationError`.
    @discardableResult
    public func send(_ request: Request) async throws -> Response {
        let builder = try request.builder(client)
        let number = Mutex<UInt64?>(nil)
        do {
            return try await withTaskCancellationHandler {
                try Task.checkCancellation()
                return try await withCheckedThrowingContinuation { continuation in
                    builder.handlers.done = { continuation.resume(with: REST.result($0)) }
                    do {
                        try builder.send { sent in number.withLock { $0 = sent } }
                    } catch {
                        builder.handlers.done = nil
                        continuation.resume(throwing: error)
                    }
                    // It may have been cancelled before there was a number to cancel.
                    if Task.isCancelled { cancel(number) }
                }
            } onCancel: {
                cancel(number)
            }
        } catch {
            throw REST.thrown(error)
        }
    }

    private func cancel(_ number: borrowing Mutex<UInt64?>) {
        if let number = number.withLock({ $0 }) { try? client.cancel(number) }
    }

    /// Sends a request; `done` is called once, on the loop's thread and never inside this call.
    @discardableResult
    public func send(
        _ request: Request, done: @escaping @Sendable (Result<Response, Failure>) -> Void
    ) throws -> ID {
        let builder = try request.builder(client)
        builder.handlers.done = { done(REST.result($0)) }
        return ID(number: try builder.send())
    }

    /// Ends a request that was sent with a callback, which is called with `.cancelled`. One that
    /// has ended is left alone.
    public func cancel(_ id: ID) throws(RealtimeError) { try client.cancel(id.number) }

    // MARK: State

    /// An Authorization header with a bearer token (RFC 6750) for all requests that have none of
    /// their own, from their next exchange on; nil for none.
    public func setBearerToken(_ token: String?) throws(RealtimeError) {
        var value: String?
        if let token { value = try HeaderField.bearerAuthorization(token) }
        try client.setCredential(value)
    }

    /// A basic Authorization header (RFC 7617), likewise.
    public func setBasicAuthorization(
        user: String, password: String
    ) throws(RealtimeError) {
        try client.setCredential(HeaderField.basicAuthorization(user: user, password: password))
    }

    /// Ends all requests with `.closed`.
    public func close() { client.close() }

    // MARK: What came

    static func result(_ result: RESTResult) -> Result<Response, Failure> {
        let outcome = result.outcome
        let response = outcome.head.map {
            Response(
                $0, outcome.url, body: Array(result.body.bytes), attempts: outcome.attempts,
                retryAfter: outcome.retryAfter, httpVersion: result.httpVersion,
                opened: result.connection?.value)
        }
        if let response, outcome.error == nil { return .success(response) }
        return .failure(
            Failure(
                code: outcome.error?.code ?? .connectionLost,
                message: outcome.error?.message ?? "no answer came", response: response,
                proxyStatus: outcome.error?.proxyStatus, attempts: outcome.attempts))
    }

    /// What a task that was cancelled is used to; in that task.
    static func thrown(_ error: any Error) -> any Error {
        guard Task.isCancelled, (error as? Failure)?.code == .cancelled else { return error }
        return CancellationError()
    }
}

extension REST.Response {
    init(
        _ head: ResponseHead, _ url: HTTPURL, body: [UInt8], attempts: Int,
        retryAfter: Duration?, httpVersion: Int, opened: Opened?
    ) {
        let response = HTTPResponse(head, body: [])
        status = response.status
        reason = response.reason
        headers = response.headers
        self.body = body
        self.url = url.text
        self.attempts = attempts
        self.retryAfter = retryAfter
        self.httpVersion = httpVersion
        var opened = opened
        opened?.response = response
        self.opened = opened
        proxy = response.proxy
    }
}
