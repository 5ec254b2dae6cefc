internal import Engine
import Synchronization
public import Wire

/// The connection of a `Pusher`: its state, its channels, and what can be set while it runs. The
/// connection ends with the last reference to it, or to its `Pusher`.
public final class PusherConnection: Sendable {
    public let key: String
    /// After `Pusher.close` without functions.
    public var options: PusherClientOptions { held.withLock { $0 } }
    private let held: Mutex<PusherClientOptions>
    /// Why the options cannot be used; nil if they can.
    public let configurationError: RealtimeError?
    /// The registered channels.
    public var channels: PusherChannels { PusherChannels(engine) }

    /// nil if the options cannot be used.
    let engine: Engine.PusherConnection?
    let dispatcher: PusherDispatcher
    /// Whether `engine.push` has its handlers.
    private let isPushReady = Mutex(false)
    /// Retained, because a loop ends, with everything on it, when its last reference is released.
    private let loop: Loop
    private let stateHub: StateHub<ConnectionState>
    private let limits: Mutex<(attempts: Int?, gap: Double?)>

    init(_ key: String, _ options: PusherClientOptions, on loop: Loop) {
        self.key = key
        held = Mutex(options)
        self.loop = loop
        limits = Mutex((options.reconnectAttemptsMax, options.maxReconnectGapInSeconds))
        let made = Result { () throws(RealtimeError) in try options.connection(key, on: loop) }
        (engine, configurationError) =
            switch made {
            case .success(let engine): (engine, nil)
            case .failure(let error): (nil, error)
            }
        stateHub = StateHub(.disconnected)
        dispatcher = PusherDispatcher(engine, options, stateHub)
        dispatcher.addHandlers(PusherAuthorizer(options, dispatcher))
    }

    deinit { close() }

    /// Ends the connection for good, and releases all that captures objects of the program.
    func close() {
        engine?.close()
        dispatcher.close(loop)
        stateHub.finish(.disconnected)
        let old = held.withLock { options in
            defer { options.releaseFunctions() }
            return options
        }
        withExtendedLifetime(old) {}
    }

    // MARK: Settings

    /// Called on the main actor. Not retained.
    public var delegate: (any PusherDelegate)? {
        get { dispatcher.state.withLock { $0.delegate } }
        set {
            dispatcher.state.withLock { $0.delegate = newValue }
            dispatcher.setDebugHandler(forDelegate: newValue != nil)
        }
    }

    /// Returns the user's id and data for presence channels, when `AuthMethod.inline` signs. Called
    /// on the main actor. Without it the socket id is the user's id.
    public var userDataFetcher: (@MainActor @Sendable () -> PusherPresenceChannelMember)? {
        get { dispatcher.state.withLock { $0.userDataFetcher } }
        set { dispatcher.state.withLock { $0.userDataFetcher = newValue } }
    }

    /// How many reconnects in a row may fail before the connection gives up; nil means no limit.
    public var reconnectAttemptsMax: Int? {
        get { limits.withLock { $0.attempts } }
        set { setLimits { $0.attempts = newValue } }
    }

    /// The longest delay between attempts; nil means no limit.
    public var maxReconnectGapInSeconds: Double? {
        get { limits.withLock { $0.gap } }
        set { setLimits { $0.gap = newValue } }
    }

    /// Negative values count as 0.
    private func setLimits(_ change: (inout (attempts: Int?, gap: Double?)) -> Void) {
        let (attempts, gap) = limits.withLock { limits in
            change(&limits)
            return limits
        }
        do {
            try engine?.setReconnectLimits(
                max: attempts.map { max(0, $0) }, gap: gap.map { .seconds($0) })
        } catch {
            dispatcher.report(error)
        }
    }

    /// Called before the first use of `engine.push`.
    func preparePush() {
        isPushReady.withLock { isReady in
            guard !isReady else { return }
            isReady = true
            if let push = engine?.push { dispatcher.addHandlers(to: push) }
        }
    }

    // MARK: State

    public var connectionState: ConnectionState {
        engine.map { ConnectionState($0.state) } ?? .disconnected
    }

    /// The present state and each change of it; the `disconnected` of `Pusher.close` is the last
    /// one.
    public var states: StateSequence<ConnectionState> { StateSequence(hub: stateHub) }

    /// The server's name for this connection; nil while it is not connected.
    public var socketId: String? { engine?.socketID }

    /// The number of failed attempts in a row.
    public var reconnectAttempts: Int { engine?.reconnectAttempts ?? 0 }

    /// The URL to which the connection is made; "" if the options cannot be used.
    public var url: String { (try? engine?.url()) ?? "" }

    // MARK: Use

    /// Connects, unless it is connected or about to be. Without a network it waits for one, in the
    /// state `.reconnecting`; with one, an attempt that it waits for is made at once. Errors in the
    /// options are reported by `PusherDelegate.receivedError`.
    public func connect() {
        do throws(RealtimeError) {
            try started()
        } catch {
            dispatcher.report(error)
        }
    }

    private func started() throws(RealtimeError) {
        if let configurationError { throw configurationError }
        try engine?.connect()
    }

    /// Connects, unless it is connected or about to be, and waits until it is connected.
    /// - Throws: `RealtimeError`: why the connection was given up, or `.closed` if it was closed
    ///   meanwhile; `CancellationError`, which does not end the connection.
    public func connected() async throws {
        try await dispatcher.waiters.wait {
            do throws(RealtimeError) {
                try started()
            } catch {
                return .failure(error)
            }
            return connectionState == .connected ? .success(()) : nil
        }
    }

    /// Ends the connection with a closing handshake. Channels and callbacks are kept for the next
    /// `connect`.
    public func disconnect() { try? engine?.disconnect() }

    /// Reports what the program knows about the network, in addition to what the connection
    /// observes itself. A connection that is open is checked. If the network is reachable and the
    /// connection waits for its next attempt, it makes it at once. If it is not, no attempt is made
    /// until it is, and `connect` waits.
    public func networkChanged(isReachable: Bool) {
        try? engine?.networkChanged(isReachable: isReachable)
    }

    /// Reports that the network is back, as `networkChanged(isReachable: true)` does.
    public func retryNow() { try? engine?.retryNow() }

    // MARK: Channels

    func subscribe(
        _ name: String, _ auth: PusherAuth?, presence: Bool,
        _ handlers: (inout PusherChannel.State) -> Void
    ) -> PusherChannel {
        do throws(RealtimeError) {
            if let configurationError { throw configurationError }
            guard let engine else { throw PusherChannel.gone(name) }
            guard !presence || PusherChannelType(name: name) == .presence else {
                throw RealtimeError(
                    .invalidArgument,
                    "\"\(name)\" is not the name of a presence channel, which begins with "
                        + "\"presence-\"")
            }
            let answer = try auth.map { auth throws(RealtimeError) in
                try auth.answer(for: PusherChannelName(name, maximumLength: 0).kind).get()
            }
            return try engine.subscribe(name, answer: answer) { handle in
                let channel = dispatcher.channel(handle) ?? make(name, handle)
                handle.companion = channel
                channel.state.withLock {
                    $0.failure = nil
                    handlers(&$0)
                }
                return channel
            }
        } catch {
            return refused(name, error, presence: presence, handlers)
        }
    }

    private func make(
        _ name: String, _ handle: PusherChannelHandle?, failure: RealtimeError? = nil,
        presence: Bool = false
    ) -> PusherChannel {
        presence || PusherChannelType(name: name) == .presence
            ? PusherPresenceChannel(name, handle, of: self, failure: failure)
            : PusherChannel(name, handle, of: self, failure: failure)
    }

    /// Returns a channel that is not registered, and reports why.
    private func refused(
        _ name: String, _ error: RealtimeError, presence: Bool,
        _ handlers: (inout PusherChannel.State) -> Void
    ) -> PusherChannel {
        let channel = make(name, nil, failure: error, presence: presence)
        channel.state.withLock { handlers(&$0) }
        let failure = Pusher.Failure(error)
        // Never inside this call.
        try? loop.post { [dispatcher] in dispatcher.notify(failure, of: channel) }
        return channel
    }
}

/// The registered channels of a connection.
public struct PusherChannels: Sendable {
    private let engine: Engine.PusherConnection?

    init(_ engine: Engine.PusherConnection?) { self.engine = engine }

    /// All of them, in the order in which they were subscribed.
    public var all: [PusherChannel] {
        engine?.allChannels.compactMap { $0.companion as? PusherChannel } ?? []
    }

    public func find(name: String) -> PusherChannel? {
        engine?.channel(named: name)?.companion as? PusherChannel
    }

    /// - Returns: nil also for a channel of another kind.
    public func findPresence(name: String) -> PusherPresenceChannel? {
        find(name: name) as? PusherPresenceChannel
    }
}
