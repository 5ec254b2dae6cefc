import CShims
package import Session
import Synchronization
package import Wire

/// The text of a message that is sent in pieces; each piece is checked as it is sent.
struct StreamedText {
    let kind: MessageKind
    var validator = UTF8Validator()
}

// Sending, from any thread: checks the arguments, and passes the message to the loop's owner.
extension WebSocketConnection {
    /// Queues a message. Any thread.
    package func send(
        _ kind: MessageKind, _ bytes: UnsafeRawBufferPointer,
        compression: CompressionChoice = .automatic
    ) throws(RealtimeError) {
        let isOpen = try checkSendable()
        if kind == .text, !UTF8Validator.isValid(bytes) {
            throw RealtimeError(.invalidUTF8, "the text to send is not valid UTF-8")
        }
        guard !isStreaming.load(ordering: .relaxed) else {
            throw RealtimeError(.state, "a message is being sent in pieces; end it first")
        }
        let buffered = bufferedBytes
        try checkRoom(bytes.count, besides: buffered)
        let passesHighWater = bytes.count > sendLimits.highWater - buffered
        guard isOpen else { return try keep(kind, bytes, compression) }
        switch loop.enter() {
        case .inside:
            if passesHighWater { owesDrained.store(true, ordering: .relaxed) }
            try sendNow(kind, bytes, compression)
            oweDrainedAboveHighWater()
        case .claimed:
            // `endCall` may tear down a loop that was freed, and with it this object.
            let alive = Unmanaged.passRetained(self)
            defer { alive.release() }
            defer { loop.endCall() }
            if passesHighWater { owesDrained.store(true, ordering: .relaxed) }
            try sendNow(kind, bytes, compression)
            oweDrainedAboveHighWater()
        case .elsewhere:
            let copy = try reserve(bytes)
            postedMessages.add(1, ordering: .relaxed)
            // Set after the bytes were counted; `reportDrained` checks in the opposite order.
            if passesHighWater { owesDrained.store(true, ordering: .releasing) }
            oweDrainedAboveHighWater()
            // Dropped if closing has begun by then; the close callback reports that.
            let message = KeptMessage(kind: kind, bytes: copy, compression: compression)
            loop.enqueue { [self] in sendOrKeep(message) }
        }
    }

    /// Keeps a message for the next connection.
    private func keep(
        _ kind: MessageKind, _ bytes: UnsafeRawBufferPointer, _ compression: CompressionChoice
    ) throws(RealtimeError) {
        let copy = try reserve(bytes)
        let waiting = postedMessages.add(1, ordering: .relaxed).newValue
        guard waiting <= sendLimits.offlineMessages else {
            release(copy.count)
            postedMessages.subtract(1, ordering: .relaxed)
            // The kept messages are gone when the drained event comes.
            oweDrained()
            throw RealtimeError(
                .bufferFull,
                "\(waiting - 1) messages wait for the connection,"
                    + " \(sendLimits.offlineMessages) are allowed"
                    + OptionOwner.websocket.mention(.offlineQueue))
        }
        oweDrainedAboveHighWater()
        let message = KeptMessage(kind: kind, bytes: copy, compression: compression)
        loop.perform { [self] in sendOrKeep(message) }
    }

    /// A caller that finds the unsent bytes above the mark may wait for the drained event. Also
    /// checked after each send, because frame headers and queued messages count as well as payload.
    private func oweDrainedAboveHighWater() {
        if bufferedBytes > sendLimits.highWater {
            owesDrained.store(true, ordering: .releasing)
        }
    }

    /// Makes the drained handler run once nothing waits. For callers that found the buffer full and
    /// then set the handler. Any thread.
    package func oweDrained() {
        if !owesDrained.exchange(true, ordering: .acquiringAndReleasing) {
            // The buffer may have drained between the two checks.
            loop.perform { [self] in scheduleTurn() }
        }
    }

    /// The bytes that a waiting message counts for: empty messages need memory too.
    static func cost(of count: Int) -> Int { count + FrameWriter.maximumHeaderSize }

    /// Copies bytes to be queued. Counts them first, so that racing threads see the remaining room.
    private func reserve(_ bytes: UnsafeRawBufferPointer) throws(RealtimeError) -> [UInt8] {
        let cost = WebSocketConnection.cost(of: bytes.count)
        let posted = postedBytes.add(cost, ordering: .relaxed).newValue
        do throws(RealtimeError) {
            let others = posted - cost + outgoingBytes.load(ordering: .relaxed)
            try checkRoom(cost, besides: others)
        } catch {
            release(bytes.count)
            throw error
        }
        return Array(bytes)
    }

    /// Uncounts bytes that `reserve` counted.
    func release(_ count: Int) {
        postedBytes.subtract(WebSocketConnection.cost(of: count), ordering: .relaxed)
    }

    /// Throws if the message would exceed `sendLimit`, or if the process can have no memory for a
    /// copy. A single message may be larger than the limit, because it could never be sent
    /// otherwise.
    private func checkRoom(_ count: Int, besides buffered: Int) throws(RealtimeError) {
        guard Memory.has(count) else { throw Memory.exceeded("a message", count) }
        let limit = sendLimits.bytes
        guard limit > 0, buffered > 0, count > limit - buffered else { return }
        // A refused caller may wait for the drained event, whatever the high-water mark is.
        oweDrained()
        throw RealtimeError(
            .bufferFull,
            "\(buffered) bytes wait to be sent and \(count) more would pass the limit of"
                + " \(limit)\(OptionOwner.websocket.mention(.sendLimit));"
                + " wait until it has drained")
    }

    /// Sends a ping. An empty payload is replaced by one of the library's. Any thread.
    /// - Parameter answered: called on the loop's thread with the round trip, unless the connection
    ///   ends before.
    package func ping(
        _ payload: UnsafeRawBufferPointer, answered: ((Duration) -> Void)? = nil
    ) throws(RealtimeError) {
        try checkConnected()
        guard payload.count <= 125 else {
            throw RealtimeError(
                .tooLarge, "a ping's payload has \(payload.count) bytes, 125 are allowed")
        }
        // Counts like a message, so that pings to a peer that does not read are limited too.
        try checkRoom(payload.count + FrameWriter.maximumHeaderSize, besides: bufferedBytes)
        let copy = try reserve(payload)
        loop.perform { [self] in
            defer { release(copy.count) }
            pingNow(copy, answered)
        }
    }

    // MARK: Messages in pieces

    /// Begins a message that is sent in pieces. No other can be sent until it ends. Any thread.
    package func beginMessage(
        _ kind: MessageKind, compression: CompressionChoice
    ) throws(RealtimeError) {
        try checkConnected()
        let isFirst = streaming.withLock { streaming -> Bool in
            guard streaming == nil else { return false }
            streaming = StreamedText(kind: kind)
            isStreaming.store(true, ordering: .releasing)
            return true
        }
        guard isFirst else {
            throw RealtimeError(.state, "a message is already being sent in pieces")
        }
        loop.perform { [self] in try? session?.pointee.begin(kind, compression: compression) }
    }

    /// Sends the next piece of the current message. Any thread.
    package func continueMessage(_ bytes: UnsafeRawBufferPointer) throws(RealtimeError) {
        try checkConnected()
        try checkRoom(bytes.count, besides: bufferedBytes)
        try checkStreamed(bytes, endsMessage: false)
        post(bytes, endsMessage: false)
    }

    /// Ends the current message. Any thread.
    package func endMessage() throws(RealtimeError) {
        try checkConnected()
        let nothing = UnsafeRawBufferPointer(start: nil, count: 0)
        try checkStreamed(nothing, endsMessage: true)
        post(nothing, endsMessage: true)
        endStreaming()
    }

    func endStreaming() {
        streaming.withLock { streaming in
            streaming = nil
            isStreaming.store(false, ordering: .releasing)
        }
    }

    private func checkStreamed(
        _ bytes: UnsafeRawBufferPointer, endsMessage: Bool
    ) throws(RealtimeError) {
        let failure = streaming.withLock { streaming -> RealtimeError? in
            guard let current = streaming else {
                return RealtimeError(.state, "no message is being sent in pieces")
            }
            guard current.kind == .text else { return nil }
            var validator = current.validator
            guard validator.accepts(bytes), !endsMessage || validator.isComplete else {
                return RealtimeError(
                    .invalidUTF8,
                    endsMessage
                        ? "the text to send ends inside a character"
                        : "the piece of text to send is not valid UTF-8")
            }
            streaming?.validator = validator
            return nil
        }
        if let failure { throw failure }
    }

    private func post(_ bytes: UnsafeRawBufferPointer, endsMessage: Bool) {
        if bytes.count > sendLimits.highWater - bufferedBytes {
            owesDrained.store(true, ordering: .releasing)
        }
        switch loop.enter() {
        case .inside:
            writePiece(bytes, endsMessage: endsMessage)
            oweDrainedAboveHighWater()
        case .claimed:
            let alive = Unmanaged.passRetained(self)
            defer { alive.release() }
            writePiece(bytes, endsMessage: endsMessage)
            oweDrainedAboveHighWater()
            loop.endCall()
        case .elsewhere:
            // Not checked for room again: the text's validator already includes this piece.
            let copy = Array(bytes)
            postedBytes.add(WebSocketConnection.cost(of: copy.count), ordering: .relaxed)
            oweDrainedAboveHighWater()
            loop.enqueue { [self] in
                copy.withUnsafeBytes { writePiece($0, endsMessage: endsMessage) }
                release(copy.count)
            }
        }
    }

    /// If closing has begun the piece is dropped; the close callback reports that.
    private func writePiece(_ bytes: UnsafeRawBufferPointer, endsMessage: Bool) {
        guard let session, session.pointee.isStreaming else { return }
        try? session.pointee.write(bytes, endsMessage: endsMessage)
        queued()
        // Messages that other threads sent meanwhile.
        if endsMessage { sendKept() }
    }

    // MARK: Checks

    func checkConnected() throws(RealtimeError) {
        try loop.checkUsable()
        switch state {
        case .open: return
        case .new, .connecting:
            throw RealtimeError(.state, "the connection is not open yet")
        case .waiting:
            throw RealtimeError(.state, "the connection is lost; the next attempt has not begun")
        case .closing, .closed:
            throw RealtimeError(.closed, "the connection is closing or closed")
        }
    }

    /// Whether a message can be sent now; false if it can be kept for the next connection.
    private func checkSendable() throws(RealtimeError) -> Bool {
        try loop.checkUsable()
        switch state {
        case .open: return true
        case .connecting, .waiting:
            if sendLimits.offlineMessages > 0 { return false }
        case .new, .closing, .closed: break
        }
        try checkConnected()
        return true
    }
}
