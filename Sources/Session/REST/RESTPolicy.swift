package import Wire

/// How often, how soon and how long a request is tried, and what it may bring; the C ABI's
/// `rt_rest_set_*` and `rt_rest_request_set_*`, with the same defaults.
package struct RESTPolicy: Sendable, Equatable {
    /// From name resolution to the last byte of the answer, counted anew with each byte of the
    /// request's body, and with the head and each byte of an answer that is streamed; zero is no
    /// limit.
    package var attemptTimeout = Duration.seconds(5)
    /// Whether it is an option of the caller's, which errors name then.
    package var namesTimeout = true
    /// To a connection that is ready; zero leaves it to the attempt.
    package var connectTimeout = Duration.zero
    /// In all, the first one too.
    package private(set) var attempts = 3
    /// The delays between them (R1): 0.5–1 s, then 1–2 s. Its own limit of attempts is not used.
    package var backoff = BackoffConfiguration()
    /// For all attempts and delays together, while there is a network; zero is no limit.
    package var deadline = Duration.seconds(30)
    /// It was set for this very request: a streamed answer that flows ends by it, too.
    package private(set) var hasOwnDeadline = false
    /// The longest Retry-After that is waited for.
    package var retryAfterLimit = Duration.seconds(60)
    /// How long a request may wait to begin, with a network or without; zero is no limit.
    package var queueTime = Duration.zero
    /// One after the other, in the order of submission; nil is for all methods but GET and HEAD.
    package var isOrdered: Bool?
    /// Gives requests that may not be repeated an Idempotency-Key, so that they may.
    package var addsIdempotencyKey = false
    /// Repeats any request after an error, whatever the server has done already.
    package var retriesUnsafe = false
    /// Each attempt has a connection of its own: one that was kept may break unseen.
    package var usesFreshConnection = false
    /// The head of an answer says all: after a 2xx the request has ended well, whatever becomes of
    /// the body.
    package var needsHeadAlone = false
    package var redirects = Redirects.Rules()
    /// Bytes of an answer that is kept whole, decoded; zero is no limit.
    package var bodyLimit = 64 << 20

    package init() {}

    package mutating func setAttempts(_ count: Int) throws(RealtimeError) {
        guard (1...RESTPolicy.mostAttempts).contains(count) else {
            throw RealtimeError(
                .invalidArgument,
                "attempts are \(count), 1 to \(RESTPolicy.mostAttempts) is expected")
        }
        attempts = count
    }

    /// For one request, in the place of the client's.
    package mutating func setOwnDeadline(_ time: Duration) {
        deadline = time
        hasOwnDeadline = true
    }

    /// For one request: the client's deadline does not cut it short.
    package mutating func setOwnAttemptTimeout(_ time: Duration) {
        attemptTimeout = time
        if deadline > .zero, !hasOwnDeadline { deadline = max(deadline, time) }
    }

    /// Beyond any use; it bounds what a request costs whose delays are zero.
    private static let mostAttempts = 1000

    func orders(_ method: String) -> Bool { isOrdered ?? (method != "GET" && method != "HEAD") }
}

/// Which failures and answers are worth another attempt (R3, R4).
package enum RetryRules {
    /// Sending it again does what sending it once did (RFC 9110 §9.2.2).
    package static func isIdempotent(_ method: String) -> Bool {
        ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"].contains(method)
    }

    static func isKeyed(_ request: HTTPRequest) -> Bool {
        request.values("Idempotency-Key").contains { !$0.isEmpty }
    }

    /// After an error that the server may have seen the request before.
    static func repeats(_ request: HTTPRequest, _ policy: RESTPolicy) -> Bool {
        isIdempotent(request.method) || isKeyed(request) || policy.retriesUnsafe
    }

    /// Whether the server has done what was asked, in an answer that cannot be read: it would be
    /// done once more, and most likely be answered alike.
    static func isDone(
        _ head: ResponseHead?, _ failure: HTTPFailure, _ request: HTTPRequest, _ policy: RESTPolicy
    ) -> Bool {
        guard let head, (200..<300).contains(head.status), !policy.retriesUnsafe else {
            return false
        }
        return failure.error.code == .protocolViolation && !isIdempotent(request.method)
    }

    /// After an answer; the request is looked at only where it matters.
    static func repeats(status: Int, _ request: @autoclosure () -> HTTPRequest) -> Bool {
        switch status {
        case 408, 429, 503: true
        case 425, 500, 502, 504: isIdempotent(request().method) || isKeyed(request())
        default: false
        }
    }

    /// Whether a failure may pass; the others are the caller's own, or the library's limits.
    static func mayPass(_ failure: HTTPFailure) -> Bool {
        if failure.isFinal { return false }
        return switch failure.error.code {
        case .resolve, .connect, .tls, .proxy, .timeout, .connectionLost, .protocolViolation,
            .system:
            true
        default: false
        }
    }
}
