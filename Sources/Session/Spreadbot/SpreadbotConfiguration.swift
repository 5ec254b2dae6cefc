package import Wire

/// The ways messages come, from the best to the one that passes everywhere (docs/spreadbot.md, B9).
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

/// What a user can set on a Spreadbot connection; the C ABI's `rt_spreadbot_set_*`, with the same
/// defaults (docs/spreadbot.md).
package struct SpreadbotConfiguration: Sendable {
    /// What paths are appended to.
    package let base: HTTPURL
    package private(set) var transports = SpreadbotTransport.allCases
    /// Whole URLs in the place of base and path.
    package private(set) var overrides: [SpreadbotTransport: HTTPURL] = [:]
    package private(set) var sendURL: HTTPURL?

    /// Where access tokens are refreshed; nil when they cannot be.
    package private(set) var authURL: HTTPURL?
    package private(set) var accessToken = ""
    package private(set) var refreshToken = ""
    /// The credentials of a basic Authorization, as base64 already.
    package private(set) var basicCredentials = ""
    /// The access token's name as a query parameter, beside the header.
    package var tokenQueryParameter: String?
    /// The cursor's name as a query parameter, beside the header.
    package var idQueryParameter: String?
    package private(set) var lastEventID = ""

    /// Of every request and handshake.
    package private(set) var fields: [HeaderField] = []
    package var network = NetworkConfiguration()
    package var redirects = Redirects.Rules()
    package var compression = true
    package var http2 = true

    /// Attempts in a row on one leg after one that failed; none with 0.
    package var maxReconnects = 3
    /// How often in a row the whole ladder may fail; 0 is no limit. Delays between two rounds grow
    /// as those between the attempts on one leg do.
    package var maxRounds = 1
    package var maxDelay: Duration = .seconds(30)
    /// How long a connection must stand for the count to begin anew.
    package var stableTime: Duration = .seconds(10)
    /// Before the WebSocket is tried from a lower leg, doubling up to `maxUpgradeInterval`; zero
    /// for never.
    package var upgradeInterval: Duration = .seconds(300)
    package var maxUpgradeInterval: Duration = .seconds(3600)
    package var connectTimeout: Duration = .seconds(10)
    /// From a connection that stands to the head of the answer.
    package var answerTimeout: Duration = .seconds(5)
    /// For the answer to a refresh of tokens.
    package static let refreshTimeout = Duration.seconds(30)
    package var pingInterval: Duration = .seconds(20)
    package var pollInterval: Duration = .seconds(15)
    package var pollTimeout: Duration = .seconds(60)

    /// Sends that wait for a connection.
    package var queueCapacity = 100
    package var overflow = RESTConfiguration.Overflow.rejectNew
    /// Bytes of one message received.
    package var maxMessageBytes = 64 << 20

    package init(base: String) throws(RealtimeError) {
        self.base = try HTTPURL(parsing: base, as: .http)
        guard !self.base.target.utf8.contains(UInt8(ascii: "?")) else {
            throw RealtimeError(
                .invalidURL,
                "the base URL of \(self.base.displayName) has a query, and a path follows")
        }
    }

    /// Which legs are tried, in this order.
    package mutating func setTransports(_ list: [SpreadbotTransport]) throws(RealtimeError) {
        guard !list.isEmpty, Set(list).count == list.count else {
            throw RealtimeError(
                .invalidArgument, "the transports are none, or one of them is named twice")
        }
        transports = list
    }

    /// - Parameter url: whole; of any of the schemes http, https, ws and wss.
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

    package mutating func addHeader(name: String, value: String) throws(RealtimeError) {
        try ClientHandshake.validate(fieldName: name, value: value)
        try HeaderField.validateRepeated(name: name, value: value)
        let own = ["Authorization", "Accept", "Last-Event-ID"]
        guard !own.contains(where: { $0.equalsIgnoringASCIICase(name) }) else {
            throw RealtimeError(
                .invalidHeader, "the header \(name.quoted()) is set by the connection itself")
        }
        fields.append(HeaderField(name: name, value: value))
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

    /// Where a leg connects for a path.
    package func url(
        of transport: SpreadbotTransport, path: String
    ) throws(RealtimeError) -> HTTPURL {
        if let override = overrides[transport] { return override }
        let url = try url(path: path)
        guard transport == .webSocket else { return url }
        return try SpreadbotConfiguration.parse(url.requestURL, for: .webSocket)
            .withCredentials(of: url)
    }

    /// Whether a leg goes to another host or port than the base.
    func goesElsewhere(_ transport: SpreadbotTransport) -> Bool {
        guard let override = overrides[transport] else { return false }
        return override.host != base.host || override.port != base.port
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
