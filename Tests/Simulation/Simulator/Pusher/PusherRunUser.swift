import Session
import Wire

// The user: what is done, and how authorizations are answered.
extension PusherRun {
    func begin() {
        for name in plan.first { subscribe(name) }
        connect()
        for (time, deed) in plan.deeds {
            world.after(time) { [self] in
                guard world.violation == nil else { return }
                perform(deed)
            }
        }
        world.after(plan.peaceAt) { [self] in makePeace() }
    }

    func anyDeed() -> PusherPlan.Deed {
        let channel = random.pick(PusherPlan.channels)
        switch random.below(6) {
        case 0: return .connect
        case 1: return .disconnect
        case 2, 3: return .subscribe(channel)
        case 4: return .unsubscribe(channel)
        default: return .trigger(channel, 1)
        }
    }

    func perform(_ deed: PusherPlan.Deed) {
        switch deed {
        case .publish(let count):
            for _ in 0..<count { server.publish(on: random.pick(everyChannel)) }
        case .subscribe(let name): subscribe(name)
        case .unsubscribe(let name): unsubscribe(name)
        case .trigger(let name, let count): trigger(name, count, isCertain: false)
        case .signIn: signIn()
        case .signOut: signOut()
        case .changeUser:
            signOut()
            nextUser = random.pick(PusherPlan.users)
            signIn()
        case .connect: connect()
        case .disconnect: disconnect()
        case .memberComes(let name): server.memberComes(name)
        case .memberGoes(let name): server.memberGoes(name)
        case .rotateKey(let name): server.rotate(name)
        case .end(let how): server.end(how)
        case .offline(let time):
            setOnline(false)
            world.after(time) { [self] in setOnline(true) }
        case .reportNetwork(let isReachable):
            report(isReachable)
            if !isReachable { world.after(.seconds(20)) { [self] in report(true) } }
        case .pause(let time):
            setPaused(true)
            world.after(time) { [self] in setPaused(false) }
        case .garbage: server.sendGarbage()
        case .setRetries(let most, let gap):
            reading.setRetries(most, gap)
            call { $0.configureRetries(max: most, gap: gap) }
            act()
        }
    }

    private var everyChannel: [String] {
        PusherPlan.channels + (user.map { ["#server-to-user-\($0)"] } ?? [])
    }

    func subscribe(_ name: String) {
        guard let channel = try? PusherChannelName(name) else { return }
        let isNew = ledger.registered[name] == nil
        let id = ledger.subscribe(name)
        world.trace("user", "subscribe \(name), \(id)")
        if isNew, session.state == .connected { answers.subscribedAgain(name) }
        let answer = random.chance(10) ? givenAnswer(channel) : nil
        call { $0.subscribe(id, channel, answer: answer, now: world.now) }
        act()
    }

    /// An authorization that the user has made for the current connection.
    private func givenAnswer(_ channel: PusherChannelName) -> PusherAuthorizationAnswer? {
        guard channel.needsAuthorization, let socketID = session.socketID else { return nil }
        return PusherAuthorizationAnswer(
            auth: "KEY:\(socketID):\(channel.text)",
            channelData: channel.kind == .presence ? #"{"user_id":"me"}"# : nil,
            sharedSecret: random.chance(50) ? server.key(channel.text) : nil)
    }

    func unsubscribe(_ name: String) {
        guard let id = ledger.unsubscribe(name) else { return }
        world.trace("user", "unsubscribe \(name), \(id)")
        answers.unsubscribed(
            name, wasSent: session.channelState(id) == .sent, isInTurn: session.hasActions)
        call { $0.unsubscribe(id, now: world.now) }
        act()
    }

    func trigger(_ name: String, _ count: Int, isCertain: Bool) {
        guard let id = ledger.registered[name],
            (try? PusherChannelName(name))?.allowsClientEvents == true
        else { return }
        for _ in 0..<count {
            let event = "client-\(ledger.trigger(id, isCertain: isCertain))"
            world.trace("user", "trigger \(event) on \(name)")
            call { $0.trigger(id, event, nil, now: world.now) }
        }
        act()
    }

    func signIn() {
        world.trace("user", "sign in")
        call { $0.signIn(now: world.now) }
        act()
    }

    private func signOut() {
        world.trace("user", "sign out")
        sentUser = nil
        call { $0.signOut(now: world.now) }
        act()
    }

    func connect() {
        world.trace("user", "connect")
        isWished = false
        if session.state == .disconnected || session.state == .disconnecting {
            reading.restarted()
        }
        call { $0.connect(now: world.now) }
        act()
    }

    func disconnect() {
        world.trace("user", "disconnect")
        isWished = true
        call { $0.disconnect(now: world.now) }
        act()
    }

    func setOnline(_ isOnline: Bool) {
        guard isOnline != self.isOnline else { return }
        world.trace("network", isOnline ? "up" : "down")
        self.isOnline = isOnline
        reading.observe(isOnline)
        pings.isForced = true
        if !isOnline, random.chance(70) { server.end(.cut) }
        call { $0.networkChanged(isOnline: isOnline, now: world.now, random: uniform()) }
        act()
    }

    /// The program says whether there is a network.
    private func report(_ isReachable: Bool) {
        pings.isForced = true
        reading.programReports(isReachable)
        call { $0.hostReportsNetwork(isReachable: isReachable, now: world.now) }
        act()
    }

    /// The user connects again some time after the end.
    func comeBack() {
        world.after(random.milliseconds(0...20_000)) { [self] in
            if session.state == .disconnected, !isWished { connect() }
        }
    }

    // MARK: Authorization

    func authorize(_ request: PusherAuthorizationRequest) {
        world.require(
            request.socketID == link?.socketID && link?.isConfirmed == true,
            "a request for another socket")
        world.trace("client", "authorize \(request.number)")
        requests[request.number] = request
        if case .channels(let channels) = request.purpose {
            let most = plan.configuration.authBatchSize
            world.require(
                (1...most).contains(channels.count), "a request for \(channels.count) channels")
            if channels.count > 1 { world.count("batch") }
            // Events wait only for a key.
            if ledger.owes(channels[0].id), !keyRequests.values.contains(channels[0].id) {
                world.count("key requested")
                keyRequests[request.number] = channels[0].id
                ledger.keyRequested(channels[0].id)
            }
        }
        let slowest = isPeaceful ? 100 : plan.slowestAuth
        world.after(random.milliseconds(0...slowest)) { [self] in
            let isWanted = requests[request.number] != nil
            guard isWanted || random.chance(plan.authLate) else { return }
            if !isWanted { world.count("answered too late") }
            requests[request.number] = nil
            keyRequests[request.number] = nil
            let outcome = outcome(request)
            call { $0.authorized(request.number, outcome, now: world.now) }
            act()
            confirmUnasked(request)
        }
    }

    /// A server may confirm a channel that waits for the user, or for another request.
    private func confirmUnasked(_ request: PusherAuthorizationRequest) {
        guard !isPeaceful, plan.authBare > 0, case .channels(let all) = request.purpose else {
            return
        }
        for channel in all where session.channelState(channel.id) == .authorizing {
            if random.chance(20) { server.confirmUnasked(channel.name.text) }
        }
    }

    private func outcome(_ request: PusherAuthorizationRequest) -> PusherAuthorizationOutcome {
        if !isPeaceful, random.chance(plan.authFailing) {
            world.count("not authorized")
            let status = random.pick([403, 500, 0])
            guard status > 0 else { return .failed(RealtimeError(.timeout, "no answer")) }
            let response = HTTPResponse(ResponseHead(status: status, fields: []), body: [])
            return .failed(RealtimeError(.auth, "no", response: response))
        }
        guard case .channels(let channels) = request.purpose else {
            return .user(
                PusherUserAnswer(
                    auth: "KEY:\(request.socketID):user", userData: #"{"id":"\#(nextUser)"}"#))
        }
        return .channels(channels.map { result($0.name, request.socketID) })
    }

    private func result(
        _ name: PusherChannelName, _ socketID: String
    ) -> Result<PusherAuthorizationAnswer, RealtimeError> {
        if !isPeaceful, random.chance(plan.authFailing / 4) {
            return .failure(RealtimeError(.auth, "no"))
        }
        let word = !isPeaceful && random.chance(plan.authBad) ? "BAD" : "KEY"
        let isBare = !isPeaceful && random.chance(plan.authBare)
        let hasData = name.kind == .presence && !isBare
        return .success(
            PusherAuthorizationAnswer(
                auth: "\(word):\(socketID):\(name.text)",
                channelData: hasData ? #"{"user_id":"me"}"# : nil,
                sharedSecret: name.kind == .encrypted ? server.key(name.text) : nil))
    }

    // MARK: The end

    /// No faults from here on. A new connection leaves behind what the server has refused.
    private func makePeace() {
        guard world.violation == nil else { return }
        world.trace("plan", "peace")
        isPeaceful = true
        server.isPeaceful = true
        setPaused(false)
        setOnline(true)
        server.end(.close(4200, error: nil))
        // Longer than any delay and timeout: what has failed before is over.
        world.after(.seconds(600)) { [self] in
            disconnect()
            world.after(.seconds(30)) { [self] in settle() }
        }
    }

    private func settle() {
        guard world.violation == nil else { return }
        connect()
        for name in PusherPlan.channels where random.chance(60) { subscribe(name) }
        for name in PusherPlan.channels where random.chance(20) { unsubscribe(name) }
        world.after(.seconds(60)) { [self] in
            guard world.violation == nil else { return }
            for name in everyChannel { server.publish(on: name) }
            for name in PusherPlan.channels { trigger(name, 2, isCertain: true) }
            world.after(.seconds(60)) { [self] in verifyPeace() }
        }
    }

    /// The subscriptions are what the user asked for.
    private func verifyPeace() {
        guard world.violation == nil else { return }
        world.require(session.state == .connected, "is not connected in the end")
        let user = user.map { ["#server-to-user-\($0)"] } ?? []
        let wanted = Set(ledger.registered.keys).union(user)
        world.require(
            link?.subscribed == wanted,
            "\(link?.subscribed.sorted() ?? []) are subscribed, and not \(wanted.sorted())")
        for (name, id) in ledger.registered {
            world.require(
                session.channelState(id) == .subscribed, "\(name) does not know it is subscribed")
            let reported = Set(link?.reported[name] ?? [])
            let known = Set(ledger.members[id] ?? [])
            world.require(reported == known, "\(name) has \(known), and not \(reported)")
        }
        ledger.verifyTriggers(server.triggered)
        world.count("converged")
        for name in ledger.registered.keys.sorted() where random.chance(50) { unsubscribe(name) }
        disconnect()
    }

    /// After the end of the run.
    func verify() {
        world.require(session.state == .disconnected && link == nil, "does not end")
        world.require(requests.isEmpty, "requests are left in the end")
        world.require(!session.hasActions && session.wakeUp == nil, "something is left in the end")
    }

    static func text(_ report: PusherSession.Report) -> String {
        switch report {
        case .event(let event, let id):
            let name = String(decoding: event.event, as: UTF8.self)
            return "\(name) on \(id.map { "\($0)" } ?? "none")"
        case .userEvent(let event): return String(decoding: event.event, as: UTF8.self)
        case .stateChanged(let change): return "\(change.old) to \(change.new)"
        case .channel(let id, .state(let state)): return "\(id) is \(state)"
        case .channel(let id, .subscribed): return "\(id) is ready"
        case .channel(let id, .failed(let failure)):
            return "\(id) failed: \(failure.error.message)"
        case .channel(let id, .members(.all(let members))):
            return "\(id) has \(members.table.members.map { $0.id })"
        case .log(let line): return "log: \(line)"
        case .signInFailed(let failure): return "sign-in failed: \(failure.error.message)"
        default: return "\(report)"
        }
    }
}

// What messages mean.
extension PusherRun {
    /// The user of a sign-in; nil for another message.
    static func signedIn(by text: String) -> String? {
        guard text.hasPrefix(#"{"event":"pusher:signin""#) else { return nil }
        let data = (try? JSONValue(parsing: text))?["data"]?["user_data"]?.stringValue
        return data.flatMap { PusherSignedInUser.id(in: $0) }
    }

    /// The channel of a subscription; nil for another message.
    static func subscribed(by text: String) -> String? {
        guard text.hasPrefix(#"{"event":"pusher:subscribe""#) else { return nil }
        return (try? JSONValue(parsing: text))?["data"]?["channel"]?.stringValue
    }

    /// The user that a sign-in's success confirms.
    static func confirmed(_ json: JSONValue?) -> String? {
        let data = json?["data"]
        let object = data?.stringValue.flatMap { try? JSONValue(parsing: $0) } ?? data
        return object?["user_data"]?.stringValue.flatMap { PusherSignedInUser.id(in: $0) }
    }

    static func code(_ json: JSONValue?) -> Int? {
        let data = json?["data"]
        let object = data?.stringValue.flatMap { try? JSONValue(parsing: $0) } ?? data
        return object?["code"]?.integerValue.map { Int($0) }
    }
}
