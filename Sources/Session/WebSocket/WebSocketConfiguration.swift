package import Wire

/// The options of a WebSocket.
/// - Object: websocket, WebSocket.Options, before start
package struct WebSocketConfiguration: RequestHeaders, Sendable, Equatable {
    package var url: HTTPURL
    /// Sent with the handshake. Names that begin with Sec-WebSocket- are the handshake's own, and
    /// refused.
    /// - Option: headers, headers credentials, python additional_headers
    package var headers = HeaderFields()
    package var fields: [HeaderField] { headers.all }
    /// Subprotocols that are offered, the preferred one first.
    /// - Option: subprotocols, list INVALID_SUBPROTOCOL for what is not a token or is offered twice
    package var subprotocols: [String] = []
    /// The first connection is attempted in any case.
    /// - Option: network, network
    package var network: NetworkConfiguration {
        get { networkBox?.value ?? NetworkConfiguration() }
        set { networkBox = Box(newValue) }
    }
    /// Boxed, because most connections do not set one.
    private var networkBox: Box<NetworkConfiguration>?
    /// - Options: Redirects.Rules, max_redirects = 5
    package var redirects = Redirects.Rules(maximum: 5)
    /// Makes the connection again when it is lost or cannot be made, after the delays of a backoff;
    /// without one it does not. It ends after this side closes, after the peer's close codes 1000
    /// (unless `reconnect_after_normal_close` is set), 1002, 1003 and 1007 to 1010, after a 4xx
    /// answer other than 408, 425 and 429, after a redirect or message that is refused, and when no
    /// attempt is left. Retry-After, in seconds or as a date, is waited for up to five minutes.
    /// - Option: reconnect, backoff
    package var reconnect: BackoffConfiguration? {
        get { reconnectBox?.value }
        set { reconnectBox = newValue.map { Box($0) } }
    }
    private var reconnectBox: Box<BackoffConfiguration>?
    /// Whether a connection that reconnects also does so after the peer closed it with code 1000.
    /// Some servers send that code when they restart. A close by this side always ends the
    /// connection for good.
    /// - Option: reconnect_after_normal_close, flag
    package var reconnectsAfterNormalClose = false
    /// How many messages may wait while a connection that reconnects is down. They are sent on the
    /// next one, after what its open callback sends; above this number, or above the limit of
    /// unsent bytes, a send fails with RT_ERROR_BUFFER_FULL. What was sent before a connection was
    /// lost is not sent again. With 0 a send fails with RT_ERROR_STATE.
    /// - Option: offline_queue, count 0..., parameter max_messages, python elsewhere offline_queue
    package var offlineQueueLimit = 0

    /// How long everything may take until the connection is open: name resolution, connection, TLS
    /// and opening handshake together.
    /// - Option: open_timeout, limit
    package var openTimeout: Duration = .seconds(10)
    /// The time limit from a ready connection to the end of the handshake, within `openTimeout`.
    package var answerTimeout: Duration = .zero
    /// How long the closing handshake may take, from this side's close frame to the end of the
    /// connection. A peer that broke the protocol has 10 s in any case.
    /// - Option: close_timeout, limit
    package var closeTimeout: Duration = .seconds(10)
    /// The time between two pings on an open connection.
    /// - Option: ping_interval, limit, zero sends no pings
    package var pingInterval: Duration = .seconds(20)
    /// How long a ping may stay unanswered before the connection fails with RT_ERROR_TIMEOUT. Time
    /// during which receiving is paused does not count.
    /// - Option: pong_timeout, limit, python ping_timeout
    package var pongTimeout: Duration = .seconds(20)
    /// How long the peer may send no message before the connection fails with RT_ERROR_TIMEOUT and
    /// close code 1001. Pings and pongs do not count, and neither does time during which receiving
    /// is paused. For feeds that are never silent for long.
    /// - Option: idle_timeout, limit
    package var idleTimeout: Duration = .zero

    /// - Options: MessageLimits
    package var limits = MessageLimits()
    /// Messages sent are split into frames of at most this many bytes. Without a limit each
    /// message is one frame.
    /// - Option: max_frame_bytes, bytes, python max_frame_size
    package var maxFrameBytes = 0
    /// When more bytes than this are unsent, the drained callback is called once all are sent.
    /// - Option: send_high_water_bytes, bytes 0..., python elsewhere write_limit
    package var sendHighWater = 256 << 10
    /// A send that would take the unsent bytes above this limit fails with RT_ERROR_BUFFER_FULL and
    /// takes nothing. With nothing unsent, a message of any size is accepted.
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
    /// The memory level of zlib for messages sent: with a window of 2^w bytes a connection holds
    /// 2^(w+2) + 2^(level+9) bytes once it has compressed a message, that is 256 KiB by default,
    /// and 36 KiB with 12 window bits and level 5.
    /// - Option: compression_memory_level, count 1...9, parameter level,
    ///   python elsewhere Deflate.memory_level
    package var memoryLevel = 8
    /// Messages of fewer bytes are sent uncompressed.
    /// - Option: compression_min_bytes, bytes 0..., python elsewhere Deflate.min_size
    package var minimumBytes = 100
    /// The window of messages sent, as a power of two: `client_max_window_bits` of RFC 7692
    /// §7.1.2.2. The server may ask for less. zlib cannot compress with 8.
    /// - Option: client_max_window_bits, count 9...15, parameter bits,
    ///   python elsewhere Deflate.client_max_window_bits
    package var clientMaxWindowBits = 15
    /// The window that the server is asked to use for its messages, as a power of two:
    /// `server_max_window_bits` of RFC 7692 §7.1.2.1. With 15 it is not asked.
    /// - Option: server_max_window_bits, count 8...15, parameter bits,
    ///   python elsewhere Deflate.server_max_window_bits
    package var serverMaxWindowBits = 15
    /// Whether each message sent is compressed on its own: this needs less memory, and makes
    /// messages larger.
    /// - Option: client_no_context_takeover, flag,
    ///   python elsewhere Deflate.client_no_context_takeover
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
