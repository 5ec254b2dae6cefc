package import Wire

// The leg in use: what comes from it, how it ends, and what follows (docs/spreadbot.md, B6 to B10).
extension SpreadbotSession {
    package mutating func opened(_ number: UInt64, now: Instant) {
        guard stage == .dialing(number), let transport else { return }
        stage = .open(number, since: now)
        if toldTransport != transport {
            toldTransport = transport
            act(.transport(transport))
        }
        act(.opened(transport, resumed: !attachedCursor.isEmpty))
        if transport != .webSocket, let top = configuration.transports.firstIndex(of: .webSocket),
            top < rung
        {
            upgrade.arm(now)
        } else {
            upgrade.reset(configuration)
        }
        pump()
    }

    /// A message has come on a leg that is open.
    /// - Parameter id: its own; nil for a message without one.
    /// - Returns: whether it is to be delivered; the cursor stands behind it then.
    package mutating func received(_ number: UInt64, id: UnsafeRawBufferPointer?) -> Bool {
        guard case .open(number, _) = stage else { return false }
        if !gotMessage {
            gotMessage = true
            failures = 0
            failedRounds = 0
            rungs[rung].shortLives = 0
        }
        return cursor.accepts(id)
    }

    /// The cursor stands behind an id that came without a message, or with several.
    package mutating func moved(_ number: UInt64, to id: UnsafeRawBufferPointer) {
        guard case .open(number, _) = stage, !id.isEmpty else { return }
        cursor.move(to: id)
    }

    /// The leg that is open comes to its end: one that held has all counts begin anew.
    /// - Returns: whether it held.
    mutating func settle(since openedAt: Instant, _ now: Instant) -> Bool {
        guard gotMessage || now - openedAt >= configuration.stableTime else { return false }
        failures = 0
        failedRounds = 0
        rungs[rung].shortLives = 0
        // A server that accepts and then refuses must not be asked for ever.
        if now - openedAt >= configuration.stableTime { wasRefreshed = false }
        return true
    }

    /// What was polled was removed: ids of it say nothing any more (L6). The leg goes on.
    package mutating func gone(_ number: UInt64, _ error: RealtimeError, retryIn: Duration?) {
        guard isCurrent(number), let transport else { return }
        cursor = SpreadbotCursor()
        act(.failed(Failure(error: error, transport: transport, status: 410, retryIn: retryIn)))
    }

    /// A leg has ended, or did not come to be.
    /// - Parameters:
    ///   - written: the last send that was written to it whole; 0 for none.
    ///   - wallClock: seconds since 1970, for a Retry-After that is a date.
    ///   - random: uniform in [0, 1).
    package mutating func ended(
        _ number: UInt64, _ end: SpreadbotLegEnd, written: SpreadbotSend.ID, now: Instant,
        wallClock: Int64, random: Double
    ) {
        if stage == .closing(number) { return closed(number, isClean: false, written: written) }
        var openedAt: Instant?
        switch stage {
        case .dialing(number): break
        case .open(number, let since): openedAt = since
        default: return
        }
        guard let transport else { return }
        dropProbe()
        rungs[rung].lastError = end.error
        if let openedAt, !settle(since: openedAt, now) { rungs[rung].shortLives += 1 }
        loseFrames(written)
        let outcome = SpreadbotOutcome(
            end, of: transport, wasOpen: openedAt != nil, isLast: rung == rungs.count - 1,
            goesElsewhere: configuration.goesElsewhere(transport))
        // Tokens that were fresh at an attempt that ended otherwise may have expired since.
        if outcome != .unauthorized { wasRefreshed = false }
        let failure = Failure(error: end.error, transport: transport, status: end.status)
        switch outcome {
        case .unauthorized: reauthorize(failure, end, now, wallClock, random)
        case .refused: self.end(end.error, failure)
        case .unsupported where isOnline:
            nextRung(now, failure, asked: asked(end, wallClock), random: random)
        case .unsupported, .unreachable, .dropped:
            retryOrWait(failure, end, now, wallClock, random)
        }
        pump()
    }

    /// Counts an attempt, or waits for the network (B11).
    mutating func retryOrWait(
        _ failure: Failure, _ end: SpreadbotLegEnd, _ now: Instant, _ wallClock: Int64,
        _ random: Double
    ) {
        if isOnline { return retry(failure, end, now, wallClock, random) }
        stage = .offline
        act(.failed(failure))
    }

    /// B10.
    private mutating func retry(
        _ failure: Failure, _ end: SpreadbotLegEnd, _ now: Instant, _ wallClock: Int64,
        _ random: Double
    ) {
        var failure = failure
        if rungs[rung].shortLives >= SpreadbotSession.mostShortLives {
            rungs[rung].shortLives = 0
            rungs[rung].unsupportedUntil =
                configuration.upgradeInterval > .zero
                ? now + configuration.upgradeInterval : Instant(nanoseconds: .max)
            failures = configuration.maxReconnects
        }
        let asked = asked(end, wallClock)
        guard failures < configuration.maxReconnects else {
            return nextRung(now, failure, asked: asked, random: random)
        }
        failures += 1
        let delay = delay(failures, random, asked: asked)
        failure.retryIn = delay
        failure.attempt = failures
        stage = .backoff(until: now + delay)
        act(.failed(failure))
    }

    /// The server's Retry-After.
    private func asked(_ end: SpreadbotLegEnd, _ wallClock: Int64) -> Duration? {
        end.error.response.flatMap { retryAfter($0, wallClock: wallClock) }
    }

    /// Connections on one leg that each end at once and without a message, before it counts as one
    /// that does not work.
    private static let mostShortLives = 3
    /// What a server may ask to wait.
    private static let longestAsked = Duration.seconds(300)

    /// equal(min(maxDelay, 1000 · 2^(k−1))), or what the server asks for when that is longer.
    func delay(_ count: Int, _ random: Double, asked: Duration?) -> Duration {
        let cap = Double(configuration.maxDelay.clampedNanoseconds)
        var delay = min(1e9, cap)
        for _ in 1..<max(2, min(count, 63)) where count > 1 && delay < cap {
            delay = min(cap, delay * 2)
        }
        let own = Duration.nanoseconds(Int64(delay / 2 + random * delay / 2))
        return max(own, min(asked ?? .zero, SpreadbotSession.longestAsked))
    }
}
