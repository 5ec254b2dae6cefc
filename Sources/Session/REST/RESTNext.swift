import Wire

/// The next step after a failed attempt, for the log.
package enum RESTNext: Sendable {
    /// Another attempt: its number, the most attempts, the delay before it, and why.
    case attempt(Int, of: Int, in: Duration, because: String)
    case network
}

extension RESTSession {
    /// What request `id` waits for after an exchange ended; nil if it does not wait.
    package func next(of id: ID, now: Instant) -> RESTNext? {
        guard let entry = entries[id] else { return nil }
        switch entry.state {
        case .waiting(let time):
            let cause =
                entry.lastError?.message ?? entry.head.map { "the answer was \($0.status)" } ?? ""
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
