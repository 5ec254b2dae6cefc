import CShims
import Engine
import Session
import Wire

// Chapter: spreadbot callbacks. They may be set at any time, from any thread; NULL takes one away.
// All run on the loop's thread, one at a time, and may call anything.

/// It is connected by this leg: for the first time, or again. `resumed` is true when the leg began
/// behind the last id, so that nothing is missing; false when there was none, and it began wherever
/// the server begins. Since 0.1.
public typealias rt_spreadbot_open_fn =
    @convention(c) (
        _ transport: rt_spreadbot_transport, _ resumed: Bool, _ user: UnsafeMutableRawPointer?
    ) -> Void

/// Another leg is in use; RT_SPREADBOT_TRANSPORT_NONE when it is over. Since 0.1.
public typealias rt_spreadbot_transport_fn =
    @convention(c) (_ transport: rt_spreadbot_transport, _ user: UnsafeMutableRawPointer?) -> Void

/// A message. `id` is how far the messages have come, "" before there was one; `had_id` tells
/// whether this message has one of its own. `event` is what the server named it, or the path of
/// `rt_spreadbot_establish`. Both have a NUL behind their length, `data` has none; all are valid
/// until the callback returns. Since 0.1.
public typealias rt_spreadbot_message_fn =
    @convention(c) (
        _ id: UnsafePointer<CChar>?, _ id_length: Int, _ event: UnsafePointer<CChar>?,
        _ event_length: Int, _ data: UnsafePointer<UInt8>?, _ length: Int, _ had_id: Bool,
        _ user: UnsafeMutableRawPointer?
    ) -> Void

/// A leg failed or was lost, or tokens were refused. When `fatal` is false another attempt follows,
/// on this leg or another: `retry_in_ms` is the time until it, -1 when it waits for a network or
/// for tokens, and `attempt` its number in a row on this leg, 0 when it is not counted. A request
/// of an outbox that failed and is tried again has RT_SPREADBOT_TRANSPORT_NONE. When
/// `fatal` is true the disconnected callback follows. A failure of the last leg is reported as
/// RT_ERROR_RECONNECTS_EXHAUSTED alone, whose message has the cause for each leg: fatal, or with
/// the time until another round over all legs (`rt_spreadbot_set_max_rounds`). `http_status` is the
/// answer's, 0 without one. `message` names host and cause, valid until the callback returns. Since
/// 0.1.
public typealias rt_spreadbot_error_fn =
    @convention(c) (
        _ status: rt_status, _ message: UnsafePointer<CChar>?,
        _ transport: rt_spreadbot_transport, _ http_status: Int32, _ fatal: Bool,
        _ retry_in_ms: Int64, _ attempt: UInt32, _ user: UnsafeMutableRawPointer?
    ) -> Void

/// The tokens were refreshed, before anything is sent with them: keep them for the next run. Both
/// are valid until the callback returns. Since 0.1.
public typealias rt_spreadbot_tokens_fn =
    @convention(c) (
        _ access_token: UnsafePointer<CChar>?, _ refresh_token: UnsafePointer<CChar>?,
        _ user: UnsafeMutableRawPointer?
    ) -> Void

/// A send has ended, exactly once each: RT_OK when the server has it. RT_ERROR_CONNECTION_LOST says
/// that it was written to a connection that was lost before the server confirmed it: it may have
/// arrived, or not. `response` is the answer to a POST, NULL for a message by the WebSocket and
/// where no answer came. Texts and `response` are valid until the callback returns. Since 0.1.
public typealias rt_spreadbot_sent_fn =
    @convention(c) (
        _ number: UInt64, _ status: rt_status, _ message: UnsafePointer<CChar>?,
        _ response: rt_rest_response?, _ user: UnsafeMutableRawPointer?
    ) -> Void

/// It is over: RT_OK after `rt_spreadbot_disconnect`, else the fatal error that was told. It may be
/// established again, here too. Since 0.1.
public typealias rt_spreadbot_disconnected_fn =
    @convention(c) (
        _ status: rt_status, _ message: UnsafePointer<CChar>?, _ user: UnsafeMutableRawPointer?
    ) -> Void

/// Sets the callback for a connection that stands. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_spreadbot_on_open")
public func rt_spreadbot_on_open(
    _ spreadbot: rt_spreadbot?, _ fn: rt_spreadbot_open_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return handlers(spreadbot) {
        $0.open = box.function.map { function in
            { function($0.rawValue, $1, box.user) }
        }
    }
}

/// Sets the callback for a change of the leg in use. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
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
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_spreadbot_on_message")
public func rt_spreadbot_on_message(
    _ spreadbot: rt_spreadbot?, _ fn: rt_spreadbot_message_fn?,
    _ user: UnsafeMutableRawPointer?, _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return handlers(spreadbot) {
        $0.message = box.function.map { function in
            { message in
                let base = message.data.baseAddress ?? emptyBase
                function(
                    characters(message.id), message.id.count, characters(message.event),
                    message.event.count, base.assumingMemoryBound(to: UInt8.self),
                    message.data.count, message.hadID, box.user)
            }
        }
    }
}

/// Sets the callback for what failed. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_spreadbot_on_error")
public func rt_spreadbot_on_error(
    _ spreadbot: rt_spreadbot?, _ fn: rt_spreadbot_error_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return handlers(spreadbot) {
        $0.error = box.function.map { function in
            { failure in
                let delay = failure.retryIn.map { EventSourceConnection.milliseconds($0) }
                failure.error.message.withCString {
                    function(
                        failure.error.code.rawValue, $0, number(of: failure.transport),
                        Int32(clamping: failure.status), failure.isFatal, delay ?? -1,
                        UInt32(clamping: failure.attempt), box.user)
                }
            }
        }
    }
}

/// Sets the callback for tokens that were refreshed. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
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
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_spreadbot_on_sent")
public func rt_spreadbot_on_sent(
    _ spreadbot: rt_spreadbot?, _ fn: rt_spreadbot_sent_fn?, _ user: UnsafeMutableRawPointer?,
    _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return handlers(spreadbot) {
        $0.sent = box.function.map { function in
            { sent in
                let status = sent.error?.code.rawValue ?? RT_STATUS.OK.rawValue
                (sent.error?.message ?? "").withCString { message in
                    guard let result = sent.result, result.outcome.head != nil else {
                        return function(sent.number, status, message, nil, box.user)
                    }
                    RESTView.show(result.outcome, result.body, result.httpVersion) {
                        function(sent.number, status, message, $0, box.user)
                    }
                }
            }
        }
    }
}

/// Sets the callback for the end. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_spreadbot_on_disconnected")
public func rt_spreadbot_on_disconnected(
    _ spreadbot: rt_spreadbot?, _ fn: rt_spreadbot_disconnected_fn?,
    _ user: UnsafeMutableRawPointer?, _ destroy: rt_destroy_fn?
) -> rt_status {
    let box = CallbackBox(fn, user, destroy)
    return handlers(spreadbot) {
        $0.disconnected = box.function.map { function in
            { error in
                let status = error?.code.rawValue ?? RT_STATUS.OK.rawValue
                (error?.message ?? "").withCString { function(status, $0, box.user) }
            }
        }
    }
}

/// Sets handlers of a Spreadbot connection.
private func handlers(
    _ spreadbot: rt_spreadbot?, _ body: (inout SpreadbotHandlers) -> Void
) -> rt_status {
    spreadbotCall(spreadbot) { try $0.setHandlers(body) }
}
