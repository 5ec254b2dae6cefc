package import Wire

/// The transports, from the best to the one that works everywhere (docs/spreadbot.md, B9).
package enum SpreadbotTransport: Int32, Sendable, CaseIterable {
    case webSocket = 1
    case sse = 2
    case poll = 3

    package var name: String {
        switch self {
        case .webSocket: "WebSocket"
        case .sse: "SSE"
        case .poll: "long poll"
        }
    }
}

/// The options of a Spreadbot connection.
/// - Object: spreadbot, Spreadbot.Configuration
package struct SpreadbotConfiguration: RequestHeaders, Sendable {
    /// The base URL to which paths are appended.
    package let base: HTTPURL
    package private(set) var transports = SpreadbotTransport.allCases
    /// Whole URLs that replace base URL and path.
    package private(set) var overrides: [SpreadbotTransport: HTTPURL] = [:]
    package private(set) var sendURL: HTTPURL?

    /// The URL of the token server; nil if tokens cannot be refreshed.
    package private(set) var authURL: HTTPURL?
    package private(set) var accessToken = ""
    package private(set) var refreshToken = ""
    /// The credentials of a basic Authorization, already in base64.
    package private(set) var basicCredentials = ""
    /// A query parameter that carries the access token, in addition to the header Authorization,
    /// for servers and proxies that ignore the header.
    /// - Option: token_query_parameter, text, parameter name, python token_query_param
    package var tokenQueryParameter: String?
    /// A query parameter that carries the last event id, in addition to the header Last-Event-ID,
    /// for servers and proxies that ignore the header.
    /// - Option: id_query_parameter, text, parameter name, python id_query_param
    package var idQueryParameter: String?
    package private(set) var lastEventID = ""

    package var fields: [HeaderField] { headers.all }
    /// Sent with every request and handshake. Authorization, Accept and Last-Event-ID are set by
    /// the connection and refused.
    /// - Option: headers, headers
    package var headers = HeaderFields()
    /// - Option: network, network
    package var network = NetworkConfiguration()
    /// - Options: Redirects.Rules
    package var redirects = Redirects.Rules(of: .spreadbot)
    /// - Options: HTTPOptions, connect_timeout = .seconds(10)
    package var http = HTTPOptions(connectTimeout: .seconds(10))

    /// How many attempts in a row may follow a failure on one transport before the next transport
    /// is tried. A message, or a connection that lasts (`stable_time`), resets the count.
    /// - Option: max_reconnects, count 0...
    package var maxReconnects = 3
    /// How often in a row all transports may fail before the connection ends with
    /// RT_ERROR_RECONNECTS_EXHAUSTED. Each further round begins with the first transport, after a
    /// delay that starts at 0.5 to 1 s and doubles up to `max_delay`; the error callback receives
    /// the same error, not fatal, with the delay. A message, a connection that lasts, or the return
    /// of the network resets the count. A server that refuses the client (403, 404, close codes
    /// 1008, 3003 and 4403, tokens that cannot be refreshed) ends the connection in any round.
    /// - Option: max_rounds, count 0..., unlimited
    package var maxRounds = 1
    /// The longest delay between attempts on one transport, and between rounds over all transports.
    /// These delays start at 0.5 to 1 s and double.
    /// - Option: max_delay, delay
    package var maxDelay: Duration = .seconds(30)
    /// How long a connection without a message must last before the failure count is reset.
    /// - Option: stable_time, delay
    package var stableTime: Duration = .seconds(10)
    /// The time before the WebSocket is tried again while another transport is in use. It doubles
    /// with each failed try, up to `max_upgrade_interval`; a change of the network causes a try at
    /// once.
    /// - Option: upgrade_interval, limit, zero means never
    package var upgradeInterval: Duration = .seconds(300)
    /// The longest time between two tries of the WebSocket.
    /// - Option: max_upgrade_interval, delay
    package var maxUpgradeInterval: Duration = .seconds(3600)
    /// The time limit from a ready connection to the head of the response, for WebSocket and
    /// server-sent events. A transport that exceeds it is replaced by the next one.
    /// - Option: answer_timeout, limit
    package var answerTimeout: Duration = .seconds(5)
    /// The time limit for a refresh of tokens.
    package static let refreshTimeout = Duration.seconds(30)
    /// The time between the pings that keep a WebSocket alive, and how long the server may send
    /// nothing after a ping before the connection is lost.
    /// - Option: ping_interval, limit, zero means no pings
    package var pingInterval: Duration = .seconds(20)
    /// The minimum time between the starts of two polls if the server responds at once with nothing
    /// new.
    /// - Option: poll_interval, delay
    package var pollInterval: Duration = .seconds(15)
    /// How long the server may hold a poll before the next one starts.
    /// - Option: poll_timeout, limit
    package var pollTimeout: Duration = .seconds(60)

    /// How many sends may wait for a connection; further ones end with RT_ERROR_QUEUE_FULL. Frames
    /// that a WebSocket has accepted do not count.
    /// - Option: queue_capacity, count 0...
    package var queueCapacity = 100
    /// Which send ends with RT_ERROR_QUEUE_FULL when the queue is full: the new one, or the one
    /// that has waited longest.
    /// - Option: queue_overflow, choice rt_rest_overflow RT_REST_OVERFLOW REST.Overflow rejectNew
    ///   dropOldest
    package var overflow = RESTConfiguration.Overflow.rejectNew
    /// The largest message received, after decompression. A frame or a JSON batch may always have
    /// 16 MiB. A transport on which a larger one arrives is replaced by the next one.
    /// - Option: max_message_bytes, bytes, python max_size = 16 << 20
    package var maxMessageBytes = 64 << 20

    /// The delays between attempts on one transport, and between rounds, instead of `max_delay`.
    /// The backoff's limit of attempts and stable time are not used; `max_reconnects`, `max_rounds`
    /// and `stable_time` are.
    /// - Option: backoff, backoff
    package var backoff: BackoffConfiguration?

    /// The delays between attempts (B10).
    var delays: BackoffConfiguration {
        var delays = backoff ?? BackoffConfiguration(maximum: maxDelay)
        // `maxReconnects` counts the attempts instead.
        delays.attemptLimit = 0
        delays.stableTime = stableTime
        return delays
    }

    package init(base: String) throws(RealtimeError) {
        self.base = try HTTPURL(parsing: base, as: .http)
        guard !self.base.target.utf8.contains(UInt8(ascii: "?")) else {
            throw RealtimeError(
                .invalidURL,
                "the base URL of \(self.base.displayName) has a query, but paths follow it")
        }
    }

    /// The options of a connection that cannot be used.
    package init() { base = .unusable }

    /// Sets the transports to try, in this order.
    package mutating func setTransports(_ list: [SpreadbotTransport]) throws(RealtimeError) {
        guard !list.isEmpty, Set(list).count == list.count else {
            throw RealtimeError(
                .invalidArgument, "transports must not be empty or contain duplicates")
        }
        transports = list
    }

    /// - Parameter url: a whole URL with the scheme http, https, ws or wss.
    package mutating func setURL(
        of transport: SpreadbotTransport, _ url: String
    ) throws(RealtimeError) {
        overrides[transport] = try SpreadbotConfiguration.parse(url, for: transport)
    }

    package mutating func setSendURL(_ url: String) throws(RealtimeError) {
        sendURL = try HTTPURL(parsing: url, as: .http)
    }

    package mutating func setAuthURL(_ url: String) throws(RealtimeError) {
        authURL = try HTTPURL(parsing: url, as: .http)
    }

    package mutating func setTokens(access: String, refresh: String) throws(RealtimeError) {
        if !access.isEmpty { _ = try HeaderField.bearerAuthorization(access) }
        accessToken = access
        refreshToken = refresh
    }

    package mutating func setBasicCredentials(_ base64: String) throws(RealtimeError) {
        try HeaderField.validate(name: "Authorization", value: "Basic " + base64)
        basicCredentials = base64
    }

    package mutating func setLastEventID(_ id: String) throws(RealtimeError) {
        guard !id.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else {
            throw RealtimeError(.invalidArgument, "the last event id has a control character")
        }
        lastEventID = id
    }

    package static func check(_ name: String, _ value: String) throws(RealtimeError) {
        try ClientHandshake.validate(fieldName: name, value: value)
        let own = ["Authorization", "Accept", "Last-Event-ID"]
        guard !own.contains(where: { $0.equalsIgnoringASCIICase(name) }) else {
            throw RealtimeError(
                .invalidHeader, "the header \(name.quoted()) is set by the connection itself")
        }
    }

    // MARK: Where requests go (B1)

    /// base + "/" + path with exactly one slash between; a query of the path is kept.
    package func url(path: String) throws(RealtimeError) -> HTTPURL {
        let path = path.prefix { $0 != "#" }
        if path.isEmpty { return base }
        var root = base.requestURL[...]
        while root.utf8.last == UInt8(ascii: "/") { root = root.dropLast() }
        let rest = path.drop { $0 == "/" }
        let joint = rest.utf8.first == UInt8(ascii: "?") ? "" : "/"
        try checkBelowBase(rest, base)
        return try HTTPURL(parsing: root + joint + rest, as: .http).withCredentials(of: base)
    }

    /// The URL to which a leg connects for a path.
    package func url(
        of transport: SpreadbotTransport, path: String
    ) throws(RealtimeError) -> HTTPURL {
        if let override = overrides[transport] { return override }
        let url = try url(path: path)
        guard transport == .webSocket else { return url }
        return try SpreadbotConfiguration.parse(url.requestURL, for: .webSocket)
            .withCredentials(of: url)
    }

    /// Whether a transport's URL has another host or port than the base URL.
    func goesElsewhere(_ transport: SpreadbotTransport) -> Bool {
        guard let override = overrides[transport] else { return false }
        return !override.host.hasSameBytes(as: base.host) || override.port != base.port
    }

    private static func parse(
        _ url: String, for transport: SpreadbotTransport
    ) throws(RealtimeError) -> HTTPURL {
        let names: [(String, String)] =
            transport == .webSocket
            ? [("http://", "ws://"), ("https://", "wss://")]
            : [("ws://", "http://"), ("wss://", "https://")]
        let kind: HTTPURL.Kind = transport == .webSocket ? .webSocket : .http
        for (given, wanted) in names
        where url.utf8.count >= given.utf8.count
            && url.prefix(given.count).equalsIgnoringASCIICase(given)
        {
            return try HTTPURL(parsing: wanted + url.dropFirst(given.count), as: kind)
        }
        return try HTTPURL(parsing: url, as: kind)
    }
}
