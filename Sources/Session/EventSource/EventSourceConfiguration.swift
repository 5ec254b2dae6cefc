package import Wire

/// The options of an event source.
/// - Object: eventsource, EventSource.Options, before start
package struct EventSourceConfiguration: HTTPSourceConfiguration {
    package var url: HTTPURL
    package private(set) var method = "GET"
    /// The request body, sent unchanged with each attempt.
    package var body: [UInt8]?
    /// Sent with each request. An Accept header is used if it names text/event-stream.
    /// Cache-Control and Last-Event-ID are set by the event source.
    /// - Option: headers, headers credentials
    package var headers = HeaderFields()
    package var fields: [HeaderField] { headers.all }
    /// - Option: network, network
    package var network = NetworkConfiguration()
    /// - Options: Redirects.Rules
    package var redirects = Redirects.Rules(of: .eventsource)
    /// The object that errors name options of.
    package var owner: OptionOwner { redirects.owner }

    package private(set) var lastEventID: String?
    /// A query parameter that carries the last event id, in addition to the header Last-Event-ID,
    /// for servers and proxies that ignore the header.
    /// - Option: id_query_parameter, text, parameter name, python id_query_param
    package var idQueryParameter: String?
    /// The file that keeps ids between runs, and the source's key in it; without a key, its URL.
    package private(set) var idFile: String?
    package private(set) var storeKey: String?

    /// Whether the event source reconnects when the stream ends or an attempt fails.
    /// - Option: reconnect, flag
    package var reconnects = true
    /// Whether a request that is neither safe nor idempotent (POST, PATCH) is sent again when its
    /// stream ends, or after a failure before which the server may have acted on it. Without this
    /// option the event source then closes, and an iteration ends, without an error if the stream
    /// ended normally. It connects again only if the request cannot have reached the server, after
    /// a retry status, or if the request has an Idempotency-Key.
    /// - Option: retry_unsafe, flag
    package var retriesUnsafe = false
    /// How many attempts in a row may fail, or end before they are stable (`stable_time`). After
    /// that the event source fails with RT_ERROR_RECONNECTS_EXHAUSTED.
    /// - Option: max_reconnects, count 0..., unlimited
    package var maxReconnects = 0
    /// The reconnection time until the server sends `retry`: the delay before the first reconnect,
    /// plus up to a fifth at random.
    /// - Option: reconnection_time, delay, once
    package var reconnectionTime: Duration = .seconds(3)
    /// The shortest reconnection time that a `retry` field of the server can set.
    /// - Option: min_reconnection_time, delay, once
    package var minReconnectionTime: Duration = .milliseconds(500)
    /// The longest delay between consecutive failed attempts. It is never below the reconnection
    /// time.
    /// - Option: max_delay, delay
    package var maxDelay: Duration = .seconds(30)
    /// How long a stream must last before the failure count is reset. A stream that delivered an
    /// event before the server ended it does not count as a failure either.
    /// - Option: stable_time, delay
    package var stableTime: Duration = .seconds(10)

    /// The delays and the limit of attempts, instead of `reconnection_time`, `max_delay`,
    /// `max_reconnects` and `stable_time`. A `retry` field of the server still sets the initial
    /// delay.
    /// - Option: backoff, backoff, once
    package var backoff: BackoffConfiguration?

    /// The time limit from the request, on an open connection, to the head of its response. Many
    /// servers send the head only with the first event, which may take minutes. It begins anew
    /// while the request's body arrives, over a slow link.
    /// - Option: response_timeout, limit
    package var responseTimeout: Duration = .seconds(300)
    /// How long the server may send nothing, not even comments, before the event source reconnects.
    /// Without it TCP keep-alive still notices a dead connection.
    /// - Option: idle_timeout, limit
    package var idleTimeout: Duration = .zero
    package private(set) var retryStatuses: Set<Int> = []

    /// - Options: HTTPOptions
    package var http = HTTPOptions()
    /// - Options: EventStreamParser.Limits
    package var limits = EventStreamParser.Limits()

    /// Statuses that are often temporary, for servers behind proxies that restart.
    package static let resilientStatuses = TemporaryStatus.all

    package init(url: String) throws(RealtimeError) {
        self.url = try HTTPURL(parsing: url, as: .http)
    }

    /// The options of a source that cannot be used.
    package init() { url = .unusable }

    package static func check(_ name: String, _ value: String) throws(RealtimeError) {
        try HeaderField.validate(name: name, value: value)
    }

    package mutating func setMethod(_ method: String) throws(RealtimeError) {
        guard method.utf8.isToken else {
            throw RealtimeError(
                .invalidArgument, "the method \(method.quoted()) is not a token (RFC 9110 §9.1)")
        }
        guard method != "HEAD", method != "CONNECT" else {
            throw RealtimeError(.invalidArgument, "the answer to \(method) has no stream")
        }
        self.method = method
    }

    /// - Parameter id: "" for none, even if an id is stored.
    package mutating func setLastEventID(_ id: String) throws(RealtimeError) {
        guard KeyedFile.isValid(id) else {
            throw RealtimeError(.invalidArgument, "the last event id has a CR, LF or NUL")
        }
        lastEventID = id
    }

    /// - Parameter path: nil if the caller itself stores ids under the key.
    package mutating func setIDFile(_ path: String?, key: String?) throws(RealtimeError) {
        if let path, path.isEmpty || path.utf8.contains(0) {
            throw RealtimeError(.invalidArgument, "the path of the id file is empty or has a NUL")
        }
        if let path { try FileName.check(path, "the path of the id file") }
        if let key, key.isEmpty {
            throw RealtimeError(.invalidArgument, "the key of the stored id is empty")
        }
        idFile = path
        storeKey = key
    }

    package mutating func addRetryStatus(_ status: Int) throws(RealtimeError) {
        retryStatuses.insert(try TemporaryStatus.checked(status))
    }

    /// Whether the request may be sent again although the server may have acted on it.
    var mayRepeat: Bool {
        retriesUnsafe || RetryRules.isIdempotent(method) || RetryRules.isKeyed(fields)
    }

    /// The reconnection time until the server sets one.
    package var initialDelay: Duration { backoff?.initial ?? reconnectionTime }

    /// The delays between attempts (C9).
    /// - Parameter initial: the time that the server has set, or the configured one.
    func delays(from initial: Duration) -> BackoffConfiguration {
        if let backoff { return backoff.beginning(with: initial) }
        var delays = BackoffConfiguration(
            initial: initial, maximum: maxDelay, isAboveInitial: true)
        delays.attemptLimit = maxReconnects
        delays.stableTime = stableTime
        return delays
    }

    /// The key under which an id is stored (C14).
    package var key: String {
        if let storeKey { return storeKey }
        let scheme = url.isSecure ? "https" : "http"
        return "\(scheme)://\(url.displayName)\(url.target)"
    }
}
