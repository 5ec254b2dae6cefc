internal import CShims
internal import Engine
internal import Wire

/// Messages in a mailbox. Short ones lie packed in one memory; their strings and arrays are made
/// when a task takes them, because memory is allocated fastest on the thread that frees it.
struct PackedMessages: MailboxStore {
    typealias Element = WebSocket.Message

    private struct Record {
        /// nil for a long message, which is next in `long`.
        var kind: MessageKind?
        var start: Int
        var length: Int
    }

    private var packed: [UInt8] = []
    private var records: [Record] = []
    /// Records before this index were taken.
    private var head = 0
    /// Once taking has begun, the next one is the last.
    private var long: [WebSocket.Message] = []
    private(set) var bytes = 0

    /// Longer messages are not packed.
    private static let longest = 4096
    /// A larger memory is not kept.
    private static let spareBytes = 128 << 10

    init() {}

    var count: Int { records.count - head }

    mutating func append(_ message: consuming WebSocket.Message) {
        bytes += message.count
        records.append(Record(kind: nil, start: 0, length: message.count))
        long.append(message)
    }

    /// Adds messages until there are so many more, or so many bytes more.
    /// - Returns: how many were added.
    mutating func append(
        _ messages: UnsafeBufferPointer<rt_message>, at base: UnsafeRawPointer, _ most: Int,
        _ mostBytes: Int
    ) -> Int {
        var count = 0
        var (sum, longest) = (0, 0)
        while count < messages.count, count < most, sum < mostBytes {
            let length = Int(messages[count].length)
            (sum, longest) = (sum + length, max(longest, length))
            count += 1
        }
        let added = UnsafeBufferPointer(rebasing: messages[..<count])
        if longest > PackedMessages.longest {
            for message in added { append(message, at: base) }
        } else {
            pack(added, at: base)
        }
        return count
    }

    private mutating func append(_ message: rt_message, at base: UnsafeRawPointer) {
        if message.length > PackedMessages.longest {
            append(WebSocket.Message(message.messageKind, message.bytes(at: base)))
        } else {
            withUnsafePointer(to: message) {
                pack(UnsafeBufferPointer(start: $0, count: 1), at: base)
            }
        }
    }

    /// Packs neighbours together, with the frame headers between them.
    private mutating func pack(
        _ messages: UnsafeBufferPointer<rt_message>, at base: UnsafeRawPointer
    ) {
        guard let first = messages.first, let last = messages.last else { return }
        let start = Int(first.offset)
        let shift = packed.count - start
        packed.append(
            contentsOf: UnsafeRawBufferPointer(
                start: base + start, count: Int(last.offset + last.length) - start))
        for message in messages {
            let length = Int(message.length)
            records.append(
                Record(
                    kind: message.messageKind, start: shift + Int(message.offset), length: length))
            bytes += length
        }
    }

    mutating func beginTaking() { long.reverse() }

    mutating func popFirst() -> WebSocket.Message? {
        guard head < records.count else { return nil }
        let record = records[head]
        head += 1
        bytes -= record.length
        defer { if head == records.count { reset() } }
        guard let kind = record.kind else { return long.popLast() }
        return packed.withUnsafeBytes {
            let bytes = $0[record.start..<record.start + record.length]
            return WebSocket.Message(kind, UnsafeRawBufferPointer(rebasing: bytes))
        }
    }

    private mutating func reset() {
        head = 0
        records.removeAll(keepingCapacity: true)
        packed.removeAll(keepingCapacity: packed.capacity <= PackedMessages.spareBytes)
    }
}

extension Mailbox where Element == WebSocket.Message {
    /// Adds as many of these messages as fit.
    /// - Parameter all: whether to add all of them in any case.
    /// - Returns: how many were added, and whether receiving should pause.
    func put(
        _ messages: UnsafeBufferPointer<rt_message>, at base: UnsafeRawPointer, all: Bool
    ) -> (count: Int, isFull: Bool) {
        var count = 0
        let isFull = put { arrived in
            let room = all ? Room(messages: .max, bytes: .max) : room(&arrived, messages.count)
            count = arrived.messages.append(messages, at: base, room.messages, room.bytes)
        }
        return (count, isFull)
    }
}
