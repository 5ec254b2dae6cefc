import Session
import Wire

// The authorizations of a Pusher connection: by the caller's function, by the secret, or by an
// endpoint, in this order.
extension PusherConnection {
    func authorize(_ request: PusherAuthorizationRequest) {
        let isAsked =
            request.channels.isEmpty ? handlers.authorizesUser : handlers.authorizesChannels
        if isAsked, let authorize = handlers.authorize {
            session.asksProgram(request.number, now: Loop.now())
            return authorize(PusherAuthorization(request, isBatch: isBatch, for: self))
        }
        if let secret = configuration.secret {
            do throws(RealtimeError) {
                let member = request.needsMember ? try handlers.userData?().get() : nil
                return finish(request, sign(request, as: member, with: secret))
            } catch {
                return finish(request, .failed(error))
            }
        }
        let isUser = request.channels.isEmpty
        let endpoint = isUser ? configuration.userAuthEndpoint : configuration.authEndpoint
        guard endpoint != nil || handlers.prepareAuthorization != nil else {
            let what = isUser ? "a sign-in needs" : "private and presence channels need"
            return finish(
                request,
                .failed(RealtimeError(.auth, "\(what) an auth method, and none is set")))
        }
        do throws(RealtimeError) {
            let http = try endpointRequest(request)
            guard try handlers.prepareAuthorization?(request, http) ?? true else {
                throw RealtimeError(.auth, "the request for authorization could not be built")
            }
            try send(PreparedRequest(http), for: request)
        } catch {
            finish(request, .failed(error))
        }
    }

    private func finish(
        _ request: PusherAuthorizationRequest, _ outcome: PusherAuthorizationOutcome
    ) {
        session.authorized(request.number, outcome, now: Loop.now())
        schedule()
    }

    // MARK: The secret

    func sign(_ request: PusherAuthorizationRequest, as member: PusherMember?) {
        guard !loop.isForked else { return }
        onLoop { [self] in
            guard let secret = configuration.secret else {
                let error = RealtimeError(
                    .auth,
                    "the authorization cannot be signed, because the connection has no secret: set"
                        + " one, or answer with the signature")
                return session.authorized(request.number, .failed(error), now: Loop.now())
            }
            let outcome = sign(request, as: member, with: secret)
            session.authorized(request.number, outcome, now: Loop.now())
        }
    }

    private func sign(
        _ request: PusherAuthorizationRequest, as user: PusherMember?, with secret: SecretBytes
    ) -> PusherAuthorizationOutcome {
        do throws(RealtimeError) {
            if let user, user.id.utf8.isEmpty {
                throw RealtimeError(.auth, "the user's id is empty")
            }
            let id = user?.id ?? request.socketID
            let info = try user?.info.map { (text) throws(RealtimeError) in
                try JSONText(checking: text)
            }
            guard !request.channels.isEmpty else {
                let data = PusherSignature.userData(id: id, userInfo: info)
                let auth = try PusherSignature.user(
                    data, socketID: request.socketID, key: configuration.key, secret: secret)
                return .user(PusherUserAnswer(auth: auth, userData: data))
            }
            let memberData = PusherSignature.channelData(userID: id, userInfo: info)
            return .channels(
                request.channels.map { channel in
                    sign(channel, request.socketID, memberData, with: secret)
                })
        } catch {
            return .failed(error)
        }
    }

    private func sign(
        _ channel: PusherChannelName, _ socketID: String, _ memberData: String,
        with secret: SecretBytes
    ) -> Result<PusherAuthorizationAnswer, RealtimeError> {
        do throws(RealtimeError) {
            let data = channel.kind == .presence ? memberData : nil
            let auth = try PusherSignature.channel(
                channel.text, channelData: data, socketID: socketID, key: configuration.key,
                secret: secret)
            var key: SharedSecret?
            if channel.kind == .encrypted {
                guard let masterKey = configuration.masterKey else {
                    throw RealtimeError(
                        .auth,
                        "an encrypted channel needs the encryption master key beside the secret")
                }
                key = try SharedSecret(channel: channel.text, masterKey: masterKey)
            }
            return .success(
                PusherAuthorizationAnswer(auth: auth, channelData: data, sharedSecret: key))
        } catch {
            return .failure(error)
        }
    }

    // MARK: The endpoint

    func endpointRequest(
        _ request: PusherAuthorizationRequest
    ) throws(RealtimeError) -> RESTRequestBuilder {
        // Nobody would close its client.
        try checkOpen()
        let isUser = request.channels.isEmpty
        let endpoint = isUser ? configuration.userAuthEndpoint : configuration.authEndpoint
        let builder = RESTRequestBuilder(try client(), "POST", to: endpoint)
        for field in configuration.authHeaders.all {
            try builder.addHeader(field.name, field.value)
        }
        try builder.setHeader("Accept", "application/json")
        try builder.setBody(Array(form(request).utf8), type: formMediaType)
        return builder
    }

    func send(_ http: RESTRequestBuilder, for request: PusherAuthorizationRequest) {
        guard !loop.isForked else { return }
        do throws(RealtimeError) {
            let prepared = try PreparedRequest(http)
            onLoop { [self] in
                guard session.isAwaited(request.number) else { return }
                send(prepared, for: request)
            }
        } catch {
            authorized(request.number, .failed(error))
        }
    }

    /// A copy of the request to the endpoint: the program may change its own.
    ///
    /// Unchecked because it crosses to the loop's thread once.
    private struct PreparedRequest: @unchecked Sendable {
        let secrets: SentSecrets
        let request: RESTRequest
        let handlers: RESTHandlers

        init(_ http: RESTRequestBuilder) throws(RealtimeError) {
            guard http.hasTarget else {
                throw RealtimeError(.auth, "the request for authorization has no URL")
            }
            secrets = http.secrets
            (request, handlers) = try http.copy()
        }
    }

    private func send(_ prepared: PreparedRequest, for request: PusherAuthorizationRequest) {
        // A handler may have closed the connection.
        guard !isClosed, let authorizer else { return }
        session.prepared(request.number, with: prepared.secrets)
        var handlers = prepared.handlers
        handlers.isSecret = true
        handlers.done = { [self] in answered($0, request) }
        authorizations[request.number] = authorizer.send(prepared.request, handlers)
    }

    private var isBatch: Bool { configuration.authBatchSize > 1 }

    private func form(_ request: PusherAuthorizationRequest) -> String {
        let channels = request.channels.map { $0.text }
        let parameters = configuration.authParameters
        if channels.isEmpty {
            return PusherForm.user(socketID: request.socketID, parameters: parameters)
        }
        return isBatch
            ? PusherForm.channels(channels, socketID: request.socketID, parameters: parameters)
            : PusherForm.channel(channels[0], socketID: request.socketID, parameters: parameters)
    }

    /// All requests go through one client, which keeps its connections.
    private func client() throws(RealtimeError) -> RESTClient {
        if let authorizer { return authorizer }
        let client = try RESTClient(base: nil, on: loop)
        let configuration = configuration
        try client.configure { rest in configuration.setRequests(&rest) }
        try client.setReachability(reachability)
        authorizer = client
        return client
    }

    private func answered(_ result: RESTResult, _ request: PusherAuthorizationRequest) {
        authorizations[request.number] = nil
        guard !isClosed else { return }
        finish(request, outcome(of: result, request))
    }

    private func outcome(
        of result: RESTResult, _ request: PusherAuthorizationRequest
    ) -> PusherAuthorizationOutcome {
        let host = result.outcome.url.displayName
        guard let head = result.outcome.head else {
            return .failed(
                result.outcome.error ?? RealtimeError(.auth, "\(host) did not answer"))
        }
        guard head.status == 200 || head.status == 201 else {
            let error = result.outcome.error
            guard error == nil || error?.code == .httpStatus else {
                return .failed(error ?? RealtimeError(.auth, host))
            }
            return .failed(
                RealtimeError(
                    .auth, "\(host) refused the authorization with status \(head.status)",
                    response: shown(head, result.body)))
        }
        if let error = result.outcome.error { return .failed(error) }
        let outcome = result.body.withBytes {
            PusherAuthorizationOutcome(json: $0, to: request, isBatch: isBatch)
        }
        guard case .failed(let error) = outcome else { return outcome }
        return .failed(
            RealtimeError(
                .auth, "\(host): \(error.message)", response: shown(head, result.body)))
    }

    /// The response of a failure with the beginning of its body, for people to read: without
    /// signatures and keys, as it may be an answer whose other part is wrong.
    private func shown(_ head: ResponseHead, _ body: RESTBody) -> HTTPResponse {
        let shown = body.withBytes {
            PusherRedaction.bytes(
                of: UnsafeRawBufferPointer(rebasing: $0.prefix(PusherConnection.shownBytes)))
        }
        return HTTPResponse(head, body: shown)
    }

    /// How much of a refusal's body is reported.
    private static var shownBytes: Int { 64 << 10 }

    func cancelAuthorization(_ number: UInt64) {
        guard let id = authorizations.removeValue(forKey: number) else { return }
        try? authorizer?.cancel(id)
    }
}
