import CShims
import Engine
import Session
import Wire

// C callbacks as handlers of a WebSocket. Nothing here is exported.

/// Changes a WebSocket's options.
func websocketOptions(
    _ websocket: rt_websocket?, once: Bool = false,
    _ change: (inout WebSocketConfiguration) throws(RealtimeError) -> Void
) -> rt_status {
    border { () throws(RealtimeError) in
        try WebSocketConnection.borrow(websocket).configure(once: once, change)
    }
}

/// Runs a call on a WebSocket.
func websocketCall(
    _ websocket: rt_websocket?, _ body: (WebSocketConnection) throws(RealtimeError) -> Void
) -> rt_status {
    border { () throws(RealtimeError) in try WebSocketConnection.borrowing(websocket, body) }
}

// Each function wraps a C function into an engine handler; NULL removes the handler. A handler
// captures only the box, so the box serves as its context and no more memory is allocated.
// `Optional.map` is generic and would wrap each handler in another closure.
extension WebSocketConnection {
    func setOpen(_ box: CallbackBox<rt_opened_fn>) throws(RealtimeError) {
        try setHandlers { handlers in
            handlers.open = { $0.view { box.function?($0, box.user) } }
            if box.function == nil { handlers.open = nil }
        }
    }

    func setMessage(_ box: CallbackBox<rt_websocket_message_fn>) throws(RealtimeError) {
        try setHandlers { handlers in
            handlers.delivery = .each { kind, bytes in
                let base = bytes.baseAddress ?? .ofNothing
                box.function?(
                    kind.rawValue, base.assumingMemoryBound(to: UInt8.self), bytes.count,
                    box.user)
            }
            if box.function == nil { handlers.delivery = .nobody }
        }
    }

    func setMessages(_ box: CallbackBox<rt_websocket_messages_fn>) throws(RealtimeError) {
        try setHandlers { handlers in
            handlers.delivery = .together { base, messages in
                box.function?(
                    base.assumingMemoryBound(to: UInt8.self), messages.baseAddress,
                    messages.count, box.user)
            }
            if box.function == nil { handlers.delivery = .nobody }
        }
    }

    func setPiece(_ box: CallbackBox<rt_websocket_piece_fn>) throws(RealtimeError) {
        try setHandlers { handlers in
            handlers.delivery = .inPieces { kind, bytes, isFirst, isLast in
                let base = bytes.baseAddress ?? .ofNothing
                var view = rt_websocket_piece(
                    struct_bytes: MemoryLayout<rt_websocket_piece>.size, kind: kind.rawValue,
                    first: isFirst, last: isLast, data: base.assumingMemoryBound(to: UInt8.self),
                    data_length: bytes.count)
                box.function?(&view, box.user)
            }
            if box.function == nil { handlers.delivery = .nobody }
        }
    }

    func setError(_ box: CallbackBox<rt_failure_fn>) throws(RealtimeError) {
        try setHandlers { handlers in
            handlers.failed = { $0.view.view { box.function?($0, box.user) } }
            if box.function == nil { handlers.failed = nil }
        }
    }

    func setReconnect(_ box: CallbackBox<rt_attempt_fn>) throws(RealtimeError) {
        try setHandlers { handlers in
            handlers.reconnect = { box.function?(UInt32(clamping: $0), box.user) ?? false }
            if box.function == nil { handlers.reconnect = nil }
        }
    }

    func setClose(_ box: CallbackBox<rt_closed_fn>) throws(RealtimeError) {
        try setHandlers { handlers in
            handlers.close = { $0.view.view { box.function?($0, box.user) } }
            if box.function == nil { handlers.close = nil }
        }
    }

    func setDrained(_ box: CallbackBox<rt_websocket_drained_fn>) throws(RealtimeError) {
        try setHandlers { handlers in
            handlers.drained = { box.function?(box.user) }
            if box.function == nil { handlers.drained = nil }
        }
    }

    func setPong(_ box: CallbackBox<rt_websocket_pong_fn>) throws(RealtimeError) {
        try setHandlers { handlers in
            handlers.pong = { roundTrip in
                let (seconds, attoseconds) = roundTrip.components
                box.function?(seconds * 1_000_000 + attoseconds / 1_000_000_000_000, box.user)
            }
            if box.function == nil { handlers.pong = nil }
        }
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
