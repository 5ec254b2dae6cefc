package import CShims
package import Wire

// The blocking API.
extension SpreadbotConnection {
    /// Connects to a path as `establish` does, and waits until it is connected. From the first call
    /// on, messages wait in an inbox.
    /// - Parameter timeout: nil for no limit. After a timeout the connection keeps trying.
    package func connect(path: String, timeout: Duration?) throws(RealtimeError) {
        try loop.checkMayWait()
        try establish(path: path) { _ in openInbox() }
        try requiredInbox().waitUntilOpen(timeout)
    }

    /// Returns the next message, and blocks until there is one. Free it with `Inbox.free`.
    /// - Parameter timeout: nil for no limit.
    package func receive(
        timeout: Duration?
    ) throws(RealtimeError) -> UnsafeMutablePointer<rt_event> {
        try take(rt_event.self, timeout: timeout)
    }

    /// Like `receive`, for all messages that are there, up to `most`.
    package func receiveBatch(
        timeout: Duration?, atMost most: Int
    ) throws(RealtimeError) -> UnsafeMutableRawPointer {
        try takeBatch(of: rt_event.self, timeout: timeout, atMost: most)
    }
}
