public import CShims
import Engine
import Session
import Wire

// Chapter: spreadbot callbacks. They may be set at any time, from any thread; NULL removes a
// callback. All run on the loop's thread, one at a time, and may call any function.

/// The transport in use has changed; RT_SPREADBOT_TRANSPORT_NONE when the connection has ended.
/// Since 0.1.
public typealias rt_spreadbot_transport_fn =
    @convention(c) (_ transport: rt_spreadbot_transport, _ user: UnsafeMutableRawPointer?) -> Void

/// Receives refreshed tokens, before they are used. Store them for the next run. Both are valid
/// until the callback returns. Since 0.1.
public typealias rt_spreadbot_tokens_fn =
    @convention(c) (
        _ access_token: UnsafePointer<CChar>?, _ refresh_token: UnsafePointer<CChar>?,
        _ user: UnsafeMutableRawPointer?
    ) -> Void

/// Receives the result of a send. It is called exactly once for each. Since 0.1.
public typealias rt_spreadbot_sent_fn =
    @convention(c) (
        _ sent: UnsafePointer<rt_spreadbot_sent>?, _ user: UnsafeMutableRawPointer?
    ) -> Void

/// - Callbacks: spreadbot, spreadbotHandlers
extension SpreadbotHandlers {
    /// Sets the callback for an open connection, the first time and after each reconnect. Since
    /// 0.1.
    mutating func onOpen(_ box: CallbackBox<rt_opened_fn>) {
        open = box.function.map { function in
            { transport, resumed, opened in
                opened.show(transport: transport.rawValue, resumed: resumed) {
                    function($0, box.user)
                }
            }
        }
    }

    /// Sets the callback for a change of transport. Since 0.1.
    mutating func onTransport(_ box: CallbackBox<rt_spreadbot_transport_fn>) {
        transport = box.function.map { function in
            { function(transportNumber(of: $0), box.user) }
        }
    }

    /// Sets the callback for messages. Since 0.1.
    mutating func onMessage(_ box: CallbackBox<rt_event_fn>) {
        message = box.function.map { function in { $0.show(to: function, box.user) } }
    }

    /// Sets the callback for a transport that failed or was lost, and for refused tokens. If the
    /// failure is fatal, the disconnected callback follows; otherwise another attempt does, by the
    /// same transport or another one. A wait for a network is reported once, by the failure that
    /// led to it or by RT_ERROR_CONNECT without a transport; `retry_in_ms` is then -1.
    ///
    /// `attempt` counts the attempts in a row on the transport; it is 0 if the failure does not
    /// count. `transport` is RT_SPREADBOT_TRANSPORT_NONE for a failed request of an outbox, which
    /// is retried. A failure of the last transport is reported only as
    /// RT_ERROR_RECONNECTS_EXHAUSTED, whose message names the cause for each transport. It is
    /// fatal, or gives the time until all transports are tried again
    /// (`rt_spreadbot_set_max_rounds`). Since 0.1.
    mutating func onError(_ box: CallbackBox<rt_failure_fn>) {
        error = box.function.map { function in
            { $0.view.show { function($0, box.user) } }
        }
    }

    /// Sets the callback for refreshed tokens. Since 0.1.
    mutating func onTokens(_ box: CallbackBox<rt_spreadbot_tokens_fn>) {
        tokens = box.function.map { function in
            { access, refresh in
                access.withCString { access in
                    refresh.withCString { function(access, $0, box.user) }
                }
            }
        }
    }

    /// Sets the callback for the results of sends. Since 0.1.
    mutating func onSent(_ box: CallbackBox<rt_spreadbot_sent_fn>) {
        sent = box.function.map { function in { $0.show(to: function, box.user) } }
    }

    /// Sets the callback for the end of the connection. `status` is RT_OK after
    /// `rt_spreadbot_close`, otherwise the fatal failure that the error callback has received.
    /// `rt_spreadbot_start` may be called again, even inside the callback. Since 0.1.
    mutating func onClosed(_ box: CallbackBox<rt_closed_fn>) {
        disconnected = box.function.map { function in
            { ClosedView(error: $0).show { function($0, box.user) } }
        }
    }
}

/// Sets handlers of a Spreadbot connection.
func spreadbotHandlers(
    _ spreadbot: rt_spreadbot?, _ body: (inout SpreadbotHandlers) -> Void
) -> rt_status {
    spreadbotCall(spreadbot) { (connection) throws(RealtimeError) in
        try connection.setHandlers(body)
    }
}
