internal import Engine
internal import Session
internal import Wire

/// The server to which a connection is made.
public enum PusherHost: Sendable, Hashable {
    /// A name or an address, without scheme and path.
    case host(String)
    /// A cluster of Pusher, such as `eu`.
    case cluster(String)
    /// The host of Pusher's first cluster.
    case defaultHost
}

/// The options of a Pusher connection. The initializers have PusherSwift's parameters; everything
/// else is set afterwards.
public struct PusherClientOptions: Sendable {
    /// Returns headers or form fields for a request to an endpoint. An error that it throws fails
    /// the subscription or sign-in.
    public typealias Provider = @Sendable () async throws -> [(name: String, value: String)]

    /// How the connection gets permission for private, encrypted and presence channels.
    public var authMethod = AuthMethod.noMethod
    /// How `Pusher.signIn` signs the user in; nil if it is not used.
    public var userAuthMethod: PusherUserAuthMethod?
    /// Headers of each request to an authorization endpoint.
    public var authHeaders: [(name: String, value: String)] {
        get { hiddenAuthHeaders.value }
        set { hiddenAuthHeaders.value = newValue }
    }
    private var hiddenAuthHeaders = Hidden<[(name: String, value: String)]>([])
    /// Returns further headers for each request to an endpoint, such as a token that changes. They
    /// replace those of the same names.
    public var authHeadersProvider: Provider?
    /// Further form fields of each request to an endpoint.
    public var authParams: [(name: String, value: String)] {
        get { hiddenAuthParams.value }
        set { hiddenAuthParams.value = newValue }
    }
    private var hiddenAuthParams = Hidden<[(name: String, value: String)]>([])
    /// Returns further form fields for each request to an endpoint, also for one that an
    /// `AuthMethod.authRequestBuilder` makes, whose body must then be a form.
    public var authParamsProvider: Provider?
    /// The key of which the keys of encrypted channels are derived, 32 bytes. Only for
    /// `AuthMethod.inline`.
    public var encryptionMasterKey: [UInt8]? {
        get { hiddenEncryptionMasterKey.value }
        set { hiddenEncryptionMasterKey.value = newValue }
    }
    private var hiddenEncryptionMasterKey = Hidden<[UInt8]?>(nil)
    /// The URL of the service for push notifications; nil for the one that Pusher had.
    public var pushURL: String? {
        get { hiddenPushURL.value }
        set { hiddenPushURL.value = newValue }
    }
    private var hiddenPushURL = HiddenURL(nil)
    /// Whether callbacks without an event object receive parsed JSON; false: the text.
    public var attemptToReturnJSONObject = true
    public var host = PusherHost.defaultHost
    /// How many reconnects in a row may fail before the connection gives up, without the first
    /// attempt; nil means no limit. Can be changed later, by
    /// `PusherConnection.reconnectAttemptsMax`.
    public var reconnectAttemptsMax: Int?
    /// The longest delay between attempts; nil means no limit. Can be changed later, by
    /// `PusherConnection.maxReconnectGapInSeconds`.
    public var maxReconnectGapInSeconds: Double? = 120
    /// Where handlers run. Closures that are isolated to an actor run there. The delegate, the
    /// authorizer, the request builder and `userDataFetcher` are called on the main actor.
    /// Asynchronous functions run where they are isolated, otherwise on the task executor or queue
    /// named here, or else where Swift runs such functions.
    public var executor = HandlerExecutor.main
    /// How many events may wait for an iteration or the executor, before the server is slowed down.
    public var maxBufferedEvents = 1024
    /// How many bytes may wait for them.
    public var maxBufferedBytes = 8 << 20

    // abigen: the options of PusherConfiguration
    /// Whether the connection uses TLS.
    public var useTLS = true
    /// The port of the server. 0 means 443 with TLS and 80 without.
    public var port = 0
    /// A prefix of the path in the URL, for servers behind a proxy, such as `/ws`.
    public var path: String?
    /// Whether the subprotocol pusher-channels-protocol-7 is offered in the handshake. Handshakes
    /// with servers that do not know it fail then.
    public var offerSubprotocol = false
    /// Whether a server that closes with 4000, because it accepts only TLS, is tried once more with
    /// TLS. Otherwise the connection ends.
    public var upgradeOn4000 = false
    /// Sent with the handshake of the WebSocket. Names that begin with Sec-WebSocket- are reserved
    /// for the handshake and refused.
    public var headers: [(name: String, value: String)] {
        get { hiddenHeaders.value }
        set { hiddenHeaders.value = newValue }
    }
    private var hiddenHeaders = Hidden<[(name: String, value: String)]>([])
    /// The settings for connections: TLS, proxies, addresses, sockets.
    public var network = Network()
    /// The reachability monitor. While the server cannot be reached, no attempt is made, not even
    /// the first, unless a failed one would not be repeated; none is counted, and the wait is
    /// reported once, without a delay. Once the network returns, the attempt follows within a
    /// second. When the network changes, a ping checks an open connection. It must belong to the
    /// same loop. nil means `.auto`, shared by all objects on the loop.
    public var reachability: Reachability?
    /// How many redirects are followed (301, 302, 303, 307 and 308). With 0 a redirect is reported
    /// like any other response. A redirect to another origin carries only these headers: Accept,
    /// Accept-Encoding, Accept-Language, Cache-Control, Content-Type, Last-Event-ID, User-Agent,
    /// and those set as safe.
    public var maxRedirects = 5
    /// Whether a redirect may lead from https to http, or from wss to ws.
    public var allowInsecureRedirects = false
    /// Names of headers that are also sent when a redirect leads to another origin.
    public var safeHeaders: [String] = []
    /// Origins that a redirect may lead to as if they were the URL's own: scheme, host and port,
    /// such as "https://files.example.org", or "*" for all. They receive everything: all headers,
    /// credentials, bodies and messages. A redirect to any other origin fails with `.redirect` if a
    /// body would be sent there, or the messages of a WebSocket, unless it is the same host by TLS.
    public var redirectOrigins: [String] = []
    /// Whether the WebSocket offers permessage-deflate, and whether compressed responses to the
    /// requests for authorization and push interests are accepted.
    public var compression = true
    /// Whether the requests for authorization and push interests offer HTTP/2 in the TLS handshake.
    /// It is never used through a proxy.
    public var http2 = true
    /// The time limit for an attempt, from its start until the server confirms the connection. nil
    /// means no limit.
    public var connectTimeout: Duration? = .seconds(30)
    /// How long the server may be silent before it is asked for a sign of life. The server names
    /// such a time when it confirms the connection (or else it is 60 s); the shorter one is used.
    /// nil means the server's choice.
    public var activityTimeout: Duration?
    /// How long the server may stay silent after it was asked for a sign of life, before the
    /// connection counts as lost. While bytes that were sent before arrive, over a slow link, the
    /// time begins anew. nil means no limit.
    public var pongTimeout: Duration? = .seconds(30)
    /// Whether the server is asked for a sign of life by a ping frame of WebSocket, and not by the
    /// event `pusher:ping`. Some servers, such as soketi, end connections that use only frames.
    public var framePings = false
    /// Whether a connection that is lost, or cannot be opened, is attempted again. Otherwise it
    /// ends.
    public var autoReconnect = true
    /// The time limit for a request to an endpoint, with its redirects. A function of the program
    /// that authorizes has a second more to answer. nil means no limit.
    public var authTimeout: Duration? = .seconds(30)
    /// How often the authorization of a channel is repeated when the endpoint cannot be reached,
    /// does not answer in time, or answers with a status of 500 or above. The delays are 1 s, 2 s,
    /// 4 s, and so on.
    public var authRetries = 0
    /// How many channels one request to the endpoint may authorize. With 1 each channel has a
    /// request of its own, which every endpoint understands. With more, the endpoint must accept
    /// several channels in one request: it gets `channel_name[0]`, `channel_name[1]` and so on, and
    /// answers with a JSON object that has a member for each name.
    public var authBatchSize = 1
    /// The longest name of a channel. Pusher allows 164 characters, some other servers 200. 0 means
    /// no limit.
    public var maxChannelNameLength = 164
    /// How many client events of a channel may wait until it is subscribed. Further ones are
    /// dropped and reported.
    public var clientEventQueue = 100
    /// How many client events may be sent in a second. Further ones wait in the queue of their
    /// channel. Pusher allows ten and drops the others. 0 means no limit.
    public var clientEventRate = 0
    /// The largest message received, after decompression. If a message has more than 65,536 values
    /// and names of members, each of them counts as at least 64 bytes. A larger message ends the
    /// connection, which is then attempted again. 0 means no limit.
    public var maxMessageBytes = 16 << 20
    // abigen: end

    /// - Parameter activityTimeout: in seconds.
    public init(
        authMethod: AuthMethod = .noMethod, attemptToReturnJSONObject: Bool = true,
        autoReconnect: Bool = true, host: PusherHost = .defaultHost, port: Int? = nil,
        path: String? = nil, useTLS: Bool = true, activityTimeout: Double? = nil
    ) {
        self.authMethod = authMethod
        self.attemptToReturnJSONObject = attemptToReturnJSONObject
        self.autoReconnect = autoReconnect
        self.host = host
        self.port = port ?? 0
        self.path = path
        self.useTLS = useTLS
        self.activityTimeout = activityTimeout.map { .seconds($0) }
    }

    /// Removes what may have captured objects of the program.
    mutating func releaseFunctions() {
        switch authMethod {
        case .authRequestBuilder, .authorizer: authMethod = .noMethod
        case .endpoint, .inline, .noMethod: break
        }
        if case .authorizer = userAuthMethod { userAuthMethod = nil }
        authHeadersProvider = nil
        authParamsProvider = nil
    }

    // MARK: The engine

    func connection(
        _ key: String, on loop: Loop
    ) throws(RealtimeError) -> Engine.PusherConnection {
        let connection = try Engine.PusherConnection(key: key, on: loop.engine)
        do throws(RealtimeError) {
            try connection.configure { (target) throws(RealtimeError) in try apply(to: &target) }
            // Now, because it has parts of several options.
            _ = try connection.url()
            try connection.setReachability(reachability?.engine)
        } catch {
            connection.close()
            throw error
        }
        return connection
    }

    private func apply(to target: inout PusherConfiguration) throws(RealtimeError) {
        switch host {
        case .host(let name): try target.setHost(name)
        case .cluster(let name): try target.setCluster(name)
        case .defaultHost: break
        }
        switch authMethod {
        case .endpoint(let url): try target.setAuthEndpoint(url)
        case .inline(let secret): target.setSecret(SecretBytes(secret))
        case .authRequestBuilder, .authorizer, .noMethod: break
        }
        if case .endpoint(let url) = userAuthMethod { try target.setUserAuthEndpoint(url) }
        if let encryptionMasterKey {
            try target.setMasterKey(encryptionMasterKey.withUnsafeBytes { SecretBytes($0) })
        }
        for one in authHeaders { try target.setAuthHeader(one.name, one.value) }
        for one in authParams { try target.setAuthParameter(one.name, one.value) }
        if let pushURL { try target.setPushURL(pushURL) }
        if let reconnectAttemptsMax {
            target.reconnectAttemptsMax =
                try OptionCheck.atLeast(0, reconnectAttemptsMax, "reconnectAttemptsMax")
        }
        target.maxReconnectGap = try maxReconnectGapInSeconds.map { gap throws(RealtimeError) in
            try OptionCheck.delay(.seconds(gap), "maxReconnectGapInSeconds")
        }
        _ = try OptionCheck.atLeast(1, maxBufferedEvents, "maxBufferedEvents")
        _ = try OptionCheck.atLeast(1, maxBufferedBytes, "maxBufferedBytes")
        try applyPlain(to: &target)
        // A builder makes requests for one channel.
        if case .authRequestBuilder = authMethod { target.authBatchSize = 1 }
    }
}
