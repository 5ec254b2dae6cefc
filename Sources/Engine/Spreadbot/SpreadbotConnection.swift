import CShims
package import Session
import Synchronization
package import Wire

/// A Spreadbot connection on a loop: the hands to `SpreadbotSession`'s brain. Calls come from any
/// thread; its own work (SpreadbotDriver.swift) happens on the loop's.
///
/// Unchecked because its plain fields belong to the loop's owner (see `Loop.enter`).
package final class SpreadbotConnection: @unchecked Sendable {
    package let loop: Loop

    // Any thread.
    let options: StagedOptions<SpreadbotConfiguration>
    let gate = DeliveryGate()
    private let sharedHandlers = SharedHandlers(SpreadbotHandlers())
    private let shared: Mutex<Shared>
    private let lastNumber = Atomic<UInt64>(0)
    private let lastEpoch = Atomic<UInt64>(0)

    // The loop's owner only.
    /// As they were at the first use.
    @exclusivity(unchecked) var configuration: SpreadbotConfiguration
    @exclusivity(unchecked) var handlers = SpreadbotHandlers()
    @exclusivity(unchecked) var session: SpreadbotSession
    @exclusivity(unchecked) var leg: SpreadbotLeg?
    var probe: SpreadbotLeg?
    let timer = LoopTimer()
    var reachability: Reachability?
    var isActing = false
    var isScheduled = false
    var isResident = false
    var hasBegun = false
    /// Establishments whose end is still to be told, by number, and the last one that was told.
    var epochs: [UInt64] = []
    package internal(set) var endedEpoch: UInt64 = 0
    /// Who waits for the end of an establishment.
    var endObservers: [(epoch: UInt64, tell: () -> Void)] = []
    /// Posts messages; its requests wait for tokens with the session.
    var sender: RESTClient?
    /// Spends refresh tokens.
    var refresher: RESTClient?
    /// Clients of the user's whose requests carry the tokens.
    var clients: [ClientReference] = []
    /// The number that `sender` knows the request under way by.
    var posting: UInt64?
    /// Counts requests that were begun for sends.
    var lastPost: UInt64 = 0
    /// Answers that are told with the end of their send.
    var results: [SpreadbotSend.ID: RESTResult] = [:]
    /// Who is told of the end of one send, before the sent handler.
    var completions: [UInt64: (SpreadbotSent) -> Void] = [:]
    /// What another run has left in the outbox, until the beginning.
    var left: [SpreadbotSend] = []
    /// Keeps sends until the server has them; any thread once it is set.
    private(set) var outbox: OutboxFile?
    /// The event of messages without one, with a NUL behind it.
    @exclusivity(unchecked) var pathText: ContiguousArray<UInt8> = [0]
    /// The cursor, and the event of a message that has its own, in the same way.
    @exclusivity(unchecked) var idText: ContiguousArray<UInt8> = [0]
    @exclusivity(unchecked) var eventText: ContiguousArray<UInt8> = [0]

    struct ClientReference {
        weak var client: RESTClient?
    }

    /// What the caller may ask for at any time.
    struct Shared {
        var state = SpreadbotState.disconnected
        var phase = SpreadbotPhase.none
        var transport: SpreadbotTransport?
        var lastEventID = ""
        var accessToken = ""
        var refreshToken = ""
        /// What was established last.
        var path: String?
    }

    package init(base: String, on loop: Loop) throws(RealtimeError) {
        try loop.checkUsable()
        self.loop = loop
        let configuration = try SpreadbotConfiguration(base: base)
        self.configuration = configuration
        options = StagedOptions(configuration, of: "connection", until: "used")
        session = SpreadbotSession(configuration)
        shared = Mutex(Shared())
    }

    // MARK: What it is; any thread

    package var state: SpreadbotState {
        loop.isClosed.load(ordering: .acquiring) ? .disconnected : shared.withLock { $0.state }
    }

    package var phase: SpreadbotPhase { shared.withLock { $0.phase } }

    /// Of the leg in use or tried last; nil before and after.
    package var transport: SpreadbotTransport? { shared.withLock { $0.transport } }

    /// Of the last message delivered that had one; "" for none.
    package var lastEventID: String {
        isUsed
            ? shared.withLock { $0.lastEventID } : options.read { $0.configuration.lastEventID }
    }

    package var tokens: (access: String, refresh: String) {
        isUsed
            ? shared.withLock { ($0.accessToken, $0.refreshToken) }
            : options.read { ($0.configuration.accessToken, $0.configuration.refreshToken) }
    }

    func publish(_ change: (inout Shared) -> Void) { shared.withLock { change(&$0) } }

    private var isUsed: Bool { options.isStarted }

    /// The establishment that events are of; the loop's owner only.
    package var currentEpoch: UInt64 { epochs.last ?? endedEpoch }

    /// Whether it was given back, as it is with its loop.
    var isClosed: Bool {
        gate.isClosed || loop.isClosed.load(ordering: .acquiring)
    }

    var isPaused: Bool { gate.isPaused }

    // MARK: Options and handlers

    /// Changes options, before the first use.
    package func configure(_ change: (inout SpreadbotConfiguration) throws -> Void) throws {
        try changeOptions { try change(&$0.configuration) }
    }

    private func changeOptions(
        _ change: (inout StagedOptions<SpreadbotConfiguration>.State) throws -> Void
    ) throws {
        try loop.checkUsable()
        try options.change(isAsked: false, change)
    }

    /// Whether the server can be reached is asked here; nil asks the loop's own.
    package func setReachability(_ reachability: Reachability?) throws {
        guard reachability.map({ $0.loop === loop }) ?? true else {
            throw RealtimeError(
                .invalidArgument, "the reachability belongs to another loop than the connection")
        }
        try changeOptions { $0.reachability = reachability }
    }

    /// Changes handlers, at any time.
    package func setHandlers(_ change: (inout SpreadbotHandlers) -> Void) throws(RealtimeError) {
        try loop.checkUsable()
        sharedHandlers.change(change)
        loop.perform { [self] in takeHandlers() }
    }

    /// The handlers as they are now, for the loop's thread.
    func takeHandlers() { handlers = sharedHandlers.current }

    /// Lets go of all handlers: nothing is told any more.
    func dropHandlers() {
        let old = handlers
        sharedHandlers.change { $0 = SpreadbotHandlers() }
        takeHandlers()
        withExtendedLifetime(old) {}
    }

    // MARK: Use; any thread

    /// Connects to a path below the base, in place of what is there. Cursor and tokens are kept;
    /// another path than before begins without a cursor.
    /// - Parameter assigned: told the number of this establishment before anything of it is told.
    package func establish(
        path: String, assigned: (UInt64) -> Void = { _ in }
    ) throws(RealtimeError) {
        try checkOpen()
        let configuration = options.read { $0.configuration }
        for transport in configuration.transports {
            _ = try configuration.url(of: transport, path: path)
        }
        start()
        publish { $0.path = path }
        let epoch = lastEpoch.add(1, ordering: .relaxed).newValue
        assigned(epoch)
        perform { [self] in establishNow(path, epoch) }
    }

    /// Ends the connection; the disconnected handler tells when. It may be established again.
    /// - Parameter ended: called on the loop's thread once that was told, at once when nothing is
    ///   established.
    package func disconnect(ended: (@Sendable () -> Void)? = nil) throws(RealtimeError) {
        try checkOpen()
        guard isUsed else {
            ended?()
            return
        }
        perform { [self] in
            if let ended {
                guard let epoch = epochs.last, !isClosed else { return ended() }
                endObservers.append((epoch, ended))
            }
            session.disconnect(now: Loop.now())
            schedule()
        }
    }

    /// Sets tokens in the place of those there are, from the next attempt and request on.
    package func setTokens(access: String, refresh: String) throws {
        try checkOpen()
        guard isUsed else {
            return try configure { try $0.setTokens(access: access, refresh: refresh) }
        }
        var probe = options.read { $0.configuration }
        try probe.setTokens(access: access, refresh: refresh)
        publish { ($0.accessToken, $0.refreshToken) = (access, refresh) }
        perform { [self] in
            session.setTokens(access: access, refresh: refresh, now: Loop.now())
            // Requests that follow this call carry them.
            setCredential(session.credential)
            schedule()
        }
    }

    /// Keeps sends in a file until the server has them, over the end of the process too. What
    /// another run has left there goes out first. Before the first use.
    /// - Throws: `.busy` while another connection or process has it open, `.store`.
    package func setOutbox(_ path: String) throws {
        try changeOptions { _ in
            guard outbox == nil else { throw RealtimeError(.state, "an outbox is set already") }
            let (outbox, entries) = try OutboxFile.open(path)
            self.outbox = outbox
            left = entries.map { entry in
                SpreadbotSend(entry, number: lastNumber.add(1, ordering: .relaxed).newValue)
            }
        }
    }

    /// Sends a message by the WebSocket, or by a POST where there is none. With an outbox it is on
    /// the disk when this returns.
    /// - Parameters:
    ///   - assigned: told the number that the sent handler tells its end by, before that can be
    ///     called.
    ///   - done: told its end, before the sent handler.
    /// - Throws: with an outbox also `.queueFull`, `.tooLarge`, `.store`, and `.closed` before
    ///   anything is established.
    package func send(
        _ kind: MessageKind, _ bytes: UnsafeRawBufferPointer,
        assigned: (UInt64) -> Void = { _ in }, done: ((SpreadbotSent) -> Void)? = nil
    ) throws(RealtimeError) {
        try checkOpen()
        if kind == .text, !UTF8Validator.isValid(bytes) {
            throw RealtimeError(.invalidUTF8, "the text to send is not valid UTF-8")
        }
        var path: String?
        if outbox != nil {
            path = shared.withLock { $0.path }
            guard path != nil else {
                throw RealtimeError(
                    .closed, "there is no path to send to: no connection was established")
            }
        }
        try submit(kind == .text ? .text : .binary, Array(bytes), path, assigned, done)
    }

    /// Posts to a path below the base, in one order with the messages that are sent.
    /// - Throws: as `send`; for a path that makes no URL, and a type that fits no header.
    package func post(
        path: String, contentType: String, _ bytes: UnsafeRawBufferPointer,
        assigned: (UInt64) -> Void = { _ in }, done: ((SpreadbotSent) -> Void)? = nil
    ) throws(RealtimeError) {
        try checkOpen()
        _ = try options.read { $0.configuration }.url(path: path)
        try HeaderField.validate(name: "Content-Type", value: contentType)
        let kind = SpreadbotSend.Kind.request(path: path, contentType: contentType)
        try submit(kind, Array(bytes), nil, assigned, done)
    }

    private func submit(
        _ kind: SpreadbotSend.Kind, _ payload: [UInt8], _ path: String?,
        _ assigned: (UInt64) -> Void, _ done: ((SpreadbotSent) -> Void)?
    ) throws(RealtimeError) {
        let key = randomUUID()
        let entry = try outbox?.append(OutboxMessage(kind, payload, path, key))
        start()
        let number = lastNumber.add(1, ordering: .relaxed).newValue
        assigned(number)
        let send = SpreadbotSend(
            number: number, kind: kind, payload: payload, path: path, key: key, entry: entry)
        perform { [self] in
            guard !isClosed else {
                let error = RealtimeError(.closed, "the connection was given back")
                done?(SpreadbotSent(number: number, error: error, result: nil))
                return
            }
            if let done { completions[number] = done }
            session.submit(send, now: Loop.now())
            schedule()
        }
    }

    /// Whether sends outlive the process.
    package var isDurable: Bool { outbox != nil }

    /// Ends a send that waits or is being posted, whose end the sent handler tells; a frame that
    /// was given to the WebSocket is left alone.
    package func cancel(_ number: UInt64) throws(RealtimeError) {
        try checkOpen()
        perform { [self] in
            session.cancel(number)
            schedule()
        }
    }

    /// Stops delivering; the server is slowed down. Any thread; from another than the loop's one
    /// message may still come.
    package func pause() throws(RealtimeError) {
        try checkOpen()
        if gate.pause() { perform { [self] in pauseNow() } }
    }

    package func resume() throws(RealtimeError) {
        try checkOpen()
        if gate.resume() { perform { [self] in resumeNow() } }
    }

    /// It is used: what is performed next begins.
    func start() { _ = options.start() }

    /// Runs on the loop's thread, behind the beginning once it was started.
    func perform(_ work: @escaping () -> Void) {
        loop.perform { [self] in
            // Another thread's call may come before that of the one that started.
            let begins = !hasBegun && isUsed
            if begins { begin() }
            work()
            guard begins, !isClosed else { return }
            session.pump()
            schedule()
        }
    }

    func checkOpen() throws(RealtimeError) {
        try loop.checkUsable()
        guard !isClosed else { throw RealtimeError(.closed, "the connection is closed") }
    }

    /// Gives it back: no callback begins after this returned, except on the loop's thread one that
    /// had begun.
    package func close() {
        guard !loop.isForked else { return }
        guard gate.close() else { return }
        publish { ($0.state, $0.phase, $0.transport) = (.disconnected, .none, nil) }
        // Now, so that another may open it.
        outbox?.close()
        loop.perform { [self] in closeNow() }
    }
}
