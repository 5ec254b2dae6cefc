import Wire

/// Messages that are held back until the server has sent again what a connection before this one
/// had, or until a call that others wait for is done.
struct DDPQuiescence: Sendable {
    /// Subscriptions that were ready before, and are not ready again.
    var reviving: Set<ByteText> = []
    /// Calls whose documents have not been sent.
    var blocking: Set<DDPSession.CallID> = []
    /// In their order.
    private(set) var held: [DDPMessage] = []
    private(set) var heldBytes = 0
    /// What a message takes besides its content: the list's element, and the allocations of its
    /// texts and fields.
    private static let messageBytes = 256
    /// All documents are removed when the messages are applied.
    var isResetting = false
    /// When the wait ends in any case; nil unless messages are held back.
    var due: Instant?

    var isWaiting: Bool { !reviving.isEmpty || !blocking.isEmpty }

    /// - Parameter bytes: how long the message was.
    mutating func hold(_ message: DDPMessage, bytes: Int) {
        held.append(message)
        heldBytes += bytes + DDPQuiescence.messageBytes
        switch message {
        case .nosub(let id, _): reviving.remove(ByteText(id))
        case .ready(let ids): for id in ids { reviving.remove(ByteText(id)) }
        case .updated(let ids):
            for id in ids { if let id = DDPSession.callID(id) { blocking.remove(id) } }
        case .connected, .failed, .ping, .pong, .document, .result, .error: break
        }
    }

    /// Nothing is waited for any more.
    mutating func giveUp() {
        reviving = []
        blocking = []
    }

    mutating func takeHeld() -> [DDPMessage] {
        defer {
            held = []
            heldBytes = 0
        }
        return held
    }
}
