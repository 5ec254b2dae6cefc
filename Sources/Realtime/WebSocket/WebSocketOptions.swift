internal import Session
internal import Wire

extension WebSocket {
    /// The options of a WebSocket, set before it starts. The defaults are those of
    /// `rt_websocket_set_*` in C. A time limit of nil means no limit.
    public struct Options: Sendable {
        /// A PEM file of certificates to trust instead of the system's; the same as
        /// `network.caFile`.
        public var caFile: String? {
            get { network.caFile }
            set { network.caFile = newValue }
        }

        /// Called when the server refuses the handshake with 401 or 403, or the proxy with 407, but
        /// once per attempt, also without `reconnect`. The headers that it returns replace those of
        /// the same names, and the handshake is repeated at once; nil or an error ends the
        /// connection.
        public var credentials:
            (@Sendable (HTTPResponse) async throws -> [(name: String, value: String)]?)?
        /// Further statuses of a refused handshake, 400 to 599 except 401 and 407, after which a
        /// connection that reconnects tries again.
        public var retryStatuses: Set<Int> = []
        /// Whether messages go to `pieces` as they arrive, instead of whole to `messages`, for
        /// messages too large to hold in memory. `maxMessageBytes` does not apply then.
        public var deliversPieces = false
        /// Where handlers run, one at a time: the main actor by default. A handler that is isolated
        /// to an actor runs on that actor, whatever the executor. With `.loop` they run on the
        /// loop's thread, and no message is copied or passed to another thread: the fastest form.
        /// Then a handler must not block: everything else on the loop, also each time limit, waits
        /// for it.
        public var executor = HandlerExecutor.main
        /// How many messages may wait for `messages` or for a handler before receiving pauses.
        public var maxBufferedMessages = 1024
        /// How many bytes may wait for `messages` or for a handler before receiving pauses.
        public var maxBufferedBytes = 1 << 20

        // abigen: the options of WebSocketConfiguration
        /// Sent with the handshake. Names that begin with Sec-WebSocket- are reserved for the
        /// handshake and refused.
        public var headers: [(name: String, value: String)] {
            get { hiddenHeaders.value }
            set { hiddenHeaders.value = newValue }
        }
        private var hiddenHeaders = Hidden<[(name: String, value: String)]>([])
        /// The subprotocols that are offered, the preferred one first.
        public var subprotocols: [String] = []
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
        public var maxRedirects = 5
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
        /// Reconnects with the delays of a backoff when the connection is lost or fails; without a
        /// backoff it does not reconnect. It ends for good after a close by this side, the peer's
        /// close codes 1000 (unless `reconnectAfterNormalClose` is set), 1002, 1003 and 1007 to
        /// 1010, a 4xx response other than 408, 425 and 429, a refused redirect or message, and
        /// when no attempt is left. The server's Retry-After, in seconds or as a date, is obeyed up
        /// to five minutes.
        public var reconnect: Backoff?
        /// Whether to reconnect after the peer closed with code 1000, which some servers send when
        /// they restart. A close by this side always ends the connection for good.
        public var reconnectAfterNormalClose = false
        /// How many messages may wait while a connection that reconnects is down. They are sent on
        /// the next connection, after those that its open callback sends. Above this number, or
        /// above the limit of unsent bytes, a send fails with `.bufferFull`. Messages sent before a
        /// connection was lost are not sent again. With 0, a send fails with `.state`.
        public var offlineQueue = 0
        /// The time limit for opening: name resolution, connection, TLS and opening handshake
        /// together. nil means no limit.
        public var openTimeout: Duration? = .seconds(10)
        /// The time limit for the closing handshake, from this side's close frame to the peer's.
        /// While bytes that were sent before arrive, it begins anew, up to ten times the limit in
        /// all. The connection ends with the peer's close frame, whether or not the peer then
        /// closes TCP. After a protocol violation by the peer the limit is always 10 s. nil means
        /// no limit.
        public var closeTimeout: Duration? = .seconds(10)
        /// The time between two pings on an open connection. nil means no pings.
        public var pingInterval: Duration? = .seconds(20)
        /// How long the peer may send nothing after a ping before the connection fails with
        /// `.timeout`. Any bytes prove that the peer lives: a pong, a message, or a part of one; so
        /// does progress of the bytes that were sent before the ping. Time during a pause of
        /// receiving does not count. nil means no limit.
        public var pongTimeout: Duration? = .seconds(20)
        /// Whether only the pong with a ping's payload proves that the peer lives, however much
        /// else arrives. For peers whose program may hang while the rest still works, at the price
        /// that a large message over a slow link may delay the pong for too long.
        public var requirePong = false
        /// How long the peer may send no message, nor a part of one, before the connection fails
        /// with `.timeout` and close code 1001. Pings, pongs and time during a pause of receiving
        /// do not count. For feeds that are never silent for long. nil means no limit.
        public var idleTimeout: Duration?
        /// The largest message that is received, after decompression. A larger one fails the
        /// connection with close code 1009. 0 means no limit.
        public var maxMessageBytes = 64 << 20
        /// The largest response to the opening handshake: status line plus headers.
        public var maxHeaderBytes = 64 << 10
        /// How many times its size on the wire a compressed message may grow, checked above 64 KiB.
        /// A message that grows more fails the connection with close code 1009. Deflate can reach
        /// 1,032. 0 means no limit.
        public var maxInflateRatio = 0
        /// The largest frame sent; larger messages are split into several. Without a limit each
        /// message is one frame. 0 means no limit.
        public var maxFrameBytes = 0
        /// The high-water mark of unsent bytes: once they exceed it, the drained callback is called
        /// when all are sent.
        public var sendHighWaterBytes = 256 << 10
        /// The limit of unsent bytes. A send that would exceed it fails with `.bufferFull` and
        /// sends nothing. If nothing is unsent, a message of any size is accepted. 0 means no
        /// limit.
        public var sendLimitBytes = 64 << 20
        /// Whether permessage-deflate is offered.
        public var compression = true
        /// The compression level of messages sent: 1 (fast) to 9 (small). With 0 they are sent
        /// uncompressed, and compressed messages are still accepted.
        public var compressionLevel = 1
        /// The zlib memory level for messages sent. With a window of 2^w bytes, a connection that
        /// has compressed a message holds 2^(w+2) + 2^(level+9) bytes: 256 KiB by default, 36 KiB
        /// with 12 window bits and level 5.
        public var compressionMemoryLevel = 8
        /// The smallest message that is compressed; smaller ones are sent uncompressed.
        public var compressionMinBytes = 100
        /// The compression window of messages sent, as a power of two: `clientMaxWindowBits` of RFC
        /// 7692 §7.1.2.2. The server may request a smaller one. zlib cannot compress with 8.
        public var clientMaxWindowBits = 15
        /// The compression window requested for the server's messages, as a power of two:
        /// `serverMaxWindowBits` of RFC 7692 §7.1.2.1. With 15 nothing is requested.
        public var serverMaxWindowBits = 15
        /// Whether each message sent is compressed on its own, which needs less memory but makes
        /// messages larger.
        public var clientNoContextTakeover = false
        /// Whether the server is asked to compress each of its messages on its own.
        public var serverNoContextTakeover = false
        // abigen: end

        public init() {}

        /// Sets a header, replacing all of that name.
        public mutating func setHeader(_ name: String, _ value: String) {
            headers.removeAll { $0.name.equalsIgnoringASCIICase(name) }
            headers.append((name, value))
        }

        /// Sets a basic Authorization header (RFC 7617).
        /// - Throws: `.invalidArgument` for a user name with a colon, which would be read as
        ///   another user.
        public mutating func setBasicAuthorization(
            user: String, password: String
        ) throws(RealtimeError) {
            setHeader(
                "Authorization",
                try HeaderField.basicAuthorization(user: user, password: password))
        }

        /// Sets an Authorization header with a bearer token (RFC 6750).
        public mutating func setBearerToken(_ token: String) {
            setHeader("Authorization", "Bearer \(token)")
        }

        /// Sets the Origin header (RFC 6454 §7), which servers may require of browsers.
        public mutating func setOrigin(_ origin: String) { setHeader("Origin", origin) }

        /// Sets the Cookie header (RFC 6265 §4.2): "name=value; other=value".
        public mutating func setCookie(_ cookie: String) { setHeader("Cookie", cookie) }

        /// Sets the User-Agent header.
        public mutating func setUserAgent(_ userAgent: String) {
            setHeader("User-Agent", userAgent)
        }

        func apply(to target: inout WebSocketConfiguration) throws(RealtimeError) {
            for status in retryStatuses { try target.addRetryStatus(status) }
            try applyPlain(to: &target)
            _ = try OptionCheck.atLeast(1, maxBufferedMessages, "maxBufferedMessages")
            _ = try OptionCheck.atLeast(1, maxBufferedBytes, "maxBufferedBytes")
        }
    }
}
