package import Wire

/// The options of a Pusher connection. Those for reconnecting, signing and authorizing channels
/// that are not plain values have functions of their own.
/// - Object: pusher, PusherClientOptions
package struct PusherConfiguration: RequestHeaders, Sendable {
    /// The app key, which is part of the URL and of signatures. It is not a secret.
    package let key: String
    /// nil for the host of the cluster, or for Pusher's default host.
    package private(set) var host: String?
    package private(set) var cluster: String?
    /// Whether the connection uses TLS.
    /// - Option: use_tls, flag, swift useTLS
    package var usesTLS = true
    /// The port of the server.
    /// - Option: port, count 0...65_535, zero means 443 with TLS and 80 without, parameter port
    package var port = 0
    /// A prefix of the path in the URL, for servers behind a proxy, such as `/ws`.
    /// - Option: path, text, parameter path
    package var path: String?
    /// Whether the subprotocol pusher-channels-protocol-7 is offered in the handshake. Handshakes
    /// with servers that do not know it fail then.
    /// - Option: offer_subprotocol, flag
    package var offersSubprotocol = false
    /// Whether a server that closes with 4000, because it accepts only TLS, is tried once more with
    /// TLS. Otherwise the connection ends.
    /// - Option: upgrade_on_4000, flag
    package var upgradesOn4000 = false

    package var fields: [HeaderField] { headers.all }
    /// Sent with the handshake of the WebSocket. Names that begin with Sec-WebSocket- are reserved
    /// for the handshake and refused.
    /// - Option: headers, headers credentials
    package var headers = HeaderFields()
    /// When the network changes, a ping checks an open connection.
    /// - Option: network, network
    package var network = NetworkConfiguration()
    /// - Options: Redirects.Rules, max_redirects = 5
    package var redirects = Redirects.Rules(of: .pusher, maximum: 5)
    /// Whether the WebSocket offers permessage-deflate, and whether compressed responses to the
    /// requests for authorization and push interests are accepted.
    /// - Option: compression, flag
    package var compression = true
    /// Whether the requests for authorization and push interests offer HTTP/2 in the TLS handshake.
    /// It is never used through a proxy.
    /// - Option: http2, flag
    package var http2 = true

    /// The time limit for an attempt, from its start until the server confirms the connection.
    /// - Option: connect_timeout, limit
    package var connectTimeout: Duration = .seconds(30)
    /// How long the server may be silent before it is asked for a sign of life. The server names
    /// such a time when it confirms the connection (or else it is 60 s); the shorter one is used.
    /// - Option: activity_timeout, limit, zero means the server's choice
    package var activityTimeout: Duration = .zero
    /// How long the server may stay silent after it was asked for a sign of life, before the
    /// connection counts as lost. While bytes that were sent before arrive, over a slow link, the
    /// time begins anew.
    /// - Option: pong_timeout, limit
    package var pongTimeout: Duration = .seconds(30)
    /// Whether the server is asked for a sign of life by a ping frame of WebSocket, and not by the
    /// event `pusher:ping`. Some servers, such as soketi, end connections that use only frames.
    /// - Option: frame_pings, flag
    package var usesFramePings = false
    /// Whether a connection that is lost, or cannot be opened, is attempted again. Otherwise it
    /// ends.
    /// - Option: auto_reconnect, flag
    package var autoReconnect = true
    /// How many reconnects in a row may fail; nil for no limit.
    package var reconnectAttemptsMax: Int?
    /// The longest delay between attempts; nil for no limit.
    package var maxReconnectGap: Duration? = .seconds(120)

    /// Signs authorizations without a server, for development; nil for none.
    package private(set) var secret: SecretBytes?
    /// Derives the keys of encrypted channels when `secret` signs; nil for none.
    package private(set) var masterKey: SecretBytes?
    /// Authorizes channels; nil for none.
    package private(set) var authEndpoint: HTTPURL?
    /// Authenticates the user; nil for none.
    package private(set) var userAuthEndpoint: HTTPURL?
    /// Sent with each request to an endpoint.
    package var authHeaders = HeaderFields()
    /// Added to the body of each request to an endpoint.
    package var authParameters: [(name: String, value: String)] = []
    /// The time limit for a request to an endpoint, with its redirects. A function of the program
    /// that authorizes has a second more to answer.
    /// - Option: auth_timeout, limit
    package var authTimeout: Duration = .seconds(30)
    /// How often the authorization of a channel is repeated when the endpoint cannot be reached,
    /// does not answer in time, or answers with a status of 500 or above. The delays are 1 s, 2 s,
    /// 4 s, and so on.
    /// - Option: auth_retries, count 0...16
    package var authRetries = 0
    /// How many channels one request to the endpoint may authorize. With 1 each channel has a
    /// request of its own, which every endpoint understands. With more, the endpoint must accept
    /// several channels in one request: it gets `channel_name[0]`, `channel_name[1]` and so on, and
    /// answers with a JSON object that has a member for each name.
    /// - Option: auth_batch_size, count 1...100
    package var authBatchSize = 1

    /// Where devices are registered for push notifications.
    package private(set) var pushURL = PushInterestsRequest.defaultBaseURL

    /// The longest name of a channel. Pusher allows 164 characters, some other servers 200.
    /// - Option: max_channel_name_length, count 0..., unlimited
    package var maxChannelNameLength = 164
    /// How many client events of a channel may wait until it is subscribed. Further ones are
    /// dropped and reported.
    /// - Option: client_event_queue, count 0...
    package var clientEventQueue = 100
    /// How many client events may be sent in a second. Further ones wait in the queue of their
    /// channel. Pusher allows ten and drops the others.
    /// - Option: client_event_rate, count 0...1000, unlimited
    package var clientEventRate = 0
    /// The largest message received, after decompression. If a message has more than 65,536 values
    /// and names of members, each of them counts as at least 64 bytes. A larger message ends the
    /// connection, which is then attempted again.
    /// - Option: max_message_bytes, bytes, python max_size
    package var maxMessageBytes = 16 << 20

    /// How many events of an encrypted channel may wait for a new key, and how many bytes of all
    /// channels. Further ones count as undecryptable.
    package static let heldEventLimit = 1_000
    package static let heldBytesLimit = 8 << 20
    /// The largest answer of an endpoint.
    package static let answerLimit = 1 << 20
    /// How many bytes may wait for a server that does not read. More end the connection, which is
    /// then attempted again.
    package static let unsentLimit = 16 << 20
    /// With this many, client events fail.
    package static let unsentEventLimit = 8 << 20
    /// How long the server may take to answer this side's close frame.
    package static let closeTimeout = Duration.seconds(5)
    /// After this time, a subscription or sign-in that the server has not answered has failed.
    package static let answerTimeout = Duration.seconds(30)
    package static let defaultActivityTimeout = Duration.seconds(60)
    /// The shortest activity timeout that a server can choose.
    package static let leastActivityTimeout = Duration.milliseconds(100)
    package static let subprotocol = "pusher-channels-protocol-7"

    /// - Throws: `.invalidArgument` if the key is empty.
    package init(key: String) throws(RealtimeError) {
        guard !key.isEmpty else {
            throw RealtimeError(.invalidArgument, "the app key must not be empty")
        }
        self.key = key
    }

    /// - Parameter host: a name or an address; nil for the default. A cluster that was set is
    ///   forgotten.
    package mutating func setHost(_ host: String?) throws(RealtimeError) {
        if let host { try PusherAddress.check(host: host) }
        (self.host, cluster) = (host, nil)
    }

    /// - Parameter cluster: a short name such as `eu`; nil for the default. A host that was set
    ///   is forgotten.
    package mutating func setCluster(_ cluster: String?) throws(RealtimeError) {
        if let cluster { try PusherAddress.check(cluster: cluster) }
        (self.cluster, host) = (cluster, nil)
    }

    package mutating func setSecret(_ secret: SecretBytes?) { self.secret = secret }

    /// - Parameter key: 32 bytes; nil for none.
    package mutating func setMasterKey(_ key: SecretBytes?) throws(RealtimeError) {
        guard key.map({ $0.count == SharedSecret.size }) ?? true else {
            throw RealtimeError(
                .invalidArgument, "the encryption master key must have \(SharedSecret.size) bytes")
        }
        masterKey = key
    }

    /// - Parameter url: with the scheme http or https; nil for none.
    package mutating func setAuthEndpoint(_ url: String?) throws(RealtimeError) {
        authEndpoint = try url.map { text throws(RealtimeError) in
            try HTTPURL(parsing: text, as: .http)
        }
    }

    /// - Parameter url: with the scheme http or https; nil for none.
    package mutating func setUserAuthEndpoint(_ url: String?) throws(RealtimeError) {
        userAuthEndpoint = try url.map { text throws(RealtimeError) in
            try HTTPURL(parsing: text, as: .http)
        }
    }

    /// Sets a header of the requests to an endpoint, replacing all of its name; nil removes them.
    package mutating func setAuthHeader(_ name: String, _ value: String?) throws(RealtimeError) {
        try HeaderField.validate(name: name, value: value ?? "")
        authHeaders.set(name, value)
    }

    /// Sets a parameter of the requests to an endpoint, replacing the one of its name; nil removes
    /// it.
    package mutating func setAuthParameter(
        _ name: String, _ value: String?
    ) throws(RealtimeError) {
        let own = name == "socket_id" || name.utf8.starts(with: "channel_name".utf8)
        guard !name.isEmpty, !own else {
            throw RealtimeError(
                .invalidArgument, "the connection itself sets the parameter \(name.quoted())")
        }
        authParameters.removeAll { $0.name.hasSameBytes(as: name) }
        if let value { authParameters.append((name, value)) }
    }

    /// - Parameter url: with the scheme http or https; nil for the default.
    package mutating func setPushURL(_ url: String?) throws(RealtimeError) {
        if let url { _ = try HTTPURL(parsing: url, as: .http) }
        pushURL = url ?? PushInterestsRequest.defaultBaseURL
    }

    /// The URL of the WebSocket.
    /// - Throws: `.invalidArgument` or `.invalidURL`.
    package func url(isSecure: Bool) throws(RealtimeError) -> HTTPURL {
        try address(isSecure: isSecure).url
    }

    /// The URL of the WebSocket with its port, even if that is the default.
    /// - Throws: as `url(isSecure:)`.
    package var urlText: String {
        get throws(RealtimeError) {
            let address = address(isSecure: usesTLS)
            _ = try address.url
            return try address.text
        }
    }

    private func address(isSecure: Bool) -> PusherAddress {
        var address = PusherAddress(key: key)
        address.host = host
        address.cluster = cluster
        address.isSecure = isSecure
        address.port = port == 0 ? nil : UInt16(clamping: port)
        address.path = path
        return address
    }

    /// The delays between attempts: 0, 1, 4, 9 s and so on.
    var delays: BackoffConfiguration {
        var delays = BackoffConfiguration(
            squaresFrom: 0, maximum: maxReconnectGap ?? .longestOption)
        delays.attemptLimit = reconnectAttemptsMax ?? 0
        return delays
    }

    var mayReconnect: Bool { autoReconnect && reconnectAttemptsMax != 0 }

    package static func check(_ name: String, _ value: String) throws(RealtimeError) {
        try ClientHandshake.validate(fieldName: name, value: value)
    }
}
