import CShims
import Session
import Wire

/// A response that is being delivered: one message, or a batch of them (docs/long-polling.md, L7).
/// A batch is checked as a whole before its first message is delivered. Both passes go in steps,
/// because 64 MiB can hold millions of parts.
struct LongPollDelivery: ~Copyable {
    private var body: ByteBuffer
    /// The parser that checks a batch; nil once the whole batch was checked.
    private var checker: Multipart?
    /// The parser that delivers a batch; nil if the body is one message.
    private var batch: Multipart?
    private var isOver = false
    /// The part found last. It is delivered once it is known whether another follows.
    private var next: Multipart.Part?
    /// NUL-terminated texts.
    private var texts: [ContiguousArray<UInt8>]

    /// - Parameters:
    ///   - id: the response's id; "" for none.
    ///   - before: the id for messages without one of their own.
    /// - Throws: `.protocolViolation` for a batch without a boundary.
    init(
        _ body: consuming ByteBuffer, contentType: String, id: String, before: String
    ) throws(RealtimeError) {
        texts = [contentType, id, before].map { ContiguousArray($0.utf8) + [0] }
        hadID = !id.isEmpty
        let type = MediaType(contentType: [contentType])
        if let type, type.matches("multipart/mixed") {
            checker = try Multipart(type)
            batch = try Multipart(type)
        } else {
            checker = nil
            batch = nil
        }
        body.append(0)
        self.body = body
    }

    private let hadID: Bool

    /// The bytes of the response, without the NUL that was appended.
    private var content: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: body.readable.dropLast())
    }

    /// True once messages may be delivered.
    var isChecked: Bool { checker == nil }

    /// Checks the next parts of a batch, at most `parts` of them.
    /// - Throws: `.protocolViolation` for a batch that is truncated or malformed.
    mutating func check(parts: Int) throws(RealtimeError) {
        let bytes = content
        var left = parts
        while checker != nil, left > 0 {
            left -= 1
            if try checker?.next(bytes) != nil { continue }
            checker = nil
            next = try batch?.next(bytes)
        }
    }

    /// True once everything was delivered.
    var isEmpty: Bool { batch == nil ? isOver : isChecked && next == nil }

    /// Delivers one message.
    mutating func deliverNext(_ handle: (LongPollMessage) -> Void) {
        let bytes = content
        guard batch != nil else {
            isOver = true
            return deliver(bytes, texts[0], isLast: true, handle)
        }
        guard let part = next else { return }
        // Cannot fail, because the batch was checked.
        next = (try? batch?.next(bytes)) ?? nil
        // A NUL replaces the CR of the delimiter after the part, which was already parsed.
        if let base = bytes.baseAddress {
            UnsafeMutableRawPointer(mutating: base).storeBytes(
                of: 0, toByteOffset: part.content.upperBound, as: UInt8.self)
        }
        deliver(
            UnsafeRawBufferPointer(rebasing: bytes[part.content]),
            ContiguousArray(part.contentType.utf8) + [0], isLast: next == nil, handle)
    }

    private func deliver(
        _ data: UnsafeRawBufferPointer, _ contentType: ContiguousArray<UInt8>, isLast: Bool,
        _ handle: (LongPollMessage) -> Void
    ) {
        let carriesID = isLast && hadID
        texts[carriesID ? 1 : 2].withUnsafeBytes { id in
            contentType.withUnsafeBytes { type in
                handle(
                    LongPollMessage(
                        id: UnsafeRawBufferPointer(rebasing: id.dropLast()), hadID: carriesID,
                        contentType: UnsafeRawBufferPointer(rebasing: type.dropLast()), data: data))
            }
        }
    }
}
