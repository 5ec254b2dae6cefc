import CShims

/// Iterates over the parts of a complete multipart body (RFC 2046 §5.1.1). It stores nothing and
/// copies only each part's Content-Type.
package struct Multipart: ~Copyable {
    package struct Part: Equatable, Sendable {
        /// "" if the part has none.
        package var contentType: String
        /// The part's content within the body.
        package var content: Range<Int>
    }

    /// CR LF, two hyphens and the boundary.
    private let delimiter: [UInt8]
    private var position = Position.preamble

    private enum Position {
        case preamble
        /// After a delimiter that introduces a part.
        case part(at: Int)
        case over
    }

    /// RFC 2046 §5.1.1. The characters are not checked, because servers use others, too.
    private static let longestBoundary = 70
    /// The most bytes of a part's header lines.
    private static let headerLimit = 16 << 10

    /// - Throws: `.protocolViolation` unless the type is multipart with a boundary.
    package init(_ type: MediaType) throws(RealtimeError) {
        guard type.essence.hasPrefix("multipart/"), let boundary = type.value("boundary"),
            (1...Multipart.longestBoundary).contains(boundary.utf8.count)
        else {
            throw RealtimeError(
                .protocolViolation,
                "multipart response without a boundary of 1 to \(Multipart.longestBoundary) bytes")
        }
        delimiter = Array("\r\n--".utf8) + Array(boundary.utf8)
    }

    /// The next part; nil after the last.
    /// - Parameter body: the same at each call.
    /// - Throws: `.protocolViolation` if the body is truncated or malformed.
    package mutating func next(_ body: UnsafeRawBufferPointer) throws(RealtimeError) -> Part? {
        if case .preamble = position { try enter(body) }
        guard case .part(let start) = position else { return nil }
        let (contentType, content) = try header(body, start)
        // The CR LF before a delimiter belongs to it. The header's last CR LF can be the same one.
        guard let end = find(body, from: content - 2) else { throw Multipart.cut }
        let range = content..<max(content, end)
        try pass(body, end + delimiter.count)
        return Part(contentType: contentType, content: range)
    }

    private static var cut: RealtimeError {
        RealtimeError(.protocolViolation, "multipart response that is incomplete")
    }

    /// Finds the first delimiter, which may be at the very start.
    private mutating func enter(_ body: UnsafeRawBufferPointer) throws(RealtimeError) {
        let opening = delimiter.dropFirst(2)
        if body.starts(with: opening) { return try pass(body, opening.count) }
        guard let at = find(body, from: 0) else { throw Multipart.cut }
        try pass(body, at + delimiter.count)
    }

    /// Reads what follows a delimiter: two hyphens after the last part, otherwise blanks and a line
    /// end.
    private mutating func pass(
        _ body: UnsafeRawBufferPointer, _ start: Int
    ) throws(RealtimeError) {
        if body[start...].starts(with: [0x2D, 0x2D]) {
            position = .over
            return
        }
        var index = start
        while index < body.count, isBlank(body[index]) { index += 1 }
        guard body[index...].starts(with: [0x0D, 0x0A]) else { throw Multipart.cut }
        position = .part(at: index + 2)
    }

    /// Reads a part's header lines, if any. Returns its Content-Type and where its content begins.
    private func header(
        _ body: UnsafeRawBufferPointer, _ start: Int
    ) throws(RealtimeError) -> (String, Int) {
        var contentType = ""
        var index = start
        while true {
            let window = body[index..<min(body.count, start + Multipart.headerLimit)]
            guard let lf = window.firstIndex(of: 0x0A), lf > index, body[lf - 1] == 0x0D else {
                throw RealtimeError(
                    .protocolViolation,
                    "multipart response with header lines that do not end within "
                        + "\(Multipart.headerLimit) bytes")
            }
            let line = body[index..<(lf - 1)]
            index = lf + 1
            if line.isEmpty { return (contentType, index) }
            if let colon = line.firstIndex(of: UInt8(ascii: ":")),
                String(decoding: line[..<colon], as: UTF8.self)
                    .equalsIgnoringASCIICase("Content-Type")
            {
                let value = line[(colon + 1)...].trimmingBlanks
                contentType = String(decoding: value, as: UTF8.self)
            }
        }
    }

    private func find(_ body: UnsafeRawBufferPointer, from start: Int) -> Int? {
        guard start < body.count, let base = body.baseAddress else { return nil }
        let text = base.assumingMemoryBound(to: UInt8.self) + start
        let index = shim_find(text, body.count - start, delimiter, delimiter.count)
        return index == body.count - start ? nil : start + index
    }
}
