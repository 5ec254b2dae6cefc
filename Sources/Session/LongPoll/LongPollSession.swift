package import Wire

package typealias LongPollState = HTTPSourceState

/// The machine of a long poll (docs/long-polling.md, L1 to L9). It decides which request is made,
/// what the response means, and when the next poll is due. `LongPollConnection` in Engine does the
/// I/O.
///
/// The calls for one poll: `beginAttempt`, `received(head)` for each response, `received(bytes)`,
/// `ended`, and after a message `delivered`. Call `timeReached` at `wakeUp`.
package struct LongPollSession: HTTPSourceSession {
    package enum Answer {
        /// Read the body, then call `ended`.
        case read
        /// Send the new `request`.
        case again
        /// Ask the caller for credentials, then call `authorized`.
        case unauthorized
        case failed(HTTPSourceFailure)
    }

    package enum Outcome {
        /// Deliver the body to the caller, then call `delivered`.
        case message
        /// Nothing new; the next poll is scheduled.
        case nothing
        case failed(HTTPSourceFailure)
    }

    package enum Timer {
        case nothing
        /// Begin a poll.
        case begin
        /// The server held the poll for the whole time: drop it.
        case held
        /// The response took too long: drop it.
        case failed(HTTPSourceFailure)
    }

    private enum Phase: Equatable {
        case idle
        /// The request was made. `start` is when it could be sent; nil until that is known.
        case polling(begun: Instant, start: Instant?)
        /// The head has arrived; the last bytes of the body arrived at `last`.
        case reading(start: Instant, last: Instant)
        /// The complete body is delivered to the caller. The server held the poll for `held`.
        case delivering(start: Instant, held: Duration)
        /// Until the next poll is due, or until there is a network.
        case waiting
        case authorizing
        case closed
    }

    private var configuration: LongPollConfiguration
    private var phase = Phase.idle
    private var redirects = Redirects()
    package private(set) var request: HTTPRequest
    private var cursor: LongPollCursor
    private var head: ResponseHead?
    /// The beginning of a refusal's body, which may say why the server refuses.
    private var refusedBody: [UInt8] = []
    private var attempts: Attempts
    /// Empty responses with status 200 in a row that came at once (L8).
    private var hastyAnswers = 0
    private var burst = LongPollBurst()
    private var isGood = false
    private var messageIDInside: String?
    private var bodyBytes = 0
    private var name: String { request.url.displayName }

    /// How much of an unwanted body is read, so that the connection can be reused.
    private static let wasteBytes = 64 << 10

    package init(_ configuration: LongPollConfiguration) throws(RealtimeError) {
        self.configuration = configuration
        attempts = Attempts(configuration.delays, ceiling: .polls)
        cursor = try LongPollCursor(
            id: configuration.lastEventID ?? "", configuration.cursorMode)
        request = HTTPRequest("GET", configuration.url)
    }

    package var state: LongPollState {
        if phase == .closed { return .closed }
        return isGood ? .open : .connecting
    }

    /// The id of the last message delivered; "" for none.
    package var lastEventID: String { cursor.id }

    /// The number of the attempt that is due: 1 unless the last one failed.
    package var attempt: Int { attempts.failures + 1 }

    /// Makes the first poll due now, or as soon as there is a network.
    package mutating func start(now: Instant) {
        attempts.restart(now: now)
        phase = .waiting
    }

    // MARK: One poll

    /// Whether the poll that is due can be made. If the handler changed the URL to an unreachable
    /// host, the poll waits for the network.
    package func mayBegin() -> Bool { attempts.isOnline }

    package var waitsForNetwork: Bool { phase == .waiting && !attempts.isOnline }

    package mutating func waitBegan(for name: String) -> RealtimeError? {
        phase == .waiting ? attempts.waitBegan(for: name) : nil
    }

    /// Begins a poll, with the original URL.
    /// - Parameter configuration: the caller may have changed it.
    package mutating func beginAttempt(_ configuration: LongPollConfiguration, now: Instant) {
        self.configuration = configuration
        attempts.begin()
        makeRequest(now)
    }

    /// Builds the request (L1, L2).
    private mutating func makeRequest(_ now: Instant) {
        redirects = Redirects()
        head = nil
        attempts.sent(now: now)
        phase = .polling(begun: now, start: nil)
        request = HTTPRequest("GET", configuration.url, fields: configuration.fields)
        // The caller's Accept cannot name an event stream; without one, accept anything.
        if request.values("Accept").isEmpty { request.set("Accept", "*/*") }
        request.set("Cache-Control", "no-cache")
        cursor.apply(
            to: &request, configuration.cursorMode, parameter: configuration.idQueryParameter)
        if configuration.sendsValidatorsToo { cursor.applyValidators(to: &request) }
        if let name = configuration.secondIDParameter {
            cursor.apply(to: &request, .queryID, parameter: name)
        }
    }

    /// Whether a response is reported as a failure. Then the beginning of its body, which may say
    /// why, is read before `received`.
    package func refuses(_ head: ResponseHead) -> Bool {
        guard case .polling = phase else { return false }
        return ![200, 204, 304, 408].contains(head.status)
            && !Redirects.follows(head, configuration.redirects)
    }

    /// Handles a response's head.
    /// - Parameters:
    ///   - body: the beginning of the body of a refusal.
    ///   - requestStarted: when the request could be sent.
    ///   - canAuthorize: the caller provides credentials when asked.
    package mutating func received(
        _ head: ResponseHead, body: [UInt8] = [], requestStarted: Instant?, canAuthorize: Bool,
        now: Instant
    ) -> Answer {
        guard case .polling(let begun, _) = phase else { return .again }
        do throws(RealtimeError) {
            let origin = configuration.url
            if try redirects.follow(head, &request, from: origin, configuration.redirects) {
                attempts.sent(now: now)
                phase = .polling(begun: begun, start: nil)
                return .again
            }
        } catch {
            return .failed(fail(error, status: head.status))
        }
        if head.status == 401 || head.status == 407, canAuthorize,
            attempts.mayAskForCredentials()
        {
            phase = .authorizing
            return .unauthorized
        }
        let type = MediaType(contentType: head.values("Content-Type"))
        if head.status == 200, type?.matches("text/event-stream") == true {
            let error = RealtimeError(
                .contentType, "\(name) answered with an event stream, which does not end",
                response: HTTPResponse(head, body: []))
            return .failed(fail(error, status: 200))
        }
        self.head = head
        refusedBody = body
        bodyBytes = 0
        burst.beginAnswer()
        phase = .reading(start: requestStarted ?? begun, last: now)
        return .read
    }

    package var isAuthorizing: Bool { phase == .authorizing }

    /// The caller has put credentials into the headers. Repeats the request.
    package mutating func authorized(_ configuration: LongPollConfiguration, now: Instant) {
        self.configuration = configuration
        makeRequest(now)
    }

    /// Whether the body is for the caller, and must be kept.
    package var keepsBody: Bool { head?.status == 200 }

    /// Handles bytes of the body.
    /// - Returns: false if no more bytes are wanted. Then drop the exchange, and call `ended`.
    package mutating func received(
        _ bytes: UnsafeRawBufferPointer, now: Instant
    ) throws(RealtimeError) -> Bool {
        noteProgress(now)
        bodyBytes += bytes.count
        guard keepsBody else { return bodyBytes <= LongPollSession.wasteBytes }
        let limit = configuration.maxBodyBytes
        if limit > 0, bodyBytes > limit {
            throw RealtimeError(
                .tooLarge,
                "\(name) answered with more than \(limit) bytes"
                    + configuration.owner.mention(.maxBodyBytes, or: .maxMessageBytes))
        }
        if !hasCursor { burst.received(bytes) }
        return true
    }

    /// The response continues: bytes have arrived, or arrived earlier and wait to be decoded.
    package mutating func noteProgress(_ now: Instant) {
        if case .reading(let start, _) = phase { phase = .reading(start: start, last: now) }
    }

    /// The poll ended. `failure` is nil if the response is complete.
    package mutating func ended(
        _ failure: HTTPFailure?, now: Instant, wallClock: Int64, random: Double
    ) -> Outcome {
        if let failure {
            if failure.isFinal { return .failed(fail(failure.error)) }
            let error = failure.error
            return .failed(retry(error, status: error.proxyRefusal, now: now, random: random))
        }
        guard let head, case .reading(let start, _) = phase else { return .nothing }
        let body = refusedBody
        refusedBody = []
        func answer() -> HTTPResponse { HTTPResponse(head, body: body) }
        switch head.status {
        case 200:
            isGood = true
            if bodyBytes > 0 {
                // Not counted as good before it is delivered: the body may be malformed.
                phase = .delivering(start: start, held: now - start)
                return .message
            }
            attempts.forgetFailures()
            cursor.move(to: head, configuration.cursorMode)
            cameEmpty(start, held: now - start, now)
        case 204, 304, 408:
            attempts.forgetFailures()
            isGood = true
            pollAgain(start, held: now - start, now)
        case let status
        where TemporaryStatus.isGatewayTimeout(status)
            && (!isHasty(now - start) || !configuration.countsGatewayTimeouts):
            pollAgain(start, held: now - start, now)
        case 410:
            let gone = RealtimeError(
                .gone, "\(name) answered 410: the polled resource is gone", response: answer())
            guard !configuration.failsWhenGone else {
                return .failed(fail(gone, status: 410))
            }
            cursor = LongPollCursor()
            wait(until: now + configuration.interval)
            return .failed(
                HTTPSourceFailure(
                    error: gone, status: 410, retryIn: configuration.interval, attempt: attempt))
        case let status where status == 429 || TemporaryStatus.failures.contains(status):
            let asked = Attempts.asked(by: head, wallClock: wallClock)
            return .failed(
                retry(
                    refusal(answer()), status: head.status, now: now, random: random, asked: asked))
        default: return .failed(fail(refusal(answer()), status: head.status))
        }
        return .nothing
    }

    /// The response's type, while its message is delivered.
    package var contentType: String { head?.values("Content-Type").first ?? "" }

    /// The id of the response's last message; "" for none.
    package var messageID: String { head.flatMap { LongPollCursor($0)?.id } ?? "" }

    /// The caller found an id inside the message, which overrides the response's id.
    package mutating func found(id: String) { messageIDInside = id }

    /// The caller has received the whole response. Now the cursor moves (L4).
    /// - Parameter isEmpty: the response was a batch without messages.
    package mutating func delivered(isEmpty: Bool = false, now: Instant) {
        let before = cursor
        // Also if the poll was closed meanwhile: another run continues after this message.
        if let head { cursor.move(to: head, configuration.cursorMode) }
        attempts.forgetFailures()
        if let id = messageIDInside { cursor.move(to: id) }
        messageIDInside = nil
        head = nil
        guard case .delivering(let begun, let held) = phase else { return }
        if isEmpty { return cameEmpty(begun, held: held, now) }
        hastyAnswers = 0
        // The same request may return the same response, as any static URL does.
        let isPaced =
            hasCursor
            ? burst.delivered(from: before, to: cursor, configuration, wasHeld: !isHasty(held))
            : burst.delivered(wasHeld: !isHasty(held))
        if isPaced { return pollAgain(begun, held: held, now) }
        wait(until: now)
    }

    /// Whether requests contain a cursor. Without one, a server may know the position by a cookie,
    /// or because it delivers each message only once.
    private var hasCursor: Bool { cursor.asksForMore(than: LongPollCursor(), configuration) }

    /// Handles an empty response with status 200.
    private mutating func cameEmpty(_ start: Instant, held: Duration, _ now: Instant) {
        hastyAnswers = held < .milliseconds(100) ? hastyAnswers + 1 : 0
        pollAgain(start, held: held, now)
    }

    /// The body is malformed. It is requested again.
    package mutating func rejected(
        _ error: RealtimeError, now: Instant, random: Double
    ) -> HTTPSourceFailure {
        let error = RealtimeError(error.code, "the response of \(name): \(error.message)")
        return retry(error, now: now, random: random)
    }

    /// Whether the server did not hold the poll.
    private func isHasty(_ held: Duration) -> Bool { held < configuration.minHold }

    /// Schedules the next poll (L5, L8). Also called for a message that ends a burst, or does not
    /// move the cursor to a new position.
    private mutating func pollAgain(_ start: Instant, held: Duration, _ now: Instant) {
        if !isHasty(held) { burst.wasHeld() }
        let isHasty = isHasty(held) || hastyAnswers >= 3
        wait(until: isHasty ? max(now, start + configuration.interval) : now)
    }

    /// Schedules the next poll, within the ceiling on requests.
    private mutating func wait(until due: Instant) {
        attempts.schedule(at: due)
        phase = .waiting
    }

    /// Ends the long poll for good.
    package mutating func fail(_ error: RealtimeError, status: Int = 0) -> HTTPSourceFailure {
        phase = .closed
        return HTTPSourceFailure(
            error: error, status: status, attempt: attempts.failures, isFatal: true)
    }

    /// Schedules a retry (L6): equal(min(max_delay, 1000 · 2^n)), or the delay that the server asks
    /// for.
    private mutating func retry(
        _ error: RealtimeError, status: Int = 0, now: Instant, random: Double,
        asked: Duration = .zero
    ) -> HTTPSourceFailure {
        isGood = false
        attempts.configure(configuration.delays)
        phase = .waiting
        switch attempts.ended(asked: asked, now: now, random: random) {
        case .retry(let delay):
            return HTTPSourceFailure(
                error: error, status: status, retryIn: delay, attempt: attempt)
        case .waitForNetwork:
            return HTTPSourceFailure(error: error, status: status, attempt: attempt)
        case .exhausted:
            return fail(
                attempts.exhausted(error, option: OptionOwner.backoff.mention(.maxAttempts)),
                status: status)
        }
    }

    // MARK: Time

    package var wakeUp: Instant? {
        switch phase {
        case .polling(let begun, let start):
            configuration.pollTimeout > .zero
                ? (start ?? begun) + configuration.pollTimeout : nil
        case .reading(_, let last):
            configuration.pollTimeout > .zero ? last + configuration.pollTimeout : nil
        case .waiting: attempts.wakeUp
        case .idle, .delivering, .authorizing, .closed: nil
        }
    }

    /// - Parameter requestStarted: when the request of this poll could be sent; nil before. Until
    ///   then the connect timeout applies, which the transfer enforces.
    package mutating func timeReached(
        _ now: Instant, requestStarted: Instant?, random: Double
    ) -> Timer {
        guard let due = wakeUp, now >= due else { return .nothing }
        switch phase {
        case .polling(let begun, _):
            let start = requestStarted ?? now
            guard now - start >= configuration.pollTimeout else {
                phase = .polling(begun: begun, start: start)
                return .nothing
            }
            // No response in time means that there was nothing new (L5).
            attempts.forgetFailures()
            isGood = true
            pollAgain(start, held: now - start, now)
            return .held
        case .reading:
            let limit = configuration.pollTimeout
            let error = RealtimeError(
                .timeout, "\(name) sent no more of its response within \(limit.readable)")
            return .failed(retry(error, now: now, random: random))
        case .waiting: return .begin
        case .idle, .delivering, .authorizing, .closed: return .nothing
        }
    }

    // MARK: The network and the user

    /// The server has become reachable, or unreachable (R9).
    package mutating func setOnline(_ online: Bool, now: Instant, random: Double) {
        attempts.setOnline(online, now: now, random: random)
    }

    package mutating func retryNow(_ now: Instant) -> Bool {
        // Between two polls that succeed, the wait is the server's, and not the network's.
        guard phase == .waiting, attempts.failures > 0 || !attempts.isOnline else { return false }
        attempts.retryNow(now)
        return true
    }

    /// The current poll was dropped. The next one is due now.
    package mutating func restart(now: Instant) {
        // If credentials are being fetched, wait for them: they cause a request anyway.
        guard phase != .closed, phase != .idle, phase != .authorizing else { return }
        head = nil
        start(now: now)
    }

    package mutating func close() { phase = .closed }
}
