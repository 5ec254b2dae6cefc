import CShims
package import Session
import Synchronization
package import Wire

/// A connection to a Pusher server on a loop: does the I/O for `PusherSession`. Any thread may call
/// it; its work (PusherDriver.swift) runs on the loop's thread.
///
/// Unchecked because its plain fields belong to the loop's owner (see `Loop.enter`).
package final class PusherConnection:
    ClientDriver<PusherSession, PusherConfiguration, PusherHandlers>, PusherChannelOwner,
    PusherAuthorizationOwner, @unchecked Sendable
{
    // Any thread.
    private let shared = Mutex(PublishedState())
    private let registry = Mutex(Registry())
    private let lastBinding = Atomic<UInt64>(0)
    /// The client events that are not sent yet.
    private let unsentEvents = PusherUnsentEvents()
    /// The handlers of all events.
    package let bindings = PusherBindings<PusherChannelHandle>()
    /// The handlers of the user's events.
    package let userBindings = PusherBindings<PusherChannelHandle>()
    private let lazyPush = AtomicLazyReference<PushInterests>()

    // The loop's owner only.
    @exclusivity(unchecked) var socket: WebSocketLeg?
    /// The number of the socket.
    @exclusivity(unchecked) var socketNumber: UInt64 = 0
    @exclusivity(unchecked) var reader = PusherEnvelopeReader()
    @exclusivity(unchecked) var batch = PusherBatch()
    package let copy = PusherEventCopy()
    /// Makes the requests for authorization.
    var authorizer: RESTClient?
    /// The client's numbers of requests, by the session's.
    var authorizations: [UInt64: UInt64] = [:]

    /// State that the caller may read at any time.
    struct PublishedState {
        var state = PusherState.disconnected
        /// A connection is, or was, wanted.
        var wasWanted = false
        /// Calls of `disconnect` that the loop has not seen yet.
        var disconnects = 0
        var socketID: String?
        var reconnectAttempts = 0
        /// Of the last connection.
        var opened: Opened?
        var userID: String?
        /// What the program has reported about the network before the connection is used.
        var reportedNetwork: Bool?
        /// Calls of `signOut` that the loop has not seen yet.
        var signOuts = 0
        /// Tells how much waits for the server.
        var webSocket: WebSocketConnection?
    }

    /// The channels for the program: what it has subscribed and not unsubscribed. The session's
    /// channels are those for the server. Both tables are needed: a program's thread gets its
    /// handle at once and under a lock, while the session belongs to the loop's thread, has not
    /// heard of the call yet, and still knows the name's earlier registration until the server has
    /// answered.
    private struct Registry {
        /// By name, in the order of their registration.
        var channels = ByteTable<PusherChannelHandle>()
        var lastNumber: UInt64 = 0
        /// The connection is freed.
        var isEnded = false
    }

    package convenience init(key: String, on loop: Loop) throws(RealtimeError) {
        try loop.checkUsable()
        self.init(try PusherConfiguration(key: key), on: loop)
    }

    private init(_ configuration: PusherConfiguration, on loop: Loop) {
        super.init(PusherSession(configuration), configuration, on: loop)
    }

    // MARK: ClientDriver

    override class var begun: String { "the connection is used" }

    override var isEstablished: Bool {
        !isClosed && shared.withLock { $0.state == .connected && $0.disconnects == 0 }
    }

    override func willReachTime() { noteSentBytes() }

    override func performNext() -> Bool {
        guard let action = session.nextAction() else { return false }
        switch action {
        case .command(let command): perform(command)
        case .report(let report): self.report(report)
        }
        return true
    }

    override func acted() {
        deliverBatch()
        publishState()
    }

    override func setUp() {
        session = PusherSession(configuration)
        reader = PusherEnvelopeReader(maximumBytes: configuration.maxMessageBytes)
    }

    override func noteNetwork() {
        noteSentBytes()
        session.networkChanged(isOnline: isReachable, now: Loop.now(), random: randomFraction())
        let reported = shared.withLock { exchange(&$0.reportedNetwork, with: nil) }
        if let reported { session.hostReportsNetwork(isReachable: reported, now: Loop.now()) }
    }

    override func publishState() {
        guard !isClosed else { return }
        publish {
            $0.state = session.state
            if session.state != .disconnected { $0.wasWanted = true }
            $0.socketID = session.socketID
            $0.reconnectAttempts = session.reconnectAttempts
            $0.userID = session.userID
        }
        switch session.state {
        case .connected: settleOpenings(nil)
        case .disconnected:
            let closed = RealtimeError(.closed, "the connection was disconnected")
            settleOpenings(session.failure ?? closed)
            if connectionState != .idle { inbox?.finish(session.failure ?? closed) }
        case .connecting, .disconnecting, .reconnecting: break
        }
    }

    /// Pauses the socket once the connection is confirmed, or continues.
    override func pauseChanged() {
        guard session.state == .connected else { return }
        socket?.setPaused(isPaused)
        session.setPaused(isPaused, now: Loop.now())
    }

    override func takeHandlers() {
        super.takeHandlers()
        session.wantsLog = handlers.debug != nil
    }

    // MARK: State; any thread

    package var state: PusherState {
        loop.isClosed.load(ordering: .acquiring) ? .disconnected : shared.withLock { $0.state }
    }

    package var connectionState: ConnectionState {
        if isClosed { return .closed }
        return shared.withLock { shared -> ConnectionState in
            shared.state == .disconnected && !shared.wasWanted ? .idle : shared.state.common
        }
    }

    /// What the server calls this connection; nil while it is not connected.
    package var socketID: String? { shared.withLock { $0.socketID } }

    /// The server's response that opened the last connection, and that connection; nil before the
    /// first one.
    package var opened: Opened? { shared.withLock { $0.opened } }

    /// Failed attempts in a row.
    package var reconnectAttempts: Int { shared.withLock { $0.reconnectAttempts } }

    /// The user who is signed in; nil for none.
    package var userID: String? { shared.withLock { $0.signOuts > 0 ? nil : $0.userID } }

    /// The URL of the WebSocket, with its port.
    /// - Throws: `.invalidArgument` or `.invalidURL` for options that make none.
    package func url() throws(RealtimeError) -> String {
        try options.read { options throws(RealtimeError) in try options.pointee.urlText }
    }

    func publish(_ change: (inout PublishedState) -> Void) { shared.withLock { change(&$0) } }

    // MARK: Connecting; any thread

    /// Connects, or makes the next attempt at once.
    /// - Throws: as `url`.
    package func connect() throws(RealtimeError) { try connect {} }

    /// Connects, and waits until the server has confirmed the connection.
    /// - Parameter timeout: nil for no limit. After a timeout the connection keeps trying.
    /// - Throws: `.timeout`; `.closed` after `disconnect`; as `url`; what ended the attempts.
    package func connect(timeout: Duration?) throws(RealtimeError) {
        try waitUntilOpen(timeout) { (answer) throws(RealtimeError) in
            try connect { [self] in awaitOpening(answer) }
        }
    }

    /// - Parameter then: called on the loop's thread before anything else can happen.
    private func connect(_ then: @escaping () -> Void) throws(RealtimeError) {
        try checkOpen()
        _ = try url()
        start()
        onLoop { [self] in
            session.connect(now: Loop.now())
            inbox?.reopen()
            then()
        }
    }

    /// Ends the connection and all attempts. Channels and handlers stay.
    package func disconnect() throws(RealtimeError) {
        try checkOpen()
        guard wasStarted else { return }
        publish { $0.disconnects += 1 }
        onLoop { [self] in
            noteSentBytes()
            session.disconnect(now: Loop.now())
            publish {
                $0.state = session.state
                $0.disconnects -= 1
            }
        }
    }

    /// Takes over what the program knows about the network.
    package func networkChanged(isReachable: Bool) throws(RealtimeError) {
        try checkOpen()
        guard wasStarted else { return publish { $0.reportedNetwork = isReachable } }
        onLoop { [self] in
            noteSentBytes()
            session.hostReportsNetwork(isReachable: isReachable, now: Loop.now())
        }
    }

    /// The caller knows that the network is back.
    package func retryNow() throws(RealtimeError) { try networkChanged(isReachable: true) }

    /// Changes the limits of reconnecting, at any time.
    /// - Parameters:
    ///   - max: attempts in a row; nil for no limit.
    ///   - gap: the longest delay between them; nil for no limit.
    package func setReconnectLimits(max: Int?, gap: Duration?) throws(RealtimeError) {
        try checkOpen()
        guard wasStarted else {
            return try configure { (options) throws(RealtimeError) in
                options.reconnectAttemptsMax = max
                options.maxReconnectGap = gap
            }
        }
        onLoop { [self] in session.configureRetries(max: max, gap: gap) }
    }

    // MARK: Channels; any thread

    /// Subscribes to a channel as soon as the connection is established, and again after each loss.
    /// - Parameters:
    ///   - name: if the channel is registered, this returns its handle; a failed subscription is
    ///     then tried again.
    ///   - answer: an authorization to use once.
    ///   - prepare: called with the handle before anything about it is reported, under the lock of
    ///     the registered channels. It may set the handle's companion.
    /// - Returns: the result of `prepare`.
    /// - Throws: `.invalidArgument` for a name that Pusher would refuse, `.system` for an encrypted
    ///   channel if libsodium is not installed.
    package func subscribe<Prepared: Sendable>(
        _ name: String, answer: PusherAuthorizationAnswer? = nil,
        _ prepare: (PusherChannelHandle) -> Prepared
    ) throws(RealtimeError) -> Prepared {
        try checkOpen()
        let longest = options.read { $0.pointee.maxChannelNameLength }
        let channel = try PusherChannelName(name, maximumLength: longest)
        if channel.kind == .encrypted { try PusherSecretBox.checkLibrary() }
        start()
        let found = registry.withLock { registry -> (PusherChannelHandle, Prepared)? in
            if registry.isEnded { return nil }
            if let handle = registry.channels[name] { return (handle, prepare(handle)) }
            registry.lastNumber += 1
            let handle = PusherChannelHandle(channel, registry.lastNumber, of: self)
            registry.channels[name] = handle
            return (handle, prepare(handle))
        }
        guard let (handle, prepared) = found else {
            throw RealtimeError(.closed, "the connection is closed")
        }
        onLoop { [self] in subscribeNow(handle, answer) }
        return prepared
    }

    package func subscribe(
        _ name: String, answer: PusherAuthorizationAnswer? = nil
    ) throws(RealtimeError) -> PusherChannelHandle {
        try subscribe(name, answer: answer) { $0 }
    }

    /// - Returns: false if no such channel is registered.
    @discardableResult
    package func unsubscribe(_ name: String) throws(RealtimeError) -> Bool {
        try checkOpen()
        guard let handle = channel(named: name) else { return false }
        try unsubscribe(handle)
        return true
    }

    package func unsubscribeAll() throws(RealtimeError) {
        try checkOpen()
        for handle in allChannels { try unsubscribe(handle) }
    }

    func unsubscribe(_ handle: PusherChannelHandle) throws(RealtimeError) {
        try checkOpen()
        registry.withLock { registry in
            if registry.channels[handle.name] === handle { registry.channels[handle.name] = nil }
        }
        guard handle.end() else { return }
        onLoop { [self] in unsubscribeNow(handle) }
    }

    /// The registered channel of this name.
    package func channel(named name: String) -> PusherChannelHandle? {
        registry.withLock { $0.channels[name] }
    }

    /// All registered channels, in the order in which they were.
    package var allChannels: [PusherChannelHandle] {
        registry.withLock { $0.channels.values }
    }

    func trigger(
        _ handle: PusherChannelHandle, _ event: String, _ data: UnsafeRawBufferPointer
    ) throws(RealtimeError) {
        try checkOpen()
        try PusherEventName.checkClientEvent(event)
        guard handle.channel.allowsClientEvents else {
            throw RealtimeError(
                .invalidArgument,
                "client events are sent only to private and presence channels, and not to"
                    + " \(handle.name.quoted(upTo: 60))")
        }
        let data = try JSONText(checking: data)
        let written = shared.withLock { $0.webSocket }?.bufferedBytes ?? 0
        let room = try unsentEvents.take(
            event.utf8.count + handle.name.utf8.count + data.bytes.count, besides: written,
            for: handle.name)
        onLoop { [self] in
            session.trigger(handle.number, event, data, room: room, now: Loop.now())
        }
    }

    /// Ends all channels and bindings for good.
    func endHandles() {
        let handles = registry.withLock { registry in
            defer { registry.channels.removeAll() }
            registry.isEnded = true
            return registry.channels.values
        }
        for handle in handles { handle.end() }
        bindings.removeAll(forGood: true)
        userBindings.removeAll(forGood: true)
    }

    func newBinding() -> UInt64 { lastBinding.add(1, ordering: .relaxed).newValue }

    // MARK: The user, and push notifications; any thread

    /// Signs the user in, now or with the next connection, and again after each loss.
    /// - Parameter call: gets the next result, on the loop's thread. It is released without one
    ///   when the connection is freed.
    package func signIn(_ call: (any PusherSignInCall)? = nil) throws(RealtimeError) {
        try checkOpen()
        start()
        onLoop { [self] in session.signIn(call, now: Loop.now()) }
    }

    /// Ends what `signIn` began, and delivers no more events for the user.
    package func signOut() throws(RealtimeError) {
        try checkOpen()
        guard wasStarted else { return }
        publish { $0.signOuts += 1 }
        onLoop { [self] in
            session.signOut(now: Loop.now())
            publish {
                $0.userID = session.userID
                $0.signOuts -= 1
            }
        }
    }

    /// Push notifications, which are independent of the connection.
    package var push: PushInterests {
        if let push = lazyPush.load() { return push }
        let new = PushInterests(options.read { $0.pointee }, on: loop)
        try? new.setReachability(options.reachability)
        let push = lazyPush.storeIfNil(new)
        // The connection may have been freed meanwhile.
        if isClosed { push.close() }
        return push
    }

    var pushIfUsed: PushInterests? { lazyPush.load() }

    // MARK: The end

    /// Passes on the answer to a request for authorization. Any thread.
    func authorized(_ number: UInt64, _ outcome: PusherAuthorizationOutcome) {
        guard !loop.isForked else { return }
        onLoop { [self] in
            session.authorized(number, outcome, now: Loop.now())
        }
    }

    override func closing() {
        publish { $0 = PublishedState() }
        // Now, because handles retain the connection, and the loop may end before `closeNow` runs.
        endHandles()
    }

    override func closeNow() {
        dropSocket()
        authorizer?.close()
        pushIfUsed?.close()
        // The client's handlers retain this object.
        authorizer = nil
        authorizations = [:]
        batch.removeAll()
        // Without its channels and their keys.
        session = PusherSession(configuration)
        super.closeNow()
        endHandles()
    }
}
