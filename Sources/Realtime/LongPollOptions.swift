internal import Engine
internal import Session
public import Wire

extension LongPoll {
    /// How polls say what they have seen already.
    public enum Cursor: Sendable, Hashable {
        /// The latest answer's Last-Modified and ETag, as If-Modified-Since and If-None-Match.
        case validators
        /// The id, as a Last-Event-ID header.
        case headerID
        /// The id, as a query parameter.
        case queryID(parameter: String)
        /// Not at all.
        case none
    }

    /// How a long poll works. The defaults are what most programs want.
    public struct Options: Sendable {
        public typealias Header = (name: String, value: String)

        /// Accept takes anything unless it is set here.
        public var headers: [Header] = []
        /// Called on the loop's thread before each poll, whose number is 1 unless the last one
        /// failed; what it returns is laid over `headers` for this poll.
        public var headerProvider: (@Sendable (_ attempt: Int) throws -> [Header])?
        /// Called then too, on the loop's thread: where this poll and those behind it go, and with
        /// which headers in the place of `headers`, may be changed; false closes it.
        public var onRequest:
            (@Sendable (_ attempt: Int, _ next: inout WebSocket.NextAttempt) throws -> Bool)?
        /// Called when the server answers 401, or the proxy 407, once a poll: headers to send it
        /// again with (Proxy-Authorization for the proxy), or nil when there are none, which is
        /// fatal, as what it throws is.
        public var credentials: (@Sendable (HTTPResponse) async throws -> [Header]?)?
        public var network = Network()
        /// Who says whether a poll makes sense; nil asks the loop's own.
        public var reachability: Reachability?

        public var cursor = Cursor.validators
        /// Begins behind this message. With validators it must be an id that a message had.
        public var lastEventID = ""

        /// Between the starts of two polls that the server answers before `minHold` with nothing,
        /// or with a message that leaves the cursor where it was or moves it back to where one of
        /// the last eight polls started. Without a cursor (`.none`, or the server names none) the
        /// next poll starts at once after up to 20 messages in a row that come before `minHold`, or
        /// five that are the same; after further ones it waits, until a poll was held. After
        /// messages that move the cursor on, the next poll starts at once, for the first 1,000
        /// polls, and then up to 100 times a second.
        public var interval = Duration.seconds(15)
        /// How long a poll may be held, and how long an answer may stand still; nil for ever.
        public var pollTimeout: Duration? = .seconds(60)
        /// After a poll that was held for so long the next is made at once.
        public var minHold = Duration.seconds(1)
        /// To a ready connection; nil for none.
        public var connectTimeout: Duration? = .seconds(15)
        /// After an attempt that failed; a server's Retry-After goes before it where it is longer,
        /// up to five minutes.
        public var maxDelay = Duration.seconds(30)
        /// 410 is fatal, instead of an error after which polls begin anew.
        public var failsWhenGone = false

        /// Of one answer, decoded; 0 for no limit.
        public var maxBodyBytes = 64 << 20
        /// Asks for compressed answers.
        public var compression = true
        /// Offers HTTP/2 over TLS; never through a proxy.
        public var http2 = true
        /// 0 follows none.
        public var maxRedirects = 20
        public var allowInsecureRedirects = false
        /// Names of headers that go along when a redirect leads to another origin.
        public var safeHeaders: [String] = []

        /// Messages that may wait for who iterates.
        public var maxBufferedMessages = 1024
        /// Their bytes.
        public var maxBufferedBytes = 8 << 20

        public init() {}

        func apply(to target: inout LongPollConfiguration) throws(RealtimeError) {
            typealias Check = WebSocket.Options
            for header in headers { try target.addHeader(name: header.name, value: header.value) }
            target.network = try network.configuration()
            switch cursor {
            case .validators: try target.setCursor(.validators)
            case .headerID: try target.setCursor(.headerID)
            case .queryID(let name): try target.setCursor(.queryID, queryParameter: name)
            case .none: try target.setCursor(.none)
            }
            try target.setLastEventID(lastEventID)
            target.interval = try Check.delay(interval, "interval")
            target.pollTimeout = try Check.limit(pollTimeout, "pollTimeout")
            target.minHold = try Check.delay(minHold, "minHold")
            target.connectTimeout = try Check.limit(connectTimeout, "connectTimeout")
            target.maxDelay = try Check.delay(maxDelay, "maxDelay")
            target.failsWhenGone = failsWhenGone
            target.maxBodyBytes = try Check.atLeast(0, maxBodyBytes, "maxBodyBytes")
            target.compression = compression
            target.http2 = http2
            target.redirects.maximum = try Check.within(0...20, maxRedirects, "maxRedirects")
            target.redirects.allowsInsecure = allowInsecureRedirects
            for name in safeHeaders { try HeaderField.validate(name: name, value: "") }
            target.redirects.safeNames = safeHeaders
            _ = try Check.atLeast(1, maxBufferedMessages, "maxBufferedMessages")
            _ = try Check.atLeast(1, maxBufferedBytes, "maxBufferedBytes")
        }

        /// - Parameter end: an attempt is declined.
        func addHandlers(
            to connection: LongPollConnection, _ end: @escaping () -> Void
        ) throws(RealtimeError) {
            let headers = HeaderLayers(headers)
            try connection.setHandlers { [unowned connection] handlers in
                handlers.request = headers.asking(headerProvider, onRequest) { next in
                    guard let next else {
                        // Before whoever iterates is told, and looks at the state.
                        connection.close()
                        return end()
                    }
                    if let url = next.url { try connection.setURL(url) }
                    try connection.lay(headers)
                }
                if let credentials {
                    handlers.credentials = { response in
                        connection.fetch(response, headers, credentials)
                        return .later
                    }
                }
            }
        }
    }
}

extension LongPollConnection {
    fileprivate func lay(_ headers: HeaderLayers) throws {
        try configure { configuration in
            configuration.clearHeaders()
            for header in headers.base {
                try configuration.addHeader(name: header.name, value: header.value)
            }
            for header in headers.over {
                try configuration.setHeader(name: header.name, value: header.value)
            }
        }
    }

    fileprivate func fetch(
        _ response: HTTPResponse, _ headers: HeaderLayers,
        _ credentials: @escaping @Sendable (HTTPResponse) async throws -> [LongPoll.Options.Header]?
    ) {
        Task { [weak self] in
            do {
                let fresh = try await credentials(response)
                guard let self else { return }
                if let fresh {
                    headers.authorize(fresh)
                    try lay(headers)
                }
                try? credentialsAreReady(fresh != nil)
            } catch {
                // Fails once it is closed, when nobody wants to know.
                try? self?.credentialsAreReady(false, because: .noCredentials(error))
            }
        }
    }
}
