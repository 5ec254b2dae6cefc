internal import Engine
internal import Session
import Synchronization
public import Wire

/// A client for HTTP requests that are retried, wait for the network and keep their order.
///
///     let rest = try REST("https://example.org/api")
///     let user = try await rest.get("users/1").text
///     try await rest.post("events", body: .json(#"{"kind":"seen"}"#))
///
/// A 2xx response is returned; everything else is thrown as a `REST.Failure`, which contains the
/// response if there was one. A request is retried when that is safe: after an error that occurred
/// before it was sent, and after 408, 429 and 503. A request whose method is idempotent, or that
/// has an Idempotency-Key, is also retried after a lost connection, a timeout, 425, 500, 502, 504,
/// and Cloudflare's 520 to 524 and 530.
///
/// Cancelling the waiting task cancels the request. Releasing the last reference closes the client.
/// All members may be used on any thread.
public final class REST: Sendable {
    /// The response to a request. Its body is decoded on demand.
    public struct Response: Sendable {
        public let status: Int
        /// The server's reason phrase; "" without one, as in HTTP/2.
        public let reason: String
        /// The headers in the order received.
        public let headers: [HTTPResponse.Header]
        /// The body; empty if it is streamed.
        public let body: [UInt8]
        /// The URL of the response, after redirects, without user and password.
        public let url: String
        /// The number of attempts made.
        public let attempts: Int
        /// The response's Retry-After.
        public let retryAfter: Duration?
        /// The HTTP version: 10, 11, 20 or 30.
        public let httpVersion: Int
        /// The same response without its body, and its connection: addresses and TLS.
        public let opened: Opened?
        /// Host and port of the proxy, if the proxy responded instead of the server; nil otherwise.
        public let proxy: String?

        /// The body as text, with U+FFFD in place of ill-formed parts.
        public var text: String { String(decoding: body, as: UTF8.self) }

        /// The first value of a header. Case does not matter in `name`.
        public func header(_ name: String) -> String? {
            headers.first { $0.name.equalsIgnoringASCIICase(name) }?.value
        }
    }

    /// The failure of a request that got no 2xx response.
    public struct Failure: Error, Sendable, CustomStringConvertible {
        /// `.httpStatus` for a `response` with another status; otherwise the reason why there is
        /// none.
        public let code: RealtimeError.Code
        /// A sentence that names the cause, without credentials.
        public let message: String
        public let response: Response?
        /// With `.proxy`, the status with which the proxy refused the tunnel; nil otherwise.
        public let proxyStatus: Int?
        /// The number of attempts made; 0 if the request never began.
        public let attempts: Int

        public var description: String { "\(message) (\(code))" }
    }

    /// Identifies a request that was sent with a callback.
    public struct ID: Hashable, Sendable {
        let number: UInt64
    }

    /// Or why there can be none.
    let client: Result<RESTClient, RealtimeError>
    /// Retained, because a loop ends, with everything on it, when its last reference is released.
    private let loop: Loop
    let queues: HandlerQueues

    /// - Parameter baseURL: the URL to which paths are appended, `http://` or `https://` without a
    ///   query; nil if all requests have absolute URLs.
    /// - Throws: `RealtimeError` for an invalid URL or option.
    public init(
        _ baseURL: String? = nil, options: Options = Options(), on loop: Loop = .shared
    ) throws {
        let client = try RESTClient(base: baseURL, on: loop.engine)
        self.client = .success(client)
        self.loop = loop
        queues = HandlerQueues(on: options.executor, loop: loop.engine)
        try options.apply(to: client)
    }

    /// Wraps an existing client, or fails all requests with this error.
    init(_ client: Result<RESTClient, RealtimeError>, on loop: Loop, executor: HandlerExecutor) {
        self.client = client
        self.loop = loop
        queues = HandlerQueues(on: executor, loop: loop.engine)
    }

    deinit { close() }

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

    /// Sends a request and waits for its response.
    /// - Throws: `RealtimeError` for a request that cannot be sent, `Failure` for all but 2xx,
    ///   `CancellationError`.
    @discardableResult
    public func send(_ request: Request) async throws -> Response {
        let builder = try request.builder(client.get(), queues)
        let number = Mutex<UInt64?>(nil)
        do {
            return try await withTaskCancellationHandler {
                try Task.checkCancellation()
                return try await withCheckedThrowingContinuation { continuation in
                    builder.handlers.done = { continuation.resume(with: REST.result($0)) }
                    do {
                        builder.addNumberHandler { sent in number.withLock { $0 = sent } }
                        try builder.send()
                    } catch {
                        builder.handlers.done = nil
                        continuation.resume(throwing: error)
                    }
                    // The task may have been cancelled before the request had a number.
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
        if let number = number.withLock({ $0 }) { try? client.get().cancel(number) }
    }

    /// Sends a request.
    /// - Parameter done: called once, never inside this call, on the main actor or where
    ///   `Options.executor` says; one that is isolated to an actor runs there.
    @discardableResult
    public func send(
        _ request: Request,
        @_inheritActorContext done:
            @escaping @Sendable @isolated(any) (Result<Response, Failure>) -> Void
    ) throws -> ID {
        let done = Handler(escaping: done)
        // Retained until it has run, because the client may be released before.
        return try sendOnLoop(request) { [queues] result in
            _ = queues.run(on: done.isolation, isOwed: true) { done.call(result) }
        }
    }

    /// Sends a request.
    /// - Parameter done: called on the loop's thread.
    @discardableResult
    func sendOnLoop(
        _ request: Request, done: @escaping @Sendable (Result<Response, Failure>) -> Void
    ) throws -> ID {
        let builder = try request.builder(client.get(), queues)
        builder.handlers.done = { done(REST.result($0)) }
        return ID(number: try builder.send())
    }

    /// Cancels a request that was sent with a callback, which receives `.cancelled`. Has no effect
    /// on a request that has ended.
    public func cancel(_ id: ID) throws(RealtimeError) { try client.get().cancel(id.number) }

    // MARK: State

    /// Sets an Authorization header with a bearer token (RFC 6750) for all requests without one of
    /// their own, from their next exchange on; nil removes it.
    public func setBearerToken(_ token: String?) throws(RealtimeError) {
        var value: String?
        if let token { value = try HeaderField.bearerAuthorization(token) }
        try client.get().setCredential(value)
    }

    /// Sets a basic Authorization header (RFC 7617) for the same requests.
    public func setBasicAuthorization(
        user: String, password: String
    ) throws(RealtimeError) {
        try client.get().setCredential(
            HeaderField.basicAuthorization(user: user, password: password))
    }

    /// Ends all requests with `.closed`.
    public func close() { (try? client.get())?.close() }

    // MARK: What came

    static func result(_ result: RESTResult) -> Result<Response, Failure> {
        let outcome = result.outcome
        let response = outcome.head.map {
            Response(
                $0, outcome.url, body: result.body.copy, attempts: outcome.attempts,
                retryAfter: outcome.retryAfter, httpVersion: result.httpVersion,
                opened: result.connection?.value)
        }
        if let response, outcome.error == nil { return .success(response) }
        return .failure(
            Failure(
                code: outcome.error?.code ?? .connectionLost,
                message: outcome.error?.message ?? "no response came", response: response,
                proxyStatus: outcome.error?.proxyStatus, attempts: outcome.attempts))
    }

    /// The error for a cancelled task: `CancellationError`.
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
