package import Session
import Synchronization
package import Wire

/// The connection that needs an authorization.
protocol PusherAuthorizationOwner: AnyObject, Sendable {
    var loop: Loop { get }
    /// Any thread.
    func authorized(_ number: UInt64, _ outcome: PusherAuthorizationOutcome)
    /// The request that would go to the endpoint. The loop's thread.
    func endpointRequest(
        _ request: PusherAuthorizationRequest
    ) throws(RealtimeError) -> RESTRequestBuilder
    /// Sends it as it is now; its response is the answer. Any thread.
    func send(_ http: RESTRequestBuilder, for request: PusherAuthorizationRequest)
    /// Answers with the secret's signature. Any thread.
    func sign(_ request: PusherAuthorizationRequest, as member: PusherMember?)
}

/// The request to the endpoint that was made for an authorization. Unchecked because one thread at
/// a time uses it.
private struct MadeRequest: @unchecked Sendable {
    let http: RESTRequestBuilder
}

/// A request for authorization that the caller answers: once, on any thread, at any time. An answer
/// that comes too late is ignored. Dropping it without an answer is a failure.
package final class PusherAuthorization: Sendable {
    package let request: PusherAuthorizationRequest
    package let loop: Loop
    /// Whether a JSON answer has a member for each channel.
    private let isBatch: Bool
    private let state: Mutex<State>

    private struct State {
        /// nil once it is answered.
        var owner: (any PusherAuthorizationOwner)?
        /// By channel, until all are there.
        var results: [Result<PusherAuthorizationAnswer, RealtimeError>?]
        var made: MadeRequest?
    }

    init(
        _ request: PusherAuthorizationRequest, isBatch: Bool,
        for owner: any PusherAuthorizationOwner
    ) {
        self.request = request
        loop = owner.loop
        self.isBatch = isBatch
        state = Mutex(
            State(owner: owner, results: Array(repeating: nil, count: request.channels.count)))
    }

    deinit {
        let (owner, results) = state.withLock { ($0.owner, $0.results) }
        guard let owner else { return }
        let error = RealtimeError(.auth, "the authorization was not answered")
        owner.authorized(
            request.number,
            results.isEmpty ? .failed(error) : .channels(results.map { $0 ?? .failure(error) }))
    }

    /// Whether the user is to be signed in, and no channel authorized.
    package var isUser: Bool { request.channels.isEmpty }

    // MARK: The endpoint

    /// The request that would go to the endpoint; the caller may change it, and then `send`s it.
    /// Only on the loop's thread.
    /// - Throws: `.state` if the authorization is answered, or on another thread.
    package func endpointRequest() throws(RealtimeError) -> RESTRequestBuilder {
        let (owner, made) = state.withLock { ($0.owner, $0.made) }
        guard let owner else {
            throw RealtimeError(.state, "the authorization is already answered")
        }
        if let made { return made.http }
        guard loop.isOwner else {
            throw RealtimeError(
                .state, "the endpoint's request is made in the callback that asks to authorize")
        }
        let new = MadeRequest(http: try owner.endpointRequest(request))
        state.withLock { $0.made = new }
        return new.http
    }

    /// Whether `endpointRequest` has made the request.
    package var hasRequest: Bool { state.withLock { $0.made != nil } }

    /// Sends the request of `endpointRequest` as it is now; its response is the answer.
    /// - Returns: false if it was answered before.
    /// - Throws: `.invalidArgument` for another request.
    package func send(_ http: RESTRequestBuilder) throws(RealtimeError) -> Bool {
        guard state.withLock({ $0.made?.http === http }) else {
            throw RealtimeError(
                .invalidArgument, "the request was not made for this authorization")
        }
        guard let owner = take()?.owner else { return false }
        owner.send(http, for: request)
        return true
    }

    // MARK: The secret

    /// Whether the signature names the user.
    package var needsMember: Bool { request.needsMember }

    /// Answers with the secret's signature; fails if there is no secret.
    /// - Parameter member: the user, if the signature names one; nil for the socket id.
    /// - Returns: false if it was answered before.
    @discardableResult
    package func sign(as member: PusherMember?) -> Bool {
        guard let owner = take()?.owner else { return false }
        owner.sign(request, as: member)
        return true
    }

    // MARK: Answers; each returns false if the request was answered before

    /// Answers for the only channel, or for all that are left.
    @discardableResult
    package func answer(_ answer: PusherAuthorizationAnswer) -> Bool {
        finish { results in results.map { $0 ?? .success(answer) } }
    }

    /// Answers for one of the channels.
    /// - Throws: `.notFound` if it is not one of them.
    @discardableResult
    package func answer(
        _ result: Result<PusherAuthorizationAnswer, RealtimeError>, for channel: String
    ) throws(RealtimeError) -> Bool {
        guard let index = request.channels.firstIndex(where: { $0.text.hasSameBytes(as: channel) })
        else {
            throw RealtimeError(
                .notFound, "the request does not ask for the channel \(channel.quoted(upTo: 60))")
        }
        let (owner, results, isOpen) = state.withLock { state in
            guard state.owner != nil, state.results[index] == nil else {
                return ((any PusherAuthorizationOwner)?.none, state.results, false)
            }
            state.results[index] = result
            guard state.results.allSatisfy({ $0 != nil }) else {
                return ((any PusherAuthorizationOwner)?.none, state.results, true)
            }
            defer { state.owner = nil }
            return (state.owner, state.results, true)
        }
        owner?.authorized(request.number, .channels(results.compactMap { $0 }))
        return isOpen
    }

    /// Answers for the user.
    @discardableResult
    package func answer(_ user: PusherUserAnswer) -> Bool {
        guard let owner = take()?.owner else { return false }
        owner.authorized(request.number, .user(user))
        return true
    }

    /// Answers with the body that an endpoint would send.
    @discardableResult
    package func answer(json body: UnsafeRawBufferPointer) -> Bool {
        let outcome = PusherAuthorizationOutcome(json: body, to: request, isBatch: isBatch)
        guard let owner = take()?.owner else { return false }
        owner.authorized(request.number, outcome)
        return true
    }

    /// Refuses what was not answered yet.
    @discardableResult
    package func fail(_ error: RealtimeError) -> Bool {
        guard !isUser else {
            guard let owner = take()?.owner else { return false }
            owner.authorized(request.number, .failed(error))
            return true
        }
        return finish { results in results.map { $0 ?? .failure(error) } }
    }

    private func finish(
        _ complete: (
            [Result<PusherAuthorizationAnswer, RealtimeError>?]
        ) -> [Result<PusherAuthorizationAnswer, RealtimeError>]
    ) -> Bool {
        guard let taken = take(), let owner = taken.owner else { return false }
        let error = RealtimeError(.auth, "a user's sign-in was answered like a channel")
        owner.authorized(
            request.number,
            taken.results.isEmpty ? .failed(error) : .channels(complete(taken.results)))
        return true
    }

    /// Ends it, so that it is answered only once.
    private func take() -> State? {
        state.withLock { state in
            guard state.owner != nil else { return nil }
            let taken = state
            state.owner = nil
            return taken
        }
    }
}

extension PusherAuthorizationRequest {
    /// The channels to authorize; none if the user is to be signed in.
    package var channels: [PusherChannelName] {
        switch purpose {
        case .channels(let channels): channels.map { $0.name }
        case .user: []
        }
    }

    /// Whether the secret's signature names the user.
    var needsMember: Bool { channels.isEmpty || channels.contains { $0.kind == .presence } }
}

extension PusherAuthorizationOutcome {
    /// Reads the body of an endpoint's answer.
    /// - Parameter isBatch: the body has a member for each channel.
    init(json body: UnsafeRawBufferPointer, to request: PusherAuthorizationRequest, isBatch: Bool) {
        let channels = request.channels
        do throws(RealtimeError) {
            if channels.isEmpty {
                self = .user(try PusherUserAnswer(json: body))
            } else if isBatch {
                self = .channels(try PusherAuthorizationAnswer.batch(json: body, for: channels))
            } else {
                let answer = try PusherAuthorizationAnswer(json: body, for: channels[0].kind)
                self = .channels([.success(answer)])
            }
        } catch {
            self = .failed(error)
        }
    }
}
