package import Wire

/// The state of a connection.
package enum SpreadbotState: Int32, Sendable {
    case connecting = 0
    case connected = 1
    case disconnected = 2
}

/// The current activity while the state is `connecting`.
package enum SpreadbotPhase: Int32, Sendable {
    /// None, because the state is `connected` or `disconnected`.
    case none = 0
    case dialing = 1
    /// The delay before the next attempt.
    case backoff = 2
    /// There is no network.
    case offline = 3
    /// The tokens are being refreshed.
    case auth = 4
}

/// The machine of a Spreadbot connection (docs/spreadbot.md). It decides which transport is tried
/// with which cursor and tokens, what its end means, and how each send is transported. Its driver
/// runs the legs.
///
/// The driver performs the actions of `nextAction` one after the other, and reports the results.
/// Every leg and probe is numbered. Reports with an older number are ignored.
package struct SpreadbotSession: ActionMachine, Sendable {
    /// The parameters of an attempt.
    package struct Attempt: Sendable {
        package let number: UInt64
        package let transport: SpreadbotTransport
        package let path: String
        /// "" for none.
        package let cursor: String
        package let accessToken: String
    }

    package struct Failure: Sendable {
        package let error: RealtimeError
        /// The transport of the leg that failed; nil if it was not a leg.
        package let transport: SpreadbotTransport?
        package let status: Int
        /// The delay until the next attempt, on any transport; nil if there is none, or it waits
        /// for the network.
        package var retryIn: Duration?
        /// The number of attempts in a row on this transport; 0 if this one was not counted.
        package var attempt = 0
        package var isFatal = false

        /// For the log: the transport, the error, and when the next attempt follows.
        package var line: String {
            let leg = transport.map { "\($0.name): " } ?? ""
            let next = retryIn.map { "; the next attempt \($0.fromNow)" } ?? ""
            return leg + error.message + next
        }
    }

    package typealias Action = MachineAction<Command, Report>

    package enum Command: Sendable {
        case attach(Attempt)
        /// Drop the leg with this number.
        case detach(UInt64)
        /// Close the WebSocket with this number properly, and report its end by `closed`.
        case close(UInt64)
        /// Make a handshake without a cursor, to see whether it succeeds.
        case probe(Attempt)
        case dropProbe(UInt64)
        /// Refresh the tokens with this refresh token.
        case refresh(token: String)
        /// Notify requests that wait for tokens: there are fresh ones, or the error says why not.
        case refreshed(RealtimeError?)
        /// The Authorization of requests from now on.
        case credential(String?)
        case write(SpreadbotSend)
        /// Send a ping, and report its answer by `confirmed`.
        case confirm(SpreadbotSend.ID)
        case post(SpreadbotSend)
        case cancelPost(SpreadbotSend.ID)
        /// A durable send has ended whose success was reported before.
        case forget(SpreadbotSend)
    }

    package enum Report: Sendable {
        case opened(SpreadbotTransport, resumed: Bool)
        case transport(SpreadbotTransport?)
        case failed(Failure)
        case tokens(access: String, refresh: String)
        /// The end of a send. The error is nil if the server has it.
        case sent(SpreadbotSend, RealtimeError?)
        case disconnected(RealtimeError?)
    }

    enum Stage: Equatable {
        case idle
        case dialing(UInt64)
        case open(UInt64)
        /// Until the next attempt is due, or until there is a network.
        case waiting
        case authorizing
        /// The closing handshake of the WebSocket, requested by the application.
        case closing(UInt64)
    }

    /// The state of one transport.
    struct Rung: Sendable {
        var shortLives = 0
        var unsupportedUntil: Instant?
        var lastError: RealtimeError?
    }

    var configuration: SpreadbotConfiguration
    package private(set) var path = ""
    private(set) var wasEstablished = false
    var stage = Stage.idle
    var tokens: SpreadbotTokens
    var cursor: SpreadbotCursor
    var sends = SpreadbotSends()
    private var actions = ActionQueue<Action>()
    private var lastNumber: UInt64 = 0

    /// The transport in use, an index into `configuration.transports`.
    var rung = 0
    var rungs: [Rung]
    /// The attempts on this transport.
    var attempts: Attempts
    /// Rounds over all transports that failed in a row.
    var failedRounds: Backoff
    var attachedCursor = ""
    var attachedGeneration: UInt64 = 0
    var gotMessage = false
    /// The leg was refused with tokens that had just been refreshed after a refusal.
    var wasRefreshed = false
    var reportedTransport: SpreadbotTransport?
    var upgrade = SpreadbotUpgrade()
    var postRetry: PostRetry

    /// The repetition of a durable send by POST.
    struct PostRetry: Sendable {
        /// The number of that send.
        var number: UInt64 = 0
        var attempts: Attempts

        init(_ configuration: SpreadbotConfiguration) { attempts = Attempts(configuration.delays) }
    }

    package init(_ configuration: SpreadbotConfiguration) {
        self.configuration = configuration
        tokens = SpreadbotTokens(configuration)
        cursor = SpreadbotCursor(id: configuration.lastEventID)
        rungs = configuration.transports.map { _ in Rung() }
        attempts = Attempts(configuration.delays)
        failedRounds = Backoff(configuration.delays)
        postRetry = PostRetry(configuration)
    }

    // MARK: What it is

    package var state: SpreadbotState {
        switch stage {
        case .idle, .closing: .disconnected
        case .open: .connected
        case .dialing, .waiting, .authorizing: .connecting
        }
    }

    /// The closing handshake is in progress.
    package var isClosing: Bool { if case .closing = stage { true } else { false } }

    package var phase: SpreadbotPhase {
        switch stage {
        case .idle, .closing, .open: .none
        case .dialing: .dialing
        case .waiting: attempts.isOnline ? .backoff : .offline
        case .authorizing: .auth
        }
    }

    /// The transport in use, or tried last; nil if the connection is idle.
    package var transport: SpreadbotTransport? {
        stage == .idle || rung >= rungs.count ? nil : configuration.transports[rung]
    }

    package var lastEventID: String { cursor.id }
    package var accessToken: String { tokens.access }
    package var refreshToken: String { tokens.refresh }

    /// Whether a leg or probe with this number is still wanted.
    package func isCurrent(_ number: UInt64) -> Bool {
        switch stage {
        case .dialing(number), .open(number), .closing(number): true
        default: upgrade.probe == number
        }
    }

    // MARK: The application

    /// Connects. If there is a connection already, it starts again with the first transport.
    package mutating func establish(path: String, now: Instant) {
        let wasClosing = if case .closing = stage { true } else { false }
        dropLeg()
        loseFrames(.max)
        // Each call of disconnect gets its `disconnected`.
        if wasClosing { end(nil) }
        if !path.hasSameBytes(as: self.path) || !wasEstablished {
            // The configured id belongs to the path that is established first.
            cursor = SpreadbotCursor(id: wasEstablished ? "" : cursor.id)
            wasEstablished = true
            self.path = path
            giveUpMessages()
        }
        wasRefreshed = false
        upgrade.reset(configuration)
        failedRounds.reset()
        backToTop()
        dial(now)
        pump()
    }

    /// Ends the connection. `disconnected` follows at once, or when the WebSocket is closed.
    package mutating func disconnect(now: Instant) {
        switch stage {
        case .idle, .closing: return
        case .open(let number) where transport == .webSocket:
            dropProbe()
            stage = .closing(number)
            act(.close(number))
            giveUpWaiting(closedByUser)
        case .open, .dialing, .waiting, .authorizing: end(nil)
        }
    }

    var closedByUser: RealtimeError {
        RealtimeError(.closed, "the connection was closed")
    }

    package var credential: String? {
        tokens.access.isEmpty ? nil : try? HeaderField.bearerAuthorization(tokens.access)
    }

    /// The leg uses the current tokens now, without a new attempt.
    package mutating func tokensUsed(_ number: UInt64) {
        if isCurrent(number) { attachedGeneration = tokens.generation }
    }

    // MARK: The ladder

    /// Makes the first transport the next one to try, and forgets the state of each.
    mutating func backToTop() {
        rung = 0
        attempts.forgetFailures()
        for index in rungs.indices { rungs[index] = Rung() }
    }

    /// Continues with the next transport. After the last one the round has failed: the application
    /// gets one `reconnectsExhausted`, but not the failure of that transport.
    mutating func nextRung(
        _ now: Instant, _ failure: Failure, asked: Duration, random: Double
    ) {
        rung += 1
        attempts.forgetFailures()
        skipUnsupported(now)
        guard rung < rungs.count else {
            return endRound(now, failure, asked: asked, random: random)
        }
        var failure = failure
        failure.retryIn = .zero
        report(.failed(failure))
        dial(now)
    }

    /// All transports have failed. Another round follows after a delay, or the connection ends.
    private mutating func endRound(
        _ now: Instant, _ failure: Failure, asked: Duration, random: Double
    ) {
        let error = exhausted(failure.error)
        let own = failedRounds.failed(random: random) ?? .zero
        guard configuration.maxRounds == 0 || failedRounds.failures < configuration.maxRounds else {
            return end(error, failure)
        }
        let delay = max(own, asked)
        backToTop()
        attempts.schedule(at: now + delay)
        stage = .waiting
        report(
            .failed(
                Failure(
                    error: error, transport: failure.transport, status: failure.status,
                    retryIn: delay)))
    }

    private mutating func skipUnsupported(_ now: Instant) {
        while rung < rungs.count, rungs[rung].unsupportedUntil.map({ $0 > now }) ?? false {
            rung += 1
        }
    }

    mutating func dial(_ now: Instant) {
        guard attempts.isOnline else {
            stage = .waiting
            return noteWait()
        }
        skipUnsupported(now)
        guard rung < rungs.count else { return end(exhausted(nil)) }
        if tokens.canRefresh, tokens.expireSoon(now) {
            stage = .authorizing
            return beginRefresh()
        }
        let attempt = makeAttempt(configuration.transports[rung], cursor: cursor.id)
        // This attempt replaces the next probe.
        if attempt.transport == .webSocket { upgrade.disarm() }
        attachedCursor = cursor.id
        attachedGeneration = tokens.generation
        gotMessage = false
        cursor.attached()
        attempts.begin()
        stage = .dialing(attempt.number)
        act(.attach(attempt))
    }

    mutating func makeAttempt(_ transport: SpreadbotTransport, cursor: String) -> Attempt {
        lastNumber += 1
        return Attempt(
            number: lastNumber, transport: transport, path: path, cursor: cursor,
            accessToken: tokens.access)
    }

    /// - Parameter last: the error of the transport that was tried last, which has the response.
    private func exhausted(_ last: RealtimeError?) -> RealtimeError {
        let errors = zip(configuration.transports, rungs).map { transport, rung in
            "\(transport.name): \(rung.lastError?.message ?? "not tried")"
        }
        return RealtimeError(
            .reconnectsExhausted,
            "no transport to \(configuration.base.displayName) works; "
                + errors.joined(separator: "; "),
            response: last?.response)
    }

    // MARK: The end

    /// The WebSocket has been closed as requested.
    /// - Parameter isClean: the server answered the close frame, so it has all frames before it.
    package mutating func closed(_ number: UInt64, isClean: Bool, written: SpreadbotSend.ID) {
        guard stage == .closing(number) else { return }
        if isClean, written > 0 {
            for send in sends.confirmed(written) { finish(send, nil) }
        }
        loseFrames(written)
        end(nil)
    }

    mutating func end(_ error: RealtimeError?, _ failure: Failure? = nil) {
        dropLeg()
        attempts.abandon()
        loseFrames(.max)
        rung = 0
        reportedTransport = nil
        if let error {
            var last = Failure(
                error: error, transport: failure?.transport, status: failure?.status ?? 0)
            last.isFatal = true
            report(.failed(last))
        }
        giveUpAll(error ?? closedByUser)
        report(.transport(nil))
        report(.disconnected(error))
        // Requests to their own paths need no connection.
        pump()
    }

    /// Drops the current leg, if any. Its later reports are ignored.
    mutating func dropLeg() {
        dropProbe()
        switch stage {
        case .dialing(let number), .open(let number), .closing(let number):
            act(.detach(number))
        case .idle, .waiting, .authorizing: break
        }
        stage = .idle
    }

    // MARK: Time and the network

    package var wakeUp: Instant? {
        var times: [Instant] = []
        if stage == .waiting, let due = attempts.wakeUp { times.append(due) }
        if case .open = stage, let due = upgrade.due { times.append(due) }
        if let due = postRetry.attempts.wakeUp { times.append(due) }
        return times.min()
    }

    package mutating func timeReached(_ now: Instant) {
        if let due = postRetry.attempts.wakeUp, due <= now {
            postRetry.attempts.begin()
            pump()
        }
        if stage == .waiting, let due = attempts.wakeUp, due <= now {
            dial(now)
        } else if case .open = stage, let due = upgrade.due, due <= now {
            upgrade.disarm()
            beginProbe(now)
        }
    }

    // MARK: Actions

    package mutating func nextAction() -> Action? { actions.next() }

    mutating func act(_ command: Command) { actions.append(.command(command)) }

    mutating func report(_ report: Report) { actions.append(.report(report)) }

    /// Removes a command that was not begun yet.
    /// - Returns: false if there was none.
    mutating func withdraw(_ isMeant: (Command) -> Bool) -> Bool {
        actions.withdraw { if case .command(let command) = $0 { isMeant(command) } else { false } }
    }
}
