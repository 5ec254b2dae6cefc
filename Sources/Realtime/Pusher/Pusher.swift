internal import Engine

/// A client of Pusher Channels, or of a server that speaks the same protocol. Its names are those
/// of PusherSwift.
///
///     let pusher = Pusher(key: "KEY", options: PusherClientOptions(host: .cluster("eu")))
///     let orders = pusher.subscribe("orders")
///     orders.bind(eventName: "created") { (event: PusherEvent) in print(event.data ?? "") }
///     pusher.connect()
///
/// or with await:
///
///     for await event in pusher.subscribe("orders").events("created") { print(event.json) }
///
/// Callbacks run one at a time, on the main actor unless `PusherClientOptions.executor` names
/// another place. A closure that is isolated to an actor runs on that actor. Releasing the last
/// reference drops the connection. All members may be used on any thread.
public final class Pusher: Sendable {
    public let connection: PusherConnection

    /// Creates a client; `connect` connects it. Options that cannot be used are reported by
    /// `connect` and `connected`, and by `PusherConnection.configurationError`.
    /// - Parameter key: the app's key, which is not secret.
    public init(
        key: String, options: PusherClientOptions = PusherClientOptions(), on loop: Loop = .shared
    ) {
        connection = PusherConnection(key, options, on: loop)
    }

    /// Called on the main actor. Not retained.
    public var delegate: (any PusherDelegate)? {
        get { connection.delegate }
        set { connection.delegate = newValue }
    }

    // MARK: The connection

    /// Connects; see `PusherConnection.connect`.
    public func connect() { connection.connect() }

    /// Connects and waits until it is connected; see `PusherConnection.connected`.
    public func connected() async throws { try await connection.connected() }

    /// Ends the connection; see `PusherConnection.disconnect`.
    public func disconnect() { connection.disconnect() }

    /// Drops the connection for good, without a closing handshake, and ends its channels. No
    /// further callback begins. All callbacks are released, and with them what they capture, such
    /// as this object. Also called when the last reference is released.
    public func close() { connection.close() }

    // MARK: Channels

    /// Subscribes to a channel, now or as soon as the connection is established, and again after
    /// each reconnect. A second call returns the same channel, adds its handlers and, if the
    /// subscription has failed, tries it again. A name that cannot be used is reported like another
    /// failure.
    /// - Parameters:
    ///   - channelName: its prefix decides the kind: `private-`, `private-encrypted-`, `presence-`.
    ///   - auth: permission for this connection's socket id, used once.
    ///   - onMemberAdded: called with each member that comes to the presence channel.
    ///   - onMemberRemoved: called with each member that leaves it.
    ///   - onSubscriptionCountChanged: called with the number of subscribers.
    @discardableResult
    public func subscribe(
        _ channelName: String, auth: PusherAuth? = nil,
        @_inheritActorContext onMemberAdded: PusherChannel.MemberHandler? = nil,
        @_inheritActorContext onMemberRemoved: PusherChannel.MemberHandler? = nil,
        @_inheritActorContext onSubscriptionCountChanged:
            (@Sendable @isolated(any) (Int) -> Void)? = nil
    ) -> PusherChannel {
        connection.subscribe(channelName, auth, presence: false) { state in
            if let handler = Handler(onMemberAdded) { state.memberAdded.append(handler) }
            if let handler = Handler(onMemberRemoved) { state.memberRemoved.append(handler) }
            if let handler = Handler(onSubscriptionCountChanged) {
                state.countChanged.append(handler)
            }
        }
    }

    /// Subscribes to a presence channel; see `subscribe`.
    /// - Parameter channelName: begins with `presence-`.
    @discardableResult
    public func subscribeToPresenceChannel(
        channelName: String, auth: PusherAuth? = nil,
        @_inheritActorContext onMemberAdded: PusherChannel.MemberHandler? = nil,
        @_inheritActorContext onMemberRemoved: PusherChannel.MemberHandler? = nil
    ) -> PusherPresenceChannel {
        let channel = connection.subscribe(channelName, auth, presence: true) { state in
            if let handler = Handler(onMemberAdded) { state.memberAdded.append(handler) }
            if let handler = Handler(onMemberRemoved) { state.memberRemoved.append(handler) }
        }
        guard let channel = channel as? PusherPresenceChannel else {
            preconditionFailure("a presence channel has its own class")
        }
        return channel
    }

    /// Ends a subscription: no callback of the channel is called any more.
    public func unsubscribe(_ channelName: String) {
        _ = try? connection.engine?.unsubscribe(channelName)
    }

    /// Ends all subscriptions.
    public func unsubscribeAll() { try? connection.engine?.unsubscribeAll() }

    // MARK: Callbacks for all events

    /// Binds a callback to all events: those of all channels, and of the connection.
    /// - Parameter callback: receives a `[String: Any]` with `event`, `channel` if there is one,
    ///   and `data`, which is text, or an object for `pusher:error`. A closure without the type of
    ///   its parameter receives a `PusherEvent` instead.
    /// - Returns: an id for `unbind`.
    @discardableResult
    public func bind(
        @_inheritActorContext _ callback: @escaping @Sendable @isolated(any) (Any?) -> Void,
        _: Void = ()  // Without it such closures are ambiguous.
    ) -> String {
        let callback = Handler(escaping: callback)
        let call = callback.call
        return bind(nil, Handler(callback.isolation) { @Sendable in call($0.plainMessage) })
    }

    /// Binds a callback to all events: those of all channels, and of the connection.
    /// - Returns: an id for `unbind`.
    @discardableResult
    public func bind(
        @_inheritActorContext eventCallback:
            @escaping @Sendable @isolated(any) (PusherEvent) -> Void
    ) -> String {
        bind(nil, Handler(escaping: eventCallback))
    }

    /// Binds a callback to an event of any channel.
    /// - Parameter eventName: the exact name.
    /// - Returns: an id for `unbind`.
    @discardableResult
    public func bind(
        eventName: String,
        @_inheritActorContext eventCallback:
            @escaping @Sendable @isolated(any) (PusherEvent) -> Void
    ) -> String {
        bind(eventName, Handler(escaping: eventCallback))
    }

    private func bind(
        _ event: String?, _ handler: Handler<@Sendable (PusherEvent) -> Void>
    ) -> String {
        let id = try? connection.engine?.bind(event, connection.dispatcher.bound(handler))
        return id.map { String($0) } ?? ""
    }

    /// Removes a callback. On the thread or actor where the callback runs, it is not called any
    /// more; for another one, a call that has begun may end later.
    public func unbind(callbackId: String) {
        if let id = UInt64(callbackId) { connection.engine?.bindings.remove(id) }
    }

    /// Removes all callbacks for all events. Those of channels are kept.
    public func unbindAll() { connection.engine?.bindings.removeAll() }
}
