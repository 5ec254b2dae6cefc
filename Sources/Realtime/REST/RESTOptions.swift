internal import Engine
internal import Session
internal import Wire

extension REST {
    /// Which requests are sent one at a time, in the order of submission.
    public enum Order: Sendable {
        /// All but GET and HEAD.
        case automatic
        case always
        case never
    }

    /// Which request fails with `.queueFull` when the queue is full.
    public enum Overflow: Sendable {
        /// The new one.
        case rejectNew
        /// The one that has waited longest.
        case dropOldest
    }

    /// The options of a client, which apply to all its requests. The defaults are those of
    /// `rt_rest_set_*` in C. A time limit of nil means no limit.
    public struct Options: Sendable {
        /// The first bearer token (RFC 6750).
        public var bearerToken: String? {
            get { hiddenBearerToken.value }
            set { hiddenBearerToken.value = newValue }
        }
        private var hiddenBearerToken = Hidden<String?>(nil)
        /// Fetches a fresh bearer token after the server refused the credentials with 401; nil if
        /// there is none. It is called once, however many requests wait. A request by the same
        /// client may fetch the token. Give that request its own Authorization header, because if
        /// it is refused, it too waits until its deadline. Set its `order` to `.never`, because
        /// otherwise it waits for a refused ordered request.
        public var freshToken: (@Sendable () async throws -> String?)?

        /// Where the callback of `send(_:done:)` runs, and `onProgress` and `onRetry` of requests:
        /// on the main actor by default. One that is isolated to an actor, for example in
        /// main-actor code, runs on that actor, whatever the executor. With `.loop` it runs on the
        /// loop's thread, and must not block. `freshToken` runs on the actor to which it is
        /// isolated, otherwise on the task executor or queue named here, or else where Swift runs
        /// asynchronous functions.
        public var executor = HandlerExecutor.main

        /// The delays between attempts; its `maxAttempts` and `stableTime` are not used.
        public var backoff = Backoff()

        // abigen: the options of RESTConfiguration
        /// Sent with every request that does not set a header of the same name. They are not sent
        /// to origins other than the base URL's, not even after a redirect; see `credentialOrigins`
        /// and `safeHeaders`.
        public var headers: [(name: String, value: String)] {
            get { hiddenHeaders.value }
            set { hiddenHeaders.value = newValue }
        }
        private var hiddenHeaders = Hidden<[(name: String, value: String)]>([])
        /// The time limit of one attempt, from name resolution to the last byte of its response,
        /// including redirects. While the request's body is sent, and while the response is
        /// streamed to the caller, it limits the time without a byte instead: each byte restarts
        /// it. It does not run while the caller pauses the response or has no more of the body yet,
        /// nor before the attempt begins: for example while the request waits for a network. If a
        /// request's own limit is longer than the client's deadline, it is also the request's
        /// deadline. nil means no limit.
        public var attemptTimeout: Duration? = .seconds(5)
        /// The time limit for opening a connection: name resolution, TCP and TLS. Without it only
        /// `attemptTimeout` applies. nil means no limit.
        public var connectTimeout: Duration?
        /// How many attempts a request has in all; 1 means no retries.
        public var attempts = 3
        /// The time limit of a request with all its attempts and delays. If the program sets it, it
        /// also counts while there is no network; the default does not, so that requests wait for
        /// the network. No attempt or delay begins that would exceed the deadline: the last result
        /// is reported instead. A streamed response that has begun may take longer, unless the
        /// request has its own deadline. nil means no limit.
        public var deadline: Duration? = .seconds(30)
        /// The longest Retry-After that is obeyed. A response that asks for a longer one is
        /// reported at once.
        public var maxRetryAfter = Duration.seconds(60)
        /// How long a request may wait before it begins, with or without a network. After that it
        /// ends with `.expired`. nil means no limit.
        public var queueTime: Duration?
        /// Which requests are sent one at a time, each after the terminal callback of the one
        /// before: all but GET and HEAD, all or none.
        public var order = REST.Order.automatic
        /// Whether each request that is unsafe to repeat (POST, PATCH) gets an Idempotency-Key: a
        /// random UUID, the same in all its attempts, which makes it safe to retry. For servers
        /// that support this header.
        public var idempotencyKeys = false
        /// Whether any request is retried after a lost connection, a timeout or a temporary status
        /// (425, 500, 502, 504, 520 to 524, 530), even if the server has already acted on it.
        public var retryUnsafe = false
        /// How many redirects are followed (301, 302, 303, 307 and 308). With 0 a redirect is
        /// reported like any other response. A redirect to another origin carries only these
        /// headers: Accept, Accept-Encoding, Accept-Language, Cache-Control, Content-Type,
        /// Last-Event-ID, User-Agent, and those set as safe.
        public var maxRedirects = 20
        /// Whether a redirect may lead from https to http, or from wss to ws.
        public var allowInsecureRedirects = false
        /// Names of headers that are also sent when a redirect leads to another origin.
        public var safeHeaders: [String] = []
        /// Origins that a redirect may lead to as if they were the URL's own: scheme, host and
        /// port, such as "https://files.example.org", or "*" for all. They receive everything: all
        /// headers, credentials, bodies and messages. A redirect to any other origin fails with
        /// `.redirect` if a body would be sent there, or the messages of a WebSocket, unless it is
        /// the same host by TLS.
        public var redirectOrigins: [String] = []
        /// The largest response that is kept whole, after decompression. A larger one is a
        /// `.tooLarge`. Streamed responses have no such limit. 0 means no limit.
        public var maxBodyBytes = 64 << 20
        /// The settings for connections: TLS, proxies, addresses, sockets.
        public var network = Network()
        /// The reachability monitor. While the server cannot be reached, no attempt is made, not
        /// even the first, unless a failed one would not be repeated; none is counted, and the wait
        /// is reported once, without a delay. Once the network returns, the attempt follows within
        /// a second. It must belong to the same loop. nil means `.auto`, shared by all objects on
        /// the loop.
        public var reachability: Reachability?
        /// How many requests may wait for the network or for an earlier ordered request; further
        /// ones end with `.queueFull`. Requests that wait for a connection to their host do not
        /// count. In all, a client may have at most 65,536 unfinished requests.
        public var queueCapacity = 100
        /// Which request fails when the queue is full: the new one, or the one that has waited
        /// longest.
        public var queueOverflow = REST.Overflow.rejectNew
        /// How many connections to one origin are used at a time. Over HTTP/1.1 this is the number
        /// of requests in progress; others wait. Over HTTP/2, requests share a connection: up to
        /// 100 are in progress, or this number if it is larger. The server limits how many of them
        /// one connection may carry (SETTINGS_MAX_CONCURRENT_STREAMS).
        public var maxPerHost = 6
        /// Origins that receive the client's credential (basic, bearer token, Authorization) and
        /// headers, in addition to the base URL's, which always does: scheme, host and port, such
        /// as "https://files.example.org", or "*" for all. Requests may have any absolute URL, but
        /// other origins receive only harmless headers: Accept, Accept-Encoding, Accept-Language,
        /// Cache-Control, Content-Type, Last-Event-ID, User-Agent and those of `safeHeaders`.
        /// Headers set on the request itself are always sent. A client without a base URL and
        /// without such an origin sends everything to every URL. Redirects do not count here, see
        /// `redirectOrigins`.
        public var credentialOrigins: [String] = []
        /// Whether compressed responses are requested and decoded: gzip, deflate, and, if
        /// libbrotlidec and libzstd are installed, br and zstd. A response that cannot be decoded
        /// is a `.protocolViolation`. What is not a known coding, such as "utf-8", is ignored, and
        /// the body passed on as it came.
        public var compression = true
        /// Whether HTTP/2 is offered in the TLS handshake. It is never used through a proxy.
        public var http2 = true
        // abigen: end

        public init() {}

        func apply(to client: RESTClient) throws {
            try client.configure { (target) throws(RealtimeError) in try apply(to: &target) }
            if let bearerToken {
                try client.setCredential(HeaderField.bearerAuthorization(bearerToken))
            }
            if let reachability { try client.setReachability(reachability.engine) }
            guard let freshToken else { return }
            try client.setCredentialsHandler { [executor, weak client] _ in
                executor.perform { [weak client] in
                    do {
                        let token = try await freshToken()
                        guard let client else { return }
                        if let token {
                            try client.setCredential(HeaderField.bearerAuthorization(token))
                        }
                        try client.credentialsAreReady(token != nil)
                    } catch {
                        // Fails once the client is closed; nobody waits for the credentials then.
                        try? client?.credentialsAreReady(false, because: .noCredentials(error))
                    }
                }
                return .later
            }
        }

        private func apply(to target: inout RESTConfiguration) throws(RealtimeError) {
            try applyPlain(to: &target)
            target.backoff = try backoff.configuration()
        }
    }
}
