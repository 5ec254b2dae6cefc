internal import Engine
internal import Session
internal import Wire

extension REST {
    /// Which requests are sent one after the other, in the order of submission.
    public enum Order: Sendable {
        /// All but GET and HEAD.
        case automatic
        case always
        case never
    }

    /// Which request ends with `.queueFull` when the queue is full.
    public enum Overflow: Sendable {
        /// The new one.
        case rejectNew
        /// The one that has waited longest.
        case dropOldest
    }

    /// What holds for all requests of a client, with the defaults of the C ABI's `rt_rest_set_*`. A
    /// time limit of nil means no limit.
    public struct Options: Sendable {
        /// A token to begin with (RFC 6750).
        public var bearerToken: String?
        /// Asked once for a fresh bearer token when the credentials were refused with 401, however
        /// many requests wait; nil when there is none. A request by the same client may fetch it,
        /// best with an Authorization of its own, and with `order` `.never`: it would wait behind
        /// an ordered one that was refused. Refused itself, it waits as the others do, until its
        /// deadline.
        public var freshToken: (@Sendable () async throws -> String?)?

        /// The delays between attempts; its `maxAttempts` and `stableTime` are not used.
        public var backoff = Backoff()

        // abigen: the options of RESTConfiguration
        /// Sent with every request that has none of the same name itself. Requests to origins other
        /// than the base URL's go without, as do those that are redirected there; see
        /// `credentialOrigins` and `safeHeaders`.
        public var headers: [(name: String, value: String)] = []
        /// How long one attempt may take, from name resolution to the last byte of its answer,
        /// redirects included. While the body of the request is sent, and while the answer is
        /// streamed to the caller, it limits the time without a byte instead: each byte starts it
        /// anew. It does not run while the caller pauses the answer, or has no more of the body
        /// yet. One that is set for a request, and is longer than the client's deadline, is the
        /// request's deadline, too. nil is no limit.
        public var attemptTimeout: Duration? = .seconds(5)
        /// The time until a connection is ready: name resolution, TCP and TLS. Without it only
        /// `attemptTimeout` counts. nil is no limit.
        public var connectTimeout: Duration?
        /// How often a request is tried in all; with 1 it is never tried again.
        public var attempts = 3
        /// How long a request may take with all its attempts and delays; time without a network
        /// does not count. No attempt and no delay begins that the deadline would cut off: the last
        /// result is reported instead. An answer that is streamed and has begun may take longer,
        /// unless its request has a deadline of its own. nil is no limit.
        public var deadline: Duration? = .seconds(30)
        /// The longest Retry-After that is waited for. An answer that asks for more is reported at
        /// once.
        public var maxRetryAfter = Duration.seconds(60)
        /// How long a request may wait to begin, with a network or without. Then it ends with
        /// `.expired`. nil is no limit.
        public var queueTime: Duration?
        /// Which requests are sent one after the other, each after the terminal callback of the one
        /// before: all but GET and HEAD, all or none.
        public var order = REST.Order.automatic
        /// Whether each request that may not be repeated (POST, PATCH) gets an Idempotency-Key: a
        /// random UUID, the same in all its attempts, so that it may be repeated. For servers that
        /// know this header.
        public var idempotencyKeys = false
        /// Whether any request is repeated after a connection that broke or a time that ran out,
        /// even if the server has already acted on it.
        public var retryUnsafe = false
        /// How many redirects are followed (301, 302, 303, 307 and 308). With 0 a redirect is an
        /// answer like any other. On the way to another origin only these headers go along: Accept,
        /// Accept-Encoding, Accept-Language, Cache-Control, Content-Type, Last-Event-ID,
        /// User-Agent, and those that the caller named as safe.
        public var maxRedirects = 20
        /// Whether a redirect may lead from https to http, or from wss to ws.
        public var allowInsecureRedirects = false
        /// Names of headers that also go along when a redirect leads to another origin.
        public var safeHeaders: [String] = []
        /// The largest answer that is kept whole, after decompression. A larger one is a
        /// `.tooLarge`. Answers that are streamed have no such limit. 0 is no limit.
        public var maxBodyBytes = 64 << 20
        /// How connections are made: TLS, proxies, addresses, sockets.
        public var network = Network()
        /// Says whether there is a network. While there is none, no attempt is made or counted;
        /// when there is one again, the next attempt follows within a second. It belongs to the
        /// same loop. nil is `.auto`, one for all objects of the loop.
        public var reachability: Reachability?
        /// How many requests may wait for the network, or after an ordered one; further ones end
        /// with `.queueFull`. Requests that wait for a connection to their host do not count. At
        /// most 65,536 requests of a client may be under way in all.
        public var queueCapacity = 100
        /// Which request ends when the queue is full: the new one, or the one that has waited
        /// longest.
        public var queueOverflow = REST.Overflow.rejectNew
        /// How many connections to one origin are used at a time. Over HTTP/1.1 that is the number
        /// of requests under way; others wait. Over HTTP/2 requests share a connection: up to 100
        /// are under way, or this number if it is larger. The server says how many of them one
        /// connection may carry (SETTINGS_MAX_CONCURRENT_STREAMS).
        public var maxPerHost = 6
        /// Origins that receive the client's own credential (basic, bearer token, Authorization)
        /// and headers, beside the base URL's, which always does: scheme, host and port, such as
        /// "https://files.example.org", or "*" for all. A request may name any absolute URL, and
        /// other origins receive only headers that reveal nothing: Accept, Accept-Encoding,
        /// Accept-Language, Cache-Control, Content-Type, Last-Event-ID, User-Agent and those of
        /// `safeHeaders`. Headers set on the request itself always go along. A redirect never takes
        /// a credential to another origin, not even to one of these. A client without a base URL
        /// and without such an origin sends everything to each URL that it is given.
        public var credentialOrigins: [String] = []
        /// Whether compressed answers are requested, and decoded: gzip, deflate, and br and zstd
        /// where libbrotlidec and libzstd are installed. An answer that cannot be decoded is a
        /// `.protocolViolation`.
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
            try client.setCredentialsHandler { [weak client] _ in
                Task {
                    do {
                        let token = try await freshToken()
                        guard let client else { return }
                        if let token {
                            try client.setCredential(HeaderField.bearerAuthorization(token))
                        }
                        try client.credentialsAreReady(token != nil)
                    } catch {
                        // Fails once it is closed, when nobody wants to know.
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
