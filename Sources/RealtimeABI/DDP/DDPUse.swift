import Documents
import Engine
import Session
import Wire

// Chapter: ddp use. Connecting and state.

/// Connects, and keeps connected: a lost connection is established again, unless the options forbid
/// it. Without a network (`rt_ddp_set_reachability`) the client waits for one, with the status
/// offline. With one, a client that waits for its next attempt makes it at once, and the count of
/// failures stays. No callback is called inside this call. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL, if there are both a file and a callback
///   for the token, and if the files for the token and for the documents are the same;
///   RT_ERROR_STORE if the file for the token or for the documents cannot be used; RT_ERROR_FORKED;
///   RT_ERROR_CLOSED on a freed loop.
@_cdecl("rt_ddp_start")
public func rt_ddp_start(_ ddp: rt_ddp?) -> rt_status {
    ddpCall(ddp) { (client) throws(RealtimeError) in try client.connect() }
}

/// Ends the connection and all attempts. Calls and subscriptions wait for the next `rt_ddp_start`.
/// Any thread. Since 0.1.
/// - Returns: as `rt_ddp_start`.
@_cdecl("rt_ddp_close")
public func rt_ddp_close(_ ddp: rt_ddp?) -> rt_status {
    ddpCall(ddp) { (client) throws(RealtimeError) in try client.disconnect() }
}

/// Drops the connection, also if it is fine, and connects again. Any thread. Since 0.1.
/// - Returns: as `rt_ddp_start`.
@_cdecl("rt_ddp_restart")
public func rt_ddp_restart(_ ddp: rt_ddp?) -> rt_status {
    ddpCall(ddp) { (client) throws(RealtimeError) in try client.reconnect() }
}

/// Reports what the program knows about the network, in addition to what the client observes
/// itself (`rt_ddp_set_reachability`). If the network is reachable and the client waits for its
/// next attempt, it makes it at once. If it is not, no attempt is made until it is, also if the
/// program connects. Any thread. Since 0.1.
/// - Returns: as `rt_ddp_start`.
@_cdecl("rt_ddp_network_changed")
public func rt_ddp_network_changed(_ ddp: rt_ddp?, _ reachable: Bool) -> rt_status {
    ddpCall(ddp) { (client) throws(RealtimeError) in
        try client.networkChanged(isReachable: reachable)
    }
}

/// Tells the client that the network is back, as `rt_ddp_network_changed` does with true: if its
/// next attempt waits, for its time or for a network, it is made at once, and the count of failures
/// begins again; in the background, it waits for the foreground. A connected client also checks
/// with a ping that the server still answers. Any thread. Since 0.1.
/// - Returns: RT_OK, also if there is nothing to do; RT_ERROR_INVALID_ARGUMENT for NULL;
///   RT_ERROR_FORKED; RT_ERROR_CLOSED on a freed loop.
@_cdecl("rt_ddp_retry_now")
public func rt_ddp_retry_now(_ ddp: rt_ddp?) -> rt_status {
    ddpCall(ddp) { (client) throws(RealtimeError) in try client.retryNow() }
}

/// Reports that the program moves to the background: the connection is kept for a while
/// (`rt_ddp_set_background_grace_ms`), and no new attempt is made. Any thread. Since 0.1.
/// - Returns: as `rt_ddp_start`.
@_cdecl("rt_ddp_enter_background")
public func rt_ddp_enter_background(_ ddp: rt_ddp?) -> rt_status {
    ddpCall(ddp) { (client) throws(RealtimeError) in try client.enterBackground() }
}

/// Reports that the program is in the foreground again: a client that was connected connects. Any
/// thread. Since 0.1.
/// - Returns: as `rt_ddp_start`.
@_cdecl("rt_ddp_enter_foreground")
public func rt_ddp_enter_foreground(_ ddp: rt_ddp?) -> rt_status {
    ddpCall(ddp) { (client) throws(RealtimeError) in try client.enterForeground() }
}

/// Returns the state. Any thread. Since 0.1.
/// - Returns: an `rt_state`; RT_ERROR_INVALID_ARGUMENT for NULL; RT_ERROR_FORKED.
@_cdecl("rt_ddp_get_state")
public func rt_ddp_get_state(_ ddp: rt_ddp?) -> Int32 {
    ddpValue(ddp) { $0.connectionState.rawValue }
}

/// Returns the status in Meteor's words, as `rt_ddp_on_status` reports it. It tells a wait for a
/// network from other waits, and a failure from a close. Any thread. Since 0.1.
/// - Returns: an `rt_ddp_status`; RT_ERROR_INVALID_ARGUMENT for NULL; RT_ERROR_FORKED.
@_cdecl("rt_ddp_get_status")
public func rt_ddp_get_status(_ ddp: rt_ddp?) -> Int32 {
    ddpValue(ddp) { $0.status.rawValue }
}

/// Returns the number of attempts in a row that have failed. Any thread. Since 0.1.
/// - Returns: the number; RT_ERROR_INVALID_ARGUMENT for NULL; RT_ERROR_FORKED.
@_cdecl("rt_ddp_get_retry_count")
public func rt_ddp_get_retry_count(_ ddp: rt_ddp?) -> Int32 {
    ddpValue(ddp) { Int32(clamping: $0.retryCount) }
}

/// Returns how long it is until the next attempt. Any thread. Since 0.1.
/// - Parameter out: receives milliseconds; -1 unless the status is `RT_DDP_WAITING`.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT; RT_ERROR_FORKED.
@_cdecl("rt_ddp_get_retry_in_ms")
public func rt_ddp_get_retry_in_ms(
    _ ddp: rt_ddp?, _ out: UnsafeMutablePointer<Int64>?
) -> rt_status {
    ddpCall(ddp) { (client) throws(RealtimeError) in
        let out = try required(out, "out")
        out.pointee = client.retryIn.map { EventSourceConnection.milliseconds($0) } ?? -1
    }
}

/// Copies why the client has failed; "" unless the status is `RT_DDP_FAILED`. Any thread. Since
/// 0.1.
/// - Parameter buffer: as in `rt_ddp_get_version`.
/// - Returns: as `rt_ddp_get_version`.
@_cdecl("rt_ddp_get_reason")
public func rt_ddp_get_reason(
    _ ddp: rt_ddp?, _ buffer: UnsafeMutablePointer<CChar>?, _ size: Int,
    _ out_length: UnsafeMutablePointer<Int>?
) -> rt_status {
    ddpCall(ddp) { (client) throws(RealtimeError) in
        try copy(text: client.failureReason, to: buffer, size, out_length)
    }
}

/// Returns whether some documents may be those of an earlier run (`rt_ddp_set_document_file`):
/// until the subscriptions of that run are ready again, or if it had none, until the quiescence
/// limit. Any thread. Since 0.1.
/// - Returns: 1 or 0; RT_ERROR_INVALID_ARGUMENT for NULL; RT_ERROR_FORKED.
@_cdecl("rt_ddp_has_stale_documents")
public func rt_ddp_has_stale_documents(_ ddp: rt_ddp?) -> Int32 {
    ddpValue(ddp) { $0.hasStaleDocuments ? 1 : 0 }
}

/// Returns whether a login is in progress; not while a user who is known is logged in again, on a
/// new connection or with a token that was kept. Any thread. Since 0.1.
/// - Returns: 1 or 0; RT_ERROR_INVALID_ARGUMENT for NULL; RT_ERROR_FORKED.
@_cdecl("rt_ddp_is_logging_in")
public func rt_ddp_is_logging_in(_ ddp: rt_ddp?) -> Int32 {
    ddpValue(ddp) { $0.isLoggingIn ? 1 : 0 }
}

/// Copies the protocol version that was agreed, such as `1`; "" while not connected. Any thread.
/// Since 0.1.
/// - Parameter buffer: receives the text and a NUL, cut to `size` bytes; may be NULL if `size` is
///   0.
/// - Parameter out_length: receives the length of the whole text; may be NULL.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT; RT_ERROR_FORKED.
@_cdecl("rt_ddp_get_version")
public func rt_ddp_get_version(
    _ ddp: rt_ddp?, _ buffer: UnsafeMutablePointer<CChar>?, _ size: Int,
    _ out_length: UnsafeMutablePointer<Int>?
) -> rt_status {
    ddpCall(ddp) { (client) throws(RealtimeError) in
        try copy(text: client.version ?? "", to: buffer, size, out_length)
    }
}

/// Copies the id of the user who is logged in; "" for nobody. Until the first connection has logged
/// in, it is the user of the token that was kept. Any thread. Since 0.1.
/// - Parameter buffer: as in `rt_ddp_get_version`.
/// - Returns: as `rt_ddp_get_version`.
@_cdecl("rt_ddp_get_user_id")
public func rt_ddp_get_user_id(
    _ ddp: rt_ddp?, _ buffer: UnsafeMutablePointer<CChar>?, _ size: Int,
    _ out_length: UnsafeMutablePointer<Int>?
) -> rt_status {
    ddpCall(ddp) { (client) throws(RealtimeError) in
        try copy(text: client.userID ?? "", to: buffer, size, out_length)
    }
}

/// Calls `fn` with the server's response that opened the present or the last connection, and with
/// that connection, inside this call. By SockJS it is the response to the first poll. Any thread.
/// Since 0.1.
/// - Returns: RT_OK; RT_ERROR_NOT_FOUND before the first connection; RT_ERROR_INVALID_ARGUMENT for
///   NULL; RT_ERROR_FORKED.
@_cdecl("rt_ddp_get_opened")
public func rt_ddp_get_opened(
    _ ddp: rt_ddp?, _ fn: rt_opened_fn?, _ user: UnsafeMutableRawPointer?
) -> rt_status {
    ddpCall(ddp) { (client) throws(RealtimeError) in
        try show(client.opened, to: fn, user)
    }
}

func ddpValue(_ ddp: rt_ddp?, _ body: (DDPConnection) throws(RealtimeError) -> Int32) -> Int32 {
    borderValue { () throws(RealtimeError) in
        let client = try DDPConnection.borrow(ddp)
        try client.loop.checkNotForked()
        return try body(client)
    }
}
