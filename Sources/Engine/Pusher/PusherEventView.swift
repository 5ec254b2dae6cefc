package import Wire

/// One event, valid while its handler runs.
package struct PusherEventView {
    package let event: UnsafeRawBufferPointer
    /// nil for an event of the connection or of the user.
    package let channel: UnsafeRawBufferPointer?
    package let data: PusherData
    /// The sender of a client event on a presence channel, as the server names it.
    package let userID: UnsafeRawBufferPointer?
    /// The whole message as JSON.
    package let source: UnsafeRawBufferPointer

    @inline(__always)
    init(_ envelope: PusherEnvelope) {
        event = envelope.event
        channel = envelope.channel
        data = envelope.data
        userID = envelope.userID
        source = envelope.source
    }

    private init(
        event: UnsafeRawBufferPointer, channel: UnsafeRawBufferPointer?, data: PusherData,
        userID: UnsafeRawBufferPointer?, source: UnsafeRawBufferPointer
    ) {
        self.event = event
        self.channel = channel
        self.data = data
        self.userID = userID
        self.source = source
    }

    /// Calls `body` with a view of an event that is not in a message any more.
    static func of(_ event: PusherEvent, _ body: (PusherEventView) -> Void) {
        let source = event.message
        event.event.withUnsafeBytes { name in
            borrow(event.channel) { channel in
                borrow(event.userID) { userID in
                    event.dataBytes.withUnsafeBytes { bytes in
                        source.withUnsafeBytes { source in
                            body(
                                PusherEventView(
                                    event: name, channel: channel,
                                    data: PusherData(event.dataKind, bytes), userID: userID,
                                    source: source))
                        }
                    }
                }
            }
        }
    }

    private static func borrow(
        _ bytes: [UInt8]?, _ body: (UnsafeRawBufferPointer?) -> Void
    ) {
        guard let bytes else { return body(nil) }
        bytes.withUnsafeBytes { body($0) }
    }

    /// The JSON text of a member of the message, such as one that this library does not know; nil
    /// if there is none.
    package func property(_ name: String) -> [UInt8]? {
        var reader = PusherEnvelopeReader()
        let found = try? reader.read(source) { envelope in
            envelope.property(name).map { Array($0) }
        }
        return found ?? nil
    }
}

/// What a handler has made of the event that is being delivered, for the event's other handlers.
///
/// Unchecked because it belongs to the loop's thread.
package final class PusherEventCopy: @unchecked Sendable {
    @exclusivity(unchecked) package var value: AnyObject?

    init() {}
}
