package import Wire

/// The next step after a failed attempt, for the log and for the request's own handler.
package enum RESTNext: Sendable {
    /// Another attempt: its number, the most attempts, the delay before it, and why, with the
    /// response that refused the last one, without its body.
    case attempt(Int, of: Int, in: Duration, because: RealtimeError)
    case network
}

extension RESTSession {
    /// What request `id` waits for after an exchange ended; nil if it does not wait.
    package func next(of id: ID, now: Instant) -> RESTNext? {
        guard let entry = entries[id] else { return nil }
        switch entry.state {
        case .waiting(let time):
            let response = entry.head.map { HTTPResponse($0, body: []) }
            let refusal = refusal(entry).map {
                RealtimeError($0.code, $0.message, response: response)
            }
            guard let cause = entry.lastError ?? refusal else { return nil }
            return .attempt(
                entry.attempts + 1, of: entry.policy.attempts, in: max(time - now, .zero),
                because: cause)
        case .queued where !lines[entry.line].isReachable: return .network
        default: return nil
        }
    }

    /// The number of the current attempt.
    package func attempt(of id: ID) -> Int { entries[id]?.attempts ?? 0 }
}
