package import CShims
import Session
package import Wire

// The blocking API.
extension WebSocketConnection {
    /// Starts the connection if necessary, and waits until it is open.
    /// - Parameter timeout: nil for no limit. After a timeout the connection keeps trying.
    package func connect(timeout: Duration?) throws(RealtimeError) {
        let isFirst = try startReceiving { () throws(RealtimeError) in try start() }
        try requiredInbox().waitUntilOpen(timeout, isFirst: isFirst)
    }

    /// Returns the next message, and blocks until there is one. Free it with `Inbox.free`.
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
