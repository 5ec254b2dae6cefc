package import Wire

package typealias EventSourceState = HTTPSourceState

/// The machine of an event source (docs/eventsource.md, C1 to C13). It decides which request is
/// made, what the response means, and when the next attempt is due. `EventSourceConnection` in
/// Engine does the I/O.
///
/// The calls for one attempt: `beginAttempt`, `received(head)` for each response, `received` and
/// `dispatched` while it is open, `ended`. Call `timeReached` at `wakeUp`.
package struct EventSourceSession: HTTPSourceSession {
    package enum Answer {
        /// The stream begins.
        case open
        /// Send the new `request`.
        case again
        /// Ask the caller for credentials, then call `authorized`.
        case unauthorized
        case failed(HTTPSourceFailure)
    }

    package enum Timer {
        case nothing
        /// Begin an attempt.
        case begin
        /// The attempt or the stream took too long: drop it.
        case failed(HTTPSourceFailure)
    }

    private enum Phase: Equatable {
        case idle
        case connecting(since: Instant)
        case open
        /// Until the next attempt is due, or until there is a network.
        case waiting
        /// Until the caller has provided credentials.
        case authorizing
        case closed
    }

    private var configuration: EventSourceConfiguration
    private var phase = Phase.idle
    private var redirects = Redirects()
    package private(set) var request: HTTPRequest
    /// The id to send with the next attempt.
    package var lastEventID: String
    /// The time that the server has set, or the configured one.
    private var reconnectionTime: Duration
    private var attempts: Attempts
    private var hasDispatched = false
    /// The reconnection time of the stream's `retry` field; zero without one.
    private var askedDelay = Duration.zero
    private var lastByteAt = Instant(nanoseconds: 0)
    /// The caller has paused delivery, so what the server sends is not seen.
    private var isPaused = false
    private var name: String { request.url.displayName }

    package init(_ configuration: EventSourceConfiguration, lastEventID: String) {
        self.configuration = configuration
        self.lastEventID = lastEventID
        reconnectionTime = configuration.initialDelay
        attempts = Attempts(
            configuration.delays(from: reconnectionTime),
            ceiling: RequestPacer(burst: 50, interval: .milliseconds(250)))
        attempts.repeats = configuration.reconnects
        request = HTTPRequest(configuration.method, configuration.url)
    }

    package var state: EventSourceState {
        switch phase {
        case .open: .open
        case .closed: .closed
        case .idle, .connecting, .waiting, .authorizing: .connecting
        }
    }

    /// The origin of the stream, after redirects (HTML §9.2.6).
    package var origin: String { request.url.origin }

    package var reconnectionMilliseconds: Int64 {
        Int64(clamping: reconnectionTime.clampedNanoseconds / 1_000_000)
    }

    /// Makes the first attempt due now, or as soon as there is a network.
    package mutating func start(now: Instant) {
        attempts.restart(now: now)
        phase = .waiting
    }

    // MARK: One attempt

    /// The number of the attempt that is due: 1 for the first one, and for the first after a stable
    /// one.
    package var attempt: Int { attempts.failures + 1 }

    /// Whether the attempt that is due can be made. If the handler changed the URL to an
    /// unreachable host, the attempt waits for the network.
    package func mayBegin() -> Bool { attempts.isOnline }

    package var waitsForNetwork: Bool { phase == .waiting && !attempts.isOnline }

    package mutating func waitBegan(for name: String) -> RealtimeError? {
        phase == .waiting ? attempts.waitBegan(for: name) : nil
    }

    /// Begins an attempt, with the original URL (C8).
    /// - Parameter configuration: the caller may have changed it.
    package mutating func beginAttempt(_ configuration: EventSourceConfiguration, now: Instant) {
        self.configuration = configuration
        hasDispatched = false
        attempts.repeats = configuration.reconnects
        attempts.begin()
        connect(now)
    }

    private mutating func connect(_ now: Instant) {
        redirects = Redirects()
        attempts.sent(now: now)
        phase = .connecting(since: now)
        makeRequest()
    }

    /// Builds the request (C1, C2).
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

    /// Whether a response does not open a stream. Then its body is read first, which may say why.
    package func refuses(_ head: ResponseHead) -> Bool {
        guard case .connecting = phase else { return false }
        return !Redirects.follows(head, configuration.redirects)
            && !(head.status == 200 && EventSourceSession.isEventStream(head))
    }

    private static func isEventStream(_ head: ResponseHead) -> Bool {
        MediaType(contentType: head.values("Content-Type"))?.matches("text/event-stream") == true
    }

    /// Handles a response: its head and, if it does not open a stream, the beginning of its body.
    /// - Parameters:
    ///   - canAuthorize: the caller provides credentials when asked.
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
                let type = head.values("Content-Type").joined(separator: ", ")
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
                fail(.noContent, "\(name) answered 204, which tells clients to stop", head, []))
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

    /// Whether the session waits for the caller's credentials.
    package var isAuthorizing: Bool { phase == .authorizing }

    /// The caller has put credentials into the headers. Repeats the request.
    package mutating func authorized(_ configuration: EventSourceConfiguration, now: Instant) {
        self.configuration = configuration
        connect(now)
    }

    /// Bytes of the stream have arrived, possibly only comments.
    package mutating func received(now: Instant) { lastByteAt = now }

    /// The caller has paused or resumed delivery. After a resume, silence is measured anew.
    package mutating func setPaused(_ paused: Bool, now: Instant) {
        if isPaused, !paused { lastByteAt = now }
        isPaused = paused
    }

    /// An event was dispatched.
    package mutating func dispatched() { hasDispatched = true }

    /// The server sent a `retry` field, already limited to its maximum (P8). A shorter time than
    /// the configured minimum is raised to it, as browsers do (Firefox: 500 ms).
    package mutating func setReconnectionTime(milliseconds: Int64) {
        let asked = Duration.milliseconds(milliseconds)
        reconnectionTime = max(asked, configuration.minReconnectionTime)
        askedDelay = reconnectionTime
    }

    /// The attempt or the stream ended. `failure` is nil for a clean end (C7).
    package mutating func ended(
        _ failure: HTTPFailure?, now: Instant, random: Double
    ) -> HTTPSourceFailure {
        if let failure, failure.isFinal { return fail(failure.error, status: 0) }
        let error =
            failure?.error
            ?? RealtimeError(.closed, "\(name) ended the stream")
        // The server set this delay for the end of the stream, not for a lost connection.
        let asked = failure == nil ? askedDelay : .zero
        // The server treats the stream like a poll: it sends an event, then ends it.
        let isPoll = failure == nil && hasDispatched
        let isUnseen = failure?.precedesRequest ?? false
        guard isUnseen || configuration.mayRepeat else {
            return fail(failure == nil ? error : unrepeated(error), status: error.proxyRefusal)
        }
        var report = end(
            error, status: error.proxyRefusal, now: now, random: random, asked: asked,
            isPoll: isPoll)
        report.precedesRequest = failure?.precedesRequest ?? false
        return report
    }

    /// The error of a request that is not sent again because of its method.
    private func unrepeated(_ error: RealtimeError) -> RealtimeError {
        guard configuration.reconnects else { return error }
        return RealtimeError(
            error.code,
            "\(error.message); a \(configuration.method) is not sent again, unless the program asks"
                + configuration.owner.mention(.retryUnsafe),
            response: error.response, systemError: error.systemError)
    }

    /// Ends the source for good. For a stream that cannot be parsed further (P13), because the
    /// server would send the same again.
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

    /// Counts the end of an attempt, and schedules the next one (C9, C10).
    private mutating func end(
        _ error: RealtimeError, status: Int, now: Instant, random: Double, asked: Duration,
        isPoll: Bool = false
    ) -> HTTPSourceFailure {
        attempts.configure(configuration.delays(from: reconnectionTime))
        // Only time counts: a server that sends an event and drops the connection is not stable.
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
            let option =
                configuration.backoff == nil
                ? configuration.owner.mention(.maxReconnects)
                : OptionOwner.backoff.mention(.maxAttempts)
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

    /// - Parameter requestStarted: when the request of this attempt could be sent; nil before.
    ///   Until then the connect timeout applies, which the transfer enforces.
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
                timedOut(
                    "did not answer within", configuration.responseTimeout, .responseTimeout, now,
                    random))
        case .open:
            return .failed(
                timedOut(
                    "sent nothing for", configuration.idleTimeout, .idleTimeout, now, random))
        case .waiting: return .begin
        case .idle, .authorizing, .closed: return .nothing
        }
    }

    private mutating func timedOut(
        _ what: String, _ limit: Duration, _ option: OptionOwner.Limit, _ now: Instant,
        _ random: Double
    ) -> HTTPSourceFailure {
        let mention = configuration.owner.mention(option)
        let error = RealtimeError(.timeout, "\(name) \(what) \(limit.readable)\(mention)")
        guard configuration.mayRepeat else { return fail(unrepeated(error)) }
        return end(error, status: 0, now: now, random: random, asked: .zero)
    }

    // MARK: The network and the user

    /// The server has become reachable, or unreachable (C13).
    package mutating func setOnline(_ online: Bool, now: Instant, random: Double) {
        attempts.setOnline(online, now: now, random: random)
    }

    package mutating func retryNow(_ now: Instant) -> Bool {
        guard phase == .waiting else { return false }
        attempts.retryNow(now)
        return true
    }

    /// The current attempt was dropped. The next one is due now, and nothing is counted (C13).
    package mutating func restart(now: Instant) {
        // If credentials are being fetched, wait for them: they cause a request anyway.
        guard phase != .closed, phase != .idle, phase != .authorizing else { return }
        start(now: now)
    }

    package mutating func close() { phase = .closed }
}
