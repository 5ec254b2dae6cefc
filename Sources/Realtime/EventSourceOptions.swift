internal import Engine
internal import Session
public import Wire

extension EventSource {
    /// How an event source connects. The defaults are what most programs want.
    public struct Options: Sendable {
        public typealias Header = (name: String, value: String)

        public var method = "GET"
        /// Sent with each attempt; with it the method is usually POST.
        public var body: [UInt8]?
        public var headers: [Header] = []
        /// Called on the loop's thread before each attempt, whose number counts from 1 since the
        /// last that was stable; what it returns is laid over `headers` for this attempt.
        public var headerProvider: (@Sendable (_ attempt: Int) throws -> [Header])?
        /// Called then too, on the loop's thread: where this attempt and those behind it go, and
        /// with which headers in the place of `headers`, may be changed; false closes it.
        public var onRequest:
            (@Sendable (_ attempt: Int, _ next: inout WebSocket.NextAttempt) throws -> Bool)?
        /// Called when the server answers 401, or the proxy 407, once an attempt: headers to send
        /// it again with (Proxy-Authorization for the proxy), or nil when there are none, which is
        /// fatal, as what it throws is.
        public var credentials: (@Sendable (HTTPResponse) async throws -> [Header]?)?
        public var network = Network()
        /// Who says whether an attempt makes sense; nil asks the loop's own.
        public var reachability: Reachability?

        /// The id that the first request sends, whatever the id file says; nil for the file's.
        public var lastEventID: String?
        /// A query parameter that the id is sent as too.
        public var idQueryParameter: String?
        /// A file that keeps the last event id between runs, for any number of sources and
        /// processes; written at most once a second and at close. A file with other content, of
        /// another user or writable by others, and a symbolic link, are refused (`.store`) and left
        /// as they are. An event that is iterated over is
        /// done with when the next one is asked for, and comes again otherwise.
        public var idFile: String?
        /// Under what this source's id is kept, in `idFile` and by `onStore`; nil for its URL, the
        /// one it starts with, whatever `onRequest` sets.
        public var storeKey: String?

        /// Called on the loop's thread with ids that are to be kept, as `idFile` keeps them, and ""
        /// to forget one; the next run is given it as `lastEventID`.
        public var onStore: (@Sendable (_ key: String, _ id: String) -> Void)?

        /// Comes back when the stream ends or an attempt fails.
        public var reconnect = true
        /// How many reconnects in a row may end before they are stable; 0 means no limit.
        public var maxReconnects = 0
        /// Before a reconnect, until the server sends `retry`.
        public var reconnectionTime = Duration.seconds(3)
        /// The shortest reconnection time that the server's `retry` can set.
        public var minReconnectionTime = Duration.milliseconds(500)
        /// The longest delay; never below the reconnection time.
        public var maxDelay = Duration.seconds(30)
        /// How long a stream must last before failures count anew, unless the server ends it in
        /// order after an event.
        public var stableTime = Duration.seconds(10)
        /// Statuses that are come back from; `resilient` has those that pass.
        public var retryStatuses: Set<Int> = []

        /// To a ready connection; nil for none.
        public var connectTimeout: Duration? = .seconds(15)
        /// From the request to the answer's head; nil for none.
        public var responseTimeout: Duration? = .seconds(30)
        /// How long nothing may come, comments included; nil for ever. The kernel notices a dead
        /// link even so (`Network.tcpKeepAlive`).
        public var idleTimeout: Duration?

        /// Asks for compressed streams.
        public var compression = true
        /// Offers HTTP/2 over TLS; never through a proxy.
        public var http2 = true
        /// 0 follows none.
        public var maxRedirects = 20
        public var allowInsecureRedirects = false
        /// Names of headers that go along when a redirect leads to another origin.
        public var safeHeaders: [String] = []
        /// 0 for no limit.
        public var maxLineBytes = 64 << 20
        /// The data of one event; 0 for no limit.
        public var maxEventBytes = 64 << 20
        /// An id, and an event's type; 0 for no limit.
        public var maxNameBytes = 64 << 10

        /// Events that may wait for who iterates; then the server is slowed down. On an HTTP/2
        /// connection that others use, up to 32 MiB wait in libcurl first, its window (`http2`).
        public var maxBufferedEvents = 1024
        /// Their bytes.
        public var maxBufferedBytes = 8 << 20

        public init() {}

        /// 408, 425, 429, 500, 502, 503 and 504: of servers behind proxies.
        public static let resilient = Set(EventSourceConfiguration.resilientStatuses)

        func apply(to target: inout EventSourceConfiguration) throws(RealtimeError) {
            typealias Check = WebSocket.Options
            try target.setMethod(method)
            target.body = body
            for header in headers { try target.addHeader(name: header.name, value: header.value) }
            target.network = try network.configuration()
            if let lastEventID { try target.setLastEventID(lastEventID) }
            target.idQueryParameter = idQueryParameter
            guard storeKey == nil || idFile != nil || onStore != nil else {
                throw RealtimeError(.invalidArgument, "storeKey needs an idFile or onStore")
            }
            try target.setIDFile(idFile, key: storeKey)
            target.reconnects = reconnect
            target.maxReconnects = try Check.atLeast(0, maxReconnects, "maxReconnects")
            target.retryInitial = try Check.delay(reconnectionTime, "reconnectionTime")
            target.minReconnectionTime = try Check.delay(
                minReconnectionTime, "minReconnectionTime")
            target.maxDelay = try Check.delay(maxDelay, "maxDelay")
            target.stableTime = try Check.delay(stableTime, "stableTime")
            for status in retryStatuses { try target.addRetryStatus(status) }
            target.connectTimeout = try Check.limit(connectTimeout, "connectTimeout")
            target.responseTimeout = try Check.limit(responseTimeout, "responseTimeout")
            target.idleTimeout = try Check.limit(idleTimeout, "idleTimeout")
            target.compression = compression
            target.http2 = http2
            target.redirects.maximum = try Check.within(0...20, maxRedirects, "maxRedirects")
            target.redirects.allowsInsecure = allowInsecureRedirects
            for name in safeHeaders { try HeaderField.validate(name: name, value: "") }
            target.redirects.safeNames = safeHeaders
            target.limits.line = try Check.atLeast(0, maxLineBytes, "maxLineBytes")
            target.limits.data = try Check.atLeast(0, maxEventBytes, "maxEventBytes")
            target.limits.name = try Check.atLeast(0, maxNameBytes, "maxNameBytes")
            _ = try Check.atLeast(1, maxBufferedEvents, "maxBufferedEvents")
            _ = try Check.atLeast(1, maxBufferedBytes, "maxBufferedBytes")
        }

        /// - Parameter end: an attempt is declined.
        func addHandlers(
            to connection: EventSourceConnection, _ end: @escaping () -> Void
        ) throws(RealtimeError) {
            let headers = HeaderLayers(headers)
            try connection.setHandlers { [unowned connection] handlers in
                handlers.storeID = onStore
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

extension EventSourceConnection {
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
        _ credentials:
            @escaping @Sendable (HTTPResponse) async throws -> [EventSource.Options.Header]?
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
