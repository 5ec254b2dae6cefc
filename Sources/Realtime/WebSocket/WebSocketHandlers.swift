internal import Engine
internal import Session
public import Wire

extension WebSocket {
    /// The functions that a connection calls on its loop's thread, one at a time and in the order
    /// received. This is the fastest form, because no message is copied or passed to another
    /// thread. So they must not block: everything else on the loop, also each time limit, waits for
    /// them. Only `reconnect` may take time. To receive messages on an actor, iterate over
    /// `messages`. The order: `open`, messages, `error`, again for each connection; `close` exactly
    /// once, at the end. Bytes are valid until the handler returns.
    public struct Handlers: Sendable {
        public var open: (@Sendable (Opened) -> Void)?
        /// Receives one whole message; text is valid UTF-8.
        public var message: (@Sendable (MessageKind, RawSpan) -> Void)?
        /// Receives messages in pieces as they arrive, for messages too large to hold in memory;
        /// replaces `message`. Text is cut between characters.
        public var piece:
            (
                @Sendable (MessageKind, RawSpan, _ isFirst: Bool, _ isLast: Bool) -> Void
            )?
        /// The connection failed or was lost. If the failure is fatal, `close` follows; otherwise
        /// another attempt does (`Options.reconnect`). If the peer closed in order and the
        /// connection reconnects, the error's code is `.closed`. A wait for a network is reported
        /// once, by the failure that led to it or by `.connect`; `retryIn` is then nil.
        public var error: (@Sendable (ErrorEvent) -> Void)?
        /// With `Options.reconnect`: called at the end of each wait for an attempt. It may change
        /// the URL and the headers; false ends the connection. The attempt waits for it without a
        /// time limit, and everything else on the loop continues. It runs on the actor to which it
        /// is isolated, otherwise where Swift runs asynchronous functions.
        public var reconnect: (@Sendable (_ attempt: Int, _ next: inout NextAttempt) async -> Bool)?
        public var close: (@Sendable (Closing) -> Void)?
        /// The send buffer is empty again, after it exceeded `sendHighWaterBytes`.
        public var drained: (@Sendable () -> Void)?
        /// A pong answered one of the connection's pings after this time.
        public var pong: (@Sendable (Duration) -> Void)?

        public init() {}

        /// Adds each handler after the connection's own.
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
                    // The function may take time, and the loop must not wait for it.
                    try connection.deferAttempt()
                    connection.prepare(attempt, reconnect)
                    return true
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
    /// A connection that failed or was lost.
    public struct ErrorEvent: Error, Sendable, CustomStringConvertible {
        public let error: RealtimeError
        /// The status of the response, or of a proxy that refused the tunnel; 0 without one.
        public let httpStatus: Int
        /// Whether the connection is closed now.
        public let isFatal: Bool
        /// The time until the next attempt; nil if there is none, or if it waits for a network.
        public let retryIn: Duration?
        /// The number of that attempt since the last stable connection, from 1. While it waits for
        /// a network: the number of the attempt that was lost, 0 for the first connection.
        public let attempt: Int
        /// The close code and the reason, if there was a close frame.
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

    public typealias NextAttempt = Realtime.NextAttempt
}

extension WebSocket.Closing {
    init(_ end: WebSocketEnd) {
        self.init(code: end.code, reason: end.reason, isClean: end.isClean)
    }
}

extension WebSocketConnection {
    /// Calls the user's reconnect handler for an attempt, which waits for it, and applies the
    /// result. An invalid URL or header ends the connection.
    fileprivate func prepare(
        _ attempt: Int,
        _ handler:
            @escaping @Sendable (_ attempt: Int, _ next: inout WebSocket.NextAttempt) async -> Bool
    ) {
        Task { [weak self] in
            var next = WebSocket.NextAttempt()
            let continues = await handler(attempt, &next)
            do throws(RealtimeError) {
                if continues { try self?.apply(next) }
                try self?.attemptIsReady(continues)
            } catch {
                // Fails once the connection has ended; nobody waits for an answer then.
                try? self?.attemptIsReady(false, because: error)
            }
        }
    }

    private func apply(_ next: WebSocket.NextAttempt) throws(RealtimeError) {
        if let url = next.url { try setURL(url) }
        guard let headers = next.headers else { return }
        try configure { (configuration) throws(RealtimeError) in
            configuration.clearHeaders()
            for header in headers {
                try configuration.addHeader(name: header.name, value: header.value)
            }
        }
    }
}
