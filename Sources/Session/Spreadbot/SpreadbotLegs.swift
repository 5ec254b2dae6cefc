package import Wire

// The leg in use: its messages, its end, and what follows (docs/spreadbot.md, B6 to B10).
extension SpreadbotSession {
    package mutating func opened(_ number: UInt64, now: Instant) {
        guard stage == .dialing(number), let transport else { return }
        stage = .open(number)
        attempts.opened(now: now)
        if reportedTransport != transport {
            reportedTransport = transport
            report(.transport(transport))
        }
        report(.opened(transport, resumed: !attachedCursor.isEmpty))
        if transport != .webSocket, let top = configuration.transports.firstIndex(of: .webSocket),
            top < rung
        {
            upgrade.arm(now)
        } else {
            upgrade.reset(configuration)
        }
        pump()
    }

    /// Handles a message on an open leg.
    /// - Parameter id: the message's id; nil for a message without one.
    /// - Returns: whether to deliver it. The cursor is then after it.
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

    /// Moves the cursor to an id that came without a message, or with several.
    package mutating func moved(_ number: UInt64, to id: UnsafeRawBufferPointer) {
        guard case .open(number) = stage, !id.isEmpty else { return }
        cursor.move(to: id)
    }

    /// Called at the end of an open leg. If it lasted, all counts start again.
    /// - Returns: whether it lasted.
    mutating func settle(_ now: Instant) -> Bool {
        let isStable = attempts.closed(now: now)
        guard gotMessage || isStable else { return false }
        attempts.forgetFailures()
        failedRounds.reset()
        rungs[rung].shortLives = 0
        // A server that accepts tokens and refuses them at once must not cause refreshes forever.
        if isStable { wasRefreshed = false }
        return true
    }

    /// The polled resource was removed, so its ids are meaningless (L6). The leg continues.
    package mutating func gone(_ number: UInt64, _ error: RealtimeError, retryIn: Duration?) {
        guard isCurrent(number), let transport else { return }
        cursor = SpreadbotCursor()
        report(.failed(Failure(error: error, transport: transport, status: 410, retryIn: retryIn)))
    }

    /// Handles the end of a leg, or of an attempt.
    /// - Parameters:
    ///   - written: the last send that was written completely; 0 for none.
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
        attempts.doubtProgram()
        dropProbe()
        rungs[rung].lastError = end.error
        if wasOpen, !settle(now) { rungs[rung].shortLives += 1 }
        loseFrames(written)
        let outcome = SpreadbotOutcome(
            end, of: transport, wasOpen: wasOpen, isLast: rung == rungs.count - 1,
            goesElsewhere: configuration.goesElsewhere(transport))
        // The tokens were fresh, but may have expired since an attempt that ended for another
        // reason.
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

    /// Counts a failed attempt, or waits for the network (B11).
    mutating func retryOrWait(
        _ failure: Failure, _ end: SpreadbotLegEnd, _ now: Instant, _ wallClock: Int64,
        _ random: Double
    ) {
        if attempts.isOnline { return retry(failure, end, now, wallClock, random) }
        // Not counted without a network.
        _ = attempts.ended(now: now, random: random)
        stage = .waiting
        report(.failed(failure))
    }

    /// Reports once that the next attempt waits for a network.
    mutating func noteWait() {
        guard stage == .waiting,
            let error = attempts.waitBegan(for: configuration.base.displayName)
        else { return }
        report(.failed(Failure(error: error, transport: nil, status: 0)))
    }

    /// Counts a failed attempt, and schedules the next one (B10).
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
        report(.failed(failure))
    }

    /// The wait that the server asked for with Retry-After.
    private func asked(_ end: SpreadbotLegEnd, _ wallClock: Int64) -> Duration {
        Attempts.asked(by: end.error.response, wallClock: wallClock)
    }

    /// After this many connections in a row that ended at once and without a message, the transport
    /// counts as not working.
    private static let mostShortLives = 3
}
