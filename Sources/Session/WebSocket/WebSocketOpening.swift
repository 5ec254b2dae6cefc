import Wire

/// One attempt to come to an open connection. A class, since a connection that is open has none.
final class WebSocketOpening {
    var attempt: WebSocketAttempt
    var deadline: Instant?
    /// The time is that for an answer.
    var isAnswerDue = false
    var handshake: ClientHandshake?
    var reader: ResponseHeadReader
    var request: [UInt8] = []
    var sent = 0
    var refusal: Refusal?
    /// It failed where nothing could be told.
    var failure: RealtimeError?

    init(_ configuration: WebSocketConfiguration, _ now: Instant) {
        attempt = WebSocketAttempt(configuration)
        reader = ResponseHeadReader(limit: configuration.limits.headerBytes)
        let limit = configuration.openTimeout
        deadline = limit > .zero ? now + limit : nil
    }

    /// The answer of a server that refused, while its body comes.
    struct Refusal {
        let head: ResponseHead
        var body: RefusalBody
        let deadline: Instant

        /// A person is to read it: neither much of it nor much waiting for it is of use.
        static let bodyLimit = 64 << 10
        static let patience = Duration.seconds(2)

        init(_ head: ResponseHead, _ now: Instant) {
            self.head = head
            body = RefusalBody(of: head, limit: Refusal.bodyLimit)
            deadline = now + Refusal.patience
        }
    }
}
