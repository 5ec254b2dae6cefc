import Session
import Wire

/// The body of a request that comes piece by piece, or waits for the server's word, between who has
/// it and libcurl. Not a byte more than was said: it would be the server's next request.
struct RequestBody: ~Copyable {
    enum Step {
        /// So many bytes were written; 0 is the end.
        case bytes(Int)
        /// None is there yet; `isNew` the first time, when its owner is to be asked for more.
        case later(isNew: Bool)
        case failed
    }

    private var bytes = ByteBuffer()
    private var hasEnded = false
    private var hasFailed = false
    /// libcurl waits for it.
    private(set) var isAwaited = false
    /// nil when nothing was said of its length.
    private let length: Int?
    private var left = 0
    private var fault: String?
    /// The server has not said yet whether it wants it.
    private(set) var isWithheld: Bool
    private var isUnwanted = false

    init(_ request: borrowing HTTPRequest) {
        isWithheld = request.expectsContinue
        switch request.body {
        case .stream(let length): self.length = length
        case .bytes(let whole) where isWithheld:
            length = whole.count
            whole.withUnsafeBytes { bytes.append($0) }
            hasEnded = true
        case .none, .bytes: length = nil
        }
        left = length ?? 0
    }

    /// The server wants it, or has said nothing for long enough; or it has answered without it.
    mutating func begin(isWanted: Bool = true) {
        isWithheld = false
        isUnwanted = !isWanted
    }

    mutating func append(_ more: UnsafeRawBufferPointer) { bytes.append(more) }

    mutating func end(failed: Bool) {
        hasEnded = true
        hasFailed = failed
    }

    /// There is more: whether libcurl waited for it.
    mutating func hasWaited() -> Bool {
        defer { isAwaited = false }
        return isAwaited
    }

    /// For libcurl, which asks again while it holds back an answer: its owner was asked already.
    mutating func take(into space: UnsafeMutableRawBufferPointer) -> Step {
        if isUnwanted { return .bytes(0) }
        if isWithheld {
            isAwaited = true
            return .later(isNew: false)
        }
        let count = min(space.count, bytes.count)
        if count > 0 {
            if let length, count > left { return fail("is longer than its \(length) bytes") }
            left -= count
            space.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes.readable.prefix(count)))
            bytes.consume(count)
            return .bytes(count)
        }
        if hasFailed { return .failed }
        if hasEnded {
            guard let length, left > 0 else { return .bytes(0) }
            return fail("ended after \(length - left) of \(length) bytes")
        }
        defer { isAwaited = true }
        return .later(isNew: !isAwaited)
    }

    private mutating func fail(_ how: String) -> Step {
        hasFailed = true
        fault = how
        return .failed
    }

    /// Why it ended the exchange.
    var failure: (code: RealtimeError.Code, text: String)? {
        guard hasFailed else { return nil }
        return fault.map { (.invalidArgument, $0) } ?? (.cancelled, "ended with an error")
    }
}
