package import Session
import Synchronization
package import Wire

/// Called with an event, with its channel if it has one, and with its own binding.
package typealias PusherHandler = PusherBinding<PusherChannelHandle>.Handle

/// A binding's own object for a channel, which the channel's handle keeps until it ends.
package protocol PusherChannelCompanion: AnyObject, Sendable {
    /// Called once, when the channel is unsubscribed or its connection is freed.
    func ended()
}

/// The connection of channels.
protocol PusherChannelOwner: AnyObject, Sendable {
    var loop: Loop { get }
    /// A number for a new binding, larger than those before.
    func newBinding() -> UInt64
    func trigger(
        _ channel: PusherChannelHandle, _ event: String, _ data: UnsafeRawBufferPointer
    ) throws(RealtimeError)
    func unsubscribe(_ channel: PusherChannelHandle) throws(RealtimeError)
}

/// A channel from its subscribe to its unsubscribe. Any thread may call it, also afterwards.
package final class PusherChannelHandle: PusherRegistration {
    package let channel: PusherChannelName
    /// Numbers the connection's handles from 1.
    package let number: UInt64
    /// nil once it is unsubscribed or the connection is freed.
    private let owner: Mutex<(any PusherChannelOwner)?>
    private let shared = Mutex(PublishedState())
    private let lastCompanion = Mutex<(any PusherChannelCompanion)?>(nil)
    package let bindings = PusherBindings<PusherChannelHandle>()

    /// What the caller may read at any time.
    struct PublishedState {
        var state = PusherChannelState.idle
        var subscriptionCount: Int?
        var members = PusherMembers.none
    }

    init(_ channel: PusherChannelName, _ number: UInt64, of owner: any PusherChannelOwner) {
        self.channel = channel
        self.number = number
        self.owner = Mutex(owner)
    }

    /// The connection's loop; nil once the channel is unsubscribed.
    package var loop: Loop? { owner.withLock { $0?.loop } }
    package var name: String { channel.text }
    package var kind: PusherChannelKind { channel.kind }

    // MARK: State

    package var state: PusherChannelState { shared.withLock { $0.state } }
    package var isSubscribed: Bool { state == .subscribed }
    /// False once it is unsubscribed or the connection is freed.
    package var isRegistered: Bool { owner.withLock { $0 != nil } }
    /// The last count that the server sent; nil before the first.
    package var subscriptionCount: Int? { shared.withLock { $0.subscriptionCount } }
    /// The members of a presence channel; empty while it is not subscribed.
    package var members: PusherMembers { shared.withLock { $0.members } }

    func publish(_ change: (inout PublishedState) -> Void) { shared.withLock { change(&$0) } }

    /// nil for none, and once the channel has ended.
    package var companion: (any PusherChannelCompanion)? {
        get { lastCompanion.withLock { $0 } }
        set { lastCompanion.withLock { $0 = newValue } }
    }

    // MARK: Use

    /// Binds a handler to an event, or to all events of the channel.
    /// - Parameters:
    ///   - event: nil for all.
    ///   - ended: called once, when the handler is unbound.
    /// - Returns: its number in `bindings`.
    package func bind(
        _ event: String?, ended: (() -> Void)? = nil, _ handle: @escaping PusherHandler
    ) throws(RealtimeError) -> UInt64 {
        let id = try connection().newBinding()
        guard bindings.add(id, event, ended: ended, handle) else { throw gone }
        return id
    }

    /// Sends a client event, once the channel is subscribed.
    /// - Parameter data: a JSON text.
    package func trigger(
        _ event: String, _ data: UnsafeRawBufferPointer
    ) throws(RealtimeError) {
        try connection().trigger(self, event, data)
    }

    /// Has no effect if it is unsubscribed.
    package func unsubscribe() throws(RealtimeError) {
        try owner.withLock { $0 }?.unsubscribe(self)
    }

    /// - Throws: `.state` once the channel is unsubscribed.
    private func connection() throws(RealtimeError) -> any PusherChannelOwner {
        guard let connection = owner.withLock({ $0 }) else { throw gone }
        try connection.loop.checkNotForked()
        return connection
    }

    private var gone: RealtimeError {
        RealtimeError(.state, "the channel \(name.quoted(upTo: 60)) is not subscribed any more")
    }

    /// Ends it: no handler is called from now on.
    /// - Returns: whether it was registered.
    @discardableResult
    func end() -> Bool {
        let owner = owner.withLock { exchange(&$0, with: nil) }
        bindings.removeAll(forGood: true)
        publish {
            $0.state = .idle
            $0.members = PusherMembers.none
        }
        lastCompanion.withLock { exchange(&$0, with: nil) }?.ended()
        return owner != nil
    }
}
