package import Wire

// Refused tokens, and their refresh (docs/spreadbot.md, B4 and B5).
extension SpreadbotSession {
    mutating func reauthorize(
        _ failure: Failure, _ end: SpreadbotLegEnd, _ now: Instant, _ wallClock: Int64,
        _ random: Double
    ) {
        var failure = failure
        if attachedGeneration != tokens.generation {
            failure.retryIn = .zero
            report(.failed(failure))
            return dial(now)
        }
        if tokens.canRefresh, wasRefreshed, gotMessage {
            // The tokens worked for a while, so they are refreshed after a delay.
            tokens.expire(now)
            return retryOrWait(failure, end, now, wallClock, random)
        }
        guard tokens.canRefresh, !wasRefreshed else {
            let why =
                wasRefreshed
                ? ", although the tokens are fresh"
                : ", and there is nothing to refresh the tokens with"
            let response = failure.error.response
            // The tokens mean nothing to a proxy.
            let error = RealtimeError(
                .auth, failure.error.message + (response?.proxy == nil ? why : ""),
                response: response)
            return self.end(error, failure)
        }
        wasRefreshed = true
        tokens.refuse()
        stage = .authorizing
        report(.failed(failure))
        beginRefresh()
    }

    /// The application sets other tokens. They are used from the next attempt and request on.
    package mutating func setTokens(access: String, refresh: String, now: Instant) {
        // The given tokens are those being refreshed, and the response is on its way.
        if tokens.isRefreshing(access: access, refresh: refresh) { return }
        // A refresh that has not begun is not needed any longer.
        if withdraw({ if case .refresh = $0 { true } else { false } }) { tokens.withdrawRefresh() }
        tokens.adopt(access: access, refresh: refresh, lifetime: nil, now: now)
        wasRefreshed = false
        act(.credential(credential))
        // Requests that wait for a refresh can continue.
        act(.refreshed(nil))
        if stage == .authorizing { dial(now) }
    }

    mutating func beginRefresh() {
        if let token = tokens.beginRefresh() { act(.refresh(token: token)) }
    }

    /// A request was refused with the current credential.
    package mutating func refusedRequest() {
        guard tokens.canRefresh else {
            let error = RealtimeError(
                .auth, "the access token was refused, and there is nothing to refresh it with")
            return act(.refreshed(error))
        }
        tokens.refuse()
        beginRefresh()
    }

    /// The token server returned fresh tokens.
    package mutating func refreshed(
        access: String, refresh: String?, lifetime: Duration?, now: Instant
    ) {
        switch tokens.endRefresh(refused: false) {
        case .tokens: break
        case .refreshToken:
            if let refresh {
                tokens.adopt(refresh: refresh)
                report(.tokens(access: tokens.access, refresh: refresh))
            }
            return superseded(now)
        case .none: return superseded(now)
        }
        tokens.adopt(access: access, refresh: refresh, lifetime: lifetime, now: now)
        act(.credential(credential))
        report(.tokens(access: tokens.access, refresh: tokens.refresh))
        act(.refreshed(nil))
        if stage == .authorizing { dial(now) }
        // The server may accept a probe with the fresh tokens.
        upgrade.bringForward(now)
    }

    /// The application set other tokens during the refresh.
    private mutating func superseded(_ now: Instant) {
        // The other tokens were refused meanwhile, too, so refresh them next.
        if tokens.areRefused, tokens.canRefresh { return beginRefresh() }
        act(.refreshed(nil))
        if stage == .authorizing { dial(now) }
    }

    /// The token server did not return tokens.
    /// - Parameter isRefused: the server refused; otherwise it could not be reached.
    package mutating func refreshFailed(
        _ error: RealtimeError, isRefused: Bool, now: Instant, random: Double
    ) {
        guard tokens.endRefresh(refused: isRefused) == .tokens else { return superseded(now) }
        act(.refreshed(error))
        if isRefused {
            // Without a refresh, no leg can last. A leg that is already closing is left alone.
            if state != .disconnected { end(error) }
            return
        }
        guard stage == .authorizing, let transport else { return }
        wasRefreshed = false
        rungs[rung].lastError = error
        let failure = Failure(error: error, transport: transport, status: 0)
        retryOrWait(failure, SpreadbotLegEnd(error: error), now, 0, random)
    }
}
