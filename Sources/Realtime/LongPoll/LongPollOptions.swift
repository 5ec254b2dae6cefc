internal import Engine
internal import Session
public import Wire

extension LongPoll {
    /// How polls tell the server which messages have been received.
    public enum Cursor: Sendable, Hashable {
        /// By the last response's Last-Modified and ETag, as If-Modified-Since and If-None-Match.
        case validators
        /// By the id, in a Last-Event-ID header.
        case headerID
        /// By the id, in a query parameter.
        case queryID(parameter: String)
        /// Polls do not say.
        case none
    }

    /// The options of a long poll. The defaults suit most programs.
    public struct Options: SourceOptions, Sendable {
        public typealias Header = (name: String, value: String)

        /// Called before each poll; `attempt` is 1 unless the last poll failed. The headers that it
        /// returns override `headers` for this poll. A thrown error is fatal.
        ///
        /// It may take time, for example to fetch a token: the poll waits for it without a time
        /// limit, and the poll's own limits begin after it. Everything else on the loop continues.
        /// It runs on the actor to which it is isolated, otherwise on the task executor or queue of
        /// `executor`, or else where Swift runs asynchronous functions. The same applies to
        /// `onRequest` and `credentials`.
        public var headerProvider: (@Sendable (_ attempt: Int) async throws -> [Header])?
        /// Called after `headerProvider`. It may change the URL and the `headers` of this poll and
        /// those after it; false closes the long poll, and a thrown error is fatal.
        public var onRequest:
            (@Sendable (_ attempt: Int, _ next: inout NextAttempt) async throws -> Bool)?
        /// Called when the server responds with 401, or the proxy with 407, once per poll. It
        /// returns headers for repeating the poll (Proxy-Authorization for the proxy), or nil for
        /// none. nil and thrown errors are fatal.
        public var credentials: (@Sendable (HTTPResponse) async throws -> [Header]?)?

        public var cursor = Cursor.validators
        /// Starts after the message with this id. With validators it must be the id of a message.
        public var lastEventID = ""

        /// Where handlers run, one at a time: the main actor by default. A handler that is isolated
        /// to an actor, for example in main-actor code, runs on that actor, whatever the executor.
        /// With `.loop` it runs on the loop's thread, and must not block: everything else on the
        /// loop, also each time limit, waits for it.
        public var executor = HandlerExecutor.main

        /// How many messages may wait for the iteration, and how many for a handler.
        public var maxBufferedMessages = 1024
        /// How many bytes may wait for the iteration, and how many for a handler.
        public var maxBufferedBytes = 8 << 20

        // abigen: the options of LongPollConfiguration
        /// Sent with each poll. The default Accept header accepts any type; one that names
        /// text/event-stream is refused.
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
        /// The minimum time between the starts of two polls if the server does not hold polls: it
        /// responds within `minHold`, with nothing or with a message whose cursor one of the last
        /// eight polls had. If messages move the cursor, the next poll starts at once, for the
        /// first 1,000 polls, then up to 100 times a second. Without a cursor (the server sends
        /// none, or none is used), the next poll starts at once after up to 20 messages in a row
        /// that arrive within `minHold`, or five equal ones; after further ones each poll waits for
        /// this time, until the server holds a poll.
        public var interval = Duration.seconds(15)
        /// How long the server may hold a poll before the next one starts, and how long the body of
        /// a response may stall. nil means no limit.
        public var pollTimeout: Duration? = .seconds(60)
        /// How long the server must hold a poll so that the next one starts at once, even if
        /// nothing came or the cursor did not move.
        public var minHold = Duration.seconds(1)
        /// The longest delay after a failed attempt. The first delay is 0.5 to 1 s, and each
        /// further one is twice as long. A longer Retry-After of the server is obeyed, up to five
        /// minutes.
        public var maxDelay = Duration.seconds(30)
        /// Whether status 410 ends the long poll with `.gone`. Otherwise it is reported, the cursor
        /// is cleared, and polling continues.
        public var failWhenGone = false
        /// The largest response, after decompression. A larger one ends the long poll with
        /// `.tooLarge`, because the server would send the same again. 0 means no limit.
        public var maxBodyBytes = 64 << 20
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
        /// The delays after failed attempts, instead of `maxDelay`. If it limits attempts and none
        /// is left, the long poll ends with `.reconnectsExhausted`. The backoff's stable time is
        /// not used: a good response resets the failure count at once.
        public var backoff: Backoff?
        // abigen: end

        public init() {}

        func apply(to target: inout LongPollConfiguration) throws(RealtimeError) {
            switch cursor {
            case .validators: try target.setCursor(.validators)
            case .headerID: try target.setCursor(.headerID)
            case .queryID(let name): try target.setCursor(.queryID, queryParameter: name)
            case .none: try target.setCursor(.none)
            }
            try target.setLastEventID(lastEventID)
            try applyPlain(to: &target)
            _ = try OptionCheck.atLeast(1, maxBufferedMessages, "maxBufferedMessages")
            _ = try OptionCheck.atLeast(1, maxBufferedBytes, "maxBufferedBytes")
        }

        /// - Parameter end: called when an attempt is declined.
        func addHandlers(
            to connection: LongPollConnection, _ end: @escaping @Sendable () -> Void
        ) throws(RealtimeError) {
            let attempts = attempts(of: connection, end)
            try connection.setHandlers { handlers in
                handlers.request = attempts.request
                handlers.credentials = attempts.credentials
            }
        }
    }
}
