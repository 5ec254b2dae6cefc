package import Wire

// The results of exchanges, and what follows from them (R1 to R7).
extension RESTSession {
    /// Handles the head of a response.
    /// - Parameters:
    ///   - isShared: it came on a connection that other exchanges may use at the same time.
    ///   - isNew: its connection was made for this exchange.
    ///   - wallClock: seconds since 1970, for a Retry-After that is a date (G9).
    ///   - random: uniform in [0, 1), evaluated if a delay must be chosen.
    package mutating func received(
        _ head: ResponseHead, of id: ID, isShared: Bool = false, isNew: Bool = false,
        now: Instant, wallClock: Int64, random: @autoclosure () -> Double
    ) -> Reception {
        guard let entry = entries[id], case .running(isAnswered: false) = entry.state else {
            return .discard
        }
        // A response from a proxy, or to CONNECT, says nothing about the origin.
        if head.proxy == nil { learn(entry, isShared: isShared, isNew: isNew, now) }
        entry.head = head
        entry.retryAfter = retryTime(of: head, wallClock: wallClock)
        do throws(RealtimeError) {
            entry.state =
                try next(entry, head, now, random).map { .draining($0) }
                ?? .running(isAnswered: true)
        } catch {
            act(.abort(id))
            finish(entry, error, now: now)
            return .discard
        }
        let isLast = if case .running = entry.state { true } else { false }
        if isLast { entry.beginAnswer(now) }
        alarms.set(entry.id, due: entry.alarm)
        return isLast ? .deliver : .discard
    }

    /// What follows a response; nil if it is the last.
    private func next(
        _ entry: RESTEntry, _ head: ResponseHead, _ now: Instant, _ random: () -> Double
    ) throws(RealtimeError) -> RESTEntry.Next? {
        let rules = entry.policy.redirects
        if try entry.redirects.follow(head, &entry.request, from: entry.origin, rules) {
            if entry.redirects.leftOrigin { entry.usesCredential = false }
            guard entry.canSendBody else {
                throw RealtimeError(
                    .redirect, "\(entry.name) was redirected, and its body cannot be read again")
            }
            return .redirect
        }
        guard entry.canSendBody else { return nil }
        switch head.status {
        case 401
        where renewsCredentials && entry.usesCredential && entry.retries.mayAskForCredentials():
            return .authorize
        case 421 where !entry.wasMisdirected:
            entry.wasMisdirected = true
            entry.needsFreshConnection = true
            return .replay
        default:
            guard RetryRules.repeats(status: head.status, entry.request, entry.policy),
                let delay = delay(entry, now, random)
            else { return nil }
            if TemporaryStatus.mayDependOnServer(head.status) { entry.needsFreshConnection = true }
            return .retry(at: now + delay)
        }
    }

    /// Whether another attempt follows a response with this status, which another server of the
    /// same name may answer.
    package func leavesServer(_ id: ID, after status: Int) -> Bool {
        guard let entry = entries[id], TemporaryStatus.leavesServer(status) else { return false }
        return entry.canSendBody && entry.attempts < entry.policy.attempts
            && RetryRules.repeats(status: status, entry.request, entry.policy)
    }

    /// The time until the next attempt (R1); nil if there is none (R2).
    private func delay(
        _ entry: RESTEntry, _ now: Instant, _ random: () -> Double
    ) -> Duration? {
        let asked = entry.retryAfter ?? .zero
        guard entry.attempts < entry.policy.attempts, asked <= entry.policy.retryAfterLimit,
            case .retry(let delay) = entry.retries.ended(
                asked: asked, now: now, random: random())
        else { return nil }
        if let deadline = entry.deadline, now + delay >= deadline { return nil }
        return delay
    }

    /// The caller's streamed body was read, at least in part.
    package mutating func bodyUsed(_ id: ID) { entries[id]?.bodyIsUsed = true }

    /// Bytes of the request's body were sent.
    package mutating func sent(_ id: ID, now: Instant) { entries[id]?.movedAt = now }

    /// A request's attempt is to end, because its time is over, but more of its body has arrived
    /// at the server meanwhile, without a call of `sent`.
    /// - Parameter moved: when the last of these bytes arrived.
    /// - Returns: whether the attempt continues.
    package mutating func continues(_ id: ID, moved: Instant, now: Instant) -> Bool {
        guard let entry = entries[id], entry.isTimedOut else { return false }
        entry.movedAt = moved
        guard extend(entry, now) else { return false }
        entry.isTimedOut = false
        alarms.set(entry.id, due: entry.alarm)
        return true
    }

    /// Bytes of the response's body arrived. They extend the attempt's time only if the response is
    /// streamed to the caller.
    package mutating func receivedBytes(of id: ID, now: Instant) {
        guard let entry = entries[id], entry.streamsAnswer,
            case .running(isAnswered: true) = entry.state
        else { return }
        entry.movedAt = now
    }

    /// The caller pauses the response, or has no more of the request's body yet; or it continues.
    /// The attempt's time stands still meanwhile.
    package mutating func setHeld(_ id: ID, _ isHeld: Bool, now: Instant) {
        guard let entry = entries[id], entry.isHeld != isHeld else { return }
        entry.isHeld = isHeld
        entry.movedAt = now
    }

    /// The whole response has arrived, and `ended` follows. From now on, no time limit applies.
    package mutating func answerCame(_ id: ID) {
        guard let entry = entries[id], case .running(isAnswered: true) = entry.state else { return }
        entry.hasCome = true
        alarms.remove(entry.id)
    }

    /// Handles the end of an exchange.
    /// - Parameter failure: nil if the response is complete, or the rest of it was not wanted.
    package mutating func ended(
        _ id: ID, _ failure: HTTPFailure?, now: Instant, random: @autoclosure () -> Double
    ) {
        guard let entry = entries[id], entry.hasExchange else { return }
        entry.hasCome = false
        switch entry.state {
        case .draining(.redirect) where entry.isTimedOut:
            // The redirect belongs to the attempt, whose time is over.
            failed(entry, failure ?? HTTPFailure(missing(entry)), now, random)
        case .draining(let next):
            // The rest of the response does not matter, but its connection may be dead.
            if entry.isTimedOut { entry.needsFreshConnection = true }
            proceed(entry, next, now)
        case .running(isAnswered: true) where failure == nil:
            finish(entry, refusal(entry), hasBody: true, now: now)
        case .running: failed(entry, failure ?? HTTPFailure(missing(entry)), now, random)
        case .queued, .waiting, .authorizing: return
        }
    }

    private func missing(_ entry: RESTEntry) -> RealtimeError {
        RealtimeError(.connectionLost, "\(entry.name) ended without an answer")
    }

    /// Ends a request because of its caller, or of a limit. No attempt follows.
    package mutating func failed(_ id: ID, _ error: RealtimeError, now: Instant) {
        guard let entry = entries[id], entry.hasExchange else { return }
        act(.abort(id))
        finish(entry, error, now: now)
    }

    mutating func proceed(_ entry: RESTEntry, _ next: RESTEntry.Next, _ now: Instant) {
        switch next {
        case .retry(let time):
            entry.state = .waiting(until: time)
            leaveLine(entry, now)
        case .redirect, .replay:
            entry.isReplay = true
            if awaitsCredential(entry) { return requeue(entry, now) }
            if case .replay = next { entry.attemptEnd = nil }
            start(entry, now)
        case .authorize:
            if entry.generation != generation, !isAuthorizing {
                // Another request's question has been answered meanwhile.
                entry.isReplay = true
                entry.attemptEnd = nil
                return start(entry, now)
            }
            if let denial, denial.generation == entry.generation, entry.id <= denial.last {
                return finish(entry, denied(entry, denial.cause), now: now)
            }
            entry.state = .authorizing
            if !isAuthorizing {
                lastBeforeQuestion = lastID
                act(.authorize(entry.head))
            }
            leaveLine(entry, now)
        }
    }

    /// Handles an exchange that failed below HTTP.
    private mutating func failed(
        _ entry: RESTEntry, _ failure: HTTPFailure, _ now: Instant, _ random: () -> Double
    ) {
        if let head = failure.head { entry.head = head }
        if entry.policy.needsHeadAlone, let head = entry.head, (200..<300).contains(head.status) {
            return finish(entry, nil, now: now)
        }
        entry.lastError = failure.error
        // Its connection may be dead, and HTTP/2 would continue to use it.
        if entry.isTimedOut { entry.needsFreshConnection = true }
        let isReachable = lines[entry.line].isReachable
        // If the caller got a head, it must not get another.
        let isDelivered =
            if case .running(isAnswered: true) = entry.state { entry.streamsAnswer } else {
                false
            }
        guard !isDelivered, RetryRules.mayPass(failure), entry.canSendBody,
            !RetryRules.isDone(entry.head, failure, entry.request, entry.policy)
        else {
            return finish(entry, failure.error, now: now)
        }
        let isSafe =
            failure.precedesRequest || RetryRules.repeats(entry.request, entry.policy)
        if failure.isStale, !entry.wasStale, isSafe {
            entry.wasStale = true
            entry.needsFreshConnection = true
            return proceed(entry, .replay, now)
        }
        if failure.precedesRequest, !isReachable {
            if entry.exchangeCounts { entry.attempts -= 1 } else { entry.isReplay = true }
            return requeue(entry, now)
        }
        guard isSafe || entry.isRedirected, let delay = delay(entry, now, random) else {
            return finish(entry, failure.error, now: now)
        }
        proceed(entry, .retry(at: now + delay), now)
    }

    /// The request waits without an exchange, so another may begin one.
    private mutating func leaveLine(_ entry: RESTEntry, _ now: Instant) {
        alarms.set(entry.id, due: entry.alarm)
        lines[entry.line].running -= 1
        pump(entry.line, now)
    }

    /// The error for a response that is not 2xx.
    func refusal(_ entry: RESTEntry) -> RealtimeError? {
        guard let head = entry.head, !(200..<300).contains(head.status) else { return nil }
        let reason = head.reason.isEmpty ? "" : " " + head.reason.quoted(upTo: 60)
        let who = head.proxy.map { " by the proxy \($0)" } ?? ""
        let times = entry.attempts > 1 ? " at attempt \(entry.attempts)" : ""
        return RealtimeError(
            .httpStatus, "\(entry.name) was answered with \(head.status)\(reason)\(who)\(times)")
    }

    // MARK: Credentials

    /// The credentials that a request may have carried.
    func secrets(of entry: RESTEntry) -> SentSecrets {
        var secrets = SentSecrets(entry.fields, entry.origin)
        if let credential {
            secrets.add(HeaderField(name: "Authorization", value: credential))
        }
        secrets.add(proxySecrets)
        return secrets
    }

    /// Sets the Authorization of requests that have none of their own, from their next exchange on.
    /// Setting the same credential again is a no-op, so a request refused with it will still ask
    /// for a new one.
    package mutating func setCredential(_ value: String?) {
        guard !value.hasSameBytes(as: credential) else { return }
        credential = value
        generation += 1
    }

    /// Answers the question of `authorize`.
    /// - Parameters:
    ///   - isFresh: the current credentials are worth another attempt.
    ///   - cause: why there are none.
    package mutating func authorized(
        _ isFresh: Bool, because cause: RealtimeError? = nil, now: Instant
    ) {
        guard isAuthorizing else { return }
        lastBeforeQuestion = nil
        denial = isFresh ? nil : Denial(generation: generation, last: lastID, cause: cause)
        let waiting = entries.values.filter {
            if case .authorizing = $0.state { true } else { false }
        }
        for entry in waiting.sorted(by: { $0.id < $1.id }) {
            guard isFresh else {
                finish(entry, denied(entry, cause), now: now)
                continue
            }
            entry.isReplay = true
            requeue(entry, now)
        }
        for line in lines.all.sorted() { pump(line, now) }
    }

    private func denied(_ entry: RESTEntry, _ cause: RealtimeError?) -> RealtimeError {
        cause
            ?? RealtimeError(
                .auth, "\(entry.name): the credentials were refused, and there are no fresh ones")
    }
}
