import Session
import Synchronization
import Wire

/// Limits the client events that wait for a subscription, for the loop's thread, or for a server
/// that does not read (U17). Any thread.
final class PusherUnsentEvents: Sendable {
    private let bytes = Atomic<Int>(0)

    /// The share of one event, until this is released.
    final class Room: PusherEventRoom {
        private let events: PusherUnsentEvents
        private let count: Int

        fileprivate init(_ count: Int, of events: PusherUnsentEvents) {
            self.events = events
            self.count = count
        }

        deinit { events.bytes.subtract(count, ordering: .relaxed) }
    }

    /// - Parameters:
    ///   - size: of the event's name, data and channel.
    ///   - written: what waits in the socket.
    /// - Throws: `.bufferFull`, or `.tooLarge` for an event that could never be sent.
    func take(
        _ size: Int, besides written: Int, for channel: String
    ) throws(RealtimeError) -> Room {
        let limit = PusherConfiguration.unsentEventLimit
        let count = size + PusherUnsentEvents.envelopeSize
        let name = channel.quoted(upTo: 60)
        guard count <= limit else {
            throw RealtimeError(
                .tooLarge,
                "the client event to \(name) has \(size) bytes, and \(limit) are allowed")
        }
        let unsent = bytes.add(count, ordering: .relaxed).newValue
        let room = Room(count, of: self)
        guard unsent <= limit - written else {
            throw RealtimeError(
                .bufferFull,
                "the client event to \(name) is dropped: \(unsent - count + written) bytes wait"
                    + " to be sent, and \(limit) are allowed")
        }
        return room
    }

    /// More than a message has besides the event's name, data and channel.
    private static let envelopeSize = 128
}
