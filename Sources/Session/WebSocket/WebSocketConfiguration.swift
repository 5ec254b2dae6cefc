package import Wire

/// The options of a WebSocket.
/// - Object: websocket, WebSocket.Options, before start
package struct WebSocketConfiguration: RequestHeaders, Sendable, Equatable {
    package var url: HTTPURL
    /// Sent with the handshake. Names that begin with Sec-WebSocket- are reserved for the handshake
    /// and refused.
    /// - Option: headers, headers credentials, python additional_headers
    package var headers = HeaderFields()
    package var fields: [HeaderField] { headers.all }
    /// The subprotocols that are offered, the preferred one first.
    /// - Option: subprotocols, list INVALID_SUBPROTOCOL for one that is not a token or is offered
    ///   twice
    package var subprotocols: [String] = []
    /// - Option: network, network
    package var network: NetworkConfiguration {
        get { networkBox?.value ?? NetworkConfiguration() }
        set { networkBox = Box(newValue) }
    }
    /// Boxed, because most connections do not set one.
    private var networkBox: Box<NetworkConfiguration>?
    /// - Options: Redirects.Rules, max_redirects = 5
    package var redirects = Redirects.Rules(of: .websocket, maximum: 5)
    /// The object that errors name options of.
    package var owner: OptionOwner { redirects.owner }
    /// Reconnects with the delays of a backoff when the connection is lost or fails; without a
    /// backoff it does not reconnect. It ends for good after a close by this side, the peer's close
    /// codes 1000 (unless `reconnect_after_normal_close` is set), 1002, 1003 and 1007 to 1010, a
    /// 4xx response other than 408, 425 and 429, a refused redirect or message, and when no attempt
    /// is left. The server's Retry-After, in seconds or as a date, is obeyed up to five minutes.
    /// - Option: reconnect, backoff
    package var reconnect: BackoffConfiguration? {
        get { reconnectBox?.value }
        set { reconnectBox = newValue.map { Box($0) } }
    }
    private var reconnectBox: Box<BackoffConfiguration>?
    /// Further statuses of a refused handshake after which it reconnects.
    package private(set) var retryStatuses: Set<Int> = []
    /// Whether to reconnect after the peer closed with code 1000, which some servers send when they
    /// restart. A close by this side always ends the connection for good.
    /// - Option: reconnect_after_normal_close, flag
    package var reconnectsAfterNormalClose = false
    /// How many messages may wait while a connection that reconnects is down. They are sent on the
    /// next connection, after those that its open callback sends. Above this number, or above the
    /// limit of unsent bytes, a send fails with RT_ERROR_BUFFER_FULL. Messages sent before a
    /// connection was lost are not sent again. With 0, a send fails with RT_ERROR_STATE.
    /// - Option: offline_queue, count 0..., parameter max_messages, python elsewhere offline_queue
    package var offlineQueueLimit = 0

    /// The time limit for opening: name resolution, connection, TLS and opening handshake together.
    /// - Option: open_timeout, limit
    package var openTimeout: Duration = .seconds(10)
    /// The time limit from a ready connection to the end of the handshake, within `openTimeout`.
    package var answerTimeout: Duration = .zero
    /// The time limit for the closing handshake, from this side's close frame to the peer's. While
    /// bytes that were sent before arrive, it begins anew, up to ten times the limit in all. The
    /// connection ends with the peer's close frame, whether or not the peer then closes TCP. After
    /// a protocol violation by the peer the limit is always 10 s.
    /// - Option: close_timeout, limit
    package var closeTimeout: Duration = .seconds(10)
    /// The time between two pings on an open connection.
    /// - Option: ping_interval, limit, zero means no pings
    package var pingInterval: Duration = .seconds(20)
    /// How long the peer may send nothing after a ping before the connection fails with
    /// RT_ERROR_TIMEOUT. Any bytes prove that the peer lives: a pong, a message, or a part of one;
    /// so does progress of the bytes that were sent before the ping. Time during a pause of
    /// receiving does not count.
    /// - Option: pong_timeout, limit, python ping_timeout
    package var pongTimeout: Duration = .seconds(20)
    /// Whether only the pong with a ping's payload proves that the peer lives, however much else
    /// arrives. For peers whose program may hang while the rest still works, at the price that a
    /// large message over a slow link may delay the pong for too long.
    /// - Option: require_pong, flag
    package var requiresPong = false
    /// How long the peer may send no message, nor a part of one, before the connection fails with
    /// RT_ERROR_TIMEOUT and close code 1001. Pings, pongs and time during a pause of receiving do
    /// not count. For feeds that are never silent for long.
    /// - Option: idle_timeout, limit
    package var idleTimeout: Duration = .zero

    /// - Options: MessageLimits
    package var limits = MessageLimits()
    /// The largest frame sent; larger messages are split into several. Without a limit each message
    /// is one frame.
    /// - Option: max_frame_bytes, bytes, python max_frame_size
    package var maxFrameBytes = 0
    /// The high-water mark of unsent bytes: once they exceed it, the drained callback is called
    /// when all are sent.
    /// - Option: send_high_water_bytes, bytes 0..., python elsewhere write_limit
    package var sendHighWater = 256 << 10
    /// The limit of unsent bytes. A send that would exceed it fails with RT_ERROR_BUFFER_FULL and
    /// sends nothing. If nothing is unsent, a message of any size is accepted.
    /// - Option: send_limit_bytes, bytes, python elsewhere write_limit
    package var sendLimit = 64 << 20
    /// - Options: CompressionConfiguration
    package var compression = CompressionConfiguration()
    /// Whether messages are delivered in pieces as they arrive, not as a whole.
    package var deliversPieces = false

    package init(url: String) throws(RealtimeError) {
        self.url = try HTTPURL(parsing: url, as: .webSocket)
    }

    package static func check(_ name: String, _ value: String) throws(RealtimeError) {
        try ClientHandshake.validate(fieldName: name, value: value)
    }

    package mutating func addRetryStatus(_ status: Int) throws(RealtimeError) {
        retryStatuses.insert(try TemporaryStatus.checked(status))
    }

    package mutating func addSubprotocol(_ name: String) throws(RealtimeError) {
        try ClientHandshake.validate(subprotocol: name)
        guard !subprotocols.contains(name) else {
            throw RealtimeError(.invalidSubprotocol, "subprotocol \"\(name)\" is offered twice")
        }
        subprotocols.append(name)
    }
}

/// A value stored on the heap.
private final class Box<Value: Sendable & Equatable>: Sendable, Equatable {
    let value: Value

    init(_ value: Value) { self.value = value }

    static func == (a: Box, b: Box) -> Bool { a === b || a.value == b.value }
}

/// Whether a message is compressed, if permessage-deflate was agreed.
package enum CompressionChoice: Int32, Sendable {
    /// If it has at least `CompressionConfiguration.minimumBytes`.
    case automatic = 0
    case always = 1
    case never = 2
}

/// The options of permessage-deflate (RFC 7692): the offer, and how sent messages are compressed.
package struct CompressionConfiguration: Sendable, Equatable {
    /// Whether permessage-deflate is offered.
    /// - Option: compression, flag, python elsewhere compression
    package var enabled = true
    /// The compression level of messages sent: 1 (fast) to 9 (small). With 0 they are sent
    /// uncompressed, and compressed messages are still accepted.
    /// - Option: compression_level, count 0...9, parameter level, python elsewhere Deflate.level
    package var level = 1
    /// The zlib memory level for messages sent. With a window of 2^w bytes, a connection that has
    /// compressed a message holds 2^(w+2) + 2^(level+9) bytes: 256 KiB by default, 36 KiB with 12
    /// window bits and level 5.
    /// - Option: compression_memory_level, count 1...9, parameter level, python elsewhere
    ///   Deflate.memory_level
    package var memoryLevel = 8
    /// The smallest message that is compressed; smaller ones are sent uncompressed.
    /// - Option: compression_min_bytes, bytes 0..., python elsewhere Deflate.min_size
    package var minimumBytes = 100
    /// The compression window of messages sent, as a power of two: `client_max_window_bits` of RFC
    /// 7692 §7.1.2.2. The server may request a smaller one. zlib cannot compress with 8.
    /// - Option: client_max_window_bits, count 9...15, parameter bits, python elsewhere
    ///   Deflate.client_max_window_bits
    package var clientMaxWindowBits = 15
    /// The compression window requested for the server's messages, as a power of two:
    /// `server_max_window_bits` of RFC 7692 §7.1.2.1. With 15 nothing is requested.
    /// - Option: server_max_window_bits, count 8...15, parameter bits, python elsewhere
    ///   Deflate.server_max_window_bits
    package var serverMaxWindowBits = 15
    /// Whether each message sent is compressed on its own, which needs less memory but makes
    /// messages larger.
    /// - Option: client_no_context_takeover, flag, python elsewhere
    ///   Deflate.client_no_context_takeover
    package var clientNoContextTakeover = false
    /// Whether the server is asked to compress each of its messages on its own.
    /// - Option: server_no_context_takeover, flag,
    ///   python elsewhere Deflate.server_no_context_takeover
    package var serverNoContextTakeover = false

    package init() {}

    package var offer: DeflateOffer? {
        guard enabled else { return nil }
        var offer = DeflateOffer()
        offer.clientMaxWindowBits = clientMaxWindowBits
        offer.serverMaxWindowBits = serverMaxWindowBits
        offer.clientNoContextTakeover = clientNoContextTakeover
        offer.serverNoContextTakeover = serverNoContextTakeover
        return offer
    }
}
