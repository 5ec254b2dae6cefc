internal import Engine
internal import Session
internal import Wire

extension DDPClient {
    /// The options of a client. The defaults suit most programs.
    public struct Options: Sendable {
        /// Returns the token of an earlier login, for programs that keep it themselves, and not in
        /// a file (`tokenFile`). Called at the client's first use, on the thread of that use, and
        /// before each connection, on the loop's thread. It must not use the client, and not block:
        /// everything else on the loop, also each time limit, waits for it.
        public var loadToken: (@Sendable () -> String?)?
        /// Keeps a token for `loadToken`; nil removes it. Always called on the loop's thread;
        /// it must not block, like `loadToken`.
        public var storeToken: (@Sendable (String?) -> Void)?

        /// Where handlers run, one at a time: the main actor by default. A handler that is isolated
        /// to an actor, for example in main-actor code, runs on that actor, whatever the executor.
        /// With `.loop` it runs on the loop's thread, and must not block: everything else on the
        /// loop, also each time limit, waits for it.
        public var executor = HandlerExecutor.main

        // abigen: the options of DDPClientConfiguration
        /// Sent with the handshake of the WebSocket, and with each request of SockJS. Names that
        /// begin with Sec-WebSocket- are reserved for the handshake and refused. Cookies that the
        /// server or a load balancer sets are sent back by themselves.
        public var headers: [(name: String, value: String)] {
            get { hiddenHeaders.value }
            set { hiddenHeaders.value = newValue }
        }
        private var hiddenHeaders = Hidden<[(name: String, value: String)]>([])
        /// The settings for connections: TLS, proxies, addresses, sockets.
        public var network = Network()
        /// The reachability monitor. While the server cannot be reached, no attempt is made, not
        /// even the first, unless a failed one would not be repeated; none is counted, and the wait
        /// is reported once, without a delay. Once the network returns, the attempt follows within
        /// a second. A Meteor client makes it at once. It must belong to the same loop. nil means
        /// `.auto`, shared by all objects on the loop.
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
        /// Whether the WebSocket offers permessage-deflate, and SockJS accepts compressed
        /// responses.
        public var compression = true
        /// Whether SockJS offers HTTP/2 in the TLS handshake. It is never used through a proxy.
        public var http2 = true
        /// Whether SockJS, which needs only HTTP requests, is used where WebSockets do not get
        /// through.
        public var sockJSFallback = true
        /// The largest message received, after decompression; with SockJS the largest frame, which
        /// has all messages since the last one. If a message has more than 65,536 values and names
        /// of fields, each of them counts as at least 64 bytes. A larger message ends the
        /// connection, which is then attempted again. 0 means no limit.
        public var maxMessageBytes = 16 << 20
        /// How many bytes may wait to be sent on an open connection. A single message may be
        /// longer. Calls and subscriptions that wait for a connection do not count.
        public var maxUnsentBytes = 64 << 20
        /// Keeps the user logged in between runs: the file in which the login's token is kept.
        /// Several clients and processes may share it. It is created with mode 0600, and replaced
        /// as a whole.
        public var tokenFile: String?
        /// Keeps the documents between runs: the file in which those of the server are written, at
        /// most once a second. A client that starts has them at once; those that the server does
        /// not send again are removed when all subscriptions are ready, or refused, that were ready
        /// before, or after the quiescence limit. Documents of another user are not used. The file
        /// is created with mode 0600, and replaced as a whole. Each client needs a file of its own.
        public var documentFile: String?
        /// The protocol versions that are offered, the preferred one first; without any, 1, pre2
        /// and pre1.
        public var versions: [String] = []
        /// The time limit for an attempt, from its start until the server confirms the connection.
        /// nil means no limit.
        public var connectTimeout: Duration? = .seconds(10)
        /// Whether a connection that is lost, or cannot be opened, is attempted again. Otherwise
        /// the client fails, and with it all calls that wait.
        public var autoReconnect = true
        /// The delays between attempts, instead of 10 ms twice, and then 1 s times a power of 2.2,
        /// up to 5 minutes, within a quarter more or less at random. They begin anew after a
        /// connection that lasted for a second, or for the backoff's stable time. The backoff's
        /// limit of attempts is not used.
        public var backoff: Backoff?
        /// How long the connection may be silent before the server is asked for a sign of life. nil
        /// means no limit.
        public var heartbeatInterval: Duration? = .milliseconds(17500)
        /// How long the server may stay silent after it was asked for a sign of life. Then the
        /// connection is given up, unless some of the bytes that were sent before have arrived
        /// since: over a slow link the question comes after them. nil means no limit.
        public var heartbeatTimeout: Duration? = .seconds(15)
        /// Documents that arrive are applied together, this long after the last of them. Zero
        /// applies each at once.
        public var bufferInterval = Duration.milliseconds(5)
        /// The longest time that a document waits while others arrive.
        public var bufferMaxAge = Duration.milliseconds(500)
        /// How long documents are held back until subscriptions are ready again, or a call that
        /// others wait for is done. nil means no limit.
        public var quiescenceLimit: Duration? = .seconds(30)
        /// How often a call is sent again whose connections are lost before its result. Then it
        /// fails as one with `no_retry` does at once, because it may have run on the server each
        /// time. 0 means no limit.
        public var maxCallRepeats = 0
        /// Methods whose calls are never sent again, as with `no_retry`.
        public var noRetryMethods: [String] = []
        /// Whether writes to collections call the server's methods `insertAsync`, `updateAsync` and
        /// `removeAsync`, which exist from Meteor 3.0 on, and not `insert`, `update` and `remove`.
        /// Both do the same. A collection of Meteor 3.0.0 to 3.1.0 that has allow rules only for
        /// the former refuses the latter.
        public var asyncMethods = false
        /// Whether the end of a subscription is also reported when the program itself has stopped
        /// or released it: without an error, as Meteor's own client does.
        public var reportOwnStops = false
        /// How long a subscription that nobody uses is kept.
        public var unusedSubscriptionTime = Duration.seconds(180)
        /// How long the connection is kept when the application moves to the background.
        public var backgroundGrace = Duration.seconds(180)
        /// The most memory, in bytes as the client estimates them, that documents of the server may
        /// take. A server that sends more ends the client for good, because the documents would not
        /// be those of the server any more. 0 means no limit.
        public var maxDocumentBytes = 1024 << 20
        // abigen: end

        public init() {}

        func apply(to target: inout DDPClientConfiguration) throws(RealtimeError) {
            try applyPlain(to: &target)
        }
    }
}
