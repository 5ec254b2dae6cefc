package import CShims
import Session
package import Wire

// The blocking form.
extension WebSocketConnection {
    /// Starts the connection, unless that was done, and waits until it is open.
    /// - Parameter timeout: nil for no limit. After it the connection keeps trying.
    package func connect(timeout: Duration?) throws(RealtimeError) {
        let isFirst = try startReceiving { () throws(RealtimeError) in try start() }
        try requiredInbox().waitUntilOpen(timeout, isFirst: isFirst)
    }

    /// Takes the next message, waiting until there is one; `Inbox.free` frees it.
    /// - Parameter timeout: nil for no limit.
    package func receive(
        timeout: Duration?
    ) throws(RealtimeError) -> UnsafeMutablePointer<rt_received> {
        try take(rt_received.self, timeout: timeout)
    }

    func finishInbox(_ ending: WebSocketLife.Ending, _ error: RealtimeError?) {
        let why = ending.reason.isEmpty ? "" : " (\(ending.reason))"
        let inOrder = "the connection was closed with \(ending.code.rawValue)\(why)"
        inbox?.finish(error ?? RealtimeError(.closed, inOrder))
    }
}
