internal import Engine
public import Wire

extension WebSocket {
    /// What a connection calls on its loop's thread, one at a time and in the order of the wire:
    /// `open` at most once, messages, `error` at most once, `close` exactly once. Bytes are valid
    /// until the handler returns.
    public struct Handlers: Sendable {
        public var open: (@Sendable (Agreement) -> Void)?
        /// One whole message; text is valid UTF-8.
        public var message: (@Sendable (MessageKind, RawSpan) -> Void)?
        /// Why the connection failed; `close` follows.
        public var error: (@Sendable (RealtimeError) -> Void)?
        public var close: (@Sendable (Closing) -> Void)?
        /// The send buffer, having been above `sendHighWaterBytes`, is empty again.
        public var drained: (@Sendable () -> Void)?
        /// A pong answered one of our pings after this long.
        public var pong: (@Sendable (Duration) -> Void)?

        public init() {}

        /// Puts each behind what the connection does for itself.
        func add(to target: inout WebSocketHandlers) {
            if let message { target.message = { message($0, $1.bytes) } }
            if let open {
                target.open = { [own = target.open] subprotocol, extensions in
                    own?(subprotocol, extensions)
                    open(Agreement(subprotocol: subprotocol, extensions: extensions))
                }
            }
            if let error {
                target.error = { [own = target.error] in
                    own?($0)
                    error($0)
                }
            }
            if let close {
                target.close = { [own = target.close] code, reason, isClean in
                    own?(code, reason, isClean)
                    close(Closing(code: code, reason: reason, isClean: isClean))
                }
            }
            if let drained {
                target.drained = { [own = target.drained] in
                    own?()
                    drained()
                }
            }
            if let pong {
                target.pong = { [own = target.pong] in
                    own?($0)
                    pong($0)
                }
            }
        }
    }
}

extension WebSocketConnection {
    func send(_ kind: MessageKind, utf8 text: String) throws(RealtimeError) {
        try send(kind, text.utf8Span.span.bytes)
    }

    func send(_ kind: MessageKind, _ bytes: RawSpan) throws(RealtimeError) {
        var failure: RealtimeError?
        bytes.withUnsafeBytes { bytes in
            do throws(RealtimeError) { try send(kind, bytes) } catch { failure = error }
        }
        if let failure { throw failure }
    }
}
