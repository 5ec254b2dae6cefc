import Wire

/// Whether the server said, by HTTP/2, that it has not begun with a request (RFC 9113 §8.7): then
/// it may be sent again whatever it does (docs/rest.md, R3). libcurl 7.88 tells that in words
/// alone; what was refused by RST_STREAM it sends again itself, five times, before it gives up.
struct HTTP2Refusal {
    private var stream: UInt64?
    private var isRefused = false

    /// Whether the last try was not begun with.
    var holds: Bool { isRefused }

    /// A line of libcurl's.
    mutating func read(_ line: UnsafeRawBufferPointer) {
        let line = line.prefix(200)
        if let id = HTTP2Refusal.number(behind: "Using Stream ID: ", in: line) {
            // Of another try, maybe on another connection.
            (stream, isRefused) = (id, false)
        } else if let last = HTTP2Refusal.number(behind: "last_stream=", in: line) {
            if let stream, stream > last { isRefused = true }
        } else if line.starts(with: "REFUSED_STREAM".utf8) {
            isRefused = true
        }
    }

    private static func number(
        behind mark: StaticString, in line: Slice<UnsafeRawBufferPointer>
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
