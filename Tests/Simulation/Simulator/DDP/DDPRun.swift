import Documents
import Session
import Wire

/// Draws the ids of subscriptions and the seeds of calls.
struct DDPSimulatedIDs: DDPRandomSource {
    var random: Random
    /// The last id of a subscription.
    var drawn: String?

    mutating func seed() -> String { digits(20) }

    mutating func subscriptionID() -> String {
        let id = "s" + digits(16)
        drawn = id
        return id
    }

    private mutating func digits(_ count: Int) -> String {
        (0..<count).reduce(into: "") { text, _ in text += String(random.below(16), radix: 16) }
    }
}

/// A DDP session as its driver in `Sources/Engine` drives it: the network, the server and the user
/// around it, and the invariants after every turn.
final class DDPRun {
    let world: World
    var random: Random
    let plan: DDPPlan
    let server: DDPServer
    let putOff: DDPPutOff
    let reading: DDPReading
    let calls: DDPCallLedger
    let subscriptions: DDPSubscriptionLedger
    let documents: DDPDocumentLedger
    let views: DDPViewLedger
    let accounts: DDPAccountLedger
    var session: DDPSession
    var ids: DDPSimulatedIDs
    var reader = DDPReader()
    private let keepsDocuments: Bool
    /// The host looks after the token before each connection, as drivers do.
    private let keepsTokens: Bool

    private(set) var link: DDPLink?
    private var alarm: World.Alarm?
    private let turn: ActionTurn
    private var isOnline = true
    var isPeaceful = false
    var greetings: Random
    /// How flushes are divided.
    var parts: Random
    /// The driver will continue a flush.
    var willContinue = false
    /// What the server has sent while the driver receives nothing, because a flush is in progress.
    var unread: [() -> Void] = []
    /// The user's handler for new connections runs.
    private var isInHandler = false
    /// The user's handler for new connections makes a call.
    private(set) var isGreeting = false
    /// The user wants no connection.
    var isWished = false
    /// The user, or the host, has last acted.
    private var actedAt: Instant?
    /// Pings of the server that must be answered in this turn.
    var owed: [String?] = []
    private var hasChanged = false
    var isReceiving = false
    var isInBackground = false
    /// When a connection ends because the application is in the background.
    var graceEndsAt: Instant?
    /// The subscriptions of each loader, and the loaders that have not called back.
    var loaders: [UInt64: [UInt64]] = [:]
    var awaited: Set<UInt64> = []

    init(_ world: World) {
        self.world = world
        turn = ActionTurn(world, limit: 5000)
        random = world.random.split()
        plan = DDPPlan(&random)
        server = DDPServer(world, plan)
        putOff = DDPPutOff(world)
        reading = DDPReading(world, plan.configuration, putOff)
        calls = DDPCallLedger(world, server, putOff)
        subscriptions = DDPSubscriptionLedger(world)
        documents = DDPDocumentLedger(world, limit: plan.configuration.quiescenceLimit)
        views = DDPViewLedger(world)
        var token: DDPLoginToken?
        if let kept = plan.kept {
            token = DDPLoginToken(userID: kept.user, token: "kept", expires: nil)
            if kept.isGood { server.tokens["kept"] = kept.user }
        }
        accounts = DDPAccountLedger(world, stored: token)
        session = DDPSession(plan.configuration, jitter: random.next(), token: token)
        session.wantsLog = random.chance(30)
        ids = DDPSimulatedIDs(random: random.split())
        keepsDocuments = plan.deeds.count % 3 == 0
        keepsTokens = plan.deeds.count % 2 == 0
        // A copy: the other draws stay the same.
        greetings = random
        parts = random
        if plan.flushSteps > 0 { session.flushSteps = plan.flushSteps }
        if plan.isGentle { world.count("gentle") }
        world.trace("plan", "\(plan.versions), resumes \(plan.resumes), gentle \(plan.isGentle)")
        server.deliver = { [self] text, link in read { [self] in receive(text, link) } }
        server.deliverEnd = { [self] code, link in read { [self] in end(code, link) } }
        if keepsDocuments { restart(with: token?.userID) }
    }

    /// Begins with documents that an earlier run has kept; the server has some of them, and may
    /// have others.
    private func restart(with user: String?) {
        var kept: [DDPKeptDocuments.Collection] = []
        var documents: [DocumentKey: EJSONObject] = [:]
        for collection in DDPPlan.collections {
            var list: [(id: DocumentID, fields: EJSONObject)] = []
            let present = server.documents.keys.filter { $0.collection == collection }
            for name in ["old1", "old2"] + present.map({ $0.id }).sorted() {
                guard let id = DocumentID(wire: name) else { continue }
                list.append((id, ["n": 1, "kind": 0, "old": .bool(true)]))
                documents[DocumentKey(collection: collection, id: id)] = list.last?.fields
            }
            kept.append(.init(name: collection, documents: list))
        }
        let ready: [EJSON] = plan.first.prefix(2).map { .array([.string($0.name)] + $0.params) }
        session.keepDocuments(
            DDPKeptDocuments(userID: user, subscriptions: ready, collections: kept))
        self.documents.begins(with: documents)
        world.count("restarted")
    }

    /// Nothing keeps the objects of the run alive.
    func release() {
        alarm = nil
        link = nil
        unread = []
        server.release()
    }

    // MARK: The driver's turn

    /// What the user, or the host, does.
    func call(_ body: (inout DDPSession) -> Void) {
        actedAt = world.now
        setClock()
        session.callsGoFirst = isGreeting
        body(&session)
        // The actions of what the handler does follow with those of `opened`.
        if !isInHandler { act() }
    }

    func setClock() { session.wallClock = server.wallClock() }

    func act() {
        putOff.observe(isFlushing: session.isFlushing)
        guard turn.run({ session.nextAction() }, perform) else { return }
        arm()
        check()
        continueLater()
    }

    private func arm() {
        alarm?.cancel()
        alarm = nil
        guard let time = session.wakeUp else { return }
        alarm = world.at(time) { [self] in
            setClock()
            session.sentBytes = link?.sent ?? SentBytes()
            session.timeReached(world.now)
            act()
        }
    }

    private func check() {
        guard world.violation == nil else { return }
        world.require(reading.status == session.status || calls.isClosed, "an unknown status")
        world.require(owed.isEmpty || link == nil, "a ping was not answered at once")
        // To look at the documents would finish a flush.
        if hasChanged, !session.isFlushing {
            hasChanged = false
            documents.compare(session.store)
            views.compare(session.store)
        }
        let isOpen = link.map { $0.isOpen && !$0.isRefused } ?? false
        subscriptions.check(isOpen: isOpen && !putOff.isLate) { session.isReady($0) }
        reading.check()
        accounts.check(session)
        if session.isSettled { documents.settled() }
        if session.status == .offline, !isWished || session.status == .failed {
            world.require(link == nil, "a socket is left")
        }
    }

    private func perform(_ action: DDPSession.Action) {
        switch action {
        case .command(let command): perform(command)
        case .report(let report): self.report(report)
        }
    }

    private func perform(_ command: DDPSession.Command) {
        switch command {
        case .connect(let number): open(number)
        case .send(let number, let bytes): send(bytes, number)
        case .close(let number): close(number)
        case .drop(let number): drop(number)
        case .keep: keep()
        }
    }

    private func keep() {
        world.count("kept")
        let kept = session.keptDocuments()
        documents.areKept(kept)
        session.keptDocuments(took: .milliseconds(20), now: world.now)
        actInCallback()
    }

    private func report(_ report: DDPSession.Report) {
        world.trace("user", DDPRun.text(report))
        switch report {
        case .status(let change): statusChanged(change)
        case .changed(let notification):
            hasChanged = true
            documents.knows(
                session.userID, reported: accounts.user, isLoggingIn: calls.isLoggingIn,
                wasLoggingIn: calls.wasLoggingIn,
                isOfAnother: calls.isLoggingInAnother(than: accounts.user))
            documents.notified(notification.changes)
            views.notified(notification.live)
        case .result(let id, let result):
            calls.result(id, result, session.status)
            if case .failure(let error) = result, calls.isGivenUp(id, error) {
                documents.abandoned("\(id)")
            }
        case .completed(let id, let result):
            calls.completed(id, result)
            if calls.calls[id]?.plan.name == "login" { documents.loginEnded() }
            documents.knows(
                session.userID, reported: accounts.user, isLoggingIn: calls.isLoggingIn,
                wasLoggingIn: calls.wasLoggingIn,
                isOfAnother: calls.isLoggingInAnother(than: accounts.user))
            if case .success = result, link?.isConfirmed == true, !documents.isWaiting,
                !calls.isOverdue(id)
            {
                documents.checkAll("the end of call \(id)")
            }
        case .ready(let handle):
            subscriptions.ready(handle)
            // Another use of it shows nothing new.
            if isReceiving, link?.isConfirmed == true, !documents.isWaiting {
                documents.checkAll("the start of \(handle)")
            }
        case .stopped(let handle, _):
            subscriptions.stopped(handle, hasFailed: session.status == .failed)
        case .loaded(let loader, _): loaded(loader)
        case .account(let event):
            accounts.reported(event)
            if keepsTokens { accounts.keep(event, &session) }
        case .current: documents.areCurrent()
        case .streamed, .refused, .log: break
        }
        actInCallback()
    }

    private func actInCallback() {
        if random.chance(isPeaceful ? 0 : plan.hasty) {
            world.count("acted in a callback")
            perform(anyDeed())
        }
    }

    // MARK: The socket

    private func open(_ number: UInt64) {
        world.require(link == nil, "a second socket")
        reading.dials()
        world.trace("link", "open \(number)")
        let link = DDPLink(
            number, world, slowest: isPeaceful ? min(50, plan.slowestLink) : plan.slowestLink,
            uplink: plan.isGentle || isPeaceful ? nil : 20...60, random.split())
        link.arrived = { [unowned self, unowned link] in
            if link === self.link { reading.arrived($0) }
        }
        self.link = link
        world.after(plan.configuration.connectTimeout + .milliseconds(1)) { [self] in
            world.require(link.isDropped || link.isConfirmed, "an attempt has no limit")
        }
        let fails = !isOnline || !isPeaceful && random.chance(plan.failing)
        world.after(random.milliseconds(0...(isPeaceful ? 50 : 4000))) { [self] in
            guard !link.isDropped else { return }
            guard !fails else {
                world.count("failed to open")
                return end(nil, link)
            }
            opened(link)
        }
    }

    private func opened(_ link: DDPLink) {
        link.isOpen = true
        calls.opened(link.number)
        for id in calls.withdrawn { documents.abandoned("\(id)") }
        subscriptions.opened()
        setClock()
        if keepsTokens { session.useToken(accounts.stored, now: world.now) }
        session.beginOpening(link.number, now: world.now)
        greet()
        guard !link.isDropped else { return }
        subscriptions.resent()
        session.opened(link.number, now: world.now)
        link.up { [self] in server.greet(link) }
        act()
    }

    /// The user's handler for new connections.
    private func greet() {
        guard greetings.chance(plan.greeting) else { return }
        // The invariants hold again after `opened`.
        _ = turn.run({ session.nextAction() }, perform)
        guard session.isOpening else { return }
        isInHandler = true
        for _ in 0..<greetings.within(1...3) {
            // Another thread may call meanwhile.
            isGreeting = greetings.chance(80)
            world.count(isGreeting ? "greeted" : "called while greeting")
            makeCall(DDPPlan.call(&greetings))
        }
        (isInHandler, isGreeting) = (false, false)
    }

    private func drop(_ number: UInt64) {
        // It may drop a socket before the driver has opened it.
        guard let link, link.number == number else { return }
        let isOld = world.now - link.openedAt >= plan.configuration.connectTimeout
        if actedAt != world.now, world.now != graceEndsAt {
            if link.isConfirmed {
                reading.drops()
            } else {
                world.require(isOld || link.isRefusal, "drops an attempt")
            }
        }
        if link.isRefusal { reading.mayDial() }
        dropLink(link)
    }

    private func dropLink(_ link: DDPLink) {
        link.drop()
        owed = []
        reading.ended()
        documents.lost()
        if self.link === link { self.link = nil }
        let notice = server.delay(plan.slowestNotice)
        world.after(notice) { [self] in server.lost(link) }
    }

    private func close(_ number: UInt64) {
        guard let link, link.number == number else { return world.fail("closes no socket") }
        // What was sent before still arrives.
        let server = server
        link.up { server.lost(link) }
        link.drop()
        owed = []
        reading.ended()
        documents.lost()
        self.link = nil
    }

    /// The client's socket ends.
    func end(_ code: UInt16?, _ link: DDPLink) {
        guard !link.isDropped, world.violation == nil else { return }
        world.trace("link", "\(link.number) ended: \(code.map { "\($0)" } ?? "no code")")
        if !link.isConfirmed, link.isRefusal { reading.mayDial() }
        dropLink(link)
        let error = code == nil ? RealtimeError(.connectionLost, "the link is gone") : nil
        session.ended(
            link.number, DDPSocketEnd(closeCode: code.map { Int($0) }, error: error),
            now: world.now)
        act()
    }

    func setOnline(_ isOnline: Bool) {
        guard isOnline != self.isOnline else { return }
        world.trace("network", isOnline ? "up" : "down")
        self.isOnline = isOnline
        if isOnline { reading.startsAfresh() }
        if !isOnline, random.chance(70) { server.end(.cut) }
        call { $0.networkChanged(isReachable: isOnline, now: world.now) }
    }

    // MARK: Messages

    private func send(_ bytes: [UInt8], _ number: UInt64) {
        let text = String(decoding: bytes, as: UTF8.self)
        world.trace("client", text)
        guard let link, link.number == number, link.isOpen else {
            return world.fail("sends on a socket that is not open: \(text)")
        }
        guard let json = try? JSONValue(parsing: bytes), let kind = json["msg"]?.stringValue else {
            return world.fail("sends what is not a message: \(text)")
        }
        let id = json["id"]?.stringValue
        world.require((kind == "connect") == !link.isGreeted, "\(kind) comes at the wrong time")
        link.isGreeted = true
        switch kind {
        case "ping": reading.pings(behind: link.sent.queued)
        case "pong":
            world.require(owed.first == .some(id), "a pong to no ping")
            if !owed.isEmpty { owed.removeFirst() }
        case "sub":
            subscriptions.sent(
                id ?? "", name: json["name"]?.stringValue ?? "",
                params: json["params"]?.arrayValue ?? [])
        case "unsub": subscriptions.sentEnd(id ?? "")
        case "method":
            calls.sent(id ?? "", name: json["method"]?.stringValue ?? "")
            if calls.isWait(id) { documents.heldUp(by: id ?? "") }
        default: break
        }
        reading.sent()
        link.up(bytes.count) { [self] in server.receive(bytes, link) }
    }
}
