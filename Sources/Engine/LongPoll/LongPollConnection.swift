import CShims
package import Session
import Synchronization
package import Wire

/// A long poll on a loop: the hands to `LongPollSession`'s brain. Calls come from any thread; its
/// own work (LongPollDriver.swift) happens on the loop's.
///
/// Unchecked because its plain fields belong to the loop's owner (see `Loop.enter`).
package final class LongPollConnection: @unchecked Sendable {
    package let loop: Loop

    // Any thread.
    let options: StagedOptions<LongPollConfiguration>
    private let stateNumber = Atomic<Int32>(LongPollState.connecting.rawValue)
    let gate = DeliveryGate()
    private let sharedHandlers = SharedHandlers(LongPollHandlers())
    private let sharedID = Mutex("")

    // The loop's owner only.
    /// As they were when the poll began.
    @exclusivity(unchecked) var configuration: LongPollConfiguration
    @exclusivity(unchecked) var handlers = LongPollHandlers()
    @exclusivity(unchecked) var session: LongPollSession?
    var transfer: HTTPTransfer?
    let timer = LoopTimer()
    var upkeep = HTTPSourceUpkeep()
    /// The answer's body as it comes.
    @exclusivity(unchecked) var body = ByteBuffer()
    /// What is being delivered, or waits for the end of a pause.
    @exclusivity(unchecked) var delivery: LongPollDelivery?
    var isDelivering = false
    /// What the open handler is to be told, until it is.
    var opening: Shared<Opened>?
    /// `restart` was called while an answer was being delivered.
    var restartsAfterDelivery = false
    /// Messages of the answer that were told.
    @exclusivity(unchecked) var told = 0

    package init(url: String, on loop: Loop) throws(RealtimeError) {
        try loop.checkUsable()
        self.loop = loop
        let configuration = try LongPollConfiguration(url: url)
        self.configuration = configuration
        options = StagedOptions(configuration, of: "long poll")
    }

    // MARK: What it is; any thread

    package var state: LongPollState {
        if loop.isClosed.load(ordering: .acquiring) { return .closed }
        return LongPollState(rawValue: stateNumber.load(ordering: .acquiring)) ?? .closed
    }

    /// Whether `start` was called.
    package var wasStarted: Bool { options.isStarted }

    /// As it was set last.
    package var url: String { options.read { $0.configuration.url.text } }

    /// Of the last message delivered, or of the option; "" for none.
    package var lastEventID: String { sharedID.withLock { $0 } }

    func setState(_ state: LongPollState) {
        stateNumber.store(state.rawValue, ordering: .releasing)
    }

    func publish(id: String) { sharedID.withLock { $0 = id } }

    /// Whether it was closed, or given back, as it is with its loop.
    var isClosed: Bool {
        gate.isClosed || loop.isClosed.load(ordering: .acquiring)
    }

    var mayDeliver: Bool { gate.isOpen && !loop.isClosed.load(ordering: .acquiring) }

    // MARK: Options and handlers

    /// Changes options: before start, in a handler that says so, or while credentials are awaited.
    package func configure(_ change: (inout LongPollConfiguration) throws -> Void) throws {
        try changeOptions { options in
            try change(&options.configuration)
            if !options.isStarted { publish(id: options.configuration.lastEventID ?? "") }
        }
    }

    /// Changes options that are taken when it is started: the cursor begins with the id. Before
    /// start alone.
    package func configureOnce(_ change: (inout LongPollConfiguration) throws -> Void) throws {
        try loop.checkUsable()
        try options.changeOnce { options in
            try change(&options.configuration)
            publish(id: options.configuration.lastEventID ?? "")
        }
    }

    private func changeOptions(
        _ change: (inout StagedOptions<LongPollConfiguration>.State) throws -> Void
    ) throws {
        try loop.checkUsable()
        try options.change(isAsked: loop.isOwner && upkeep.mayReconfigure, change)
    }

    /// Changes where the next poll goes; as `configure`.
    package func setURL(_ url: String) throws {
        let url = try HTTPURL(parsing: url, as: .http)
        try configure { $0.url = url }
    }

    /// Whether the server can be reached is asked here; nil asks the loop's own.
    package func setReachability(_ reachability: Reachability?) throws {
        guard reachability.map({ $0.loop === loop }) ?? true else {
            throw RealtimeError(
                .invalidArgument, "the reachability belongs to another loop than the long poll")
        }
        try changeOptions { $0.reachability = reachability }
    }

    /// Changes handlers, at any time.
    package func setHandlers(_ change: (inout LongPollHandlers) -> Void) throws(RealtimeError) {
        try loop.checkUsable()
        sharedHandlers.change(change)
        loop.perform { [self] in handlersChanged() }
    }

    /// In the message handler: the message carries an id inside, which goes before the answer's.
    func found(id: String) { session?.found(id: id) }

    /// In the message handler: the message is a batch without one.
    func foundNothing() { told -= 1 }

    /// The handlers as they are now, for the loop's thread.
    func takeHandlers() { handlers = sharedHandlers.current }

    /// Lets go of all handlers: nothing is told any more.
    func dropHandlers() {
        let old = handlers
        sharedHandlers.change { $0 = LongPollHandlers() }
        takeHandlers()
        withExtendedLifetime(old) {}
    }

    // MARK: Use; any thread

    /// Begins to poll; nothing is told inside this call.
    package func start() throws(RealtimeError) {
        try loop.checkUsable()
        guard !isClosed else { throw RealtimeError(.closed, "the long poll is closed") }
        let session = try options.start { configuration throws(RealtimeError) in
            try LongPollSession(configuration)
        }
        loop.perform { [self] in begin(session) }
    }

    /// Drops the poll in flight and polls at once; also when credentials have come.
    package func restart() throws(RealtimeError) {
        try checkRunning()
        // In the next turn: what fails at once would be told inside this call.
        loop.enqueue { [self] in restartNow() }
    }

    /// Answers what had been left open when credentials were asked for: fresh ones are set, or the
    /// object fails. Any thread.
    /// - Parameter cause: why there are none; nil for the server's refusal.
    package func credentialsAreReady(
        _ fresh: Bool, because cause: RealtimeError? = nil
    ) throws(RealtimeError) {
        try checkRunning()
        // In the next turn: what fails at once would be told inside this call.
        loop.enqueue { [self] in credentialsCame(fresh, because: cause) }
    }

    private func checkRunning() throws(RealtimeError) {
        try loop.checkUsable()
        guard wasStarted else { throw RealtimeError(.state, "the long poll was not started") }
        guard state != .closed else { throw RealtimeError(.closed, "the long poll is closed") }
    }

    /// Ends it for good, without a callback. Closing again changes nothing.
    package func close() {
        guard !loop.isForked else { return }
        let isFirst = gate.close()
        setState(.closed)
        guard isFirst else { return }
        loop.perform { [self] in closeNow() }
    }

    /// Stops delivering; no further poll is made before what came is delivered. Any thread; from
    /// another than the loop's one message may still come.
    package func pause() throws(RealtimeError) {
        try loop.checkUsable()
        gate.pause()
    }

    package func resume() throws(RealtimeError) {
        try loop.checkUsable()
        // In the next turn, as handlers are called by turns alone, and none inside another.
        if gate.resume() { loop.enqueue { [self] in deliver() } }
    }
}
