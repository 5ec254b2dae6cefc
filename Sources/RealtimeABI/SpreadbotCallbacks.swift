public import CShims
import Engine
import Session
import Wire

// Chapter: spreadbot callbacks. They may be set at any time, from any thread; NULL takes one away.
// All run on the loop's thread, one at a time, and may call anything.

/// Another transport is in use; RT_SPREADBOT_TRANSPORT_NONE when it is over. Since 0.1.
public typealias rt_spreadbot_transport_fn =
    @convention(c) (_ transport: rt_spreadbot_transport, _ user: UnsafeMutableRawPointer?) -> Void

/// The tokens were refreshed, before anything is sent with them: keep them for the next run. Both
/// are valid until the callback returns. Since 0.1.
public typealias rt_spreadbot_tokens_fn =
    @convention(c) (
        _ access_token: UnsafePointer<CChar>?, _ refresh_token: UnsafePointer<CChar>?,
        _ user: UnsafeMutableRawPointer?
    ) -> Void

/// A send has ended, exactly once each. Since 0.1.
public typealias rt_spreadbot_sent_fn =
    @convention(c) (
        _ sent: UnsafePointer<rt_spreadbot_sent>?, _ user: UnsafeMutableRawPointer?
    ) -> Void

/// Sets the callback for a connection: for the first time, or again. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for a NULL handle.
@_cdecl("rt_spreadbot_on_open")
public func rt_spreadbot_on_open(
    _ spreadbot: rt_spreadbot?, _ fn: rt_opened_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return handlers(spreadbot) {
        $0.open = box.function.map { function in
            { transport, resumed, opened in
                opened.view(transport: transport.rawValue, resumed: resumed) {
                    function($0, box.user)
                }
            }
        }
    }
}

/// Sets the callback for a change of the transport in use. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for a NULL handle.
@_cdecl("rt_spreadbot_on_transport")
public func rt_spreadbot_on_transport(
    _ spreadbot: rt_spreadbot?, _ fn: rt_spreadbot_transport_fn?,
    _ user: UnsafeMutableRawPointer?, _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return handlers(spreadbot) {
        $0.transport = box.function.map { function in
            { function(number(of: $0), box.user) }
        }
    }
}

/// Sets the callback for messages. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for a NULL handle.
@_cdecl("rt_spreadbot_on_message")
public func rt_spreadbot_on_message(
    _ spreadbot: rt_spreadbot?, _ fn: rt_event_fn?,
    _ user: UnsafeMutableRawPointer?, _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return handlers(spreadbot) {
        $0.message = box.function.map { function in { $0.show(to: function, box.user) } }
    }
}

/// Sets the callback for a transport that failed or was lost, and for tokens that were refused.
/// Unless the failure is fatal another attempt follows, by this transport or another; its number
/// counts those in a row by this transport, and is 0 when the failure is not counted. A request of
/// an outbox that failed and is tried again has RT_SPREADBOT_TRANSPORT_NONE. When the failure is
/// fatal the disconnected callback follows. A failure of the last transport is reported as
/// RT_ERROR_RECONNECTS_EXHAUSTED alone, whose message has the cause for each transport: fatal, or
/// with the time until another round over all of them (`rt_spreadbot_set_max_rounds`). Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for a NULL handle.
@_cdecl("rt_spreadbot_on_error")
public func rt_spreadbot_on_error(
    _ spreadbot: rt_spreadbot?, _ fn: rt_failure_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return handlers(spreadbot) {
        $0.error = box.function.map { function in
            { $0.view.view { function($0, box.user) } }
        }
    }
}

/// Sets the callback for tokens that were refreshed. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for a NULL handle.
@_cdecl("rt_spreadbot_on_tokens")
public func rt_spreadbot_on_tokens(
    _ spreadbot: rt_spreadbot?, _ fn: rt_spreadbot_tokens_fn?,
    _ user: UnsafeMutableRawPointer?, _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return handlers(spreadbot) {
        $0.tokens = box.function.map { function in
            { access, refresh in
                access.withCString { access in
                    refresh.withCString { function(access, $0, box.user) }
                }
            }
        }
    }
}

/// Sets the callback for sends that have ended. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for a NULL handle.
@_cdecl("rt_spreadbot_on_sent")
public func rt_spreadbot_on_sent(
    _ spreadbot: rt_spreadbot?, _ fn: rt_spreadbot_sent_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return handlers(spreadbot) {
        $0.sent = box.function.map { function in { $0.show(to: function, box.user) } }
    }
}

/// Sets the callback for the end: RT_OK after `rt_spreadbot_disconnect`, else the fatal failure
/// that was reported. It may be established again, here too. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for a NULL handle.
@_cdecl("rt_spreadbot_on_disconnected")
public func rt_spreadbot_on_disconnected(
    _ spreadbot: rt_spreadbot?, _ fn: rt_closed_fn?,
    _ user: UnsafeMutableRawPointer?, _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return handlers(spreadbot) {
        $0.disconnected = box.function.map { function in
            { ClosedView(error: $0).view { function($0, box.user) } }
        }
    }
}

/// Sets handlers of a Spreadbot connection.
private func handlers(
    _ spreadbot: rt_spreadbot?, _ body: (inout SpreadbotHandlers) -> Void
) -> rt_status {
    spreadbotCall(spreadbot) { (connection) throws(RealtimeError) in
        try connection.setHandlers(body)
    }
}
