import Wire

/// Puts an answer's head together from the lines libcurl hands over: HTTP/1 and HTTP/2 alike, as
/// libcurl writes HTTP/2's in the manner of HTTP/1. Interim answers are skipped, trailers ignored.
struct CurlHead {
    /// Bytes of one head.
    static let limit = 256 << 10

    private(set) var isTooLarge = false
    private var head: ResponseHead?
    private var bytes = 0
    private var isDone = false

    /// Takes one line with its end.
    /// - Returns: the final head, at its last line.
    mutating func read(_ line: UnsafeRawBufferPointer) -> ResponseHead? {
        guard !isDone else { return nil }
        bytes += line.count
        if bytes > CurlHead.limit {
            isTooLarge = true
            return nil
        }
        let text = line.prefix { $0 != 0x0D && $0 != 0x0A }
        if text.isEmpty { return end() }
        if text.starts(with: "HTTP/".utf8) {
            head = status(text)
        } else if let colon = text.firstIndex(of: UInt8(ascii: ":")) {
            let name = String(decoding: text[..<colon], as: UTF8.self)
            // By hand: a generic of another module costs as much as all the rest of a request.
            var start = colon + 1
            var end = text.endIndex
            while start < end, CurlHead.isBlank(line[start]) { start += 1 }
            while start < end, CurlHead.isBlank(line[end - 1]) { end -= 1 }
            let value = String(decoding: line[start..<end], as: UTF8.self)
            head?.fields.append(HeaderField(name: name, value: value))
        }
        return nil
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

    private mutating func end() -> ResponseHead? {
        guard let head else { return nil }
        self.head = nil
        bytes = 0
        guard head.status >= 200 else { return nil }
        isDone = true
        return head
    }

    /// `HTTP/1.1 200 OK` or `HTTP/2 200`; libcurl has checked it.
    private func status(_ line: Slice<UnsafeRawBufferPointer>) -> ResponseHead {
        let parts = line.split(
            separator: 0x20, maxSplits: 2, omittingEmptySubsequences: false)
        let digits = parts.count > 1 ? String(decoding: parts[1], as: UTF8.self) : ""
        let status = Int(digits) ?? 0
        let reason = parts.count > 2 ? String(decoding: parts[2], as: UTF8.self) : ""
        return ResponseHead(
            status: status, reason: reason, minorVersion: line.starts(with: "HTTP/1.0".utf8) ? 0 : 1
        )
    }
}
