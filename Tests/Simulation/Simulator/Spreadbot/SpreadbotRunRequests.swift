import Session
import Wire

// Tokens, requests, and the actions of the user and the network.
extension SpreadbotRun {
    // MARK: Tokens

    func refresh(_ token: String) {
        world.trace("tokens", "refresh \(token)")
        world.require(refreshing == nil, "two refreshes at a time")
        world.require(!replaced.contains(token), "spends \(token), which was replaced")
        world.require(!isRefusedForGood, "shows a token that was refused")
        world.require(token == tokens.refresh, "spends a token that is not in use")
        refreshing = (token, false)
        let isLost = !isOnline || !isPeaceful && random.chance(plan.refreshesLost)
        let isRefused = !isPeaceful && random.chance(plan.refreshesRefused)
        // The server may have used the token up although its answer is lost.
        let isSpent = isLost && isOnline && random.chance(20)
        world.after(random.milliseconds(10...4000)) { [self] in
            if isSpent { _ = server.spend(token) }
            if isLost {
                refreshFailed(token, RealtimeError(.connect, "lost"), isRefused: false)
            } else if !isRefused, let pair = server.spend(token) {
                refreshed(token, pair)
            } else {
                refreshFailed(token, RealtimeError(.auth, "invalid_grant"), isRefused: true)
            }
            act()
        }
    }

    private func refreshed(_ token: String, _ pair: (access: String, refresh: String?)) {
        let isStale = refreshing?.isStale ?? false
        refreshing = nil
        world.trace("tokens", "\(pair.access), \(pair.refresh ?? "-"), late \(isStale)")
        let life = plan.tellsLife ? plan.tokenLife : nil
        if let refresh = pair.refresh, refresh != token { replaced.insert(token) }
        let isSpent = token == tokens.refresh
        if isStale, !isSpent || !reading.areRefused {
            world.count("a refresh came too late")
            if isSpent, let refresh = pair.refresh {
                world.count("a refresh token came too late")
                tokens.refresh = refresh
            }
            reading.goOn(canRefresh: canRefresh, world.now)
        } else {
            tokens = (pair.access, pair.refresh ?? tokens.refresh)
            expiry = life.map { world.now + $0 }
            reading.refreshed(world.now)
        }
        session.refreshed(
            access: pair.access, refresh: pair.refresh, lifetime: life, now: world.now)
    }

    private func refreshFailed(_ token: String, _ error: RealtimeError, isRefused: Bool) {
        let isStale = refreshing?.isStale ?? false
        refreshing = nil
        world.trace("tokens", "failed: \(error.message), late \(isStale)")
        world.count(isRefused ? "refresh refused" : "refresh lost")
        if isRefused, token == tokens.refresh { isRefusedForGood = true }
        if isStale, token != tokens.refresh || !reading.areRefused {
            reading.goOn(canRefresh: canRefresh, world.now)
        } else {
            reading.refreshFailed(isRefused: isRefused, world.now)
            if isRefused { ledger.fatal = error.code }
        }
        session.refreshFailed(
            error, isRefused: isRefused, now: world.now, random: uniform())
    }

    func setTokens(_ new: SpreadbotNewTokens = .pair) {
        var pair = tokens
        switch new {
        case .pair: pair = server.signIn()
        case .access: pair.access = server.issue()
        // If the machine is about to refresh them, this also has no effect.
        case .same where refreshing == nil: return
        case .same: break
        }
        world.trace("user", "tokens \(pair.access) \(pair.refresh)")
        if new == .pair { replaced.insert(tokens.refresh) }
        let isWaitedFor = new == .same && refreshing.map { !$0.isStale } ?? false
        tokens = pair
        if !isWaitedFor {
            // An attempt that waited for tokens uses these.
            noteRefreshAhead()
            if refreshing != nil { refreshing?.isStale = true }
            tokensSetAt = world.now
            expiry = nil
            isRefusedForGood = false
            reading.gaveTokens(world.now)
        }
        session.setTokens(access: pair.access, refresh: pair.refresh, now: world.now)
    }

    /// A client's request is refused: it waits for tokens, and the first one asks for them.
    func awaitTokens(_ answer: @escaping (RealtimeError?) -> Void) {
        waiting.append(answer)
        reading.requestRefused()
        session.refusedRequest()
    }

    // MARK: Posts

    func post(_ send: SpreadbotSend) {
        world.trace("post", "\(send.number)")
        world.require(posting == nil, "two posts at a time")
        world.require(ledger.flying.isEmpty, "a post beside frames")
        let isClosing = reading.stage == .closing && disconnectedAt != world.now
        world.require(!isClosing, "a post while the connection closes")
        let isEarly = retrying.map { $0.number == send.number && world.now < $0.due } ?? false
        world.require(!isEarly, "a post again before its time")
        ledger.began(send.number, isFrame: false, on: path)
        isRetrying = false
        postCount += 1
        posting = (send, postCount)
        attemptPost(send, postCount, isSecond: false)
    }

    private func attemptPost(_ send: SpreadbotSend, _ number: UInt64, isSecond: Bool) {
        world.after(random.milliseconds(5...400)) { [self] in
            guard posting?.attempt == number else { return }
            guard isOnline else { return attemptPost(send, number, isSecond: isSecond) }
            let used = credential
            let right = tokens.access.isEmpty ? nil : "Bearer \(tokens.access)"
            world.require(used == right, "a request with \(used ?? "no token")")
            guard used.map({ server.takes(String($0.dropFirst(7))) }) ?? !plan.takesTokens else {
                return refusedPost(send, number, used, isSecond: isSecond)
            }
            guard !isPeaceful, random.chance(plan.postsFailing) else {
                server.receive(send, isFrame: false)
                return posted(send, number, nil, mayPass: false)
            }
            if random.chance(40) { server.receive(send, isFrame: false) }
            let isFinal = random.chance(10)
            posted(
                send, number, RealtimeError(isFinal ? .httpStatus : .connectionLost, "post"),
                mayPass: !isFinal)
        }
    }

    private func refusedPost(
        _ send: SpreadbotSend, _ number: UInt64, _ used: String?, isSecond: Bool
    ) {
        if isSecond {
            return posted(send, number, RealtimeError(.httpStatus, "401"), mayPass: false)
        }
        awaitTokens { [self] error in
            guard posting?.attempt == number else { return }
            if let error { return posted(send, number, error, mayPass: true) }
            attemptPost(send, number, isSecond: true)
        }
        act()
    }

    private func posted(
        _ send: SpreadbotSend, _ number: UInt64, _ error: RealtimeError?, mayPass: Bool
    ) {
        world.count(error == nil ? "posted" : mayPass ? "post lost" : "post refused")
        posting = nil
        if let error, mayPass, send.isDurable {
            isRetrying = true
            retrying = (send.number, world.now)
            world.trace("post", "\(send.number) again: \(error.message)")
        } else if let error {
            ledger.refused(send.number, error.code)
        }
        let asked = Duration.seconds(random.pick([0, 0, 1, 20, 4000]))
        askedOfPost = min(asked, .seconds(300))
        session.posted(
            send.id, error, status: 0, retryAfter: asked, mayPass: mayPass, now: world.now,
            random: uniform())
        act()
    }

    // MARK: Deeds

    func perform(_ deed: SpreadbotPlan.Deed) {
        switch deed {
        case .publish(let count): for _ in 0..<count { publish() }
        case .send(let sends): for send in sends { submit(send.kind, isDurable: send.isDurable) }
        case .cancel:
            guard ledger.count > 0 else { return }
            let number = UInt64(random.within(1...Int(ledger.count)))
            ledger.cancelled(number)
            session.cancel(number)
        case .refusedRequest:
            world.count("request refused")
            awaitTokens { _ in }
        case .establish(let path): establish(path)
        case .disconnect:
            if random.chance(60) { awaitTokens { _ in } }
            disconnect()
            world.after(random.milliseconds(0...40_000)) { [self] in
                guard !isPeaceful else { return }
                establish("room")
                act()
            }
        case .setTokens(let new): setTokens(new)
        case .pause(let time):
            isPaused = true
            world.count("paused")
            world.after(time) { [self] in
                isPaused = false
                resume()
                act()
            }
        case .offline(let time):
            setOnline(false)
            world.after(time) { [self] in
                setOnline(true)
                act()
            }
        case .outage(let time): beginOutage(time)
        case .otherNetwork: tellNetwork()
        case .forget: forget()
        }
    }

    /// - Parameter isLeft: it was left by an earlier run.
    func submit(_ kind: SpreadbotSend.Kind, isDurable: Bool, isLeft: Bool = false) {
        let number = ledger.count + 1
        let path = isLeft ? "room" : path
        let send = SpreadbotSend(
            number: number, kind: kind, payload: Array("send \(number)".utf8),
            path: isDurable ? path : nil, key: "key \(number)", entry: isDurable ? number : nil)
        world.trace("user", "send \(number) \(kind)\(isDurable ? ", durable" : "")")
        ledger.submitted(send, for: path)
        if isLeft { return session.restore(send) }
        if session.state == .disconnected { ledger.mayClose = true }
        session.submit(send, now: world.now)
    }

    /// What a careless user does in a callback.
    func actInCallback() {
        world.count("acted in a callback")
        switch random.below(4) {
        case 0: establish("room")
        case 1: submit(.text, isDurable: random.chance(50))
        case 2: setTokens(random.pick([.pair, .access, .same]))
        default:
            disconnect()
            establish("room")
        }
    }

    func setOnline(_ isOnline: Bool) {
        guard isOnline != self.isOnline else { return }
        world.trace("network", isOnline ? "online" : "offline")
        if !isOnline { world.count("offline") }
        self.isOnline = isOnline
        tellNetwork()
    }

    private func tellNetwork() {
        reading.network(isOnline, world.now)
        session.networkChanged(isOnline: isOnline, now: world.now, random: uniform())
    }
}
