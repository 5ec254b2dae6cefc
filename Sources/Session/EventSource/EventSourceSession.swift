package import Wire

package typealias EventSourceState = HTTPSourceState

/// The brain of an event source (docs/eventsource.md, C1 to C13): which request is made, what its
/// answer means, when the next attempt is due. `EventSourceConnection` in Engine has the hands.
///
/// The calls of one attempt: `beginAttempt`, `received(head)` for each answer, `received` and
/// `dispatched` while it is open, `ended`. `wakeUp` says when `timeReached` wants to be called.
package struct EventSourceSession: HTTPSourceSession {
    package enum Answer {
        /// The stream begins.
        case open
        /// `request` is another one: send it.
        case again
        /// The caller is asked for credentials; then `authorized`.
        case unauthorized
        case failed(HTTPSourceFailure)
    }

    package enum Timer {
        case nothing
        /// Begin an attempt.
        case begin
        /// The attempt, or the stream, took too long: drop it.
        case failed(HTTPSourceFailure)
    }

    private enum Phase: Equatable {
        case idle
        case connecting(since: Instant)
        case open
        /// For the time of the next attempt, or for the network.
        case waiting
        /// The caller fetches credentials.
        case authorizing
        case closed
    }

    private var configuration: EventSourceConfiguration
    private var phase = Phase.idle
    private var redirects = Redirects()
    package private(set) var request: HTTPRequest
    /// The id that the next attempt sends.
    package var lastEventID: String
    /// The server's wish, or the configured one.
    private var reconnectionTime: Duration
    private var attempts: Attempts
    private var hasDispatched = false
    /// What its `retry` field asked for.
    private var askedDelay = Duration.zero
    private var lastByteAt = Instant(nanoseconds: 0)
    /// The caller wants nothing now, so that what the server sends is not seen.
    private var isPaused = false
    private var name: String { request.url.displayName }

    package init(_ configuration: EventSourceConfiguration, lastEventID: String) {
        self.configuration = configuration
        self.lastEventID = lastEventID
        reconnectionTime = configuration.initialDelay
        attempts = Attempts(
            configuration.delays(from: reconnectionTime),
            ceiling: RequestPacer(burst: 50, interval: .milliseconds(250)))
        request = HTTPRequest(configuration.method, configuration.url)
    }

    package var state: EventSourceState {
        switch phase {
        case .open: .open
        case .closed: .closed
        case .idle, .connecting, .waiting, .authorizing: .connecting
        }
    }

    /// Where the stream comes from, after redirects (HTML §9.2.6).
    package var origin: String { request.url.origin }

    package var reconnectionMilliseconds: Int64 {
        Int64(clamping: reconnectionTime.clampedNanoseconds / 1_000_000)
    }

    /// The first attempt is due at once, or as soon as there is a network.
    package mutating func start(now: Instant) {
        attempts.restart(now: now)
        phase = .waiting
    }

    // MARK: One attempt

    /// The number of the attempt that is due: 1 for the first, and for the first after a stable
    /// one.
    package var attempt: Int { attempts.failures + 1 }

    /// Whether the attempt that is due can be made: what its handler changed may be out of reach,
    /// and then it waits for the network.
    package func mayBegin() -> Bool { attempts.isOnline }

    /// Begins an attempt, from the first URL (C8).
    /// - Parameter configuration: the caller may have changed it.
    package mutating func beginAttempt(_ configuration: EventSourceConfiguration, now: Instant) {
        self.configuration = configuration
        hasDispatched = false
        attempts.begin()
        connect(now)
    }

    private mutating func connect(_ now: Instant) {
        redirects = Redirects()
        attempts.sent(now: now)
        phase = .connecting(since: now)
        makeRequest()
    }

    /// C1 and C2.
    private mutating func makeRequest() {
        var url = configuration.url
        if let parameter = configuration.idQueryParameter, !lastEventID.isEmpty {
            url = url.withQuery(parameter, lastEventID)
        }
        request = HTTPRequest(configuration.method, url, fields: configuration.fields)
        if !request.values("Accept").contains(where: EventSourceSession.namesEventStream) {
            request.set("Accept", "text/event-stream")
        }
        request.set("Cache-Control", "no-cache")
        request.set("Last-Event-ID", lastEventID.isEmpty ? nil : lastEventID)
        if let body = configuration.body {
            request.body = .bytes(body)
            if request.values("Content-Type").isEmpty {
                request.set("Content-Type", "text/plain; charset=utf-8")
            }
        }
    }

    private static func namesEventStream(_ list: String) -> Bool {
        list.split(separator: ",").contains {
            MediaType(String($0))?.matches("text/event-stream") == true
        }
    }

    /// Whether an answer opens no stream, so that its body, which may say why, is read first.
    package func refuses(_ head: ResponseHead) -> Bool {
        guard case .connecting = phase else { return false }
        return !Redirects.follows(head, configuration.redirects)
            && !(head.status == 200 && EventSourceSession.isEventStream(head))
    }

    private static func isEventStream(_ head: ResponseHead) -> Bool {
        MediaType(head.values("Content-Type").first ?? "")?.matches("text/event-stream") == true
    }

    /// An answer has come: its head, and of one that opens no stream the beginning of its body.
    /// - Parameters:
    ///   - canAuthorize: the caller gives credentials when it is asked.
    ///   - wallClock: seconds since 1970, for Retry-After.
    package mutating func received(
        _ head: ResponseHead, body: [UInt8] = [], canAuthorize: Bool, now: Instant,
        wallClock: Int64, random: Double
    ) -> Answer {
        guard case .connecting = phase else { return .again }
        let origin = configuration.url
        do throws(RealtimeError) {
            if try redirects.follow(head, &request, from: origin, configuration.redirects) {
                attempts.sent(now: now)
                phase = .connecting(since: now)
                return .again
            }
        } catch {
            return .failed(fail(error, status: head.status))
        }
        switch head.status {
        case 200:
            guard EventSourceSession.isEventStream(head) else {
                let type = head.values("Content-Type").first ?? ""
                let given = type.isEmpty ? "none" : type.quoted(upTo: 60)
                return .failed(
                    fail(
                        .contentType,
                        "\(name) answered with the content type \(given), text/event-stream is"
                            + " expected", head, body))
            }
            phase = .open
            attempts.opened(now: now)
            lastByteAt = now
            return .open
        case 204:
            return .failed(
                fail(.noContent, "\(name) answered 204: it wants no more requests", head, []))
        case 401 where canAuthorize && attempts.mayAskForCredentials(),
            407 where canAuthorize && attempts.mayAskForCredentials():
            phase = .authorizing
            return .unauthorized
        case let status where configuration.retryStatuses.contains(status):
            let asked = Attempts.asked(by: head, wallClock: wallClock)
            return .failed(
                end(
                    refusal(HTTPResponse(head, body: body)), status: status, now: now,
                    random: random, asked: asked))
        default:
            return .failed(fail(refusal(HTTPResponse(head, body: body)), status: head.status))
        }
    }

    /// Whether the caller was asked for credentials and has not answered.
    package var isAuthorizing: Bool { phase == .authorizing }

    /// The caller gave credentials, in its headers; the request goes out once more.
    package mutating func authorized(_ configuration: EventSourceConfiguration, now: Instant) {
        self.configuration = configuration
        connect(now)
    }

    /// Bytes of the stream have come, comments too.
    package mutating func received(now: Instant) { lastByteAt = now }

    /// The caller wants no events now, or wants them again: silence counts from then on.
    package mutating func setPaused(_ paused: Bool, now: Instant) {
        if isPaused, !paused { lastByteAt = now }
        isPaused = paused
    }

    /// An event was dispatched.
    package mutating func dispatched() { hasDispatched = true }

    /// The server sent a `retry` field, already within its bounds (P8). A time below the shortest
    /// one is raised to it, as browsers do (Firefox: 500 ms).
    package mutating func setReconnectionTime(milliseconds: Int64) {
        let asked = Duration.milliseconds(milliseconds)
        reconnectionTime = max(asked, configuration.minReconnectionTime)
        askedDelay = reconnectionTime
    }

    /// The attempt, or the stream, ended: nil for a clean end (C7).
    package mutating func ended(
        _ failure: HTTPFailure?, now: Instant, random: Double
    ) -> HTTPSourceFailure {
        if let failure, failure.isFinal { return fail(failure.error, status: 0) }
        let error =
            failure?.error
            ?? RealtimeError(.closed, "\(name) ended the stream")
        // One that ended the stream itself meant this wait; one that was lost did not.
        let asked = failure == nil ? askedDelay : .zero
        // The server answers polls: an event, then the end.
        let isPoll = failure == nil && hasDispatched
        var told = end(
            error, status: error.proxyRefusal, now: now, random: random, asked: asked,
            isPoll: isPoll)
        told.precedesRequest = failure?.precedesRequest ?? false
        return told
    }

    /// The stream cannot be read on (P13): the server would send the same again.
    package mutating func fail(_ error: RealtimeError, status: Int = 0) -> HTTPSourceFailure {
        phase = .closed
        return HTTPSourceFailure(
            error: error, status: status, retryIn: nil, attempt: attempts.failures, isFatal: true)
    }

    private mutating func fail(
        _ code: RealtimeError.Code, _ message: String, _ head: ResponseHead, _ body: [UInt8]
    ) -> HTTPSourceFailure {
        fail(
            RealtimeError(code, message, response: HTTPResponse(head, body: body)),
            status: head.status)
    }

    /// C9 and C10.
    private mutating func end(
        _ error: RealtimeError, status: Int, now: Instant, random: Double, asked: Duration,
        isPoll: Bool = false
    ) -> HTTPSourceFailure {
        attempts.configure(configuration.delays(from: reconnectionTime))
        // By time alone: a server that sends one event and drops the connection is not stable.
        let hasServed = attempts.closed(now: now) || isPoll
        let next = attempts.ended(
            hasServed ? .served : .failure, asked: asked, now: now, random: random)
        guard configuration.reconnects else { return fail(error, status: status) }
        phase = .waiting
        switch next {
        case .retry(let delay):
            return HTTPSourceFailure(
                error: error, status: status, retryIn: delay, attempt: attempt)
        case .waitForNetwork:
            return HTTPSourceFailure(error: error, status: status, attempt: attempt)
        case .exhausted:
            let option = configuration.backoff == nil ? "max_reconnects" : "max_attempts"
            return fail(attempts.exhausted(error, option: option), status: status)
        }
    }

    // MARK: Time

    package var wakeUp: Instant? {
        switch phase {
        case .connecting(let since):
            configuration.responseTimeout > .zero ? since + configuration.responseTimeout : nil
        case .open:
            configuration.idleTimeout > .zero && !isPaused
                ? lastByteAt + configuration.idleTimeout : nil
        case .waiting: attempts.wakeUp
        case .idle, .authorizing, .closed: nil
        }
    }

    /// - Parameter requestStarted: when the request of this attempt could go out, nil before; until
    ///   then the connect timeout counts, which is the transfer's own.
    package mutating func timeReached(
        _ now: Instant, requestStarted: Instant?, random: Double
    ) -> Timer {
        guard let due = wakeUp, now >= due else { return .nothing }
        switch phase {
        case .connecting:
            let start = requestStarted ?? now
            guard now - start >= configuration.responseTimeout else {
                phase = .connecting(since: start)
                return .nothing
            }
            return .failed(
                timedOut("did not answer within", configuration.responseTimeout, now, random))
        case .open:
            return .failed(timedOut("sent nothing for", configuration.idleTimeout, now, random))
        case .waiting: return .begin
        case .idle, .authorizing, .closed: return .nothing
        }
    }

    private mutating func timedOut(
        _ what: String, _ limit: Duration, _ now: Instant, _ random: Double
    ) -> HTTPSourceFailure {
        end(
            RealtimeError(.timeout, "\(name) \(what) \(limit.readable)"), status: 0, now: now,
            random: random, asked: .zero)
    }

    // MARK: The network and the user

    /// Whether the server can be reached at all has changed (C13).
    package mutating func setOnline(_ online: Bool, now: Instant, random: Double) {
        attempts.setOnline(online, now: now, random: random)
    }

    /// What is there was dropped; the next attempt is due at once, and nothing counts (C13).
    package mutating func restart(now: Instant) {
        // Credentials that are being fetched are waited for: their answer makes a request anyway.
        guard phase != .closed, phase != .idle, phase != .authorizing else { return }
        start(now: now)
    }

    package mutating func close() { phase = .closed }
}
