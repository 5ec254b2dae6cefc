internal import Engine
internal import Session
public import Wire

extension WebSocket {
    /// What a connection calls on its loop's thread, one at a time and in the order of the wire:
    /// `open` at most once, messages, `error` at most once, `close` exactly once. Bytes are valid
    /// until the handler returns.
    public struct Handlers: Sendable {
        public var open: (@Sendable (Agreement) -> Void)?
        /// One whole message; text is valid UTF-8.
        public var message: (@Sendable (MessageKind, RawSpan) -> Void)?
        /// Messages in pieces as they come, for those larger than memory should hold; takes the
        /// place of `message`. Text is cut between characters.
        public var piece:
            (
                @Sendable (MessageKind, RawSpan, _ isFirst: Bool, _ isLast: Bool) -> Void
            )?
        /// Why the connection failed; `close` follows.
        public var error: (@Sendable (RealtimeError) -> Void)?
        /// With `Options.reconnect`: the connection is lost or was not made, and another attempt
        /// of this number follows after the delay; nil when it waits for a network, and then the
        /// number is that of the attempt that was lost, 0 for the first connection.
        public var lost: (@Sendable (_ how: Closing, _ delay: Duration?, _ attempt: Int) -> Void)?
        /// With `Options.reconnect`: an attempt begins now. What it connects to may be changed;
        /// false ends the connection.
        public var reconnect: (@Sendable (_ attempt: Int, _ next: inout NextAttempt) -> Bool)?
        public var close: (@Sendable (Closing) -> Void)?
        /// The send buffer, having been above `sendHighWaterBytes`, is empty again.
        public var drained: (@Sendable () -> Void)?
        /// A pong answered one of our pings after this long.
        public var pong: (@Sendable (Duration) -> Void)?

        public init() {}

        /// Puts each behind what the connection does for itself.
        func add(to target: inout WebSocketHandlers, of connection: WebSocketConnection) {
            if let piece { target.piece = { piece($0, $1.bytes, $2, $3) } }
            if let message, piece == nil { target.message = { message($0, $1.bytes) } }
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
            if let reconnect {
                target.reconnect = { [unowned connection] in
                    try connection.reconnects($0, reconnect)
                }
            }
            if let lost {
                target.lost = { [own = target.lost] code, reason, delay, attempt in
                    own?(code, reason, delay, attempt)
                    lost(Closing(code: code, reason: reason, isClean: false), delay, attempt)
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

extension WebSocket {
    /// What the next attempt connects to, for `Handlers.reconnect`.
    public struct NextAttempt: Sendable {
        /// Nil: the same as before.
        public var url: String?
        /// Nil: the same as before.
        public var headers: [(name: String, value: String)]?
    }
}

extension WebSocketConnection {
    /// Asks the user's reconnect handler and does as it says; a bad URL or header ends it.
    func reconnects(
        _ attempt: Int,
        _ handler: @Sendable (_ attempt: Int, _ next: inout WebSocket.NextAttempt) -> Bool
    ) throws -> Bool {
        var next = WebSocket.NextAttempt()
        guard handler(attempt, &next) else { return false }
        if let url = next.url { try setURL(url) }
        if let headers = next.headers {
            try configure { configuration in
                configuration.clearHeaders()
                for header in headers {
                    try configuration.addHeader(name: header.name, value: header.value)
                }
            }
        }
        return true
    }
}
