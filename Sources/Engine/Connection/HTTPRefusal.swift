import Session
import Wire

/// A response that refuses, while the beginning of its body arrives. Many servers explain the
/// refusal there.
final class HTTPRefusal {
    let head: ResponseHead
    let requestStarted: Instant?
    private(set) var body: [UInt8] = []
    let deadline: Instant

    /// The body is for people to read, so a short part, available soon, is enough.
    static let bodyLimit = 64 << 10
    static let bodyTimeout = Duration.seconds(2)

    init(_ head: ResponseHead, _ requestStarted: Instant?, now: Instant) {
        self.head = head
        self.requestStarted = requestStarted
        deadline = now + HTTPRefusal.bodyTimeout
    }

    func take(_ bytes: UnsafeRawBufferPointer) {
        body.append(contentsOf: bytes.prefix(HTTPRefusal.bodyLimit - body.count))
    }

    var isFull: Bool { body.count >= HTTPRefusal.bodyLimit }
}
