package import Wire

/// What a user can set on a WebSocket before it starts; the C ABI's `rt_websocket_set_*`, with the
/// same defaults. Zero turns a time limit off.
package struct WebSocketConfiguration: Sendable, Equatable {
    package var url: HTTPURL
    private var headers = HeaderFields()
    package var fields: [HeaderField] { headers.all }
    package var subprotocols: [String] = []
    /// Boxed, as most connections have none of their own.
    private var networkBox: Box<NetworkConfiguration>?
    package var network: NetworkConfiguration {
        get { networkBox?.value ?? NetworkConfiguration() }
        set { networkBox = Box(newValue) }
    }
    package var redirects = Redirects.Rules(maximum: 5)
    /// Nil ends with the first connection.
    package var reconnect: BackoffConfiguration? {
        get { reconnectBox?.value }
        set { reconnectBox = newValue.map { Box($0) } }
    }
    private var reconnectBox: Box<BackoffConfiguration>?
    /// Whether the peer's close code 1000 is followed by a reconnection, too. Some servers send it
    /// when they restart.
    package var reconnectsAfterNormalClose = false
    /// Messages that may wait for the next connection; 0 refuses them.
    package var offlineQueueLimit = 0

    package var openTimeout: Duration = .seconds(10)
    /// From a connection that stands to the end of the handshake, within `openTimeout`.
    package var answerTimeout: Duration = .zero
    package var closeTimeout: Duration = .seconds(10)
    package var pingInterval: Duration = .seconds(20)
    package var pongTimeout: Duration = .seconds(20)
    package var idleTimeout: Duration = .zero

    package var limits = MessageLimits()
    package var maxFrameBytes = 0
    package var sendHighWater = 256 << 10
    package var sendLimit = 64 << 20
    package var compression = CompressionConfiguration()
    /// Messages are told in pieces as they come, not as a whole.
    package var deliversPieces = false

    package init(url: String) throws(RealtimeError) {
        self.url = try HTTPURL(parsing: url, as: .webSocket)
    }

    package mutating func addHeader(name: String, value: String) throws(RealtimeError) {
        try ClientHandshake.validate(fieldName: name, value: value)
        headers.append(HeaderField(name: name, value: value))
    }

    package mutating func addSubprotocol(_ name: String) throws(RealtimeError) {
        try ClientHandshake.validate(subprotocol: name)
        guard !subprotocols.contains(name) else {
            throw RealtimeError(.invalidSubprotocol, "subprotocol \"\(name)\" is offered twice")
        }
        subprotocols.append(name)
    }

    /// Sets a header in the place of all of its name.
    package mutating func setHeader(name: String, value: String) throws(RealtimeError) {
        try ClientHandshake.validate(fieldName: name, value: value)
        headers.set(name, value)
    }

    package mutating func clearHeaders() { headers = HeaderFields() }

    /// RFC 7617 §2.
    package mutating func setBasicAuthorization(
        user: String, password: String
    ) throws(RealtimeError) {
        try setHeader(
            name: "Authorization",
            value: HeaderField.basicAuthorization(user: user, password: password))
    }

    /// RFC 6750 §2.1.
    package mutating func setBearerToken(_ token: String) throws(RealtimeError) {
        try setHeader(
            name: "Authorization", value: HeaderField.bearerAuthorization(token))
    }
}

/// A value in memory of its own.
private final class Box<Value: Sendable & Equatable>: Sendable, Equatable {
    let value: Value

    init(_ value: Value) { self.value = value }

    static func == (a: Box, b: Box) -> Bool { a === b || a.value == b.value }
}

/// Whether one message is compressed, where permessage-deflate was agreed.
package enum CompressionChoice: Int32, Sendable {
    /// From `CompressionConfiguration.minimumBytes` on.
    case automatic = 0
    case always = 1
    case never = 2
}

/// permessage-deflate, RFC 7692: what is offered, and how messages sent are compressed.
package struct CompressionConfiguration: Sendable, Equatable {
    package var enabled = true
    /// zlib's level; 0 sends uncompressed.
    package var level = 1
    /// zlib's memory level for messages sent, 1 (1 KiB) to 9 (256 KiB beside the window).
    package var memoryLevel = 8
    /// Shorter messages are sent uncompressed: they would rarely shrink.
    package var minimumBytes = 100
    package var clientMaxWindowBits = 15
    package var serverMaxWindowBits = 15
    package var clientNoContextTakeover = false
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
