import Session
import Wire

// Messages, whatever form they came in (sse-poll-rest.md, B6).
extension SpreadbotConnection {
    /// A frame of the WebSocket.
    func receive(frame bytes: UnsafeRawBufferPointer, _ kind: MessageKind, _ leg: SpreadbotLeg) {
        if leg.hasMeta, let frame = SpreadbotFrame(parsing: bytes) {
            let event = frame.event.flatMap { $0.isEmpty ? nil : $0 }
            return deliver(leg, id: frame.id, event: event, frame.data)
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

    /// An element of a batch that is no message: its id counts as if it were one.
    private func skip(_ leg: SpreadbotLeg, _ envelope: SpreadbotEnvelope) {
        let name = configuration.base.displayName
        Log.write(.warning, "\(name): an element of a batch has no data, and is skipped")
        guard leg === self.leg, let id = envelope.id else { return }
        if id.withUnsafeBytes({ session.received(leg.number, id: $0) }) { takeID() }
    }

    /// An answer of a poll, or a part of one.
    func receive(polled message: LongPollMessage, _ leg: SpreadbotLeg) {
        let type = MediaType(String(decoding: message.contentType, as: UTF8.self))
        guard let type, type.matches(SpreadbotEnvelope.batchType),
            var batch = SpreadbotEnvelope.batch(message.data)
        else {
            return deliver(leg, id: message.hadID ? message.id : nil, event: nil, message.data)
        }
        guard case .poll(let poll) = leg.kind else { return }
        let cursor = session.lastEventID
        var isNew = batch.contains { $0.data != nil }
        if let id = batch.last(where: { $0.id != nil })?.id {
            poll.found(id: String(decoding: id, as: UTF8.self))
            isNew = isNew || !id.elementsEqual(cursor.utf8)
        } else if message.hadID, batch.isEmpty {
            session.moved(leg.number, to: message.id)
            takeID()
        } else if message.hadID {
            batch[batch.count - 1].id = Array(message.id)
        }
        if !isNew { poll.foundNothing() }
        leg.batch = batch[...]
        deliverBatch(leg)
    }

    /// Hands on what is left of a batch, until it is paused.
    func deliverBatch(_ leg: SpreadbotLeg) {
        while leg === self.leg, !isPaused, let envelope = leg.batch.popFirst() {
            deliver(leg, envelope)
        }
        makeRoom()
    }

    /// Hands on what was not delivered before.
    /// - Parameters:
    ///   - id: the message's own.
    ///   - event: nil for the path.
    func deliver(
        _ leg: SpreadbotLeg, id: UnsafeRawBufferPointer?, event: UnsafeRawBufferPointer?,
        _ data: UnsafeRawBufferPointer
    ) {
        guard leg === self.leg, !isClosed, session.received(leg.number, id: id) else { return }
        let hadID = id.map { !$0.isEmpty } ?? false
        if hadID {
            // As the session took it: one that fits no header is no cursor.
            let cursor = session.lastEventID
            var text = cursor
            text.withUTF8 { set(&idText, UnsafeRawBufferPointer($0)) }
            publish { $0.lastEventID = cursor }
        }
        guard let handle = handlers.message else { return }
        if let event { set(&eventText, event) }
        // Copies, by reference: the handler may establish another path.
        let id = idText
        let name = event == nil ? pathText : eventText
        id.withUnsafeBytes { id in
            name.withUnsafeBytes { name in
                handle(
                    SpreadbotMessage(
                        id: UnsafeRawBufferPointer(rebasing: id.dropLast()), hadID: hadID,
                        event: UnsafeRawBufferPointer(rebasing: name.dropLast()), data: data))
            }
        }
    }

    private func set(_ text: inout ContiguousArray<UInt8>, _ bytes: UnsafeRawBufferPointer) {
        text.removeAll(keepingCapacity: true)
        text.append(contentsOf: bytes)
        text.append(0)
    }
}
