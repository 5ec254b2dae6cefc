package import Wire

/// What a user can set on a WebSocket before it starts; the C ABI's `rt_websocket_set_*`, with the
/// same defaults. Zero turns a time limit off.
package struct WebSocketConfiguration: Sendable {
    package let url: WebSocketURL
    package var fields: [HeaderField] = []
    package var subprotocols: [String] = []
    package var caFile: String?

    package var openTimeout: Duration = .seconds(10)
    package var closeTimeout: Duration = .seconds(10)
    package var pingInterval: Duration = .seconds(20)
    package var pongTimeout: Duration = .seconds(20)

    package var limits = MessageLimits()
    package var maxFrameBytes = 0
    package var sendHighWater = 1 << 20
    package var sendLimit = 64 << 20
    package var compression = CompressionConfiguration()

    package init(url: String) throws(RealtimeError) {
        self.url = try WebSocketURL(parsing: url)
    }

    package mutating func addHeader(name: String, value: String) throws(RealtimeError) {
        try ClientHandshake.validate(fieldName: name, value: value)
        fields.append(HeaderField(name: name, value: value))
    }

    package mutating func addSubprotocol(_ name: String) throws(RealtimeError) {
        try ClientHandshake.validate(subprotocol: name)
        guard !subprotocols.contains(name) else {
            throw RealtimeError(.invalidSubprotocol, "subprotocol \"\(name)\" is offered twice")
        }
        subprotocols.append(name)
    }

    package mutating func setCAFile(_ path: String) throws(RealtimeError) {
        guard !path.isEmpty else {
            throw RealtimeError(.invalidArgument, "the path of the CA file is empty")
        }
        caFile = path
    }
}

/// permessage-deflate, RFC 7692: what is offered, and how messages sent are compressed.
package struct CompressionConfiguration: Sendable {
    package var enabled = true
    /// zlib's level; 0 sends uncompressed.
    package var level = 1
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
