package import Wire

/// The machine of a WebSocket's life: attempts, the handshake, a refusal, the end, and whether to
/// reconnect. `WebSocketSession` handles the messages of an open connection. `WebSocketConnection`
/// in Engine does the I/O, and acts on the result of each call.
///
/// The calls for one attempt: `begin`, `connected`, `received` until the connection is open or
/// failed, and at last `finish`. Call `timeReached` at `wakeUp`.
package struct WebSocketLife: ~Copyable {
    package private(set) var stage = Stage.idle
    /// The caller was asked for credentials in this attempt.
    private var hasAsked = false
    /// There was a connection.
    private var wasOpen = false
    private var opening: WebSocketOpening?
    /// The URL of an open connection, if redirects changed it.
    private var redirected: Redirected?
    private var end: End?
    /// nil if the connection is not made again.
    private var reconnection: Reconnection?

    // Boxed, so that open connections, which rarely have any of these, do not pay for them.

    private final class Redirected {
        let url: HTTPURL

        init(_ url: HTTPURL) { self.url = url }
    }

    private final class End {
        /// Known before the connection ended.
        var ending: Ending?
        /// Why the connection or the attempt failed.
        var error: RealtimeError?
        /// Bytes that came after `ending` was known.
        var ignored = 0
    }

    /// How much a peer may send after its end before we stop waiting for it.
    private static let mostIgnored = 2 << 20

    package init() {}

    // MARK: An attempt

    /// Begins an attempt. The caller must connect to `url` within `timeLeft`. Without a network the
    /// attempt of a connection that reconnects waits for one: then call `noteWait` in the next
    /// turn, because nothing is reported inside start.
    /// - Parameter isReachable: only evaluated if the connection reconnects.
    /// - Returns: whether the attempt began.
    package mutating func begin(
        _ configuration: WebSocketConfiguration, isReachable: @autoclosure () -> Bool, now: Instant
    ) -> Bool {
        redirected = nil
        end = nil
        if reconnection == nil {
            reconnection = configuration.reconnect.map {
                Reconnection(
                    $0, afterNormalClose: configuration.reconnectsAfterNormalClose,
                    retryStatuses: configuration.retryStatuses)
            }
        }
        if let reconnection, !reconnection.mayBegin(isReachable: isReachable(), now: now) {
            reconnection.waitForNetwork(now: now)
            stage = .waiting
            return false
        }
        opening = WebSocketOpening(configuration, now)
        stage = .connecting
        return true
    }

    /// The URL of the current attempt, or of the last one.
    package func url(_ configuration: WebSocketConfiguration) -> HTTPURL {
        opening?.attempt.url ?? redirected?.url ?? configuration.url
    }

    package func timeLeft(_ now: Instant) -> Duration? {
        opening?.deadline.map { $0 - now }
    }

    /// Notes that no connection can be begun. This is reported in the next turn, never inside
    /// start.
    package func failsLater(_ error: RealtimeError) { opening?.failure = error }

    package var laterFailure: RealtimeError? {
        stage == .connecting ? opening?.failure : nil
    }

    /// A connection was made. The caller must write the request next.
    /// - Parameter nonce: 16 random bytes.
    package mutating func connected(
        _ configuration: WebSocketConfiguration, nonce: [UInt8], now: Instant
    ) {
        guard stage == .connecting, let opening else { return }
        let handshake = ClientHandshake(
            url: opening.attempt.url, nonce: nonce, subprotocols: configuration.subprotocols,
            fields: opening.attempt.fields, deflate: configuration.compression.offer)
        opening.handshake = handshake
        opening.request = handshake.request
        opening.sent = 0
        opening.reader = ResponseHeadReader(
            limit: configuration.limits.headerBytes, of: configuration.owner)
        let due = now + configuration.answerTimeout
        if configuration.answerTimeout > .zero, opening.deadline.map({ due < $0 }) ?? true {
            opening.deadline = due
            opening.isAnswerDue = true
        }
        stage = .handshaking
    }

    /// Writes the rest of the request.
    /// - Parameter write: returns how many bytes were accepted; nil if no more are accepted now.
    package func writeRequest(_ write: (UnsafeRawBufferPointer) -> Int?) {
        guard stage == .handshaking, let opening else { return }
        while opening.sent < opening.request.count {
            let count = opening.request.withUnsafeBytes {
                write(UnsafeRawBufferPointer(rebasing: $0[opening.sent...]))
            }
            guard let count else { return }
            opening.sent += count
        }
    }

    /// Handles bytes that came before the connection was open.
    package mutating func received(
        _ input: UnsafeRawBufferPointer, _ configuration: WebSocketConfiguration, now: Instant
    ) -> Answer {
        guard let opening, let handshake = opening.handshake else { return .incomplete }
        if stage == .refused { return readRefusal(input) }
        do throws(RealtimeError) {
            guard case .head(let head, let used) = try read(input, opening) else {
                return .incomplete
            }
            if head.status == 101 {
                let outcome = try handshake.verify(head)
                opened(configuration, now)
                return .open(outcome, head, used: used)
            }
            if try opening.attempt.follows(head, configuration) {
                stage = .connecting
                return .redirected(status: head.status)
            }
            opening.refusal = WebSocketOpening.Refusal(head, now)
            stage = .refused
            return readRefusal(UnsafeRawBufferPointer(rebasing: input[used...]))
        } catch {
            return .failed(error)
        }
    }

    // MARK: Credentials

    /// Whether a failed attempt may succeed with other credentials, for which the caller is asked
    /// once. If so, call `authorized` or `giveUp` next.
    /// - Returns: the server's response, or that of a proxy.
    package mutating func asks(after error: RealtimeError) -> HTTPResponse? {
        guard !hasAsked, let response = error.response else { return nil }
        switch stage {
        case .connecting, .handshaking, .refused: break
        case .idle, .authorizing, .open, .waiting, .over, .ended: return nil
        }
        switch error.code {
        // Servers that do not know a token answer 403 as often as 401.
        case .httpStatus where [401, 403, 407].contains(response.status): break
        case .proxy where response.status == 407: break
        default: return nil
        }
        hasAsked = true
        known().error = error
        stage = .authorizing
        return response
    }

    /// The configuration contains fresh credentials. Call `begin` next.
    package mutating func authorized() {
        guard stage == .authorizing else { return }
        end = nil
        stage = .idle
    }

    /// No other attempt follows, whatever the reason for the end.
    package mutating func giveUp() { reconnection = nil }

    private func read(
        _ input: UnsafeRawBufferPointer, _ opening: WebSocketOpening
    ) throws(RealtimeError) -> ResponseHeadReader.Step {
        do throws(RealtimeError) {
            return try opening.reader.read(input)
        } catch {
            let name = opening.attempt.url.displayName
            throw RealtimeError(error.code, "\(name): \(error.message)")
        }
    }

    private mutating func opened(_ configuration: WebSocketConfiguration, _ now: Instant) {
        let url = url(configuration)
        if url != configuration.url { redirected = Redirected(url) }
        opening = nil
        hasAsked = false
        wasOpen = true
        stage = .open
        reconnection?.opened(now: now)
    }

    private func readRefusal(_ input: UnsafeRawBufferPointer) -> Answer {
        opening?.refusal?.body.read(input)
        guard opening?.refusal?.body.isComplete ?? true else { return .incomplete }
        return .failed(refusal)
    }

    /// The error of a refusal, with as much of the body as has arrived.
    private var refusal: RealtimeError {
        guard let opening, let refusal = opening.refusal else {
            return RealtimeError(.handshake, "the server refused the handshake")
        }
        return ClientHandshake.refusal(
            by: opening.attempt.url, HTTPResponse(refusal.head, body: refusal.body.bytes))
    }

    // MARK: The end

    /// A failure was reported. It decides whether another attempt follows.
    package mutating func failed(_ error: RealtimeError) { known().error = error }

    private mutating func known() -> End {
        if let end { return end }
        let end = End()
        self.end = end
        return end
    }

    /// The peer's close frame has arrived.
    package mutating func closed(by code: CloseCode, _ reason: String) {
        var ending = Ending(code: code, reason: reason, isClean: true)
        ending.isFromPeer = true
        known().ending = ending
    }

    /// The peer violated the protocol.
    /// - Returns: the error to report.
    package mutating func violated(
        _ failure: ProtocolFailure, _ configuration: WebSocketConfiguration
    ) -> RealtimeError {
        known().ending = Ending(code: failure.code)
        return RealtimeError(
            failure.code == .messageTooBig ? .tooLarge : .protocolViolation,
            "data from \(url(configuration).displayName) was rejected: \(failure.message)"
                + " (closed with \(failure.code))")
    }

    /// Counts bytes after a close frame or a violation. If a peer sends too
    /// many, its connection is dropped before the close timeout (RFC 6455 §7.1.1).
    /// - Returns: the end of the connection, if too many bytes came.
    package func ignored(_ count: Int) -> Ending? {
        guard let end else { return nil }
        end.ignored += count
        return end.ignored > WebSocketLife.mostIgnored ? end.ending : nil
    }

    /// The peer closed the connection, or it broke.
    /// - Parameters:
    ///   - cause: why it broke.
    ///   - isOpen: whether no closing handshake had begun.
    package func lost(
        _ cause: String?, isTLS: Bool = false, systemError: Int32 = 0, isOpen: Bool,
        _ configuration: WebSocketConfiguration
    ) -> Loss {
        let why = cause.map { ": \($0)" } ?? ""
        switch stage {
        case .handshaking:
            return .failed(
                RealtimeError(
                    isTLS ? .tls : .connectionLost,
                    "\(url(configuration).displayName) ended the connection during the"
                        + " handshake\(why)", systemError: systemError))
        case .refused: return .failed(refusal)
        case .open:
            if let ending = end?.ending { return .ended(ending) }
            guard isOpen else { return .ended(.abnormal) }
            return .failed(
                RealtimeError(
                    .connectionLost,
                    "\(url(configuration).displayName) ended the connection without a closing"
                        + " handshake\(why)", systemError: systemError))
        case .idle, .connecting, .authorizing, .waiting, .over, .ended: return .nothing
        }
    }

    /// The end as far as it is known, when the closing handshake is not awaited any longer.
    package var ending: Ending { end?.ending ?? .abnormal }

    /// The user closes.
    /// - Parameter code: that of the close frame; nil for one without a code.
    package mutating func close(_ code: CloseCode?, reason: String = "") -> OnClose {
        switch stage {
        case .idle, .connecting, .handshaking, .refused, .authorizing, .waiting:
            // Between two connections there is nobody to close with, and nothing that fails.
            known().ending = wasOpen ? Ending(code: code ?? .noStatus, reason: reason) : .abnormal
            stage = .over
            return .drop
        case .open: return .handshake
        case .over, .ended: return .nothing
        }
    }

    /// Handles the end of a connection, which the caller has dropped.
    /// - Parameters:
    ///   - isWanted: the user wants another connection.
    ///   - isReachable: there is a network to reach the peer. Only evaluated if needed.
    ///   - wallClock: seconds since 1970, for a Retry-After that is a date.
    ///   - random: uniform in [0, 1).
    package mutating func finish(
        _ ending: Ending, isWanted: Bool, isReachable: @autoclosure () -> Bool, now: Instant,
        wallClock: Int64, random: Double
    ) -> Next {
        if stage == .ended { return .nothing }
        if isWanted, let reconnection {
            let decision = reconnection.ended(
                code: ending.isFromPeer ? ending.code : nil, error: end?.error,
                isReachable: isReachable(), now: now, wallClock: wallClock, random: random)
            switch decision {
            case .giveUp: break
            case .retry(let delay, let attempt): return wait(ending, delay, attempt)
            case .waitForNetwork(let attempt): return wait(ending, nil, attempt)
            }
        }
        stage = .ended
        return .end
    }

    private mutating func wait(_ ending: Ending, _ delay: Duration?, _ attempt: Int) -> Next {
        known().ending = ending
        stage = .waiting
        return .wait(delay, attempt: attempt)
    }

    /// Ends the wait before an attempt.
    /// - Parameter continues: whether the user wants the attempt. If so, call `begin` next.
    /// - Returns: `continues`; false also if there was no wait. Then call `finish` with `ending`.
    package mutating func endWait(continues: Bool) -> Bool {
        guard stage == .waiting else { return false }
        stage = .idle
        hasAsked = false
        if !continues { reconnection = nil }
        return continues
    }

    /// Why the connection or the attempt failed, if it did.
    package var error: RealtimeError? { end?.error }

    /// The connection was dropped, and its end is known but not reported.
    package var owesEnd: Bool { stage == .over && end?.ending != nil }

    /// Ends the life without reporting anything more.
    package mutating func abandon() {
        stage = .ended
        (opening, redirected, end) = (nil, nil, nil)
    }

    // MARK: Time and the network

    /// - Parameter session: `wakeUp` of the open connection's session.
    package func wakeUp(session: @autoclosure () -> Instant?) -> Instant? {
        switch stage {
        case .idle, .authorizing, .over, .ended: return nil
        case .waiting: return reconnection?.wakeUp
        case .connecting, .handshaking: return opening?.deadline
        case .refused:
            guard let patience = opening?.refusal?.deadline else { return opening?.deadline }
            return opening?.deadline.map { min($0, patience) } ?? patience
        case .open: return session()
        }
    }

    /// - Parameter isReachable: evaluated when an attempt is due.
    package mutating func timeReached(
        _ now: Instant, _ configuration: WebSocketConfiguration,
        isReachable: @autoclosure () -> Bool
    ) -> OnTime {
        let owner = configuration.owner
        let limit =
            configuration.openTimeout.readable + owner.mention(.openTimeout, or: .connectTimeout)
        switch stage {
        case .idle, .authorizing, .over, .ended: return .nothing
        case .connecting: return .connectTimedOut(limit: limit)
        case .handshaking:
            let answerLimit =
                configuration.answerTimeout.readable + owner.mention(.answerTimeout)
            return .failed(
                RealtimeError(
                    .timeout,
                    "\(url(configuration).displayName) accepted the connection, but did not"
                        + " answer the opening handshake within"
                        + " \(opening?.isAnswerDue == true ? answerLimit : limit)"))
        case .refused: return .failed(refusal)
        case .open: return .session
        case .waiting:
            guard let reconnection else { return .nothing }
            let mayBegin = reconnection.mayBegin(isReachable: isReachable(), now: now)
            return mayBegin ? .attempt(reconnection.attempt) : .waitForNetwork
        }
    }

    /// To be called when the next attempt may have begun to wait for a network.
    /// - Returns: the error to report, once for each wait, and the number of the attempt, which is
    ///   not counted.
    package mutating func noteWait(
        _ configuration: WebSocketConfiguration
    ) -> (error: RealtimeError, attempt: Int)? {
        guard stage == .waiting, let reconnection,
            let error = reconnection.waitBegan(for: configuration.url.displayName)
        else { return nil }
        return (error, reconnection.attempt)
    }

    /// Sets whether there is a network to reach the peer.
    /// - Parameter random: uniform in [0, 1).
    /// - Returns: whether `wakeUp` has changed.
    package func setOnline(_ online: Bool, now: Instant, random: Double) -> Bool {
        guard stage == .waiting, let reconnection else { return false }
        return reconnection.setOnline(online, now: now, random: random)
    }

    /// The program knows that the network is back: an attempt that waits is due now.
    package func retryNow(_ now: Instant) {
        if stage == .waiting { reconnection?.retryNow(now) }
    }
}
