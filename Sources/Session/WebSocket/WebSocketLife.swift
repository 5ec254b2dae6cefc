package import Wire

/// The brain of a WebSocket's life: the attempt to connect, the handshake, a refusal, the end, and
/// what follows from it. What passes in between is `WebSocketSession`'s. `WebSocketConnection` in
/// Engine has the hands, and does what each call returns.
///
/// The calls of one attempt: `begin`, `connected`, `received` for each answer, and then `finish`,
/// by way of `lost` or otherwise. `wakeUp` says when `timeReached` wants to be called.
package struct WebSocketLife: ~Copyable {
    package enum Stage {
        /// Not started, or between two attempts.
        case idle
        case connecting
        case handshaking
        /// The answer was no; its body is read.
        case refused
        case open
        /// For the time of the next attempt, or for the network.
        case waiting
        /// There is no connection any more, and its end is not told.
        case over
        case ended
    }

    /// How a connection ended.
    package struct Ending: Equatable, Sendable {
        package var code: CloseCode
        package var reason: String
        package var isClean: Bool
        /// The code is that of a close frame of the peer's.
        package var isPeers = false

        package init(code: CloseCode, reason: String = "", isClean: Bool = false) {
            (self.code, self.reason, self.isClean) = (code, reason, isClean)
        }

        /// Without a close frame (RFC 6455 §7.1.5).
        package static let abnormal = Ending(code: .abnormal)
    }

    package private(set) var stage = Stage.idle
    private var opening: WebSocketOpening?
    /// Where an open connection goes, when redirects led elsewhere than it was configured.
    private var redirected: Redirected?
    private var end: End?
    /// Nil when the first connection is the last.
    private var reconnection: Reconnection?

    // In memory of their own: most connections are open, and have none of these.

    private final class Redirected {
        let url: HTTPURL

        init(_ url: HTTPURL) { self.url = url }
    }

    private final class End {
        /// Known before the connection has ended.
        var ending: Ending?
        /// Why it, or the attempt, failed.
        var error: RealtimeError?
        /// Bytes that came behind it.
        var ignored = 0
    }

    /// What a peer may go on sending behind its end before it is not waited for any longer.
    private static let mostIgnored = 2 << 20

    package init() {}

    // MARK: An attempt

    /// Begins an attempt: a connection to `url` is to be made, within `timeLeft`.
    package mutating func begin(_ configuration: WebSocketConfiguration, now: Instant) {
        opening = WebSocketOpening(configuration, now)
        redirected = nil
        end = nil
        if reconnection == nil {
            reconnection = configuration.reconnect.map {
                Reconnection($0, afterNormalClose: configuration.reconnectsAfterNormalClose)
            }
        }
        stage = .connecting
    }

    /// Where the attempt under way, or the last one, goes.
    package func url(_ configuration: WebSocketConfiguration) -> HTTPURL {
        opening?.attempt.url ?? redirected?.url ?? configuration.url
    }

    package func timeLeft(_ now: Instant) -> Duration? {
        opening?.deadline.map { $0 - now }
    }

    /// No connection can be begun; that is told in the next turn, never inside of start.
    package func failsLater(_ error: RealtimeError) { opening?.failure = error }

    package var laterFailure: RealtimeError? {
        stage == .connecting ? opening?.failure : nil
    }

    /// A connection is there: the request is to be written.
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
        opening.reader = ResponseHeadReader(limit: configuration.limits.headerBytes)
        let due = now + configuration.answerTimeout
        if configuration.answerTimeout > .zero, opening.deadline.map({ due < $0 }) ?? true {
            opening.deadline = due
            opening.isAnswerDue = true
        }
        stage = .handshaking
    }

    /// Writes what is left of the request.
    /// - Parameter write: returns how many bytes were taken; nil when no more are taken for now.
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

    package enum Answer {
        /// More of it is to come.
        case incomplete
        /// The connection is open; what follows the bytes used are frames.
        case open(ClientHandshake.Outcome, ResponseHead, used: Int)
        /// The connection is to be dropped, and another one made, to `url`.
        case redirected(status: Int)
        case failed(RealtimeError)
    }

    /// Bytes have come before the connection is open.
    package mutating func received(
        _ input: UnsafeRawBufferPointer, _ configuration: WebSocketConfiguration, now: Instant
    ) -> Answer {
        guard let opening, let handshake = opening.handshake else { return .incomplete }
        if stage == .refused { return readRefusal(input) }
        do throws(RealtimeError) {
            guard case .head(let head, let used) = try opening.reader.read(input) else {
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

    private mutating func opened(_ configuration: WebSocketConfiguration, _ now: Instant) {
        let url = url(configuration)
        if url != configuration.url { redirected = Redirected(url) }
        opening = nil
        stage = .open
        reconnection?.opened(now: now)
    }

    private func readRefusal(_ input: UnsafeRawBufferPointer) -> Answer {
        opening?.refusal?.body.read(input)
        guard opening?.refusal?.body.isComplete ?? true else { return .incomplete }
        return .failed(refusal)
    }

    /// The server's answer, or as much of it as was waited for.
    private var refusal: RealtimeError {
        guard let opening, let refusal = opening.refusal else {
            return RealtimeError(.handshake, "the server refused the handshake")
        }
        return ClientHandshake.refusal(
            by: opening.attempt.url, HTTPResponse(refusal.head, body: refusal.body.bytes))
    }

    // MARK: The end

    /// A failure is told: it decides about another attempt.
    package mutating func failed(_ error: RealtimeError) { known().error = error }

    private mutating func known() -> End {
        if let end { return end }
        let end = End()
        self.end = end
        return end
    }

    /// The peer's close frame has come.
    package mutating func closed(by code: CloseCode, _ reason: String) {
        var ending = Ending(code: code, reason: reason, isClean: true)
        ending.isPeers = true
        known().ending = ending
    }

    /// The peer broke the protocol.
    /// - Returns: what is to be told.
    package mutating func violated(
        _ failure: ProtocolFailure, _ configuration: WebSocketConfiguration
    ) -> RealtimeError {
        known().ending = Ending(code: failure.code)
        return RealtimeError(
            failure.code == .messageTooBig ? .tooLarge : .protocolViolation,
            "\(url(configuration).displayName) sent what is not allowed: \(failure.message)"
                + " (closed with \(failure.code))")
    }

    /// Bytes have come behind a close frame or a violation. A peer that goes on sending is not
    /// waited for until the close timeout: the client may drop the connection (RFC 6455 §7.1.1).
    /// - Returns: how it ends, when it does.
    package func ignored(_ count: Int) -> Ending? {
        guard let end else { return nil }
        end.ignored += count
        return end.ignored > WebSocketLife.mostIgnored ? end.ending : nil
    }

    package enum Loss {
        case nothing
        /// This is to be told; then `finish` with `.abnormal`.
        case failed(RealtimeError)
        /// What `finish` is called with.
        case ended(Ending)
    }

    /// The peer ended the stream, or it broke.
    /// - Parameters:
    ///   - cause: what broke it.
    ///   - isOpen: without a closing handshake before.
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
        case .idle, .connecting, .waiting, .over, .ended: return .nothing
        }
    }

    /// How it ends as far as it is known, when the closing handshake is not waited for any longer.
    package var ending: Ending { end?.ending ?? .abnormal }

    package enum OnClose {
        case nothing
        /// The connection is dropped; a turn of its own tells the end.
        case drop
        /// By the session's closing handshake.
        case handshake
    }

    /// The user closes.
    package mutating func close() -> OnClose {
        switch stage {
        case .idle, .connecting, .handshaking, .refused, .waiting:
            known().ending = .abnormal
            stage = .over
            return .drop
        case .open: return .handshake
        case .over, .ended: return .nothing
        }
    }

    package enum Next {
        /// The end is told already.
        case nothing
        /// Another attempt of this number follows after the delay; nil when there is a network
        /// again.
        case wait(Duration?, attempt: Int)
        /// It is over, and is told now.
        case end
    }

    /// The connection is dropped.
    /// - Parameters:
    ///   - isWanted: the user wants another one.
    ///   - isReachable: there is a network to come back by; asked when it is.
    ///   - wallClock: seconds since 1970, for a server that asks to wait until a date.
    ///   - random: uniform in [0, 1).
    package mutating func finish(
        _ ending: Ending, isWanted: Bool, isReachable: @autoclosure () -> Bool, now: Instant,
        wallClock: Int64, random: Double
    ) -> Next {
        if stage == .ended { return .nothing }
        if isWanted, let reconnection {
            let decision = reconnection.ended(
                code: ending.isPeers ? ending.code : nil, error: end?.error,
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

    /// The wait is over.
    /// - Parameter goesOn: what the user says; then `begin`.
    /// - Returns: false when `finish` follows with `ending`.
    package mutating func endWait(goesOn: Bool) -> Bool {
        guard stage == .waiting else { return false }
        stage = .idle
        if !goesOn { reconnection = nil }
        return goesOn
    }

    /// Why it failed, if it did.
    package var error: RealtimeError? { end?.error }

    /// The connection is dropped, and its end is known but not told.
    package var owesEnd: Bool { stage == .over && end?.ending != nil }

    /// Nothing is to be told any more.
    package mutating func abandon() {
        stage = .ended
        (opening, redirected, end) = (nil, nil, nil)
    }

    // MARK: Time and the network

    /// - Parameter session: when that of an open connection wants to wake up.
    package func wakeUp(session: @autoclosure () -> Instant?) -> Instant? {
        switch stage {
        case .idle, .over, .ended: return nil
        case .waiting: return reconnection?.wakeUp
        case .connecting, .handshaking: return opening?.deadline
        case .refused:
            guard let patience = opening?.refusal?.deadline else { return opening?.deadline }
            return opening?.deadline.map { min($0, patience) } ?? patience
        case .open: return session()
        }
    }

    package enum OnTime {
        case nothing
        /// No connection came about within this limit; libcurl may say why.
        case connectTimedOut(limit: String)
        case failed(RealtimeError)
        /// The session's time has come.
        case session
        /// The user is asked whether this attempt is made; then `endWait`.
        case attempt(Int)
        /// There is no network for it.
        case waitForNetwork(attempt: Int)
    }

    /// - Parameter isReachable: asked when an attempt is due.
    package mutating func timeReached(
        _ now: Instant, _ configuration: WebSocketConfiguration,
        isReachable: @autoclosure () -> Bool
    ) -> OnTime {
        // One with a limit for the answer is a leg of Spreadbot's, where options have other names.
        let option = configuration.answerTimeout > .zero ? "connect_timeout" : "open_timeout"
        let limit = "\(configuration.openTimeout.readable) (\(option))"
        switch stage {
        case .idle, .over, .ended: return .nothing
        case .connecting: return .connectTimedOut(limit: limit)
        case .handshaking:
            let answerLimit = "\(configuration.answerTimeout.readable) (answer_timeout)"
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
            if isReachable() { return .attempt(reconnection.attempt) }
            _ = reconnection.setOnline(false, now: now, random: 0)
            return .waitForNetwork(attempt: reconnection.attempt)
        }
    }

    /// There is a network, or none, to come back by.
    /// - Parameter random: uniform in [0, 1).
    /// - Returns: whether `wakeUp` is another.
    package func setOnline(_ online: Bool, now: Instant, random: Double) -> Bool {
        guard stage == .waiting, let reconnection else { return false }
        return reconnection.setOnline(online, now: now, random: random)
    }
}
