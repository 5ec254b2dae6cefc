package import Wire

/// How a poll says what it has seen already.
package enum LongPollCursorMode: Int32, Sendable {
    /// The latest answer's Last-Modified and ETag, as If-Modified-Since and If-None-Match.
    case validators = 0
    /// An id, as Last-Event-ID.
    case headerID = 1
    /// An id, as a query parameter.
    case queryID = 2
    case none = 3
}

/// What a user can set on a long poll before it starts; the C ABI's `rt_longpoll_set_*`, with the
/// same defaults (docs/long-polling.md). Zero turns a time limit off.
package struct LongPollConfiguration: HTTPSourceConfiguration {
    package var url: HTTPURL
    private var headers = HeaderFields()
    package var fields: [HeaderField] { headers.all }
    package var network = NetworkConfiguration()
    package var redirects = Redirects.Rules()

    package private(set) var cursorMode = LongPollCursorMode.validators
    /// The validators of the latest answer go along with an id.
    package var sendsValidatorsToo = false
    /// A query parameter that an id is sent as, too.
    package var secondIDParameter: String?
    package private(set) var lastEventID: String?
    package private(set) var idQueryParameter = "last_event_id"

    /// Between the starts of polls that the server answers at once with nothing, with a message
    /// that leaves the cursor where it was shortly before, or, without a cursor, after a burst of
    /// messages.
    package var interval: Duration = .seconds(15)
    /// How long a poll may be held, and how long an answer's body may stand still.
    package var pollTimeout: Duration = .seconds(60)
    /// A poll that was held for so long is followed by another at once.
    package var minHold: Duration = .seconds(1)
    package var connectTimeout: Duration = .seconds(15)
    /// Of the delays between attempts that fail.
    package var maxDelay: Duration = .seconds(30)
    package var failsWhenGone = false
    /// A 504 that comes at once is a failure, and not the end of a poll that was held.
    package var countsGatewayTimeouts = false

    /// Of one answer's body, decoded; 0 is no limit.
    package var maxBodyBytes = 64 << 20
    package var compression = true
    package var http2 = true

    package init(url: String) throws(RealtimeError) {
        self.url = try HTTPURL(parsing: url, as: .http)
    }

    package mutating func addHeader(name: String, value: String) throws(RealtimeError) {
        try check(name, value)
        headers.append(HeaderField(name: name, value: value))
    }

    /// Sets a header in the place of all of its name.
    package mutating func setHeader(name: String, value: String) throws(RealtimeError) {
        try check(name, value)
        headers.set(name, value)
    }

    package mutating func clearHeaders() { headers = HeaderFields() }

    /// Servers that have both would answer an Accept that names an event stream with one (L1).
    private func check(_ name: String, _ value: String) throws(RealtimeError) {
        try HeaderField.validateRepeated(name: name, value: value)
        guard name.equalsIgnoringASCIICase("Accept") else { return }
        let names = value.split(separator: ",").compactMap { MediaType(String($0)) }
        if names.contains(where: { $0.matches("text/event-stream") }) {
            throw RealtimeError(
                .invalidHeader, "a long poll's Accept names text/event-stream; use an event source")
        }
    }

    /// - Parameter queryParameter: the name of an id's, with `.queryID`.
    package mutating func setCursor(
        _ mode: LongPollCursorMode, queryParameter: String? = nil
    ) throws(RealtimeError) {
        if let queryParameter {
            guard !queryParameter.isEmpty else {
                throw RealtimeError(.invalidArgument, "the name of the id's parameter is empty")
            }
            idQueryParameter = queryParameter
        }
        cursorMode = mode
    }

    /// Begins behind this message; "" begins anew.
    package mutating func setLastEventID(_ id: String) throws(RealtimeError) {
        guard !id.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else {
            throw RealtimeError(.invalidArgument, "the last event id has a control character")
        }
        lastEventID = id
    }
}
