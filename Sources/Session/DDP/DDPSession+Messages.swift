package import Wire

// What the messages of the server mean.
extension DDPSession {
    /// A message on a socket.
    /// - Parameter bytes: how long it was.
    package mutating func received(
        _ frame: DDPFrame, bytes: Int, on number: UInt64, now: Instant
    ) {
        guard socket == number else { return }
        heartbeat.heard()
        if frame.counts { receivedCount += 1 }
        switch frame {
        case .ignored(let reason, _): log("ignored a message: \(reason)")
        case .message(let message): received(message, bytes, number, now)
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
        case .document, .ready, .updated: receivedData(message, bytes, now)
        case .nosub(let id, let error):
            receivedData(message, bytes, now)
            let ended = subscriptions.byID[id]
            subscriptionEnded(id, error)
            if let ended { staleSubscriptionEnded(ended, now) }
        case .result(let id, let result): receivedResult(id, result, now)
        case .error(let reason, let offending):
            log("the server did not understand a message: \(reason)")
            act(.refused(reason: reason, offending: offending))
        }
    }

    /// The number of a call, from its id on the wire; nil if no call has such an id.
    static func callID(_ text: String) -> CallID? {
        guard let first = text.utf8.first, (UInt8(ascii: "1")...UInt8(ascii: "9")).contains(first)
        else { return nil }
        return CallID(text)
    }
}
