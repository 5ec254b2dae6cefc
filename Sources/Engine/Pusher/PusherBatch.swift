import CShims
import Wire

/// Events that are delivered together at the end of the turn. They are copied, because what they
/// were read from is used again.
struct PusherBatch: ~Copyable {
    private var bytes = ByteBuffer()
    private var records: [rt_pusher_record] = []
    /// With this many bytes it is delivered at once.
    private static let fullBytes = 256 << 10
    private static let fullRecords = 4096

    var isEmpty: Bool { records.isEmpty }

    var isFull: Bool {
        records.count >= PusherBatch.fullRecords || bytes.count >= PusherBatch.fullBytes
    }

    mutating func append(_ view: PusherEventView, channel number: UInt64) {
        let event = add(view.event)
        let data = add(view.data.bytes)
        let user = view.userID.map { add($0) } ?? event
        let message = add(view.source)
        records.append(
            rt_pusher_record(
                channel_number: number, event_offset: event,
                event_length: UInt64(view.event.count), data_offset: data,
                data_length: UInt64(view.data.bytes.count), user_id_offset: user,
                user_id_length: UInt64(view.userID?.count ?? 0), message_offset: message,
                message_length: UInt64(view.source.count), data_kind: view.data.kind.rawValue,
                reserved: 0))
    }

    /// - Returns: the offset.
    private mutating func add(_ part: UnsafeRawBufferPointer) -> UInt64 {
        let offset = bytes.count
        bytes.append(part)
        return UInt64(offset)
    }

    /// Passes all events on, and forgets them.
    mutating func take(_ body: (UnsafeRawPointer, UnsafeBufferPointer<rt_pusher_record>) -> Void) {
        records.withUnsafeBufferPointer { body(bytes.readable.baseAddress ?? .ofNothing, $0) }
        removeAll()
    }

    mutating func removeAll() {
        records.removeAll(keepingCapacity: true)
        bytes.removeAll(keeping: PusherBatch.fullBytes)
    }
}
