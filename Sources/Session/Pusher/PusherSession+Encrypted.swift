import Wire

/// The key of an encrypted channel, and the events that wait for a new one.
struct PusherEncryption: Sendable {
    var key: SharedSecret?
    /// The number of the request for a new key; events wait while there is one.
    var request: UInt64?
    /// In the order of their arrival. The request was made for the first one.
    var held: ArraySlice<PusherEvent> = []

    init() {}

    mutating func holdFirst(_ event: PusherEvent) { held.insert(event, at: held.startIndex) }
}

extension PusherSession {
    /// An event of an encrypted channel. It is delivered later, decrypted.
    mutating func receivedEncrypted(_ envelope: PusherEnvelope, _ id: ChannelID, _ now: Instant) {
        guard let encryption = channels[id]?.encryption else { return }
        let event = PusherEvent(envelope)
        guard encryption.request != nil else {
            if !decrypt(event, id) { hold(event, id, now) }
            return
        }
        guard encryption.held.count < PusherConfiguration.heldEventLimit,
            hasRoom(for: event.source.count)
        else {
            log("too many events wait for new keys of their channels")
            return decryptionFailed(event, id)
        }
        channels[id]?.encryption.held.append(event)
        heldBytes += event.source.count
    }

    /// Whether so many bytes more may wait for new keys, in all channels.
    private mutating func hasRoom(for bytes: Int) -> Bool {
        let limit = PusherConfiguration.heldBytesLimit
        guard heldBytes + bytes > limit else { return true }
        // Channels may have gone with their events.
        heldBytes = channels.ordered.reduce(0) { sum, id in
            (channels[id]?.encryption.held ?? []).reduce(sum) { $0 + $1.source.count }
        }
        return heldBytes + bytes <= limit
    }

    /// - Returns: false if a new key may help. Otherwise the event was delivered, or its failure
    ///   reported.
    private mutating func decrypt(_ event: PusherEvent, _ id: ChannelID) -> Bool {
        let key = channels[id]?.encryption.key
        var box = PusherSecretBox()
        do throws(RealtimeError) {
            // The text must be copied before the box is used again.
            let opened = try event.withData { data throws(RealtimeError) -> Decrypted in
                switch try box.open(data, with: key) {
                case .text(let text): .text(Array(text))
                case .wrongKey: .wrongKey
                case .malformed(let words): .malformed(words)
                }
            }
            switch opened {
            case .text(let text):
                var event = event
                (event.dataKind, event.dataBytes) = (.text, text)
                report(.event(event, id))
            case .wrongKey: return false
            case .malformed(let words):
                log("an event cannot be decrypted: \(words)")
                decryptionFailed(event, id)
            }
        } catch {
            log(error.message)
            decryptionFailed(event, id)
        }
        return true
    }

    private enum Decrypted {
        case text([UInt8])
        case wrongKey
        case malformed(String)
    }

    /// Requests a new key. This event, and all later ones of the channel, wait for it.
    private mutating func hold(_ event: PusherEvent, _ id: ChannelID, _ now: Instant) {
        guard keyPacer.earliest <= now, hasRoom(for: event.source.count) else {
            log("new keys are needed too often")
            return decryptionFailed(event, id)
        }
        keyPacer.sent(now: now)
        let number = request(.key(id), of: [id])
        channels[id]?.encryption.request = number
        channels[id]?.encryption.holdFirst(event)
        heldBytes += event.source.count
    }

    /// The new key has come. The first event gets no other one.
    mutating func renewed(_ key: SharedSecret?, _ id: ChannelID, _ now: Instant) {
        guard channels[id]?.encryption.request != nil else { return }
        channels[id]?.encryption.request = nil
        if let key { channels[id]?.encryption.key = key }
        guard let first = takeHeld(id) else { return }
        if !decrypt(first, id) { decryptionFailed(first, id) }
        continueHeld(id, now)
    }

    mutating func keyRefused(_ error: RealtimeError, _ id: ChannelID, _ now: Instant) {
        log("no new key for an encrypted channel: \(error.message)")
        renewed(nil, id, now)
    }

    /// Decrypts the events that waited, until one needs another key.
    private mutating func continueHeld(_ id: ChannelID, _ now: Instant) {
        while channels[id]?.encryption.request == nil, let event = takeHeld(id) {
            if !decrypt(event, id) { hold(event, id, now) }
        }
    }

    private mutating func takeHeld(_ id: ChannelID) -> PusherEvent? {
        guard let first = channels[id]?.encryption.held.popFirst() else { return nil }
        heldBytes -= first.source.count
        return first
    }

    private mutating func decryptionFailed(_ event: PusherEvent, _ id: ChannelID) {
        report(
            id,
            .decryptionFailed(
                event: String(decoding: event.event, as: UTF8.self),
                data: event.dataKind == .none ? nil : event.dataBytes))
    }

    /// The connection has ended, so no key comes for the events that wait.
    mutating func loseHeldEvents(_ id: ChannelID) {
        while let event = takeHeld(id) { decryptionFailed(event, id) }
    }

    mutating func cancelKeyRequest(_ entry: PusherChannelEntry) {
        if let number = entry.encryption.request { cancelRequest(number) }
    }
}
