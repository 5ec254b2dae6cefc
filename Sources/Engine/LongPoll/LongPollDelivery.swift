import CShims
import Session
import Wire

/// An answer on its way to the caller: one message, or a batch of them (docs/long-polling.md, L7).
/// A batch is checked as a whole before its first message is delivered. Both passes go a step at a
/// time, because 64 MiB can hold millions of parts.
struct LongPollDelivery: ~Copyable {
    private var body: ByteBuffer
    /// The check of a batch; nil once it has passed.
    private var rehearsal: Multipart?
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
    /// - Throws: `.protocolViolation` for a batch without a boundary.
    init(
        _ body: consuming ByteBuffer, contentType: String, id: String, before: String
    ) throws(RealtimeError) {
        texts = [contentType, id, before].map { ContiguousArray($0.utf8) + [0] }
        hadID = !id.isEmpty
        let type = MediaType(contentType)
        if let type, type.matches("multipart/mixed") {
            rehearsal = try Multipart(type)
            batch = try Multipart(type)
        } else {
            rehearsal = nil
            batch = nil
        }
        body.append(0)
        self.body = body
    }

    private let hadID: Bool

    /// The bytes of the answer, without the NUL behind them.
    private var content: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: body.readable.dropLast())
    }

    /// Whether messages may be delivered.
    var isChecked: Bool { rehearsal == nil }

    /// Checks the next parts of a batch, `parts` of them at most.
    /// - Throws: `.protocolViolation` for a batch that is cut short or malformed.
    mutating func check(parts: Int) throws(RealtimeError) {
        let bytes = content
        var left = parts
        while rehearsal != nil, left > 0 {
            left -= 1
            if try rehearsal?.next(bytes) != nil { continue }
            rehearsal = nil
            next = try batch?.next(bytes)
        }
    }

    /// Whether everything was delivered.
    var isEmpty: Bool { batch == nil ? isOver : isChecked && next == nil }

    /// Tells one message.
    mutating func tell(_ handle: (LongPollMessage) -> Void) {
        let bytes = content
        guard batch != nil else {
            isOver = true
            return tell(bytes, texts[0], isLast: true, handle)
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
