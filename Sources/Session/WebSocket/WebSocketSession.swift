package import CShims
package import Wire

/// A WebSocket after its handshake: messages in and out, pings, the closing handshake. A machine
/// without I/O: bytes and the time come in as arguments, bytes to write wait in `outgoing`, and
/// `wakeUp` says when to call `timeReached`.
package struct WebSocketSession: ~Copyable {
    package private(set) var state = State.open
    /// Assembled messages were returned, and `discardDelivered` was not called yet.
    private var owesDelivery = false
    private var isPaused = false
    /// Bytes for the peer, in order.
    package var outgoing = ByteBuffer()

    /// The peer's host and port, for messages.
    private let peerName: String
    private let closeTimeout: Duration
    private let owner: OptionOwner
    private let pongTimeout: Duration
    private let idleTimeout: Duration
    private var reader: MessageReader
    private var writer: MessageWriter
    private var heartbeat: Heartbeat
    private let keys: MaskKeys
    private var closing: Closing?
    /// When the last part of a message came, or receiving began; nil if there is no idle timeout.
    private var lastMessage: Instant?
    /// When bytes came whose meaning is not known yet, because they are a part of a TLS record.
    private var lastUnknown: Instant?
    /// The end that `deliverFirst` announced.
    private var pendingEnd: PendingEnd?
    /// The payload of a ping that came while `outgoing` was crowded. Answered once it is empty.
    private var delayedPong: [UInt8]?

    private var bytesWritten: UInt64 = 0
    private var pingsSent: UInt64 = 0
    private var pongsReceived: UInt64 = 0

    /// Boxed, so that open connections do not pay for it.
    private final class Closing {
        var limit: CloseLimit

        init(_ limit: CloseLimit) { self.limit = limit }
    }

    private enum PendingEnd {
        case closed(CloseCode, reason: String)
        case failed(ProtocolFailure)
    }

    /// If more bytes than this wait, only the last ping is answered (RFC 6455 §5.5.3). So a peer
    /// that pings and does not read cannot make us queue pongs indefinitely.
    private static let crowdedBytes = 64 << 10
    private static let failureTimeout = Duration.seconds(10)

    package init(
        configuration: WebSocketConfiguration, deflate: DeflateParameters?, keys: MaskKeys,
        now: Instant
    ) {
        peerName = configuration.url.displayName
        closeTimeout = configuration.closeTimeout
        owner = configuration.owner
        pongTimeout = configuration.pongTimeout
        idleTimeout = configuration.idleTimeout
        self.keys = keys
        reader = MessageReader(
            limits: configuration.limits, of: configuration.owner, deflate: deflate,
            streams: configuration.deliversPieces)
        heartbeat = Heartbeat(
            interval: configuration.pingInterval, timeout: configuration.pongTimeout,
            requiresPong: configuration.requiresPong, now: now)
        lastMessage = configuration.idleTimeout > .zero ? now : nil
        writer = MessageWriter(configuration, deflate: deflate)
    }

    /// The bytes to which `assembledMessage` and `piece` ranges refer; valid until the next `next`.
    package var assembled: UnsafeRawBufferPointer { reader.assembled }

    /// Call after assembled messages were delivered.
    package mutating func discardDelivered() {
        reader.discardDelivered()
        owesDelivery = false
    }

    /// Swaps the storage of `assembled`, as `MessageReader` does.
    package mutating func exchangeStorage(_ other: inout ByteBuffer) {
        reader.exchangeStorage(&other)
    }

    /// Whether `next` returns a step even without input.
    package var hasPendingEnd: Bool { pendingEnd != nil }

    /// Returns the counts since the last call.
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

    /// Sets whether messages are delivered in pieces, starting with the next message.
    package mutating func setDeliversPieces(_ delivers: Bool) { reader.setStreams(delivers) }

    /// Reads from `offset`, which it advances, up to the next step. Messages that arrive after we
    /// began to close are read and dropped.
    package mutating func next(
        _ input: UnsafeRawBufferPointer, _ offset: inout Int, now: Instant
    ) -> Step {
        if let pendingEnd, !owesDelivery {
            self.pendingEnd = nil
            return end(pendingEnd, now)
        }
        guard state != .finished, pendingEnd == nil else {
            // Bytes after a close frame or a violation are ignored.
            offset = input.count
            return pendingEnd == nil ? .needMoreBytes : .deliverFirst
        }
        do throws(ProtocolFailure) {
            let event = try reader.next(input, &offset)
            if lastMessage != nil, reader.tookData() { lastMessage = now }
            return try step(event, now)
        } catch {
            offset = input.count
            return end(.failed(error), now)
        }
    }

    /// Space into which the rest of a large frame can be read directly; nil if an ordinary read is
    /// better. Report the bytes read with `direct`.
    package mutating func directSpace() -> UnsafeMutableRawBufferPointer? {
        state == .open && pendingEnd == nil ? reader.directSpace() : nil
    }

    /// The most bytes that the next read should take, see `MessageReader`.
    package mutating func takeReadLimit() -> Int { reader.takeReadLimit() }

    /// Handles `count` bytes that were read into `directSpace`.
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

    /// Bytes of any kind arrived, possibly a part of a message or of a TLS record.
    package mutating func receivedBytes() { heartbeat.receivedBytes() }

    /// A part of a TLS record arrived. Until the rest shows that it belongs to a control frame, the
    /// peer is not idle.
    package mutating func received(unknownAt now: Instant) {
        if lastMessage != nil { lastUnknown = now }
    }

    /// Notes that messages came, so the peer is not idle. One call per read is enough.
    package mutating func received(messagesAt now: Instant) {
        if lastMessage != nil { lastMessage = now }
    }

    private var idleDeadline: Instant? {
        lastMessage.map { max($0, lastUnknown ?? $0) + idleTimeout }
    }

    /// Finds messages that lie whole in the input, many at once. `next` reads anything else.
    /// - Returns: how many `messages` it filled in.
    package mutating func wholeMessages(
        _ input: UnsafeRawBufferPointer, _ offset: inout Int,
        into messages: UnsafeMutableBufferPointer<rt_message>
    ) -> Int {
        guard state == .open, pendingEnd == nil else { return 0 }
        return reader.wholeMessages(input, &offset, into: messages)
    }

    /// Removes messages that cannot be delivered yet from the counts. The input is read again from
    /// there later.
    package mutating func giveBack(_ messages: UnsafeBufferPointer<rt_message>) {
        reader.giveBack(messages)
    }

    private mutating func received(
        _ opcode: Opcode, _ now: Instant
    ) throws(ProtocolFailure) -> Step {
        lastUnknown = nil
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
            // An older ping's pong must not follow this one.
            delayedPong = nil
            FrameWriter.write(
                .pong, isFinal: true, isCompressed: false, payload: reader.control,
                key: keys.next(), into: &outgoing)
        }
    }

    /// Checks the peer's close frame and answers with the same code (RFC 6455 §5.5.1, §7.4).
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

    /// Queues a message as frames of at most `maxFrameBytes`. Text must be valid UTF-8.
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

    /// Queues a piece of that message. The pieces of a text must together be valid UTF-8.
    package mutating func write(
        _ piece: UnsafeRawBufferPointer, endsMessage: Bool
    ) throws(RealtimeError) {
        guard state == .open else { throw WebSocketSession.isClosing }
        try writer.write(piece, endsMessage: endsMessage, keys, into: &outgoing)
    }

    /// Queues a ping for the caller. An empty payload is replaced by one of our own.
    /// - Returns: its number, which `pong` reports.
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

    /// Checks now that the peer still answers: a ping is due.
    package mutating func checkPeer(_ now: Instant) { if state == .open { heartbeat.hurry(now) } }

    private mutating func sendPing(_ payload: [UInt8]) {
        pingsSent &+= 1
        payload.withUnsafeBytes {
            FrameWriter.write(
                .ping, isFinal: true, isCompressed: false, payload: $0, key: keys.next(),
                into: &outgoing)
        }
    }

    /// Begins the closing handshake after the queued bytes. Further calls have no effect.
    /// - Parameter unacknowledged: see `sentBytes`.
    package mutating func close(
        _ code: CloseCode?, reason: String, unacknowledged: Int = 0, now: Instant
    ) {
        guard state == .open else { return }
        let sent = sentBytes(unacknowledged: unacknowledged)
        queueClose(code, reason: reason, now, after: sent)
        state = .closing
    }

    /// - Parameter sent: nil if the bytes before the frame get no more time than it.
    private mutating func queueClose(
        _ code: CloseCode?, reason: String, _ now: Instant, after sent: SentBytes? = nil
    ) {
        ClosePayload.bytes(code, reason: reason).withUnsafeBytes {
            FrameWriter.write(
                .close, isFinal: true, isCompressed: false, payload: $0, key: keys.next(),
                into: &outgoing)
        }
        delayedPong = nil
        if closeTimeout > .zero {
            closing = Closing(CloseLimit(closeTimeout, sent: sent, now: now))
        }
    }

    /// Queues a close frame after a fault of the peer. A peer that violates the protocol is not
    /// awaited indefinitely, even if there is no close timeout.
    private mutating func queueFailure(_ code: CloseCode, reason: String, _ now: Instant) {
        queueClose(code, reason: reason, now)
        if closing == nil {
            closing = Closing(CloseLimit(WebSocketSession.failureTimeout, sent: nil, now: now))
        }
    }

    /// The transport took `count` bytes of `outgoing`.
    package mutating func didWrite(_ count: Int) {
        outgoing.consume(count)
        bytesWritten &+= UInt64(truncatingIfNeeded: count)
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

    /// - Parameter unacknowledged: how many of the written bytes the peer's kernel has not
    ///   acknowledged yet.
    package func sentBytes(unacknowledged: Int) -> SentBytes {
        SentBytes(
            queued: bytesWritten &+ UInt64(truncatingIfNeeded: outgoing.count),
            arrived: bytesWritten - min(bytesWritten, UInt64(clamping: unacknowledged)))
    }

    // MARK: Time

    /// When `timeReached` should be called; nil for never.
    package var wakeUp: Instant? {
        guard state == .open else { return closing?.limit.due }
        guard !isPaused, let idleDeadline else { return heartbeat.wakeUp }
        return heartbeat.wakeUp.map { min($0, idleDeadline) } ?? idleDeadline
    }

    /// - Parameter unacknowledged: see `sentBytes`.
    package mutating func timeReached(_ now: Instant, unacknowledged: Int = 0) -> OnTime {
        guard state == .open else {
            let sent = sentBytes(unacknowledged: unacknowledged)
            return closing?.limit.isOver(now, sent) == true ? .closeTimedOut : .nothing
        }
        if !isPaused, let idleDeadline, now >= idleDeadline {
            queueFailure(.goingAway, reason: "idle", now)
            state = .finished
            return .failed(
                RealtimeError(
                    .timeout,
                    "\(peerName) sent no message within \(idleTimeout.readable)"
                        + owner.mention(.idleTimeout)),
                .goingAway)
        }
        let isCrowded = outgoing.count > WebSocketSession.crowdedBytes
        let sent = sentBytes(unacknowledged: unacknowledged)
        switch heartbeat.timeReached(now, isCrowded: isCrowded, sent: sent) {
        case .nothing: return .nothing
        case .ping(let payload):
            // Once per ping is often enough to free memory.
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
                        + " within \(pongTimeout.readable)\(owner.mention(.pongTimeout))"),
                .internalError)
        }
    }

    /// Pauses or resumes receiving. A pause stops the timeouts of pongs and messages.
    package mutating func setPaused(_ isPaused: Bool, now: Instant) {
        if self.isPaused, !isPaused, lastMessage != nil { lastMessage = now }
        self.isPaused = isPaused
        heartbeat.setPaused(isPaused, now: now)
    }

    private static var isClosing: RealtimeError { .init(.closed, "the connection is closing") }
}
