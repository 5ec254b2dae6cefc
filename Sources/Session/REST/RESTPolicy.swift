import Wire

/// How often, how soon and how long a request is tried, and what it may bring.
package struct RESTPolicy: Sendable, Equatable {
    /// How long one attempt may take, from name resolution to the last byte of its answer,
    /// redirects included. While the body of the request is sent, and while the answer is streamed
    /// to the caller, it limits the time without a byte instead: each byte starts it anew. It does
    /// not run while the caller pauses the answer, or has no more of the body yet.
    /// - Option: attempt_timeout, limit, python timeout
    package var attemptTimeout = Duration.seconds(5)
    /// Whether it is an option of the caller's, which errors name then.
    package var namesTimeout = true
    /// The time until a connection is ready: name resolution, TCP and TLS. Without it only
    /// `attempt_timeout` counts.
    /// - Option: connect_timeout, limit
    package var connectTimeout = Duration.zero
    /// How often a request is tried in all; with 1 it is never tried again.
    /// - Option: attempts, count 1...1000
    package var attempts = 3
    /// The delays between them (R1): 0.5–1 s, then 1–2 s. Its own limit of attempts is not used.
    package var backoff = BackoffConfiguration()
    /// How long a request may take with all its attempts and delays; time without a network does
    /// not count. No attempt and no delay begins that the deadline would cut off: the last result
    /// is reported instead. An answer that is streamed and has begun may take longer, unless its
    /// request has a deadline of its own.
    /// - Option: deadline, limit
    package var deadline = Duration.seconds(30)
    /// It was set for this very request: a streamed answer that flows ends by it, too.
    package private(set) var hasOwnDeadline = false
    /// The longest Retry-After that is waited for. An answer that asks for more is reported at
    /// once.
    /// - Option: max_retry_after, delay, python elsewhere
    package var retryAfterLimit = Duration.seconds(60)
    /// How long a request may wait to begin, with a network or without. Then it ends with
    /// RT_ERROR_EXPIRED.
    /// - Option: queue_ttl, limit, swift queueTime
    package var queueTime = Duration.zero
    /// One after the other, in the order of submission; nil is for all methods but GET and HEAD.
    package var isOrdered: Bool?
    /// Whether each request that may not be repeated (POST, PATCH) gets an Idempotency-Key: a
    /// random UUID, the same in all its attempts, so that it may be repeated. For servers that know
    /// this header.
    /// - Option: idempotency_keys, flag
    package var addsIdempotencyKey = false
    /// Whether any request is repeated after a connection that broke or a time that ran out, even
    /// if the server has already acted on it.
    /// - Option: retry_unsafe, flag
    package var retriesUnsafe = false
    /// Each attempt has a connection of its own: one that was kept may break unseen.
    package var usesFreshConnection = false
    /// The head of an answer says all: after a 2xx the request has ended well, whatever becomes of
    /// the body.
    package var needsHeadAlone = false
    /// - Options: Redirects.Rules
    package var redirects = Redirects.Rules()
    /// The largest answer that is kept whole, after decompression. A larger one is an
    /// RT_ERROR_TOO_LARGE. Answers that are streamed have no such limit.
    /// - Option: max_body_bytes, bytes, python max_body_size
    package var bodyLimit = 64 << 20

    package init() {}

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
