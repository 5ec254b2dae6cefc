import Wire

/// Whether the server reported by HTTP/2 that it did not process a request (RFC 9113 §8.7). Then it
/// can be repeated, even if it is not idempotent (docs/rest.md, R3). libcurl 7.88 reports this only
/// in its log lines. It repeats requests refused by RST_STREAM itself, five times, before it gives
/// up.
struct HTTP2Refusal {
    private var stream: UInt64?
    private var isRefused = false

    /// Whether the server did not process the last try.
    var holds: Bool { isRefused }

    /// Reads a line of libcurl's log.
    mutating func read(_ line: UnsafeRawBufferPointer) {
        let line = line.prefix(200)
        if let id = HTTP2Refusal.number(after: "Using Stream ID: ", in: line) {
            // Another try, possibly on another connection.
            (stream, isRefused) = (id, false)
        } else if let last = HTTP2Refusal.number(after: "last_stream=", in: line) {
            if let stream, stream > last { isRefused = true }
        } else if line.starts(with: "REFUSED_STREAM".utf8) {
            isRefused = true
        }
    }

    private static func number(
        after mark: StaticString, in line: Slice<UnsafeRawBufferPointer>
    ) -> UInt64? {
        let mark = UnsafeRawBufferPointer(start: mark.utf8Start, count: mark.utf8CodeUnitCount)
        var rest = line
        while rest.count > mark.count {
            if rest.starts(with: mark) {
                let digits = rest.dropFirst(mark.count).prefix { $0.isASCIIDigit }
                return UInt64(String(decoding: digits, as: UTF8.self))
            }
            rest = rest.dropFirst()
        }
        return nil
    }
}
