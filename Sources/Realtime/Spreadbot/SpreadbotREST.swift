internal import Engine
public import Wire

/// Requests below a base URL with access tokens, which are not sent to other origins, and which are
/// refreshed when the server refuses them.
///
///     let config = ["baseURL": "https://example.org", "accessToken": token]
///     let rest = SpreadbotREST(config: config)
///     rest.getData(path: "users/1", onSuccess: { print($0.json ?? "") }, onError: { print($0) })
///     let response = try await rest.postData(path: "users", payload: .json(#"{"name": "Ada"}"#))
///
/// A request is tried up to three times; a POST has the same Idempotency-Key in all attempts.
/// Without a network up to 100 requests wait. Handlers run one at a time, on the main actor unless
/// `Configuration.executor` names another place. Releasing the last reference ends all requests.
/// All members may be used on any thread.
public final class SpreadbotREST: Sendable {
    /// Receives a 2xx response.
    public typealias Success = @Sendable @isolated(any) (REST.Response) -> Void
    /// Receives the failure of a request that got no 2xx response.
    public typealias Failure = @Sendable @isolated(any) (REST.Failure) -> Void

    /// A client for requests of any kind, with the same tokens.
    public let client: REST
    /// The connection that owns the tokens.
    private let owner: SpreadbotConnection
    private let ownsConnection: Bool
    /// Queued handler calls; also retained by the handlers of unfinished requests.
    private let queues: HandlerQueues
    /// Why the configuration cannot be used; nil if it can.
    public let configurationError: RealtimeError?

    /// - Throws: `RealtimeError` for an invalid URL or option.
    public convenience init(config: Spreadbot.Configuration, on loop: Loop = .shared) throws {
        let owner = try config.connection(on: loop)
        self.init(owner, .success(try owner.makeClient()), config.executor, on: loop)
    }

    /// Creates a client from a dictionary; see `Spreadbot.Configuration.init(_:)` for its keys. If
    /// it cannot be used, `configurationError` says why, and all requests fail with that.
    public convenience init(config: [String: any Sendable], on loop: Loop = .shared) {
        do throws(RealtimeError) {
            let config = try Spreadbot.Configuration(config)
            let owner = try config.connection(on: loop)
            self.init(owner, .success(try owner.makeClient()), config.executor, on: loop)
        } catch {
            self.init(
                SpreadbotConnection(unusableOn: loop.engine), .failure(error), .main, on: loop)
        }
    }

    private init(
        _ owner: SpreadbotConnection, _ client: Result<RESTClient, RealtimeError>,
        _ executor: HandlerExecutor, on loop: Loop
    ) {
        self.owner = owner
        ownsConnection = true
        queues = HandlerQueues(on: executor)
        self.client = REST(client, on: loop, executor: executor)
        configurationError = if case .failure(let error) = client { error } else { nil }
    }

    /// Creates a client that shares the tokens of a connection; a refresh by one serves both.
    public init(sharing spreadbot: Spreadbot) throws {
        owner = spreadbot.connection
        ownsConnection = false
        queues = HandlerQueues(on: spreadbot.executor)
        if let error = spreadbot.configurationError { throw error }
        client = REST(
            .success(try owner.makeClient()), on: spreadbot.loop, executor: spreadbot.executor)
        configurationError = nil
    }

    deinit { if ownsConnection { owner.close() } }

    /// Ends all requests with `.closed`, and releases the handler for tokens. A connection whose
    /// tokens it shares continues.
    public func close() {
        client.close()
        if ownsConnection { owner.close() }
    }

    // MARK: Requests

    /// - Parameter path: appended to the base URL with exactly one slash between.
    public func getData(path: String) async throws -> REST.Response { try await client.get(path) }

    /// - Parameters:
    ///   - onSuccess: receives a 2xx response; its `json` is set if the body is JSON.
    ///   - onError: receives any other response and every failure, also of a request that cannot be
    ///     sent; with the executor `.loop` inside this call.
    public func getData(
        path: String, @_inheritActorContext onSuccess: @escaping Success,
        @_inheritActorContext onError: @escaping Failure
    ) {
        send(REST.Request("GET", path), Handlers(onSuccess, onError, queues))
    }

    /// Posts a payload. With an outbox it is on the disk before this call waits, and if the process
    /// ends, another run sends it. All posts and the connection's sends keep one order.
    @discardableResult
    public func postData(path: String, payload: REST.Request.Body) async throws -> REST.Response {
        guard owner.isDurable else { return try await client.post(path, body: payload) }
        let (bytes, type) = try payload.whole
        let sent = try await owner.sending { assigned, done in
            try bytes.withUnsafeBytes {
                try owner.post(path: path, contentType: type, $0, assigned: assigned, done: done)
            }
        }
        return try SpreadbotREST.result(sent).get()
    }

    public func postData(
        path: String, payload: REST.Request.Body,
        @_inheritActorContext onSuccess: @escaping Success,
        @_inheritActorContext onError: @escaping Failure
    ) {
        let handlers = Handlers(onSuccess, onError, queues)
        guard owner.isDurable else {
            return send(REST.Request("POST", path, body: payload), handlers)
        }
        do {
            let (bytes, type) = try payload.whole
            try bytes.withUnsafeBytes {
                try owner.post(
                    path: path, contentType: type, $0,
                    done: { handlers.report(SpreadbotREST.result($0)) })
            }
        } catch {
            handlers.fail(error)
        }
    }

    private static func result(_ sent: SpreadbotSent) -> Result<REST.Response, REST.Failure> {
        if let result = sent.result { return REST.result(result) }
        return .failure(
            REST.Failure(sent.error ?? RealtimeError(.connectionLost, "no response came")))
    }

    /// - Parameter payload: sent as application/json.
    @discardableResult
    public func postData(path: String, payload: JSONValue) async throws -> REST.Response {
        let text = try payload.text
        return try await postData(path: path, payload: .json(text))
    }

    public func postData(
        path: String, payload: JSONValue,
        @_inheritActorContext onSuccess: @escaping Success,
        @_inheritActorContext onError: @escaping Failure
    ) {
        do {
            let text = try payload.text
            postData(path: path, payload: .json(text), onSuccess: onSuccess, onError: onError)
        } catch {
            Handlers(onSuccess, onError, queues).fail(error)
        }
    }

    /// Sends a request. If it cannot be sent, `onError` is called.
    private func send(_ request: REST.Request, _ handlers: Handlers) {
        do {
            try client.sendOnLoop(request) { handlers.report($0) }
        } catch {
            handlers.fail(error)
        }
    }

    /// The handlers of one request.
    private struct Handlers: Sendable {
        let success: Handler<@Sendable (REST.Response) -> Void>?
        let failure: Handler<@Sendable (REST.Failure) -> Void>?
        let queues: HandlerQueues

        init(_ success: @escaping Success, _ failure: @escaping Failure, _ queues: HandlerQueues) {
            self.success = Handler(success)
            self.failure = Handler(failure)
            self.queues = queues
        }

        func report(_ result: Result<REST.Response, REST.Failure>) {
            switch result {
            case .success(let response): run(success, response)
            case .failure(let failure): run(self.failure, failure)
            }
        }

        func fail(_ error: any Error) { report(.failure(REST.Failure(error))) }

        private func run<Value: Sendable>(
            _ handler: Handler<@Sendable (Value) -> Void>?, _ value: Value
        ) {
            guard let handler else { return }
            _ = queues.run(on: handler.isolation, isOwed: true) { handler.call(value) }
        }
    }

    // MARK: Tokens

    public var accessToken: String { owner.tokens.access }
    public var refreshToken: String { owner.tokens.refresh }

    /// Replaces the tokens, from the next request on.
    /// - Throws: `RealtimeError(.invalidHeader)` for text that cannot be in a header.
    public func setTokens(accessToken: String, refreshToken: String) throws {
        try owner.setTokens(access: accessToken, refresh: refreshToken)
    }

    /// Called with refreshed tokens. Store them for the next run. For a client that shares a
    /// connection's tokens, `Spreadbot.onTokens` is called instead.
    /// - Throws: `RealtimeError(.state)` for a client that shares a connection's tokens.
    public func onTokens(
        @_inheritActorContext _ handler: (
            @Sendable @isolated(any) (_ accessToken: String, _ refreshToken: String) -> Void
        )?
    ) throws(RealtimeError) {
        guard ownsConnection else {
            throw RealtimeError(.state, "the tokens are the connection's; see Spreadbot.onTokens")
        }
        let handler = Handler(handler)
        try owner.setHandlers { [queues] in
            $0.tokens = handler.map { handler in
                { access, refresh in
                    _ = queues.run(on: handler.isolation, isOwed: true) {
                        handler.call(access, refresh)
                    }
                }
            }
        }
    }
}

extension REST.Request.Body {
    /// The bytes and their type.
    /// - Throws: `RealtimeError(.invalidArgument)` for a body that comes in pieces.
    fileprivate var whole: (bytes: [UInt8], type: String) {
        get throws(RealtimeError) {
            switch self {
            case .none: ([], "application/json")
            case .bytes(let bytes, let type): (bytes, type ?? "application/json")
            case .text(let text): (Array(text.utf8), "text/plain; charset=utf-8")
            case .json(let text): (Array(text.utf8), "application/json")
            case .source, .pieces:
                throw RealtimeError(
                    .invalidArgument, "an outbox keeps whole payloads, and this comes in pieces")
            }
        }
    }
}

extension REST.Failure {
    /// The failure of a request that could not be sent.
    fileprivate init(_ error: any Error) {
        let error = error as? RealtimeError ?? RealtimeError(.system, "\(error)")
        self.init(
            code: error.code, message: error.message, response: nil,
            proxyStatus: error.proxyStatus, attempts: 0)
    }
}

extension REST.Response {
    /// The body as JSON; nil if it is not JSON.
    public var json: JSONValue? { try? JSONValue(parsing: body) }
}
