internal import Engine
internal import Session
import Synchronization
import Wire

/// Answers the engine's requests for authorization as the options say. The objects of the program
/// are called on the main actor.
struct PusherAuthorizer: Sendable {
    /// How the engine's requests of one kind are answered.
    private enum Method {
        case object(any Authorizer & Sendable)
        case function(PusherAuthFunction)
        case user(@Sendable (_ socketID: String) async throws -> PusherUserAuth)
        /// The request to the endpoint, after the program has changed it.
        case request((any PusherAuthRequestBuilder & Sendable)?)
        /// The secret signs, for the user that the program names.
        case secret
    }

    /// nil if the engine needs no help.
    private let channels: Method?
    private let user: Method?
    private let headers: PusherClientOptions.Provider?
    private let parameters: PusherClientOptions.Provider?
    private let dispatcher: PusherDispatcher
    private let executor: HandlerExecutor

    init(_ options: PusherClientOptions, _ dispatcher: PusherDispatcher) {
        self.dispatcher = dispatcher
        executor = options.executor
        headers = options.authHeadersProvider
        parameters = options.authParamsProvider
        let endpoint = headers == nil && parameters == nil ? nil : Method.request(nil)
        switch options.authMethod {
        case .authorizer(let function as PusherAuthFunction): channels = .function(function)
        case .authorizer(let authorizer): channels = .object(authorizer)
        case .authRequestBuilder(let builder): channels = .request(builder)
        case .endpoint: channels = endpoint
        case .inline: channels = .secret
        case .noMethod: channels = nil
        }
        switch (options.userAuthMethod, options.authMethod) {
        case (.authorizer(let fetch), _): user = .user(fetch)
        case (_, .inline): user = .secret
        case (.endpoint, _): user = endpoint
        case (nil, _): user = nil
        }
    }

    func addHandlers(to handlers: inout PusherHandlers) {
        handlers.authorize = { [self] authorization in
            guard let method = authorization.isUser ? user : channels else { return }
            authorize(authorization, method)
        }
        handlers.authorizesChannels = channels != nil
        handlers.authorizesUser = user != nil
    }

    private func authorize(_ authorization: PusherAuthorization, _ method: Method) {
        switch method {
        case .object(let authorizer): ask(authorizer, authorization)
        case .function(let function): ask(function, authorization)
        case .user(let fetch):
            authorization.answering(on: executor) { authorization in
                let auth = try await fetch(authorization.request.socketID)
                authorization.answer(PusherUserAnswer(auth: auth.auth, userData: auth.userData))
            }
        case .request(let builder): prepare(authorization, builder)
        case .secret: sign(authorization)
        }
    }

    // MARK: The program's answer

    private func ask(
        _ authorizer: any Authorizer & Sendable, _ authorization: PusherAuthorization
    ) {
        dispatcher.run(on: MainActor.shared) {
            MainActor.assumeIsolated {
                for channel in authorization.request.channels {
                    authorizer.fetchAuthValue(
                        socketID: authorization.request.socketID, channelName: channel.text
                    ) { auth in
                        let refused = RealtimeError(
                            .auth, "the authorizer refused the channel \"\(channel.text)\"")
                        authorization.answer(
                            auth.map { .success($0) } ?? .failure(refused), for: channel)
                    }
                }
            }
        }
    }

    private func ask(_ function: PusherAuthFunction, _ authorization: PusherAuthorization) {
        for channel in authorization.request.channels {
            executor.perform {
                do {
                    let auth = try await function.fetch(
                        authorization.request.socketID, channel.text)
                    authorization.answer(.success(auth), for: channel)
                } catch {
                    authorization.answer(.failure(.refusal(error)), for: channel)
                }
            }
        }
    }

    // MARK: The endpoint's answer

    private func prepare(
        _ authorization: PusherAuthorization, _ builder: (any PusherAuthRequestBuilder & Sendable)?
    ) {
        let (socketID, channel) = (
            authorization.request.socketID, authorization.request.channels.first?.text
        )
        do throws(RealtimeError) {
            // Only this thread can make it.
            _ = try authorization.endpointRequest()
        } catch {
            authorization.fail(error)
            return
        }
        guard let builder, let channel else { return complete(authorization, with: nil) }
        dispatcher.run(on: MainActor.shared) {
            let request = MainActor.assumeIsolated {
                builder.authorizationRequest(socketID: socketID, channelName: channel)
            }
            guard let request else {
                let error = "the request for authorization could not be built"
                authorization.fail(RealtimeError(.auth, error))
                return
            }
            complete(authorization, with: request)
        }
    }

    /// Sends the request to the endpoint.
    /// - Parameter made: the builder's request instead; nil without a builder.
    private func complete(_ authorization: PusherAuthorization, with made: REST.Request?) {
        authorization.answering(on: executor) { authorization in
            try made?.apply(to: authorization.endpointRequest())
            for (name, value) in try await headers?() ?? [] {
                try authorization.endpointRequest().setHeader(name, value)
            }
            for (name, value) in try await parameters?() ?? [] {
                try authorization.endpointRequest().addFormParameter(name, value)
            }
            _ = try authorization.send(authorization.endpointRequest())
        }
    }

    // MARK: The secret

    private func sign(_ authorization: PusherAuthorization) {
        let fetch = dispatcher.state.withLock { $0.userDataFetcher }
        guard let fetch, authorization.needsMember else {
            authorization.sign(as: nil)
            return
        }
        dispatcher.run(on: MainActor.shared) {
            let member = MainActor.assumeIsolated { fetch() }
            authorization.sign(as: member.engine)
        }
    }
}

extension PusherAuthorization {
    /// Runs a function of the program, whose error fails the authorization.
    fileprivate func answering(
        on executor: HandlerExecutor,
        _ body: @escaping @Sendable (PusherAuthorization) async throws -> Void
    ) {
        executor.perform { [self] in
            do {
                try await body(self)
            } catch {
                fail(.refusal(error))
            }
        }
    }

    /// Has no effect if the channel was answered before.
    fileprivate func answer(
        _ result: Result<PusherAuth, RealtimeError>, for channel: PusherChannelName
    ) {
        _ = try? answer(result.flatMap { $0.answer(for: channel.kind) }, for: channel.text)
    }
}

extension RealtimeError {
    /// The error of a function of the program that threw.
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
