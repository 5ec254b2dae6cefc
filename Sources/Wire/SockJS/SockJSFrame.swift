/// A frame of a SockJS server (SockJS protocol 0.3.3). The answer to a poll is one frame and a line
/// feed.
package enum SockJSFrame: Sendable, Equatable {
    /// `o`: the session is open.
    case open
    /// `h`: the connection is alive.
    case heartbeat
    /// `a["…","…"]`: messages, each in UTF-8.
    case messages([[UInt8]])
    /// `c[3000,"Go away!"]`: the session has ended.
    case close(code: Int, reason: String)

    /// How many messages a frame may have. What a server published between two polls comes in
    /// one frame.
    package static let messageLimit = 1_000_000

    /// - Throws: `.protocolViolation` if the bytes are not such a frame, `.tooLarge` for more than
    ///   `messageLimit` messages.
    package init(parsing bytes: UnsafeRawBufferPointer) throws(RealtimeError) {
        guard UTF8Validator.isValid(bytes) else {
            throw RealtimeError(.protocolViolation, "a SockJS frame is not valid UTF-8")
        }
        var scanner = JSONScanner(bytes)
        let kind = scanner.byte
        guard !scanner.isAtEnd else {
            throw RealtimeError(.protocolViolation, "a SockJS frame is empty")
        }
        scanner.skip()
        switch kind {
        case UInt8(ascii: "o"): self = .open
        case UInt8(ascii: "h"): self = .heartbeat
        case UInt8(ascii: "a"): self = .messages(try scanner.readMessages())
        case UInt8(ascii: "c"): self = try SockJSFrame(closing: &scanner)
        default:
            throw RealtimeError(
                .protocolViolation,
                "a SockJS frame begins with a byte of value \(kind); o, h, a or c is expected")
        }
        scanner.skipBlanks()
        guard scanner.isAtEnd else { throw scanner.unexpected("after a SockJS frame") }
    }

    private init(closing scanner: inout JSONScanner) throws(RealtimeError) {
        var spans: [JSONSpan] = []
        try scanner.readArray { (span) throws(RealtimeError) in
            guard spans.count < 2 else { throw SockJSFrame.badClose }
            spans.append(span)
        }
        guard spans.count == 2, let code = spans[0].integer, (0...65_535).contains(code),
            let reason = spans[1].stringBytes
        else { throw SockJSFrame.badClose }
        self = .close(code: Int(code), reason: String(decoding: reason, as: UTF8.self))
    }

    private static var badClose: RealtimeError {
        RealtimeError(.protocolViolation, "a SockJS close frame is not a code and a reason")
    }
}

extension JSONScanner {
    /// Reads an array of strings.
    fileprivate mutating func readMessages() throws(RealtimeError) -> [[UInt8]] {
        var messages: [[UInt8]] = []
        try readArray { (span) throws(RealtimeError) in
            guard messages.count < SockJSFrame.messageLimit else {
                throw RealtimeError(
                    .tooLarge, "a SockJS frame has more than \(SockJSFrame.messageLimit) messages")
            }
            guard let message = span.stringBytes else {
                throw RealtimeError(.protocolViolation, "a SockJS message is not a string")
            }
            messages.append(message)
        }
        return messages
    }

    /// Reads an array whose elements are not arrays or objects.
    fileprivate mutating func readArray(
        _ element: (JSONSpan) throws(RealtimeError) -> Void
    ) throws(RealtimeError) {
        guard byte == UInt8(ascii: "[") else { throw unexpected("where \"[\" belongs") }
        guard enters(.array) else { return }
        repeat { try element(readSpan(levels: 0)) } while try continues(in: .array)
    }
}
