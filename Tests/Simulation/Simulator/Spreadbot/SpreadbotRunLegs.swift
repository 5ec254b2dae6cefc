import Session
import Wire

// Legs and probes, from the network's side.
extension SpreadbotRun {
    func attach(_ attempt: SpreadbotSession.Attempt) {
        guard session.isCurrent(attempt.number) else { return }
        dropLeg()
        world.trace("leg \(attempt.number)", "\(attempt.transport.name) from '\(attempt.cursor)'")
        if let wrong = reading.attached(attempt, world.now) { return world.fail(wrong) }
        world.require(
            attempt.accessToken == tokens.access || tokensSetAt == world.now,
            "attaches with an old token")
        let leg = SpreadbotSimulatedLeg(attempt, world, server, random.split())
        self.leg = leg
        let wait = random.milliseconds(1...(random.chance(10) ? 9000 : 300))
        leg.after(wait) { [self] in answer(leg) }
    }

    private func answer(_ leg: SpreadbotSimulatedLeg) {
        let transport = leg.attempt.transport
        guard isOnline else { return end(leg, .noNetwork) }
        guard !isAway else { return fail(leg) }
        guard server.takes(leg.attempt.accessToken) else {
            world.count("token refused")
            return end(leg, .unauthorized(transport, isOpen: false, &random))
        }
        if !isPeaceful, random.chance(plan.failing) { return fail(leg) }
        (leg.next, leg.floor) = server.start(leg.attempt.cursor)
        // A server that repeats messages from before the first is beyond B8.
        leg.next = max(leg.next, delivery.begin ?? 0)
        leg.isOpen = true
        if transport == .webSocket { refusedProbe = nil }
        delivery.attached()
        world.trace("leg \(leg.attempt.number)", "open, from \(leg.next)")
        reading.opened(world.now)
        session.opened(leg.attempt.number, now: world.now)
        act()
        guard !leg.isOver else { return }
        plan(leg)
        feed(leg)
    }

    /// Draws how long the leg lasts, and how it ends.
    private func plan(_ leg: SpreadbotSimulatedLeg) {
        if let expiry = server.expiry(leg.attempt.accessToken), !isPeaceful,
            leg.attempt.transport != .sse
        {
            leg.after(expiry - world.now) { [self] in
                guard !isPeaceful else { return }
                end(leg, .unauthorized(leg.attempt.transport, isOpen: true, &random))
            }
        }
        guard !isPeaceful, random.chance(plan.cut) else { return }
        let life = random.milliseconds(0...plan.longestLife)
        guard random.chance(plan.stalls) else { return leg.after(life) { [self] in fail(leg) } }
        leg.after(life) { [self] in
            world.count("stalled")
            leg.isStalled = true
            leg.after(random.milliseconds(100...20_000)) { [self] in fail(leg) }
        }
    }

    private func fail(_ leg: SpreadbotSimulatedLeg) {
        let isElsewhere = isElsewhere(leg.attempt.transport)
        let fate =
            isAway
            ? SpreadbotFate.away(isOpen: leg.isOpen, isElsewhere: isElsewhere)
            : SpreadbotFate.draw(
                plan, leg.attempt.transport, isOpen: leg.isOpen, isLast: reading.isLast,
                isElsewhere: isElsewhere, &random)
        end(leg, isOnline ? fate : .noNetwork)
    }

    private func isElsewhere(_ transport: SpreadbotTransport) -> Bool {
        transport == .webSocket && plan.configuration.overrides[.webSocket] != nil
    }

    /// The server becomes unreachable, and returns after a while.
    func beginOutage(_ time: Duration) {
        guard !isAway else { return }
        world.trace("server", "away for \(time.readable)")
        world.count("outage")
        isAway = true
        if let leg, leg.isOpen { fail(leg) }
        world.after(time) { [self] in
            world.trace("server", "back")
            isAway = false
        }
    }

    func end(_ leg: SpreadbotSimulatedLeg, _ fate: SpreadbotFate) {
        guard leg === self.leg, !leg.isOver else { return }
        let isClosing = reading.stage == .closing
        let when = leg.isOpen ? "open" : "new"
        world.trace("leg \(leg.attempt.number)", "ends: \(fate.kind), \(fate.end.error.message)")
        world.count("\(leg.attempt.transport.name) \(when) \(fate.kind)")
        let written = leg.written
        loseFrames(all: false)
        leg.end()
        if isClosing {
            reading.closed(world.now)
        } else {
            reading.ended(fate, canRefresh: canRefresh, world.now)
        }
        session.ended(
            leg.attempt.number, fate.end, written: written, now: world.now,
            wallClock: 1_700_000_000, random: uniform())
        if self.leg === leg { self.leg = nil }
        act()
    }

    /// - Parameter all: whether the machine does not learn which frames were written.
    func loseFrames(all: Bool) {
        ledger.dropped(written: all ? Array(ledger.flying) : leg?.writtenNumbers ?? [])
    }

    func dropLeg() {
        leg?.end()
        leg = nil
    }

    func close(_ number: UInt64) {
        guard let leg, leg.attempt.number == number else { return world.fail("closes no leg") }
        leg.close { [self] isClean in
            guard leg === self.leg else { return }
            let written = isClean ? leg.last : leg.written
            if isClean { ledger.closedCleanly() }
            reading.closed(world.now)
            session.closed(number, isClean: isClean, written: written)
            act()
        }
    }

    // MARK: Messages

    func feed(_ leg: SpreadbotSimulatedLeg) {
        leg.deliver(
            { [self] message in arrive(message, leg) }, isPaused: { [self] in isPaused })
    }

    func resume() {
        if let leg, leg.isOpen { feed(leg) }
    }

    private func arrive(_ message: SpreadbotServer.Message, _ leg: SpreadbotSimulatedLeg) {
        guard leg === self.leg, !leg.isOver else { return }
        let isClosing = reading.stage == .closing
        let id = Array((message.id ?? "").utf8)
        let isTaken = id.withUnsafeBytes {
            session.received(leg.attempt.number, id: message.id == nil ? nil : $0)
        }
        if isClosing { return world.require(!isTaken, "a message after disconnect") }
        reading.received()
        let (wanted, wrong) = delivery.arrived(
            message, floor: leg.floor, isAmbiguous: server.isAmbiguous)
        world.trace("message", "\(message.place) '\(message.id ?? "-")' \(isTaken)")
        if let wrong { return world.fail(wrong) }
        world.require(isTaken == wanted, "message \(message.place): delivered is \(isTaken)")
        world.count(isTaken ? "message" : "repeat dropped")
        if isTaken, let id = message.id {
            world.require(session.lastEventID == id, "the cursor does not move")
        }
    }

    func publish() {
        if let bare = isPeaceful ? server.publishKept() : server.publish() {
            if let leg, leg.isOpen, !leg.isStalled, !isPaused { arrive(bare, leg) }
        }
        resume()
    }

    func forget() {
        world.count("history forgotten")
        server.forget()
        guard let leg, leg.isOpen else { return }
        leg.next = max(leg.next, server.messages.count)
        leg.floor = leg.next
        guard leg.attempt.transport == .poll, session.state == .connected else { return }
        world.count("gone")
        delivery.reset()
        session.gone(
            leg.attempt.number, RealtimeError(.gone, "gone"), retryIn: .seconds(1))
        world.require(session.lastEventID.isEmpty, "the cursor names deleted messages")
    }

    // MARK: Probes

    func beginProbe(_ attempt: SpreadbotSession.Attempt) {
        guard session.isCurrent(attempt.number) else { return }
        if let wrong = reading.probed(world.now) { return world.fail(wrong) }
        world.require(probe == nil, "two probes at a time")
        world.require(attempt.cursor.isEmpty, "a probe with a cursor")
        let opens =
            isPeaceful || isOnline && !isAway && !random.chance(max(plan.failing, plan.unfit))
        world.trace("probe \(attempt.number)", opens ? "will open" : "will fail")
        let alarm = world.after(random.milliseconds(1...3000)) { [self] in
            probe = nil
            if !server.takes(attempt.accessToken) {
                world.count("probe unauthorized")
                reading.probeFailed(world.now)
                session.probeEnded(attempt.number, isUnauthorized: true, now: world.now)
                verifyRefresh(for: attempt)
            } else if opens {
                world.count("probe opened")
                reading.probeOpened(world.now)
                refusedProbe = nil
                session.probeOpened(attempt.number, now: world.now)
            } else {
                world.count("probe failed")
                reading.probeFailed(world.now)
                refusedProbe = nil
                session.probeEnded(attempt.number, now: world.now)
            }
            act()
        }
        probe = (attempt.number, alarm)
    }

    /// The current tokens must be refreshed, unless that did not help the last time.
    private func verifyRefresh(for attempt: SpreadbotSession.Attempt) {
        let token = attempt.accessToken
        guard token == tokens.access, tokensSetAt != world.now, canRefresh,
            refusedProbe == nil || refusedProbe == token
        else { return }
        refusedProbe = token
        act()
        world.count("refreshed for a probe")
        world.require(refreshing != nil, "a probe is refused, and nobody refreshes the tokens")
    }
}
