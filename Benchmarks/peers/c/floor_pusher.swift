// The JSON part of the floor of Pusher's events. It is compiled together with Sources/Wire, in the
// same way as the library.

private struct Floor: ~Copyable {
    var message = JSONDocument()
    var data = JSONDocument()
    var scratch = ByteBuffer()

    mutating func read(_ bytes: UnsafeRawBufferPointer, _ quantity: inout UInt64, _ isWanted: Bool)
        throws(RealtimeError) -> Int
    {
        scratch.removeAll(keeping: 64 << 10)
        _ = scratch.reserve(bytes.count)
        let text = try message.read(bytes) { root throws(RealtimeError) in
            var (event, channel, data): (JSONNode?, JSONNode?, JSONNode?)
            for member in root.members {
                member.name.withString { name in
                    switch name.count {
                    case 4 where name.isWord("data"): data = member.value
                    case 5 where name.isWord("event"): event = member.value
                    case 7 where name.isWord("channel"): channel = member.value
                    default: break
                    }
                }
            }
            guard let text = data?.span.string(in: &scratch), event != nil, channel != nil else {
                throw RealtimeError(.protocolViolation, "not an event")
            }
            return text
        }
        guard isWanted else { return text.count }
        quantity = try data.read(text) { root throws(RealtimeError) in
            UInt64(root.member("quantity")?.integer ?? 0)
        }
        return text.count
    }
}

nonisolated(unsafe) private var floor = Floor()

@_cdecl("floor_read")
public func floorRead(
    _ message: UnsafeRawPointer, _ length: Int, _ quantity: UnsafeMutablePointer<UInt64>?
) -> Int {
    var value: UInt64 = 0
    do throws(RealtimeError) {
        let bytes = UnsafeRawBufferPointer(start: message, count: length)
        let size = try floor.read(bytes, &value, quantity != nil)
        quantity?.pointee = value
        return size
    } catch {
        return -1
    }
}
