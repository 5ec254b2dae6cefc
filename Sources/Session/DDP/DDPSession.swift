package import Documents
package import Wire

/// The machine of a Meteor client (DDP): its connection, its calls and their stubs, its
/// subscriptions, its account, and the documents that result. Its driver opens the sockets, runs
/// the stubs and calls the handlers.
///
/// The driver performs the actions of `nextAction` one after the other. Sockets are numbered;
/// reports with an older number are ignored.
package struct DDPSession: ActionMachine, Sendable {
    enum Stage: Equatable {
        /// No connection is wanted.
        case offline
        /// The socket is being opened.
        case dialing(UInt64)
        /// Until the server answers `connect`.
        case greeting(UInt64)
        case connected(UInt64)
        /// Until the next attempt is due, or until there is a network, or the application is in
        /// the foreground.
        case waiting
        case failed
    }

    package let configuration: DDPConfiguration
    /// Whether to make `log` actions.
    package var wantsLog = false
    /// Milliseconds since 1970. The driver sets it before it passes an event.
    package var wallClock: Int64 = 0
    /// The documents. The driver may read them, and observe queries. Nobody sees a part of a flush:
    /// if one is in progress, its documents are finished first.
    package var store: DocumentStore {
        mutating _read {
            if isUnsettled { finishDocuments() }
            yield documents
        }
        _modify {
            if isUnsettled { finishDocuments() }
            yield &documents
        }
    }
    /// Everything but this property's accessors uses `store`.
    private var documents: DocumentStore
    /// Documents are applied in part.
    var isUnsettled = false
    /// The flush that is in progress.
    var flushing: DDPFlush?
    /// How much of a flush is done at once, see `StepBudget`: a few milliseconds.
    package var flushSteps = 16_384

    /// Changed by `enter`, which reports it.
    var stage = Stage.offline
    private var actions = ActionQueue<Action>()
    private var lastSocket: UInt64 = 0
    private var jitter: DDPJitter

    // The connection.
    var attempts: Attempts
    var isInBackground = false
    /// The connection ends, because the application is in the background.
    var backgroundDue: Instant?
    /// The time limit of the attempt.
    var stageDue: Instant?
    var heartbeat = DDPHeartbeat()
    /// `connect` was called.
    var wasWanted = false
    /// What was sent on the current socket; to be set before `timeReached`.
    package var sentBytes = SentBytes()
    var negotiation: DDPNegotiation
    /// The session at the server, and how many of its messages were received.
    var sessionID: String?
    var receivedCount = 0
    /// The calls that the application's handler for new connections makes are added now.
    package internal(set) var isOpening = false
    /// Whether calls that are made while the socket opens go before those that waited. The driver
    /// sets it before it passes a call: only the application's handler for new connections makes
    /// such calls, not another thread that calls meanwhile.
    package var callsGoFirst = true

    // Documents.
    /// The collections whose documents are events, which are reported and not kept.
    var streams: Set<ByteText> = []
    /// The store has refused a document.
    var isFull = false
    var stubs = DDPStubBook()
    /// What happens after the next flush.
    var afterFlush: [DDPVisibility] = []
    /// When documents that wait are applied, unless more arrive.
    var flushDue: Instant?
    /// When they are applied at the latest.
    var flushBy: Instant?
    /// How many documents may be put in order again at once.
    var placingCredit = 0
    var quiescence = DDPQuiescence()
    /// When calls that wait only for each other end; nil if there are none.
    var standstillDue: Instant?
    var scopes: [DDPStubScope] = []
    var keeping = DDPKeeping()
    /// nil: all documents are of this run.
    var stale: DDPStale?
    var own = DDPOwnDocument()

    var methods = DDPMethods()
    var subscriptions = DDPSubscriptions()
    var loaders: [LoaderID: DDPLoader] = [:]
    var loadersOfHandle: [SubscriptionHandle: [LoaderID]] = [:]
    var lastLoader: LoaderID = 0
    var accounts = DDPAccounts()
    /// The credentials that were sent. The driver adds those of its handshakes.
    package var secrets = SentSecrets()

    /// - Parameters:
    ///   - jitter: any number, for the delays between attempts.
    ///   - token: of an earlier login; nil for none.
    package init(
        _ configuration: DDPConfiguration, store: DocumentStore = DocumentStore(),
        jitter: UInt64 = 0, token: DDPLoginToken? = nil
    ) {
        self.configuration = configuration
        documents = store
        self.jitter = DDPJitter(state: jitter)
        attempts = Attempts(configuration.delays)
        attempts.repeats = configuration.mayReconnect
        negotiation = DDPNegotiation(configuration.versions)
        if let token {
            accounts.token = token
            accounts.kept = token
            accounts.userID = token.userID
        }
    }

    // MARK: What it is

    package var status: DDPStatus {
        switch stage {
        case .offline: .offline
        case .dialing, .greeting: .connecting
        case .connected: .connected
        case .waiting: isInBackground || !attempts.isOnline ? .offline : .waiting
        case .failed: .failed
        }
    }

    /// False before `connect`, and after `disconnect`.
    package var isConnectionWanted: Bool { stage != .offline }

    /// The status in the words that all objects share.
    package var connectionState: ConnectionState {
        switch status {
        case .offline: isConnectionWanted ? .waiting : wasWanted ? .closed : .idle
        case .connecting: .connecting
        case .connected: .open
        case .waiting: .waiting
        case .failed: .closed
        }
    }

    /// Failed attempts in a row; 0 when connected.
    package var retryCount: Int { connection == nil ? attempts.failures : 0 }

    /// When the next attempt is made; nil if none is scheduled.
    package var retryDue: Instant? { status == .waiting ? attempts.wakeUp : nil }

    /// Why the client has failed; "" otherwise.
    package internal(set) var failureReason = ""

    /// The version that was agreed; nil unless connected.
    package var version: String? { connection == nil ? nil : negotiation.version }

    package var userID: String? { accounts.userID }

    package var isLoggingIn: Bool { accounts.isLoggingIn }

    /// The number of the open socket; nil if there is none, or it is not open yet.
    var socket: UInt64? {
        switch stage {
        case .greeting(let number), .connected(let number): number
        case .offline, .dialing, .waiting, .failed: nil
        }
    }

    /// The number of the socket on which the server has answered `connect`.
    var connection: UInt64? {
        if case .connected(let number) = stage { return number }
        return nil
    }

    /// Whether there is a connection on which the server has been asked for a session.
    package var hasGreeted: Bool { socket != nil }

    /// The number of the socket, open or not.
    var anySocket: UInt64? {
        if case .dialing(let number) = stage { return number }
        return socket
    }

    /// Whether reports about a socket with this number are still wanted.
    package func isCurrent(_ number: UInt64) -> Bool { anySocket == number }

    /// Nothing that a stub has written waits for the server any more.
    package var isSettled: Bool {
        stubs.isEmpty && methods.byID.isEmpty && afterFlush.isEmpty && flushing == nil
    }

    // MARK: Time

    package var wakeUp: Instant? {
        // Mutating, so that the driver, which asks after each message, does not copy the session.
        mutating get {
            // What else is due waits for its end.
            if isFlushing { return connection == nil ? nil : heartbeat.due }
            var time = flushDue
            func consider(_ other: Instant?) {
                if let other { time = time.map { min($0, other) } ?? other }
            }
            consider(stageDue)
            consider(backgroundDue)
            consider(subscriptions.endDue)
            consider(methods.due)
            consider(keeping.due)
            if let stale { consider(stale.isOver ? Instant(nanoseconds: 0) : stale.due) }
            consider(own.due)
            switch stage {
            case .offline, .dialing, .greeting, .failed: break
            case .waiting: if !isInBackground { consider(attempts.wakeUp) }
            case .connected:
                consider(heartbeat.due)
                consider(quiescence.due)
                consider(standstillDue)
                consider(accounts.retryDue)
                consider(subscriptions.unansweredDue)
            }
            return time
        }
    }

    package mutating func timeReached(_ now: Instant) {
        if let due = flushDue, due <= now { flush(now) }
        guard !isFlushing else { return beat(now) }
        if let due = backgroundDue, due <= now { leaveForBackground(now) }
        if let due = stageDue, due <= now { attemptTimedOut(now) }
        expireCalls(now)
        endUnused(now)
        switch stage {
        case .offline, .dialing, .greeting, .failed: break
        case .waiting:
            if !isInBackground, let due = attempts.wakeUp, due <= now { dial(now) }
        case .connected:
            beat(now)
            endQuiescence(now)
            guard !isFlushing else { return }
            endStandstill(now)
            repeatResume(now)
            repeatUnsubs(now)
        }
        if let due = stale?.due, due <= now { stale?.isOver = true }
        if stale?.isOver == true { flush(now) }
        endOwnDocument(now)
        failAtLimit(now)
        writeDocuments(now)
    }

    // MARK: Actions

    /// The next action. Actions that became pointless since they were queued are left out.
    package mutating func nextAction() -> Action? {
        while let action = actions.next() {
            if isWanted(action) { return action }
        }
        return nil
    }

    /// Whether `nextAction` may return one.
    package var hasActions: Bool { !actions.isEmpty }

    /// The application has set handlers, which the driver has yet to take over: at the latest for
    /// the first action that is added from here on.
    package mutating func handlersSet() { actions.mark() }

    package mutating func handlersTaken() { actions.removeMark() }

    /// Whether the last action was added after `handlersSet`.
    package var isForNewHandlers: Bool { actions.isPastMark }

    mutating func act(_ command: Command) { actions.append(.command(command)) }

    mutating func report(_ report: Report) { actions.append(.report(report)) }

    /// Takes back an attempt that the driver has not begun yet, and its announcement.
    /// - Returns: false if there is none.
    mutating func withdrawAttempt() -> Bool {
        guard case .dialing(let number) = stage else { return false }
        return actions.withdraw { action in
            if case .command(.connect(number)) = action { true } else { false }
        } announcedBy: { action in
            guard case .report(.status(let change)) = action else { return false }
            return change.status == .connecting
        }
    }

    /// How many bytes of messages the socket has not been given yet.
    var pendingBytes: Int {
        actions.sum { action in
            if case .command(.send(_, let text)) = action { text.count } else { 0 }
        }
    }

    mutating func log(_ text: @autoclosure () -> String) {
        if wantsLog { report(.log(secrets.redacted(text()))) }
    }

    /// Sends on the open socket.
    mutating func send(_ bytes: [UInt8], _ now: Instant) {
        guard let socket else { return }
        heartbeat.sent(now)
        act(.send(socket, bytes))
    }

    private func isWanted(_ action: Action) -> Bool {
        switch action {
        case .command(.connect(let number)): stage == .dialing(number)
        case .command(.send(let number, _)): number == lastSocket
        case .command(.close), .command(.drop), .command(.keep), .report: true
        }
    }

    // MARK: Stages

    /// Moves to a stage, and reports the change of the status, or the error.
    mutating func enter(
        _ next: Stage, retryIn: Duration? = nil, reason: String = "", error: RealtimeError? = nil
    ) {
        let old = status
        stage = next
        stageDue = nil
        guard status != old || retryIn != nil || error != nil else { return }
        report(
            .status(
                DDPStatusChange(
                    status: status, retryCount: retryCount, retryIn: retryIn,
                    reason: reason, error: error)))
    }

    mutating func nextSocket() -> UInt64 {
        lastSocket += 1
        return lastSocket
    }

    /// Uniform in [0, 1).
    mutating func fraction() -> Double { jitter.fraction() }
}

/// Random numbers for delays (SplitMix64), which nobody can gain from guessing.
struct DDPJitter: Sendable {
    var state: UInt64

    mutating func fraction() -> Double {
        state &+= 0x9E37_79B9_7F4A_7C15
        var bits = state
        bits = (bits ^ (bits >> 30)) &* 0xBF58_476D_1CE4_E5B9
        bits = (bits ^ (bits >> 27)) &* 0x94D0_49BB_1331_11EB
        bits ^= bits >> 31
        return Double(bits >> 11) / Double(1 << 53)
    }
}
