package import Wire

/// A SockJS session by its transport `xhr`: one request always waits for the server's next frame,
/// and another one at a time sends messages. Nothing is repeated: what became of a request that
/// failed is unknown, so its failure ends the session.
package struct SockJSSession: ActionMachine {
    package enum Action: Sendable, Equatable {
        /// Request the next frame.
        case poll
        /// Send this body.
        case send([UInt8])
        /// Messages may be sent.
        case opened
        /// The server has sent messages.
        case received([[UInt8]])
        /// The session has ended. Drop the requests that are still open.
        case ended(DDPSocketEnd)
    }

    private enum Phase { case new, opening, open, closing, ended }

    /// How long the server may send nothing, and take to answer a request that sends messages, once
    /// no more of that request arrives there. It sends a heartbeat every 25 s or, as Meteor does,
    /// every 45 s.
    package static let silenceLimit = Duration.seconds(100)
    /// How long messages that wait when the session is closed may take.
    package static let closeTimeout = Duration.seconds(5)
    /// The shortest time between two requests for frames if the first is answered without messages:
    /// a server that answers at once does not keep both sides busy.
    package static let idlePause = Duration.milliseconds(100)
    /// Messages are sent together up to this size, because some proxies refuse bodies of more than
    /// 1 MiB. A longer message is sent alone.
    package static let bodyBytes = 512 << 10

    /// The server's host and port, for messages.
    private let name: String
    private let unsentLimit: Int
    private var phase = Phase.new
    private var actions = ActionQueue<Action>()
    private var isPolling = false
    private var isPaused = false
    /// The next frame will be requested when the pause ends.
    private var isPollHeld = false
    private var lastPoll = Instant(nanoseconds: 0)
    private var pacer = RequestPacer.polls
    /// When the next frame is requested; nil if it is requested already.
    private var pollDue: Instant?
    private var lastHeard = Instant(nanoseconds: 0)
    /// When the request that sends messages began, or a later time at which more of it had arrived;
    /// nil if there is none.
    private var sendMoved: Instant?
    private var closeLimit: CloseLimit?
    private var waiting: [[UInt8]] = []
    private var waitingBytes = 0
    private var bytesOnTheWay = 0
    /// The body of the request that sends messages, and how many bytes of it have arrived.
    private var sending = SentBytes()
    /// All messages so far.
    private var bytesSent: UInt64 = 0

    /// - Parameters:
    ///   - name: the server's host and port, for messages.
    ///   - unsentLimit: how many bytes of messages may wait. A single message may be longer.
    package init(name: String, unsentLimit: Int) {
        self.name = name
        self.unsentLimit = unsentLimit
    }

    package mutating func nextAction() -> Action? { actions.next() }

    // MARK: The user

    package mutating func start(now: Instant) {
        guard phase == .new else { return }
        phase = .opening
        poll(now)
    }

    /// Sends a message, after those that wait. If more bytes than the limit wait, the session ends.
    package mutating func send(_ message: [UInt8], now: Instant) {
        guard phase == .opening || phase == .open else { return }
        let unsent = waitingBytes + bytesOnTheWay
        guard unsent == 0 || message.count <= unsentLimit - unsent else {
            return end(.full(limit: unsentLimit, server: name))
        }
        waiting.append(message)
        waitingBytes += message.count
        bytesSent &+= UInt64(message.count)
        sendWaiting(now)
    }

    /// Requests no further frame, or continues.
    package mutating func setPaused(_ isPaused: Bool, now: Instant) {
        self.isPaused = isPaused
        if !isPaused, isPollHeld { poll(now) }
    }

    /// Ends the session once all messages are sent. What the server sends meanwhile is ignored.
    package mutating func close(now: Instant) {
        guard phase != .closing, phase != .ended else { return }
        guard phase == .open else { return end(DDPSocketEnd()) }
        phase = .closing
        closeLimit = CloseLimit(SockJSSession.closeTimeout, sent: sentBytes, now: now)
        endIfAllIsSent()
    }

    /// What was sent so far. Messages count while they arrive, and as a whole only when the server
    /// has answered their request.
    package var sentBytes: SentBytes {
        // The body is longer than its messages, because it quotes them.
        let part = Double(sending.arrived) / Double(max(sending.queued, 1))
        let unsent = waitingBytes + bytesOnTheWay - Int(Double(bytesOnTheWay) * part)
        return SentBytes(queued: bytesSent, arrived: bytesSent &- UInt64(clamping: unsent))
    }

    // MARK: The server

    /// So many bytes of the request that sends messages have arrived.
    package mutating func arrived(_ bytes: UInt64, now: Instant) {
        guard sendMoved != nil, bytes > sending.arrived else { return }
        sending.arrived = min(bytes, sending.queued)
        sendMoved = now
    }

    /// A part of the server's frame has arrived.
    package mutating func heard(now: Instant) { lastHeard = now }

    /// A request has been answered.
    /// - Parameter body: that of the answer, or the beginning of a refusal's.
    package mutating func answered(
        _ request: SockJSAction, _ head: ResponseHead, _ body: UnsafeRawBufferPointer, now: Instant
    ) {
        guard phase != .new, phase != .ended else { return }
        switch request {
        case .poll:
            isPolling = false
            guard head.status == 200 else { return refused(head, body) }
            lastHeard = now
            do throws(RealtimeError) {
                try take(SockJSFrame(parsing: body), now)
            } catch {
                let error =
                    phase == .opening && error.code == .protocolViolation
                    ? RealtimeError(
                        .handshake, "\(name) does not answer as a SockJS server: \(error.message)")
                    : RealtimeError(error.code, "\(name): \(error.message)")
                end(DDPSocketEnd(error: error))
            }
        case .send:
            guard head.status == 204 || head.status == 200 else { return refused(head, body) }
            sendMoved = nil
            bytesOnTheWay = 0
            sendWaiting(now)
            endIfAllIsSent()
        }
    }

    /// A request failed, and it is unknown whether the server has seen it.
    package mutating func failed(_ error: RealtimeError) {
        guard phase != .new, phase != .ended else { return }
        end(DDPSocketEnd(error: phase == .closing ? nil : error))
    }

    private mutating func refused(_ head: ResponseHead, _ body: UnsafeRawBufferPointer) {
        if phase == .closing { return end(DDPSocketEnd()) }
        let response = HTTPResponse(head, body: Array(body))
        let error =
            head.status == 404 && phase == .open
            ? RealtimeError(
                .connectionLost, "\(name) does not know this SockJS session any more",
                response: response)
            : RealtimeError(
                .httpStatus, "\(name) answered a request of SockJS with status \(head.status)",
                response: response)
        end(DDPSocketEnd(error: error))
    }

    private mutating func take(_ frame: SockJSFrame, _ now: Instant) throws(RealtimeError) {
        var pause = Duration.zero
        switch frame {
        case .open:
            guard phase == .opening else {
                throw RealtimeError(.connectionLost, "a new SockJS session replaces this one")
            }
            phase = .open
            actions.append(.opened)
            sendWaiting(now)
        case .heartbeat: pause = SockJSSession.idlePause
        case .messages(let messages):
            guard phase != .opening else {
                throw RealtimeError(
                    .protocolViolation, "a SockJS session has messages before it is open")
            }
            if messages.isEmpty {
                pause = SockJSSession.idlePause
            } else if phase == .open {
                actions.append(.received(messages))
            }
        case .close(let code, let reason):
            return end(DDPSocketEnd(closeCode: code, reason: reason))
        }
        let due = max(lastPoll + pause, pacer.earliest)
        if due <= now { poll(now) } else { pollDue = due }
    }

    // MARK: Requests

    private mutating func poll(_ now: Instant) {
        guard phase != .ended else { return }
        pollDue = nil
        isPollHeld = isPaused
        guard !isPaused else { return }
        isPolling = true
        lastPoll = now
        pacer.sent(now: now)
        lastHeard = now
        actions.append(.poll)
    }

    private mutating func sendWaiting(_ now: Instant) {
        guard phase == .open || phase == .closing, sendMoved == nil, !waiting.isEmpty else {
            return
        }
        var count = 0
        var bytes = 0
        while count < waiting.count,
            count == 0 || bytes + waiting[count].count <= SockJSSession.bodyBytes
        {
            bytes += waiting[count].count
            count += 1
        }
        let body = SockJSBody.bytes(of: waiting[..<count])
        sending = SentBytes(queued: UInt64(body.count))
        actions.append(.send(body))
        waiting.removeFirst(count)
        waitingBytes -= bytes
        bytesOnTheWay = bytes
        sendMoved = now
    }

    // MARK: The end

    private mutating func endIfAllIsSent() {
        if phase == .closing, sendMoved == nil, waiting.isEmpty { end(DDPSocketEnd()) }
    }

    private mutating func end(_ end: DDPSocketEnd) {
        phase = .ended
        waiting = []
        (sendMoved, closeLimit, pollDue, isPolling) = (nil, nil, nil, false)
        isPollHeld = false
        // Messages that were received before are still delivered.
        actions.removeAll { action in
            switch action {
            case .poll, .send: true
            case .opened, .received, .ended: false
            }
        }
        actions.append(.ended(end))
    }

    // MARK: Time

    package var wakeUp: Instant? {
        var due = closeLimit?.due
        if let pollDue { due = earlier(due, pollDue) }
        if isPolling { due = earlier(due, lastHeard + SockJSSession.silenceLimit) }
        if let sendMoved { due = earlier(due, sendMoved + SockJSSession.silenceLimit) }
        return due
    }

    private func earlier(_ first: Instant?, _ second: Instant) -> Instant {
        first.map { min($0, second) } ?? second
    }

    package mutating func timeReached(_ now: Instant) {
        if let pollDue, now >= pollDue { poll(now) }
        // This may also extend it.
        let sent = sentBytes
        if closeLimit?.isOver(now, sent) == true { return end(DDPSocketEnd()) }
        guard let due = wakeUp, now >= due else { return }
        guard phase != .closing else { return end(DDPSocketEnd()) }
        let limit = SockJSSession.silenceLimit.readable
        let isSendLate = sendMoved.map { now >= $0 + SockJSSession.silenceLimit } ?? false
        let error = RealtimeError(
            .timeout,
            isSendLate
                ? "\(name) did not answer within \(limit) when messages were sent to it"
                : "\(name) has sent nothing for \(limit)")
        end(DDPSocketEnd(error: error))
    }
}
