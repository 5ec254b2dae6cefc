import Documents
package import Wire

// What the messages of the server mean.
extension DDPSession {
    /// Bytes have arrived on a socket, possibly only a part of a message: a large one over a slow
    /// link may take longer than the server has to answer a ping.
    package mutating func heard(on number: UInt64) {
        if socket == number { heartbeat.heard() }
    }

    /// Receiving on the socket is paused, or continues.
    package mutating func setPaused(_ isPaused: Bool) { heartbeat.setPaused(isPaused) }

    /// A message on a socket.
    /// - Parameter bytes: how long it was.
    package mutating func received(
        _ frame: DDPFrame, bytes: Int, on number: UInt64, now: Instant
    ) {
        settle(now)
        guard socket == number else { return }
        heartbeat.heard()
        if frame.counts { receivedCount += 1 }
        switch frame {
        case .ignored(let reason, _): log("ignored a message: \(reason)")
        case .message(let message): received(message, bytes, number, now)
        case .tooLarge(let error):
            act(.drop(number))
            let limit = OptionOwner.ddp.mention(.maxMessageBytes)
            lose(error.tooLarge(from: configuration.server, limit), now)
        }
    }

    private mutating func received(
        _ message: DDPMessage, _ bytes: Int, _ number: UInt64, _ now: Instant
    ) {
        switch message {
        case .ping(let id): send(DDPWriter.pong(id: id), now)
        case .pong: break
        case .connected(let session):
            guard stage == .greeting(number) else {
                return log("the server confirmed the connection twice")
            }
            versionAccepted(number, now)
            sessionBegan(session, number, now)
        case .failed(let version):
            guard stage == .greeting(number) else {
                return log("the server refused the version of a confirmed connection")
            }
            versionRefused(wants: version, number, now)
        case .document(let event) where streams.contains(ByteText(event.collection)):
            report(.streamed(event.collection, event.asEvent))
        case .document, .ready, .updated: receivedData(message, bytes, now)
        case .nosub:
            receivedData(message, bytes, now)
            takeEffectAfterFlush(message, now)
        case .result:
            if store.isBuffering { flush(now) }
            takeEffectAfterFlush(message, now)
        case .error(let reason, let offending):
            let reason = secrets.redacted(reason)
            let offending = offending.map { secrets.redacted($0) }
            log("the server did not understand a message: \(reason)")
            report(.refused(reason: reason, offending: offending))
        }
    }

    /// What a message does once all documents before it are there.
    mutating func takeEffect(_ message: DDPMessage, _ now: Instant) {
        switch message {
        case .nosub(let id, let error):
            let ended = subscriptions[id]
            subscriptionEnded(id, error?.redacted(by: secrets))
            if let ended { staleSubscriptionEnded(ended, now) }
        case .result(let id, let result):
            receivedResult(id, result.mapError { $0.redacted(by: secrets) }, now)
        case .connected, .failed, .ping, .pong, .document, .ready, .updated, .error: break
        }
    }

    private mutating func takeEffectAfterFlush(_ message: DDPMessage, _ now: Instant) {
        if isFlushing { flushing?.cause = message } else { takeEffect(message, now) }
    }

    /// Whether the documents of a collection are events (Rocket.Chat's servers send `changed` for
    /// one id, again and again). Each message is then reported as it came, at once.
    package mutating func setStream(_ collection: String, _ isStream: Bool) {
        if isStream {
            streams.insert(ByteText(collection))
        } else {
            streams.remove(ByteText(collection))
        }
    }

    /// The number of a call, from its id on the wire; nil if no call has such an id.
    static func callID(_ text: String) -> CallID? {
        guard let first = text.utf8.first, (UInt8(ascii: "1")...UInt8(ascii: "9")).contains(first)
        else { return nil }
        return CallID(text)
    }
}

extension DDPDocumentMessage {
    fileprivate var asEvent: ListChange {
        switch change {
        case .added(let fields): .added(id: id, fields: fields, before: nil)
        case .addedBefore(let fields, let before): .added(id: id, fields: fields, before: before)
        case .changed(let fields, let cleared):
            .changed(id: id, fields: fields, cleared: cleared)
        case .movedBefore(let before): .moved(id: id, before: before)
        case .removed: .removed(id: id)
        }
    }
}
