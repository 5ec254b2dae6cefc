internal import Engine
internal import Session
import Synchronization
import Wire

/// The handlers of a connection, its channels, and the tasks that wait for it. The engine's
/// connection retains this object, so a running handler can outlive its `Pusher`.
final class PusherDispatcher: Sendable {
    typealias Failed = Handler<@Sendable (PusherChannel, Pusher.Failure) -> Void>

    struct State {
        weak var delegate: (any PusherDelegate)?
        var stateChanged: Handler<@Sendable (Pusher.StateChange) -> Void>?
        var error: Handler<@Sendable (PusherError) -> Void>?
        var subscribed: Handler<@Sendable (PusherChannel) -> Void>?
        var subscriptionFailed: Failed?
        var decryptionFailed: Handler<@Sendable (PusherChannel, String, String?) -> Void>?
        var debug: Handler<@Sendable (String) -> Void>?
        var signedIn: Handler<@Sendable (String, String) -> Void>?
        var signInFailed: Handler<@Sendable (Pusher.Failure) -> Void>?
        var watchlist: Handler<@Sendable (PusherUser.WatchlistEvent) -> Void>?
        var registration: Handler<@Sendable (Result<String, RealtimeError>) -> Void>?
        var interests: Handler<@Sendable (NativePusher.Change, RealtimeError?) -> Void>?
        var userDataFetcher: (@MainActor @Sendable () -> PusherPresenceChannelMember)?
    }

    let state = Mutex(State())
    /// Wait for the connection.
    let waiters = TaskWaiters()
    private let queues: HandlerQueues
    private let parsesData: Bool
    private let stateHub: StateHub<ConnectionState>
    /// The connection's, because each use of an unowned reference costs as much as a small event.
    let copy: PusherEventCopy?
    /// It retains this object and outlives every handler.
    unowned let connection: Engine.PusherConnection?

    init(
        _ connection: Engine.PusherConnection?, _ options: PusherClientOptions,
        _ stateHub: StateHub<ConnectionState>
    ) {
        self.connection = connection
        copy = connection?.copy
        self.stateHub = stateHub
        parsesData = options.attemptToReturnJSONObject
        queues = HandlerQueues(
            on: options.executor, options.maxBufferedEvents, options.maxBufferedBytes,
            loop: connection?.loop
        ) { [weak connection] in try? connection?.resume() }
    }

    /// Runs a handler on the actor to which it is isolated, otherwise on the user's executor.
    func run(
        on isolation: (any Actor)?, count: Int = 0, _ body: @escaping @Sendable () -> Void
    ) {
        let full = queues.run(on: isolation, count: count, body)
        guard let full else { return }
        try? connection?.pause()
        // If the queue was emptied meanwhile, `resume` was called before there was a pause.
        if !full.isPaused { try? connection?.resume() }
    }

    /// Calls the delegate, if there is one, on the main actor.
    func delegate(_ call: @escaping @MainActor @Sendable (any PusherDelegate) -> Void) {
        guard state.withLock({ $0.delegate != nil }) else { return }
        run(on: MainActor.shared) { [self] in
            guard let delegate = state.withLock({ $0.delegate }) else { return }
            MainActor.assumeIsolated { call(delegate) }
        }
    }

    /// Calls one of the handlers that were set.
    func call<Each>(
        _ handler: any KeyPath<State, Handler<Each>?> & Sendable,
        _ body: @escaping @Sendable (Each) -> Void
    ) {
        guard let handler = state.withLock({ $0[keyPath: handler] }) else { return }
        run(on: handler.isolation) { body(handler.call) }
    }

    /// The form of a callback without an event object that takes an event.
    func plainData(
        _ callback: @escaping @Sendable @isolated(any) (Any?) -> Void
    ) -> Handler<@Sendable (PusherEvent) -> Void> {
        let callback = Handler(escaping: callback)
        let parsesData = parsesData
        return Handler(callback.isolation) { callback.call($0.plainData(parsed: parsesData)) }
    }

    // MARK: Reports

    /// Reports an error of a call without `throws`.
    func report(_ error: RealtimeError, channel: String? = nil) {
        notify(PusherError(nil, error.message, channelName: channel))
    }

    func notify(_ error: PusherError) {
        delegate { $0.receivedError(error: error) }
        call(\.error) { $0(error) }
    }

    func notify(_ change: Pusher.StateChange) {
        stateHub.update { change.new }
        if change.new == .connected { waiters.resumeAll(.success(())) }
        if change.new == .disconnected {
            failWaiters(
                change.error ?? RealtimeError(.closed, "the Pusher connection was closed"))
        }
        delegate { $0.changedConnectionState(from: change.old, to: change.new) }
        call(\.stateChanged) { $0(change) }
    }

    /// Ends the waits of tasks, unless the connection is made again: then they wait for that.
    private func failWaiters(_ error: RealtimeError) {
        guard let connection else { return }
        // The state may change by the end of the turn.
        try? connection.loop.post { [self] in
            guard connection.state == .disconnected else { return }
            waiters.resumeAll(.failure(error))
            for channel in PusherChannels(connection).all {
                channel.waiters.resumeAll(.failure(error))
            }
        }
    }

    func notify(subscribed channel: PusherChannel) {
        channel.state.withLock { $0.failure = nil }
        channel.waiters.resumeAll(.success(()))
        delegate { $0.subscribedToChannel(name: channel.name) }
        call(\.subscribed) { $0(channel) }
    }

    func notify(_ failure: Pusher.Failure, of channel: PusherChannel) {
        channel.state.withLock { $0.failure = failure.error }
        channel.waiters.resumeAll(.failure(failure.error))
        delegate {
            $0.failedToSubscribeToChannel(
                name: channel.name, response: failure.error.response, data: failure.body,
                error: failure.error)
        }
        call(\.subscriptionFailed) { $0(channel, failure) }
    }

    func notify(undecryptable event: String, _ data: String?, of channel: PusherChannel) {
        delegate {
            $0.failedToDecryptEvent(eventName: event, channelName: channel.name, data: data)
        }
        call(\.decryptionFailed) { $0(channel, event, data) }
    }

    func notify(_ line: String) {
        call(\.debug) { $0(line) }
        delegate { [self] delegate in
            if !DebugLogUse.takes(line, delegate) { setDebugHandler(forDelegate: false) }
        }
    }

    func notify<Value: Sendable>(
        _ value: Value, _ channel: PusherChannel,
        _ handlers: any KeyPath<PusherChannel.State, [Handler<@Sendable (Value) -> Void>]>
            & Sendable
    ) {
        for handler in channel.state.withLock({ $0[keyPath: handlers] }) {
            run(on: handler.isolation) { [weak channel] in
                // As for bound callbacks: none after unsubscribe.
                if channel?.isRegistered == true { handler.call(value) }
            }
        }
    }

    /// Called when the connection is released. Handlers that wait for the executor do not run.
    func close(_ loop: Loop) {
        queues.close()
        do {
            try loop.post { [queues] in queues.finish() }
        } catch {
            queues.finish()
        }
        // Released outside the lock, because the end of a handler's user may call us.
        let old = state.withLock { exchange(&$0, with: State()) }
        withExtendedLifetime(old) {}
        let closed = RealtimeError(.closed, "the Pusher connection was released")
        waiters.resumeAll(.failure(closed))
    }
}
