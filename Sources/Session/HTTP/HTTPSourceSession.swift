package import Wire

/// Where an event source or a long poll stands; the numbers are the C ABI's.
package enum HTTPSourceState: Int32, Sendable {
    /// No answer yet, or the last attempt failed.
    case connecting = 0
    /// The server answers; it may have held a poll for its whole time.
    case open = 1
    case closed = 2
}

/// What an event source and a long poll have in common to those who drive them.
package protocol HTTPSourceSession: Sendable {
    associatedtype Configuration: HTTPSourceConfiguration

    var state: HTTPSourceState { get }
    /// When it wants to be called; nil for never.
    var wakeUp: Instant? { get }
    /// The request of the attempt that was begun, after redirects.
    var request: HTTPRequest { get }
    /// The number of the attempt that is due.
    var attempt: Int { get }
    /// Whether the attempt that is due can be made: what its handler changed may be out of reach,
    /// and then it waits for the network.
    func mayBegin() -> Bool
    /// Begins an attempt, from the first URL.
    /// - Parameter configuration: the caller may have changed it.
    mutating func beginAttempt(_ configuration: Configuration, now: Instant)
    /// - Parameter random: uniform in [0, 1).
    mutating func setOnline(_ online: Bool, now: Instant, random: Double)

    /// Whether an answer refuses, so that its body, which may say why, is read first.
    func refuses(_ head: ResponseHead) -> Bool
    /// Whether it waits for credentials.
    var isAuthorizing: Bool { get }
    /// They are in the configuration now.
    mutating func authorized(_ configuration: Configuration, now: Instant)
    /// Ends it for good.
    mutating func fail(_ error: RealtimeError, status: Int) -> HTTPSourceFailure
    /// Its user ends it.
    mutating func close()
}

extension HTTPSourceSession {
    /// The caller has no credentials to give.
    package mutating func unauthorized(_ response: HTTPResponse) -> HTTPSourceFailure {
        fail(refusal(response), status: response.status)
    }

    /// An answer that is not what was asked for.
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
}

/// An attempt that ended, as its user sees it (docs/eventsource.md, C12).
package struct HTTPSourceFailure: Sendable {
    package let error: RealtimeError
    /// The answer's, 0 without one.
    package let status: Int
    /// When the next attempt is due; nil when there is none, or it waits for the network.
    package let retryIn: Duration?
    /// The number of the next attempt since the last that was stable, from 1.
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

    /// For the log: what failed, and when the next attempt follows.
    package var line: String {
        guard !isFatal else { return error.message }
        let when = retryIn.map { $0.fromNow } ?? "when there is a network again"
        return "\(error.message); attempt \(attempt) \(when)"
    }
}
