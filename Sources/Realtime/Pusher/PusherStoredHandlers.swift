// Handlers that are not Sendable, such as closures that the program has stored in a variable. They
// run on the main actor. Closures that are written in the call are taken by the other forms.
extension Pusher {
    /// Receives a member that came or left; not Sendable.
    public typealias StoredMemberHandler = (PusherPresenceChannelMember) -> Void

    /// Subscribes to a channel with stored handlers; see
    /// `subscribe(_:auth:onMemberAdded:onMemberRemoved:onSubscriptionCountChanged:)`.
    /// - Parameters:
    ///   - onMemberAdded: evaluated on the main actor, and called there.
    ///   - onMemberRemoved: likewise.
    @_disfavoredOverload
    @discardableResult
    public func subscribe(
        _ channelName: String, auth: PusherAuth? = nil,
        onMemberAdded: @autoclosure @escaping @MainActor () -> StoredMemberHandler? = nil,
        onMemberRemoved: @autoclosure @escaping @MainActor () -> StoredMemberHandler? = nil
    ) -> PusherChannel {
        subscribe(
            channelName, auth: auth, onMemberAdded: stored(onMemberAdded),
            onMemberRemoved: stored(onMemberRemoved))
    }

    /// Subscribes to a presence channel with stored handlers; see `subscribe`.
    @_disfavoredOverload
    @discardableResult
    public func subscribeToPresenceChannel(
        channelName: String, auth: PusherAuth? = nil,
        onMemberAdded: @autoclosure @escaping @MainActor () -> StoredMemberHandler? = nil,
        onMemberRemoved: @autoclosure @escaping @MainActor () -> StoredMemberHandler? = nil
    ) -> PusherPresenceChannel {
        subscribeToPresenceChannel(
            channelName: channelName, auth: auth, onMemberAdded: stored(onMemberAdded),
            onMemberRemoved: stored(onMemberRemoved))
    }

    private func stored(
        _ handler: @escaping @MainActor () -> StoredMemberHandler?
    ) -> PusherChannel.MemberHandler {
        let stored = MainActorValue(handler)
        return { @MainActor member in stored.value?(member) }
    }
}
