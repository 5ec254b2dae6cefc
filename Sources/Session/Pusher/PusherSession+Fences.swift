import Wire

/// The pings that were sent as messages, and the channels that wait until one is answered.
///
/// A server answers the messages of a connection in their order. So when it answers a ping, it has
/// answered the subscriptions that were sent before it, or it never will (docs/pusher-rules.md,
/// U7).
struct PusherFences: Sendable {
    typealias ID = PusherSession.ChannelID

    /// How many pings were sent on the connection, and how many of them were answered.
    private(set) var sent: UInt64 = 0
    private(set) var answered: UInt64 = 0
    /// Cancelled channels whose answers others wait for, each with the number of the ping whose
    /// answer ends the wait.
    private var waiting: [(fence: UInt64, id: ID)] = []

    /// The number of the next ping.
    var next: UInt64 { sent + 1 }

    mutating func pingSent() { sent += 1 }

    /// A pong that answers no ping is ignored.
    mutating func pongReceived() { answered = min(answered + 1, sent) }

    mutating func add(_ id: ID, fence: UInt64) { waiting.append((fence, id)) }
    mutating func remove(_ id: ID) { waiting.removeAll { $0.id == id } }

    /// Removes a channel whose wait has ended: its ping was answered.
    mutating func pop() -> ID? {
        let index = waiting.firstIndex { $0.fence <= answered }
        return index.map { waiting.remove(at: $0).id }
    }
}

// A channel that is unsubscribed and subscribed again, before the server has answered.
//
// An `unsubscribe` cannot be sent before the answer: Pusher refuses it by an error without a
// channel, and subscribes the channel all the same. Nor can a second `subscribe`: its answer looks
// like that to the first.
extension PusherSession {
    /// Sends a ping as a message.
    mutating func sendPing() {
        fences.pingSent()
        send(PusherMessage.ping)
    }

    /// The server has answered a ping. If it never does, the ended subscriptions are given up like
    /// all that it does not answer (`failUnanswered`).
    mutating func pongReceived(_ now: Instant) {
        fences.pongReceived()
        passFences(now)
        subscribeUserAgain(now)
    }

    /// A channel waits for the answer to the subscription of a cancelled one.
    mutating func awaitAnswer(of id: ChannelID, _ now: Instant) {
        guard let fence = channels[id]?.fence else { return }
        if fence > fences.sent { sendPing() }
        fences.add(id, fence: fence)
        passFences(now)
    }

    /// Subscribes the channels that have waited for an answer that does not come.
    private mutating func passFences(_ now: Instant) {
        while let id = fences.pop() {
            guard let entry = channels[id] else { continue }
            // An error without a channel may have been the answer.
            _ = refusals.take(
                hasSignature: entry.name.needsAuthorization, since: entry.sentAt)
            end(id, now)
            judgeRefusals(now)
        }
    }

    /// A cancelled channel was answered, or will not be.
    mutating func end(_ id: ChannelID, _ now: Instant) {
        fences.remove(id)
        if let next = channels.remove(id)?.successor { begin(next, now) }
    }
}
