import Session
import Wire

/// A Pusher session as its driver in `Sources/Engine` drives it: the network, the server and the
/// user around it, and the invariants after every turn.
final class PusherRun {
    let world: World
    var random: Random
    let plan: PusherPlan
    let server: PusherServer
    let ledger: PusherLedger
    var session: PusherSession
    var reading: PusherReading
    let answers: PusherAnswers
    private var reader = PusherEnvelopeReader()

    var link: PusherLink?
    /// Requests for authorization that were not answered or cancelled.
    var requests: [UInt64: PusherAuthorizationRequest] = [:]
    /// Requests for keys, and their channels.
    var keyRequests: [UInt64: UInt64] = [:]
    private var alarm: World.Alarm?
    private let turn: ActionTurn
    var isOnline = true
    /// Messages that have arrived during a pause.
    private var held: [(text: String, link: PusherLink)] = []
    private(set) var isPaused = false
    var isPeaceful = false
    private(set) var user: String?
    /// The user of the next sign-in, and of the last one that was sent since a sign-out.
    var nextUser = PusherPlan.users[0]
    var sentUser: String?

    var pings: PusherPings

    init(_ world: World) throws {
        self.world = world
        turn = ActionTurn(world, limit: 3000)
        random = world.random.split()
        plan = try PusherPlan(&random)
        server = PusherServer(world, plan)
        ledger = PusherLedger(world)
        session = PusherSession(plan.configuration)
        session.wantsLog = random.chance(30)
        reading = PusherReading(world, plan.configuration)
        answers = PusherAnswers(world)
        pings = PusherPings(world)
        if plan.isGentle { world.count("gentle") }
        world.count("\(plan.dialect)")
        world.trace("plan", "\(plan.dialect), \(plan.deeds.count) deeds, first \(plan.first)")
        server.deliver = { [self] text, link in receive(text, link) }
        server.deliverEnd = { [self] code, link in end(code, link) }
    }

    func uniform() -> Double { Double(random.next() >> 11) * 0x1p-53 }

    /// Nothing keeps the objects of the run alive.
    func release() {
        alarm = nil
        link = nil
        server.deliver = { _, _ in }
        server.deliverEnd = { _, _ in }
    }

    // MARK: Calls

    /// Calls the machine, and checks what it decides about the connection.
    func call(
        _ cause: PusherReading.Cause = .other, _ body: (inout PusherSession) -> Void
    ) {
        let (before, number) = (session.state, link?.number)
        session.sentBytes = link?.sent ?? SentBytes()
        body(&session)
        let after = session.state
        let begins = after == .connecting && before != after
        world.require(!begins || reading.mayAttempt, "an attempt without a network")
        guard before == .connecting || before == .connected, after != before else { return }
        switch after {
        case .reconnecting: lost(cause, number)
        case .disconnected: if !isWished { lost(cause, number) }
        case .connected:
            reading.confirmed()
            link?.isConfirmed = true
            world.count("connected")
        case .connecting, .disconnecting: break
        }
    }

    /// The user has called `disconnect`.
    var isWished = false

    private func lost(_ cause: PusherReading.Cause, _ number: UInt64?) {
        let next = reading.next(cause)
        world.trace("reading", "\(cause): \(next)")
        switch next {
        case .disconnected:
            world.require(session.state == .disconnected, "continues after \(cause)")
            world.count("ended for good")
        case .retry(let delay):
            let wait = session.wakeUp.map { $0 - world.now }
            world.require(session.state == .reconnecting, "gives up after \(cause)")
            world.require(wait == delay, "waits \(String(describing: wait)), and not \(delay)")
            world.count("reconnects")
        case .waitForNetwork:
            world.require(session.state == .reconnecting, "gives up after \(cause)")
            world.require(session.wakeUp == nil, "does not wait for the network")
            world.count("waits for the network")
        }
    }

    // MARK: The driver's turn

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
            checkTimeout()
            call { $0.timeReached(world.now) }
            act()
        }
    }

    /// A connection counts as lost only when a ping was not answered in time.
    private func checkTimeout() {
        guard session.state == .connected, let last = pings.last else { return }
        world.after(.zero) { [self] in
            guard session.state == .reconnecting, pings.last == last else { return }
            pings.checkLoss(plan.configuration.pongTimeout)
        }
    }

    private func check() {
        guard world.violation == nil else { return }
        ledger.checkDeliveries(Set(keyRequests.values))
        world.require(ledger.state == session.state, "the state was not reported")
        for (name, id) in ledger.registered {
            world.require(
                session.channelState(id) == ledger.states[id], "the state of \(name) is unknown")
        }
        if session.state == .connected {
            checkAnswers()
            if !isPaused {
                answers.checkTimes(stateOfChannel)
                answers.checkFences(ledger.registered.keys, stateOfChannel)
            }
        } else {
            world.require(requests.isEmpty, "requests are left without a connection")
            world.require(session.socketID == nil, "a socket id is left without a connection")
        }
        if session.state == .disconnected {
            world.require(session.wakeUp == nil, "wants to wake up, though disconnected")
            world.require(link == nil, "a socket is left")
        }
    }

    /// The state that the machine knows; nil for a channel that the user has not subscribed.
    private func stateOfChannel(_ name: String) -> PusherChannelState? {
        ledger.registered[name].flatMap { session.channelState($0) }
    }

    private func checkAnswers() {
        // The machine already counts subscriptions that are among its actions.
        if !session.hasActions { answers.checkRefusals(stateOfChannel) }
    }

    private func perform(_ action: PusherSession.Action) {
        switch action {
        case .command(let command): perform(command)
        case .report(let report): self.report(report)
        }
    }

    private func perform(_ command: PusherSession.Command) {
        switch command {
        case .connect(let attempt): open(attempt)
        case .send(let number, let bytes): send(bytes, number)
        case .ping(let number):
            requireConfirmed(number, "a ping frame")
            pings.sent(position: link?.sent.queued ?? 0, isFence: false)
            guard let link else { return }
            link.up { [self] in link.down { [self] in heard(link) } }
        case .close(let number): close(number)
        case .drop(let number):
            guard let link, link.number == number else { return }
            dropLink(link)
        case .authorize(let request): authorize(request)
        case .cancelAuthorization(let number):
            world.require(requests.removeValue(forKey: number) != nil, "cancels nothing")
            keyRequests[number] = nil
        }
    }

    func report(_ report: PusherSession.Report) {
        world.trace("user", PusherRun.text(report))
        switch report {
        case .stateChanged(let change):
            answers.reset()
            ledger.changed(change)
            if change.new == .disconnected, !isWished, !isPeaceful { comeBack() }
        case .event(let event, let id):
            let name = String(decoding: event.event, as: UTF8.self)
            guard name.hasPrefix("e"), let id else { break }
            checkText(event, id)
            ledger.delivered(name, id)
        case .channel(let id, .decryptionFailed(let event, _)):
            world.count("cannot decrypt")
            // The end of a connection also ends the wait for a key.
            let isExcused = !plan.isGentle || session.state != .connected
            world.require(isExcused, "\(event) cannot be decrypted")
            ledger.delivered(event, id)
        case .userEvent(let event):
            world.count("user event")
            ledger.delivered(String(decoding: event.event, as: UTF8.self), 0)
        case .signedIn(let id, _):
            world.count("signed in")
            world.require(id == sentUser, "\(id) is signed in, and not \(sentUser ?? "nobody")")
            user = id
        case .signedOut: user = nil
        case .signInFailed: world.count("sign-in failed")
        case .channel(let id, .state(.failed)):
            guard let name = ledger.names[id], ledger.states[id] == .sent else { break }
            answers.failed(name)
        case .watchlist: world.count("watchlist")
        case .channel(_, .failed): world.count("subscription failed")
        case .channel(_, .memberAdded): world.count("member added")
        case .channel(_, .memberRemoved): world.count("member removed")
        case .channel(_, .triggerFailed): world.count("client event dropped")
        case .failed: world.count("error")
        case .channel, .log, .signInAnswered: break
        }
        ledger.reported(report)
        if !isPeaceful, random.chance(plan.hasty) {
            world.count("acted in a callback")
            perform(anyDeed())
        }
    }

    /// An encrypted event must have the text that was sealed.
    private func checkText(_ event: PusherEvent, _ id: UInt64) {
        guard ledger.names[id]?.hasPrefix("private-encrypted-") == true else { return }
        let text = String(decoding: event.dataBytes, as: UTF8.self)
        let isKnown = PusherKeys.sealed.contains { $0.contains { $0.text == text } }
        world.require(isKnown, "decrypted to \(text)")
        world.count("decrypted")
    }

    // MARK: The socket

    private func open(_ attempt: PusherSession.Attempt) {
        world.require(link == nil, "a second socket")
        world.require(
            attempt.url.isSecure == (plan.configuration.usesTLS || reading.isUpgraded),
            "TLS is \(attempt.url.isSecure)")
        if reading.isUpgraded { world.count("upgraded") }
        world.trace("link", "open \(attempt.number)")
        let link = PusherLink(
            attempt.number, world, slowest: isPeaceful ? 50 : plan.slowestLink,
            uplink: plan.isGentle || isPeaceful ? nil : 5...30, random.split())
        link.arrived = { [unowned self, unowned link] in
            if link === self.link { pings.arrived($0) }
        }
        self.link = link
        pings.reset()
        sentUser = nil
        reading.attempted()
        let fails = !isOnline || !isPeaceful && random.chance(plan.failing)
        world.after(random.milliseconds(0...(isPeaceful ? 50 : 4000))) { [self] in
            guard !link.isDropped else { return }
            guard !fails else {
                world.count("failed to open")
                return end(nil, link)
            }
            link.isOpen = true
            reading.opened()
            call { $0.opened(link.number, now: world.now) }
            act()
            link.up { [self] in server.greet(link) }
        }
    }

    private func dropLink(_ link: PusherLink) {
        link.drop()
        if self.link === link { self.link = nil }
        world.after(random.milliseconds(0...100)) { [self] in server.ended(link) }
    }

    private func close(_ number: UInt64) {
        guard let link, link.number == number else { return world.fail("closes no socket") }
        link.up { [self] in
            server.ended(link)
            // Not by `down`, because the server's end is gone.
            world.after(random.milliseconds(0...plan.slowestLink)) { [self] in
                if !link.isDropped { end(1000, link) }
            }
        }
    }

    /// The client's socket ends.
    private func end(_ code: UInt16?, _ link: PusherLink) {
        guard !link.isDropped, world.violation == nil else { return }
        world.trace("link", "\(link.number) ended: \(code.map { "\($0)" } ?? "no code")")
        dropLink(link)
        let error = code == nil ? RealtimeError(.connectionLost, "the link is gone") : nil
        call(.ended(code: code.map { Int($0) })) {
            $0.ended(
                link.number, PusherSocketEnd(closeCode: code, error: error, wasClean: code != nil),
                now: world.now)
        }
        act()
    }

    private func requireConfirmed(_ number: UInt64, _ what: String) {
        world.require(
            link?.number == number && link?.isConfirmed == true,
            "\(what) on a socket that is not confirmed")
    }

    private func send(_ bytes: [UInt8], _ number: UInt64) {
        let text = String(decoding: bytes, as: UTF8.self)
        world.trace("client", text)
        requireConfirmed(number, text)
        guard let link else { return }
        if text.hasPrefix(#"{"event":"pusher:ping""#) {
            pings.sent(position: link.sent.queued, isFence: answers.mayPing)
            answers.pingSent()
        }
        if let id = PusherRun.signedIn(by: text) {
            sentUser = id
            answers.signInSent()
        }
        if let name = PusherRun.subscribed(by: text) {
            answers.sent(name)
            if answers.isLate(name) { link.repeated.insert(name) }
        }
        let prefix = #"{"event":"client-"#
        if text.hasPrefix(prefix),
            let number = Int(text.dropFirst(prefix.count).prefix { $0 != "\"" })
        {
            ledger.sent(number, rate: plan.configuration.clientEventRate)
        }
        link.up(bytes.count) { [self] in server.receive(bytes, link) }
    }

    private func heard(_ link: PusherLink) {
        guard link === self.link, !link.isDropped else { return }
        pings.heard()
        call { $0.activity(link.number, now: world.now) }
        act()
    }

    // MARK: Messages

    private func receive(_ text: String, _ link: PusherLink) {
        guard !link.isDropped, world.violation == nil else { return }
        guard !isPaused else {
            // The driver reads it after the pause.
            held.append((text, link))
            return
        }
        world.trace("server", text)
        let json = try? JSONValue(parsing: text)
        let event = json?["event"]?.stringValue ?? ""
        if link === self.link { pings.heard() }
        var cause = PusherReading.Cause.other
        if event == "pusher:error", link === self.link {
            let code = PusherRun.code(json)
            reading.failed(code)
            if !link.isConfirmed, let code, (4000...4299).contains(code) {
                cause = .refused(code: code)
            }
        }
        if event == "pusher:connection_established" { learnTimeout(json) }
        let channel = json?["channel"]?.stringValue ?? ""
        // Until it is sent, the subscription that the user has ended gets the events.
        let isHeld = stateOfChannel(channel) == .idle
        if event.hasPrefix("e"), session.state == .connected, !isHeld {
            ledger.arrived(event, on: channel, user: user)
        }
        if link === self.link, link.isConfirmed, session.state == .connected {
            let user = PusherRun.confirmed(json)
            answers.received(
                event, channel, code: PusherRun.code(json),
                isUser: sentUser == nil || user == sentUser)
        }
        var reception: PusherReception?
        call(cause) { session in
            Array(text.utf8).withUnsafeBytes { bytes in
                do throws(RealtimeError) {
                    reception = try reader.read(bytes) { envelope in
                        session.received(envelope, on: link.number, now: world.now)
                    }
                } catch {
                    session.receivedMalformed(error, on: link.number, now: world.now)
                }
            }
        }
        checkAnswers()
        if case .deliver(let id, _)? = reception {
            world.trace("user", "\(event) on \(id.map { "\($0)" } ?? "none"), at once")
            if event.hasPrefix("e"), let id { ledger.delivered(event, id) }
            world.count("delivered")
        }
        guard random.chance(plan.lazy) else { return act() }
        world.after(.zero) { [self] in act() }
    }

    func setPaused(_ isPaused: Bool) {
        guard isPaused != self.isPaused else { return }
        self.isPaused = isPaused
        if !isPaused { answers.resumed() }
        call { $0.setPaused(isPaused, now: world.now) }
        act()
        guard !isPaused else { return }
        pings.resumed()
        let all = held
        held = []
        for (text, link) in all { receive(text, link) }
    }

    private func learnTimeout(_ json: JSONValue?) {
        let asked = plan.dialect.activityTimeout.map { Duration.seconds($0) }
        let own = plan.configuration.activityTimeout
        pings.timeout = own > .zero ? min(own, asked ?? own) : asked ?? .seconds(60)
    }
}
