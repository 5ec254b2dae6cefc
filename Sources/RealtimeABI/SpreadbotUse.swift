import Engine
import Session
import Wire

// Chapter: spreadbot use. Connecting, sending, the end, and what it is.

/// Connects to a path, in place of what is there: again after a disconnect or a fatal error, too.
/// The cursor and the tokens are kept; another path than before begins without a cursor. No
/// callback comes inside this call. Any thread. Since 0.1.
/// - Parameter path: below the base URL, maybe with a query; "" for the base URL itself.
/// - Returns: RT_OK; RT_ERROR_INVALID_URL, RT_ERROR_INVALID_UTF8, RT_ERROR_INVALID_ARGUMENT.
@_cdecl("rt_spreadbot_establish")
public func rt_spreadbot_establish(
    _ spreadbot: rt_spreadbot?, _ path: UnsafePointer<CChar>?
) -> rt_status {
    spreadbotCall(spreadbot) { (connection) throws(RealtimeError) in
        try connection.establish(path: text(path, "path"))
    }
}

/// Ends the connection: a WebSocket by its closing handshake, after what was sent. Sends that wait
/// end with RT_ERROR_CLOSED. From here on the error callback is not called and messages are not
/// delivered; the disconnected callback reports the end. Requests of `rt_spreadbot_post` need no
/// connection and go on; messages of an outbox stay in it, and wait for the next
/// `rt_spreadbot_establish`. No callback comes inside this call. When nothing is established,
/// nothing happens. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_spreadbot_disconnect")
public func rt_spreadbot_disconnect(_ spreadbot: rt_spreadbot?) -> rt_status {
    spreadbotCall(spreadbot) { (connection) throws(RealtimeError) in try connection.disconnect() }
}

/// Sends a text: by the WebSocket while it is connected, else, while one is dialled too, by a POST
/// to the same URL (see `rt_spreadbot_set_send_url`), all sends in the order of their submission;
/// without a network they wait. The callback of `rt_spreadbot_on_sent` reports how it ended,
/// never inside this call. Any thread. Since 0.1.
/// - Parameter text: UTF-8, `length` bytes, copied.
/// - Parameter out_number: receives the number the callback names it by, before that can be called
///   on another thread; may be NULL.
/// - Returns: RT_OK; RT_ERROR_INVALID_UTF8; RT_ERROR_INVALID_ARGUMENT; with an outbox (see
///   `rt_spreadbot_set_outbox`) also RT_ERROR_STORE when the disk refuses, RT_ERROR_QUEUE_FULL when
///   it is full, RT_ERROR_TOO_LARGE for what it can never hold, and RT_ERROR_CLOSED before anything
///   was established.
@_cdecl("rt_spreadbot_send_text")
public func rt_spreadbot_send_text(
    _ spreadbot: rt_spreadbot?, _ text: UnsafePointer<CChar>?, _ length: Int,
    _ out_number: UnsafeMutablePointer<UInt64>?
) -> rt_status {
    spreadbotCall(spreadbot) { (connection) throws(RealtimeError) in
        try connection.send(.text, bytes(text, length, "text")) { out_number?.pointee = $0 }
    }
}

/// Sends bytes; otherwise as `rt_spreadbot_send_text`. Any thread. Since 0.1.
/// - Returns: as there.
@_cdecl("rt_spreadbot_send_binary")
public func rt_spreadbot_send_binary(
    _ spreadbot: rt_spreadbot?, _ data: UnsafePointer<UInt8>?, _ length: Int,
    _ out_number: UnsafeMutablePointer<UInt64>?
) -> rt_status {
    spreadbotCall(spreadbot) { (connection) throws(RealtimeError) in
        try connection.send(.binary, bytes(data, length, "data")) { out_number?.pointee = $0 }
    }
}

/// Posts to a path of its own below the base URL, whatever connection there is or none, in one
/// order with the messages that are sent; while nothing is established it goes before messages of
/// an outbox, which wait for a connection. Tried like a request of `rt_spreadbot_new_rest`; its
/// answer is given to the callback of `rt_spreadbot_on_sent`. Any thread. Since 0.1.
/// - Parameter path: below the base URL, maybe with a query.
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

/// Ends a send that waits or is being posted, whose callback then says RT_ERROR_CANCELLED; what the
/// server has done by then stays done. A frame that was given to the WebSocket, and a send that has
/// ended, are left alone. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_spreadbot_cancel")
public func rt_spreadbot_cancel(_ spreadbot: rt_spreadbot?, _ number: UInt64) -> rt_status {
    spreadbotCall(spreadbot) { (connection) throws(RealtimeError) in try connection.cancel(number) }
}

/// Sets the tokens in the place of those there are; they hold from the next attempt and request on,
/// and what waits for a refresh goes on with them. When the refresh token is the one that is being
/// spent, that which takes its place is kept and told. Any thread, at any time. Since 0.1.
/// - Parameter access_token: sent as `Authorization: Bearer`; NULL or "" sends none.
/// - Parameter refresh_token: see `rt_spreadbot_set_auth`; NULL or "" for none.
/// - Returns: RT_OK; RT_ERROR_INVALID_HEADER, RT_ERROR_INVALID_ARGUMENT for what does not fit a
///   header.
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

/// Makes a client for requests below the base URL. They carry the access token, which no other
/// origin is shown, and a refusal has it refreshed together with the connection's; those that may
/// not be repeated get an Idempotency-Key, so that they may. Options of the connection that concern
/// requests hold for it; others may be set on it before its first request. Any thread. Since 0.1.
/// - Parameter out: receives it; to be freed with `rt_rest_free`, before or after the connection.
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

/// Stops delivering; what comes waits, and the server with it. A frame that is sent counts as the
/// server's once it is written, since the answer that would confirm it is not read. Any thread;
/// from another than the loop's one message may still come. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_spreadbot_pause")
public func rt_spreadbot_pause(_ spreadbot: rt_spreadbot?) -> rt_status {
    spreadbotCall(spreadbot) { (connection) throws(RealtimeError) in try connection.pause() }
}

/// Goes on delivering. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_spreadbot_resume")
public func rt_spreadbot_resume(_ spreadbot: rt_spreadbot?) -> rt_status {
    spreadbotCall(spreadbot) { (connection) throws(RealtimeError) in try connection.resume() }
}

/// Where it stands. Any thread. Since 0.1.
/// - Returns: an `rt_spreadbot_state`; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_spreadbot_get_state")
public func rt_spreadbot_get_state(_ spreadbot: rt_spreadbot?) -> Int32 {
    borderValue { () throws(RealtimeError) in
        try SpreadbotConnection.borrow(spreadbot).state.rawValue
    }
}

/// What it does while it is connecting. Any thread. Since 0.1.
/// - Returns: an `rt_spreadbot_phase`; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_spreadbot_get_phase")
public func rt_spreadbot_get_phase(_ spreadbot: rt_spreadbot?) -> Int32 {
    borderValue { () throws(RealtimeError) in
        try SpreadbotConnection.borrow(spreadbot).phase.rawValue
    }
}

/// The transport in use, or tried last while it is connecting. Any thread. Since 0.1.
/// - Returns: an `rt_spreadbot_transport`; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_spreadbot_get_transport")
public func rt_spreadbot_get_transport(_ spreadbot: rt_spreadbot?) -> Int32 {
    borderValue { () throws(RealtimeError) in
        number(of: try SpreadbotConnection.borrow(spreadbot).transport)
    }
}

/// The id of the last message that had one, after which the next transport begins; "" for none. To
/// begin there another time, see `rt_spreadbot_set_last_event_id`. Any thread. Since 0.1.
/// - Parameter buffer: receives the id and a NUL, cut to `size` bytes; may be NULL when `size` is
///   0.
/// - Parameter out_length: receives the whole id's length.
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

/// The access token in use, which a refresh may have changed. Any thread. Since 0.1.
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

/// The refresh token to be spent next. Any thread. Since 0.1.
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

func number(of transport: SpreadbotTransport?) -> rt_spreadbot_transport {
    transport?.rawValue ?? RT_SPREADBOT_TRANSPORT.NONE.rawValue
}

/// Runs a call on a Spreadbot connection.
func spreadbotCall(
    _ spreadbot: rt_spreadbot?, _ body: (SpreadbotConnection) throws(RealtimeError) -> Void
) -> rt_status {
    border { () throws(RealtimeError) in try SpreadbotConnection.borrowing(spreadbot, body) }
}
