import Session
import Wire

// What a REST client does on its loop's thread.
extension RESTClient: ReachabilityObserver {
    /// With the first request, whichever thread's comes here first; or with the end.
    private func begin() {
        guard !hasBegun else { return }
        hasBegun = true
        takeHandlers()
        takeConfiguration()
        handles = CurlHandles(configuration.network, on: loop)
        session = RESTSession(configuration)
        session.renewsCredentials = handlers.credentials != nil
        session.setCredential(takeInitialCredential() ?? configuration.authorization)
        reachability = chosenReachability
        reachability?.add(self)
    }

    func submit(_ call: RESTCall) {
        begin()
        // What was said before this request holds for it.
        if let reachability, reachability.changes != knownChanges { askReachability() }
        call.id = session.submit(
            call.request, key: randomUUID(), isReachable: isReachable(call.url), now: Loop.now())
        calls[call.number] = call
        callsByID[call.id] = call
        setResident(true)
        schedule()
    }

    private func isReachable(_ url: HTTPURL) -> Bool {
        reachability?.isReachable(url, by: configuration.network) ?? true
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

    func perform(_ action: consuming RESTSession.Action) {
        switch consume action {
        case .start(let id, let request, let isFresh, let rewinds):
            callsByID[id]?.start(
                request, isFresh: isFresh, rewinds: rewinds, configuration.http, by: handles)
        case .abort(let id): callsByID[id]?.drop()
        case .timeOut(let id): callsByID[id]?.timeOut()
        case .authorize(let refusal): askForCredentials(refusal)
        case .finish(let id, let outcome):
            guard let call = callsByID.removeValue(forKey: id) else { return }
            calls[call.number] = nil
            call.finish(outcome)
        }
    }

    private func askForCredentials(_ refusal: ResponseHead?) {
        guard loop.mayCall, let refusal else { return }
        Log.write(.info, "REST: the credentials were refused; asking for fresh ones")
        var answer = CredentialsAnswer.none
        do throws(RealtimeError) {
            answer = try handlers.credentials?(HTTPResponse(refusal, body: [])) ?? .none
        } catch {
            Log.write(.warning, "REST: no fresh credentials: \(error.message)")
        }
        switch answer {
        case .none: session.authorized(false, now: Loop.now())
        case .ready: session.authorized(true, now: Loop.now())
        case .later: return
        }
    }

    /// Also when the loop is freed: no callback begins after that, so all are told now.
    func closeNow() {
        // A request of another thread's that comes behind this must find the session closed.
        hasBegun = true
        session.close()
        // Also inside a callback: all are told before the call returns.
        performAll()
        act()
        handles.removeAll()
        reachability?.remove(self)
    }
}
