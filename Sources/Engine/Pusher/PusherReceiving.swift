package import CShims
import Session
package import Wire

// The blocking API.
extension PusherConnection {
    /// Returns the next event, and blocks until there is one. From the first call on, events wait
    /// in an inbox; it also connects, unless `connect` was called before. Free the event with
    /// `Inbox.free`.
    /// - Parameter timeout: nil for no limit.
    package func receive(
        timeout: Duration?
    ) throws(RealtimeError) -> UnsafeMutablePointer<rt_pusher_event> {
        try beginReceiving()
        return try take(rt_pusher_event.self, timeout: timeout)
    }

    /// Like `receive`, for all events that are there, up to `most`.
    package func receiveBatch(
        timeout: Duration?, atMost most: Int
    ) throws(RealtimeError) -> UnsafeMutableRawPointer {
        try beginReceiving()
        return try takeBatch(of: rt_pusher_event.self, timeout: timeout, atMost: most)
    }

    private func beginReceiving() throws(RealtimeError) {
        guard inbox == nil else { return }
        try checkOpen()
        openInbox()
        if connectionState == .idle { try connect() }
    }
}

extension ReceivedMemory {
    /// An event for a thread that waits.
    init(_ view: PusherEventView, channel number: UInt64) {
        let none = ReceivedMemory.none
        let channel = view.channel ?? none
        let userID = view.userID ?? none
        let size = MemoryLayout<rt_pusher_event>.size
        self.init(
            header: size, texts: 5,
            textBytes: view.event.count + channel.count + view.data.bytes.count + userID.count
                + view.source.count)
        start.initializeMemory(
            as: rt_pusher_event.self,
            to: rt_pusher_event(
                struct_bytes: size, event: add(view.event), event_length: view.event.count,
                channel: add(channel), channel_length: channel.count, data: add(view.data.bytes),
                data_length: view.data.bytes.count, user_id: add(userID),
                user_id_length: userID.count, message: add(view.source),
                message_length: view.source.count, channel_number: number,
                data_kind: view.data.kind.rawValue))
    }
}
