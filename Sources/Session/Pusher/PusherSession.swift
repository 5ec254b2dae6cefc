package import Wire

/// The machine of a Pusher connection, protocol version 7. It decides when a socket is opened, what
/// its end means, which channels are subscribed with which authorization, and what each message
/// means. Its driver opens the sockets, makes the requests and calls the handlers.
///
/// The driver performs the actions of `nextAction` one after the other, also before it passes the
/// next message. Sockets and requests are numbered; reports with an older number are ignored.
package struct PusherSession: ActionMachine, Sendable {
    enum Stage: Equatable {
        case idle
        /// Until the server confirms the connection.
        case connecting(UInt64)
        case connected(UInt64)
        /// The closing handshake, requested by the application.
        case closing(UInt64)
        /// Until the next attempt is due, or until there is a network.
        case waiting
    }

    /// A request for authorizations that was not answered yet.
    struct Request: Sendable {
        enum Purpose: Sendable {
            case subscriptions([ChannelID])
            /// A new key for an encrypted channel that is subscribed.
            case key(ChannelID)
            case user
        }

        let purpose: Purpose
        /// The driver knows of it.
        var isMade = false
        /// The program's own function has been asked, and must answer in time.
        var isAsked = false
    }

    package internal(set) var configuration: PusherConfiguration
    /// Whether to make `log` actions.
    package var wantsLog = false
    private(set) var stage = Stage.idle
    /// The state has changed at least once.
    private var hasChanged = false
    package internal(set) var socketID: String?
    /// Of the latest attempt.
    package private(set) var url: HTTPURL?
    /// Why no attempt follows; nil if one does, or if the application disconnected.
    package internal(set) var failure: RealtimeError?

    private var actions = ActionQueue<Action>()
    private var lastNumber: UInt64 = 0

    // The attempt and its socket.
    var attempts: Attempts
    /// Whether TLS is used because the server asked for it.
    var isUpgraded = false
    /// The time limit of the stage.
    var stageDue: Instant?
    /// That of the closing handshake.
    var closeLimit: CloseLimit?
    /// When the socket opened, or the attempt started if it has not.
    var openedAt = Instant(nanoseconds: 0)
    var connectedAt: Instant?
    /// The latest `pusher:error` of this socket that may explain its end.
    var lastError: (code: Int?, message: String, time: Instant)?
    /// The previous connection was renewed by the server, soon after it opened.
    var wasShortLived = false
    var keepAlive = PusherKeepAlive()

    // Channels.
    var channels = PusherChannels()
    /// By number.
    var requests: [UInt64: Request] = [:]
    /// Channels that need a request.
    var unrequested: [ChannelID] = []
    /// Channels whose request is repeated later.
    var retries: [(due: Instant, id: ChannelID)] = []
    /// When the program's function must have answered each request, in the order it was asked.
    var asked: ArraySlice<(due: Instant, number: UInt64)> = []
    /// Subscriptions that were sent, in their order, until they are answered or have failed.
    var unanswered = PusherUnanswered()
    var fences = PusherFences()
    /// What was sent on the current socket; to be set before calls that may send a ping.
    package var sentBytes = SentBytes()
    var refusals = PusherRefusals()
    /// The credentials that were sent.
    package internal(set) var secrets = SentSecrets()
    var user = PusherSignIn()
    /// The events that wait for new keys of encrypted channels: at most so many bytes.
    var heldBytes = 0
    /// The ceiling on requests for such keys, which a server can cause by each event.
    var keyPacer = RequestPacer(burst: 1000, interval: .milliseconds(100))
    /// Limits client events; nil without a limit.
    var pacer: PusherEventPacer?
    /// Channels that are subscribed, and have client events that the pacer delays.
    var paced: [ChannelID] = []
    /// The rooms of client events whose messages are among the actions.
    var sentRooms: [any PusherEventRoom] = []

    package init(_ configuration: PusherConfiguration) {
        self.configuration = configuration
        attempts = Attempts(configuration.delays)
        attempts.repeats = configuration.mayReconnect
        pacer = PusherSession.pacer(configuration)
    }

    /// Changes the options. Those of attempts take effect with the next one.
    package mutating func configure(_ configuration: PusherConfiguration) {
        if configuration.clientEventRate != self.configuration.clientEventRate {
            pacer = PusherSession.pacer(configuration)
        }
        self.configuration = configuration
        configureAttempts()
    }

    /// Changes the limits of reconnecting.
    /// - Parameters:
    ///   - max: attempts in a row; nil for no limit.
    ///   - gap: the longest delay between them; nil for no limit.
    package mutating func configureRetries(max: Int?, gap: Duration?) {
        configuration.reconnectAttemptsMax = max
        configuration.maxReconnectGap = gap
        configureAttempts()
    }

    private mutating func configureAttempts() {
        attempts.configure(configuration.delays)
        attempts.repeats = configuration.mayReconnect
    }

    // MARK: What it is

    package var state: PusherState {
        switch stage {
        case .idle: .disconnected
        case .connecting: .connecting
        case .connected: .connected
        case .closing: .disconnecting
        case .waiting: .reconnecting
        }
    }

    /// Failed attempts in a row.
    package var reconnectAttempts: Int { attempts.failures }

    /// The number of the connected socket.
    var connection: UInt64? {
        if case .connected(let number) = stage { return number }
        return nil
    }

    /// Whether reports about a socket with this number are still wanted.
    package func isCurrent(_ number: UInt64) -> Bool {
        switch stage {
        case .connecting(number), .connected(number), .closing(number): true
        default: false
        }
    }

    // MARK: Time

    package var wakeUp: Instant? {
        mutating get {
            var time = stageDue
            func consider(_ other: Instant?) {
                if let other { time = time.map { min($0, other) } ?? other }
            }
            switch stage {
            case .idle, .connecting, .closing: break
            case .waiting: consider(attempts.wakeUp)
            case .connected:
                consider(keepAlive.due)
                for retry in retries { consider(retry.due) }
                consider(askedDue)
                // During a pause the answers are not read.
                if !keepAlive.isPaused {
                    consider(unanswered.due(channels))
                    consider(user.due)
                }
                if !paced.isEmpty { consider(pacer?.earliest) }
            }
            return time
        }
    }

    package mutating func timeReached(_ now: Instant) {
        switch stage {
        case .idle: break
        case .waiting:
            if let due = attempts.wakeUp, due <= now { open(now) }
        case .connecting(let number):
            guard let due = stageDue, due <= now else { return }
            act(.drop(number))
            lose(error: connectTimedOut, now: now)
        case .closing(let number):
            guard closeLimit?.isOver(now, sentBytes) ?? true else {
                stageDue = closeLimit?.due
                return
            }
            act(.drop(number))
            enter(.idle)
        case .connected(let number):
            guard checkKeepAlive(number, now) else { return }
            failLateAuthorizations(now)
            repeatRequests(now)
            if !keepAlive.isPaused {
                failUnanswered(now)
                checkSignIns(now)
            }
            sendPaced(now)
        }
    }

    // MARK: Actions

    /// The next action. Actions that became pointless since they were queued are left out.
    package mutating func nextAction() -> Action? {
        while true {
            if actions.isEmpty {
                if !sentRooms.isEmpty { sentRooms = [] }
                // All channels that need an authorization by now share their requests.
                requestAuthorizations()
                failEndedSignIns()
            }
            guard let action = actions.next() else { return nil }
            guard isWanted(action) else { continue }
            if case .command(.authorize(let request)) = action {
                requests[request.number]?.isMade = true
            }
            return action
        }
    }

    /// Whether `nextAction` may return one.
    package var hasActions: Bool { !actions.isEmpty }

    mutating func act(_ command: Command) { actions.append(.command(command)) }

    mutating func report(_ report: Report) {
        actions.append(.report(secrets.isEmpty ? report : report.redacted(by: secrets)))
    }

    mutating func report(_ id: ChannelID, _ report: ChannelReport) {
        self.report(.channel(id, report))
    }

    /// How many bytes of messages the socket has not been given yet.
    var pendingBytes: Int {
        actions.sum { action in
            if case .command(.send(_, let message)) = action { message.count } else { 0 }
        }
    }

    mutating func log(_ text: @autoclosure () -> String) {
        if wantsLog { report(.log(text())) }
    }

    /// Sends on the connected socket.
    mutating func send(_ bytes: [UInt8]) {
        if let connection { act(.send(connection, bytes)) }
    }

    mutating func nextNumber() -> UInt64 {
        lastNumber += 1
        return lastNumber
    }

    private func isWanted(_ action: Action) -> Bool {
        switch action {
        case .command(let command): isWanted(command)
        case .report(.event(_, let id?)), .report(.channel(let id, _)): channels.isRegistered(id)
        case .report: true
        }
    }

    private func isWanted(_ command: Command) -> Bool {
        switch command {
        case .connect(let attempt): stage == .connecting(attempt.number)
        // What was to be sent before a disconnect comes before the close frame.
        case .send(let number, _): stage == .connected(number) || stage == .closing(number)
        case .ping(let number): stage == .connected(number)
        case .close(let number): stage == .closing(number)
        case .authorize(let request): requests[request.number] != nil
        case .drop, .cancelAuthorization: true
        }
    }

    // MARK: Stages

    /// Moves to a stage, and reports the change of the state.
    /// - Parameter isNews: whether to report it even if the state is the same.
    mutating func enter(
        _ next: Stage, isNews: Bool = false,
        _ details: (inout PusherStateChange) -> Void = { _ in }
    ) {
        let old = state
        stage = next
        stageDue = nil
        user.endedCalls = state == .disconnected ? user.calls.count : 0
        guard state != old || isNews else { return }
        var change = PusherStateChange(old: old, new: state)
        details(&change)
        change.isFirst = !hasChanged
        hasChanged = true
        report(.stateChanged(change))
    }

    /// Starts an attempt.
    mutating func open(_ now: Instant) {
        let number = nextNumber()
        attempts.begin()
        openedAt = now
        connectedAt = nil
        (lastError, failure) = (nil, nil)
        noteOptions()
        enter(.connecting(number))
        if configuration.connectTimeout > .zero { stageDue = now + configuration.connectTimeout }
        do throws(RealtimeError) {
            let url = try configuration.url(isSecure: configuration.usesTLS || isUpgraded)
            self.url = url
            let subprotocol =
                configuration.offersSubprotocol ? PusherConfiguration.subprotocol : nil
            act(.connect(Attempt(number: number, url: url, subprotocol: subprotocol)))
        } catch {
            failure = error
            enter(.idle) { $0.error = error }
        }
    }
}
