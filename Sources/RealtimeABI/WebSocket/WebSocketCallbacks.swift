public import CShims
import Engine
import Session
import Wire

// Chapter: websocket callbacks. They may be set at any time, from any thread; NULL removes a
// callback.

/// Receives one whole message. `data` is valid until the callback returns. It points into the
/// receive buffer, so no NUL follows it. It is never NULL, even if `length` is 0. Since 0.1.
public typealias rt_websocket_message_fn =
    @convention(c) (
        _ kind: rt_message_kind, _ data: UnsafePointer<UInt8>?, _ length: Int,
        _ user: UnsafeMutableRawPointer?
    ) -> Void

/// Receives all messages of one read, in order: message i has `messages[i].length` bytes at `base +
/// messages[i].offset`. `count` is at least 1. Everything is valid until the callback returns.
/// Since 0.1.
public typealias rt_websocket_messages_fn =
    @convention(c) (
        _ base: UnsafePointer<UInt8>?, _ messages: UnsafePointer<rt_message>?, _ count: Int,
        _ user: UnsafeMutableRawPointer?
    ) -> Void

/// Receives a piece of a message. It is valid until the callback returns. Since 0.1.
public typealias rt_websocket_piece_fn =
    @convention(c) (
        _ piece: UnsafePointer<rt_websocket_piece>?, _ user: UnsafeMutableRawPointer?
    ) -> Void

/// The send buffer is empty again, after it exceeded the high-water mark or a call failed with
/// RT_ERROR_BUFFER_FULL. Since 0.1.
public typealias rt_websocket_drained_fn = @convention(c) (_ user: UnsafeMutableRawPointer?) -> Void

/// A pong answered one of the connection's pings after `round_trip_us` microseconds. Since 0.1.
public typealias rt_websocket_pong_fn =
    @convention(c) (
        _ round_trip_us: Int64, _ user: UnsafeMutableRawPointer?
    ) -> Void

// A handler captures only the box, so the box serves as its context and no more memory is
// allocated. `Optional.map` is generic and would wrap each handler in another closure.
/// - Callbacks: websocket, websocketHandlers
extension WebSocketHandlers {
    /// Sets the callback for the open connection. Since 0.1.
    mutating func onOpen(_ box: CallbackBox<rt_opened_fn>) {
        open = { $0.show { box.function?($0, box.user) } }
        if box.function == nil { open = nil }
    }

    /// Sets the callback for single messages. It replaces the other message callbacks. Since 0.1.
    mutating func onMessage(_ box: CallbackBox<rt_websocket_message_fn>) {
        delivery = .each { kind, bytes in
            let base = bytes.baseAddress ?? .ofNothing
            box.function?(
                kind.rawValue, base.assumingMemoryBound(to: UInt8.self), bytes.count,
                box.user)
        }
        if box.function == nil { delivery = .nobody }
    }

    /// Sets the callback that receives all messages of a read together, for language runtimes in
    /// which each call is expensive. It replaces the other message callbacks. Since 0.1.
    mutating func onMessages(_ box: CallbackBox<rt_websocket_messages_fn>) {
        delivery = .together { base, messages in
            box.function?(
                base.assumingMemoryBound(to: UInt8.self), messages.baseAddress,
                messages.count, box.user)
        }
        if box.function == nil { delivery = .nobody }
    }

    /// Sets the callback that receives messages in pieces as they arrive, for messages too large to
    /// hold in memory. It replaces the other message callbacks, and `max_message_bytes` does not
    /// apply to it. A change between pieces and whole messages takes effect with the next message.
    /// A message that is arriving is delivered as it began, but if it began in pieces, its
    /// remaining pieces are dropped. Since 0.1.
    mutating func onPiece(_ box: CallbackBox<rt_websocket_piece_fn>) {
        delivery = .inPieces { kind, bytes, isFirst, isLast in
            let base = bytes.baseAddress ?? .ofNothing
            var view = rt_websocket_piece(
                struct_bytes: MemoryLayout<rt_websocket_piece>.size, kind: kind.rawValue,
                first: isFirst, last: isLast, data: base.assumingMemoryBound(to: UInt8.self),
                data_length: bytes.count)
            box.function?(&view, box.user)
        }
        if box.function == nil { delivery = .nobody }
    }

    /// Sets the callback for a connection that failed or was lost. If the failure is fatal, the
    /// close callback follows; otherwise another attempt does. If the peer closed in order and the
    /// connection reconnects, `status` is RT_ERROR_CLOSED. A wait for a network
    /// (`rt_websocket_set_reachability`) is reported once, by the failure that led to it or by
    /// RT_ERROR_CONNECT; `retry_in_ms` is then -1, and `attempt` is the number of the attempt that
    /// was lost, 0 for the first connection. Since 0.1.
    mutating func onError(_ box: CallbackBox<rt_failure_fn>) {
        failed = { $0.view.show { box.function?($0, box.user) } }
        if box.function == nil { failed = nil }
    }

    /// Sets the callback at the end of each wait for an attempt: before each but the first, and
    /// before the first if it had to wait for a network. It may change the URL, headers and
    /// network. Since 0.1.
    mutating func onReconnect(_ box: CallbackBox<rt_attempt_fn>) {
        reconnect = { box.function?(UInt32(clamping: $0), box.user) ?? false }
        if box.function == nil { reconnect = nil }
    }

    /// Sets the callback for a server that refuses the handshake for want of credentials: with 401
    /// or 403, or a proxy with 407. It may change the URL, headers and network. It is called once
    /// per attempt, also without a backoff. After RT_CREDENTIALS_READY the handshake is repeated at
    /// once, which does not count as a reconnect; after RT_CREDENTIALS_LATER the connection waits
    /// for `rt_websocket_credentials_ready`, without a time limit. Since 0.1.
    mutating func onCredentials(_ box: CallbackBox<rt_credentials_fn>) {
        credentials = credentialsHandler(box)
    }

    /// Sets the callback for the end of the connection, which is the last callback. If the peer
    /// does not answer the close frame within the close timeout, `code` is 1006 and `status` is
    /// RT_OK. Since 0.1.
    mutating func onClosed(_ box: CallbackBox<rt_closed_fn>) {
        close = { $0.view.show { box.function?($0, box.user) } }
        if box.function == nil { close = nil }
    }

    /// Sets the callback for a send buffer that is empty again. Since 0.1.
    mutating func onDrained(_ box: CallbackBox<rt_websocket_drained_fn>) {
        drained = { box.function?(box.user) }
        if box.function == nil { drained = nil }
    }

    /// Sets the callback for answered pings. Since 0.1.
    mutating func onPong(_ box: CallbackBox<rt_websocket_pong_fn>) {
        pong = { roundTrip in
            let (seconds, attoseconds) = roundTrip.components
            box.function?(seconds * 1_000_000 + attoseconds / 1_000_000_000_000, box.user)
        }
        if box.function == nil { pong = nil }
    }
}

/// Sets handlers of a WebSocket.
func websocketHandlers(
    _ websocket: rt_websocket?, _ body: (inout WebSocketHandlers) -> Void
) -> rt_status {
    websocketCall(websocket) { (connection) throws(RealtimeError) in
        try connection.setHandlers(body)
    }
}

extension WebSocketFailure {
    var view: FailureView {
        FailureView(
            error: error, httpStatus: error.response?.status ?? 0, retryIn: retryIn,
            attempt: attempt, isFatal: isFatal, closeCode: code.rawValue, closeReason: reason)
    }
}

extension WebSocketEnd {
    var view: ClosedView {
        ClosedView(error: error, code: code.rawValue, reason: reason, isClean: isClean)
    }
}
