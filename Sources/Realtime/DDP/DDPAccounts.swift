internal import Engine
internal import Session
public import Wire

/// A change of the account of a client.
public enum DDPAccountChange: Sendable, Equatable {
    /// Another user is logged in; nil for nobody.
    case user(id: String?)
    /// A login has begun or ended.
    case loggingIn(Bool)
    /// The server refused to log the user in again.
    case resumeFailed(DDPError)
}

// The user of a client. A user who has logged in is logged in again on each new connection, and
// after a restart if the token is kept (`Options.tokenFile`). Passwords are sent as digests.
extension DDPClient {
    /// The user who is logged in; nil for nobody. Until the first connection has logged in, that of
    /// the token that was kept.
    public var userID: String? { engine.userID }

    /// The document of the user who is logged in, from the collection `users`. It stays the same
    /// while the client connects again. nil if nobody is logged in, or the server has not sent it.
    public var user: DDPDocument? { engine.userDocument.map { DDPDocument($0) } }

    /// Whether a login is in progress; not while a user who is known is logged in again, on a new
    /// connection or with a token that was kept.
    public var isLoggingIn: Bool { engine.isLoggingIn }

    /// Called with each change of the account. The last handler counts.
    public func onAccount(
        @_inheritActorContext _ handler: (@Sendable @isolated(any) (DDPAccountChange) -> Void)?
    ) {
        // Fails if the loop has ended; then no handler is called anyway.
        try? setAccountHandler(Handler(handler), storeToken)
    }

    /// Logs in with a password.
    /// - Parameters:
    ///   - user: an email address if it contains an `@`, otherwise a user name.
    ///   - code: of the second factor.
    /// - Returns: an object with `id` and `token`.
    /// - Throws: `DDPError`; `RealtimeError` `.reentrant` in a stub, `.closed`, and `.system`
    ///   without libcrypto; `CancellationError`, which does not end the login.
    @discardableResult
    public func logIn(user: String, password: String, code: String? = nil) async throws -> EJSON {
        try await logIn(.login(user: user, password: password, code: code))
    }

    /// Logs in with a password.
    /// - Parameters:
    ///   - user: an object with one member, `id`, `username` or `email`, such as `["id": "abc"]`.
    ///   - code: of the second factor.
    /// - Returns: an object with `id` and `token`.
    /// - Throws: as `logIn(user:password:code:)` with a text.
    @discardableResult
    public func logIn(
        user: EJSONObject, password: String, code: String? = nil
    ) async throws -> EJSON {
        try await logIn(.login(selector: user, password: password, code: code))
    }

    /// Logs in with the token of a login, its member `token`.
    @discardableResult
    public func logIn(token: String) async throws -> EJSON { try await logIn(.login(token: token)) }

    /// Calls any method that logs a user in: its result is an object with `id` and `token`.
    @discardableResult
    public func logIn(method: String, _ params: [EJSON]) async throws -> EJSON {
        try await logIn(DDPRequest(method, params))
    }

    /// Creates a user, and logs in.
    @discardableResult
    public func createUser(
        name: String? = nil, email: String? = nil, password: String, profile: EJSON = .null
    ) async throws -> EJSON {
        try await logIn(
            .createUser(username: name, email: email, password: password, profile: profile))
    }

    /// - Parameter old: nil for a user who has no password yet.
    public func changePassword(from old: String?, to new: String) async throws {
        let request = try DDPRequest.changePassword(from: old, to: new)
        try await send(request).completed()
    }

    /// Makes the server send an email with a token for `resetPassword`.
    public func forgotPassword(email: String) async throws {
        try await send(.forgotPassword(email: email)).completed()
    }

    /// Sets a password with the token of an email, and logs in.
    @discardableResult
    public func resetPassword(token: String, to new: String) async throws -> EJSON {
        try await logIn(.resetPassword(token: token, to: new))
    }

    /// Confirms an email address with the token of an email, and logs in.
    @discardableResult
    public func verifyEmail(token: String) async throws -> EJSON {
        try await logIn(.verifyEmail(token: token))
    }

    /// Logs the user out: here once the server has.
    public func logOut() async throws {
        try await DDPCall { (handlers) throws(RealtimeError) in
            .success(try engine.logOut(handlers))
        }.completed()
    }

    /// Replaces the token of the user who is logged in by a new one, which the client keeps and
    /// uses from now on.
    /// - Returns: an object with `id` and `token`.
    @discardableResult
    public func newToken() async throws -> EJSON { try await logIn(.newToken) }

    /// Logs all other clients of the user out. This one gets a new token first.
    public func logOutOthers() async throws {
        try await DDPCall { (handlers) throws(RealtimeError) in
            .success(try engine.logOutOthers(handlers))
        }.completed()
    }

    /// Sets the user that stubs see, without a login, for servers with accounts of their own.
    public func setUserID(_ id: String?) throws(RealtimeError) { try engine.setUserID(id) }

    private func logIn(_ request: DDPRequest) async throws -> EJSON {
        try await DDPCall { (handlers) throws(RealtimeError) in
            .success(try engine.logIn(request, handlers))
        }.completed()
    }

    private func send(_ request: DDPRequest) throws -> DDPCall {
        try DDPCall { (handlers) throws(RealtimeError) in try engine.call(request, handlers) }
    }

    func setAccountHandler(
        _ handler: Handler<@Sendable (DDPAccountChange) -> Void>?,
        _ storeToken: (@Sendable (String?) -> Void)?
    ) throws(RealtimeError) {
        let report: @Sendable (DDPAccountChange) -> Void = { [dispatcher] change in
            guard let handler else { return }
            dispatcher.run(on: handler.isolation) { handler.call(change) }
        }
        try engine.setHandlers { handlers in
            handlers.account = { event in
                switch event {
                case .user(let id): report(.user(id: id))
                case .loggingIn(let isBusy): report(.loggingIn(isBusy))
                case .resumeFailed(let error): report(.resumeFailed(error))
                case .store(let token): storeToken?(token.text)
                case .forget: storeToken?(nil)
                }
            }
        }
    }
}
