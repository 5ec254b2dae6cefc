import Session
package import Wire

// The requests of a Spreadbot connection: sends by POST, token refreshes, and those of the user
// (docs/spreadbot.md, B4, B14, B16).
extension SpreadbotConnection {
    // MARK: Sends

    func post(_ send: SpreadbotSend) {
        // The result of an earlier attempt.
        results[send.id] = nil
        do throws(RealtimeError) {
            let client = try sendingClient()
            let (url, type) = try destination(of: send)
            let builder = try RESTRequestBuilder(client, "POST", url.text)
            // `path` lacks the user and password of the URL.
            builder.url = url
            try builder.setBody(send.payload, type: type)
            try builder.setHeader("Idempotency-Key", send.key)
            builder.policy.setRules(for: send)
            lastPost += 1
            let attempt = lastPost
            builder.handlers.done = { [self] result in
                // A cancelled send may already have been posted again, with the same id.
                guard attempt == lastPost, posting != nil else { return }
                posting = nil
                results[send.id] = result
                let status = result.outcome.head?.status ?? 0
                let isTaken = (200..<300).contains(status)
                // The deadline may expire while the body of the response arrives.
                let error = isTaken && send.isMessage ? nil : result.outcome.error
                session.posted(
                    send.id, error, status: status, retryAfter: result.outcome.retryAfter,
                    mayPass: error.map { !isTaken && SpreadbotConnection.mayPass($0, status) }
                        ?? false,
                    now: Loop.now(), random: randomFraction())
                schedule()
            }
            posting = try builder.send()
        } catch {
            session.posted(
                send.id, error, status: 0, mayPass: false, now: Loop.now(), random: 0)
        }
    }

    /// Whether another attempt later may succeed.
    private static func mayPass(_ error: RealtimeError, _ status: Int) -> Bool {
        switch error.code {
        case .httpStatus: status >= 500 || [408, 425, 429].contains(status)
        case .resolve, .connect, .tls, .proxy, .timeout, .connectionLost, .deadline, .system, .auth,
            .protocolViolation, .closed, .cancelled:
            true
        default: false
        }
    }

    func cancelPost() {
        guard let number = posting else { return }
        posting = nil
        try? sender?.cancel(number)
    }

    private func destination(of send: SpreadbotSend) throws(RealtimeError) -> (HTTPURL, String) {
        switch send.kind {
        case .text: return (try sendURL(send), "text/plain; charset=utf-8")
        case .binary: return (try sendURL(send), "application/octet-stream")
        case .request(let path, let type): return (try configuration.url(path: path), type)
        }
    }

    private func sendURL(_ send: SpreadbotSend) throws(RealtimeError) -> HTTPURL {
        if let url = configuration.sendURL { return url }
        return try configuration.url(path: send.path ?? session.path)
    }

    private func sendingClient() throws(RealtimeError) -> RESTClient {
        if let sender { return sender }
        let client = try makeClient(base: nil)
        try client.setCredentialsHandler { [self] _ in askForTokens() }
        sender = client
        join(client)
        return client
    }

    // MARK: The user's requests

    /// Makes a client for requests below the base. They carry the tokens and cause a refresh like
    /// those of the connection. Requests that are not idempotent get an Idempotency-Key.
    package func makeClient() throws(RealtimeError) -> RESTClient {
        try checkOpen()
        let base = options.read { $0.pointee.base }
        let client = try makeClient(base: base)
        try client.setCredentialsHandler { [self] _ in askForTokens() }
        // Set now, because the first request may be sent before the client has joined.
        let token = tokens.access
        if !token.isEmpty { try client.setCredential(HeaderField.bearerAuthorization(token)) }
        start()
        onLoop { [self] in
            join(client)
            // If this is the first use, sends of an earlier run begin.
            session.pump()
        }
        return client
    }

    private func makeClient(base: HTTPURL?) throws(RealtimeError) -> RESTClient {
        let client = try RESTClient(base: nil, on: loop)
        let reachability = options.reachability
        let options = options.read { $0.pointee }
        try client.configure { (rest) throws(RealtimeError) in
            for field in options.fields {
                try rest.addHeader(name: field.name, value: field.value)
            }
            if let base { rest.setBase(base) }
            rest.tokenParameter = options.tokenQueryParameter
            rest.network = options.network
            rest.policy.redirects = options.redirects
            rest.policy.addsIdempotencyKey = true
            // With a base it is the program's, which can set its options.
            if base != nil { rest.policy.redirects.owner = .rest }
            rest.queueCapacity = options.queueCapacity
            rest.overflow = options.overflow
            rest.http = options.http
        }
        if let reachability { try client.setReachability(reachability) }
        return client
    }

    private func join(_ client: RESTClient) {
        // After the end nothing would release the clients, whose handlers retain this connection.
        guard !isClosed else { return }
        // Drop the clients that nothing else refers to.
        for index in clients.indices.reversed() where isKnownUniquelyReferenced(&clients[index]) {
            clients.remove(at: index)
        }
        clients.append(client)
        try? client.setCredential(session.credential)
    }

    func leaveClients() { clients = [] }

    /// A request was refused: its client waits until the session has new tokens.
    private func askForTokens() -> CredentialsAnswer {
        guard !isClosed else { return .none }
        session.refusedRequest()
        schedule()
        return .later
    }

    func setCredential(_ credential: String?) {
        for client in clients { try? client.setCredential(credential) }
    }

    func notifyClients(_ error: RealtimeError?) {
        for client in clients { try? client.credentialsAreReady(error == nil, because: error) }
    }

    // MARK: Tokens

    /// Call before they are sent: the credentials as they are now.
    func noteSecrets() {
        sentSecrets.add(SentSecrets(configuration.fields, configuration.base))
        sentSecrets.add(configuration.network)
        sentSecrets.add(configuration.authURL)
        sentSecrets.add(configuration.sendURL)
        sentSecrets.add(basicCredentials: configuration.basicCredentials)
        sentSecrets.add(session.accessToken)
    }

    func refresh(_ token: String) {
        guard let url = configuration.authURL else { return }
        let name = url.displayName
        if !url.isSecure {
            Log.write(.warning, "the refresh token goes to \(name) without TLS")
        }
        Log.write(.debug, "refreshing the tokens at \(name)")
        do throws(RealtimeError) {
            let client = try refreshingClient()
            let builder = try RESTRequestBuilder(client, "POST", url.requestURL)
            builder.policy.redirects.maximum = 0
            // A repeated request could spend the token twice, so wait for a slow server.
            builder.policy.attemptTimeout = SpreadbotConfiguration.refreshTimeout
            builder.policy.connectTimeout = configuration.http.connectTimeout
            builder.policy.deadline = .zero
            // A reused connection may end before the response, and the request would be repeated.
            builder.policy.usesFreshConnection = true
            builder.policy.addsIdempotencyKey = false
            builder.policy.bodyLimit = SpreadbotTokenAnswer.maximumBytes
            try builder.setHeader("Authorization", "Basic " + configuration.basicCredentials)
            try builder.setHeader("Accept", "application/json")
            noteSecrets()
            sentSecrets.add(token)
            let form = "grant_type=refresh_token&refresh_token=" + formEncoded(token)
            try builder.setBody(Array(form.utf8), type: "application/x-www-form-urlencoded")
            builder.handlers.done = { [self] in refreshed($0, name) }
            try builder.send()
        } catch {
            refreshFailed(error, isRefused: true)
        }
    }

    private func refreshingClient() throws(RealtimeError) -> RESTClient {
        if let refresher { return refresher }
        let client = try makeClient(base: nil)
        refresher = client
        return client
    }

    private func refreshed(_ result: RESTResult, _ name: String) {
        guard !isClosed else { return }
        let status = result.outcome.head?.status ?? 0
        do throws(RealtimeError) {
            switch status {
            case 200:
                if result.outcome.error?.code == .tooLarge {
                    throw RealtimeError(
                        .auth,
                        "the response with the tokens has more than"
                            + " \(SpreadbotTokenAnswer.maximumBytes) bytes")
                }
                let tokens = try SpreadbotTokenAnswer(parsing: result.body.copy)
                session.refreshed(
                    access: tokens.access, refresh: tokens.refresh, lifetime: tokens.lifetime,
                    now: Loop.now())
                schedule()
            case 0, 408, 429, 500...:
                let cause = result.outcome.error?.message ?? "no response"
                refreshFailed(
                    RealtimeError(.connect, "the tokens could not be refreshed: \(cause)"),
                    isRefused: false)
            default:
                let code =
                    SpreadbotTokenAnswer.errorCode(
                        result.body.copy, without: sentSecrets) ?? "status \(status)"
                throw RealtimeError(.auth, "\(name) refused to refresh the tokens: \(code)")
            }
        } catch {
            refreshFailed(error, isRefused: true)
        }
    }

    private func refreshFailed(_ error: RealtimeError, isRefused: Bool) {
        session.refreshFailed(
            sentSecrets.redacted(error), isRefused: isRefused, now: Loop.now(),
            random: randomFraction())
        schedule()
    }
}
