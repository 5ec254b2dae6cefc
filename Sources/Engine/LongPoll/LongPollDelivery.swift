import CShims
import Session
import Wire

/// An answer on its way to the caller: one message, or a batch of them (sse-poll-rest.md, L7).
struct LongPollDelivery: ~Copyable {
    private var body: ByteBuffer
    /// nil for a body that is one message.
    private var batch: Multipart?
    private var isOver = false
    /// The part that was found last, since one must know whether it is the last.
    private var next: Multipart.Part?
    /// Texts with a NUL behind each.
    private var texts: [ContiguousArray<UInt8>]

    /// - Parameters:
    ///   - id: of the answer; "" for none.
    ///   - before: the id that messages without one carry.
    /// - Throws: `.protocolViolation` for a batch that is cut or not built as one.
    init(
        _ body: consuming ByteBuffer, contentType: String, id: String, before: String
    ) throws(RealtimeError) {
        texts = [contentType, id, before].map { ContiguousArray($0.utf8) + [0] }
        hadID = !id.isEmpty
        let type = MediaType(contentType)
        if let type, type.matches("multipart/mixed") {
            // Whole, before a part of it is told.
            var rehearsal = try Multipart(type)
            while try rehearsal.next(body.readable) != nil {}
            var batch = try Multipart(type)
            next = try batch.next(body.readable)
            self.batch = consume batch
        } else {
            batch = nil
        }
        body.append(0)
        self.body = body
    }

    private let hadID: Bool

    /// Whether everything is told.
    var isEmpty: Bool { batch == nil ? isOver : next == nil }

    /// Tells one message.
    mutating func tell(_ handle: (LongPollMessage) -> Void) {
        let bytes = body.readable
        guard batch != nil else {
            isOver = true
            let data = UnsafeRawBufferPointer(rebasing: bytes[..<(bytes.count - 1)])
            return tell(data, texts[0], isLast: true, handle)
        }
        guard let part = next else { return }
        // It was whole before: it does not fail now.
        next = (try? batch?.next(bytes)) ?? nil
        // The CR of its delimiter, which nobody reads any more.
        if let base = bytes.baseAddress {
            UnsafeMutableRawPointer(mutating: base).storeBytes(
                of: 0, toByteOffset: part.content.upperBound, as: UInt8.self)
        }
        tell(
            UnsafeRawBufferPointer(rebasing: bytes[part.content]),
            ContiguousArray(part.contentType.utf8) + [0], isLast: next == nil, handle)
    }

    private func tell(
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
