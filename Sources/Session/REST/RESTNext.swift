package import Wire

/// The next attempt after a failed one, for the log and for the request's own handler.
package struct RESTNext: Sendable {
    package let number: Int
    /// The most attempts.
    package let count: Int
    package let delay: Duration
    /// Why the last attempt failed, with the response that refused it, without its body.
    package let cause: RealtimeError
}

extension RESTSession {
    /// The attempt that request `id` waits for after an exchange ended; nil if it does not.
    package func next(of id: ID, now: Instant) -> RESTNext? {
        guard let entry = entries[id], case .waiting(let time) = entry.state else { return nil }
        let response = entry.head.map { HTTPResponse($0, body: []) }
        let refusal = refusal(entry).map {
            RealtimeError($0.code, $0.message, response: response)
        }
        guard let cause = entry.lastError ?? refusal else { return nil }
        return RESTNext(
            number: entry.attempts + 1, count: entry.policy.attempts,
            delay: max(time - now, .zero), cause: secrets(of: entry).redacted(cause))
    }

    /// Tells that request `id` waits for a network.
    package func wait(of id: ID) -> RealtimeError {
        let name = entries[id]?.name ?? ""
        return RealtimeError(waitingFor: name)
    }

    /// The number of the current attempt.
    package func attempt(of id: ID) -> Int { entries[id]?.attempts ?? 0 }
}
