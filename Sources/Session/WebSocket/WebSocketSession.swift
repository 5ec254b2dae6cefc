package import CShims
package import Wire

/// The life of a WebSocket after its handshake: messages in and out, pings, the closing handshake.
/// A machine without I/O: bytes and the time come in as arguments, bytes to write wait in
/// `outgoing`, and `wakeUp` says when `timeReached` wants to be called.
package struct WebSocketSession: ~Copyable {
    /// What the next bytes of the input meant.
    package enum Step: Equatable {
        case needMoreBytes
        /// A message, as a range of the input.
        case message(MessageKind, Range<Int>)
        /// A message, as a range of `assembled`.
        case assembledMessage(MessageKind, Range<Int>)
        /// A piece of a message, as a range of `assembled`; only with `deliversPieces`.
        case piece(MessageKind, Range<Int>, isFirst: Bool, isLast: Bool)
        /// One of our pings was answered after this long, and with it all of lower numbers.
        case pong(Duration, number: UInt64)
        /// Something that concerns nobody outside: go on.
        case nothing
        /// The bytes that `allow` granted are inflated. Deliver what is assembled, call `allow`
        /// again in a later turn, then continue with the rest of the input.
        case allowanceSpent
        /// The end came behind assembled messages that were not handed on: hand them on, call
        /// `discardDelivered` and then `next` again. Until then the connection is still open, so
        /// that those messages can be answered.
        case deliverFirst
        /// The peer's close frame. Ours is in `outgoing` or was sent before; the server closes the
        /// connection next (RFC 6455 §7.1.1).
        case closed(CloseCode, reason: String)
        /// The peer broke the protocol while the connection was open; a close frame is in
        /// `outgoing`.
        case failed(ProtocolFailure)
    }

    /// What passing time brought.
    package enum OnTime: Equatable {
        case nothing
        /// A ping is in `outgoing`.
        case pinged
        /// No pong or no message in time; a close frame with this code is in `outgoing`.
        case failed(RealtimeError, CloseCode)
        /// The closing handshake took too long: drop the connection.
        case closeTimedOut
    }

    package enum State: Equatable {
        case open
        /// Our close frame is queued, the peer's is awaited.
        case closing
        /// The peer's close frame came, or it broke the protocol: nothing more is read. The end of
        /// the connection is awaited.
        case finished
    }

    package private(set) var state = State.open
    /// Assembled messages were returned that `discardDelivered` was not called for.
    private var owesDelivery = false
    private var isPaused = false
    /// Bytes for the peer, in order.
    package var outgoing = ByteBuffer()

    /// The peer's host and port, for messages.
    private let peerName: String
    private let closeTimeout: Duration
    private let pongTimeout: Duration
    private let idleTimeout: Duration
    private var reader: MessageReader
    private var writer: MessageWriter
    private var heartbeat: Heartbeat
    private let keys: MaskKeys
    private var closeDeadline: Instant?
    /// When the last message came, or receiving began; nil while it does not matter.
    private var lastMessage: Instant?
    /// The end that `deliverFirst` announced.
    private var pendingEnd: PendingEnd?
    /// The payload of a ping that came while `outgoing` was crowded; answered when it drains.
    private var delayedPong: [UInt8]?

    private var pingsSent: UInt64 = 0
    private var pongsReceived: UInt64 = 0

    /// What went through.
    package struct Counts {
        package var messagesSent, messagesReceived: UInt64
        package var payloadBytesSent, payloadBytesReceived: UInt64
        package var pingsSent, pongsReceived: UInt64
    }

    private enum PendingEnd {
        case closed(CloseCode, reason: String)
        case failed(ProtocolFailure)
    }

    /// Above this many waiting bytes only the last ping is answered (RFC 6455 §5.5.3), so that a
    /// peer that pings and does not read cannot make us queue without end.
    private static let crowdedBytes = 64 << 10
    private static let failureTimeout = Duration.seconds(10)

    package init(
        configuration: WebSocketConfiguration, deflate: DeflateParameters?, keys: MaskKeys,
        now: Instant
    ) {
        peerName = configuration.url.displayName
        closeTimeout = configuration.closeTimeout
        pongTimeout = configuration.pongTimeout
        idleTimeout = configuration.idleTimeout
        self.keys = keys
        reader = MessageReader(
            limits: configuration.limits, deflate: deflate, streams: configuration.deliversPieces)
        heartbeat = Heartbeat(
            interval: configuration.pingInterval, timeout: configuration.pongTimeout, now: now)
        lastMessage = configuration.idleTimeout > .zero ? now : nil
        writer = MessageWriter(configuration, deflate: deflate)
    }

    /// The bytes that `assembledMessage` ranges speak of; valid until the next `next`.
    package var assembled: UnsafeRawBufferPointer { reader.assembled }

    /// Call after assembled messages were handed on.
    package mutating func discardDelivered() {
        reader.discardDelivered()
        owesDelivery = false
    }

    /// Trades the storage of `assembled`, as `MessageReader` does.
    package mutating func exchangeStorage(_ other: inout ByteBuffer) {
        reader.exchangeStorage(&other)
    }

    /// Whether `next` has something to say without any input.
    package var hasPendingEnd: Bool { pendingEnd != nil }

    /// What was counted since the last call.
    package mutating func takeCounts() -> Counts {
        let received = reader.takeCounts()
        let sent = writer.takeCounts()
        defer {
            pingsSent = 0
            pongsReceived = 0
        }
        return Counts(
            messagesSent: sent.messages, messagesReceived: received.messages,
            payloadBytesSent: sent.bytes, payloadBytesReceived: received.bytes,
            pingsSent: pingsSent, pongsReceived: pongsReceived)
    }

    // MARK: Receiving

    /// Lets `next` inflate about this many bytes before it returns `allowanceSpent`.
    package mutating func allow(inflating bytes: Int) { reader.allow(inflating: bytes) }

    /// Whether messages are told in pieces, from the next one on.
    package mutating func setDeliversPieces(_ delivers: Bool) { reader.setStreams(delivers) }

    /// Reads on from `offset`, which it moves, up to the next thing to know. Messages that arrive
    /// after we began to close are read and dropped.
    package mutating func next(
        _ input: UnsafeRawBufferPointer, _ offset: inout Int, now: Instant
    ) -> Step {
        if let pendingEnd, !owesDelivery {
            self.pendingEnd = nil
            return end(pendingEnd, now)
        }
        guard state != .finished, pendingEnd == nil else {
            // Nothing counts behind a close frame or a violation.
            offset = input.count
            return pendingEnd == nil ? .needMoreBytes : .deliverFirst
        }
        do throws(ProtocolFailure) {
            return try step(reader.next(input, &offset), now)
        } catch {
            offset = input.count
            return end(.failed(error), now)
        }
    }

    /// Where the rest of a large frame can be read into directly; nil where the usual way is
    /// better. `direct` must be told what came.
    package mutating func directSpace() -> UnsafeMutableRawBufferPointer? {
        state == .open && pendingEnd == nil ? reader.directSpace() : nil
    }

    /// How many bytes the next read should have at most, as `MessageReader` says.
    package mutating func takeReadLimit() -> Int { reader.takeReadLimit() }

    /// So many bytes came into `directSpace`.
    package mutating func direct(_ count: Int, now: Instant) -> Step {
        do throws(ProtocolFailure) {
            return try step(reader.direct(count) ?? .needMoreBytes, now)
        } catch {
            return end(.failed(error), now)
        }
    }

    private mutating func step(
        _ event: MessageReader.Event, _ now: Instant
    ) throws(ProtocolFailure) -> Step {
        switch event {
        case .needMoreBytes: return .needMoreBytes
        case .allowanceSpent: return .allowanceSpent
        case .message(let kind, let range):
            return state == .open ? .message(kind, range) : .nothing
        case .assembledMessage(let kind, let range):
            if state == .open {
                owesDelivery = true
                return .assembledMessage(kind, range)
            }
            reader.discardDelivered()
            return .nothing
        case .piece(let kind, let range, let isFirst, let isLast):
            if state == .open {
                owesDelivery = true
                return .piece(kind, range, isFirst: isFirst, isLast: isLast)
            }
            reader.discardDelivered()
            return .nothing
        case .control(let opcode): return try received(opcode, now)
        }
    }

    /// Messages came: the peer is not idle. Once for each read will do.
    package mutating func received(messagesAt now: Instant) {
        if lastMessage != nil { lastMessage = now }
    }

    private var idleDeadline: Instant? { lastMessage.map { $0 + idleTimeout } }

    /// Finds messages that lie whole in the input, many at once; what stops it is for `next`.
    /// - Returns: how many `messages` it filled in.
    package mutating func wholeMessages(
        _ input: UnsafeRawBufferPointer, _ offset: inout Int,
        into messages: UnsafeMutableBufferPointer<rt_message>
    ) -> Int {
        guard state == .open, pendingEnd == nil else { return 0 }
        return reader.wholeMessages(input, &offset, into: messages)
    }

    /// Whole messages that cannot be handed on, of an input that is read again from there: they do
    /// not count yet.
    package mutating func giveBack(_ messages: UnsafeBufferPointer<rt_message>) {
        reader.giveBack(messages)
    }

    private mutating func received(
        _ opcode: Opcode, _ now: Instant
    ) throws(ProtocolFailure) -> Step {
        switch opcode {
        case .ping:
            answerPing()
            return .nothing
        case .pong:
            pongsReceived &+= 1
            guard let answer = heartbeat.received(pong: reader.control, now: now) else {
                return .nothing
            }
            return .pong(answer.roundTrip, number: answer.number)
        case .close:
            return try receivedClose(now)
        case .continuation, .text, .binary:
            return .nothing
        }
    }

    private mutating func answerPing() {
        // Nothing may follow our close frame (RFC 6455 §5.5.1).
        guard state == .open else { return }
        if outgoing.count > WebSocketSession.crowdedBytes {
            delayedPong = Array(reader.control)
        } else {
            // An older ping's pong must not come behind this one.
            delayedPong = nil
            FrameWriter.write(
                .pong, isFinal: true, isCompressed: false, payload: reader.control,
                key: keys.next(), into: &outgoing)
        }
    }

    /// RFC 6455 §5.5.1 and §7.4: checks the peer's close frame and answers with the same code.
    private mutating func receivedClose(_ now: Instant) throws(ProtocolFailure) -> Step {
        let (code, reason) = try ClosePayload.parse(reader.control)
        return end(.closed(code, reason: reason), now)
    }

    private mutating func end(_ end: PendingEnd, _ now: Instant) -> Step {
        if owesDelivery, state == .open {
            pendingEnd = end
            return .deliverFirst
        }
        let wasOpen = state == .open
        state = .finished
        switch end {
        case .closed(let code, let reason):
            if wasOpen { queueClose(code == .noStatus ? nil : code, reason: "", now) }
            return .closed(code, reason: reason)
        case .failed(let failure):
            if wasOpen { queueFailure(failure.code, reason: "", now) }
            return .failed(failure)
        }
    }

    // MARK: Sending

    /// Queues a message as one frame, or as several by `maxFrameBytes`. Text must be valid UTF-8.
    package mutating func send(
        _ kind: MessageKind, _ payload: UnsafeRawBufferPointer,
        compression: CompressionChoice = .automatic
    ) throws(RealtimeError) {
        guard state == .open else { throw WebSocketSession.isClosing }
        try writer.send(kind, payload, compression, keys, into: &outgoing)
    }

    /// Whether a message is being sent in pieces.
    package var isStreaming: Bool { writer.isStreaming }

    /// Begins a message that is sent in pieces (RFC 6455 §5.4).
    package mutating func begin(
        _ kind: MessageKind, compression: CompressionChoice
    ) throws(RealtimeError) {
        guard state == .open else { throw WebSocketSession.isClosing }
        try writer.begin(kind, compression)
    }

    /// Queues a piece of the message begun. Pieces of text are valid UTF-8 together.
    package mutating func write(
        _ piece: UnsafeRawBufferPointer, endsMessage: Bool
    ) throws(RealtimeError) {
        guard state == .open else { throw WebSocketSession.isClosing }
        try writer.write(piece, endsMessage: endsMessage, keys, into: &outgoing)
    }

    /// Queues a ping of the caller's; an empty payload is replaced by one of our own.
    /// - Returns: its number, for `pong`.
    @discardableResult
    package mutating func ping(
        _ payload: UnsafeRawBufferPointer, now: Instant
    ) throws(RealtimeError) -> UInt64 {
        guard state == .open else { throw WebSocketSession.isClosing }
        guard payload.count <= 125 else {
            throw RealtimeError(
                .tooLarge, "ping payload of \(payload.count) bytes, 125 are allowed")
        }
        sendPing(heartbeat.ping(payload, now: now))
        return heartbeat.lastNumber
    }

    private mutating func sendPing(_ payload: [UInt8]) {
        pingsSent &+= 1
        payload.withUnsafeBytes {
            FrameWriter.write(
                .ping, isFinal: true, isCompressed: false, payload: $0, key: keys.next(),
                into: &outgoing)
        }
    }

    /// Begins the closing handshake behind what is queued. Closing again changes nothing.
    package mutating func close(_ code: CloseCode?, reason: String, now: Instant) {
        guard state == .open else { return }
        queueClose(code, reason: reason, now)
        state = .closing
    }

    private mutating func queueClose(_ code: CloseCode?, reason: String, _ now: Instant) {
        ClosePayload.bytes(code, reason: reason).withUnsafeBytes {
            FrameWriter.write(
                .close, isFinal: true, isCompressed: false, payload: $0, key: keys.next(),
                into: &outgoing)
        }
        delayedPong = nil
        if closeTimeout > .zero { closeDeadline = now + closeTimeout }
    }

    /// A close frame that the peer's fault made necessary: even without a close timeout a peer
    /// that breaks the protocol is not waited for without end.
    private mutating func queueFailure(_ code: CloseCode, reason: String, _ now: Instant) {
        queueClose(code, reason: reason, now)
        if closeDeadline == nil { closeDeadline = now + WebSocketSession.failureTimeout }
    }

    /// The transport took `count` bytes of `outgoing`.
    package mutating func didWrite(_ count: Int) {
        outgoing.consume(count)
        if count > 0 { heartbeat.progressed() }
        if outgoing.isEmpty, let payload = delayedPong, state == .open {
            delayedPong = nil
            payload.withUnsafeBytes {
                FrameWriter.write(
                    .pong, isFinal: true, isCompressed: false, payload: $0, key: keys.next(),
                    into: &outgoing)
            }
        }
    }

    // MARK: Time

    /// When `timeReached` is next wanted; nil for never.
    package var wakeUp: Instant? {
        guard state == .open else { return closeDeadline }
        guard !isPaused, let idleDeadline else { return heartbeat.wakeUp }
        return heartbeat.wakeUp.map { min($0, idleDeadline) } ?? idleDeadline
    }

    package mutating func timeReached(_ now: Instant) -> OnTime {
        guard state == .open else {
            guard let closeDeadline, now >= closeDeadline else { return .nothing }
            return .closeTimedOut
        }
        if !isPaused, let idleDeadline, now >= idleDeadline {
            queueFailure(.goingAway, reason: "idle", now)
            state = .finished
            return .failed(
                RealtimeError(
                    .timeout,
                    "\(peerName) sent no message within"
                        + " \(idleTimeout.readable) (idle_timeout)"),
                .goingAway)
        }
        let isCrowded = outgoing.count > WebSocketSession.crowdedBytes
        switch heartbeat.timeReached(now, isCrowded: isCrowded) {
        case .nothing: return .nothing
        case .ping(let payload):
            // Now and then is often enough for giving memory back.
            reader.releaseIdleMemory()
            writer.releaseIdleMemory()
            sendPing(payload)
            return .pinged
        case .timedOut:
            queueFailure(.internalError, reason: "no pong", now)
            state = .finished
            return .failed(
                RealtimeError(
                    .timeout,
                    "\(peerName) \(heartbeat.isPingOwed ? "took nothing" : "did not answer a ping")"
                        + " within \(pongTimeout.readable) (pong_timeout)"),
                .internalError)
        }
    }

    /// While receiving is paused nobody reads pongs and messages: their timeouts stand still.
    package mutating func setPaused(_ isPaused: Bool, now: Instant) {
        if self.isPaused, !isPaused, lastMessage != nil { lastMessage = now }
        self.isPaused = isPaused
        heartbeat.setPaused(isPaused, now: now)
    }

    private static var isClosing: RealtimeError {
        RealtimeError(.closed, "the connection is closing")
    }
}
