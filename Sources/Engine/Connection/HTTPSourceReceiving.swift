package import CShims
package import Wire

// The blocking form.
extension HTTPSource {
    /// Takes the next message, waiting until there is one; `Inbox.free` frees it. The first call
    /// starts the source.
    /// - Parameter timeout: nil for no limit.
    package func receive(
        timeout: Duration?
    ) throws(RealtimeError) -> UnsafeMutablePointer<rt_event> {
        _ = try startReceiving { () throws(RealtimeError) in try start() }
        return try take(rt_event.self, timeout: timeout)
    }
}
