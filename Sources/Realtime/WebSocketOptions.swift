internal import Session
internal import Wire

extension WebSocket {
    /// What can be set before a WebSocket starts, with the defaults of the C ABI's
    /// `rt_websocket_set_*`. A time limit of nil means no limit.
    public struct Options: Sendable {
        /// Request headers of the handshake, added in this order.
        public var headers: [(name: String, value: String)] = []
        /// Subprotocols to offer, the preferred one first.
        public var subprotocols: [String] = []
        /// How the connection is made: TLS, proxies, addresses, the socket.
        public var network = Network()
        /// `network.caFile`: a PEM file of certificates to trust instead of the system's.
        public var caFile: String? {
            get { network.caFile }
            set { network.caFile = newValue }
        }

        /// From start to open: resolving, connecting, TLS and handshake together.
        public var openTimeout: Duration? = .seconds(10)
        /// From our close frame to the end of the connection.
        public var closeTimeout: Duration? = .seconds(10)
        /// How often a ping is sent; nil sends none.
        public var pingInterval: Duration? = .seconds(20)
        /// How long a ping may stay unanswered before the connection fails.
        public var pongTimeout: Duration? = .seconds(20)
        /// How long the peer may send no message before the connection fails; pings and pongs do
        /// not count. For feeds that are known to speak.
        public var idleTimeout: Duration?

        /// The largest message accepted, after decompression; 0 means no limit.
        public var maxMessageBytes = 64 << 20
        /// The largest handshake answer accepted.
        public var maxHeaderBytes = 64 << 10
        /// Whether messages go to `pieces` as they come, for those larger than memory should hold,
        /// and not whole to `messages`. `maxMessageBytes` does not count then.
        public var deliversPieces = false
        /// How many times its size on the wire a compressed message may grow; 0 means no limit.
        public var maxInflateRatio = 0
        /// Splits messages sent into frames of at most this payload; 0 does not.
        public var maxFrameBytes = 0
        /// `send` waits while more bytes than this are unsent.
        public var sendHighWaterBytes = 256 << 10
        /// A send that would take the unsent bytes above this throws `.bufferFull`. 0 means no
        /// limit.
        public var sendLimitBytes = 64 << 20
        /// Messages that wait for `messages` before receiving pauses.
        public var maxBufferedMessages = 256
        /// Bytes that wait for `messages` before receiving pauses.
        public var maxBufferedBytes = 1 << 20

        /// How many redirects the handshake follows; credentials are left behind on the way to
        /// another origin.
        public var maxRedirects = 5
        /// Whether a redirect may lead from wss to ws.
        public var allowInsecureRedirects = false
        /// Makes the connection again when it is lost or cannot be made; `messages` go on with the
        /// next connection. It ends after a close of ours, after the peer's close codes 1000, 1002,
        /// 1003 and 1007 to 1010, after a 4xx answer other than 408, 425 and 429, after a redirect
        /// or message that is refused, and when no attempt is left.
        public var reconnect: Backoff?
        /// Whether `reconnect` also applies after the peer closed the connection with code 1000.
        /// Some servers send that code when they restart. `close` always ends the connection.
        /// Default: false.
        public var reconnectAfterNormalClose = false
        /// Who says whether an attempt to come back makes sense: while there is no network none is
        /// made and none is counted, and when there is one again it follows within a second. It
        /// belongs to the connection's loop. Nil is `.auto`, one for all connections of a loop.
        public var reachability: Reachability?
        /// How many messages may wait while there is no connection, of `sendLimitBytes` in all;
        /// above, `send` throws `.bufferFull`. 0 refuses them.
        public var offlineQueue = 0

        /// Whether permessage-deflate is offered.
        public var compression = true
        /// zlib's level for messages sent, 1 to 9; 0 sends uncompressed.
        public var compressionLevel = 1
        /// zlib's memory level for messages sent, 1 to 9: a connection holds 256 KiB by default
        /// once it has compressed, 36 KiB with 12 window bits and level 5.
        public var compressionMemoryLevel = 8
        /// Shorter messages are sent uncompressed.
        public var compressionMinBytes = 100
        /// 9 to 15, RFC 7692 §7.1.2.2.
        public var clientMaxWindowBits = 15
        /// 8 to 15, RFC 7692 §7.1.2.1.
        public var serverMaxWindowBits = 15
        /// Compresses each message sent on its own.
        public var clientNoContextTakeover = false
        /// Asks the server to compress each of its messages on its own.
        public var serverNoContextTakeover = false

        public init() {}

        /// Sets a header in the place of all of its name.
        public mutating func setHeader(_ name: String, _ value: String) {
            headers.removeAll { $0.name.equalsIgnoringASCIICase(name) }
            headers.append((name, value))
        }

        /// A basic Authorization header (RFC 7617).
        /// - Throws: `.invalidArgument` for a user name with a colon, which would become another.
        public mutating func setBasicAuthorization(
            user: String, password: String
        ) throws(RealtimeError) {
            setHeader(
                "Authorization",
                try HeaderField.basicAuthorization(user: user, password: password))
        }

        /// An Authorization header with a bearer token (RFC 6750).
        public mutating func setBearerToken(_ token: String) {
            setHeader("Authorization", "Bearer \(token)")
        }

        /// The Origin header (RFC 6454 §7), which servers may ask of browsers.
        public mutating func setOrigin(_ origin: String) { setHeader("Origin", origin) }

        /// The Cookie header (RFC 6265 §4.2): "name=value; other=value".
        public mutating func setCookie(_ cookie: String) { setHeader("Cookie", cookie) }

        /// The User-Agent header.
        public mutating func setUserAgent(_ userAgent: String) {
            setHeader("User-Agent", userAgent)
        }

        func apply(to target: inout WebSocketConfiguration) throws(RealtimeError) {
            for header in headers { try target.addHeader(name: header.name, value: header.value) }
            for name in subprotocols { try target.addSubprotocol(name) }
            target.network = try network.configuration()
            target.openTimeout = try Options.limit(openTimeout, "openTimeout")
            target.closeTimeout = try Options.limit(closeTimeout, "closeTimeout")
            target.pingInterval = try Options.limit(pingInterval, "pingInterval")
            target.pongTimeout = try Options.limit(pongTimeout, "pongTimeout")
            target.idleTimeout = try Options.limit(idleTimeout, "idleTimeout")
            target.limits.messageBytes = try Options.atLeast(0, maxMessageBytes, "maxMessageBytes")
            target.limits.headerBytes = try Options.atLeast(1024, maxHeaderBytes, "maxHeaderBytes")
            target.limits.inflateRatio = try Options.atLeast(0, maxInflateRatio, "maxInflateRatio")
            target.maxFrameBytes = try Options.atLeast(0, maxFrameBytes, "maxFrameBytes")
            target.sendHighWater = try Options.atLeast(0, sendHighWaterBytes, "sendHighWaterBytes")
            target.sendLimit = try Options.atLeast(0, sendLimitBytes, "sendLimitBytes")
            _ = try Options.atLeast(1, maxBufferedMessages, "maxBufferedMessages")
            _ = try Options.atLeast(1, maxBufferedBytes, "maxBufferedBytes")
            target.redirects.maximum = try Options.within(0...20, maxRedirects, "maxRedirects")
            target.redirects.allowsInsecure = allowInsecureRedirects
            target.reconnect = try reconnect?.configuration()
            target.reconnectsAfterNormalClose = reconnectAfterNormalClose
            target.offlineQueueLimit = try Options.atLeast(0, offlineQueue, "offlineQueue")
            target.compression = try compressionConfiguration()
        }

        private func compressionConfiguration() throws(RealtimeError) -> CompressionConfiguration {
            var target = CompressionConfiguration()
            target.enabled = compression
            target.level = try Options.within(0...9, compressionLevel, "compressionLevel")
            target.memoryLevel = try Options.within(
                1...9, compressionMemoryLevel, "compressionMemoryLevel")
            target.minimumBytes = try Options.atLeast(0, compressionMinBytes, "compressionMinBytes")
            target.clientMaxWindowBits = try Options.within(
                9...15, clientMaxWindowBits, "clientMaxWindowBits")
            target.serverMaxWindowBits = try Options.within(
                8...15, serverMaxWindowBits, "serverMaxWindowBits")
            target.clientNoContextTakeover = clientNoContextTakeover
            target.serverNoContextTakeover = serverNoContextTakeover
            return target
        }

        static func limit(
            _ value: Duration?, _ name: String
        ) throws(RealtimeError) -> Duration {
            guard let value else { return .zero }
            guard value > .zero else {
                throw RealtimeError(.invalidArgument, "\(name) is \(value); nil turns it off")
            }
            return try delay(value, name)
        }

        static func delay(_ value: Duration, _ name: String) throws(RealtimeError) -> Duration {
            guard value >= .zero, value <= .longestOption else {
                throw RealtimeError(
                    .invalidArgument, "\(name) is \(value), 0 to a hundred years is expected")
            }
            return value
        }

        static func atLeast(
            _ least: Int, _ value: Int, _ name: String
        ) throws(RealtimeError) -> Int {
            guard value >= least else {
                throw RealtimeError(
                    .invalidArgument, "\(name) is \(value), \(least) or more is expected")
            }
            return value
        }

        static func within(
            _ range: ClosedRange<Int>, _ value: Int, _ name: String
        ) throws(RealtimeError) -> Int {
            guard range.contains(value) else {
                throw RealtimeError(
                    .invalidArgument,
                    "\(name) is \(value), \(range.lowerBound) to \(range.upperBound) is expected")
            }
            return value
        }
    }
}
