internal import Engine
public import Wire

/// Requests below a base URL that carry access tokens, which no other origin is shown, and have
/// them refreshed.
///
///     let config = ["baseURL": "https://example.org", "accessToken": token]
///     let rest = try SpreadbotREST(config: config)
///     rest.getData(path: "users/1", onSuccess: { print($0.json ?? "") }, onError: { print($0) })
///     let answer = try await rest.postData(path: "users", payload: .json(#"{"name": "Ada"}"#))
///
/// Each is tried up to three times, a POST by an Idempotency-Key that is the same in all attempts;
/// without a network requests wait, a hundred of them. Handlers run where `Configuration.executor`
/// says, one at a time. The last reference gone ends all requests. All members may be used on any
/// thread.
public final class SpreadbotREST: Sendable {
    /// Requests of every kind, with the same tokens.
    public let client: REST
    /// Who has the tokens.
    private let owner: SpreadbotConnection
    private let ownsConnection: Bool
    /// Handlers on their way to an executor; held by those of requests under way, too.
    private let queue: CallbackQueue?

    /// - Throws: `RealtimeError` for a bad URL or option.
    public init(config: Spreadbot.Configuration, on loop: Loop = .shared) throws {
        owner = try config.connection(on: loop)
        ownsConnection = true
        queue = CallbackQueue(on: config.executor)
        client = REST(try owner.makeClient(), on: loop)
    }

    /// The same from a dictionary; see `Spreadbot.Configuration.init(_:)` for its names.
    public convenience init(config: [String: any Sendable], on loop: Loop = .shared) throws {
        try self.init(config: Spreadbot.Configuration(config), on: loop)
    }

    /// With the tokens of a connection, which both refresh for each other.
    public init(sharing spreadbot: Spreadbot) throws {
        owner = spreadbot.connection
        ownsConnection = false
        queue = CallbackQueue(on: spreadbot.executor)
        client = REST(try owner.makeClient(), on: spreadbot.loop)
    }

    deinit { if ownsConnection { owner.close() } }

    // MARK: Requests

    /// - Parameter path: below the base URL, with exactly one slash between.
    public func getData(path: String) async throws -> REST.Response { try await client.get(path) }

    /// - Parameter onSuccess: an answer of 2xx; its `json` is there when it is JSON.
    public func getData(
        path: String, onSuccess: @escaping @Sendable (REST.Response) -> Void,
        onError: @escaping @Sendable (REST.Failure) -> Void
    ) {
        send(REST.Request("GET", path), onSuccess, onError)
    }

    /// With an outbox it is on the disk before this waits, and is sent by another run if this one
    /// ends before; one order for all of them, and for what the connection sends.
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
        onSuccess: @escaping @Sendable (REST.Response) -> Void,
        onError: @escaping @Sendable (REST.Failure) -> Void
    ) {
        guard owner.isDurable else {
            return send(REST.Request("POST", path, body: payload), onSuccess, onError)
        }
        do {
            let (bytes, type) = try payload.whole
            try bytes.withUnsafeBytes {
                try owner.post(
                    path: path, contentType: type, $0,
                    done: { [queue] in
                        let result = SpreadbotREST.result($0)
                        queue.run { SpreadbotREST.tell(result, onSuccess, onError) }
                    })
            }
        } catch {
            fail(onError, error)
        }
    }

    private static func result(_ sent: SpreadbotSent) -> Result<REST.Response, REST.Failure> {
        if let result = sent.result { return REST.result(result) }
        return .failure(
            REST.Failure(sent.error ?? RealtimeError(.connectionLost, "no answer came")))
    }

    private static func tell(
        _ result: Result<REST.Response, REST.Failure>, _ onSuccess: (REST.Response) -> Void,
        _ onError: (REST.Failure) -> Void
    ) {
        switch result {
        case .success(let response): onSuccess(response)
        case .failure(let failure): onError(failure)
        }
    }

    /// - Parameter payload: sent as application/json.
    @discardableResult
    public func postData(path: String, payload: JSONValue) async throws -> REST.Response {
        let text = try payload.text
        return try await postData(path: path, payload: .json(text))
    }

    public func postData(
        path: String, payload: JSONValue,
        onSuccess: @escaping @Sendable (REST.Response) -> Void,
        onError: @escaping @Sendable (REST.Failure) -> Void
    ) {
        do {
            let text = try payload.text
            postData(path: path, payload: .json(text), onSuccess: onSuccess, onError: onError)
        } catch {
            fail(onError, error)
        }
    }

    private func fail(_ onError: @escaping @Sendable (REST.Failure) -> Void, _ error: any Error) {
        let failure = REST.Failure(error)
        queue.run { onError(failure) }
    }

    /// What cannot be sent at all comes to `onError` too, inside this call unless there is an
    /// executor.
    private func send(
        _ request: REST.Request, _ onSuccess: @escaping @Sendable (REST.Response) -> Void,
        _ onError: @escaping @Sendable (REST.Failure) -> Void
    ) {
        do {
            try client.send(request) { [queue] result in
                queue.run { SpreadbotREST.tell(result, onSuccess, onError) }
            }
        } catch {
            fail(onError, error)
        }
    }

    // MARK: Tokens

    public var accessToken: String { owner.tokens.access }
    public var refreshToken: String { owner.tokens.refresh }

    /// Sets tokens in the place of those there are, from the next request on.
    /// - Throws: `RealtimeError(.invalidHeader)` for what does not fit a header.
    public func setTokens(accessToken: String, refreshToken: String) throws {
        try owner.setTokens(access: accessToken, refresh: refreshToken)
    }

    /// The tokens were refreshed: keep them for the next run. If a connection is shared, its
    /// `Spreadbot.onTokens` is called instead.
    /// - Throws: `RealtimeError(.state)` for one that shares a connection's.
    public func onTokens(
        _ handler: (@Sendable (_ accessToken: String, _ refreshToken: String) -> Void)?
    ) throws(RealtimeError) {
        guard ownsConnection else {
            throw RealtimeError(.state, "the tokens are the connection's; see Spreadbot.onTokens")
        }
        try owner.setHandlers { [queue] in
            $0.tokens = handler.map { handler in
                { access, refresh in queue.run { handler(access, refresh) } }
            }
        }
    }
}

extension REST.Request.Body {
    /// The bytes and their type.
    /// - Throws: `RealtimeError(.invalidArgument)` for what comes piece by piece.
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
    /// Of a request that could not be sent.
    fileprivate init(_ error: any Error) {
        let error = error as? RealtimeError ?? RealtimeError(.system, "\(error)")
        self.init(
            code: error.code, message: error.message, response: nil,
            proxyStatus: error.proxyStatus, attempts: 0)
    }
}

extension REST.Response {
    /// The body as JSON; nil for what is none.
    public var json: JSONValue? { try? JSONValue(parsing: body) }
}

extension CallbackQueue {
    /// For ends of requests, each of which is owed; nil where none is needed.
    fileprivate convenience init?(on executor: Spreadbot.Executor) {
        if case .loop = executor { return nil }
        self.init(on: executor, .max, .max) {}
    }
}

extension CallbackQueue? {
    /// Runs a handler where the user wants it.
    fileprivate func run(_ handler: @escaping @Sendable () -> Void) {
        guard let self else { return handler() }
        _ = self.put(count: 0, isOwed: true, handler)
    }
}
