package import Wire

// The leg in use: what comes from it, how it ends, and what follows (docs/spreadbot.md, B6 to B10).
extension SpreadbotSession {
    package mutating func opened(_ number: UInt64, now: Instant) {
        guard stage == .dialing(number), let transport else { return }
        stage = .open(number)
        attempts.opened(now: now)
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
        guard case .open(number) = stage else { return false }
        if !gotMessage {
            gotMessage = true
            attempts.forgetFailures()
            failedRounds.reset()
            rungs[rung].shortLives = 0
        }
        return cursor.accepts(id)
    }

    /// The cursor stands behind an id that came without a message, or with several.
    package mutating func moved(_ number: UInt64, to id: UnsafeRawBufferPointer) {
        guard case .open(number) = stage, !id.isEmpty else { return }
        cursor.move(to: id)
    }

    /// The leg that is open comes to its end: one that held has all counts begin anew.
    /// - Returns: whether it held.
    mutating func settle(_ now: Instant) -> Bool {
        let isStable = attempts.closed(now: now)
        guard gotMessage || isStable else { return false }
        attempts.forgetFailures()
        failedRounds.reset()
        rungs[rung].shortLives = 0
        // A server that accepts and then refuses must not be asked for ever.
        if isStable { wasRefreshed = false }
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
        let wasOpen = stage == .open(number)
        guard wasOpen || stage == .dialing(number) else { return }
        guard let transport else { return }
        dropProbe()
        rungs[rung].lastError = end.error
        if wasOpen, !settle(now) { rungs[rung].shortLives += 1 }
        loseFrames(written)
        let outcome = SpreadbotOutcome(
            end, of: transport, wasOpen: wasOpen, isLast: rung == rungs.count - 1,
            goesElsewhere: configuration.goesElsewhere(transport))
        // Tokens that were fresh at an attempt that ended otherwise may have expired since.
        if outcome != .unauthorized { wasRefreshed = false }
        let failure = Failure(error: end.error, transport: transport, status: end.status)
        switch outcome {
        case .unauthorized: reauthorize(failure, end, now, wallClock, random)
        case .refused: self.end(end.error, failure)
        case .unsupported where attempts.isOnline:
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
        if attempts.isOnline { return retry(failure, end, now, wallClock, random) }
        stage = .waiting
        act(.failed(failure))
    }

    /// B10.
    private mutating func retry(
        _ failure: Failure, _ end: SpreadbotLegEnd, _ now: Instant, _ wallClock: Int64,
        _ random: Double
    ) {
        var failure = failure
        var isLeft = attempts.failures < configuration.maxReconnects
        if rungs[rung].shortLives >= SpreadbotSession.mostShortLives {
            rungs[rung].shortLives = 0
            rungs[rung].unsupportedUntil =
                configuration.upgradeInterval > .zero
                ? now + configuration.upgradeInterval : Instant(nanoseconds: .max)
            isLeft = false
        }
        let asked = asked(end, wallClock)
        guard isLeft,
            case .retry(let delay) = attempts.ended(asked: asked, now: now, random: random)
        else { return nextRung(now, failure, asked: asked, random: random) }
        failure.retryIn = delay
        failure.attempt = attempts.failures
        stage = .waiting
        act(.failed(failure))
    }

    /// The server's Retry-After.
    private func asked(_ end: SpreadbotLegEnd, _ wallClock: Int64) -> Duration {
        Attempts.asked(by: end.error.response, wallClock: wallClock)
    }

    /// Connections on one leg that each end at once and without a message, before it counts as one
    /// that does not work.
    private static let mostShortLives = 3
}
