// Names of early versions of PusherSwift. Those of its last version are the names of this library.

extension Pusher {
    /// `bind(_:)` with a label.
    @_disfavoredOverload
    @discardableResult
    public func bind(
        @_inheritActorContext callback: @escaping @Sendable @isolated(any) (Any?) -> Void,
        _: Void = ()
    ) -> String {
        bind(callback)
    }
}

extension PusherClientOptions {
    /// The options with `encrypted` instead of `useTLS`, as before version 7.
    public init(
        authMethod: AuthMethod = .noMethod, attemptToReturnJSONObject: Bool = true,
        autoReconnect: Bool = true, host: PusherHost = .defaultHost, port: Int? = nil,
        encrypted: Bool, activityTimeout: Double? = nil
    ) {
        self.init(
            authMethod: authMethod, attemptToReturnJSONObject: attemptToReturnJSONObject,
            autoReconnect: autoReconnect, host: host, port: port, useTLS: encrypted,
            activityTimeout: activityTimeout)
    }
}
