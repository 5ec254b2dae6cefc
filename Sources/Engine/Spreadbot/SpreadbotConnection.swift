import CShims
package import Session
import Synchronization
package import Wire

/// A Spreadbot connection on a loop: the hands to `SpreadbotSession`'s brain. Calls come from any
/// thread; its own work (SpreadbotDriver.swift) happens on the loop's.
///
/// Unchecked because its plain fields belong to the loop's owner (see `Loop.enter`).
package final class SpreadbotConnection:
    ActionDriver<SpreadbotSession, SpreadbotConfiguration, SpreadbotHandlers>, @unchecked Sendable
{
    // Any thread.
    private let shared = Mutex(Shared())
    private let lastNumber = Atomic<UInt64>(0)
    private let lastEpoch = Atomic<UInt64>(0)

    // The loop's owner only.
    @exclusivity(unchecked) var leg: SpreadbotLeg?
    var probe: SpreadbotLeg?
    var reachability: Reachability?
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
    var clients: [RESTClient] = []
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

    package convenience init(base: String, on loop: Loop) throws(RealtimeError) {
        try loop.checkUsable()
        self.init(try SpreadbotConfiguration(base: base), on: loop)
    }

    private init(_ configuration: SpreadbotConfiguration, on loop: Loop) {
        super.init(SpreadbotSession(configuration), configuration, on: loop)
    }

    // MARK: ActionDriver

    override class var begun: String { "the connection is used" }

    override var mayAct: Bool { !isClosed }

    override func performNext() -> Bool {
        guard let action = session.nextAction() else { return false }
        perform(action)
        return true
    }

    override func acted() { publishState() }

    /// Nothing is reported once the loop is freed.
    override func loopClosed() {
        gate.close()
        closeNow()
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
        wasStarted ? shared.withLock { $0.lastEventID } : options.read { $0.pointee.lastEventID }
    }

    package var tokens: (access: String, refresh: String) {
        wasStarted
            ? shared.withLock { ($0.accessToken, $0.refreshToken) }
            : options.read { ($0.pointee.accessToken, $0.pointee.refreshToken) }
    }

    func publish(_ change: (inout Shared) -> Void) { shared.withLock { change(&$0) } }

    /// The establishment that events are of; the loop's owner only.
    package var currentEpoch: UInt64 { epochs.last ?? endedEpoch }

    var isPaused: Bool { gate.isPaused }

    // MARK: Use; any thread

    /// Connects to a path below the base, in place of what is there. Cursor and tokens are kept;
    /// another path than before begins without a cursor.
    /// - Parameter assigned: told the number of this establishment before anything of it is told.
    package func establish(
        path: String, assigned: (UInt64) -> Void = { _ in }
    ) throws(RealtimeError) {
        try checkOpen()
        let configuration = options.read { $0.pointee }
        for transport in configuration.transports {
            _ = try configuration.url(of: transport, path: path)
        }
        start()
        publish { $0.path = path }
        let epoch = lastEpoch.add(1, ordering: .relaxed).newValue
        assigned(epoch)
        inbox?.begin(epoch: epoch)
        onLoop { [self] in establishNow(path, epoch) }
    }

    /// Ends the connection; the disconnected handler tells when. It may be established again.
    /// - Parameter ended: called on the loop's thread once that was told, at once when nothing is
    ///   established.
    package func disconnect(ended: (@Sendable () -> Void)? = nil) throws(RealtimeError) {
        try checkOpen()
        guard wasStarted else {
            ended?()
            return
        }
        onLoop { [self] in
            if let ended {
                guard let epoch = epochs.last, !isClosed else { return ended() }
                endObservers.append((epoch, ended))
            }
            session.disconnect(now: Loop.now())
            schedule()
        }
    }

    /// Sets tokens in the place of those there are, from the next attempt and request on.
    package func setTokens(access: String, refresh: String) throws(RealtimeError) {
        try checkOpen()
        guard wasStarted else {
            return try configure { (options) throws(RealtimeError) in
                try options.setTokens(access: access, refresh: refresh)
            }
        }
        var probe = options.read { $0.pointee }
        try probe.setTokens(access: access, refresh: refresh)
        publish { ($0.accessToken, $0.refreshToken) = (access, refresh) }
        onLoop { [self] in
            session.setTokens(access: access, refresh: refresh, now: Loop.now())
            // Requests that follow this call carry them.
            setCredential(session.credential)
            schedule()
        }
    }

    /// Keeps sends in a file until the server has them, over the end of the process too. What
    /// another run has left there goes out first. Before the first use.
    /// - Throws: `.busy` while another connection or process has it open, `.store`.
    package func setOutbox(_ path: String) throws(RealtimeError) {
        try changeOptions { _ throws(RealtimeError) in
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
        _ = try options.read { $0.pointee }.url(path: path)
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
        onLoop { [self] in
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
        onLoop { [self] in
            session.cancel(number)
            schedule()
        }
    }

    override func pause(_ pause: DeliveryGate.Pause) throws(RealtimeError) {
        try checkOpen()
        if gate.pause(pause) { onLoop { [self] in pauseNow() } }
    }

    override func resume(_ pause: DeliveryGate.Pause) throws(RealtimeError) {
        try checkOpen()
        if gate.resume(pause) { onLoop { [self] in resumeNow() } }
    }

    /// It is used: what is performed next begins.
    func start() { _ = options.start() }

    /// Runs on the loop's thread, behind the beginning once it was started.
    func onLoop(_ work: @escaping () -> Void) {
        loop.perform { [self] in
            // Another thread's call may come before that of the one that started.
            let begins = !hasBegun && wasStarted
            if begins { begin() }
            work()
            guard begins, !isClosed else { return }
            session.pump()
            schedule()
        }
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
