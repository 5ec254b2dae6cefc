import Session
package import Wire

// The blocking API.
extension DDPConnection {
    /// Connects, unless an attempt is being made, and waits until the server has confirmed the
    /// connection.
    /// - Parameter timeout: nil for no limit.
    /// - Throws: `.timeout`; `.closed` after `disconnect`; the error with which the client has
    ///   failed.
    package func connect(timeout: Duration?) throws(RealtimeError) {
        try loop.checkMayWait()
        let waiter = Waiter<RealtimeError?>(on: loop)
        if status != .connecting { try connect() }
        let number = awaitConnection(waiter, mayWait: timeout != .zero)
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
    private func awaitConnection(
        _ waiter: Waiter<RealtimeError?>, mayWait: Bool
    ) -> UInt64 {
        let answer = Answer(waiter)
        return read { shared in
            shared.report(shared.session.status, to: answer)
            if shared.isInterrupted, mayWait {
                shared.isInterrupted = false
                answer.set(Inbox.interrupted)
            }
            shared.lastConnect += 1
            shared.connects[shared.lastConnect] = answer
            return shared.lastConnect
        }
    }

    private func forgetConnect(_ number: UInt64) {
        let old = shared.locked { shared.connects.removeValue(forKey: number) }
        withExtendedLifetime(old) {}
    }
}
