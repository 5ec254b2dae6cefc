internal import Engine
internal import Session
import Synchronization
public import Wire

/// The kind of a channel, as PusherSwift names them.
public enum PusherChannelType: Sendable {
    /// A private channel, encrypted or not.
    case `private`
    case presence
    /// A public channel.
    case normal

    public init(name: String) {
        if name.utf8.starts(with: "presence-".utf8) {
            self = .presence
        } else if name.utf8.starts(with: "private-".utf8) {
            self = .private
        } else {
            self = .normal
        }
    }
}

/// A channel from its subscribe to its unsubscribe. Afterwards its functions have no effect.
///
/// Handlers run on the actor to which they are isolated, all others on
/// `PusherClientOptions.executor`. All members may be used on any thread.
///
/// Unchecked because it has a subclass; its fields do not change, except the weak reference, which
/// becomes nil.
public class PusherChannel: @unchecked Sendable {
    /// Receives a member that came or left.
    public typealias MemberHandler =
        @Sendable @isolated(any) (PusherPresenceChannelMember) -> Void

    struct State {
        /// Why the last subscription failed.
        var failure: RealtimeError?
        var memberAdded: [Handler<@Sendable (PusherPresenceChannelMember) -> Void>] = []
        var memberRemoved: [Handler<@Sendable (PusherPresenceChannelMember) -> Void>] = []
        var countChanged: [Handler<@Sendable (Int) -> Void>] = []
    }

    public let name: String
    public let type: PusherChannelType
    public private(set) weak var connection: PusherConnection?
    /// nil if the channel could never be registered.
    let handle: PusherChannelHandle?
    let dispatcher: PusherDispatcher
    let waiters = TaskWaiters()
    let state: Mutex<State>

    init(
        _ name: String, _ handle: PusherChannelHandle?, of connection: PusherConnection,
        failure: RealtimeError? = nil
    ) {
        self.name = name
        self.handle = handle
        self.connection = connection
        type = PusherChannelType(name: name)
        dispatcher = connection.dispatcher
        state = Mutex(State(failure: failure))
    }

    /// Whether the server has confirmed the subscription, and the connection was not lost since.
    public var isSubscribed: Bool { handle?.isSubscribed ?? false }

    /// False after unsubscribe, and if the name was refused.
    public var isRegistered: Bool { handle?.isRegistered ?? false }

    /// Whether the name begins with `private-encrypted-`: only the subscribers can read the events.
    public var isEncrypted: Bool { name.utf8.starts(with: "private-encrypted-".utf8) }

    /// The number of subscribers that the server sent last; nil before the first.
    public var subscriptionCount: Int? { handle?.subscriptionCount }

    // MARK: Handlers

    /// Binds a callback to an event.
    /// - Parameters:
    ///   - eventName: the exact name.
    ///   - callback: receives the event's data: the parsed JSON or, if it is not JSON or
    ///     `attemptToReturnJSONObject` is false, the text. A closure without a label and without
    ///     the type of its parameter receives a `PusherEvent` instead.
    /// - Returns: an id for `unbind`.
    @discardableResult
    public func bind(
        eventName: String,
        @_inheritActorContext callback: @escaping @Sendable @isolated(any) (Any?) -> Void,
        _: Void = ()  // Without it such closures are ambiguous.
    ) -> String {
        bind(eventName, dispatcher.plainData(callback))
    }

    /// Binds a callback to an event.
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

    /// Binds a callback to all events of the channel.
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
        let id = try? handle?.bind(event, dispatcher.bound(handler))
        return id.map { String($0) } ?? ""
    }

    /// Removes a callback. On the thread or actor where the callback runs, it is not called any
    /// more; for another one, a call that has begun may end later.
    public func unbind(eventName: String, callbackId: String) { unbind(callbackId: callbackId) }

    /// Removes a callback. On the thread or actor where the callback runs, it is not called any
    /// more; for another one, a call that has begun may end later.
    public func unbind(callbackId: String) {
        if let id = UInt64(callbackId) { handle?.bindings.remove(id) }
    }

    /// Removes the callbacks of an event.
    public func unbindAll(forEventName eventName: String) {
        handle?.bindings.removeAll(of: eventName)
    }

    /// Removes all callbacks.
    public func unbindAll() { handle?.bindings.removeAll() }

    /// Adds a handler of the number of subscribers, which some servers send.
    public func onSubscriptionCountChanged(
        @_inheritActorContext _ handler: @escaping @Sendable @isolated(any) (Int) -> Void
    ) {
        let handler = Handler(escaping: handler)
        state.withLock { $0.countChanged.append(handler) }
    }

    // MARK: Client events

    /// Sends an event to the other subscribers of a private or presence channel, once it is
    /// subscribed. Errors, such as a name without `client-`, are reported like those of the server:
    /// see `PusherDelegate.receivedError`.
    /// - Parameter data: dictionaries with `String` keys, arrays, strings, numbers, booleans,
    ///   `JSONValue`, nil.
    public func trigger(eventName: String, data: Any?) {
        guard let json = JSONValue(any: data) else {
            return dispatcher.report(
                RealtimeError(
                    .invalidArgument,
                    "the data of the client event \"\(eventName)\" has a value that JSON cannot"
                        + " express"), channel: name)
        }
        do {
            try trigger(eventName, json)
        } catch {
            dispatcher.report(error, channel: name)
        }
    }

    /// Sends an event to the other subscribers of a private or presence channel, once it is
    /// subscribed. Until then up to 100 events wait.
    /// - Parameter event: a name that begins with `client-`.
    /// - Throws: `RealtimeError`: `.invalidArgument` for another name or kind of channel, `.state`
    ///   after unsubscribe, `.bufferFull` if 8 MiB wait to be sent, `.tooLarge` for an event above
    ///   8 MiB.
    public func trigger(_ event: String, _ data: JSONValue) throws(RealtimeError) {
        guard let handle else { throw PusherChannel.gone(name) }
        let text = Array(try data.text.utf8)
        try text.withUnsafeBufferPointer { text throws(RealtimeError) in
            try handle.trigger(event, UnsafeRawBufferPointer(text))
        }
    }

    static func gone(_ name: String) -> RealtimeError {
        RealtimeError(.closed, "the channel \"\(name)\" is not registered any more")
    }

    /// Ends the subscription: no callback of this channel is called any more.
    public func unsubscribe() { try? handle?.unsubscribe() }
}

extension PusherChannel: PusherChannelCompanion {
    func ended() {
        waiters.resumeAll(.failure(PusherChannel.gone(name)))
        // Released outside the lock, because the end of what they captured may call us.
        let old = state.withLock { state in
            defer { (state.memberAdded, state.memberRemoved, state.countChanged) = ([], [], []) }
            return (state.memberAdded, state.memberRemoved, state.countChanged)
        }
        withExtendedLifetime(old) {}
    }
}

/// A presence channel, which knows its members.
public final class PusherPresenceChannel: PusherChannel, @unchecked Sendable {
    /// The members; empty while the channel is not subscribed.
    public var members: [PusherPresenceChannelMember] {
        handle?.members.table.members.map { PusherPresenceChannelMember($0) } ?? []
    }

    /// The user's own id; nil while the channel is not subscribed.
    public var myId: String? { handle?.members.myID }

    /// The user; nil while the channel is not subscribed.
    public func me() -> PusherPresenceChannelMember? { myId.flatMap { findMember(userId: $0) } }

    public func findMember(userId: String) -> PusherPresenceChannelMember? {
        handle?.members.table[userId].map { PusherPresenceChannelMember($0) }
    }

    /// Adds a handler of members that come. It is not called for those that are there at first.
    public func onMemberAdded(@_inheritActorContext _ handler: @escaping MemberHandler) {
        let handler = Handler(escaping: handler)
        state.withLock { $0.memberAdded.append(handler) }
    }

    /// Adds a handler of members that leave.
    public func onMemberRemoved(@_inheritActorContext _ handler: @escaping MemberHandler) {
        let handler = Handler(escaping: handler)
        state.withLock { $0.memberRemoved.append(handler) }
    }
}
