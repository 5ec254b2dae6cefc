internal import Engine
internal import Session
public import Wire

extension WebSocket {
    /// What a connection calls on its loop's thread, one at a time and in the order of the wire:
    /// `open`, messages, `error`, and so on with each connection; `close` exactly once, at the end.
    /// Bytes are valid until the handler returns.
    public struct Handlers: Sendable {
        public var open: (@Sendable (Opened) -> Void)?
        /// One whole message; text is valid UTF-8.
        public var message: (@Sendable (MessageKind, RawSpan) -> Void)?
        /// Messages in pieces as they come, for those larger than memory should hold; takes the
        /// place of `message`. Text is cut between characters.
        public var piece:
            (
                @Sendable (MessageKind, RawSpan, _ isFirst: Bool, _ isLast: Bool) -> Void
            )?
        /// The connection was lost or was not made. Unless the failure is fatal another attempt
        /// follows (`Options.reconnect`); then a connection that the peer closed in order is an
        /// error with the code `.closed`. When it is fatal `close` follows.
        public var error: (@Sendable (ErrorEvent) -> Void)?
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
            if let piece {
                target.delivery = .inPieces { piece($0, $1.bytes, $2, $3) }
            } else if let message {
                target.delivery = .each { message($0, $1.bytes) }
            }
            if let open {
                target.open = { [own = target.open] in
                    own?($0)
                    open($0)
                }
            }
            if let error {
                target.failed = { [own = target.failed] in
                    own?($0)
                    error(ErrorEvent($0))
                }
            }
            if let reconnect {
                target.reconnect = { [unowned connection] (attempt) throws(RealtimeError) in
                    try connection.reconnects(attempt, reconnect)
                }
            }
            if let close {
                target.close = { [own = target.close] in
                    own?($0)
                    close(Closing($0))
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
    /// A connection that was lost or was not made.
    public struct ErrorEvent: Error, Sendable, CustomStringConvertible {
        public let error: RealtimeError
        /// The answer's, or that of a proxy that refused the tunnel; 0 without one.
        public let httpStatus: Int
        /// Whether it is closed now.
        public let isFatal: Bool
        /// The time until the next attempt; nil when there is none, or it waits for a network.
        public let retryIn: Duration?
        /// The number of that attempt, from 1 since the last connection that was stable. While it
        /// waits for a network, of the attempt that was lost; 0 for the first connection.
        public let attempt: Int
        /// The close code and the reason, as far as there was a close frame.
        public let closing: Closing

        public var description: String { error.description }

        init(_ failure: WebSocketFailure) {
            error = failure.error
            httpStatus = failure.error.response?.status ?? 0
            isFatal = failure.isFatal
            retryIn = failure.retryIn
            attempt = failure.attempt
            closing = Closing(code: failure.code, reason: failure.reason, isClean: false)
        }
    }

    /// What the next attempt connects to, for `Handlers.reconnect`.
    public struct NextAttempt: Sendable {
        /// Nil: the same as before.
        public var url: String?
        /// Nil: the same as before.
        public var headers: [(name: String, value: String)]?
    }
}

extension WebSocket.Closing {
    init(_ end: WebSocketEnd) {
        self.init(code: end.code, reason: end.reason, isClean: end.isClean)
    }
}

extension WebSocketConnection {
    /// Asks the user's reconnect handler and does as it says; a bad URL or header ends it.
    func reconnects(
        _ attempt: Int,
        _ handler: @Sendable (_ attempt: Int, _ next: inout WebSocket.NextAttempt) -> Bool
    ) throws(RealtimeError) -> Bool {
        var next = WebSocket.NextAttempt()
        guard handler(attempt, &next) else { return false }
        if let url = next.url { try setURL(url) }
        if let headers = next.headers {
            try configure { (configuration) throws(RealtimeError) in
                configuration.clearHeaders()
                for header in headers {
                    try configuration.addHeader(name: header.name, value: header.value)
                }
            }
        }
        return true
    }
}
