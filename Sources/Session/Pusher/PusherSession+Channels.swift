package import Wire

// Which channels are subscribed, and when.
extension PusherSession {
    /// Registers a channel, and subscribes it as soon as there is a connection, and no earlier
    /// subscription of its name is unanswered. A channel that failed is tried again. An earlier
    /// registration of its name, of which the caller has yet to report the end, ends.
    /// - Parameters:
    ///   - id: grows with each registration. No effect if a later one of this name is registered:
    ///     another thread has ended this one, which its call has overtaken.
    ///   - registration: kept until `unsubscribe`, for `registration(of:)`.
    ///   - answer: an authorization that the caller has, used once; nil to request one.
    package mutating func subscribe(
        _ id: ChannelID, _ name: PusherChannelName,
        for registration: (any PusherRegistration)? = nil, answer: PusherAuthorizationAnswer?,
        now: Instant
    ) {
        if let other = channels.registered(name.text), other != id {
            guard other < id else { return }
            unsubscribe(other, now: now)
        }
        if channels.isRegistered(id) {
            guard channels[id]?.state == .idle || channels[id]?.state == .failed else { return }
            _ = channels[id]?.takeWaitingAnswer()
            if let answer { channels[id]?.answer = answer }
            guard channels[id]?.predecessor == nil else { return }
        } else if let old = channels[name.text] {
            guard old.isCancelled else { return }
            channels.add(id, name, registration, after: old.id)
            channels[id]?.answer = answer
            return awaitAnswer(of: old.id, now)
        } else {
            channels.add(id, name, registration)
            channels[id]?.answer = answer
        }
        if connection != nil { begin(id, now) }
        judgeRefusals(now)
    }

    /// Ends a registration. Nothing about it is reported any more.
    package mutating func unsubscribe(_ id: ChannelID, now: Instant) {
        guard let entry = channels[id], !entry.isCancelled else { return }
        switch entry.state {
        case .idle, .failed: if let old = entry.predecessor { fences.remove(old) }
        case .authorizing:
            if let request = entry.request { forget(id, in: request) }
        case .sent:
            cancelKeyRequest(entry)
            return channels.cancel(id)
        case .subscribed:
            cancelKeyRequest(entry)
            send(PusherMessage.unsubscribe(entry.name.text))
        }
        _ = channels.remove(id)
    }

    /// The state of a registered channel; nil for another one.
    package func channelState(_ id: ChannelID) -> PusherChannelState? {
        channels.isRegistered(id) ? channels[id]?.state : nil
    }

    /// The driver's object of a registered channel.
    package func registration(of id: ChannelID) -> (any PusherRegistration)? {
        channels[id]?.registration
    }

    // MARK: Subscribing

    mutating func subscribeAll(_ now: Instant) {
        for id in channels.ordered { begin(id, now) }
    }

    /// Requests the authorization that a channel needs, or subscribes it at once.
    mutating func begin(_ id: ChannelID, _ now: Instant) {
        guard let entry = channels[id] else { return }
        channels[id]?.repetitions = 0
        guard entry.name.needsAuthorization else { return sendSubscription(id, nil, now) }
        guard let answer = entry.answer else {
            set(id, .authorizing)
            return unrequested.append(id)
        }
        channels[id]?.answer = nil
        if entry.name.kind == .encrypted, answer.sharedSecret == nil {
            log("\(entry.name.text) has no shared secret: its first event requests one")
        }
        use(answer, for: id, now)
    }

    mutating func sendSubscription(
        _ id: ChannelID, _ answer: PusherAuthorizationAnswer?, _ now: Instant
    ) {
        guard let name = channels[id]?.name else { return }
        if let answer { noteAuthorization(answer.auth) }
        channels[id]?.sentAt = now
        channels[id]?.fence = fences.next
        unanswered.add(name.text, now)
        set(id, .sent)
        send(PusherMessage.subscribe(name.text, answer))
    }

    mutating func set(_ id: ChannelID, _ state: PusherChannelState) {
        guard channels[id]?.state != state else { return }
        channels[id]?.state = state
        report(id, .state(state))
    }

    /// - Parameter event: what the server sent; nil if the failure has another cause.
    mutating func fail(
        _ id: ChannelID, _ failure: PusherSubscriptionFailure, event: PusherEvent? = nil
    ) {
        guard let entry = channels[id], !entry.isCancelled else { return }
        cancelKeyRequest(entry)
        loseHeldEvents(id)
        channels[id]?.request = nil
        channels[id]?.waitsForUser = false
        channels[id]?.encryption = PusherEncryption()
        set(id, .failed)
        let event =
            event ?? PusherEvent(failure, named: "pusher:subscription_error", channel: entry.name)
        report(.event(event, id))
        report(id, .failed(failure))
    }

    /// The connection has ended.
    mutating func releaseChannels() {
        for id in channels.ordered {
            guard let entry = channels[id] else { continue }
            if entry.isCancelled {
                // An answer that its successor was given is for the socket that has ended.
                if let next = entry.successor { channels[next]?.answer = nil }
                _ = channels.remove(id)
                continue
            }
            if entry.state == .idle { continue }
            loseHeldEvents(id)
            channels[id]?.request = nil
            // An answer that was not used yet was for the socket that has ended.
            channels[id]?.answer = nil
            channels[id]?.waitsForUser = false
            channels[id]?.ownID = nil
            channels[id]?.fence = 0
            channels[id]?.encryption = PusherEncryption()
            set(id, .idle)
            if entry.name.kind == .presence { clearMembers(id) }
        }
    }

    // MARK: What the server answers

    /// The server has refused a subscription that was sent.
    /// - Parameter event: what it sent; nil if the failure has another cause.
    mutating func refuse(
        _ id: ChannelID, _ failure: PusherSubscriptionFailure, event: PusherEvent? = nil,
        _ now: Instant
    ) {
        guard let entry = channels[id] else { return }
        if entry.isCancelled { end(id, now) } else { fail(id, failure, event: event) }
    }

    mutating func subscriptionSucceeded(_ envelope: PusherEnvelope, _ now: Instant) {
        guard let channel = envelope.channel else { return }
        guard let route = channels[channel] else {
            // The subscription was undone before the server knew of it.
            let name = String(decoding: channel, as: UTF8.self)
            user.awaited[name] = nil
            let longest = configuration.maxChannelNameLength
            guard PusherChannelName.isPossible(name, maximumLength: longest) else {
                return log("a subscription succeeded for a name that no channel can have")
            }
            return send(PusherMessage.unsubscribe(name))
        }
        guard route.id != 0 else {
            user.awaited[channel] = nil
            user.isSubscribed = true
            return
        }
        guard let entry = channels[route.id] else { return }
        guard !entry.isCancelled else {
            send(PusherMessage.unsubscribe(entry.name.text))
            end(route.id, now)
            return judgeRefusals(now)
        }
        guard entry.fence > 0 else {
            // The subscription of an earlier registration, which had failed.
            return send(PusherMessage.unsubscribe(entry.name.text))
        }
        // An error that named no channel may have failed a subscription that succeeds now. The
        // authorization of another attempt is then not needed.
        if let request = entry.request { forget(route.id, in: request) }
        channels[route.id]?.answer = nil
        channels[route.id]?.waitsForUser = false
        set(route.id, .subscribed)
        if entry.name.kind == .presence { replaceMembers(route.id, envelope.data) }
        report(.event(PusherEvent(envelope, named: "pusher:subscription_succeeded"), route.id))
        report(route.id, .subscribed)
        sendClientEvents(route.id, now)
        judgeRefusals(now)
    }

    mutating func subscriptionError(_ envelope: PusherEnvelope, _ now: Instant) {
        let event = PusherEvent(envelope, named: "pusher:subscription_error").withoutSignatures
        guard let channel = envelope.channel else { return report(.event(event, nil)) }
        user.awaited[channel] = nil
        guard let route = channels[channel], let entry = channels[route.id] else { return }
        guard entry.state == .sent else { return report(.event(event, route.id)) }
        let answer = PusherSubscriptionError(envelope.data)
        let status = answer.status.map { " (status \($0))" } ?? ""
        refuse(
            route.id,
            refusal(
                of: entry.name.text, (answer.error ?? "no reason given") + status,
                body: event.dataBytes, status: answer.status),
            event: event, now)
        judgeRefusals(now)
    }

    mutating func subscriptionCount(_ envelope: PusherEnvelope) {
        guard let channel = envelope.channel, let route = channels[channel], route.id != 0 else {
            return
        }
        guard let count = PusherSubscriptionCount.read(envelope.data) else {
            return log("a subscription_count without a count")
        }
        report(route.id, .count(count))
        report(.event(PusherEvent(envelope, named: "pusher:subscription_count"), route.id))
    }
}

extension PusherEvent {
    /// An event of the server under the name that applications know.
    init(_ envelope: PusherEnvelope, named name: String) {
        self.init(envelope)
        event = Array(name.utf8)
        guard dataKind == .none else { return }
        dataKind = .text
        dataBytes = Array("{}".utf8)
    }

    /// An event about a failure, in the form that pusher-js gives it.
    init(
        _ failure: PusherSubscriptionFailure, named name: String, channel: PusherChannelName? = nil
    ) {
        var object = JSONObject()
        object["type"] = .string("AuthError")
        object["error"] = .string(failure.error.message)
        object["status"] = failure.status.map { .integer(Int64($0)) }
        object["body"] = failure.body.map { .string(String(decoding: $0, as: UTF8.self)) }
        var bytes: [UInt8] = []
        // Only text and a whole number, which can always be written.
        try? JSONValue.object(object).write(to: &bytes)
        self.init(name, channel: channel?.text, .json, bytes)
    }
}
