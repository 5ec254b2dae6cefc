import Wire

/// One outstanding request.
///
/// A class, because it is too large to copy with each step. Unchecked, because it belongs to one
/// session, which belongs to one thread.
final class RESTEntry: @unchecked Sendable {
    enum State {
        /// Waits for the network, for earlier requests, or for a connection of its origin.
        case queued
        /// An exchange is in progress. `isAnswered`: its head is the final one.
        case running(isAnswered: Bool)
        /// The head showed that another exchange follows. The rest of the body is dropped.
        case draining(Next)
        /// The delay before the next attempt.
        case waiting(until: Instant)
        /// Its credentials were refused, and fresh ones are being fetched.
        case authorizing
    }

    /// What follows a response that is not the final one.
    enum Next {
        /// Part of the same attempt.
        case redirect
        /// Not counted as an attempt. After a 421, on a new connection.
        case replay
        case authorize
        case retry(at: Instant)
    }

    let id: UInt64
    /// The request of the next exchange.
    @exclusivity(unchecked) var request: HTTPRequest
    private let made: RESTRequest
    var policy: RESTPolicy { made.policy }
    var streamsAnswer: Bool { made.streamsAnswer }
    let isOrdered: Bool
    /// The URL as submitted. Its credentials are sent to its origin, and its line is that of its
    /// origin.
    var origin: HTTPURL { made.http.url }
    /// The headers as submitted, and those of the next exchange.
    var fields: [HeaderField] { made.http.fields + request.fields }
    let line: RESTLines.Index

    @exclusivity(unchecked) var state = State.queued
    @exclusivity(unchecked) var redirects = Redirects()
    /// Counts failed attempts; `attempts` counts all.
    @exclusivity(unchecked) var retries: Attempts
    /// When the time in the queue ends.
    let expiry: Instant?
    /// The deadline as a time. nil if there is none, or while it stands still because there is no
    /// network; `timeLeft` is then the rest.
    @exclusivity(unchecked) private(set) var deadline: Instant?
    private var timeLeft: Duration
    /// The final response is streaming, and may take any time.
    private var isOpenEnded = false
    /// When the attempt's time ends, unless bytes move until then.
    @exclusivity(unchecked) var attemptEnd: Instant?
    /// When bytes last moved that extend the attempt's time; nil if none did.
    @exclusivity(unchecked) var movedAt: Instant?
    /// The caller itself delays the request's body or the response.
    @exclusivity(unchecked) var isHeld = false
    /// The whole response has arrived in time. What remains, such as decoding, has no time limit.
    @exclusivity(unchecked) var hasCome = false
    /// The driver was asked to end the attempt. The end is reported like any other.
    @exclusivity(unchecked) var isTimedOut = false

    /// It is queued until there is a network.
    @exclusivity(unchecked) var waitsForNetwork = false
    @exclusivity(unchecked) var attempts = 0
    /// The current exchange is counted in `attempts`.
    @exclusivity(unchecked) var exchangeCounts = false
    /// The next exchange does not count as an attempt.
    @exclusivity(unchecked) var isReplay = false
    @exclusivity(unchecked) var needsFreshConnection = false
    // Each of these happens only once.
    @exclusivity(unchecked) var wasMisdirected = false
    @exclusivity(unchecked) var wasStale = false

    /// It has no Authorization of its own, and its origin may get the client's.
    @exclusivity(unchecked) var usesCredential: Bool
    /// The generation of the credentials that it was sent with.
    @exclusivity(unchecked) var generation: UInt64 = 0
    /// A streamed body has been read, at least in part.
    @exclusivity(unchecked) var bodyIsUsed = false
    @exclusivity(unchecked) var head: ResponseHead?
    @exclusivity(unchecked) var retryAfter: Duration?
    /// Why the last attempt failed.
    @exclusivity(unchecked) var lastError: RealtimeError?

    init(
        _ id: UInt64, _ request: RESTRequest, _ line: RESTLines.Index, now: Instant
    ) {
        self.id = id
        made = request
        bodyIsUsed = request.rewinds
        isOrdered = request.policy.orders(request.http.method)
        self.line = line
        retries = Attempts(request.policy.backoff)
        expiry =
            request.policy.queueTime > .zero ? now + request.policy.queueTime : nil
        timeLeft = request.policy.latestEnd
        usesCredential = !request.http.has("Authorization")
        self.request = request.http
    }

    /// Whether one of its origin's exchanges belongs to it.
    var hasExchange: Bool {
        switch state {
        case .running, .draining: true
        case .queued, .waiting, .authorizing: false
        }
    }

    var isQueued: Bool { if case .queued = state { true } else { false } }

    /// Whether the server redirected the request. The redirected one has not been sent before.
    var isRedirected: Bool { if case .draining(.redirect) = state { true } else { false } }

    /// The attempt's new end, if bytes moved or the caller delays them; nil if its time is over.
    func laterEnd(_ now: Instant) -> Instant? {
        if isHeld { return now + policy.attemptTimeout }
        guard let movedAt, movedAt + policy.attemptTimeout > now else { return nil }
        return movedAt + policy.attemptTimeout
    }

    /// Whether the body can be sent: it is not a stream, or not used yet, or can be rewound.
    var canSendBody: Bool {
        guard bodyIsUsed, case .stream = request.body else { return true }
        return made.canRewind
    }

    func runClock(_ runs: Bool, now: Instant) {
        if runs || policy.countsOffline {
            if deadline == nil, policy.latestEnd > .zero, !isOpenEnded { deadline = now + timeLeft }
        } else if let end = deadline {
            timeLeft = end - now
            deadline = nil
        }
    }

    /// The final response begins to arrive.
    func beginAnswer(_ now: Instant) {
        guard streamsAnswer else { return }
        movedAt = now
        guard !policy.hasOwnDeadline else { return }
        isOpenEnded = true
        deadline = nil
    }

    /// When it must be checked.
    var alarm: Instant? {
        if hasCome { return nil }
        let own: Instant? =
            switch state {
            case .queued: expiry
            case .running: isTimedOut ? nil : attemptEnd
            case .draining(.retry(let time)): attemptEnd.map { min($0, time) } ?? time
            case .draining: isTimedOut ? nil : attemptEnd
            case .waiting(let time): time
            case .authorizing: nil
            }
        guard let own, let deadline else { return own ?? deadline }
        return min(own, deadline)
    }

    /// For messages and the log, without query and credentials.
    var name: String {
        let path = request.url.text.prefix { $0 != "?" }
        return "\(request.method) \(path.count > 200 ? path.prefix(200) + "…" : path)"
    }

    func outcome(_ error: RealtimeError?, hasBody: Bool = false) -> RESTOutcome {
        RESTOutcome(
            error: error, head: head, url: request.url, attempts: attempts,
            retryAfter: retryAfter, hasBody: hasBody)
    }
}
