import Session
import Wire

/// A Meteor server of any age: its documents, its connections, and what it answers.
final class DDPServer {
    let world: World
    let plan: DDPPlan
    var random: Random
    /// How a message reaches the client.
    var deliver: (String, DDPLink) -> Void = { _, _ in }
    /// How the end of a connection reaches the client.
    var deliverEnd: (UInt16?, DDPLink) -> Void = { _, _ in }
    var isPeaceful = false

    var documents: [DDPServerKey: DDPServerFields] = [:]
    private var sessions: [String: DDPServerSession] = [:]
    private(set) var link: DDPLink?
    private var lastSession = 0
    private let began: Instant
    /// The runs of each call.
    var runs: [String: [DDPServerRun]] = [:]
    var lastValue = 0
    /// The users of the tokens.
    var tokens: [String: String] = [:]

    init(_ world: World, _ plan: DDPPlan) {
        self.world = world
        self.plan = plan
        random = world.random.split()
        began = world.now
        for number in 0..<random.within(0...12) {
            writeAnything(isFirst: true, number)
        }
    }

    /// What the present session of the client has sent, and whether it may have more to send.
    var session: DDPServerSession? { link?.session }

    /// Milliseconds since 1970.
    func wallClock() -> Int64 {
        1_700_000_000_000 + Int64((world.now - began) / .milliseconds(1))
    }

    /// Nothing keeps the objects of the server alive.
    func release() {
        deliver = { _, _ in }
        deliverEnd = { _, _ in }
        link = nil
        for session in sessions.values { session.close() }
        sessions = [:]
    }

    func delay(_ slowest: Int) -> Duration {
        random.milliseconds(0...(isPeaceful ? min(slowest, 100) : slowest))
    }

    // MARK: Connections

    /// The client's socket has opened.
    func greet(_ link: DDPLink) {
        // It may not know yet that the connection before is gone, or hear of this one too late.
        if self.link.map({ $0.number < link.number }) ?? true { self.link = link }
        if plan.greets { send(link, #"{"server_id":"0"}"#) }
        keepAsking(link)
        guard !isPeaceful, random.chance(plan.short) else { return }
        world.after(random.milliseconds(0...plan.longestLife)) { [self] in
            if !link.isEnded, self.link === link { end(random.pick([.close, .cut])) }
        }
    }

    func send(_ link: DDPLink, _ text: String) {
        link.down { [self] in deliver(text, link) }
    }

    /// The server's end of a connection is gone.
    func lost(_ link: DDPLink) {
        guard !link.isEnded else { return }
        link.end()
        link.session?.lost(resumes: plan.resumes)
        if self.link === link { self.link = nil }
    }

    func end(_ how: DDPPlan.End) {
        guard let link else { return }
        world.count("ended by the server")
        world.trace("network", "\(how) \(link.number)")
        switch how {
        case .close: close(link)
        case .cut:
            link.isStalled = true
            world.after(random.milliseconds(0...500)) { [self] in
                if !link.isDropped { deliverEnd(nil, link) }
            }
            world.after(delay(plan.slowestNotice)) { [self] in lost(link) }
        case .stall:
            world.count("stalled")
            link.isStalled = true
            world.after(.seconds(random.pick([1, 30, 100]))) { [self] in lost(link) }
        }
    }

    func close(_ link: DDPLink) {
        link.down { [self] in deliverEnd(1000, link) }
        lost(link)
    }

    /// Sends a ping to a silent client, and ends the connection of one that stays silent.
    private func keepAsking(_ link: DDPLink) {
        world.after(.seconds(15)) { [self] in
            guard !link.isEnded else { return }
            defer { keepAsking(link) }
            let isSilent = !link.hasHeard && link.pongDue == nil
            link.hasHeard = false
            guard isSilent, link.session != nil, link.version != "pre1" else { return }
            world.count("ping of the server")
            let number = random.below(1000)
            let id = random.chance(50) ? #","id":"p\#(number)""# : ""
            send(link, #"{"msg":"ping"\#(id)}"#)
            // The link keeps the alarm.
            link.pongDue = world.after(.seconds(15)) { [self, weak link] in
                guard let link, !link.isEnded else { return }
                world.require(
                    link.isStalled || link.isDropped, "a ping of the server was not answered")
                close(link)
            }
        }
    }

    // MARK: Messages

    func receive(_ bytes: [UInt8], _ link: DDPLink) {
        guard let json = try? JSONValue(parsing: bytes), let kind = json["msg"]?.stringValue else {
            return world.fail("the client sends what is not a message")
        }
        guard !link.isRefused else { return }
        link.hasHeard = true
        link.pongDue?.cancel()
        link.pongDue = nil
        guard let session = link.session else { return connect(json, link) }
        guard !session.isClosed else { return close(link) }
        switch kind {
        case "ping":
            if link.version == "pre1" {
                session.send(#"{"msg":"error","reason":"Bad request"}"#)
                return world.fail("a ping to a server that knows none")
            }
            let id = json["id"]?.stringValue.map { #","id":"\#($0)""# } ?? ""
            session.send(#"{"msg":"pong"\#(id)}"#, counts: false)
        case "pong": break
        case "connect": world.fail("connect twice")
        default:
            session.inbox.append(json)
            handleNext(session)
        }
    }

    private func connect(_ json: JSONValue, _ link: DDPLink) {
        world.require(json["msg"] == .string("connect"), "does not begin with connect")
        guard isPeaceful || !random.chance(plan.silent) else {
            link.isRefused = true
            return
        }
        link.version = json["version"]?.stringValue ?? ""
        let offered = (json["support"]?.arrayValue ?? []).compactMap { $0.stringValue }
        let chosen = offered.first { plan.versions.contains($0) } ?? plan.versions[0]
        guard chosen == link.version else {
            link.isRefused = true
            send(link, #"{"msg":"failed","version":"\#(chosen)"}"#)
            return close(link)
        }
        let wanted = json["session"]?.stringValue
        let received = json["receivedCount"]?.integerValue
        world.require(
            (wanted == nil) == (received == nil), "a session without count, or the reverse")
        if plan.resumes, let wanted, let old = sessions[wanted],
            old.resume(link, received: received)
        {
            link.session = old
            return world.count("resumed")
        }
        if wanted != nil { world.count("not resumed") }
        lastSession += 1
        let session = DDPServerSession("s\(lastSession)", link, world) { [weak self] in
            self?.send($1, $0)
        }
        sessions[session.id] = session
        link.session = session
        session.begin()
    }

    // MARK: One message after the other

    func handleNext(_ session: DDPServerSession) {
        guard !session.isBusy, !session.inbox.isEmpty, !session.isClosed else { return }
        let message = session.inbox.removeFirst()
        let id = message["id"]?.stringValue ?? ""
        switch message["msg"]?.stringValue {
        case "sub": subscribe(id, message, session)
        case "unsub": unsubscribe(id, session)
        case "method":
            session.isBusy = true
            run(id, message, session)
        case "disconnect":
            session.isKept = false
            if !plan.resumes { session.send(#"{"msg":"error","reason":"Bad request"}"#) }
        default: world.fail("an unknown message of the client")
        }
        handleNext(session)
    }

    // MARK: Publications

    private func subscribe(_ id: String, _ message: JSONValue, _ session: DDPServerSession) {
        let name = message["name"]?.stringValue ?? ""
        let params = message["params"]?.arrayValue ?? []
        world.require(params.count == 2, "a subscription with \(params.count) parameters")
        guard session.subscriptions[id] == nil, params.count == 2 else { return }
        guard name != "refused" else {
            world.count("refused subscription")
            return session.send(#"{"msg":"nosub","id":"\#(id)","error":{"error":404}}"#)
        }
        session.subscriptions[id] = DDPServerSubscription(
            name: name, collection: params[0].stringValue ?? "", value: params[1].json)
        world.after(delay(plan.slowestReady)) { [self] in
            guard !session.isClosed, session.subscriptions[id] != nil else { return }
            session.subscriptions[id]?.isActive = true
            refresh(session)
            world.after(delay(plan.slowestRefresh)) { [self] in ready(id, session) }
        }
    }

    private func ready(_ id: String, _ session: DDPServerSession) {
        guard !session.isClosed, let subscription = session.subscriptions[id] else { return }
        session.subscriptions[id]?.isReady = true
        refresh(session)
        session.send(#"{"msg":"ready","subs":["\#(id)"]}"#)
        guard subscription.name == "brief" else { return }
        world.after(delay(20_000)) { [self] in
            guard !session.isClosed, session.subscriptions[id] != nil else { return }
            world.count("brief subscription")
            unsubscribe(id, session)
        }
    }

    private func unsubscribe(_ id: String, _ session: DDPServerSession) {
        session.subscriptions[id] = nil
        refresh(session)
        session.send(#"{"msg":"nosub","id":"\#(id)"}"#)
    }

    /// What a session is to show.
    func published(_ session: DDPServerSession) -> [DDPServerKey: DDPServerFields] {
        var shown: [DDPServerKey: DDPServerFields] = [:]
        if let user = session.user, session.isUserShown {
            shown[DDPServerKey(collection: "users", id: user)] = ["username": "\"name of \(user)\""]
        }
        let active = session.subscriptions.values.filter { $0.isActive }
        for (key, fields) in documents {
            for one in active {
                guard let some = one.publishes(key, fields, user: session.user) else { continue }
                shown[key, default: [:]].merge(some) { $1 }
            }
        }
        return shown
    }

    func refresh(_ session: DDPServerSession) { session.show(published(session)) }

    /// Documents have changed.
    func changed() {
        for session in sessions.values.sorted(by: { $0.id < $1.id })
        where !session.isClosed && session.refresh == nil {
            // The session keeps the alarm.
            session.refresh = world.after(delay(plan.slowestRefresh)) { [self, weak session] in
                if let session { refresh(session) }
            }
        }
    }

    // MARK: What happens at the server

    func sendGarbage() {
        guard let session else { return }
        let choices = [
            ("[]", false), ("nonsense", false), ("{}", false), (#"{"msg":5}"#, true),
            (#"{"msg":"news"}"#, true), (#"{"msg":"added","collection":"tasks"}"#, true),
            (#"{"msg":"added","id":"x","collection":5}"#, true), (#"{"msg":"ready"}"#, true),
            (#"{"msg":"ready","subs":["nobody",5]}"#, true),
            (#"{"msg":"changed","collection":"tasks","id":"~","fields":{}}"#, true),
            (#"{"msg":"updated","methods":["77777","x",""]}"#, true),
            (#"{"msg":"result","id":"77777","result":1}"#, true),
            (#"{"msg":"result"}"#, true), (#"{"msg":"nosub","id":"nobody"}"#, true),
            (#"{"msg":"error","reason":"Bad request"}"#, true),
            (#"{"msg":"removed","collection":"unknown","id":"nobody"}"#, true),
            (#"{"msg":"connected","session":"x"}"#, true), (#"{"msg":"pong","id":"x"}"#, false),
        ]
        let (text, counts) = random.pick(choices)
        world.trace("server", "garbage: \(text)")
        session.send(text, counts: counts)
    }

    func repeatDocument() {
        guard let session, !session.view.isEmpty else { return }
        session.repeatDocument(random.pick(session.view.keys.sorted()))
    }
}
