// What the session learns about the network.
extension SpreadbotSession {
    /// The server has become reachable or unreachable, or the route to it has changed (B11, B12).
    package mutating func networkChanged(isOnline: Bool, now: Instant, random: Double) {
        let comesBack = isOnline && !attempts.isOnline
        if comesBack, stage == .waiting {
            failedRounds.reset()
            backToTop()
            // All waits were due to the previous network.
            attempts.restart(now: now)
        }
        attempts.setOnline(isOnline, now: now, random: random)
        if case .open = stage, isOnline { upgrade.bringForward(now + .onceOnline(random: random)) }
        if comesBack { pump() }
        noteWait()
    }

    /// The application knows that the network is back.
    package mutating func retryNow(_ now: Instant) {
        if stage == .waiting {
            failedRounds.reset()
            backToTop()
            // Also before the first attempt, when none is due yet.
            attempts.restart(now: now)
            attempts.retryNow(now)
        } else if case .open = stage {
            upgrade.bringForward(now)
        }
        postRetry.attempts.retryNow(now)
        pump()
    }

    /// Whether there is a network, as far as known.
    package var isOnline: Bool { attempts.isOnline }
}
