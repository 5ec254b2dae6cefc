import Wire

/// One attempt to open a connection. A class, because open connections do not have one.
final class WebSocketOpening {
    var attempt: WebSocketAttempt
    var deadline: Instant?
    /// The deadline is that for the response.
    var isAnswerDue = false
    var handshake: ClientHandshake?
    var reader: ResponseHeadReader
    var request: [UInt8] = []
    var sent = 0
    var refusal: Refusal?
    /// A failure that could not be reported at once.
    var failure: RealtimeError?

    init(_ configuration: WebSocketConfiguration, _ now: Instant) {
        attempt = WebSocketAttempt(configuration)
        reader = ResponseHeadReader(
            limit: configuration.limits.headerBytes, of: configuration.owner)
        let limit = configuration.openTimeout
        deadline = limit > .zero ? now + limit : nil
    }

    /// The response of a server that refuses, until its body is read.
    struct Refusal {
        let head: ResponseHead
        var body: RefusalBody
        let deadline: Instant

        /// The limits on the body, which is for a person to read.
        static let bodyLimit = 64 << 10
        static let patience = Duration.seconds(2)

        init(_ head: ResponseHead, _ now: Instant) {
            self.head = head
            body = RefusalBody(of: head, limit: Refusal.bodyLimit)
            deadline = now + Refusal.patience
        }
    }
}
