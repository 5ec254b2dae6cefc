internal import Engine
internal import Session
internal import Wire

extension REST {
    /// What holds for all requests of a client, with the defaults of the C ABI's `rt_rest_set_*`. A
    /// time limit of nil means no limit.
    public struct Options: Sendable {
        /// Which requests are sent one after the other, in the order of submission.
        public enum Order: Sendable {
            /// All but GET and HEAD.
            case automatic
            case always
            case never
        }

        /// Sent with every request that has none of the name itself, to the base URL's origin and
        /// those of `credentialOrigins`.
        public var headers: [(name: String, value: String)] = []
        /// A token to begin with (RFC 6750).
        public var bearerToken: String?
        /// Asked once for a fresh bearer token when the credentials were refused with 401, however
        /// many requests wait; nil when there is none. A request by the same client may fetch it,
        /// best with an Authorization of its own, and with `isOrdered` false: it would wait behind
        /// an ordered one that was refused. Refused itself, it waits as the others do, until its
        /// deadline.
        public var freshToken: (@Sendable () async throws -> String?)?
        /// Origins beside the base URL's that receive the client's own credential and headers, such
        /// as "https://files.example.org"; "*" for all. Other origins receive only headers that
        /// reveal nothing (`safeHeaders`) and those of the request itself. Without a base URL and
        /// without any of these, all origins receive them.
        public var credentialOrigins: [String] = []
        public var network = Network()
        /// Who says whether there is a network; nil is the loop's, by the kernel's word.
        public var reachability: Reachability?

        /// For one attempt, from name resolution to the last byte. While a body is sent, or an
        /// answer is streamed, it limits the time without a byte instead.
        public var attemptTimeout: Duration? = .seconds(5)
        /// To a connection that is ready.
        public var connectTimeout: Duration?
        /// For all attempts and delays together; time without a network does not count. A streamed
        /// answer that has begun may take longer, unless its request has a deadline of its own.
        public var deadline: Duration? = .seconds(30)
        /// In all, the first one too.
        public var attempts = 3
        /// The delays between attempts; its `maxAttempts` and `stableTime` are not used.
        public var backoff = Backoff()
        /// The longest Retry-After that is waited for.
        public var maxRetryAfter = Duration.seconds(60)
        /// How many requests may wait for the network, or behind an ordered one.
        public var queueCapacity = 100
        /// A full queue drops the request that has waited longest, and not the new one.
        public var dropsOldest = false
        /// How long a request may wait to begin.
        public var queueTime: Duration?
        public var order = Order.automatic
        /// Gives each POST and PATCH an Idempotency-Key, the same in all attempts.
        public var addsIdempotencyKeys = false
        /// Repeats any request after a connection that broke.
        public var retriesUnsafe = false

        public var maxRedirects = 20
        /// Whether a redirect may lead from https to http.
        public var allowInsecureRedirects = false
        /// Names of headers that another origin may see, too.
        public var safeHeaders: [String] = []
        /// Bytes of an answer that is kept whole; 0 means no limit.
        public var maxBodyBytes = 64 << 20
        /// Connections to one origin at a time. Over HTTP/2 exchanges share them: up to 100 are
        /// under way.
        public var maxPerHost = 6
        /// Offers content codings (gzip, deflate, and br and zstd where their libraries are
        /// installed), and decodes answers.
        public var compression = true
        /// Offers HTTP/2 over TLS; never through a proxy.
        public var http2 = true

        public init() {}

        func apply(to client: RESTClient) throws {
            try client.configure { try apply(to: &$0) }
            if let bearerToken {
                try client.setCredential(HeaderField.bearerAuthorization(bearerToken))
            }
            if let reachability { try client.setReachability(reachability.engine) }
            guard let freshToken else { return }
            try client.setCredentialsHandler { [weak client] in
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

        private func apply(to target: inout RESTConfiguration) throws {
            for header in headers { try target.addHeader(header.name, header.value) }
            for origin in credentialOrigins { try target.addCredentialOrigin(origin) }
            target.network = try network.configuration()
            target.policy.attemptTimeout = try Options.limit(attemptTimeout, "attemptTimeout")
            target.policy.connectTimeout = try Options.limit(connectTimeout, "connectTimeout")
            target.policy.deadline = try Options.limit(deadline, "deadline")
            target.policy.queueTime = try Options.limit(queueTime, "queueTime")
            try target.policy.setAttempts(attempts)
            target.policy.backoff = try backoff.configuration()
            target.policy.backoff.attemptLimit = 0
            target.policy.retryAfterLimit = maxRetryAfter
            target.queueCapacity = try Options.within(
                0...Int.max, queueCapacity, "queueCapacity")
            target.overflow = dropsOldest ? .dropOldest : .rejectNew
            target.policy.isOrdered =
                switch order {
                case .automatic: nil
                case .always: true
                case .never: false
                }
            target.policy.addsIdempotencyKey = addsIdempotencyKeys
            target.policy.retriesUnsafe = retriesUnsafe
            target.policy.redirects.maximum = try Options.within(
                0...20, maxRedirects, "maxRedirects")
            target.policy.redirects.allowsInsecure = allowInsecureRedirects
            for name in safeHeaders { try HeaderField.validate(name: name, value: "") }
            target.policy.redirects.safeNames = safeHeaders
            target.policy.bodyLimit = try Options.within(0...Int.max, maxBodyBytes, "maxBodyBytes")
            try target.setPerHost(maxPerHost)
            target.decodes = compression
            target.offersHTTP2 = http2
        }

        private static func limit(_ value: Duration?, _ name: String) throws -> Duration {
            try WebSocket.Options.limit(value, name)
        }

        static func within(_ range: ClosedRange<Int>, _ value: Int, _ name: String) throws -> Int {
            guard range.contains(value) else {
                throw RealtimeError(
                    .invalidArgument,
                    "\(name) is \(value), \(range.lowerBound) to \(range.upperBound) is expected")
            }
            return value
        }
    }
}
