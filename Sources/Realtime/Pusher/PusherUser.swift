internal import Engine
internal import Session
import Synchronization
import Wire

extension Pusher {
    /// Signs the user in, now or as soon as the connection is established, and again after each
    /// reconnect: as `PusherClientOptions.userAuthMethod` says or, with `AuthMethod.inline`, by the
    /// secret, with the data of `PusherConnection.userDataFetcher`.
    public func signIn() {
        do {
            try connection.signIn()
        } catch {
            connection.dispatcher.report(error)
        }
    }

    /// Signs the user in, and waits until the server has confirmed it.
    /// - Returns: the user's id.
    /// - Throws: `RealtimeError`: why it failed, or why the connection ended; `CancellationError`.
    @discardableResult
    public func signedIn() async throws -> String {
        // While a task waits, the connection stays.
        let connection = connection
        let waiters = TaskWaiters()
        try await waiters.wait {
            do throws(RealtimeError) {
                try connection.signIn(SignInCall(waiters))
                return nil
            } catch {
                return .failure(error)
            }
        }
        guard let id = connection.engine?.userID else { throw PusherUser.signedOut }
        return id
    }

    /// Ends `signIn`: events for the user are no longer delivered, and later connections do not
    /// sign in. Tasks that wait in `signedIn` get a `RealtimeError` with `.cancelled`. Callbacks
    /// and channels are kept. The protocol has no message for this: until the connection ends, the
    /// server considers the user signed in.
    public func signOut() {
        do throws(RealtimeError) {
            try connection.engine?.signOut()
        } catch {
            connection.dispatcher.report(error)
        }
    }

    /// The user of this connection.
    public var user: PusherUser { PusherUser(connection) }
}

extension PusherConnection {
    func signIn(_ call: (any PusherSignInCall)? = nil) throws(RealtimeError) {
        if let configurationError { throw configurationError }
        try engine?.signIn(call)
    }
}

/// Resumes the task that waits for a sign-in.
private final class SignInCall: PusherSignInCall {
    private let waiters: TaskWaiters

    init(_ waiters: TaskWaiters) { self.waiters = waiters }

    deinit {
        let closed = RealtimeError(.closed, "the Pusher connection was released")
        waiters.resumeAll(.failure(closed))
    }

    func answered(_ failure: PusherSubscriptionFailure?) {
        waiters.resumeAll(failure.map { .failure($0.error) } ?? .success(()))
    }
}

/// The user of a connection, to whom a server can send events on any of the user's connections.
public struct PusherUser: Sendable {
    /// Users of the signed-in user's watchlist that came or left.
    public struct WatchlistEvent: Sendable, Equatable {
        /// `online` or `offline`; servers may add others.
        public let name: String
        public let userIds: [String]

        public var isOnline: Bool { name == "online" }
    }

    static let signedOut = RealtimeError(.cancelled, "the user was signed out")

    private let connection: PusherConnection

    init(_ connection: PusherConnection) { self.connection = connection }

    /// The id of the user who is signed in; nil if none is.
    public var userId: String? { connection.engine?.userID }

    /// Binds a callback to an event that is sent to the user.
    /// - Returns: an id for `unbind`.
    @discardableResult
    public func bind(
        eventName: String,
        @_inheritActorContext eventCallback:
            @escaping @Sendable @isolated(any) (PusherEvent) -> Void
    ) -> String {
        bind(eventName, Handler(escaping: eventCallback))
    }

    /// Binds a callback to all events that are sent to the user.
    /// - Returns: an id for `unbind`.
    @discardableResult
    public func bind(
        @_inheritActorContext eventCallback:
            @escaping @Sendable @isolated(any) (PusherEvent) -> Void
    ) -> String {
        bind(nil, Handler(escaping: eventCallback))
    }

    private func bind(
        _ event: String?, _ handler: Handler<@Sendable (PusherEvent) -> Void>
    ) -> String {
        let id = try? connection.engine?.bindUser(event, connection.dispatcher.bound(handler))
        return id.map { String($0) } ?? ""
    }

    /// The events that are sent to the user from now on; see `PusherChannel.events`.
    /// - Parameter eventName: the exact name; nil for all events.
    public func events(_ eventName: String? = nil) -> PusherEvents {
        PusherEvents(connection, connection.engine?.userBindings) {
            try connection.engine?.bindUser(eventName, ended: $0, $1)
        }
    }

    /// Removes a callback. On the thread or actor where the callback runs, it is not called any
    /// more; for another one, a call that has begun may end later.
    public func unbind(callbackId: String) {
        if let id = UInt64(callbackId) { connection.engine?.userBindings.remove(id) }
    }

    /// Removes all callbacks.
    public func unbindAll() { connection.engine?.userBindings.removeAll() }

    // MARK: Handlers; the last one set counts

    /// Called when the server has confirmed the user: with the id, and with the JSON text that was
    /// signed.
    public func onSignedIn(
        @_inheritActorContext _ handler: (
            @Sendable @isolated(any) (_ userId: String, _ userData: String) -> Void
        )?
    ) {
        let handler = Handler(handler)
        connection.dispatcher.state.withLock { $0.signedIn = handler }
    }

    /// Called when the user could not be signed in.
    public func onSignInFailed(
        @_inheritActorContext _ handler: (@Sendable @isolated(any) (Pusher.Failure) -> Void)?
    ) {
        let handler = Handler(handler)
        connection.dispatcher.state.withLock { $0.signInFailed = handler }
    }

    /// Called when users of the watchlist come or leave.
    public func onWatchlist(
        @_inheritActorContext _ handler: (@Sendable @isolated(any) (WatchlistEvent) -> Void)?
    ) {
        let handler = Handler(handler)
        connection.dispatcher.state.withLock { $0.watchlist = handler }
    }
}
