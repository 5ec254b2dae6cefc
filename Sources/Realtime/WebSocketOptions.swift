internal import Session
internal import Wire

extension WebSocket {
    /// What can be set before a WebSocket starts, with the defaults of the C ABI's
    /// `rt_websocket_set_*`. A time limit of nil means no limit.
    public struct Options: Sendable {
        /// `network.caFile`: a PEM file of certificates to trust instead of the system's.
        public var caFile: String? {
            get { network.caFile }
            set { network.caFile = newValue }
        }

        /// Whether messages go to `pieces` as they come, for those larger than memory should hold,
        /// and not whole to `messages`. `maxMessageBytes` does not count then.
        public var deliversPieces = false
        /// Messages that wait for `messages` before receiving pauses.
        public var maxBufferedMessages = 256
        /// Bytes that wait for `messages` before receiving pauses.
        public var maxBufferedBytes = 1 << 20

        // abigen: the options of WebSocketConfiguration
        /// Sent with the handshake. Names that begin with Sec-WebSocket- are the handshake's own,
        /// and refused.
        public var headers: [(name: String, value: String)] = []
        /// Subprotocols that are offered, the preferred one first.
        public var subprotocols: [String] = []
        /// How connections are made: TLS, proxies, addresses, sockets.
        public var network = Network()
        /// Says whether there is a network. While there is none, no attempt is made or counted;
        /// when there is one again, the next attempt follows within a second. The first connection
        /// is attempted in any case. It belongs to the same loop. nil is `.auto`, one for all
        /// objects of the loop.
        public var reachability: Reachability?
        /// How many redirects are followed (301, 302, 303, 307 and 308). With 0 a redirect is an
        /// answer like any other. On the way to another origin only these headers go along: Accept,
        /// Accept-Encoding, Accept-Language, Cache-Control, Content-Type, Last-Event-ID,
        /// User-Agent, and those that the caller named as safe.
        public var maxRedirects = 5
        /// Whether a redirect may lead from https to http, or from wss to ws.
        public var allowInsecureRedirects = false
        /// Names of headers that also go along when a redirect leads to another origin.
        public var safeHeaders: [String] = []
        /// Makes the connection again when it is lost or cannot be made, after the delays of a
        /// backoff; without one it does not. It ends after this side closes, after the peer's close
        /// codes 1000 (unless `reconnectAfterNormalClose` is set), 1002, 1003 and 1007 to 1010,
        /// after a 4xx answer other than 408, 425 and 429, after a redirect or message that is
        /// refused, and when no attempt is left. Retry-After, in seconds or as a date, is waited
        /// for up to five minutes.
        public var reconnect: Backoff?
        /// Whether a connection that reconnects also does so after the peer closed it with code
        /// 1000. Some servers send that code when they restart. A close by this side always ends
        /// the connection for good.
        public var reconnectAfterNormalClose = false
        /// How many messages may wait while a connection that reconnects is down. They are sent on
        /// the next one, after what its open callback sends; above this number, or above the limit
        /// of unsent bytes, a send fails with `.bufferFull`. What was sent before a connection was
        /// lost is not sent again. With 0 a send fails with `.state`.
        public var offlineQueue = 0
        /// How long everything may take until the connection is open: name resolution, connection,
        /// TLS and opening handshake together. nil is no limit.
        public var openTimeout: Duration? = .seconds(10)
        /// How long the closing handshake may take, from this side's close frame to the end of the
        /// connection. A peer that broke the protocol has 10 s in any case. nil is no limit.
        public var closeTimeout: Duration? = .seconds(10)
        /// The time between two pings on an open connection. nil sends no pings.
        public var pingInterval: Duration? = .seconds(20)
        /// How long a ping may stay unanswered before the connection fails with `.timeout`. Time
        /// during which receiving is paused does not count. nil is no limit.
        public var pongTimeout: Duration? = .seconds(20)
        /// How long the peer may send no message before the connection fails with `.timeout` and
        /// close code 1001. Pings and pongs do not count, and neither does time during which
        /// receiving is paused. For feeds that are never silent for long. nil is no limit.
        public var idleTimeout: Duration?
        /// The largest message that is received, after decompression. A larger one fails the
        /// connection with close code 1009. 0 is no limit.
        public var maxMessageBytes = 64 << 20
        /// The largest answer to the opening handshake, status line and headers.
        public var maxHeaderBytes = 64 << 10
        /// How many times its size on the wire a compressed message may grow, checked above 64 KiB.
        /// A message that grows more fails the connection with close code 1009. Deflate reaches
        /// 1,032. 0 is no limit.
        public var maxInflateRatio = 0
        /// Messages sent are split into frames of at most this many bytes. Without a limit each
        /// message is one frame. 0 is no limit.
        public var maxFrameBytes = 0
        /// When more bytes than this are unsent, the drained callback is called once all are sent.
        public var sendHighWaterBytes = 256 << 10
        /// A send that would take the unsent bytes above this limit fails with `.bufferFull` and
        /// takes nothing. With nothing unsent, a message of any size is accepted. 0 is no limit.
        public var sendLimitBytes = 64 << 20
        /// Whether permessage-deflate is offered.
        public var compression = true
        /// The compression level of messages sent: 1 (fast) to 9 (small). With 0 they are sent
        /// uncompressed, and compressed messages are still accepted.
        public var compressionLevel = 1
        /// The memory level of zlib for messages sent: with a window of 2^w bytes a connection
        /// holds 2^(w+2) + 2^(level+9) bytes once it has compressed a message, that is 256 KiB by
        /// default, and 36 KiB with 12 window bits and level 5.
        public var compressionMemoryLevel = 8
        /// Messages of fewer bytes are sent uncompressed.
        public var compressionMinBytes = 100
        /// The window of messages sent, as a power of two: `clientMaxWindowBits` of RFC 7692
        /// §7.1.2.2. The server may ask for less. zlib cannot compress with 8.
        public var clientMaxWindowBits = 15
        /// The window that the server is asked to use for its messages, as a power of two:
        /// `serverMaxWindowBits` of RFC 7692 §7.1.2.1. With 15 it is not asked.
        public var serverMaxWindowBits = 15
        /// Whether each message sent is compressed on its own: this needs less memory, and makes
        /// messages larger.
        public var clientNoContextTakeover = false
        /// Whether the server is asked to compress each of its messages on its own.
        public var serverNoContextTakeover = false
        // abigen: end

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
            try applyPlain(to: &target)
            _ = try OptionCheck.atLeast(1, maxBufferedMessages, "maxBufferedMessages")
            _ = try OptionCheck.atLeast(1, maxBufferedBytes, "maxBufferedBytes")
        }
    }
}
