package import CShims
package import Wire

// The blocking API.
extension HTTPSource {
    /// Starts the source if necessary, and waits until it is open.
    /// - Parameter timeout: nil for no limit. After a timeout the source keeps trying.
    package func connect(timeout: Duration?) throws(RealtimeError) {
        try waitUntilOpen(timeout) { (answer) throws(RealtimeError) in
            // Before the start, so that no opening is missed, however short.
            loop.perform { [self] in awaitOpening(answer) }
            _ = try startReceiving { () throws(RealtimeError) in try start() }
        }
    }

    /// Returns the next message, and blocks until there is one. The first call starts the source.
    /// Free the message with `Inbox.free`.
    /// - Parameter timeout: nil for no limit.
    package func receive(
        timeout: Duration?
    ) throws(RealtimeError) -> UnsafeMutablePointer<rt_event> {
        _ = try startReceiving { () throws(RealtimeError) in try start() }
        return try take(rt_event.self, timeout: timeout)
    }

    /// Like `receive`, for all messages that are there, up to `most`.
    package func receiveBatch(
        timeout: Duration?, atMost most: Int
    ) throws(RealtimeError) -> UnsafeMutableRawPointer {
        _ = try startReceiving { () throws(RealtimeError) in try start() }
        return try takeBatch(of: rt_event.self, timeout: timeout, atMost: most)
    }
}
