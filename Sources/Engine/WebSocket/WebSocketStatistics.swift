package import CShims
import Session
import Synchronization

/// Totals of one WebSocket over all its connections. The loop's thread writes them; any thread may
/// read them.
struct WebSocketCounters: ~Copyable {
    let messagesSent = Atomic<UInt64>(0)
    let messagesReceived = Atomic<UInt64>(0)
    let payloadBytesSent = Atomic<UInt64>(0)
    let payloadBytesReceived = Atomic<UInt64>(0)
    let wireBytesSent = Atomic<UInt64>(0)
    let wireBytesReceived = Atomic<UInt64>(0)
    let pingsSent = Atomic<UInt64>(0)
    let pongsReceived = Atomic<UInt64>(0)
    let connections = Atomic<UInt64>(0)
}

extension WebSocketConnection {
    /// Counts bytes written to the transport of an open connection.
    func sent(_ bytes: Int) {
        counters.wireBytesSent.grow(by: UInt64(truncatingIfNeeded: bytes))
        loop.counters.wireBytesSent.grow(by: UInt64(truncatingIfNeeded: bytes))
    }

    func received(_ bytes: Int) {
        counters.wireBytesReceived.grow(by: UInt64(truncatingIfNeeded: bytes))
        loop.counters.wireBytesReceived.grow(by: UInt64(truncatingIfNeeded: bytes))
        handlers.activity?()
    }

    /// Adds the session's new counts to the totals, once per turn. The loop's thread only.
    func publishStatistics() {
        guard let counts = session?.pointee.takeCounts() else { return }
        counters.messagesSent.grow(by: counts.messagesSent)
        counters.messagesReceived.grow(by: counts.messagesReceived)
        counters.payloadBytesSent.grow(by: counts.payloadBytesSent)
        counters.payloadBytesReceived.grow(by: counts.payloadBytesReceived)
        counters.pingsSent.grow(by: counts.pingsSent)
        counters.pongsReceived.grow(by: counts.pongsReceived)
        loop.counters.messagesSent.grow(by: counts.messagesSent)
        loop.counters.messagesReceived.grow(by: counts.messagesReceived)
        loop.counters.payloadBytesSent.grow(by: counts.payloadBytesSent)
        loop.counters.payloadBytesReceived.grow(by: counts.payloadBytesReceived)
    }

    /// The counters as of the last turn. Any thread.
    package var statistics: rt_websocket_statistics {
        rt_websocket_statistics(
            messages_sent: counters.messagesSent.current,
            messages_received: counters.messagesReceived.current,
            payload_bytes_sent: counters.payloadBytesSent.current,
            payload_bytes_received: counters.payloadBytesReceived.current,
            wire_bytes_sent: counters.wireBytesSent.current,
            wire_bytes_received: counters.wireBytesReceived.current,
            pings_sent: counters.pingsSent.current,
            pongs_received: counters.pongsReceived.current,
            connections: counters.connections.current,
            round_trip_us: roundTripMicroseconds)
    }
}
