package import Wire

// Requests for authorizations, and their answers.
extension PusherSession {
    /// Requests the authorizations that channels need by now.
    mutating func requestAuthorizations() {
        guard !unrequested.isEmpty, connection != nil else { return }
        let ids = unrequested.filter {
            channels[$0]?.state == .authorizing && channels[$0]?.request == nil
        }
        unrequested = []
        let size = max(1, configuration.authBatchSize)
        for start in stride(from: 0, to: ids.count, by: size) {
            let batch = Array(ids[start..<min(start + size, ids.count)])
            let number = request(.subscriptions(batch), of: batch)
            for id in batch { channels[id]?.request = number }
        }
    }

    /// - Returns: the number of the request.
    mutating func request(_ purpose: Request.Purpose, of ids: [ChannelID]) -> UInt64 {
        noteOptions()
        let number = nextNumber()
        requests[number] = Request(purpose: purpose)
        let named = ids.compactMap { id in channels[id].map { (id: id, name: $0.name) } }
        act(
            .authorize(
                PusherAuthorizationRequest(
                    number: number, purpose: named.isEmpty ? .user : .channels(named),
                    socketID: socketID ?? "")))
        return number
    }

    /// A channel does not need its authorization any more.
    mutating func forget(_ id: ChannelID, in number: UInt64) {
        channels[id]?.request = nil
        guard case .subscriptions(let ids)? = requests[number]?.purpose else { return }
        let rest = ids.filter { $0 != id && channels[$0]?.request == number }
        if rest.isEmpty { cancelRequest(number) }
    }

    mutating func cancelRequest(_ number: UInt64) {
        guard let request = requests.removeValue(forKey: number), request.isMade else { return }
        act(.cancelAuthorization(number))
    }

    /// The program's own function is asked to authorize. It may itself wait for a server under the
    /// same limit, so it has a second more to report why that failed.
    package mutating func asksProgram(_ number: UInt64, now: Instant) {
        guard configuration.authTimeout > .zero, requests[number] != nil else { return }
        requests[number]?.isAsked = true
        asked.append((now + configuration.authTimeout + .seconds(1), number))
    }

    /// When the first of the requests that the program has not answered fails.
    var askedDue: Instant? {
        mutating get {
            while let first = asked.first, requests[first.number]?.isAsked != true {
                asked.removeFirst()
            }
            return asked.first?.due
        }
    }

    mutating func failLateAuthorizations(_ now: Instant) {
        while let due = askedDue, due <= now, let (_, number) = asked.popFirst() {
            let error = RealtimeError(
                .timeout,
                "the program has not answered the request for authorization within"
                    + " \(configuration.authTimeout.readable)"
                    + OptionOwner.pusher.mention(.authTimeout))
            authorized(number, .failed(error), now: now)
        }
    }

    /// A request is sent to the endpoint, which may quote its credentials. It has its own time
    /// limit.
    package mutating func prepared(_ number: UInt64, with secrets: SentSecrets) {
        requests[number]?.isAsked = false
        self.secrets.add(secrets)
    }

    /// Whether the answer to a request is still wanted.
    package func isAwaited(_ number: UInt64) -> Bool { requests[number] != nil }

    /// The answer to a request.
    package mutating func authorized(
        _ number: UInt64, _ outcome: PusherAuthorizationOutcome, now: Instant
    ) {
        guard let request = requests.removeValue(forKey: number) else { return }
        switch request.purpose {
        case .subscriptions(let ids):
            for (index, id) in ids.enumerated() where channels[id]?.request == number {
                channels[id]?.request = nil
                switch outcome.result(index) {
                case .success(let answer): answered(answer, id, now)
                case .failure(let error): refused(error, id, now)
                }
            }
        case .key(let id):
            switch outcome.result(0) {
            case .success(let answer): renewed(answer.sharedSecret, id, now)
            case .failure(let error): keyRefused(error, id, now)
            }
        case .user: userAuthorized(outcome, now)
        }
    }

    private mutating func answered(
        _ answer: PusherAuthorizationAnswer, _ id: ChannelID, _ now: Instant
    ) {
        guard let name = channels[id]?.name else { return }
        if name.kind == .encrypted, answer.sharedSecret == nil {
            let error = RealtimeError(
                .auth,
                "the authorization of \(name.text.quoted()) has no shared secret, which an"
                    + " encrypted channel needs")
            return fail(id, PusherSubscriptionFailure(error))
        }
        use(answer, for: id, now)
    }

    /// Subscribes with an authorization.
    mutating func use(_ answer: PusherAuthorizationAnswer, for id: ChannelID, _ now: Instant) {
        guard let name = channels[id]?.name else { return }
        if name.kind == .presence, answer.channelData == nil, user.id == nil {
            guard !user.isPending else {
                // The server then takes the user that is signed in.
                channels[id]?.answer = answer
                channels[id]?.waitsForUser = true
                return set(id, .authorizing)
            }
            let error = RealtimeError(
                .auth,
                "the authorization of \(name.text.quoted()) has no channel data, which a presence"
                    + " channel needs unless the user is signed in")
            return failWithoutUser(id, answer, error)
        }
        channels[id]?.encryption.key = answer.sharedSecret
        if name.kind == .presence {
            channels[id]?.ownID =
                answer.channelData.map { PusherSignature.userID(inChannelData: $0) } ?? user.id
        }
        sendSubscription(id, answer, now)
    }

    private mutating func refused(_ error: RealtimeError, _ id: ChannelID, _ now: Instant) {
        guard let entry = channels[id] else { return }
        guard error.mayPass, entry.repetitions < configuration.authRetries else {
            return fail(id, PusherSubscriptionFailure(error))
        }
        let delay = Duration.seconds(1 << Int64(entry.repetitions))
        channels[id]?.repetitions += 1
        retries.append((now + delay, id))
        log("\(entry.name.text) is not authorized (\(error.message)); again \(delay.fromNow)")
    }

    /// Repeats the requests that are due.
    mutating func repeatRequests(_ now: Instant) {
        guard !retries.isEmpty else { return }
        for retry in retries where retry.due <= now { unrequested.append(retry.id) }
        retries.removeAll { $0.due <= now }
    }
}

extension PusherAuthorizationOutcome {
    fileprivate func result(_ index: Int) -> Result<PusherAuthorizationAnswer, RealtimeError> {
        switch self {
        case .channels(let results) where index < results.count: return results[index]
        case .failed(let error): return .failure(error)
        case .channels, .user:
            return .failure(RealtimeError(.auth, "the request for authorization was not answered"))
        }
    }
}

extension RealtimeError {
    /// Whether another request may succeed: the endpoint was not reached, or failed itself.
    fileprivate var mayPass: Bool {
        if let response { return response.status >= 500 }
        switch code {
        case .resolve, .connect, .tls, .proxy, .timeout, .deadline, .connectionLost: return true
        default: return false
        }
    }
}
