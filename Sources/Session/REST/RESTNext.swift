package import Wire

/// The next step after a failed attempt, for the log and for the request's own handler.
package enum RESTNext: Sendable {
    /// Another attempt: its number, the most attempts, the delay before it, and why.
    case attempt(Int, of: Int, in: Duration, because: RealtimeError)
    case network
}

extension RESTSession {
    /// What request `id` waits for after an exchange ended; nil if it does not wait.
    package func next(of id: ID, now: Instant) -> RESTNext? {
        guard let entry = entries[id] else { return nil }
        switch entry.state {
        case .waiting(let time):
            guard let cause = entry.lastError ?? refusal(entry) else { return nil }
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
