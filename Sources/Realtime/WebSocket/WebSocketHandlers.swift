internal import Engine
internal import Session
public import Wire

extension WebSocket {
    /// The functions that a connection calls, one at a time and in the order received: on the main
    /// actor, or where `Options.executor` says. With `.loop`, the fastest form, they must not
    /// block; only `reconnect` may take time. The order: `open`, messages, `error`, again for each
    /// connection; `close` exactly once, at the end. Handlers that run in different places are not
    /// in order with each other. Bytes are valid until the handler returns.
    public struct Handlers: Sendable {
        public var open: (@Sendable @isolated(any) (Opened) -> Void)?
        /// Receives one whole message; text is valid UTF-8.
        public var message: (@Sendable @isolated(any) (MessageKind, RawSpan) -> Void)?
        /// Receives messages in pieces as they arrive, for messages too large to hold in memory;
        /// replaces `message`. Text is cut between characters.
        public var piece:
            (
                @Sendable @isolated(any) (MessageKind, RawSpan, _ isFirst: Bool, _ isLast: Bool) ->
                    Void
            )?
        /// The connection failed or was lost. If the failure is fatal, `close` follows; otherwise
        /// another attempt does (`Options.reconnect`). If the peer closed in order and the
        /// connection reconnects, the error's code is `.closed`. A wait for a network is reported
        /// once, by the failure that led to it or by `.connect`; `retryIn` is then nil.
        public var error: (@Sendable @isolated(any) (ErrorEvent) -> Void)?
        /// With `Options.reconnect`: called at the end of each wait for an attempt. It may change
        /// the URL and the headers; false ends the connection. The attempt waits for it without a
        /// time limit, and everything else on the loop continues. It runs on the actor to which it
        /// is isolated, otherwise on the task executor or queue of `Options.executor`, or else
        /// where Swift runs asynchronous functions.
        public var reconnect: (@Sendable (_ attempt: Int, _ next: inout NextAttempt) async -> Bool)?
        public var close: (@Sendable @isolated(any) (Closing) -> Void)?
        /// The send buffer is empty again, after it exceeded `sendHighWaterBytes`.
        public var drained: (@Sendable @isolated(any) () -> Void)?
        /// A pong answered one of the connection's pings after this time.
        public var pong: (@Sendable @isolated(any) (Duration) -> Void)?

        /// Sets handlers. In main-actor code, for example in a view, closures that are passed here
        /// run on the main actor and use its properties directly, and those in an actor's code run
        /// on that actor. A closure that is assigned to a property later needs a word for that:
        /// `handlers.message = { @MainActor kind, bytes in … }`.
        public init(
            @_inheritActorContext open: (@Sendable @isolated(any) (Opened) -> Void)? = nil,
            @_inheritActorContext message: (
                @Sendable @isolated(any) (MessageKind, RawSpan) -> Void
            )? = nil,
            @_inheritActorContext piece: (
                @Sendable @isolated(any) (MessageKind, RawSpan, _ isFirst: Bool, _ isLast: Bool) ->
                    Void
            )? = nil,
            @_inheritActorContext error: (@Sendable @isolated(any) (ErrorEvent) -> Void)? = nil,
            @_inheritActorContext reconnect: (
                @Sendable (_ attempt: Int, _ next: inout NextAttempt) async -> Bool
            )? = nil,
            @_inheritActorContext close: (@Sendable @isolated(any) (Closing) -> Void)? = nil,
            @_inheritActorContext drained: (@Sendable @isolated(any) () -> Void)? = nil,
            @_inheritActorContext pong: (@Sendable @isolated(any) (Duration) -> Void)? = nil
        ) {
            self.open = open
            self.message = message
            self.piece = piece
            self.error = error
            self.reconnect = reconnect
            self.close = close
            self.drained = drained
            self.pong = pong
        }
    }
}

extension WebSocket.Handlers {
    /// Adds each handler after the connection's own.
    func add(
        to target: inout WebSocketHandlers, of connection: WebSocketConnection,
        _ queues: HandlerQueues, _ executor: HandlerExecutor
    ) {
        let runner = WebSocketRunner(connection, queues)
        if let delivery = delivery(to: runner, executor) { target.delivery = delivery }
        if let open = Handler(open) {
            target.open = { [own = target.open] opened in
                own?(opened)
                runner.run(on: open.isolation) { open.call(opened) }
            }
        }
        if let error = Handler(error) {
            target.failed = { [own = target.failed] failure in
                own?(failure)
                runner.run(on: error.isolation) { error.call(WebSocket.ErrorEvent(failure)) }
            }
        }
        if let reconnect {
            target.reconnect = { [unowned connection] (attempt) throws(RealtimeError) in
                // The function may take time, and the loop must not wait for it.
                try connection.deferAttempt()
                connection.prepare(attempt, on: executor, reconnect)
                return true
            }
        }
        if let close = Handler(close) {
            target.close = { [own = target.close] end in
                own?(end)
                runner.run(on: close.isolation, isOwed: true) { close.call(.init(end)) }
            }
        }
        if let drained = Handler(drained) {
            target.drained = { [own = target.drained] in
                own?()
                runner.run(on: drained.isolation, drained.call)
            }
        }
        if let pong = Handler(pong) {
            target.pong = { [own = target.pong] time in
                own?(time)
                runner.run(on: pong.isolation) { pong.call(time) }
            }
        }
    }

    /// Without a copy if the handler runs inside the loop's callback.
    private func delivery(
        to runner: WebSocketRunner, _ executor: HandlerExecutor
    ) -> WebSocketHandlers.Delivery? {
        let isInside = if case .loop = executor { true } else { false }
        if let piece = Handler(piece) {
            if isInside, piece.isolation == nil {
                return .inPieces { piece.call($0, $1.bytes, $2, $3) }
            }
            return .inPieces { kind, bytes, isFirst, isLast in
                let copy = Array(bytes)
                runner.run(on: piece.isolation, count: copy.count) {
                    piece.call(kind, copy.span.bytes, isFirst, isLast)
                }
            }
        }
        guard let message = Handler(message) else { return nil }
        if isInside, message.isolation == nil { return .each { message.call($0, $1.bytes) } }
        return .each { kind, bytes in
            let copy = Array(bytes)
            runner.run(on: message.isolation, count: copy.count) {
                message.call(kind, copy.span.bytes)
            }
        }
    }
}

/// Runs a connection's handlers in their places, and pauses it while too many calls wait.
private struct WebSocketRunner: Sendable {
    private unowned let connection: WebSocketConnection
    private let queues: HandlerQueues

    init(_ connection: WebSocketConnection, _ queues: HandlerQueues) {
        self.connection = connection
        self.queues = queues
    }

    func run(
        on isolation: (any Actor)?, count: @autoclosure () -> Int = 0, isOwed: Bool = false,
        _ body: @escaping @Sendable () -> Void
    ) {
        guard let full = queues.run(on: isolation, count: count(), isOwed: isOwed, body) else {
            return
        }
        connection.pauseForRoom()
        // If the queue was emptied meanwhile, there was room before there was a pause.
        if !full.isPaused { connection.resumeWithRoom() }
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
        _ attempt: Int, on executor: HandlerExecutor,
        _ handler:
            @escaping @Sendable (_ attempt: Int, _ next: inout WebSocket.NextAttempt) async -> Bool
    ) {
        executor.perform { [weak self] in
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
