package import Wire

// What an endpoint asks its caller between attempts, with answers that may take time: credentials
// after a refusal, and whether to make the next attempt. Meanwhile any thread may change options.
extension Endpoint {
    // MARK: Any thread

    /// Completes a `credentials` handler that returned `.later`: fresh ones are set, or the object
    /// fails.
    /// - Parameter cause: why there are none; nil to report the server's refusal.
    package final func completeCredentials(
        _ fresh: Bool, because cause: RealtimeError? = nil
    ) throws(RealtimeError) {
        try checkRunning()
        // In the next turn, because an immediate failure would be reported inside this call.
        loop.enqueue { [self] in credentialsCame(fresh, because: cause) }
    }

    /// Called inside the handler before an attempt, which then waits for `attemptIsReady`.
    package final func deferAttempt() throws(RealtimeError) {
        try checkRunning()
        guard loop.isOwner, mayDeferAttempt else {
            throw RealtimeError(
                .state, "an attempt can only be deferred inside the callback before it")
        }
        isDeferred = true
        options.awaitAnswer()
    }

    /// Completes `deferAttempt`.
    /// - Parameters:
    ///   - continues: false ends the object, as its handler can.
    ///   - cause: why it ends, if the handler has failed.
    package final func attemptIsReady(
        _ continues: Bool, because cause: RealtimeError? = nil
    ) throws(RealtimeError) {
        try checkRunning()
        loop.enqueue { [self] in
            guard isDeferred, !isClosed else { return }
            isDeferred = false
            if continues { continueAttempt() } else { declineAttempt(because: cause) }
        }
    }

    final func checkRunning() throws(RealtimeError) {
        try loop.checkUsable()
        guard wasStarted else { throw RealtimeError(.state, "the \(Self.kind) was not started") }
        guard !hasEnded else { throw RealtimeError(.closed, "the \(Self.kind) is closed") }
    }

    // MARK: The loop's owner

    /// Calls the handler before an attempt.
    /// - Returns: whether the caller wants the attempt. If `isDeferred` is set, `continueAttempt`
    ///   makes it.
    final func asksForAttempt(
        _ handler: () throws(RealtimeError) -> Bool
    ) throws(RealtimeError) -> Bool {
        isDeferred = false
        mayDeferAttempt = true
        defer { mayDeferAttempt = false }
        do throws(RealtimeError) {
            let isWanted = try reconfiguring(handler)
            if !isWanted { isDeferred = false }
            return isWanted
        } catch {
            isDeferred = false
            throw error
        }
    }

    /// Calls the handler that provides credentials after a refusal.
    final func askCredentials(
        _ response: HTTPResponse,
        _ handler: ((HTTPResponse) throws(RealtimeError) -> CredentialsAnswer)?
    ) {
        // Before the handler runs: another thread may have credentials before the handler returns.
        options.awaitAnswer()
        do throws(RealtimeError) {
            let answer = try reconfiguring { () throws(RealtimeError) in
                try handler?(response) ?? .none
            }
            guard isAuthorizing, !isClosed else { return }
            switch answer {
            case .later: return
            case .ready: authorize()
            case .none: refuseCredentials(because: nil)
            }
        } catch {
            giveUp(error)
        }
    }

    private func credentialsCame(_ fresh: Bool, because cause: RealtimeError?) {
        guard isAuthorizing, !isClosed else { return }
        if fresh { authorize() } else { refuseCredentials(because: cause) }
    }
}
