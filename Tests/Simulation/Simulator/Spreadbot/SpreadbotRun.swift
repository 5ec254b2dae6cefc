import Session
import Wire

/// A Spreadbot session as its driver in `Sources/Engine` drives it: the network, the server and the
/// user around it, and the invariants after every turn.
final class SpreadbotRun {
    let world: World
    var random: Random
    let plan: SpreadbotPlan
    let server: SpreadbotServer
    var session: SpreadbotSession
    var reading: SpreadbotReading
    var delivery = SpreadbotDelivery()
    let ledger: SpreadbotLedger

    var leg: SpreadbotSimulatedLeg?
    var probe: (number: UInt64, alarm: World.Alarm)?
    /// The token of the probe that was refused last.
    var refusedProbe: String?
    private var alarm: World.Alarm?
    private let turn: ActionTurn
    var isOnline = true
    /// The server is unreachable although there is a network.
    var isAway = false
    var isPeaceful = false
    var isPaused = false
    private(set) var path = ""

    // Tokens: what the machine must know, and the requests that wait.
    var tokens: (access: String, refresh: String)
    var tokensSetAt: Instant?
    var expiry: Instant?
    var isRefusedForGood = false
    var refreshing: (token: String, isStale: Bool)?
    /// Refresh tokens that were replaced by others.
    var replaced: Set<String> = []
    var waiting: [(RealtimeError?) -> Void] = []
    var credential: String?

    var posting: (send: SpreadbotSend, attempt: UInt64)?
    var postCount: UInt64 = 0
    /// A request of a durable send failed: no other may come for a while.
    var isRetrying = false
    /// That send, and when its next request is due.
    var retrying: (number: UInt64, due: Instant)?
    /// The delay that the server asked for.
    var askedOfPost = Duration.zero
    /// How many ends the user was notified of.
    private var endsTold = 0
    private(set) var disconnectedAt: Instant?

    init(_ world: World) throws {
        self.world = world
        // Enough for a full queue of sends and the whole ladder.
        turn = ActionTurn(world, limit: 600)
        random = world.random.split()
        plan = try SpreadbotPlan(&random)
        server = SpreadbotServer(world, plan)
        session = SpreadbotSession(plan.configuration)
        reading = SpreadbotReading(plan.configuration)
        ledger = SpreadbotLedger(world, capacity: plan.configuration.queueCapacity)
        tokens = (plan.configuration.accessToken, plan.configuration.refreshToken)
        credential = session.credential
        if plan.isGentle { world.count("gentle") }
        world.trace(
            "plan", "\(plan.configuration.transports.map(\.name)), \(plan.deeds.count) deeds")
    }

    func uniform() -> Double { Double(random.next() >> 11) * 0x1p-53 }

    var hasTokenServer: Bool { plan.configuration.authURL != nil }
    var canRefresh: Bool { hasTokenServer && !tokens.refresh.isEmpty && !isRefusedForGood }

    // MARK: The driver's turn

    /// Performs the machine's actions, as the driver does.
    func act() {
        guard turn.run({ session.nextAction() }, perform) else { return }
        arm()
        check()
    }

    private func arm() {
        alarm?.cancel()
        alarm = nil
        guard let time = session.wakeUp else { return }
        alarm = world.at(time) { [self] in
            session.timeReached(world.now)
            act()
        }
    }

    private func perform(_ action: SpreadbotSession.Action) {
        switch action {
        case .command(let command): perform(command)
        case .report(let report): self.report(report)
        }
    }

    private func perform(_ command: SpreadbotSession.Command) {
        switch command {
        case .attach(let attempt): attach(attempt)
        case .detach(let number):
            loseFrames(all: true)
            if leg?.attempt.number == number { dropLeg() }
        case .close(let number): close(number)
        case .probe(let attempt): beginProbe(attempt)
        case .dropProbe(let number):
            guard probe?.number == number else { return }
            probe?.alarm.cancel()
            probe = nil
        case .refresh(let token): refresh(token)
        case .refreshed(let error):
            let all = waiting
            waiting = []
            for answer in all { answer(error) }
        case .credential(let credential): self.credential = credential
        case .forget(let send): world.fail("\(send.number) was not reported")
        case .write(let send):
            requireConnection("a frame")
            ledger.began(
                send.number, isFrame: true, on: leg?.attempt.path ?? "")
            leg?.write(send)
        case .confirm(let id):
            guard let leg else { return }
            leg.ping { [self] in
                leg.confirmed(id)
                session.confirmed(leg.attempt.number, id, now: world.now)
                act()
            }
        case .post(let send): post(send)
        case .cancelPost(let id):
            world.require(posting.map { $0.send.id == id } ?? true, "cancels another request")
            posting = nil
        }
    }

    private func report(_ report: SpreadbotSession.Report) {
        switch report {
        case .opened(let transport, _):
            requireConnection("opened")
            world.trace("user", "opened by \(transport.name)")
            world.count("by \(transport.name)")
        case .failed(let failure): failed(failure)
        case .sent(let send, let error):
            world.trace("user", "sent \(send.number): \(error?.message ?? "ok")")
            if error == nil {
                let how = send.isDurable ? "durable" : "fleeting"
                world.count("sent, \(how)")
            }
            ledger.told(send.number, error)
        case .tokens(let access, let refresh):
            world.require(tokens == (access, refresh), "reports tokens that are not in use")
            world.count("tokens refreshed")
        case .disconnected(let error):
            world.trace("user", "disconnected: \(error?.message ?? "by its wish")")
            world.count("disconnected" + (error.map { ", \($0.code)" } ?? ""))
            endsTold += 1
            world.require(endsTold <= reading.ends, "reports one end too many")
            let isExhausted = error?.code == .reconnectsExhausted
            let mayEnd = !isExhausted || plan.configuration.maxRounds > 0
            world.require(mayEnd, "ends, and rounds have no limit")
            if isExhausted, plan.configuration.maxRounds > 1 { world.count("the last round") }
            if error != nil, !isPeaceful { comeBack() }
        case .transport: break
        }
        if !isPeaceful, random.chance(plan.hasty) { actInCallback() }
    }

    /// After disconnect, a connection must do and report nothing new.
    private func requireConnection(_ what: String) {
        guard let disconnectedAt, disconnectedAt < world.now else { return }
        world.fail("\(what) after disconnect")
    }

    private func failed(_ failure: SpreadbotSession.Failure) {
        world.trace(
            "user",
            "failed: \(failure.error.message), \(failure.attempt),"
                + " in \(failure.retryIn?.readable ?? "-")\(failure.isFatal ? ", fatal" : "")")
        if failure.error.message.hasSuffix("no network reaches it") {
            requireConnection("a wait")
            world.require(!isOnline, "waits for a network that is there")
            world.require(failure.transport == nil && failure.retryIn == nil, "\(failure)")
            return world.count("waits for a network")
        }
        if failure.transport != nil || failure.isFatal { requireConnection("an error") }
        world.require(!plan.isGentle || failure.error.code == .httpStatus, "\(failure.error)")
        let configuration = plan.configuration
        // Attempts for a durable send have no limit.
        let isCounted = failure.transport == nil || failure.attempt <= configuration.maxReconnects
        world.require(isCounted, "attempt \(failure.attempt)")
        if failure.attempt > 0 {
            let wait = failure.retryIn ?? .zero
            var most = min(Duration.seconds(1), configuration.maxDelay)
            for _ in 1..<max(2, failure.attempt) where failure.attempt > 1 {
                most = min(configuration.maxDelay, most * 2)
            }
            world.require(wait * 2 + .microseconds(1) >= most, "waits \(wait), of \(most)")
            world.require(wait <= max(most, .seconds(300)), "waits \(wait)")
            let isPost = failure.transport == nil
            if isPost { retrying?.due = world.now + wait }
            world.require(!isPost || wait >= askedOfPost, "waits \(wait), not \(askedOfPost)")
        }
        if failure.error.code == .reconnectsExhausted, !failure.isFatal {
            world.count("another round")
            world.require(configuration.maxRounds != 1, "another round, and one is all")
            world.require((failure.retryIn ?? .zero) > .zero, "no delay before another round")
        }
        if failure.isFatal { ledger.fatal = failure.error.code }
    }

    // MARK: What must hold

    private func check() {
        guard world.violation == nil else { return }
        let now = world.now
        noteRefreshAhead()
        let expected: SpreadbotPhase? =
            switch reading.stage {
            case .idle, .closing, .open: SpreadbotPhase.none
            case .due(_, let to): to == now ? nil : .backoff
            case .dialing: .dialing
            case .authorizing: .auth
            case .offline: .offline
            }
        let text = "\(session.state) \(session.phase), where \(reading.stage) is right"
        guard session.phase == expected, session.transport == reading.transport else {
            return world.fail("\(text), \(String(describing: reading.transport))")
        }
        let state: SpreadbotState =
            switch reading.stage {
            case .idle, .closing: .disconnected
            case .open: .connected
            case .due, .dialing, .authorizing, .offline: .connecting
            }
        world.require(session.state == state, text)
        if case .due(_, let to) = reading.stage { world.require(now <= to, "an attempt is late") }
        world.require(!reading.lacksProbe(now), "a probe is late")
        checkOutstanding()
        world.require(reading.ends == endsTold, "\(reading.ends) ends, \(endsTold) were reported")
    }

    /// The machine may have refreshed tokens before the attempt that is due.
    func noteRefreshAhead() {
        // Tokens set in a callback come after the machine's decision.
        let left = tokensSetAt == world.now ? .zero : expiry.map { $0 - world.now }
        if session.phase == .auth, reading.refreshesAhead(world.now, left) {
            world.count("refreshed ahead")
        }
    }

    /// Each phase must wait for something that will happen.
    private func checkOutstanding() {
        let hasLeg = leg.map { !$0.isOver } ?? false
        switch reading.stage {
        case .dialing, .open, .closing: world.require(hasLeg, "waits for a leg that is not there")
        case .due: world.require(session.wakeUp != nil, "waits, and does not wake up")
        case .authorizing: world.require(refreshing != nil, "waits for tokens nobody fetches")
        case .offline: world.require(!isOnline, "waits for a network that is there")
        case .idle: world.require(!hasLeg && probe == nil, "a leg is left behind")
        }
        world.require(
            waiting.isEmpty || refreshing != nil, "requests wait for tokens that nobody fetches")
        world.require(
            session.state != .disconnected || !ledger.isKept, "keeps messages after the end")
        let isMoving = posting != nil || !ledger.flying.isEmpty || isRetrying
        world.require(
            ledger.pending == 0 || isMoving || !isOnline || session.state == .disconnected,
            "sends wait for nothing")
    }

    // MARK: The user

    func begin() {
        for kind in plan.left { submit(kind, isDurable: true, isLeft: true) }
        if plan.postsFirst {
            submit(.request(path: "other", contentType: "text/plain"), isDurable: true)
        }
        establish("room")
        act()
        for (time, deed) in plan.deeds {
            world.after(time) { [self] in
                guard world.violation == nil else { return }
                perform(deed)
                act()
            }
        }
        // More than B8 remembers. From its own randomness, so that other runs draw the same as
        // before.
        var own = Random(seed: ~world.seed)
        if own.below(16) == 0 {
            world.after(own.milliseconds(0...60_000)) { [self] in
                for _ in 0..<300 { publish() }
                act()
            }
        }
        world.after(plan.peaceAt) { [self] in makePeace() }
    }

    func establish(_ path: String) {
        world.trace("user", "establish \(path)")
        disconnectedAt = nil
        refusedProbe = nil
        if path != self.path {
            ledger.mayClose = true
            delivery.reset()
            server.change()
            self.path = path
        }
        loseFrames(all: true)
        reading.established(world.now)
        session.establish(path: path, now: world.now)
    }

    func disconnect() {
        world.trace("user", "disconnect")
        ledger.mayClose = true
        disconnectedAt = disconnectedAt ?? world.now
        reading.disconnected(world.now)
        session.disconnect(now: world.now)
    }

    private func comeBack() {
        world.after(random.milliseconds(0...20_000)) { [self] in
            guard session.state == .disconnected, reading.stage == .idle else { return }
            if plan.takesTokens { setTokens() }
            establish(path)
            act()
        }
    }

    /// No faults from here on, and a user who wants to be connected: everything that was started
    /// must end.
    private func makePeace() {
        guard world.violation == nil else { return }
        world.trace("plan", "peace")
        isPeaceful = true
        isPaused = false
        isAway = false
        setOnline(true)
        if plan.takesTokens { setTokens() }
        if session.state == .disconnected { establish(path) }
        act()
        resume()
        // Pending failures happen, and the last wait in a queue ends.
        world.after(.seconds(1200)) { [self] in
            guard world.violation == nil else { return }
            if plan.takesTokens { setTokens() }
            if session.state == .disconnected { establish(path) }
            act()
            world.after(.seconds(600)) { [self] in
                for _ in 0..<3 { publish() }
                act()
            }
        }
        world.after(.seconds(2400)) { [self] in finish(by: world.now + .seconds(60)) }
    }

    /// A change to a better leg may be in progress, and takes some time.
    private func finish(by limit: Instant) {
        guard world.violation == nil else { return }
        guard session.state == .connected || world.now >= limit else {
            world.after(.seconds(1)) { [self] in finish(by: limit) }
            return
        }
        verifyArrival()
        disconnect()
        act()
    }

    private func verifyArrival() {
        // If tokens expire while a handshake takes its time, even new ones are refused for good.
        let outlives = !plan.takesTokens || plan.tokenLife >= .seconds(20)
        guard outlives || session.state == .connected else { return }
        world.require(session.state == .connected, "is not connected in the end")
        let count = server.messages.count
        let isBegun = delivery.expected != nil || plan.bare == 0
        world.require(
            count == 0 || !isBegun || delivery.expected == count,
            "\(delivery.expected ?? -1) of \(count) messages came")
        ledger.verify(server.received)
        if ledger.count > 0 { world.count("all sends ended") }
    }

    /// After the end of the run.
    func verify() {
        world.require(session.state == .disconnected && leg == nil, "does not end")
        world.require(session.wakeUp == nil, "wants to wake up, though disconnected")
        world.require(reading.ends == endsTold, "\(endsTold) of \(reading.ends) ends were reported")
        world.require(waiting.isEmpty, "requests wait for tokens in the end")
    }
}
