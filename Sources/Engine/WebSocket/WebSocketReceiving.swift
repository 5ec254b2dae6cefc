package import CShims
import Session
package import Wire

// The blocking API.
extension WebSocketConnection {
    /// Starts the connection if necessary, and waits until it is open.
    /// - Parameter timeout: nil for no limit. After a timeout the connection keeps trying.
    package func connect(timeout: Duration?) throws(RealtimeError) {
        try waitUntilOpen(timeout) { (answer) throws(RealtimeError) in
            // Before the start, so that no connection is missed, however short.
            loop.perform { [self] in awaitOpening(answer) }
            _ = try startReceiving { () throws(RealtimeError) in try start() }
        }
    }

    /// Returns the next message, and blocks until there is one. Free it with `Inbox.free`.
    /// - Parameter timeout: nil for no limit.
    package func receive(
        timeout: Duration?
    ) throws(RealtimeError) -> UnsafeMutablePointer<rt_received> {
        try take(rt_received.self, timeout: timeout)
    }

    /// Like `receive`, for all messages that are there, up to `most`.
    package func receiveBatch(
        timeout: Duration?, atMost most: Int
    ) throws(RealtimeError) -> UnsafeMutableRawPointer {
        try takeBatch(of: rt_received.self, timeout: timeout, atMost: most)
    }

    /// Ends all blocking calls.
    func endWaits(_ ending: WebSocketLife.Ending, _ error: RealtimeError?) {
        let why = ending.reason.isEmpty ? "" : " (\(ending.reason))"
        let inOrder = "the connection was closed with \(ending.code.rawValue)\(why)"
        let end = error ?? RealtimeError(.closed, inOrder)
        inbox?.finish(end)
        settleOpenings(end)
    }
}
