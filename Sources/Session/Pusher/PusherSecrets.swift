import Wire

// The credentials that a Pusher connection has sent, and the reports in which a server may quote
// them.
extension PusherSession {
    /// Adds those among the options, which may have changed.
    mutating func noteOptions() {
        secrets.add(SentSecrets(configuration.fields))
        secrets.add(configuration.network)
        secrets.add(configuration.authEndpoint)
        secrets.add(configuration.userAuthEndpoint)
        for field in configuration.authHeaders.all
        where !Redirects.isHarmless(field.name, configuration.redirects) {
            secrets.add(field)
        }
        for parameter in configuration.authParameters { secrets.add(parameter.value) }
    }

    /// Adds an authorization, without the app key before its colon.
    mutating func noteAuthorization(_ auth: String) {
        let bytes = auth.utf8
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")) else { return secrets.add(auth) }
        secrets.add(String(auth[bytes.index(after: colon)...]))
    }
}

extension PusherSession.Report {
    /// The same without the credentials that the server quotes.
    func redacted(by secrets: SentSecrets) -> PusherSession.Report {
        switch self {
        case .stateChanged(var change):
            change.closeReason = secrets.redacted(change.closeReason)
            change.error = change.error.map { secrets.redacted($0) }
            return .stateChanged(change)
        case .failed(var error):
            error.message = secrets.redacted(error.message)
            return .failed(error)
        case .event(let event, let id):
            guard PusherEvent.isAboutFailure(event.event) else { return self }
            return .event(event.redacted(by: secrets), id)
        case .channel(let id, .failed(let failure)):
            return .channel(id, .failed(failure.redacted(by: secrets)))
        case .signInFailed(let failure): return .signInFailed(failure.redacted(by: secrets))
        case .signInAnswered(let calls, let failure):
            return .signInAnswered(calls, failure?.redacted(by: secrets))
        case .log(let line): return .log(secrets.redacted(line))
        case .channel, .signedIn, .signedOut, .userEvent, .watchlist: return self
        }
    }
}

extension PusherEvent {
    private static let failures = [
        "pusher:error", "pusher:signin_error", "pusher:subscription_error",
    ]

    /// Whether an event of this name reports a failure.
    static func isAboutFailure(_ name: some Sequence<UInt8>) -> Bool {
        failures.contains { name.elementsEqual($0.utf8) }
    }
}

extension PusherSubscriptionFailure {
    fileprivate func redacted(by secrets: SentSecrets) -> PusherSubscriptionFailure {
        PusherSubscriptionFailure(
            secrets.redacted(error), body: body.map { secrets.redacted($0) }, status: status)
    }
}
