import Session
import Wire

/// An answer that refuses, while the beginning of its body comes: many services explain themselves
/// there.
final class HTTPRefusal {
    let head: ResponseHead
    let requestStarted: Instant?
    private(set) var body: [UInt8] = []
    let deadline: Instant

    /// A person is to read it: neither much of it nor much waiting for it is of use.
    static let bodyLimit = 64 << 10
    static let patience = Duration.seconds(2)

    init(_ head: ResponseHead, _ requestStarted: Instant?, now: Instant) {
        self.head = head
        self.requestStarted = requestStarted
        deadline = now + HTTPRefusal.patience
    }

    func take(_ bytes: UnsafeRawBufferPointer) {
        body.append(contentsOf: bytes.prefix(HTTPRefusal.bodyLimit - body.count))
    }

    var isFull: Bool { body.count >= HTTPRefusal.bodyLimit }
}
