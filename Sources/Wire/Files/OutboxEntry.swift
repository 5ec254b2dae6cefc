/// A message that waits in an outbox until it is sent.
package struct OutboxMessage: Equatable, Sendable {
    package enum Kind: UInt8, Sendable {
        case text = 1
        case binary = 2
        case request = 3
    }

    package var kind: Kind
    /// The idempotency key.
    package var key: String
    /// A request's path, relative to the base URL; "" otherwise.
    package var path: String
    /// A request's media type; "" otherwise.
    package var contentType: String
    package var payload: [UInt8]

    package init(
        _ kind: Kind, key: String = "", path: String = "", contentType: String = "",
        payload: [UInt8]
    ) {
        self.kind = kind
        self.key = key
        self.path = path
        self.contentType = contentType
        self.payload = payload
    }
}

/// A message with its position in the order. Ids only increase, even across runs while messages
/// wait.
package struct OutboxEntry: Equatable, Sendable {
    package let id: UInt64
    package let message: OutboxMessage

    package init(id: UInt64, message: OutboxMessage) {
        self.id = id
        self.message = message
    }
}
