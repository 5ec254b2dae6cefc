import CShims
import Session
import Wire

// What a REST client does on its loop's thread.
extension RESTClient: LoopSource, LoopResident, TimerTarget, ReachabilityObserver {
    /// With the first request, whichever thread's comes here first; or with the end.
    private func begin() {
        guard !hasBegun else { return }
        hasBegun = true
        handles = CurlHandles(configuration.pointee.network)
        session = RESTSession(configuration.pointee)
        session.renewsCredentials = credentials != nil
        session.setCredential(takeInitialCredential() ?? configuration.pointee.authorization)
        // Without a monitor everything counts as reachable.
        reachability = reachability ?? (try? Reachability.of(loop))
        reachability?.add(self)
    }

    func submit(_ call: RESTCall) {
        begin()
        // What was said before this request holds for it.
        if let reachability, reachability.changes != knownChanges { askReachability() }
        call.id = session.submit(
            call.request, key: RESTClient.randomUUID(), isReachable: isReachable(call.url),
            now: Loop.now())
        calls[call.number] = call
        callsByID[call.id] = call
        if !isResident {
            isResident = true
            loop.addResident(self)
        }
        schedule()
    }

    private func isReachable(_ url: HTTPURL) -> Bool {
        reachability?.isReachable(url, by: configuration.pointee.network) ?? true
    }

    /// For an exchange: one that waited for it, or a new one.
    func handle(for url: HTTPURL, on multi: CurlMulti) throws(RealtimeError) -> CurlHandle {
        if let handles { return try handles.take(for: url, on: multi) }
        return try CurlHandle(configuration.pointee.network, to: url, on: multi)
    }

    func reachabilityChanged() {
        askReachability()
        act()
    }

    private func askReachability() {
        knownChanges = reachability?.changes ?? 0
        session.reachabilityChanged(now: Loop.now(), random: randomFraction()) {
            isReachable($0)
        }
    }

    /// Has what is to be done done in the loop's turn: never inside a call of the user's (R8).
    func schedule() {
        guard !isScheduled, !isActing else { return }
        isScheduled = true
        loop.schedule(self)
    }

    func turn() {
        isScheduled = false
        act()
    }

    func ready(_ events: UInt32) {}

    func timeReached(_ now: Instant) {
        armedAt = nil
        session.wake(now: now)
        act()
    }

    /// Does what the session wants done. A callback in here may call anything; what follows from
    /// that is done behind it.
    func act() {
        guard !isActing else { return }
        isActing = true
        while let action = session.nextAction() { perform(action) }
        isActing = false
        if calls.isEmpty, isResident {
            isResident = false
            loop.removeResident(self)
        }
        updateTimer()
    }

    private func updateTimer() {
        let time = session.wakeUp()
        guard time != armedAt else { return }
        armedAt = time
        if let time { loop.arm(timer, self, at: time) } else { loop.disarm(timer) }
    }

    private func perform(_ action: consuming RESTSession.Action) {
        switch consume action {
        case .start(let id, let request, let isFresh, let rewinds):
            callsByID[id]?.start(request, isFresh: isFresh, rewinds: rewinds)
        case .abort(let id): callsByID[id]?.drop()
        case .timeOut(let id): callsByID[id]?.timeOut()
        case .authorize: askForCredentials()
        case .finish(let id, let outcome):
            guard let call = callsByID.removeValue(forKey: id) else { return }
            calls[call.number] = nil
            call.finish(outcome)
        }
    }

    private func askForCredentials() {
        guard loop.mayCall else { return }
        Log.write(.info, "REST: the credentials were refused; asking for fresh ones")
        var answer = CredentialsAnswer.none
        do {
            answer = try credentials?() ?? .none
        } catch {
            Log.write(.warning, "REST: no fresh credentials: \(error)")
        }
        switch answer {
        case .none: session.authorized(false, now: Loop.now())
        case .ready: session.authorized(true, now: Loop.now())
        case .later: return
        }
    }

    func closeNow() {
        // A request of another thread's that comes behind this must find the session closed.
        hasBegun = true
        session.close()
        // Also inside a callback: all are told before the call returns.
        while let action = session.nextAction() { perform(action) }
        act()
        handles?.removeAll()
        currentReachability()?.remove(self)
    }

    /// No callback begins once the loop is freed, so that all are told now.
    func loopClosed() { closeNow() }
}
