package import Wire

/// How a poll sends its position to the server.
package enum LongPollCursorMode: Int32, Sendable {
    /// Last-Modified and ETag of the latest response, as If-Modified-Since and If-None-Match.
    case validators = 0
    /// An id, as Last-Event-ID.
    case headerID = 1
    /// An id, as a query parameter.
    case queryID = 2
    case none = 3
}

/// The options of a long poll.
/// - Object: longpoll, LongPoll.Options, before start
package struct LongPollConfiguration: HTTPSourceConfiguration {
    package var url: HTTPURL
    /// Sent with each poll. The default Accept header accepts any type; one that names
    /// text/event-stream is refused.
    /// - Option: headers, headers credentials
    package var headers = HeaderFields()
    package var fields: [HeaderField] { headers.all }
    /// - Option: network, network
    package var network = NetworkConfiguration()
    /// - Options: Redirects.Rules
    package var redirects = Redirects.Rules(of: .longpoll)
    /// The object that errors name options of.
    package var owner: OptionOwner { redirects.owner }

    package private(set) var cursorMode = LongPollCursorMode.validators
    /// Whether validators are sent in addition to an id.
    package var sendsValidatorsToo = false
    /// A query parameter that also carries the id.
    package var secondIDParameter: String?
    package private(set) var lastEventID: String?
    package private(set) var idQueryParameter = "last_event_id"

    /// The minimum time between the starts of two polls if the server does not hold polls: it
    /// responds within `min_hold`, with nothing or with a message whose cursor one of the last
    /// eight polls had. If messages move the cursor, the next poll starts at once, for the first
    /// 1,000 polls, then up to 100 times a second. Without a cursor (the server sends none, or none
    /// is used), the next poll starts at once after up to 20 messages in a row that arrive within
    /// `min_hold`, or five equal ones; after further ones each poll waits for this time, until the
    /// server holds a poll.
    /// - Option: interval, delay
    package var interval: Duration = .seconds(15)
    /// How long the server may hold a poll before the next one starts, and how long the body of a
    /// response may stall.
    /// - Option: poll_timeout, limit
    package var pollTimeout: Duration = .seconds(60)
    /// How long the server must hold a poll so that the next one starts at once, even if nothing
    /// came or the cursor did not move.
    /// - Option: min_hold, delay
    package var minHold: Duration = .seconds(1)
    /// The longest delay after a failed attempt. The first delay is 0.5 to 1 s, and each further
    /// one is twice as long. A longer Retry-After of the server is obeyed, up to five minutes.
    /// - Option: max_delay, delay
    package var maxDelay: Duration = .seconds(30)
    /// Whether status 410 ends the long poll with RT_ERROR_GONE. Otherwise it is reported, the
    /// cursor is cleared, and polling continues.
    /// - Option: fail_when_gone, flag
    package var failsWhenGone = false
    /// Whether a 504 that comes at once is a failure, and not the end of a poll that was held.
    package var countsGatewayTimeouts = false

    /// The largest response, after decompression. A larger one ends the long poll with
    /// RT_ERROR_TOO_LARGE, because the server would send the same again.
    /// - Option: max_body_bytes, bytes, python max_size
    package var maxBodyBytes = 64 << 20
    /// - Options: HTTPOptions
    package var http = HTTPOptions()

    /// The delays after failed attempts, instead of `max_delay`. If it limits attempts and none is
    /// left, the long poll ends with RT_ERROR_RECONNECTS_EXHAUSTED. The backoff's stable time is
    /// not used: a good response resets the failure count at once.
    /// - Option: backoff, backoff, once
    package var backoff: BackoffConfiguration?

    /// The delays after failures (L6).
    var delays: BackoffConfiguration { backoff ?? BackoffConfiguration(maximum: maxDelay) }

    package init(url: String) throws(RealtimeError) {
        self.url = try HTTPURL(parsing: url, as: .http)
    }

    /// Rejects an Accept that names an event stream, because servers that offer both would send one
    /// (L1).
    package static func check(_ name: String, _ value: String) throws(RealtimeError) {
        try HeaderField.validate(name: name, value: value)
        guard name.equalsIgnoringASCIICase("Accept") else { return }
        let names = value.split(separator: ",").compactMap { MediaType(String($0)) }
        if names.contains(where: { $0.matches("text/event-stream") }) {
            throw RealtimeError(
                .invalidHeader, "a long poll's Accept names text/event-stream; use an event source")
        }
    }

    /// - Parameter queryParameter: the name of the query parameter, with `.queryID`.
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

    /// Continues after the message with this id. "" means without a cursor.
    package mutating func setLastEventID(_ id: String) throws(RealtimeError) {
        guard !id.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else {
            throw RealtimeError(.invalidArgument, "the last event id has a control character")
        }
        lastEventID = id
    }
}
