package import Session
package import Wire

// The blocking API. Each call makes something begin, and waits for its end on the calling thread,
// while another thread drives the loop. What has begun continues after a timeout.
extension DDPConnection {
    /// Connects, unless an attempt is being made, and waits until the server has confirmed the
    /// connection.
    /// - Parameter timeout: nil for no limit.
    /// - Throws: `.timeout`; `.closed` after `disconnect`; the error with which the client has
    ///   failed.
    package func connect(timeout: Duration?) throws(RealtimeError) {
        try checkMayWait()
        let waiter = Waiter<RealtimeError?>(on: loop)
        if status != .connecting { try connect() }
        let number = awaitConnection(waiter)
        defer { forgetConnect(number) }
        var failure: RealtimeError?
        do throws(RealtimeError) {
            failure = try waiter.wait(timeout)
        } catch {
            guard error.code == .timeout else { throw error }
            let loss = read { $0.lastLoss }.map { ": \($0.message)" } ?? ""
            throw RealtimeError(.timeout, "the client is not connected in time\(loss)")
        }
        if let failure { throw failure }
    }

    /// - Returns: the number of the wait.
    private func awaitConnection(_ waiter: Waiter<RealtimeError?>) -> UInt64 {
        let answer = Answer(waiter)
        return read { shared in
            shared.report(shared.session.status, to: answer)
            shared.lastConnect += 1
            shared.connects[shared.lastConnect] = answer
            return shared.lastConnect
        }
    }

    private func forgetConnect(_ number: UInt64) {
        let old = shared.locked { shared.connects.removeValue(forKey: number) }
        withExtendedLifetime(old) {}
    }

    /// Makes a call, and waits until it is completed.
    /// - Parameters:
    ///   - timeout: nil for no limit.
    ///   - make: makes the call with these handlers.
    package func wait(
        _ timeout: Duration?,
        _ make: (DDPCallHandlers) throws(RealtimeError) -> Result<DDPCall, DDPError>
    ) throws(RealtimeError) -> DDPStubOutcome {
        try checkMayWait()
        let waiter = Waiter<DDPStubOutcome>(on: loop)
        if case .failure(let error) = try make(handlers(for: waiter)) { return .failure(error) }
        return try waiter.wait(timeout)
    }

    /// The handlers own the answer alone, so that it ends with them.
    private func handlers(for waiter: Waiter<DDPStubOutcome>) -> DDPCallHandlers {
        let answer = Answer(waiter)
        return DDPCallHandlers(completed: { answer.set($0) })
    }

    /// Subscribes, and waits until the initial documents are there. A subscription that is not
    /// ready in time is released.
    package func subscribe(
        _ name: String, _ params: [EJSON], keep: Duration?, timeout: Duration?
    ) throws(RealtimeError) -> Result<DDPSession.SubscriptionHandle, DDPError> {
        try checkMayWait()
        let waiter = Waiter<DDPError?>(on: loop)
        let handle = try subscribe(name, params, keep: keep, subscriptionHandlers(for: waiter))
        do throws(RealtimeError) {
            if let error = try waiter.wait(timeout) { return .failure(error) }
        } catch {
            try? release(handle)
            throw error
        }
        return .success(handle)
    }

    private func subscriptionHandlers(for waiter: Waiter<DDPError?>) -> DDPSubscriptionHandlers {
        let answer = Answer(waiter)
        return DDPSubscriptionHandlers(
            ready: { answer.set(nil) },
            stopped: {
                answer.set(
                    $0 ?? DDPError(.server, "stopped", reason: "the server has ended it"))
            })
    }

    /// Subscribes to several publications, and waits until they are ready. If one fails, or is not
    /// ready in time, all are released.
    package func load(
        _ wanted: [(name: String, params: [EJSON])], timeout: Duration?
    ) throws(RealtimeError) -> Result<DDPSession.LoaderID, DDPError> {
        try checkMayWait()
        let waiter = Waiter<DDPError?>(on: loop)
        let loader = try load(wanted, loadHandler(for: waiter))
        do throws(RealtimeError) {
            guard let error = try waiter.wait(timeout) else { return .success(loader) }
            try closeLoader(loader)
            return .failure(error)
        } catch {
            try? closeLoader(loader)
            throw error
        }
    }

    private func loadHandler(for waiter: Waiter<DDPError?>) -> DDPLoadHandler {
        let answer = Answer(waiter)
        return { answer.set($0) }
    }
}
