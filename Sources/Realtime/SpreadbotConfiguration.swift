internal import Engine
internal import Session
public import Wire

extension Spreadbot {
    /// A way that messages come.
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

    /// Where handlers run, one at a time and in order.
    public enum Executor: Sendable {
        /// On the loop's thread, without a detour.
        case loop
        case actor(any Actor)
        case task(any TaskExecutor)
    }

    /// Where and how to connect. The defaults are what most programs want.
    public struct Configuration: Sendable {
        /// What paths are appended to, `http://` or `https://` without a query.
        public var baseURL: String
        /// Where a refused access token is refreshed (RFC 6749 §6); nil when it cannot be. The
        /// answer is waited for up to 30 s; a refresh token whose request is lost, or not answered
        /// by then, is sent again.
        public var authURL: String?
        /// Sent as `Authorization: Bearer`; "" sends none.
        public var accessToken = ""
        public var refreshToken = ""
        /// base64 of "client:secret", for `authURL`.
        public var base64Credentials = ""
        /// Has the library's log written to standard error, up to `.info`; another program-wide log
        /// (`Log.send`) gives way to it.
        public var log = false

        /// Which legs are tried, in this order.
        public var transports = Transport.allCases
        /// Whole URLs in the place of base and path, of any of the schemes http, https, ws and wss.
        public var transportURLs: [Transport: String] = [:]
        /// Where sends are posted while there is no WebSocket; nil for base and path.
        public var sendURL: String?
        /// Names of query parameters for access token and last event id, beside their headers.
        public var tokenQueryParameter: String?
        public var idQueryParameter: String?
        /// Begins behind the message with this id.
        public var lastEventID = ""
        /// Of every request and handshake; not Authorization, Accept, Last-Event-ID and
        /// Expect.
        public var headers: [(name: String, value: String)] = []
        public var network = Network()
        /// Who says whether there is a network; nil asks the loop's own.
        public var reachability: Reachability?
        public var compression = true
        /// Offers HTTP/2 over TLS, to all but the WebSocket.
        public var http2 = true
        /// 0 follows none.
        public var maxRedirects = 20

        /// Attempts in a row on one leg after one that failed, before the next leg.
        public var maxReconnects = 3
        /// How often in a row all legs may fail, one round after the other; 0: no limit. Each
        /// further round begins with the first leg, after a delay that grows from 0.5–1 s up to
        /// `maxDelay`. `onError` reports it with `.reconnectsExhausted`, `isFatal` false and the
        /// delay.
        public var maxRounds = 1
        /// Of the delays between them, and between rounds, which begin at 0.5 to 1 s and double.
        public var maxDelay = Duration.seconds(30)
        /// How long a connection must hold to count as one, without a message.
        public var stableTime = Duration.seconds(10)
        /// When the WebSocket is tried again from a lower leg, doubling up to `maxUpgradeInterval`;
        /// nil for never.
        public var upgradeInterval: Duration? = .seconds(300)
        public var maxUpgradeInterval = Duration.seconds(3600)
        /// To a connection that stands; nil for no limit of its own.
        public var connectTimeout: Duration? = .seconds(10)
        /// From there to the head of the answer, by WebSocket and SSE: then the next leg.
        public var answerTimeout: Duration? = .seconds(5)
        /// Between the pings that keep a WebSocket alive; nil for none.
        public var pingInterval: Duration? = .seconds(20)
        /// Between polls that a server answers at once with nothing new.
        public var pollInterval = Duration.seconds(15)
        /// How long a poll may be held.
        public var pollTimeout: Duration? = .seconds(60)

        /// Sends that may wait for a connection.
        public var queueCapacity = 100
        /// Above it the one that has waited longest ends with `.queueFull`, in the place of the new
        /// one.
        public var dropsOldest = false
        /// A file that keeps what is sent until the server has it, over the end of the process: a
        /// call that has returned is on the disk, and is sent by the next connection with this
        /// outbox, maybe twice after a crash or a lost connection; messages once it is established.
        /// It holds 10,000 sends, and 64 MiB. nil keeps the queue in memory.
        public var outbox: String?
        /// The largest message received; 0 for no limit. A message as JSON, and a batch of them,
        /// ends its transport with `.tooLarge` above 16 MiB whatever is set.
        public var maxMessageBytes = 64 << 20
        /// Messages that may wait for who iterates, or for the executor.
        public var maxBufferedMessages = 1024
        /// Their bytes.
        public var maxBufferedBytes = 8 << 20
        public var executor = Executor.loop

        public init(baseURL: String) { self.baseURL = baseURL }

        /// From a dictionary with the names above: `baseURL`, `authURL`, `accessToken`,
        /// `refreshToken`, `base64Credentials` (strings) and `log` (a Bool).
        /// - Throws: `RealtimeError(.invalidArgument)` for a name that is none of them, a value of
        ///   another type, or no `baseURL`.
        public init(_ dictionary: [String: any Sendable]) throws(RealtimeError) {
            self.init(baseURL: "")
            for (name, value) in dictionary.sorted(by: { $0.key < $1.key }) {
                switch (name, value) {
                case ("baseURL", let text as String): baseURL = text
                case ("authURL", let text as String): authURL = text
                case ("accessToken", let text as String): accessToken = text
                case ("refreshToken", let text as String): refreshToken = text
                case ("base64Credentials", let text as String): base64Credentials = text
                case ("log", let isOn as Bool): log = isOn
                case ("log", _):
                    throw RealtimeError(.invalidArgument, "\"log\" is no Bool")
                case ("baseURL", _), ("authURL", _), ("accessToken", _), ("refreshToken", _),
                    ("base64Credentials", _):
                    throw RealtimeError(.invalidArgument, "\"\(name)\" is no String")
                default:
                    throw RealtimeError(
                        .invalidArgument,
                        "the configuration has \"\(name)\"; baseURL, authURL, accessToken,"
                            + " refreshToken, base64Credentials and log are known")
                }
            }
            guard !baseURL.isEmpty else {
                throw RealtimeError(.invalidArgument, "the configuration has no \"baseURL\"")
            }
        }

        func connection(on loop: Loop) throws -> SpreadbotConnection {
            let connection = try SpreadbotConnection(base: baseURL, on: loop.engine)
            try connection.configure { try apply(to: &$0) }
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
            target.tokenQueryParameter = tokenQueryParameter
            target.idQueryParameter = idQueryParameter
            try target.setLastEventID(lastEventID)
            for header in headers {
                try target.addHeader(name: header.name, value: header.value)
            }
            target.network = try network.configuration()
            target.compression = compression
            target.http2 = http2
            try applyLimits(to: &target)
        }

        private func applyLimits(
            to target: inout SpreadbotConfiguration
        ) throws(RealtimeError) {
            typealias Check = WebSocket.Options
            target.redirects.maximum = try Check.within(0...20, maxRedirects, "maxRedirects")
            target.maxReconnects = try Check.atLeast(0, maxReconnects, "maxReconnects")
            target.maxRounds = try Check.atLeast(0, maxRounds, "maxRounds")
            target.maxDelay = try Check.delay(maxDelay, "maxDelay")
            target.stableTime = try Check.delay(stableTime, "stableTime")
            target.upgradeInterval = try Check.limit(upgradeInterval, "upgradeInterval")
            target.maxUpgradeInterval = try Check.delay(maxUpgradeInterval, "maxUpgradeInterval")
            target.connectTimeout = try Check.limit(connectTimeout, "connectTimeout")
            target.answerTimeout = try Check.limit(answerTimeout, "answerTimeout")
            target.pingInterval = try Check.limit(pingInterval, "pingInterval")
            target.pollInterval = try Check.delay(pollInterval, "pollInterval")
            target.pollTimeout = try Check.limit(pollTimeout, "pollTimeout")
            target.queueCapacity = try Check.atLeast(0, queueCapacity, "queueCapacity")
            target.overflow = dropsOldest ? .dropOldest : .rejectNew
            target.maxMessageBytes = try Check.atLeast(0, maxMessageBytes, "maxMessageBytes")
            _ = try Check.atLeast(1, maxBufferedMessages, "maxBufferedMessages")
            _ = try Check.atLeast(1, maxBufferedBytes, "maxBufferedBytes")
        }
    }
}
