package import Wire

/// Which requests are sent one after the other.
package enum RESTOrder: Int32, Sendable {
    /// All but GET and HEAD.
    case automatic = 0
    case always = 1
    case never = 2
}

/// The options of a request: its attempts, delays, time limits and the size of its response.
/// - Object: rest_request, REST.Request, override,
///   without base_delay max_delay delay_factor jitter safe_headers redirect_origins,
///   python elsewhere idempotency_keys=idempotency_key max_retry_after
package struct RESTPolicy: Sendable, Equatable {
    /// The time limit of one attempt, from name resolution to the last byte of its response,
    /// including redirects. While the request's body is sent, and while the response is streamed to
    /// the caller, it limits the time without a byte instead: each byte restarts it. It does not
    /// run while the caller pauses the response or has no more of the body yet, nor before the
    /// attempt begins: for example while the request waits for a network. If a request's own limit
    /// is longer than the client's deadline, it is also the request's deadline.
    /// - Option: attempt_timeout, limit, python timeout
    package var attemptTimeout = Duration.seconds(5) {
        didSet { hasOwnTimeout = isOfRequest }
    }
    /// The object that errors name options of.
    package var owner: OptionOwner { redirects.owner }
    /// The time limit for opening a connection: name resolution, TCP and TLS. Without it only
    /// `attempt_timeout` applies.
    /// - Option: connect_timeout, limit
    package var connectTimeout = Duration.zero
    /// How many attempts a request has in all; 1 means no retries.
    /// - Option: attempts, count 1...1000
    package var attempts = 3
    /// The delays between attempts (R1): 0.5–1 s, then 1–2 s. Its limit of attempts is not used.
    /// - Options: BackoffConfiguration, only initial_delay max_delay factor jitter,
    ///   initial_delay as base_delay, factor as delay_factor, swift elsewhere
    package var backoff = BackoffConfiguration()
    /// The time limit of a request with all its attempts and delays. If the program sets it, it
    /// also counts while there is no network; the default does not, so that requests wait for the
    /// network. No attempt or delay begins that would exceed the deadline: the last result is
    /// reported instead. A streamed response that has begun may take longer, unless the request has
    /// its own deadline.
    /// - Option: deadline, limit
    package var deadline = Duration.seconds(30) {
        didSet {
            hasOwnDeadline = isOfRequest
            countsOffline = countsOffline || isOfRequest || deadline != oldValue
        }
    }
    /// The program has set the deadline, so it counts even without a network.
    package private(set) var countsOffline = false
    /// Whether options are now set for a single request.
    package var isOfRequest = false
    private var hasOwnTimeout = false
    /// The deadline was set for this request, so it applies to a streamed response, too.
    package private(set) var hasOwnDeadline = false
    /// The longest Retry-After that is obeyed. A response that asks for a longer one is reported at
    /// once.
    /// - Option: max_retry_after, delay, python elsewhere max_retry_after
    package var retryAfterLimit = Duration.seconds(60)
    /// How long a request may wait before it begins, with or without a network. After that it ends
    /// with RT_ERROR_EXPIRED.
    /// - Option: queue_ttl, limit, swift queueTime
    package var queueTime = Duration.zero
    /// Which requests are sent one at a time, each after the terminal callback of the one before:
    /// all but GET and HEAD, all or none.
    /// - Option: order, choice rt_rest_order RT_REST_ORDER REST.Order automatic=None always=True
    ///   never=False, python ordered
    package var order = RESTOrder.automatic
    /// Whether each request that is unsafe to repeat (POST, PATCH) gets an Idempotency-Key: a
    /// random UUID, the same in all its attempts, which makes it safe to retry. For servers that
    /// support this header.
    /// - Option: idempotency_keys, flag
    package var addsIdempotencyKey = false
    /// Whether any request is retried after a lost connection, a timeout or a temporary status
    /// (425, 500, 502, 504, 520 to 524, 530), even if the server has already acted on it.
    /// - Option: retry_unsafe, flag
    package var retriesUnsafe = false
    /// Each attempt uses a new connection: a kept one may have died unnoticed.
    package var usesFreshConnection = false
    /// Whether the head decides: after a 2xx the request has succeeded, whatever happens to the
    /// body.
    package var needsHeadAlone = false
    /// - Options: Redirects.Rules
    package var redirects = Redirects.Rules(of: .rest)
    /// The largest response that is kept whole, after decompression. A larger one is an
    /// RT_ERROR_TOO_LARGE. Streamed responses have no such limit.
    /// - Option: max_body_bytes, bytes, python max_body_size
    package var bodyLimit = 64 << 20

    package init() {}

    /// The latest end of a request; zero for never. The client's deadline does not shorten an
    /// attempt whose timeout was set for the request itself.
    package var latestEnd: Duration {
        guard deadline > .zero, hasOwnTimeout, !hasOwnDeadline else { return deadline }
        return attemptTimeout == .zero ? .zero : max(deadline, attemptTimeout)
    }

    func orders(_ method: String) -> Bool {
        switch order {
        case .automatic: method != "GET" && method != "HEAD"
        case .always: true
        case .never: false
        }
    }
}

/// The failures and responses after which another attempt makes sense (R3, R4).
package enum RetryRules {
    /// Whether sending it again has the same effect as sending it once (RFC 9110 §9.2.2). The last
    /// four only ask, with a body (safe in IANA's registry of HTTP methods).
    package static func isIdempotent(_ method: String) -> Bool {
        [
            "GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE", "QUERY", "PROPFIND", "REPORT",
            "SEARCH",
        ].contains(method)
    }

    static func isKeyed(_ request: HTTPRequest) -> Bool { isKeyed(request.fields) }

    static func isKeyed(_ fields: [HeaderField]) -> Bool {
        fields.contains {
            $0.name.equalsIgnoringASCIICase("Idempotency-Key") && !$0.value.isEmpty
        }
    }

    /// Whether to repeat it after an error before which the server may have seen it.
    static func repeats(_ request: HTTPRequest, _ policy: RESTPolicy) -> Bool {
        isIdempotent(request.method) || isKeyed(request) || policy.retriesUnsafe
    }

    /// Whether the server has performed the request, but its response cannot be read. A repetition
    /// would perform it once more, and probably get the same response.
    static func isDone(
        _ head: ResponseHead?, _ failure: HTTPFailure, _ request: HTTPRequest, _ policy: RESTPolicy
    ) -> Bool {
        guard let head, (200..<300).contains(head.status), !policy.retriesUnsafe else {
            return false
        }
        return failure.error.code == .protocolViolation && !isIdempotent(request.method)
    }

    /// Whether to repeat it after this status.
    static func repeats(status: Int, _ request: HTTPRequest, _ policy: RESTPolicy) -> Bool {
        switch status {
        case 408, 429, 503: true
        case _ where TemporaryStatus.all.contains(status): repeats(request, policy)
        default: false
        }
    }

    /// Whether a failure may be temporary. Others come from the caller or a limit of the library.
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
