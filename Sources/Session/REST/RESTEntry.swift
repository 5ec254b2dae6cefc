import Wire

/// One outstanding request.
///
/// A class, as it is too large to be copied with each step. Unchecked because it belongs to one
/// session, as that does to one thread.
final class RESTEntry: @unchecked Sendable {
    enum State {
        /// Waits for the network, for those before it, or for one of its origin's exchanges.
        case queued
        /// An exchange is under way, and what it brings may be the answer.
        case running(isAnswered: Bool)
        /// Its head said that another exchange follows; what is left of the body is dropped.
        case draining(Next)
        /// The delay before the next attempt.
        case waiting(until: Instant)
        /// Its credentials were refused: fresh ones are on their way.
        case authorizing
    }

    /// What follows an answer that is not the last.
    enum Next {
        /// As part of the same attempt.
        case redirect
        /// Once more, not counted: a misdirected one on a connection of its own.
        case replay
        case authorize
        case retry(at: Instant)
    }

    let id: UInt64
    /// As it goes out next.
    @exclusivity(unchecked) var request: HTTPRequest
    private let made: RESTRequest
    var policy: RESTPolicy { made.policy }
    var streamsAnswer: Bool { made.streamsAnswer }
    let isOrdered: Bool
    /// The URL it was made with: whose credentials go along, and whose exchanges it is one of.
    var origin: HTTPURL { made.http.url }
    let line: RESTLines.Place

    @exclusivity(unchecked) var state = State.queued
    @exclusivity(unchecked) var redirects = Redirects()
    /// Those that failed; those that were made are `attempts`.
    @exclusivity(unchecked) var retries: Attempts
    /// When its time in the queue is over.
    let expiry: Instant?
    /// When the deadline is reached; nil without one, or while it stands still, as it does without
    /// a network. Then this is what is left.
    @exclusivity(unchecked) private(set) var deadline: Instant?
    private var timeLeft: Duration
    /// The last answer is there, and may take as long as it flows.
    private var isOpenEnded = false
    /// When `Alarms` wakes it.
    @exclusivity(unchecked) var alarmSet: Instant?
    /// When the attempt's time is over, unless bytes move until then.
    @exclusivity(unchecked) var attemptEnd: Instant?
    /// When bytes moved last that the attempt's time is counted from; nil for none.
    @exclusivity(unchecked) var movedAt: Instant?
    /// The caller itself holds up its request's body or its answer.
    @exclusivity(unchecked) var isHeld = false
    /// The whole answer has come in time; what is left to do, such as decoding it, is ours.
    @exclusivity(unchecked) var hasCome = false
    /// The attempt was told to end; its end comes as any other.
    @exclusivity(unchecked) var isTimedOut = false

    @exclusivity(unchecked) var attempts = 0
    /// The exchange under way is one of them.
    @exclusivity(unchecked) var exchangeCounts = false
    /// The next exchange is no attempt of its own.
    @exclusivity(unchecked) var isReplay = false
    @exclusivity(unchecked) var needsFreshConnection = false
    // Each of these is done once.
    @exclusivity(unchecked) var wasMisdirected = false
    @exclusivity(unchecked) var wasStale = false

    /// It has no Authorization of its own, and is where the client's may be shown.
    @exclusivity(unchecked) var usesCredential: Bool
    /// Of the credentials it went out with.
    @exclusivity(unchecked) var generation: UInt64 = 0
    /// A streamed body is not at its beginning any more.
    @exclusivity(unchecked) var bodyIsUsed = false
    @exclusivity(unchecked) var head: ResponseHead?
    @exclusivity(unchecked) var retryAfter: Duration?
    /// Why the last attempt failed.
    @exclusivity(unchecked) var lastError: RealtimeError?

    init(
        _ id: UInt64, _ request: RESTRequest, _ line: RESTLines.Place, now: Instant
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

    /// Whether it is one of its origin's exchanges.
    var holdsPlace: Bool {
        switch state {
        case .running, .draining: true
        case .queued, .waiting, .authorizing: false
        }
    }

    var isQueued: Bool { if case .queued = state { true } else { false } }

    /// The server has redirected the request: what goes out next has not been sent before.
    var isRedirected: Bool { if case .draining(.redirect) = state { true } else { false } }

    /// The attempt's new end, when its time is not over after all: bytes moved, or the caller holds
    /// them up.
    func laterEnd(_ now: Instant) -> Instant? {
        if isHeld { return now + policy.attemptTimeout }
        guard let movedAt, movedAt + policy.attemptTimeout > now else { return nil }
        return movedAt + policy.attemptTimeout
    }

    /// A body that is the caller's stream can be sent now, or sent again.
    var canSendBody: Bool {
        guard bodyIsUsed, case .stream = request.body else { return true }
        return made.canRewind
    }

    func runClock(_ runs: Bool, now: Instant) {
        if runs {
            if deadline == nil, policy.latestEnd > .zero, !isOpenEnded { deadline = now + timeLeft }
        } else if let end = deadline {
            timeLeft = end - now
            deadline = nil
        }
    }

    /// Its answer is the last one, and begins to come.
    func beginAnswer(_ now: Instant) {
        guard streamsAnswer else { return }
        movedAt = now
        guard !policy.hasOwnDeadline else { return }
        isOpenEnded = true
        deadline = nil
    }

    /// When it must be looked at.
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

    /// For messages and the log: neither the query nor anybody's password.
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
