import Documents
import Wire

// Logging in and out (M15).
extension DDPSession {
    // MARK: The application

    /// Calls a method that logs a user in: its result has the user's `id` and a `token`. Earlier
    /// calls are completed before it is sent, and it is completed before later ones are.
    package mutating func logIn(_ request: DDPRequest, now: Instant) -> DDPCall {
        callAccounts(request, .login, now)
    }

    /// Logs the user out, here once the server has.
    package mutating func logOut(now: Instant) -> DDPCall {
        callAccounts(DDPRequest("logout"), .logout, now)
    }

    /// Logs all other clients of the user out. This one gets a new token first.
    /// - Returns: the call that ends last. It fails if the other clients stay logged in.
    package mutating func logOutOthers(now: Instant) -> DDPCall {
        _ = callAccounts(.newToken, .newToken, now)
        return callAccounts(DDPRequest("removeOtherTokens"), .application, now)
    }

    /// The driver has written the token of `store`, or has removed the one that was kept.
    /// - Parameter token: nil after `forget`.
    package mutating func tokenKept(_ token: DDPLoginToken?) { accounts.kept = token }

    /// Takes over the token that is kept, if another process has changed it: it has logged in, or
    /// out. The next connection uses it. But a login of this client that is not kept yet is newer.
    package mutating func useToken(_ token: DDPLoginToken?, now: Instant) {
        guard token != accounts.kept else { return }
        let hasNewer = accounts.token != accounts.kept
        accounts.kept = token
        guard !hasNewer else { return }
        accounts.token = token
        guard token == nil else { return }
        log("another client has logged the user out")
        setUserID(nil, now: now)
    }

    /// Sets the user that stubs see, without a login.
    package mutating func setUserID(_ id: String?, now: Instant) {
        guard !accounts.userID.hasSameBytes(as: id) else { return }
        accounts.userID = id
        dropOwnDocument(now)
        userChanged(now)
        report(.account(.user(id: id)))
    }

    private mutating func callAccounts(
        _ request: DDPRequest, _ purpose: DDPMethodPurpose, _ now: Instant
    ) -> DDPCall {
        var request = request
        request.options.isWait = true
        return enqueue(request, methods.nextID(), purpose: purpose, now: now)
    }

    // MARK: A new connection

    /// The login of the new connection replaces that of an earlier one. If that has a result, it
    /// waits only for its documents.
    mutating func dropResumes() {
        for id in methods.sortedIDs {
            guard let method = methods.byID[id], case .resume = method.purpose else { continue }
            guard method.result == nil else {
                methods.change(id) { $0.purpose = .application }
                continue
            }
            methods.withdraw(id)
            quiescence.blocking.remove(id)
            endLogin(id)
        }
    }

    /// Logs in with the token, before everything else that the new connection does.
    mutating func resumeLogin(_ now: Instant) {
        accounts.retryDue = nil
        guard let token = accounts.token else { return }
        for id in methods.sortedIDs {
            guard let method = methods.byID[id], method.purpose == .login,
                case .success? = method.result, !accounts.interrupted.contains(id)
            else { continue }
            accounts.interrupted.append(id)
        }
        guard !token.expiresSoon(wallClock: wallClock) else {
            log("the login token has expired, or will do so soon")
            let reason = "the login token has expired"
            return forgetLogin(DDPError(.server, "token-expired", reason: reason), now)
        }
        sendResume(token, now)
    }

    private mutating func sendResume(_ token: DDPLoginToken, _ now: Instant) {
        var login = EJSONObject()
        login["resume"] = .string(token.token)
        _ = callAccounts(DDPRequest("login", [.object(login)]), .resume(token), now)
    }

    /// The server allows another attempt to log in.
    mutating func repeatResume(_ now: Instant) {
        guard let due = accounts.retryDue, due <= now else { return }
        accounts.retryDue = nil
        if let token = accounts.token { sendResume(token, now) }
    }

    // MARK: Answers

    mutating func beginLogin(_ id: CallID, _ purpose: DDPMethodPurpose) {
        switch purpose {
        case .login: break
        // Nobody should notice that a user who is shown as logged in logs in once more.
        case .resume: if accounts.userID != nil { return }
        case .application, .logout, .newToken: return
        }
        if !accounts.isLoggingIn { report(.account(.loggingIn(true))) }
        accounts.logins.insert(id)
    }

    private mutating func endLogin(_ id: CallID) {
        guard accounts.logins.remove(id) != nil, !accounts.isLoggingIn else { return }
        report(.account(.loggingIn(false)))
    }

    /// The result of a call; a failure if it should log a user in, but names none.
    func checkedLogin(
        _ method: DDPMethod, _ result: Result<EJSON, DDPError>
    ) -> Result<EJSON, DDPError> {
        switch (method.purpose, result) {
        case (.login, .success(let value)), (.resume, .success(let value)):
            guard value.userID == nil else { return result }
            return .failure(
                DDPError(
                    .server, "no-user",
                    reason: "the result of the login names no user: it has no id"))
        default: return result
        }
    }

    /// The result of a call has arrived. From now on new connections log in with its token.
    mutating func loginAnswered(_ method: DDPMethod, _ result: Result<EJSON, DDPError>) {
        switch method.purpose {
        case .application, .logout: return
        case .login, .resume, .newToken: break
        }
        guard case .success(let value) = result,
            let token = DDPLoginToken(value, wallClock: wallClock)
        else { return }
        // The session at the server may have another user than this client.
        if method.purpose == .newToken, !accounts.userID.hasSameBytes(as: token.userID) { return }
        accounts.token = token
    }

    /// A call is done: its result is there, and so are its documents.
    /// - Returns: whether to report it. If not, it is reported with the login of this connection.
    mutating func loginCompleted(
        _ method: DDPMethod, _ result: Result<EJSON, DDPError>, _ now: Instant
    ) -> Bool {
        let isInterrupted = accounts.interrupted.contains(method.id)
        switch (method.purpose, result) {
        case (.application, _), (.login, .failure), (.logout, .failure), (.newToken, .failure):
            break
        case (.login, .success(let value)): if !isInterrupted { loggedInAnew(value, now) }
        case (.newToken, .success):
            if let token = accounts.token, accounts.userID.hasSameBytes(as: token.userID) {
                storeToken()
            }
        case (.logout, .success): forgetLogin(nil, now)
        case (.resume, .success(let value)):
            loggedIn(value, now)
            completeInterrupted(result)
        case (.resume(let tried), .failure(let error)): resumeFailed(tried, error, now)
        }
        endLogin(method.id)
        switch method.purpose {
        case .login, .resume: ownDocumentWaits(now)
        case .application, .logout, .newToken: break
        }
        return !isInterrupted
    }

    private mutating func loggedIn(_ result: EJSON, _ now: Instant) {
        guard let id = result.userID else { return }
        // The token went with a logout that was called before, and completed after its result.
        if accounts.token == nil {
            accounts.token = DDPLoginToken(result, wallClock: wallClock)
        }
        setUserID(id, now: now)
        storeToken()
    }

    /// The application has logged in. A login with an earlier token that the server has put off,
    /// and that waits for the end of this one, would bring the earlier user back.
    private mutating func loggedInAnew(_ result: EJSON, _ now: Instant) {
        let hasDropped = dropQueuedResumes()
        loggedIn(result, now)
        // Interrupted logins end with it.
        if hasDropped, !accounts.interrupted.isEmpty, let token = accounts.token {
            sendResume(token, now)
        }
    }

    /// - Returns: whether there were any.
    @discardableResult
    private mutating func dropQueuedResumes() -> Bool {
        var hasDropped = false
        for id in methods.sortedIDs {
            guard let method = methods.byID[id], case .resume = method.purpose, !method.isSent,
                method.result == nil
            else { continue }
            methods.withdraw(id)
            quiescence.blocking.remove(id)
            endLogin(id)
            hasDropped = true
        }
        return hasDropped
    }

    private mutating func storeToken() {
        if let token = accounts.token { report(.account(.store(token))) }
    }

    private mutating func resumeFailed(
        _ tried: DDPLoginToken, _ error: DDPError, _ now: Instant
    ) {
        if error.kind == .server, let time = error.timeToReset {
            // A server that does not say when is not asked without a pause.
            let wait = max(time, .seconds(1))
            log("the server allows no login now; the next attempt \(wait.fromNow)")
            accounts.retryDue = now + wait
            return
        }
        completeInterrupted(.failure(error))
        guard error.kind == .server, accounts.token?.token == tried.token else { return }
        forgetLogin(error, now)
    }

    /// - Parameter error: why the user is logged out; nil if that was requested.
    private mutating func forgetLogin(_ error: DDPError?, _ now: Instant) {
        accounts.token = nil
        accounts.retryDue = nil
        dropQueuedResumes()
        report(.account(.forget))
        if let error { report(.account(.resumeFailed(error))) }
        setUserID(nil, now: now)
        let loggedOut = DDPError(
            .invocationFailed, reason: "the user was logged out before the login was completed")
        completeInterrupted(.failure(error ?? loggedOut))
    }

    /// The logins whose connection was lost end as the login of this connection does.
    mutating func completeInterrupted(_ result: Result<EJSON, DDPError>) {
        let calls = accounts.interrupted
        accounts.interrupted = []
        for id in calls {
            let wasReported = methods.byID[id]?.isReported ?? false
            // Its own end reports nothing then, and logs nobody in.
            methods.change(id) {
                $0.isReported = true
                $0.purpose = .application
            }
            if !wasReported { report(.completed(id, result)) }
        }
    }
}

extension EJSON {
    /// The user in the result of a login.
    fileprivate var userID: String? {
        guard case .object(let fields) = self, case .string(let id)? = fields["id"] else {
            return nil
        }
        return id
    }
}
