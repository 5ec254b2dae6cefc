package import CShims
package import Wire

// The blocking API.
extension HTTPSource {
    /// Returns the next message, and blocks until there is one. The first call starts the source.
    /// Free the message with `Inbox.free`.
    /// - Parameter timeout: nil for no limit.
    package func receive(
        timeout: Duration?
    ) throws(RealtimeError) -> UnsafeMutablePointer<rt_event> {
        _ = try startReceiving { () throws(RealtimeError) in try start() }
        return try take(rt_event.self, timeout: timeout)
    }
}
