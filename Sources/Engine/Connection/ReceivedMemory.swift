import CShims
import Glibc
import Wire

/// A message for a thread that waits, in one block of memory: its struct, then its texts, each
/// NUL-terminated.
struct ReceivedMemory {
    let start: UnsafeMutableRawPointer
    /// The size of the texts without the NULs.
    let textBytes: Int
    private var end: UnsafeMutableRawPointer

    static var none: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: nil, count: 0) }

    init(header: Int, texts: Int, textBytes: Int) {
        start = shim_grow(nil, header + textBytes + texts)
        end = start + header
        self.textBytes = textBytes
    }

    init(_ kind: MessageKind, _ bytes: UnsafeRawBufferPointer) {
        let size = MemoryLayout<rt_received>.size
        self.init(header: size, texts: 1, textBytes: bytes.count)
        start.initializeMemory(
            as: rt_received.self,
            to: rt_received(
                struct_bytes: size, kind: kind.rawValue, reserved: 0, data: add(bytes),
                length: bytes.count))
    }

    init(
        id: UnsafeRawBufferPointer, hadID: Bool, event: UnsafeRawBufferPointer = Self.none,
        data: UnsafeRawBufferPointer, contentType: UnsafeRawBufferPointer = Self.none
    ) {
        let size = MemoryLayout<rt_event>.size
        self.init(
            header: size, texts: 4,
            textBytes: id.count + event.count + data.count + contentType.count)
        start.initializeMemory(
            as: rt_event.self,
            to: rt_event(
                struct_bytes: size, id: add(id), id_length: id.count, event: add(event),
                event_length: event.count, data: add(data), data_length: data.count,
                content_type: add(contentType), had_id: hadID))
    }

    mutating func add<Character>(
        _ text: UnsafeRawBufferPointer
    ) -> UnsafePointer<Character> {
        let target = end
        if let base = text.baseAddress { memcpy(target, base, text.count) }
        target.storeBytes(of: 0, toByteOffset: text.count, as: UInt8.self)
        end += text.count + 1
        return UnsafePointer(target.assumingMemoryBound(to: Character.self))
    }
}
