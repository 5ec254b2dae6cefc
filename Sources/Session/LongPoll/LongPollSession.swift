package import Wire

package typealias LongPollState = HTTPSourceState

/// The brain of a long poll (docs/long-polling.md, L1 to L9): which request is made, what its
/// answer means, when the next is due. `LongPollConnection` in Engine has the hands.
///
/// The calls of one poll: `beginAttempt`, `received(head)` for each answer, `received(bytes)`,
/// `ended`; after a message `delivered`. `wakeUp` says when `timeReached` wants to be called.
package struct LongPollSession: HTTPSourceSession {
    package enum Answer {
        /// Its body is read; `ended` says what it means.
        case read
        /// `request` is another one: send it.
        case again
        /// The caller is asked for credentials; then `authorized`.
        case unauthorized
        case failed(HTTPSourceFailure)
    }

    package enum Outcome {
        /// The body is for the caller; then `delivered`.
        case message
        /// Nothing new: the next poll has its time.
        case nothing
        case failed(HTTPSourceFailure)
    }

    package enum Timer {
        case nothing
        /// Begin a poll.
        case begin
        /// The poll was held for its time: drop it.
        case held
        /// The answer took too long: drop it.
        case failed(HTTPSourceFailure)
    }

    private enum Phase: Equatable {
        case idle
        /// The request is out; `start` is when it could go out, once that is known.
        case polling(begun: Instant, start: Instant?)
        /// The head has come, and bytes behind it until `last`.
        case reading(start: Instant, last: Instant)
        /// The caller has the body, which came whole after the server had held the poll for so
        /// long.
        case delivering(start: Instant, held: Duration)
        /// For the time of the next poll, or for the network.
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
    /// The beginning of a body that says why the server refuses.
    private var refusedBody: [UInt8] = []
    private var attempts: Attempts
    /// Empty answers of 200 in a row that came at once (L8).
    private var hastyAnswers = 0
    private var burst = LongPollBurst()
    private var isGood = false
    private var messageIDInside: String?
    private var bodyBytes = 0
    private var name: String { request.url.displayName }

    /// The ceiling for a server that moves the cursor with each answer. A backlog of messages is
    /// read without a pause up to the burst. Above it, a poll each 10 ms is more than a server in
    /// another city can answer, and leaves a processor idle.
    private static let ceiling = RequestPacer(burst: 1000, interval: .milliseconds(10))
    /// What is read of a body that nobody wants, so that the connection can be used again.
    private static let wasteBytes = 64 << 10

    package init(_ configuration: LongPollConfiguration) throws(RealtimeError) {
        self.configuration = configuration
        attempts = Attempts(configuration.delays, ceiling: LongPollSession.ceiling)
        cursor = try LongPollCursor(
            id: configuration.lastEventID ?? "", configuration.cursorMode)
        request = HTTPRequest("GET", configuration.url)
    }

    package var state: LongPollState {
        if phase == .closed { return .closed }
        return isGood ? .open : .connecting
    }

    /// Of the last message delivered; "" for none.
    package var lastEventID: String { cursor.id }

    /// The number of the attempt that is due: 1 unless the last one failed.
    package var attempt: Int { attempts.failures + 1 }

    /// The first poll is due at once, or as soon as there is a network.
    package mutating func start(now: Instant) {
        attempts.restart(now: now)
        phase = .waiting
    }

    // MARK: One poll

    /// Whether the poll that is due can be made: what its handler changed may be out of reach, and
    /// then it waits for the network.
    package func mayBegin() -> Bool { attempts.isOnline }

    /// Begins a poll, from the first URL.
    /// - Parameter configuration: the caller may have changed it.
    package mutating func beginAttempt(_ configuration: LongPollConfiguration, now: Instant) {
        self.configuration = configuration
        attempts.begin()
        makeRequest(now)
    }

    /// L1 and L2.
    private mutating func makeRequest(_ now: Instant) {
        redirects = Redirects()
        head = nil
        attempts.sent(now: now)
        phase = .polling(begun: now, start: nil)
        request = HTTPRequest("GET", configuration.url, fields: configuration.fields)
        // An event stream is what an Accept that names one would bring.
        if request.values("Accept").isEmpty { request.set("Accept", "*/*") }
        request.set("Cache-Control", "no-cache")
        cursor.apply(
            to: &request, configuration.cursorMode, parameter: configuration.idQueryParameter)
        if configuration.sendsValidatorsToo { cursor.applyValidators(to: &request) }
        if let name = configuration.secondIDParameter {
            cursor.apply(to: &request, .queryID, parameter: name)
        }
    }

    /// Whether an answer is for the caller as a failure, so that its body, which may say why, is
    /// read before `received`.
    package func refuses(_ head: ResponseHead) -> Bool {
        guard case .polling = phase else { return false }
        return ![200, 204, 304, 408].contains(head.status)
            && !Redirects.follows(head, configuration.redirects)
    }

    /// An answer's head has come.
    /// - Parameters:
    ///   - body: of one that refuses, the beginning.
    ///   - requestStarted: when the request could go out.
    ///   - canAuthorize: the caller gives credentials when it is asked.
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
        let type = head.values("Content-Type").first.flatMap { MediaType($0) }
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

    /// The caller gave credentials, in its headers; the request goes out once more.
    package mutating func authorized(_ configuration: LongPollConfiguration, now: Instant) {
        self.configuration = configuration
        makeRequest(now)
    }

    /// Whether the body that comes is for the caller, and is to be kept.
    package var keepsBody: Bool { head?.status == 200 }

    /// Bytes of the body have come.
    /// - Returns: false when no more of them is wanted: drop the exchange, and call `ended`.
    package mutating func received(
        _ bytes: UnsafeRawBufferPointer, now: Instant
    ) throws(RealtimeError) -> Bool {
        noteProgress(now)
        bodyBytes += bytes.count
        guard keepsBody else { return bodyBytes <= LongPollSession.wasteBytes }
        let limit = configuration.maxBodyBytes
        if limit > 0, bodyBytes > limit {
            throw RealtimeError(
                .tooLarge, "\(name) answered with more than \(limit) bytes (max_body_bytes)")
        }
        if !hasCursor { burst.received(bytes) }
        return true
    }

    /// The answer goes on: bytes of it come, or have come and wait to be decoded.
    package mutating func noteProgress(_ now: Instant) {
        if case .reading(let start, _) = phase { phase = .reading(start: start, last: now) }
    }

    /// The poll is over: nil when the answer is whole.
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
                // It counts as good when it was delivered: its body may be none that can be.
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
        case 504 where !isHasty(now - start) || !configuration.countsGatewayTimeouts:
            pollAgain(start, held: now - start, now)
        case 410:
            let gone = RealtimeError(
                .gone, "\(name) answered 410: what was polled is gone", response: answer())
            guard !configuration.failsWhenGone else {
                return .failed(fail(gone, status: 410))
            }
            cursor = LongPollCursor()
            wait(until: now + configuration.interval)
            return .failed(
                HTTPSourceFailure(
                    error: gone, status: 410, retryIn: configuration.interval, attempt: attempt))
        case 429, 500, 502, 503, 504:
            let asked = Attempts.asked(by: head, wallClock: wallClock)
            return .failed(
                retry(
                    refusal(answer()), status: head.status, now: now, random: random, asked: asked))
        default: return .failed(fail(refusal(answer()), status: head.status))
        }
        return .nothing
    }

    /// The answer's type, while its message is delivered.
    package var contentType: String { head?.values("Content-Type").first ?? "" }

    /// The id that its last message carries; "" for none.
    package var messageID: String { head.flatMap { LongPollCursor($0)?.id } ?? "" }

    /// The caller found an id inside the message: it goes before the answer's.
    package mutating func found(id: String) { messageIDInside = id }

    /// The caller has had the whole answer: now the cursor moves (L4).
    /// - Parameter isEmpty: it was a batch without a message.
    package mutating func delivered(isEmpty: Bool = false, now: Instant) {
        let before = cursor
        // Also when it was closed meanwhile: another run begins behind it.
        if let head { cursor.move(to: head, configuration.cursorMode) }
        attempts.forgetFailures()
        if let id = messageIDInside { cursor.move(to: id) }
        messageIDInside = nil
        head = nil
        guard case .delivering(let begun, let held) = phase else { return }
        if isEmpty { return cameEmpty(begun, held: held, now) }
        hastyAnswers = 0
        // The same request may bring the same answer, as from any static URL.
        let isPaced =
            hasCursor
            ? burst.delivered(from: before, to: cursor, configuration, wasHeld: !isHasty(held))
            : burst.delivered(wasHeld: !isHasty(held))
        if isPaced { return pollAgain(begun, held: held, now) }
        wait(until: now)
    }

    /// Whether requests say what has been seen. A server may also know it by itself: by a cookie,
    /// or because it gives each message once.
    private var hasCursor: Bool { cursor.asksForMore(than: LongPollCursor(), configuration) }

    /// An answer of 200 with nothing.
    private mutating func cameEmpty(_ start: Instant, held: Duration, _ now: Instant) {
        hastyAnswers = held < .milliseconds(100) ? hastyAnswers + 1 : 0
        pollAgain(start, held: held, now)
    }

    /// What came is not built as it says: it is asked for once more.
    package mutating func rejected(
        _ error: RealtimeError, now: Instant, random: Double
    ) -> HTTPSourceFailure {
        let error = RealtimeError(error.code, "the answer of \(name): \(error.message)")
        return retry(error, now: now, random: random)
    }

    /// It was not held.
    private func isHasty(_ held: Duration) -> Bool { held < configuration.minHold }

    /// L5 and L8, also for a message that leaves the cursor where it was lately, or ends a burst.
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

    /// It ends for good.
    package mutating func fail(_ error: RealtimeError, status: Int = 0) -> HTTPSourceFailure {
        phase = .closed
        return HTTPSourceFailure(
            error: error, status: status, attempt: attempts.failures, isFatal: true)
    }

    /// L6: equal(min(max_delay, 1000 · 2^n)), or what the server asks for.
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
            return fail(attempts.exhausted(error, option: "max_attempts"), status: status)
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

    /// - Parameter requestStarted: when the request of this poll could go out, nil before; until
    ///   then the connect timeout counts, which is the transfer's own.
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
            // Without a byte: nothing new (L5), as from a server that has nothing to say.
            attempts.forgetFailures()
            isGood = true
            pollAgain(start, held: now - start, now)
            return .held
        case .reading:
            let limit = configuration.pollTimeout
            let error = RealtimeError(
                .timeout, "\(name) stopped in the middle of its answer for \(limit.readable)")
            return .failed(retry(error, now: now, random: random))
        case .waiting: return .begin
        case .idle, .delivering, .authorizing, .closed: return .nothing
        }
    }

    // MARK: The network and the user

    /// Whether the server can be reached at all has changed (R9).
    package mutating func setOnline(_ online: Bool, now: Instant, random: Double) {
        attempts.setOnline(online, now: now, random: random)
    }

    /// What is there was dropped; the next poll is due at once.
    package mutating func restart(now: Instant) {
        // Credentials that are being fetched are waited for: their answer makes a request anyway.
        guard phase != .closed, phase != .idle, phase != .authorizing else { return }
        head = nil
        start(now: now)
    }

    package mutating func close() { phase = .closed }
}
