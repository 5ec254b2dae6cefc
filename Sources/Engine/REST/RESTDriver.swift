import Session
import Wire

// The work of a REST client on its loop's thread.
extension RESTClient {
    func submit(_ call: RESTCall) {
        begin()
        // Changes that were reported before this request apply to it.
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

    func askReachability() {
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
        case .waitForNetwork(let id): callsByID[id]?.waitForNetwork()
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
}
