import CShims
package import Session
import Synchronization
package import Wire

/// A Spreadbot connection on a loop: does the I/O for `SpreadbotSession`. Any thread may call it;
/// its work (SpreadbotDriver.swift) runs on the loop's thread.
///
/// Unchecked because its plain fields belong to the loop's owner (see `Loop.enter`).
package final class SpreadbotConnection:
    ClientDriver<SpreadbotSession, SpreadbotConfiguration, SpreadbotHandlers>, @unchecked Sendable
{
    // Any thread.
    private let shared = Mutex(PublishedState())
    private let lastNumber = Atomic<UInt64>(0)
    private let lastEpoch = Atomic<UInt64>(0)

    // The loop's owner only.
    @exclusivity(unchecked) var leg: SpreadbotLeg?
    var probe: SpreadbotLeg?
    /// Numbers of establishments whose end was not reported yet, and of the last one that was.
    var epochs: [UInt64] = []
    package internal(set) var endedEpoch: UInt64 = 0
    /// Callbacks for the end of an establishment.
    var endObservers: [(epoch: UInt64, notify: () -> Void)] = []
    /// Posts messages. If tokens are refused, its requests wait until the session has new ones.
    var sender: RESTClient?
    /// Requests new tokens.
    var refresher: RESTClient?
    /// The user's clients, whose requests carry the tokens.
    var clients: [RESTClient] = []
    /// The current request's number in `sender`.
    var posting: UInt64?
    /// Counts requests that were started for sends.
    var lastPost: UInt64 = 0
    /// The credentials that were sent, also those that were replaced since.
    var sentSecrets = SentSecrets()
    /// Responses to report with the end of their send.
    var results: [SpreadbotSend.ID: RESTResult] = [:]
    /// Callbacks for the end of a single send; called before the sent handler.
    var completions: [UInt64: (SpreadbotSent) -> Void] = [:]
    /// Sends that an earlier run left in the outbox, until `setUp`.
    var leftSends: [SpreadbotSend] = []
    /// Stores sends until the server has them. Any thread once it is set.
    private(set) var outbox: OutboxFile?
    /// The event of messages without one, NUL-terminated.
    @exclusivity(unchecked) var pathText: ContiguousArray<UInt8> = [0]
    /// The cursor, and the event of a message with one, also NUL-terminated.
    @exclusivity(unchecked) var idText: ContiguousArray<UInt8> = [0]
    @exclusivity(unchecked) var eventText: ContiguousArray<UInt8> = [0]

    /// State that the caller may read at any time.
    struct PublishedState {
        var state = SpreadbotState.disconnected
        var isClosing = false
        /// It is, or was, established.
        var wasEstablished = false
        var phase = SpreadbotPhase.none
        var transport: SpreadbotTransport?
        var lastEventID = ""
        var accessToken = ""
        var refreshToken = ""
        /// The path of the last `establish`.
        var path: String?
    }

    package convenience init(base: String, on loop: Loop) throws(RealtimeError) {
        try loop.checkUsable()
        self.init(try SpreadbotConfiguration(base: base), on: loop)
    }

    /// A connection that is never established, because its options cannot be used.
    package convenience init(unusableOn loop: Loop) {
        self.init(SpreadbotConfiguration(), on: loop)
    }

    private init(_ configuration: SpreadbotConfiguration, on loop: Loop) {
        super.init(SpreadbotSession(configuration), configuration, on: loop)
    }

    // MARK: ClientDriver

    override class var begun: String { "the connection is used" }

    override func performNext() -> Bool {
        guard let action = session.nextAction() else { return false }
        switch action {
        case .command(let command): perform(command)
        case .report(let report): self.report(report)
        }
        return true
    }

    override func setUp() {
        session = SpreadbotSession(configuration)
        for send in leftSends { session.restore(send) }
        leftSends = []
    }

    override func noteNetwork() {
        session.networkChanged(isOnline: isReachable, now: Loop.now(), random: randomFraction())
    }

    override func publishState() {
        guard !isClosed else { return }
        var isNew = false
        publish {
            isNew = $0.state != session.state
            $0.state = session.state
            $0.isClosing = session.isClosing
            if session.state != .disconnected { $0.wasEstablished = true }
            $0.phase = session.phase
            $0.transport = session.transport
            $0.lastEventID = session.lastEventID
            $0.accessToken = session.accessToken
            $0.refreshToken = session.refreshToken
        }
        if isNew { stateChanged() }
    }

    override func pauseChanged() { if isPaused { pauseNow() } else { resumeNow() } }

    override func closing() {
        publish { ($0.state, $0.phase, $0.transport) = (.disconnected, .none, nil) }
        stateChanged()
        // Closed now, so that another connection can open it.
        outbox?.close()
    }

    override func closeNow() {
        dropLeg()
        dropProbe()
        sender?.close()
        refresher?.close()
        leaveClients()
        super.closeNow()
        reportEnd(isOver: true)
        abandonSends()
        // The sender's handlers retain this object.
        (sender, refresher) = (nil, nil)
    }

    // MARK: State; any thread

    package var state: SpreadbotState {
        loop.isClosed.load(ordering: .acquiring) ? .disconnected : shared.withLock { $0.state }
    }

    package var connectionState: ConnectionState {
        if isClosed { return .closed }
        return shared.withLock { shared -> ConnectionState in
            switch (shared.state, shared.phase) {
            case (.connected, _): .open
            case (.connecting, .backoff), (.connecting, .offline): .waiting
            case (.connecting, _): .connecting
            case (.disconnected, _):
                shared.isClosing ? .closing : shared.wasEstablished ? .closed : .idle
            }
        }
    }

    package var phase: SpreadbotPhase { shared.withLock { $0.phase } }

    /// The transport of the current or last leg; nil before the first, and after the end.
    package var transport: SpreadbotTransport? { shared.withLock { $0.transport } }

    /// The id of the last delivered message with an id; "" for none.
    package var lastEventID: String {
        wasStarted ? shared.withLock { $0.lastEventID } : options.read { $0.pointee.lastEventID }
    }

    package var tokens: (access: String, refresh: String) {
        wasStarted
            ? shared.withLock { ($0.accessToken, $0.refreshToken) }
            : options.read { ($0.pointee.accessToken, $0.pointee.refreshToken) }
    }

    func publish(_ change: (inout PublishedState) -> Void) { shared.withLock { change(&$0) } }

    /// The establishment that current events belong to. The loop's owner only.
    package var currentEpoch: UInt64 { epochs.last ?? endedEpoch }

    // MARK: Use; any thread

    /// Connects to a path below the base, replacing the current connection. Cursor and tokens are
    /// kept; a different path starts without a cursor.
    /// - Parameter assigned: called with the number of this establishment before any of its
    ///   callbacks.
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

    /// Ends the connection; the disconnected handler reports when. It can be established again.
    /// - Parameter ended: called on the loop's thread after that, or at once if nothing is
    ///   established.
    package func disconnect(ended: (@Sendable () -> Void)? = nil) throws(RealtimeError) {
        try checkOpen()
        guard wasStarted else {
            ended?()
            return
        }
        onLoop { [self] in
            if let ended {
                guard let epoch = epochs.last else { return ended() }
                endObservers.append((epoch, ended))
            }
            session.disconnect(now: Loop.now())
        } ifClosed: {
            ended?()
        }
    }

    /// The caller knows that the network is back: an attempt that waits is made at once, and a ping
    /// checks an open WebSocket.
    package func retryNow() throws(RealtimeError) {
        try checkOpen()
        guard wasStarted else { return }
        onLoop { [self] in
            leg?.retryNow()
            session.retryNow(Loop.now())
        }
    }

    /// Replaces the tokens, from the next attempt and request on.
    package func setTokens(access: String, refresh: String) throws(RealtimeError) {
        try checkOpen()
        guard wasStarted else {
            return try configure { (options) throws(RealtimeError) in
                try options.setTokens(access: access, refresh: refresh)
            }
        }
        var checked = options.read { $0.pointee }
        try checked.setTokens(access: access, refresh: refresh)
        publish { ($0.accessToken, $0.refreshToken) = (access, refresh) }
        onLoop { [self] in
            session.setTokens(access: access, refresh: refresh, now: Loop.now())
            // Requests made after this call carry them.
            setCredential(session.credential)
        }
    }

    /// Stores sends in a file until the server has them, even beyond the end of the process. Sends
    /// that an earlier run left there go out first. Set it before the first use.
    /// - Throws: `.busy` while another connection or process has it open, `.store`.
    package func setOutbox(_ path: String) throws(RealtimeError) {
        try FileName.check(path, "the path of the outbox")
        try changeOptions { _ throws(RealtimeError) in
            guard outbox == nil else { throw RealtimeError(.state, "an outbox is already set") }
            let (outbox, entries) = try OutboxFile.open(path)
            self.outbox = outbox
            leftSends = entries.map { entry in
                SpreadbotSend(entry, number: lastNumber.add(1, ordering: .relaxed).newValue)
            }
        }
    }

    /// Sends a message by the WebSocket, or by a POST if there is none. With an outbox it is on the
    /// disk when this returns.
    /// - Parameters:
    ///   - assigned: called with the number of the send, before the sent handler can be called with
    ///     it.
    ///   - done: called with the result, before the sent handler.
    /// - Throws: with an outbox also `.queueFull`, `.tooLarge`, `.store`, and `.closed` before the
    ///   first `establish`.
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
    /// - Throws: like `send`; also for an invalid path or content type.
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
            if let done { completions[number] = done }
            session.submit(send, now: Loop.now())
        } ifClosed: {
            let error = RealtimeError(.closed, "the connection was freed")
            done?(SpreadbotSent(number: number, error: error, result: nil))
        }
    }

    /// Whether sends outlive the process.
    package var isDurable: Bool { outbox != nil }

    /// Cancels a send that waits or is being posted; the sent handler reports that. Has no effect
    /// on a frame that was passed to the WebSocket.
    package func cancel(_ number: UInt64) throws(RealtimeError) {
        try checkOpen()
        onLoop { [self] in session.cancel(number) }
    }
}
