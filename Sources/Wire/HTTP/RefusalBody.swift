/// Collects the beginning of the body of a response that refuses the request: enough to show to a
/// person, never more than the limit (RFC 9112 §6).
package struct RefusalBody: Sendable {
    private enum Framing {
        case done
        /// This many bytes are missing.
        case length(Int)
        /// Everything until the server closes.
        case untilClose
        case chunkSize(digits: [UInt8])
        case chunk(Int)
        /// The line end after a chunk.
        case chunkEnd
    }

    package private(set) var bytes: [UInt8] = []
    private var framing: Framing
    private let limit: Int
    /// The longest size line of a chunk, including extensions.
    private static let longestSizeLine = 256

    package init(of head: ResponseHead, limit: Int) {
        self.limit = limit
        framing = RefusalBody.framing(of: head)
    }

    private static func framing(of head: ResponseHead) -> Framing {
        if head.status == 204 || head.status == 304 { return .done }
        if head.hasToken("chunked", in: "Transfer-Encoding") { return .chunkSize(digits: []) }
        let lengths = head.values("Content-Length")
        guard let text = lengths.first else { return .untilClose }
        // A length that cannot be trusted is ignored, and the body is read up to the limit.
        guard lengths.count == 1, let length = Int(text), length >= 0 else { return .untilClose }
        return length == 0 ? .done : .length(length)
    }

    /// Whether no more bytes are needed.
    package var isComplete: Bool {
        if case .done = framing { return true }
        return bytes.count >= limit
    }

    /// Reads the next bytes from the server.
    package mutating func read(_ input: UnsafeRawBufferPointer) {
        var rest = input[...]
        while !isComplete, let byte = rest.first {
            switch framing {
            case .done: return
            case .untilClose:
                keep(&rest, rest.count)
            case .length(let missing):
                let count = keep(&rest, missing)
                framing = missing == count ? .done : .length(missing - count)
            case .chunkSize(var digits):
                rest.removeFirst()
                if byte == 0x0A {
                    startChunk(digits)
                } else {
                    digits.append(byte)
                    framing =
                        digits.count > RefusalBody.longestSizeLine
                        ? .done : .chunkSize(digits: digits)
                }
            case .chunk(let missing):
                let count = keep(&rest, missing)
                framing = missing == count ? .chunkEnd : .chunk(missing - count)
            case .chunkEnd:
                rest.removeFirst()
                if byte == 0x0A { framing = .chunkSize(digits: []) }
            }
        }
    }

    /// Reads a size line (RFC 9112 §7.1). An invalid size ends the body, and so does the last
    /// chunk, because trailers are not needed.
    private mutating func startChunk(_ line: [UInt8]) {
        let digits = line.prefix { $0 != UInt8(ascii: ";") && $0 != 0x0D && !isBlank($0) }
        let size = Int(String(decoding: digits, as: UTF8.self), radix: 16) ?? 0
        framing = size > 0 ? .chunk(size) : .done
    }

    @discardableResult
    private mutating func keep(
        _ rest: inout Slice<UnsafeRawBufferPointer>, _ wanted: Int
    ) -> Int {
        let count = min(wanted, rest.count, limit - bytes.count)
        bytes.append(contentsOf: rest.prefix(count))
        rest = rest.dropFirst(count)
        return count
    }
}
