package import Wire

/// The state of an event source or a long poll. The numbers are those of the C ABI.
package enum HTTPSourceState: Int32, Sendable {
    /// No response yet, or the last attempt failed.
    case connecting = 0
    /// The server responds. A poll that it held for the whole time counts, too.
    case open = 1
    case closed = 2
}

/// The common interface of the sessions of event sources and long polls.
package protocol HTTPSourceSession: Sendable {
    associatedtype Configuration: HTTPSourceConfiguration

    var state: HTTPSourceState { get }
    /// When `timeReached` should be called; nil for never.
    var wakeUp: Instant? { get }
    /// The request of the current attempt, after redirects.
    var request: HTTPRequest { get }
    /// The number of the attempt that is due.
    var attempt: Int { get }
    /// Whether the attempt that is due can be made. If the handler changed the URL to an
    /// unreachable host, the attempt waits for the network.
    func mayBegin() -> Bool
    /// Whether the attempt that is due waits for a network.
    var waitsForNetwork: Bool { get }
    /// See `Attempts.waitBegan`.
    mutating func waitBegan(for name: String) -> RealtimeError?
    /// Begins an attempt, with the original URL.
    /// - Parameter configuration: the caller may have changed it.
    mutating func beginAttempt(_ configuration: Configuration, now: Instant)
    /// - Parameter random: uniform in [0, 1).
    mutating func setOnline(_ online: Bool, now: Instant, random: Double)
    /// The program knows that the network is back: an attempt that waits is due now.
    /// - Returns: false if none waits.
    mutating func retryNow(_ now: Instant) -> Bool

    /// Whether a response is a refusal. Then its body is read first, which may say why.
    func refuses(_ head: ResponseHead) -> Bool
    /// Whether the session waits for the caller's credentials.
    var isAuthorizing: Bool { get }
    /// The caller has put its credentials into the configuration.
    mutating func authorized(_ configuration: Configuration, now: Instant)
    /// Ends the session for good.
    mutating func fail(_ error: RealtimeError, status: Int) -> HTTPSourceFailure
    /// The user ends the session.
    mutating func close()
}

extension HTTPSourceSession {
    /// Called if the caller has no credentials.
    package mutating func unauthorized(_ response: HTTPResponse) -> HTTPSourceFailure {
        fail(refusal(response), status: response.status)
    }

    /// The error for an unexpected response.
    func refusal(_ response: HTTPResponse) -> RealtimeError {
        let name = request.url.displayName
        let reason = response.reason.isEmpty ? "" : " " + response.reason.quoted(upTo: 60)
        let who = response.proxy.map { "the proxy \($0), asked for \(name)," } ?? name
        return RealtimeError(
            .httpStatus, "\(who) answered \(response.status)\(reason)", response: response)
    }
}

package protocol HTTPSourceConfiguration: RequestHeaders, Sendable {
    var url: HTTPURL { get set }
    var network: NetworkConfiguration { get }
    var http: HTTPOptions { get }
    /// Whose options errors name.
    var owner: OptionOwner { get }
}

/// The end of an attempt, as reported to the user (docs/eventsource.md, C12).
package struct HTTPSourceFailure: Sendable {
    package let error: RealtimeError
    /// The status of the response; 0 if there is none.
    package let status: Int
    /// The delay until the next attempt; nil if there is none, or it waits for the network.
    package let retryIn: Duration?
    /// The number of the next attempt, counted from 1 after the last stable one.
    package let attempt: Int
    package let isFatal: Bool
    /// The server cannot have seen the request.
    package var precedesRequest = false

    package init(
        error: RealtimeError, status: Int = 0, retryIn: Duration? = nil, attempt: Int = 0,
        isFatal: Bool = false
    ) {
        self.error = error
        self.status = status
        self.retryIn = retryIn
        self.attempt = attempt
        self.isFatal = isFatal
    }

    /// The same without the credentials that the server quotes.
    package func redacted(by secrets: SentSecrets) -> HTTPSourceFailure {
        var failure = HTTPSourceFailure(
            error: secrets.redacted(error), status: status, retryIn: retryIn, attempt: attempt,
            isFatal: isFatal)
        failure.precedesRequest = precedesRequest
        return failure
    }

    /// For the log: the error, and when the next attempt follows, if one does.
    package var line: String {
        guard retryIn != nil || attempt > 0, !isFatal else { return error.message }
        let when = retryIn.map { $0.fromNow } ?? "when there is a network again"
        return "\(error.message); attempt \(attempt) \(when)"
    }
}
