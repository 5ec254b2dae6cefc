internal import Engine
internal import Session
internal import Wire

extension Spreadbot {
    /// The transport of a connection.
    public enum Transport: String, Sendable, CaseIterable {
        case webSocket
        /// Server-Sent Events.
        case sse
        /// Long polls.
        case poll

        init(_ transport: SpreadbotTransport) {
            self =
                switch transport {
                case .webSocket: .webSocket
                case .sse: .sse
                case .poll: .poll
                }
        }

        var session: SpreadbotTransport {
            switch self {
            case .webSocket: .webSocket
            case .sse: .sse
            case .poll: .poll
            }
        }
    }

    /// The options of a connection. The defaults suit most programs.
    public struct Configuration: Sendable {
        /// The URL to which paths are appended, `http://` or `https://` without a query.
        public var baseURL: String {
            get { hiddenBaseURL.value ?? "" }
            set { hiddenBaseURL.value = newValue }
        }
        private var hiddenBaseURL: HiddenURL
        /// The URL at which a refused access token is refreshed (RFC 6749 §6); nil if a refusal is
        /// fatal. A refresh may take up to 30 s. If its request is lost or not answered in time,
        /// the same refresh token is used again.
        public var authURL: String? {
            get { hiddenAuthURL.value }
            set { hiddenAuthURL.value = newValue }
        }
        private var hiddenAuthURL = HiddenURL(nil)
        /// Sent as `Authorization: Bearer`; "" sends none.
        public var accessToken: String {
            get { hiddenAccessToken.value }
            set { hiddenAccessToken.value = newValue }
        }
        private var hiddenAccessToken = Hidden<String>("")
        public var refreshToken: String {
            get { hiddenRefreshToken.value }
            set { hiddenRefreshToken.value = newValue }
        }
        private var hiddenRefreshToken = Hidden<String>("")
        /// base64 of "client:secret", for `authURL`.
        public var base64Credentials: String {
            get { hiddenBase64Credentials.value }
            set { hiddenBase64Credentials.value = newValue }
        }
        private var hiddenBase64Credentials = Hidden<String>("")
        /// Writes the library's log to standard error, up to `.info`. It replaces another log
        /// (`Log.send`) of the process.
        public var log = false

        /// The transports to try, in order.
        public var transports = Transport.allCases
        /// Absolute URLs of transports, instead of base URL and path; `http`, `https`, `ws` or
        /// `wss` for every transport.
        public var transportURLs: [Transport: String] {
            get { hiddenTransportURLs.value }
            set { hiddenTransportURLs.value = newValue }
        }
        private var hiddenTransportURLs = Hidden<[Transport: String]>([:])
        /// The URL to which sends are posted while there is no WebSocket; nil for base URL and
        /// path.
        public var sendURL: String? {
            get { hiddenSendURL.value }
            set { hiddenSendURL.value = newValue }
        }
        private var hiddenSendURL = HiddenURL(nil)
        /// Starts after the message with this id.
        public var lastEventID = ""

        /// A file that keeps sends until the server has them, even after the process has ended.
        /// When a send returns, it is on the disk. After a crash the next connection with this
        /// outbox sends it, messages once it is established. A send may arrive twice after a crash
        /// or a lost connection. The file holds 10,000 sends and 64 MiB. nil queues sends in
        /// memory.
        public var outbox: String?
        /// How many messages may wait for the iteration or the executor.
        public var maxBufferedMessages = 1024
        /// How many bytes may wait for them.
        public var maxBufferedBytes = 8 << 20
        /// Where handlers run.
        public var executor = HandlerExecutor.main

        // abigen: the options of SpreadbotConfiguration
        /// A query parameter that carries the access token, in addition to the header
        /// Authorization, for servers and proxies that ignore the header.
        public var tokenQueryParameter: String?
        /// A query parameter that carries the last event id, in addition to the header
        /// Last-Event-ID, for servers and proxies that ignore the header.
        public var idQueryParameter: String?
        /// Sent with every request and handshake. Authorization, Accept and Last-Event-ID are set
        /// by the connection and refused.
        public var headers: [(name: String, value: String)] {
            get { hiddenHeaders.value }
            set { hiddenHeaders.value = newValue }
        }
        private var hiddenHeaders = Hidden<[(name: String, value: String)]>([])
        /// The settings for connections: TLS, proxies, addresses, sockets.
        public var network = Network()
        /// The reachability monitor. While the server cannot be reached, no attempt is made, not
        /// even the first, unless a failed one would not be repeated; none is counted, and the wait
        /// is reported once, without a delay. Once the network returns, the attempt follows within
        /// a second. It must belong to the same loop. nil means `.auto`, shared by all objects on
        /// the loop.
        public var reachability: Reachability?
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
        /// Whether compressed responses are requested and decoded: gzip, deflate, and, if
        /// libbrotlidec and libzstd are installed, br and zstd. A response that cannot be decoded
        /// is a `.protocolViolation`. What is not a known coding, such as "utf-8", is ignored, and
        /// the body passed on as it came.
        public var compression = true
        /// Whether HTTP/2 is offered in the TLS handshake. It is never used through a proxy.
        public var http2 = true
        /// The time limit for opening a connection: name resolution, TCP and TLS. nil means no
        /// limit.
        public var connectTimeout: Duration? = .seconds(10)
        /// How many attempts in a row may follow a failure on one transport before the next
        /// transport is tried. A message, or a connection that lasts (`stableTime`), resets the
        /// count.
        public var maxReconnects = 3
        /// How often in a row all transports may fail before the connection ends with
        /// `.reconnectsExhausted`. Each further round begins with the first transport, after a
        /// delay that starts at 0.5 to 1 s and doubles up to `maxDelay`; the error callback
        /// receives the same error, not fatal, with the delay. A message, a connection that lasts,
        /// or the return of the network resets the count. A server that refuses the client (403,
        /// 404, close codes 1008, 3003 and 4403, tokens that cannot be refreshed) ends the
        /// connection in any round. 0 means no limit.
        public var maxRounds = 1
        /// The longest delay between attempts on one transport, and between rounds over all
        /// transports. These delays start at 0.5 to 1 s and double.
        public var maxDelay = Duration.seconds(30)
        /// How long a connection without a message must last before the failure count is reset.
        public var stableTime = Duration.seconds(10)
        /// The time before the WebSocket is tried again while another transport is in use. It
        /// doubles with each failed try, up to `maxUpgradeInterval`; a change of the network causes
        /// a try at once. nil means never.
        public var upgradeInterval: Duration? = .seconds(300)
        /// The longest time between two tries of the WebSocket.
        public var maxUpgradeInterval = Duration.seconds(3600)
        /// The time limit from a ready connection to the head of the response, for WebSocket and
        /// server-sent events. A transport that exceeds it is replaced by the next one. nil means
        /// no limit.
        public var answerTimeout: Duration? = .seconds(5)
        /// The time between the pings that keep a WebSocket alive, and how long the server may send
        /// nothing after a ping before the connection is lost. nil means no pings.
        public var pingInterval: Duration? = .seconds(20)
        /// The minimum time between the starts of two polls if the server responds at once with
        /// nothing new.
        public var pollInterval = Duration.seconds(15)
        /// How long the server may hold a poll before the next one starts. nil means no limit.
        public var pollTimeout: Duration? = .seconds(60)
        /// How many sends may wait for a connection; further ones end with `.queueFull`. Frames
        /// that a WebSocket has accepted do not count.
        public var queueCapacity = 100
        /// Which send ends with `.queueFull` when the queue is full: the new one, or the one that
        /// has waited longest.
        public var queueOverflow = REST.Overflow.rejectNew
        /// The largest message received, after decompression. A frame or a JSON batch may always
        /// have 16 MiB. A transport on which a larger one arrives is replaced by the next one. 0
        /// means no limit.
        public var maxMessageBytes = 64 << 20
        /// The delays between attempts on one transport, and between rounds, instead of `maxDelay`.
        /// The backoff's limit of attempts and stable time are not used; `maxReconnects`,
        /// `maxRounds` and `stableTime` are.
        public var backoff: Backoff?
        // abigen: end

        public init(baseURL: String) { hiddenBaseURL = HiddenURL(baseURL) }

        func connection(on loop: Loop) throws(RealtimeError) -> SpreadbotConnection {
            let connection = try SpreadbotConnection(base: baseURL, on: loop.engine)
            try connection.configure { (target) throws(RealtimeError) in
                try apply(to: &target)
            }
            try connection.setReachability(reachability?.engine)
            if let outbox { try connection.setOutbox(outbox) }
            if log { writeLog() }
            return connection
        }

        private func writeLog() {
            Log.send(upTo: .info) { level, line in
                StandardError.write("librealtime: \(level): \(line)\n")
            }
        }

        private func apply(to target: inout SpreadbotConfiguration) throws(RealtimeError) {
            if let authURL { try target.setAuthURL(authURL) }
            try target.setBasicCredentials(base64Credentials)
            try target.setTokens(access: accessToken, refresh: refreshToken)
            try target.setTransports(transports.map(\.session))
            for (transport, url) in transportURLs {
                try target.setURL(of: transport.session, url)
            }
            if let sendURL { try target.setSendURL(sendURL) }
            try target.setLastEventID(lastEventID)
            try applyPlain(to: &target)
            _ = try OptionCheck.atLeast(1, maxBufferedMessages, "maxBufferedMessages")
            _ = try OptionCheck.atLeast(1, maxBufferedBytes, "maxBufferedBytes")
        }
    }
}
