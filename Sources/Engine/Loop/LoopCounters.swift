package import CShims
import Synchronization

/// Totals over all connections of one loop. The loop's thread updates them once per turn; any
/// thread may read them.
struct LoopCounters: ~Copyable {
    let turns = Atomic<UInt64>(0)
    let events = Atomic<UInt64>(0)
    let jobs = Atomic<UInt64>(0)
    let connections = Atomic<UInt64>(0)
    let messagesSent = Atomic<UInt64>(0)
    let messagesReceived = Atomic<UInt64>(0)
    let payloadBytesSent = Atomic<UInt64>(0)
    let payloadBytesReceived = Atomic<UInt64>(0)
    let wireBytesSent = Atomic<UInt64>(0)
    let wireBytesReceived = Atomic<UInt64>(0)
}

extension Atomic<UInt64> {
    /// For a counter with a single writer: cheaper than an atomic addition.
    func grow(by count: UInt64) {
        store(load(ordering: .relaxed) &+ count, ordering: .relaxed)
    }

    var current: UInt64 { load(ordering: .relaxed) }
}

extension Loop {
    /// The counters as of the last turn. Any thread.
    package var statistics: rt_loop_statistics {
        rt_loop_statistics(
            turns: counters.turns.current, events: counters.events.current,
            jobs: counters.jobs.current, connections: counters.connections.current,
            messages_sent: counters.messagesSent.current,
            messages_received: counters.messagesReceived.current,
            payload_bytes_sent: counters.payloadBytesSent.current,
            payload_bytes_received: counters.payloadBytesReceived.current,
            wire_bytes_sent: counters.wireBytesSent.current,
            wire_bytes_received: counters.wireBytesReceived.current)
    }
}
