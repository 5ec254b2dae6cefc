import Session
import Wire

// Delivers messages, in whatever form they arrived (docs/spreadbot.md, B6).
extension SpreadbotConnection {
    /// Handles a frame of the WebSocket.
    func receive(frame bytes: UnsafeRawBufferPointer, _ kind: MessageKind, _ leg: SpreadbotLeg) {
        if leg.hasMeta, let frame = SpreadbotFrame(parsing: bytes) {
            let event = frame.event.flatMap { $0.isEmpty ? nil : $0 }
            return deliver(leg, id: frame.id, event: event, frame.data)
        }
        if kind == .text, bytes.count > SpreadbotEnvelope.maximumBytes,
            SpreadbotEnvelope.mayBeMessage(bytes)
        {
            return refuse(bytes.count, leg)
        }
        if kind == .text, let envelope = SpreadbotEnvelope.message(bytes) {
            return deliver(leg, envelope)
        }
        deliver(leg, id: nil, event: nil, bytes)
    }

    private func deliver(_ leg: SpreadbotLeg, _ envelope: SpreadbotEnvelope) {
        guard let data = envelope.data else { return skip(leg, envelope) }
        let event = envelope.event ?? []
        data.withUnsafeBytes { data in
            event.withUnsafeBytes { event in
                guard let id = envelope.id else {
                    return deliver(leg, id: nil, event: event.isEmpty ? nil : event, data)
                }
                id.withUnsafeBytes {
                    deliver(leg, id: $0, event: event.isEmpty ? nil : event, data)
                }
            }
        }
    }

    /// Skips an element of a batch that is not a message; its id still moves the cursor.
    private func skip(_ leg: SpreadbotLeg, _ envelope: SpreadbotEnvelope) {
        leg.skipped += 1
        guard leg === self.leg, let id = envelope.id else { return }
        if id.withUnsafeBytes({ session.received(leg.number, id: $0) }) { takeID() }
    }

    /// JSON that would take too long to parse ends the leg, like a message above the caller's
    /// limit.
    private func refuse(_ count: Int, _ leg: SpreadbotLeg) {
        guard session.state != .disconnected else { return }
        let name = configuration.base.displayName
        let most = SpreadbotEnvelope.maximumBytes
        let error = RealtimeError(
            .tooLarge, "\(name) sent \(count) bytes of JSON, more than the \(most) allowed")
        legEnded(leg, SpreadbotLegEnd(error: error))
    }

    /// Handles a poll's response, or a part of one.
    func receive(polled message: LongPollMessage, _ leg: SpreadbotLeg) {
        guard leg === self.leg, case .poll(let poll) = leg.kind else { return }
        let type = MediaType(
            contentType: [String(decoding: message.contentType, as: UTF8.self)])
        let isBatch = type?.matches(SpreadbotBatch.mediaType) ?? false
        if isBatch, message.data.count > SpreadbotEnvelope.maximumBytes {
            return refuse(message.data.count, leg)
        }
        guard isBatch, var batch = SpreadbotBatch(parsing: message.data) else {
            return deliver(leg, id: message.hadID ? message.id : nil, event: nil, message.data)
        }
        var isNew = batch.hasMessages
        if let id = batch.lastID {
            poll.found(id: String(decoding: id, as: UTF8.self))
            isNew = isNew || !id.elementsEqual(session.lastEventID.utf8)
        } else if message.hadID, batch.isEmpty {
            session.moved(leg.number, to: message.id)
            takeID()
        } else if message.hadID {
            batch.idOfAnswer = Array(message.id)
        }
        if !isNew { poll.foundNothing() }
        leg.batch = batch
        // Checking a large batch was enough work for this turn.
        guard message.data.count <= Loop.bytesPerTurn else { return continueBatch(leg) }
        deliverBatch(leg)
    }

    /// How many elements of a batch are delivered in one turn of the loop.
    private static let elementsPerTurn = 1024

    /// Delivers the rest of a batch, some of it in each turn, until it is paused.
    func deliverBatch(_ leg: SpreadbotLeg) {
        var left = SpreadbotConnection.elementsPerTurn
        let end = leg.batch.bytesLeft - Loop.bytesPerTurn
        while leg === self.leg, !isPaused, left > 0, leg.batch.bytesLeft > end,
            let envelope = leg.batch.next()
        {
            // Elements without data and id do not count; they cost no more than their text.
            if envelope.data != nil || envelope.id != nil { left -= 1 }
            deliver(leg, envelope)
        }
        guard leg === self.leg else { return }
        guard leg.batch.isEmpty else {
            if !isPaused { continueBatch(leg) }
            return
        }
        if leg.skipped > 0 {
            let name = configuration.base.displayName
            Log.write(
                .warning, "\(name): skipped \(leg.skipped) elements of a batch without data")
            leg.skipped = 0
        }
        if let end = leg.end { return legEnded(leg, end) }
        makeRoom()
    }

    /// Continues with a batch in the next turn, so that other work comes in between. The leg is
    /// paused until the batch is delivered.
    func continueBatch(_ leg: SpreadbotLeg) {
        leg.pause()
        guard !leg.isContinuing else { return }
        leg.isContinuing = true
        loop.enqueue { [self] in
            leg.isContinuing = false
            deliverBatch(leg)
            if leg === self.leg, !isPaused, leg.batch.isEmpty { resume(leg) }
        }
    }

    /// Delivers a message, unless it is a duplicate.
    /// - Parameters:
    ///   - id: the message's own id.
    ///   - event: nil for the path.
    func deliver(
        _ leg: SpreadbotLeg, id: UnsafeRawBufferPointer?, event: UnsafeRawBufferPointer?,
        _ data: UnsafeRawBufferPointer
    ) {
        guard leg === self.leg, !isClosed, session.received(leg.number, id: id) else { return }
        let hadID = id.map { !$0.isEmpty } ?? false
        if hadID {
            // The cursor from the session, which ignores ids that are not valid in a header.
            let cursor = session.lastEventID
            var text = cursor
            text.withUTF8 { set(&idText, UnsafeRawBufferPointer($0)) }
            publish { $0.lastEventID = cursor }
        }
        guard handlers.message != nil || inbox != nil else { return }
        if let event { set(&eventText, event) }
        // Local references, because the handler may establish another path.
        let id = idText
        let name = event == nil ? pathText : eventText
        id.withUnsafeBytes { id in
            name.withUnsafeBytes { name in
                deliver(
                    SpreadbotMessage(
                        id: UnsafeRawBufferPointer(rebasing: id.dropLast()), hadID: hadID,
                        event: UnsafeRawBufferPointer(rebasing: name.dropLast()), data: data))
            }
        }
    }

    private func deliver(_ message: SpreadbotMessage) {
        if let handle = handlers.message {
            handle(message)
        } else if let inbox {
            keep(
                ReceivedMemory(
                    id: message.id, hadID: message.hadID, event: message.event,
                    data: message.data),
                in: inbox)
        }
    }

    private func set(_ text: inout ContiguousArray<UInt8>, _ bytes: UnsafeRawBufferPointer) {
        text.removeAll(keepingCapacity: true)
        text.append(contentsOf: bytes)
        text.append(0)
    }
}
