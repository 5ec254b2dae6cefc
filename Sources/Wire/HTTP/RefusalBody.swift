/// Gathers the beginning of the body of an answer that was not wanted: enough to show to a person,
/// never more than the limit. RFC 9112 §6.
package struct RefusalBody: Sendable {
    private enum Framing {
        case done
        /// So many bytes are missing.
        case length(Int)
        /// All until the server closes.
        case untilClose
        case chunkSize(digits: [UInt8])
        case chunk(Int)
        /// The line end behind a chunk.
        case chunkEnd
    }

    package private(set) var bytes: [UInt8] = []
    private var framing: Framing
    private let limit: Int
    /// A size line of a chunk is at most this long, extensions included.
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
        // A length that cannot be trusted counts as none: what comes is shown up to the limit.
        guard lengths.count == 1, let length = Int(text), length >= 0 else { return .untilClose }
        return length == 0 ? .done : .length(length)
    }

    /// Whether nothing more is wanted.
    package var isComplete: Bool {
        if case .done = framing { return true }
        return bytes.count >= limit
    }

    /// Takes what the server sent next.
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

    /// RFC 9112 §7.1; a size that is none ends the body, and so does the last chunk: trailers are
    /// nobody's concern here.
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
