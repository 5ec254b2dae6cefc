package import Wire

// What the messages of the server mean.
extension PusherSession {
    /// A message on a socket. An event for the application is left to the driver, which delivers it
    /// without a copy; everything else becomes actions.
    package mutating func received(
        _ envelope: PusherEnvelope, on number: UInt64, now: Instant
    ) -> PusherReception {
        switch stage {
        case .connected(number): break
        case .connecting(number):
            greeted(envelope, number, now)
            return .handled
        default: return .handled
        }
        keepAlive.heard(now)
        let name = PusherEventName(envelope.event)
        switch name {
        case .application, .cacheMiss, .otherProtocol: return event(envelope, name, now)
        case .connectionEstablished: log("the server confirmed the connection twice")
        case .error: errorReceived(envelope, now)
        case .ping: send(PusherMessage.pong)
        case .pong: pongReceived(now)
        case .subscriptionSucceeded: subscriptionSucceeded(envelope, now)
        case .subscriptionError: subscriptionError(envelope, now)
        case .subscriptionCount: subscriptionCount(envelope)
        case .memberAdded: memberAdded(envelope)
        case .memberRemoved: memberRemoved(envelope)
        case .signInSuccess: signInSucceeded(envelope, now)
        case .watchlistEvents: watchlistChanged(envelope)
        case .otherInternal:
            log("unknown internal event \(String(decoding: envelope.event, as: UTF8.self))")
        }
        return .handled
    }

    /// A text that is not a message: it is only logged.
    package mutating func receivedMalformed(_ error: RealtimeError, on number: UInt64, now: Instant)
    {
        activity(number, now: now)
        if isCurrent(number) { log(error.message) }
    }

    /// A message before the connection is confirmed.
    private mutating func greeted(
        _ envelope: PusherEnvelope, _ number: UInt64, _ now: Instant
    ) {
        switch PusherEventName(envelope.event) {
        case .connectionEstablished: established(number, envelope, now)
        case .error:
            let message = PusherErrorMessage(envelope)
            report(message, envelope, now, isAboutConnection: true)
            // Some servers leave the socket open.
            guard let code = message.code, PusherClosing.codesOfErrors.contains(code) else {
                return
            }
            act(.drop(number))
            lose(code: code, reason: message.message, now: now)
        default: log("a message before the connection is confirmed")
        }
    }

    /// An event of a channel, or of the connection.
    private mutating func event(
        _ envelope: PusherEnvelope, _ name: PusherEventName, _ now: Instant
    ) -> PusherReception {
        guard let channel = envelope.channel else {
            if let event = PusherWatchlistEvent(bare: envelope) {
                report(.watchlist(event))
                return .handled
            }
            return deliver(envelope, name, nil, nil)
        }
        guard let route = channels[channel], !route.isCancelled else {
            log("an event of a channel that is not registered")
            return .handled
        }
        if route.id == 0 {
            if name == .application { report(.userEvent(PusherEvent(envelope))) }
            return .handled
        }
        if route.isEncrypted, name.isEncrypted {
            receivedEncrypted(envelope, route.id, now)
            return .handled
        }
        return deliver(envelope, name, route.id, route.registration)
    }

    /// Leaves an event to the driver, unless it waits for earlier actions, or may quote what was
    /// sent.
    private mutating func deliver(
        _ envelope: PusherEnvelope, _ name: PusherEventName, _ id: ChannelID?,
        _ registration: (any PusherRegistration)?
    ) -> PusherReception {
        let mayQuote = name == .otherProtocol && PusherEvent.isAboutFailure(envelope.event)
        guard hasActions || mayQuote else { return .deliver(id, registration) }
        report(.event(PusherEvent(envelope), id))
        return .handled
    }

    private mutating func watchlistChanged(_ envelope: PusherEnvelope) {
        do throws(RealtimeError) {
            for event in try PusherWatchlistEvent.all(envelope.data) { report(.watchlist(event)) }
        } catch {
            log(error.message)
        }
    }

    // MARK: Errors

    /// - Parameter isAboutConnection: it cannot answer a subscription or a sign-in, so it may
    ///   explain the end of the connection even without a code.
    private mutating func report(
        _ message: PusherErrorMessage, _ envelope: PusherEnvelope, _ now: Instant,
        isAboutConnection: Bool
    ) {
        if let code = message.code {
            if PusherClosing.codesOfErrors.contains(code) {
                lastError = (code, message.message, now)
            }
        } else if isAboutConnection, recentError(now) == nil {
            lastError = (nil, message.message, now)
        }
        if envelope.data.bytes.count <= PusherErrorMessage.longestData {
            report(.event(PusherEvent(envelope).withoutSignatures, nil))
        }
        report(.failed(message))
    }

    /// An error on a confirmed connection. It is always reported, and may also answer a
    /// subscription or a sign-in.
    private mutating func errorReceived(_ envelope: PusherEnvelope, _ now: Instant) {
        let message = PusherErrorMessage(envelope)
        let awaitsAnswer = !channels.unanswered.isEmpty || !user.sentAt.isEmpty
        report(
            message, envelope, now,
            isAboutConnection: message.channel == nil && !awaitsAnswer)
        let event = PusherEvent(envelope)
        guard let channel = message.channel else {
            return refusedWithoutChannel(message, event, now)
        }
        user.awaited[channel] = nil
        guard let id = channels[channel]?.id, channels[id]?.state == .sent else { return }
        refuse(id, refusal(of: channel, words(message), body: event.dataBytes), now)
        judgeRefusals(now)
    }
}
