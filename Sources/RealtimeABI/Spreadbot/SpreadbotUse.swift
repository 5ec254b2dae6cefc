import Engine
import Session
import Wire

// Chapter: spreadbot use. Connecting, sending, disconnecting, and state.

/// Connects to a path. It replaces the current connection, and also works again after a disconnect
/// or a fatal error. The cursor and the tokens are kept, but a different path starts without a
/// cursor. No callback is called inside this call. Any thread. Since 0.1.
/// - Parameter path: below the base URL, with an optional query; "" for the base URL itself.
/// - Returns: RT_OK; RT_ERROR_INVALID_URL; RT_ERROR_INVALID_UTF8; RT_ERROR_INVALID_ARGUMENT.
@_cdecl("rt_spreadbot_start")
public func rt_spreadbot_start(
    _ spreadbot: rt_spreadbot?, _ path: UnsafePointer<CChar>?
) -> rt_status {
    spreadbotCall(spreadbot) { (connection) throws(RealtimeError) in
        try connection.establish(path: text(path, "path"))
    }
}

/// Ends the connection. A WebSocket sends what is queued, then closes with the closing handshake.
/// Waiting sends end with RT_ERROR_CLOSED. From here on no message or error is delivered; the
/// disconnected callback reports the end. Requests by `rt_spreadbot_post` need no connection and
/// continue. Messages in an outbox stay there until the next `rt_spreadbot_start`. No callback is
/// called inside this call. If nothing is established, the call has no effect. Any thread. Since
/// 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_spreadbot_close")
public func rt_spreadbot_close(_ spreadbot: rt_spreadbot?) -> rt_status {
    spreadbotCall(spreadbot) { (connection) throws(RealtimeError) in try connection.disconnect() }
}

/// Tells the connection that the network is back. If its next attempt waits, for its time or for a
/// network, it is made at once, beginning with the first transport; so is a send that waits to be
/// repeated. An open WebSocket is checked by a ping, and another transport tries the WebSocket
/// again. To report the loss of the network, use a manual reachability monitor
/// (`rt_spreadbot_set_reachability`). Any thread. Since 0.1.
/// - Returns: RT_OK, also if there is nothing to do; RT_ERROR_INVALID_ARGUMENT for NULL;
///   RT_ERROR_FORKED; RT_ERROR_CLOSED on a freed loop.
@_cdecl("rt_spreadbot_retry_now")
public func rt_spreadbot_retry_now(_ spreadbot: rt_spreadbot?) -> rt_status {
    spreadbotCall(spreadbot) { (connection) throws(RealtimeError) in try connection.retryNow() }
}

/// Sends a text. It goes by the WebSocket while that is connected, otherwise (also while a
/// WebSocket is being dialled) by a POST to the same URL (see `rt_spreadbot_set_send_url`). All
/// sends keep the order of their submission, and wait while there is no network. The callback of
/// `rt_spreadbot_on_sent` reports the result, never inside this call. Any thread. Since 0.1.
/// - Parameter text: UTF-8, `length` bytes, copied.
/// - Parameter out_number: receives the number that identifies the send in that callback, set
///   before the callback can run on another thread; may be NULL.
/// - Returns: RT_OK; RT_ERROR_INVALID_UTF8; RT_ERROR_INVALID_ARGUMENT. With an outbox (see
///   `rt_spreadbot_set_outbox`) also: RT_ERROR_STORE if the disk fails; RT_ERROR_QUEUE_FULL if the
///   outbox is full; RT_ERROR_TOO_LARGE for a send that can never fit; RT_ERROR_CLOSED before the
///   first `rt_spreadbot_start`.
@_cdecl("rt_spreadbot_send_text")
public func rt_spreadbot_send_text(
    _ spreadbot: rt_spreadbot?, _ text: UnsafePointer<CChar>?, _ length: Int,
    _ out_number: UnsafeMutablePointer<UInt64>?
) -> rt_status {
    spreadbotCall(spreadbot) { (connection) throws(RealtimeError) in
        try connection.send(.text, bytes(text, length, "text")) { out_number?.pointee = $0 }
    }
}

/// Sends bytes; otherwise like `rt_spreadbot_send_text`. Any thread. Since 0.1.
/// - Returns: as `rt_spreadbot_send_text`.
@_cdecl("rt_spreadbot_send_binary")
public func rt_spreadbot_send_binary(
    _ spreadbot: rt_spreadbot?, _ data: UnsafePointer<UInt8>?, _ length: Int,
    _ out_number: UnsafeMutablePointer<UInt64>?
) -> rt_status {
    spreadbotCall(spreadbot) { (connection) throws(RealtimeError) in
        try connection.send(.binary, bytes(data, length, "data")) { out_number?.pointee = $0 }
    }
}

/// Posts to a path below the base URL, with or without a connection, in one order with the messages
/// sent. While nothing is established, it goes before the messages in an outbox, which wait for a
/// connection. It is retried like a request of `rt_spreadbot_new_rest`, and the callback of
/// `rt_spreadbot_on_sent` receives its response. Any thread. Since 0.1.
/// - Parameter path: below the base URL, with an optional query.
/// - Parameter content_type: NULL for `application/json`.
/// - Parameter data: `length` bytes, copied.
/// - Parameter out_number: as in `rt_spreadbot_send_text`.
/// - Returns: RT_OK; RT_ERROR_INVALID_URL; RT_ERROR_INVALID_HEADER; RT_ERROR_INVALID_ARGUMENT; with
///   an outbox as `rt_spreadbot_send_text`.
@_cdecl("rt_spreadbot_post")
public func rt_spreadbot_post(
    _ spreadbot: rt_spreadbot?, _ path: UnsafePointer<CChar>?,
    _ content_type: UnsafePointer<CChar>?, _ data: UnsafePointer<UInt8>?, _ length: Int,
    _ out_number: UnsafeMutablePointer<UInt64>?
) -> rt_status {
    spreadbotCall(spreadbot) { (connection) throws(RealtimeError) in
        let type = try optionalText(content_type, "content_type") ?? "application/json"
        try connection.post(
            path: text(path, "path"), contentType: type, bytes(data, length, "data")
        ) { out_number?.pointee = $0 }
    }
}

/// Cancels a send that waits or is being posted; its callback receives RT_ERROR_CANCELLED. It does
/// not undo what the server has already done. It has no effect on a send that has ended, or on a
/// frame that the WebSocket has accepted. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_spreadbot_cancel")
public func rt_spreadbot_cancel(_ spreadbot: rt_spreadbot?, _ number: UInt64) -> rt_status {
    spreadbotCall(spreadbot) { (connection) throws(RealtimeError) in try connection.cancel(number) }
}

/// Replaces the tokens. They are used from the next attempt and request on, and whatever waits for
/// a refresh continues with them. If the refresh token set here is just being used for a refresh,
/// the refreshed tokens are kept and reported as usual. Any thread, at any time. Since 0.1.
/// - Parameter access_token: sent as `Authorization: Bearer`; NULL or "" sends none.
/// - Parameter refresh_token: see `rt_spreadbot_set_auth`; NULL or "" for none.
/// - Returns: RT_OK; RT_ERROR_INVALID_HEADER; RT_ERROR_INVALID_ARGUMENT for text that cannot be in
///   a header.
@_cdecl("rt_spreadbot_set_tokens")
public func rt_spreadbot_set_tokens(
    _ spreadbot: rt_spreadbot?, _ access_token: UnsafePointer<CChar>?,
    _ refresh_token: UnsafePointer<CChar>?
) -> rt_status {
    spreadbotCall(spreadbot) { (connection) throws(RealtimeError) in
        try connection.setTokens(
            access: optionalText(access_token, "access_token") ?? "",
            refresh: optionalText(refresh_token, "refresh_token") ?? "")
    }
}

/// Creates a client for requests below the base URL. They carry the access token, which is not sent
/// to other origins. If the server refuses it, it is refreshed together with the connection's.
/// Requests that are unsafe to repeat get an Idempotency-Key, so that they can be retried. The
/// connection's options for requests apply to the client; other options may be set on it before its
/// first request. Any thread. Since 0.1.
/// - Parameter out: receives the client; free it with `rt_rest_free`, before or after the
///   connection.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT.
@_cdecl("rt_spreadbot_new_rest")
public func rt_spreadbot_new_rest(
    _ spreadbot: rt_spreadbot?, _ out: UnsafeMutablePointer<rt_rest?>?
) -> rt_status {
    spreadbotCall(spreadbot) { (connection) throws(RealtimeError) in
        let out = try required(out, "out")
        out.pointee = RESTClient.export(try connection.makeClient())
        OwnLoop.join(connection.loop)
    }
}

/// Stops delivering messages; incoming data is held and the server is slowed down. A frame sent
/// meanwhile counts as received by the server once it is written, since the pong that would confirm
/// it is not read. Any thread; called on a thread other than the loop's, one message may still
/// come. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_spreadbot_pause")
public func rt_spreadbot_pause(_ spreadbot: rt_spreadbot?) -> rt_status {
    spreadbotCall(spreadbot) { (connection) throws(RealtimeError) in try connection.pause() }
}

/// Continues delivering messages. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_spreadbot_resume")
public func rt_spreadbot_resume(_ spreadbot: rt_spreadbot?) -> rt_status {
    spreadbotCall(spreadbot) { (connection) throws(RealtimeError) in try connection.resume() }
}

/// Returns the state. Any thread. Since 0.1.
/// - Returns: an `rt_state`; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_spreadbot_get_state")
public func rt_spreadbot_get_state(_ spreadbot: rt_spreadbot?) -> Int32 {
    borderValue { () throws(RealtimeError) in
        try SpreadbotConnection.borrow(spreadbot).connectionState.rawValue
    }
}

/// Returns what the connection does while it is connecting. Any thread. Since 0.1.
/// - Returns: an `rt_spreadbot_phase`; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_spreadbot_get_phase")
public func rt_spreadbot_get_phase(_ spreadbot: rt_spreadbot?) -> Int32 {
    borderValue { () throws(RealtimeError) in
        try SpreadbotConnection.borrow(spreadbot).phase.rawValue
    }
}

/// Returns the transport in use or, while connecting, the one tried last. Any thread. Since 0.1.
/// - Returns: an `rt_spreadbot_transport`; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_spreadbot_get_transport")
public func rt_spreadbot_get_transport(_ spreadbot: rt_spreadbot?) -> Int32 {
    borderValue { () throws(RealtimeError) in
        transportNumber(of: try SpreadbotConnection.borrow(spreadbot).transport)
    }
}

/// Copies the id of the last message that had one, after which the next transport continues; "" for
/// none. To continue there in another run, pass it to `rt_spreadbot_set_last_event_id`. Any thread.
/// Since 0.1.
/// - Parameter buffer: receives the id and a NUL, cut to `size` bytes; may be NULL if `size` is 0.
/// - Parameter out_length: receives the length of the whole id.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT.
@_cdecl("rt_spreadbot_get_last_event_id")
public func rt_spreadbot_get_last_event_id(
    _ spreadbot: rt_spreadbot?, _ buffer: UnsafeMutablePointer<CChar>?, _ size: Int,
    _ out_length: UnsafeMutablePointer<Int>?
) -> rt_status {
    spreadbotCall(spreadbot) { (connection) throws(RealtimeError) in
        try copy(text: connection.lastEventID, to: buffer, size, out_length)
    }
}

/// Copies the current access token, which a refresh may have changed. Any thread. Since 0.1.
/// - Parameter buffer: as in `rt_spreadbot_get_last_event_id`.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT.
@_cdecl("rt_spreadbot_get_access_token")
public func rt_spreadbot_get_access_token(
    _ spreadbot: rt_spreadbot?, _ buffer: UnsafeMutablePointer<CChar>?, _ size: Int,
    _ out_length: UnsafeMutablePointer<Int>?
) -> rt_status {
    spreadbotCall(spreadbot) { (connection) throws(RealtimeError) in
        try copy(text: connection.tokens.access, to: buffer, size, out_length)
    }
}

/// Copies the refresh token that the next refresh will use. Any thread. Since 0.1.
/// - Parameter buffer: as in `rt_spreadbot_get_last_event_id`.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT.
@_cdecl("rt_spreadbot_get_refresh_token")
public func rt_spreadbot_get_refresh_token(
    _ spreadbot: rt_spreadbot?, _ buffer: UnsafeMutablePointer<CChar>?, _ size: Int,
    _ out_length: UnsafeMutablePointer<Int>?
) -> rt_status {
    spreadbotCall(spreadbot) { (connection) throws(RealtimeError) in
        try copy(text: connection.tokens.refresh, to: buffer, size, out_length)
    }
}

func transportNumber(of transport: SpreadbotTransport?) -> rt_spreadbot_transport {
    transport?.rawValue ?? RT_SPREADBOT_TRANSPORT.NONE.rawValue
}

/// Runs a call on a Spreadbot connection.
func spreadbotCall(
    _ spreadbot: rt_spreadbot?, _ body: (SpreadbotConnection) throws(RealtimeError) -> Void
) -> rt_status {
    border { () throws(RealtimeError) in try SpreadbotConnection.borrowing(spreadbot, body) }
}
