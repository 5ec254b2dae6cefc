import Session
import Wire

/// A request body that arrives in pieces, or waits for 100 Continue, on its way to libcurl. It
/// never has more bytes than announced, because the server would read those as the next request.
struct RequestBody: ~Copyable {
    enum Step {
        /// This many bytes were written; 0 is the end.
        case bytes(Int)
        /// No bytes are there yet. `isNew` if this is the first time, so that the owner must be
        /// asked.
        case later(isNew: Bool)
        case failed
    }

    private var bytes = ByteBuffer()
    private var hasEnded = false
    private var hasFailed = false
    /// libcurl waits for bytes.
    private(set) var isAwaited = false
    /// nil if the length was not announced.
    private let length: Int?
    private var left = 0
    /// Bytes of it that had arrived at the server when that was last asked.
    var arrived: UInt64 = 0
    private var fault: String?
    /// The server has yet to decide whether it wants the body.
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

    /// The server wants the body, or did not respond in time; or it has responded without the body.
    mutating func begin(isWanted: Bool = true) {
        isWithheld = false
        isUnwanted = !isWanted
    }

    mutating func append(_ more: UnsafeRawBufferPointer) { bytes.append(more) }

    mutating func end(failed: Bool) {
        hasEnded = true
        hasFailed = failed
    }

    /// Call when there are more bytes. Returns whether libcurl waited for them.
    mutating func hasWaited() -> Bool { exchange(&isAwaited, with: false) }

    /// Called by libcurl, which may ask again while its response is paused; the owner is asked
    /// once.
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

    /// Why the body ended the exchange.
    var failure: (code: RealtimeError.Code, text: String)? {
        guard hasFailed else { return nil }
        return fault.map { (.invalidArgument, $0) } ?? (.cancelled, "ended with an error")
    }
}
