import Synchronization

// Closures for what `PusherDelegate` receives; the last one set counts.
extension Pusher {
    /// Called with each change of the connection's state. A wait for a network is reported once, by
    /// the failure that led to it or by `.connect`; `new` is then `.reconnecting`, and `old` may
    /// be, too.
    public func onStateChange(
        @_inheritActorContext _ handler: (@Sendable @isolated(any) (StateChange) -> Void)?
    ) {
        set(\.stateChanged, Handler(handler))
    }

    /// Called with errors that the server reports, and with those of calls without `throws`.
    public func onError(
        @_inheritActorContext _ handler: (@Sendable @isolated(any) (PusherError) -> Void)?
    ) {
        set(\.error, Handler(handler))
    }

    /// Called with each channel whose subscription the server has confirmed.
    public func onSubscribed(
        @_inheritActorContext _ handler: (@Sendable @isolated(any) (PusherChannel) -> Void)?
    ) {
        set(\.subscribed, Handler(handler))
    }

    /// Called with each channel that could not be subscribed.
    public func onSubscriptionFailed(
        @_inheritActorContext _ handler: (
            @Sendable @isolated(any) (PusherChannel, Failure) -> Void
        )?
    ) {
        set(\.subscriptionFailed, Handler(handler))
    }

    /// Called with the channel, the name and the data of each event that could not be decrypted.
    public func onDecryptionFailed(
        @_inheritActorContext _ handler: (
            @Sendable @isolated(any) (PusherChannel, _ eventName: String, _ data: String?) -> Void
        )?
    ) {
        set(\.decryptionFailed, Handler(handler))
    }

    /// Called with a line for each message and each decision, without secrets.
    public func onDebugLog(
        @_inheritActorContext _ handler: (@Sendable @isolated(any) (String) -> Void)?
    ) {
        set(\.debug, Handler(handler))
        connection.dispatcher.setDebugHandler(forDelegate: delegate != nil)
    }

    private func set<Value>(
        _ path: any WritableKeyPath<PusherDispatcher.State, Value> & Sendable, _ value: Value
    ) where Value: Sendable {
        connection.dispatcher.state.withLock { $0[keyPath: path] = value }
    }
}
