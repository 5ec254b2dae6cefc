package import Wire

/// Where a connection stands.
package enum SpreadbotState: Int32, Sendable {
    case connecting = 0
    case connected = 1
    case disconnected = 2
}

/// What is done while it is connecting.
package enum SpreadbotPhase: Int32, Sendable {
    /// Connected, or disconnected.
    case none = 0
    case dialing = 1
    /// The delay before the next attempt.
    case backoff = 2
    /// There is no network.
    case offline = 3
    /// Tokens are refreshed.
    case auth = 4
}

/// The brain of a Spreadbot connection (docs/spreadbot.md): which leg is tried, with
/// which cursor and tokens, what its end means, and which way a send goes. Its driver has the legs.
///
/// What is to be done comes from `nextAction`, in order; the driver does one after the other and
/// tells what came of it. Legs and probes have numbers: what is told of an older one is nothing.
package struct SpreadbotSession: ActionMachine, Sendable {
    /// An attempt, as it is to be made.
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
        /// Of the leg that failed; nil when it was none.
        package let transport: SpreadbotTransport?
        package let status: Int
        /// Until the next attempt, on this leg or another; nil when there is none, or it waits for
        /// the network.
        package var retryIn: Duration?
        /// Of those in a row on this leg, 0 for one that is not counted.
        package var attempt = 0
        package var isFatal = false

        /// For the log: where it failed, how, and when the next attempt follows.
        package var line: String {
            let leg = transport.map { "\($0.name): " } ?? ""
            let next = retryIn.map { "; the next attempt \($0.fromNow)" } ?? ""
            return leg + error.message + next
        }
    }

    package enum Action: Sendable {
        case attach(Attempt)
        /// Drops the leg of this number.
        case detach(UInt64)
        /// Closes the WebSocket of this number in order, and tells its end by `closed`.
        case close(UInt64)
        /// A handshake without a cursor, to see whether it would be answered.
        case probe(Attempt)
        case dropProbe(UInt64)
        /// Spends a refresh token.
        case refresh(token: String)
        /// Tells whoever waited for tokens: there are fresh ones, or why not.
        case refreshed(RealtimeError?)
        /// The Authorization of requests from now on.
        case credential(String?)
        case write(SpreadbotSend)
        /// Sends a ping and tells its answer by `confirmed`.
        case confirm(SpreadbotSend.ID)
        case post(SpreadbotSend)
        case cancelPost(SpreadbotSend.ID)

        // To the application.
        case opened(SpreadbotTransport, resumed: Bool)
        case transport(SpreadbotTransport?)
        case failed(Failure)
        case tokens(access: String, refresh: String)
        /// The end of a send: nil when the server has it.
        case sent(SpreadbotSend, RealtimeError?)
        /// A durable send is over that was told before.
        case forget(SpreadbotSend)
        case disconnected(RealtimeError?)
    }

    enum Stage: Equatable {
        case idle
        case dialing(UInt64)
        case open(UInt64)
        /// For the time of the next attempt, or for the network.
        case waiting
        case authorizing
        /// The WebSocket's closing handshake, by the application's wish.
        case closing(UInt64)
    }

    /// What is known of a leg.
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
    private var actions: [Action] = []
    private var firstAction = 0
    private var lastNumber: UInt64 = 0

    /// The leg in use, an index of `configuration.transports`.
    var rung = 0
    var rungs: [Rung]
    /// Those on it.
    var attempts: Attempts
    /// Rounds over the whole ladder that failed in a row.
    var failedRounds: Backoff
    var attachedCursor = ""
    var attachedGeneration: UInt64 = 0
    var gotMessage = false
    /// It was refused with the tokens of a refresh that followed a refusal.
    var wasRefreshed = false
    var toldTransport: SpreadbotTransport?
    var upgrade = SpreadbotUpgrade()
    var postRetry: PostRetry

    /// When a durable send is posted again.
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

    package var phase: SpreadbotPhase {
        switch stage {
        case .idle, .closing, .open: .none
        case .dialing: .dialing
        case .waiting: attempts.isOnline ? .backoff : .offline
        case .authorizing: .auth
        }
    }

    /// Of the leg in use, or tried last; nil before and after.
    package var transport: SpreadbotTransport? {
        stage == .idle || rung >= rungs.count ? nil : configuration.transports[rung]
    }

    package var lastEventID: String { cursor.id }
    package var accessToken: String { tokens.access }
    package var refreshToken: String { tokens.refresh }

    /// Whether a leg, or a probe, of this number is still wanted.
    package func isCurrent(_ number: UInt64) -> Bool {
        switch stage {
        case .dialing(number), .open(number), .closing(number): true
        default: upgrade.probe == number
        }
    }

    // MARK: The application

    /// Connects; when it is connected or connecting already, from the top of the ladder.
    package mutating func establish(path: String, now: Instant) {
        let wasClosing = if case .closing = stage { true } else { false }
        dropLeg()
        loseFrames(.max)
        // Every call of disconnect is answered.
        if wasClosing { end(nil) }
        if path != self.path || !wasEstablished {
            // The option's id is for whatever path comes first.
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

    /// Ends the connection; `disconnected` follows, at once or when the WebSocket is closed.
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

    /// A leg has gone over to the tokens there are, without a new attempt.
    package mutating func tokensUsed(_ number: UInt64) {
        if isCurrent(number) { attachedGeneration = tokens.generation }
    }

    // MARK: The ladder

    /// Makes the first leg the next one to try, and forgets what is known of each leg.
    mutating func backToTop() {
        rung = 0
        attempts.forgetFailures()
        for index in rungs.indices { rungs[index] = Rung() }
    }

    /// Leaves this leg for the next one. After the last leg the round has failed: the application
    /// gets one `reconnectsExhausted`, and not the failure of that leg too.
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
        act(.failed(failure))
        dial(now)
    }

    /// All legs have failed: another round over the ladder follows after a delay, or the end.
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
        act(
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
        guard attempts.isOnline else { return stage = .waiting }
        skipUnsupported(now)
        guard rung < rungs.count else { return end(exhausted(nil)) }
        if tokens.canRefresh, tokens.expireSoon(now) {
            stage = .authorizing
            return beginRefresh()
        }
        let attempt = makeAttempt(configuration.transports[rung], cursor: cursor.id)
        // This attempt is what the next probe would have found out.
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

    /// - Parameter last: of the leg that was tried last; its error has the answer.
    private func exhausted(_ last: RealtimeError?) -> RealtimeError {
        let told = zip(configuration.transports, rungs).map { transport, rung in
            "\(transport.name): \(rung.lastError?.message ?? "not tried")"
        }
        return RealtimeError(
            .reconnectsExhausted,
            "no way to \(configuration.base.displayName) is left; "
                + told.joined(separator: "; "),
            response: last?.response)
    }

    // MARK: The end

    /// The WebSocket that was to be closed is closed.
    /// - Parameter isClean: the server answered the close frame: it has what was written before.
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
        loseFrames(.max)
        rung = 0
        toldTransport = nil
        if let error {
            var told = Failure(
                error: error, transport: failure?.transport, status: failure?.status ?? 0)
            told.isFatal = true
            act(.failed(told))
        }
        giveUpAll(error ?? closedByUser)
        act(.transport(nil))
        act(.disconnected(error))
        // A request to a path of its own needs no connection.
        pump()
    }

    /// Whatever leg there is: nothing of it counts any more.
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

    /// Whether the server can be reached has changed, or the way there (B11, B12).
    package mutating func networkChanged(isOnline: Bool, now: Instant, random: Double) {
        let comesBack = isOnline && !attempts.isOnline
        if comesBack, stage == .waiting {
            failedRounds.reset()
            backToTop()
            // Whatever was waited for, it was by another way to the network.
            attempts.restart(now: now)
        }
        attempts.setOnline(isOnline, now: now, random: random)
        if case .open = stage, isOnline { upgrade.bringForward(now + .onceOnline(random: random)) }
        if comesBack { pump() }
    }

    // MARK: Actions

    package mutating func nextAction() -> Action? {
        guard firstAction < actions.count else { return nil }
        let action = actions[firstAction]
        firstAction += 1
        if firstAction == actions.count {
            actions.removeAll(keepingCapacity: true)
            firstAction = 0
        }
        return action
    }

    mutating func act(_ action: Action) { actions.append(action) }

    /// Takes an action back that was not begun yet.
    /// - Returns: false when it was.
    mutating func withdraw(_ isMeant: (Action) -> Bool) -> Bool {
        let index = actions[firstAction...].firstIndex(where: isMeant)
        if let index { actions.remove(at: index) }
        return index != nil
    }
}
