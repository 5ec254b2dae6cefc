import Documents
import Session
import Wire

// The user: what is done, and the end.
extension DDPRun {
    func begin() {
        for collection in DDPPlan.collections {
            session.declare(collection, ids: collection == "oids" ? .objectIDs : .strings)
        }
        for publication in plan.first { subscribe(publication, keep: nil) }
        connect()
        for (time, deed) in plan.deeds {
            world.after(time) { [self] in
                guard world.violation == nil else { return }
                perform(deed)
            }
        }
        world.after(plan.peaceAt) { [self] in makePeace() }
    }

    func anyDeed() -> DDPPlan.Deed {
        switch random.below(10) {
        case 0: .connect
        case 1: .disconnect
        case 2: .subscribe(DDPPlan.publication(&random), keep: DDPPlan.keep(&random))
        case 3: .release
        case 4: .insert(random.pick(DDPPlan.collections))
        case 5: .stop
        case 6: .logIn(random.pick(DDPPlan.users))
        case 7: .logOut
        default: .call(DDPPlan.call(&random))
        }
    }

    func perform(_ deed: DDPPlan.Deed) {
        switch deed {
        case .call(let plan): makeCall(plan)
        case .insert(let collection): insert(collection)
        case .update(let collection): update(collection)
        case .remove(let collection): remove(collection)
        case .subscribe(let publication, let keep): subscribe(publication, keep: keep)
        case .release, .stop: letGo(deed)
        case .load(let publications): load(publications)
        case .closeLoader: closeLoader()
        case .logIn(let user): logIn(user)
        case .logOut, .logOutOthers: logOut(deed)
        case .observe(let collection, let selector, let options):
            observe(collection, selector, options)
        case .stopObserving:
            guard let query = views.queries.first else { return }
            views.ended(query)
            session.store.stopObserving(query)
        case .connect: connect()
        case .reconnect: reconnect()
        case .disconnect: disconnect()
        case .background(let time): goToBackground(time)
        case .network(let isReachable): setOnline(isReachable)
        case .write(let count):
            for _ in 0..<count { server.writeAnything() }
        case .end(let how): server.end(how)
        case .offline(let time):
            setOnline(false)
            world.after(time) { [self] in setOnline(true) }
        case .garbage: server.sendGarbage()
        case .duplicate: server.repeatDocument()
        }
    }

    // MARK: Connecting

    /// The user writes while the documents of the former session are shown.
    func writeDuringReset() {
        guard greetings.chance(plan.isGentle ? 0 : 40) else { return }
        for _ in 0..<greetings.within(1...4) {
            world.after(greetings.milliseconds(0...500)) { [self] in
                guard world.violation == nil, !isPeaceful else { return }
                makeCall(DDPPlan.Call(name: random.pick(["edit", "edit", "drop", "pretend"])))
            }
        }
    }

    func connect() {
        world.trace("user", "connect")
        isWished = false
        reading.mayDial()
        beginGrace()
        call { $0.connect(now: world.now) }
    }

    private func reconnect() {
        world.trace("user", "reconnect")
        isWished = false
        reading.mayDial()
        beginGrace()
        call { $0.reconnect(now: world.now) }
    }

    /// An attempt in the background has the same time as a connection. One that follows another at
    /// once, with another version of the protocol, has the rest of its time.
    private func beginGrace() {
        guard isInBackground, link == nil, session.status != .connecting else { return }
        graceEndsAt = world.now + plan.configuration.backgroundGrace
    }

    private func disconnect() {
        world.trace("user", "disconnect")
        isWished = true
        call { $0.disconnect(now: world.now) }
        if !isPeaceful { world.after(random.milliseconds(0...60_000)) { [self] in comeBack() } }
    }

    private func comeBack() {
        if world.violation == nil, isWished, !isPeaceful { connect() }
    }

    private func goToBackground(_ time: Duration) {
        world.count("background")
        world.trace("user", "background")
        if !isInBackground { graceEndsAt = world.now + plan.configuration.backgroundGrace }
        isInBackground = true
        call { $0.enterBackground(now: world.now) }
        world.after(time) { [self] in comeToForeground() }
    }

    private func comeToForeground() {
        guard world.violation == nil else { return }
        world.trace("user", "foreground")
        if isInBackground { reading.mayDial() }
        isInBackground = false
        graceEndsAt = nil
        call { $0.enterForeground(now: world.now) }
    }

    // MARK: Subscriptions

    @discardableResult
    private func subscribe(_ publication: DDPPlan.Publication, keep: Duration?) -> UInt64? {
        let params = publication.params
        var handle: UInt64?
        call { session in
            ids.drawn = nil
            let made = session.subscribe(
                publication.name, params, keep: keep, drawing: &ids, now: world.now)
            world.trace("user", "subscribe \(publication), \(made)")
            guard session.status != .failed else { return }
            handle = made
            subscriptions.subscribed(
                made, publication, keep: keep ?? plan.configuration.unusedSubscriptionTime,
                drawn: ids.drawn, isOpen: link?.isOpen == true)
        }
        return handle
    }

    private func letGo(_ deed: DDPPlan.Deed) {
        let loaded = Set(loaders.values.flatMap { $0 })
        let handles = subscriptions.handles.filter { !loaded.contains($0) }
        guard !handles.isEmpty else { return }
        let handle = random.pick(handles)
        let isStop = if case .stop = deed { true } else { false }
        world.trace("user", isStop ? "stop \(handle)" : "release \(handle)")
        subscriptions.released(handle, atOnce: isStop)
        call { session in
            if isStop {
                session.stop(handle, now: world.now)
            } else {
                session.release(handle, now: world.now)
            }
        }
    }

    private func load(_ publications: [DDPPlan.Publication]) {
        var loader: UInt64 = 0
        call { loader = $0.makeLoader() }
        loaders[loader] = []
        for publication in publications {
            guard let handle = subscribe(publication, keep: nil) else { continue }
            loaders[loader]?.append(handle)
            call { $0.add(handle, to: loader) }
        }
        var isReady = false
        call { isReady = $0.whenReady(loader) }
        if isReady { loaded(loader) } else { awaited.insert(loader) }
    }

    func loaded(_ loader: UInt64) {
        guard let handles = loaders[loader] else { return }
        world.count("loaded")
        awaited.remove(loader)
        for handle in handles {
            world.require(subscriptions.isDone(handle), "a loader does not wait for \(handle)")
        }
    }

    private func closeLoader() {
        guard let loader = loaders.keys.min() else { return }
        for handle in loaders[loader] ?? [] { subscriptions.released(handle, atOnce: false) }
        loaders[loader] = nil
        awaited.remove(loader)
        call { $0.closeLoader(loader, now: world.now) }
    }

    // MARK: Accounts

    private func logIn(_ user: String) {
        world.trace("user", "log in \(user)")
        guard let params = try? EJSON(parsing: #"{"user":{"username":"\#(user)"}}"#) else { return }
        call { session in
            let made = session.logIn(DDPRequest("login", [params]), now: world.now)
            calls.made(made.id, DDPPlan.Call(name: "login", isWait: true), value: nil)
        }
    }

    private func logOut(_ deed: DDPPlan.Deed) {
        world.trace("user", "\(deed)")
        call { session in
            if case .logOut = deed {
                let made = session.logOut(now: world.now)
                calls.made(made.id, DDPPlan.Call(name: "logout", isWait: true), value: nil)
            } else {
                let made = session.logOutOthers(now: world.now)
                let first = DDPPlan.Call(name: "getNewToken", isWait: true)
                calls.made(made.id - 1, first, value: nil)
                let last = DDPPlan.Call(name: "removeOtherTokens", isWait: true)
                calls.made(made.id, last, value: nil)
            }
        }
    }

    // MARK: Live queries

    private func observe(_ collection: String, _ selector: String, _ options: String) {
        do throws(RealtimeError) {
            let query = try Query(
                selector: try EJSON(parsing: selector), options: try EJSON(parsing: options))
            let (id, found) = try session.store.observe(query, in: collection)
            views.observed(id, query, collection, found)
        } catch {
            world.fail("a query is refused: \(error)")
        }
    }

    // MARK: The end

    /// No faults from here on.
    private func makePeace() {
        guard world.violation == nil else { return }
        world.trace("plan", "peace")
        isPeaceful = true
        server.isPeaceful = true
        setOnline(true)
        comeToForeground()
        connect()
        reconnect()
        // Longer than any delay and timeout: what has failed before is over.
        world.after(.seconds(700)) { [self] in verifyPeace() }
    }

    /// The documents and subscriptions are what the server has, and every call is completed.
    private func verifyPeace() {
        guard world.violation == nil else { return }
        calls.verify()
        guard session.status != .failed else { return finish() }
        world.require(session.status == .connected, "is not connected in the end")
        guard let theirs = server.session else { return world.fail("the server has no session") }
        world.require(session.isSettled, "something is remembered of calls that are done")
        documents.verify(server.published(theirs))
        subscriptions.verify(Set(theirs.subscriptions.keys))
        if calls.areLoginsCertain { accounts.verify(theirs.user) }
        documents.compare(session.store)
        views.compare(session.store)
        world.require(awaited.isEmpty, "loaders \(awaited) have not heard")
        world.count("converged")
        while !loaders.isEmpty { closeLoader() }
        for handle in subscriptions.handles {
            subscriptions.released(handle, atOnce: false)
            call { $0.release(handle, now: world.now) }
        }
        // Longer than any unused subscription is kept.
        world.after(.seconds(200)) { [self] in
            guard world.violation == nil else { return }
            subscriptions.verify(Set(theirs.subscriptions.keys))
            documents.verify(server.published(theirs))
            disconnect()
            finish()
        }
    }

    private func finish() {
        if plan.cannotAgree { world.count("no common version") }
        calls.isClosed = true
        call { $0.close(now: world.now) }
    }

    /// After the end of the run.
    func verifyEnd() {
        world.require(link == nil, "a socket is left in the end")
        world.require(calls.isClosed, "the run does not end")
        world.require(!session.hasActions && session.wakeUp == nil, "something is left in the end")
        world.require(session.isSettled, "calls are left in the end")
    }

    func statusChanged(_ change: DDPStatusChange) {
        reading.changed(change)
        switch change.status {
        case .connected:
            link?.isConfirmed = true
            let version = session.version ?? ""
            world.count("connected")
            world.require(version == link?.version, "another version than the server's")
            if version != plan.offered[0] { world.count("another version") }
            reading.connected(version: version)
            if documents.isResetting { writeDuringReset() }
        case .offline:
            if !isWished { world.count("waits for the network") }
            reading.ended()
        case .connecting: break
        case .waiting, .failed: reading.ended()
        }
    }

    // MARK: The trace

    static func text(_ report: DDPSession.Report) -> String {
        switch report {
        case .changed(let notification):
            let changes = notification.changes.map { change in
                "\(change.key.text) \(change.after.map { EJSON.object($0).text } ?? "gone")"
            }
            return "changed: " + changes.joined(separator: ", ")
        case .completed(let id, let result): return "\(id) is completed: \(result)"
        case .result(let id, let result): return "the result of \(id): \(result)"
        default: return "\(report)"
        }
    }
}
