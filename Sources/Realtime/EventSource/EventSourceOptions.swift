internal import Engine
internal import Session
public import Wire

extension EventSource {
    /// The options of an event source. The defaults suit most programs.
    public struct Options: SourceOptions, Sendable {
        public typealias Header = (name: String, value: String)

        public var method = "GET"
        /// The request's body, sent with each attempt, usually with the method POST.
        public var body: [UInt8]? {
            get { hiddenBody.value }
            set { hiddenBody.value = newValue }
        }
        private var hiddenBody = Hidden<[UInt8]?>(nil)
        /// Called before each attempt, with its number since the last stable connection, from 1.
        /// The headers that it returns override `headers` for this attempt. A thrown error is
        /// fatal.
        ///
        /// It may take time, for example to fetch a token: the attempt waits for it without a time
        /// limit, and the attempt's own limits begin after it. Everything else on the loop
        /// continues. It runs on the actor to which it is isolated, otherwise on the task executor
        /// or queue of `executor`, or else where Swift runs asynchronous functions. The same
        /// applies to `onRequest` and `credentials`.
        public var headerProvider: (@Sendable (_ attempt: Int) async throws -> [Header])?
        /// Called after `headerProvider`. It may change the URL and the `headers` of this attempt
        /// and those after it; false closes the event source, and a thrown error is fatal.
        public var onRequest:
            (@Sendable (_ attempt: Int, _ next: inout NextAttempt) async throws -> Bool)?
        /// Called when the server responds with 401, or the proxy with 407, once per attempt. It
        /// returns headers for repeating the request (Proxy-Authorization for the proxy), or nil
        /// for none. nil and thrown errors are fatal.
        public var credentials: (@Sendable (HTTPResponse) async throws -> [Header]?)?

        /// The last event id that the first request sends; it overrides the id file. nil uses the
        /// file's.
        public var lastEventID: String?
        /// A file that keeps the last event id between runs. Any number of sources and processes
        /// may share it. It is written at most once a second and at close. A file with other
        /// content, owned by another user or writable by others, or a symbolic link, is refused and
        /// not changed; `onError` reports that (`.store`, not fatal), and no id is kept. An event
        /// counts as processed when the iteration asks for the next one; otherwise it comes again.
        public var idFile: String?
        /// This program's file for `idFile`; see `EventSource.IDFile.standard`. nil if it cannot be
        /// used; the log says why.
        public static var standardIDFile: String? {
            StandardIDFile.path(for: CommandLine.arguments.first ?? "")
        }
        /// The key under which this source's id is stored, in `idFile` and by `onStore`; nil for
        /// its URL at start, whatever `onRequest` sets.
        public var storeKey: String? {
            get { hiddenStoreKey.value }
            set { hiddenStoreKey.value = newValue }
        }
        private var hiddenStoreKey = HiddenURL(nil)

        /// Called to store an id, when `idFile` would store it; "" means to delete it. In the next
        /// run, pass the stored id as `lastEventID`. Always called on the loop's thread, because
        /// `close` waits for its end. It must not block: everything else on the loop, also each
        /// time limit, waits for it.
        public var onStore: (@Sendable (_ key: String, _ id: String) -> Void)?

        /// Where handlers run, one at a time: the main actor by default. A handler that is isolated
        /// to an actor, for example in main-actor code, runs on that actor, whatever the executor.
        /// With `.loop` it runs on the loop's thread, and must not block: everything else on the
        /// loop, also each time limit, waits for it.
        public var executor = HandlerExecutor.main

        /// HTTP statuses on which the event source reconnects; `resilient` lists the temporary
        /// ones.
        public var retryStatuses: Set<Int> = []

        /// How many events may wait for the iteration, and how many for handlers; above that the
        /// server is slowed down. If other requests share the HTTP/2 connection, libcurl first
        /// buffers up to 32 MiB, its window for a stream (`http2`).
        public var maxBufferedEvents = 1024
        /// How many bytes may wait for the iteration, and how many for handlers.
        public var maxBufferedBytes = 8 << 20

        // abigen: the options of EventSourceConfiguration
        /// Sent with each request. An Accept header is used if it names text/event-stream.
        /// Cache-Control and Last-Event-ID are set by the event source.
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
        /// a second. It must belong to the same loop. nil means `.auto`, shared by all objects on
        /// the loop.
        public var reachability: Reachability?
        /// How many redirects are followed (301, 302, 303, 307 and 308). With 0 a redirect is
        /// reported like any other response. A redirect to another origin carries only these
        /// headers: Accept, Accept-Encoding, Accept-Language, Cache-Control, Content-Type,
        /// Last-Event-ID, User-Agent, and those set as safe.
        public var maxRedirects = 20
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
        /// A query parameter that carries the last event id, in addition to the header
        /// Last-Event-ID, for servers and proxies that ignore the header.
        public var idQueryParameter: String?
        /// Whether the event source reconnects when the stream ends or an attempt fails.
        public var reconnect = true
        /// Whether a request that is neither safe nor idempotent (POST, PATCH) is sent again when
        /// its stream ends, or after a failure before which the server may have acted on it.
        /// Without this option the event source then closes, and an iteration ends, without an
        /// error if the stream ended normally. It connects again only if the request cannot have
        /// reached the server, after a retry status, or if the request has an Idempotency-Key.
        public var retryUnsafe = false
        /// How many attempts in a row may fail, or end before they are stable (`stableTime`). After
        /// that the event source fails with `.reconnectsExhausted`. 0 means no limit.
        public var maxReconnects = 0
        /// The reconnection time until the server sends `retry`: the delay before the first
        /// reconnect, plus up to a fifth at random.
        public var reconnectionTime = Duration.seconds(3)
        /// The shortest reconnection time that a `retry` field of the server can set.
        public var minReconnectionTime = Duration.milliseconds(500)
        /// The longest delay between consecutive failed attempts. It is never below the
        /// reconnection time.
        public var maxDelay = Duration.seconds(30)
        /// How long a stream must last before the failure count is reset. A stream that delivered
        /// an event before the server ended it does not count as a failure either.
        public var stableTime = Duration.seconds(10)
        /// The delays and the limit of attempts, instead of `reconnectionTime`, `maxDelay`,
        /// `maxReconnects` and `stableTime`. A `retry` field of the server still sets the initial
        /// delay.
        public var backoff: Backoff?
        /// The time limit from the request, on an open connection, to the head of its response.
        /// Many servers send the head only with the first event, which may take minutes. It begins
        /// anew while the request's body arrives, over a slow link. nil means no limit.
        public var responseTimeout: Duration? = .seconds(300)
        /// How long the server may send nothing, not even comments, before the event source
        /// reconnects. Without it TCP keep-alive still notices a dead connection. nil means no
        /// limit.
        public var idleTimeout: Duration?
        /// Whether compressed responses are requested and decoded: gzip, deflate, and, if
        /// libbrotlidec and libzstd are installed, br and zstd. A response that cannot be decoded
        /// is a `.protocolViolation`. What is not a known coding, such as "utf-8", is ignored, and
        /// the body passed on as it came.
        public var compression = true
        /// Whether HTTP/2 is offered in the TLS handshake. It is never used through a proxy.
        public var http2 = true
        /// The time limit for opening a connection: name resolution, TCP and TLS. nil means no
        /// limit.
        public var connectTimeout: Duration? = .seconds(15)
        /// The longest line of the stream. Comments without a listener, and lines of unknown
        /// fields, do not count. A longer line is a `.tooLarge`, after which nothing more is read.
        /// 0 means no limit.
        public var maxLineBytes = 64 << 20
        /// The most data of one event. More is a `.tooLarge`, after which nothing more is read. 0
        /// means no limit.
        public var maxEventBytes = 64 << 20
        /// The longest id, and the longest type, of an event. A longer one is a `.tooLarge`, after
        /// which nothing more is read. 0 means no limit.
        public var maxNameBytes = 64 << 10
        // abigen: end

        public init() {}

        /// Statuses that are usually temporary, such as those of proxies: 408, 425, 429, 500, 502,
        /// 503, 504, and Cloudflare's 520 to 524 and 530.
        public static let resilient = Set(EventSourceConfiguration.resilientStatuses)

        /// - Throws: `RealtimeError` for an invalid URL or option.
        func connection(
            to url: String, on loop: Loop
        ) throws(RealtimeError) -> EventSourceConnection {
            let connection = try EventSourceConnection(url: url, on: loop.engine)
            try connection.configure { (target) throws(RealtimeError) in try apply(to: &target) }
            try connection.setReachability(reachability?.engine)
            return connection
        }

        private func apply(to target: inout EventSourceConfiguration) throws(RealtimeError) {
            try target.setMethod(method)
            target.body = body
            if let lastEventID { try target.setLastEventID(lastEventID) }
            guard storeKey == nil || idFile != nil || onStore != nil else {
                throw RealtimeError(.invalidArgument, "storeKey needs an idFile or onStore")
            }
            try target.setIDFile(idFile, key: storeKey)
            for status in retryStatuses { try target.addRetryStatus(status) }
            try applyPlain(to: &target)
            _ = try OptionCheck.atLeast(1, maxBufferedEvents, "maxBufferedEvents")
            _ = try OptionCheck.atLeast(1, maxBufferedBytes, "maxBufferedBytes")
        }

        /// - Parameter end: called when an attempt is declined.
        func addHandlers(
            to connection: EventSourceConnection, _ handlers: inout EventSourceHandlers,
            _ end: @escaping @Sendable () -> Void
        ) {
            let attempts = attempts(of: connection, end)
            handlers.storeID = onStore
            handlers.request = attempts.request
            handlers.credentials = attempts.credentials
        }
    }
}
