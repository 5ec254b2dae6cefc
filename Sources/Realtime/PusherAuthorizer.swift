internal import Engine
internal import Session
import Wire

/// Answers the engine's requests for authorization as the options say.
struct PusherAuthorizer: Sendable {
    private let channels: (any Authorizer)?
    private let user: (@Sendable (_ socketID: String) async throws -> PusherUserAuth)?
    private let builder: (any PusherAuthRequestBuilder)?
    private let headers: (@Sendable () -> [(name: String, value: String)])?
    private let parameters: (@Sendable () -> [(name: String, value: String)])?

    init(_ options: PusherClientOptions) {
        channels =
            if case .authorizer(let authorizer) = options.authMethod { authorizer } else { nil }
        builder =
            if case .authRequestBuilder(let builder) = options.authMethod { builder } else { nil }
        user =
            if case .authorizer(let fetch) = options.userAuthMethod { fetch } else { nil }
        headers = options.authHeadersProvider
        parameters = options.authParamsProvider
    }

    func addHandlers(to handlers: inout PusherHandlers) {
        if channels != nil || user != nil {
            handlers.authorize = { [self] request in
                if request.isUser { authorizeUser(request) } else { authorizeChannels(request) }
            }
            handlers.authorizesChannels = channels != nil
            handlers.authorizesUser = user != nil
        }
        guard builder != nil || headers != nil || parameters != nil else { return }
        handlers.prepareAuthorization = { [self] (request, http) throws(RealtimeError) in
            do {
                return try prepare(request, http)
            } catch {
                throw .refusal(error)
            }
        }
    }

    private func authorizeUser(_ authorization: PusherAuthorization) {
        guard let user else { return }
        Task {
            do {
                let auth = try await user(authorization.request.socketID)
                authorization.answer(
                    PusherUserAnswer(auth: auth.auth, userData: auth.userData))
            } catch {
                authorization.fail(.refusal(error))
            }
        }
    }

    private func authorizeChannels(_ authorization: PusherAuthorization) {
        let socketID = authorization.request.socketID
        for channel in authorization.request.channels {
            let answer: @Sendable (Result<PusherAuth, RealtimeError>) -> Void = { result in
                _ = try? authorization.answer(
                    result.flatMap { $0.answer(for: channel.kind) }, for: channel.text)
            }
            if let channels = channels as? AsyncAuthorizer {
                channels.fetch(socketID, channel.text) { answer($0.mapError { .refusal($0) }) }
                continue
            }
            channels?.fetchAuthValue(socketID: socketID, channelName: channel.text) { auth in
                let refused = RealtimeError(
                    .auth, "the authorizer refused the channel \"\(channel.text)\"")
                answer(auth.map { .success($0) } ?? .failure(refused))
            }
        }
    }

    /// - Returns: false if there can be no request.
    private func prepare(
        _ request: PusherAuthorizationRequest, _ target: RESTRequestBuilder
    ) throws -> Bool {
        if let builder, let channel = request.channels.first {
            guard
                let made = builder.authorizationRequest(
                    socketID: request.socketID, channelName: channel.text)
            else { return false }
            try made.apply(to: target)
        }
        for (name, value) in headers?() ?? [] { try target.setHeader(name, value) }
        for (name, value) in parameters?() ?? [] { try target.addFormParameter(name, value) }
        return true
    }
}

extension RealtimeError {
    /// The error of an authorizer that threw.
    fileprivate static func refusal(_ error: any Error) -> RealtimeError {
        error as? RealtimeError ?? RealtimeError(.auth, "the authorizer failed: \(error)")
    }
}

extension PusherAuth {
    func answer(
        for kind: PusherChannelKind
    ) -> Result<PusherAuthorizationAnswer, RealtimeError> {
        var key: SharedSecret?
        if kind == .encrypted {
            guard let sharedSecret else {
                return .failure(
                    RealtimeError(.auth, "an encrypted channel needs a shared secret"))
            }
            key = Array(sharedSecret.utf8).withUnsafeBytes { SharedSecret(base64: $0) }
            guard key != nil else {
                return .failure(
                    RealtimeError(.auth, "the shared secret is not base64 of 32 bytes"))
            }
        }
        return .success(
            PusherAuthorizationAnswer(auth: auth, channelData: channelData, sharedSecret: key))
    }
}
