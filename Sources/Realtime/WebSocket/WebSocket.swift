internal import Engine
import Synchronization
public import Wire

/// A WebSocket client connection: RFC 6455 with permessage-deflate.
///
///     let socket = try await WebSocket.connect("wss://example.org/feed")
///     try await socket.send("hello")
///     for try await message in socket.messages { print(message) }
///
/// Cancelling the task that connects, or the only one that iterates over `messages`, closes the
/// connection. Releasing the last reference drops it. All members may be used on any thread.
public final class WebSocket: Sendable {
    /// One whole message.
    public enum Message: Sendable, Hashable {
        case text(String)
        case binary([UInt8])

        /// Its size in bytes.
        public var count: Int {
            switch self {
            case .text(let text): text.utf8.count
            case .binary(let bytes): bytes.count
            }
        }
    }

    /// The state of a connection.
    public enum State: Sendable {
        case new, connecting, open, closing, closed
        /// The connection was lost, and the next attempt is not due yet.
        case waiting
    }

    /// The end of a connection.
    public struct Closing: Error, Hashable, Sendable, CustomStringConvertible {
        /// The peer's code; `.noStatus` if its close frame had none, `.abnormal` without a close
        /// frame.
        public let code: CloseCode
        public let reason: String
        /// Whether both close frames were exchanged.
        public let isClean: Bool

        public init(code: CloseCode, reason: String, isClean: Bool) {
            self.code = code
            self.reason = reason
            self.isClean = isClean
        }

        public var description: String {
            reason.isEmpty
                ? "closed with \(code)" : "closed with \(code): \(reason.withoutControls)"
        }
    }

    let connection: WebSocketConnection
    /// Retained, because a loop ends, with everything on it, when its last reference is released.
    private let loop: Loop
    // One of them, or none if handlers receive the messages.
    let mailbox: Mailbox<Message>?
    let pieceBox: Mailbox<Piece>?
    private let events: Events
    private let stateHub = StateHub<State>(.new, last: .closed)
    /// The connection's own handlers, which run before the user's.
    private let own: WebSocketHandlers
    /// Whether a task has called `receive` or `receivePiece`. It may do so again.
    private let isReceivedFrom = Atomic<Bool>(false)
    private let executor: HandlerExecutor
    /// Where the user's handlers run.
    private let queues: HandlerQueues

    /// Connects and returns when messages can be sent and received.
    /// - Parameter url: `ws://` or `wss://`; user and password become a basic Authorization header.
    /// - Parameter handlers: called in addition; its `message` must be nil, because messages go to
    ///   `messages` and `receive`.
    /// - Throws: `RealtimeError` for an invalid URL or option, and for every failure before open;
    ///   `CancellationError` if the task is cancelled, which ends the attempt.
    public static func connect(
        _ url: String, options: Options = Options(), on loop: Loop = .shared,
        handlers: Handlers = Handlers()
    ) async throws -> WebSocket {
        let socket = try WebSocket(url, options, loop)
        try socket.setHandlers(handlers)
        try socket.connection.start()
        // An error or cancellation here releases the last reference, which ends the attempt.
        try await socket.events.waitUntilOpen()
        return socket
    }

    private convenience init(_ url: String, _ options: Options, _ loop: Loop) throws {
        let (most, mostBytes) = (options.maxBufferedMessages, options.maxBufferedBytes)
        if options.deliversPieces {
            let box = Mailbox<Piece>(most, mostBytes, on: loop.engine)
            try self.init(url, options, loop, nil, box) { connection in
                .inPieces { [unowned connection] kind, bytes, isFirst, isLast in
                    let piece = Piece(
                        kind: kind, bytes: Array(bytes), isFirst: isFirst, isLast: isLast)
                    if box.put(piece) { connection.pause(until: box) }
                }
            }
        } else {
            let box = Mailbox<Message>(most, mostBytes, on: loop.engine)
            try self.init(url, options, loop, box, nil) { connection in
                .asMany { [unowned connection] base, messages, all in
                    let (count, isFull) = box.put(messages, at: base, all: all)
                    if isFull { connection.pause(until: box) }
                    return count
                }
            }
        }
    }

    /// Creates a connection that passes its messages to `handlers`: on the main actor, or where
    /// `Options.executor` says; with `.loop` without a copy or an allocation for each. `start`
    /// connects. `messages` and `receive` throw `.state`.
    /// - Throws: `RealtimeError` for an invalid URL or option.
    public convenience init(
        _ url: String, options: Options = Options(), on loop: Loop = .shared, handlers: Handlers
    ) throws {
        try self.init(url, options, loop, nil, nil) { _ in .nobody }
        try setHandlers(handlers)
    }

    private init(
        _ url: String, _ options: Options, _ loop: Loop, _ mailbox: Mailbox<Message>?,
        _ pieceBox: Mailbox<Piece>?,
        _ delivery: (WebSocketConnection) -> WebSocketHandlers.Delivery
    ) throws {
        connection = try WebSocketConnection(url: url, on: loop.engine)
        self.loop = loop
        self.mailbox = mailbox
        self.pieceBox = pieceBox
        let events = Events()
        self.events = events
        try connection.configure { (target) throws(RealtimeError) in
            try options.apply(to: &target)
        }
        try connection.setReachability(options.reachability?.engine)
        var own = WebSocketHandlers()
        own.delivery = delivery(connection)
        own.open = { events.open($0) }
        own.drained = { events.drained() }
        if let credentials = options.credentials {
            own.credentials = { [unowned connection] response in
                connection.fetch(response, credentials) { try $0.replace($1) }
                return .later
            }
        }
        own.failed = { failure in
            // For waiting tasks, an orderly close is not a failure.
            if failure.error.code != .closed { events.failed(failure.error) }
            guard !failure.isFatal else { return }
            events.lost(Closing(code: failure.code, reason: failure.reason, isClean: false))
        }
        own.close = { [unowned connection] end in
            events.closed(Closing(end), isAskedFor: connection.didClose) { how in
                mailbox?.finish(how)
                pieceBox?.finish(how)
            }
        }
        self.own = own
        executor = options.executor
        queues = HandlerQueues(
            on: executor, options.maxBufferedMessages, options.maxBufferedBytes, loop: loop.engine
        ) { [weak connection] in
            connection?.resumeWithRoom()
        }
        connection.observeState { [stateHub, unowned connection] in
            stateHub.update { State(connection.state) }
        }
    }

    deinit {
        queues.close()
        connection.abandon()
        stateHub.finish(.closed)
    }

    // MARK: Use

    /// The messages in order. Above `maxBufferedMessages` and `maxBufferedBytes` the peer is slowed
    /// down. Ends after close code 1000, 1001 or none (1005), and after `close()` with any code.
    /// Throws `RealtimeError` for a failure, and `Closing` for other codes of the peer and for a
    /// connection that the peer ended without one. If several tasks iterate, each message goes to
    /// one of them. Cancelling the only task that iterates closes the connection, unless `receive`
    /// has been called.
    public var messages: Messages { Messages(socket: self) }

    /// Waits for the next message; nil at the end. Ends as `messages` does. Cancelling it leaves
    /// the connection open, and loses no message.
    /// - Parameter timeout: how long to wait for a message; nil for no limit.
    /// - Throws: as `messages`; `RealtimeError`: `.timeout`, after which the connection continues;
    ///   `.state` if messages go to handlers or to `pieces`.
    public func receive(timeout: Duration? = nil) async throws -> Message? {
        isReceivedFrom.store(true, ordering: .relaxed)
        if let message = takeNow(mailbox) { return message }
        return try await next(of: mailbox, nil, timeout)
    }

    /// The messages in pieces as they arrive, with `Options.deliversPieces`. Ends as `messages`
    /// does.
    public var pieces: Pieces { Pieces(socket: self) }

    /// Waits for the next piece of a message; nil at the end. Ends as `pieces` does. Cancelling it
    /// leaves the connection open, and loses no piece.
    /// - Parameter timeout: how long to wait for a piece; nil for no limit.
    /// - Throws: as `pieces`; `RealtimeError`: `.timeout`, after which the connection continues;
    ///   `.state` if messages go to handlers or to `messages`.
    public func receivePiece(timeout: Duration? = nil) async throws -> Piece? {
        isReceivedFrom.store(true, ordering: .relaxed)
        if let piece = takeNow(pieceBox) { return piece }
        return try await next(of: pieceBox, nil, timeout)
    }

    @inline(__always)
    func takeNow<Element>(_ box: Mailbox<Element>?) -> Element? {
        box?.takeNow { connection.resumeWithRoom() }
    }

    /// - Parameter reader: of the iterator that asks, if one does.
    func next<Element>(
        of box: Mailbox<Element>?, _ reader: MailboxReader<Element>?, _ timeout: Duration? = nil
    ) async throws -> Element? {
        guard let box else { throw noBox() }
        do {
            return try await box.next(timeout: timeout) { connection.resumeWithRoom() }
        } catch let error as CancellationError {
            if reader?.leave() ?? false, !isReceivedFrom.load(ordering: .relaxed) {
                try? connection.close(code: CloseCode.goingAway.rawValue, reason: "")
            }
            throw error
        }
    }

    /// Why nothing would ever come.
    private func noBox() -> RealtimeError {
        let reason =
            if mailbox != nil {
                "whole messages are received, by messages and receive; set deliversPieces"
            } else if pieceBox != nil {
                "messages are received in pieces, by pieces and receivePiece (deliversPieces)"
            } else {
                "handlers receive the messages of this connection; create it by connect"
            }
        return RealtimeError(.state, reason)
    }

    /// Sends a text message. Waits while more than `sendHighWaterBytes` are unsent.
    /// - Throws: `RealtimeError`: `.closed` once closing has begun, `.bufferFull` above the limit;
    ///   `CancellationError` if the task is cancelled while it waits; the message stays queued.
    public func send(
        _ text: String, compression: Compression = .automatic
    ) async throws {
        try connection.send(.text, utf8: text, compression)
        try await waitUntilDrained()
    }

    /// Sends a binary message; otherwise like `send` for text.
    public func send(
        _ bytes: [UInt8], compression: Compression = .automatic
    ) async throws {
        try connection.send(.binary, bytes.span.bytes, compression)
        try await waitUntilDrained()
    }

    func waitUntilDrained() async throws {
        guard connection.bufferedBytes > connection.sendHighWaterBytes else { return }
        try await events.untilDrained { [connection] in
            connection.bufferedBytes > connection.sendHighWaterBytes
        } owe: {
            connection.oweDrained()
        }
    }

    /// Sends a ping and waits for its pong.
    /// - Returns: the round-trip time.
    /// - Throws: `RealtimeError`, `Closing` if the connection ends first, or `CancellationError`.
    public func ping() async throws -> Duration {
        try await events.pong { answered in
            try connection.ping(UnsafeRawBufferPointer(start: nil, count: 0), answered: answered)
        }
    }

    /// Closes in order and waits for the end: sends what is queued and a close frame, then waits up
    /// to `closeTimeout` for the peer's close frame.
    /// - Throws: `RealtimeError` for a code or reason that must not be sent; `CancellationError` if
    ///   the task is cancelled while it waits; closing continues.
    @discardableResult
    public func close(_ code: CloseCode = .normal, reason: String = "") async throws -> Closing {
        try beginClose(code, reason: reason)
        return try await events.untilClosed()
    }

    /// Waits for the end of the connection, whatever its cause.
    /// - Throws: only `CancellationError`.
    public func waitUntilClosed() async throws -> Closing { try await events.untilClosed() }

    /// Replaces the handlers: at any time, on any thread, also inside a handler. A change between
    /// pieces and whole messages takes effect with the next message. Calls that wait for their
    /// executor still go to the old handlers.
    /// - Throws: `RealtimeError(.invalidArgument)` for a `message` handler if messages go to
    ///   `messages` and `receive`.
    public func setHandlers(_ handlers: Handlers) throws(RealtimeError) {
        guard handlers.message == nil || !own.delivery.isSomebody else {
            throw RealtimeError(
                .invalidArgument, "a message handler goes with init and start, not with connect")
        }
        try connection.setHandlers { [own, connection, queues, executor] target in
            target = own
            handlers.add(to: &target, of: connection, queues, executor)
        }
    }

    // MARK: For handlers, where nothing may be awaited

    /// Starts a connection that was created with handlers.
    /// - Throws: `RealtimeError(.state)` if it was started before.
    public func start() throws(RealtimeError) { try connection.start() }

    /// Queues a text message without waiting, even above the high-water mark, up to
    /// `sendLimitBytes`.
    public func enqueue(
        _ text: String, compression: Compression = .automatic
    ) throws(RealtimeError) {
        try connection.send(.text, utf8: text, compression)
    }

    /// Queues a binary message without waiting; otherwise like `enqueue` for text. The bytes are
    /// copied.
    public func enqueue(
        _ bytes: RawSpan, compression: Compression = .automatic
    ) throws(RealtimeError) {
        try connection.send(.binary, bytes, compression)
    }

    /// Starts closing and does not wait for the end.
    public func beginClose(
        _ code: CloseCode = .normal, reason: String = ""
    ) throws(RealtimeError) {
        try connection.close(code: code.rawValue, reason: reason)
    }

    /// Reports that the network is back, whatever `Options.reachability` says: an attempt that
    /// waits, for its time or for a network, is made at once. An open connection is checked by a
    /// ping.
    public func retryNow() throws(RealtimeError) { try connection.retryNow() }

    /// Stops receiving; TCP slows the peer down. Called on the loop's thread, no message comes
    /// after this returns.
    public func pause() throws(RealtimeError) { try connection.pause() }

    /// Continues receiving.
    public func resume() throws(RealtimeError) { try connection.resume() }

    // MARK: State

    public var state: State { State(connection.state) }

    /// The present state and each change of it; `closed` is the last one.
    public var states: StateSequence<State> { StateSequence(hub: stateHub) }

    /// The response that last opened the connection, and the connection itself; nil before.
    public var opened: Opened? { events.opened }

    /// How the connection ended; nil before.
    public var closing: Closing? { events.closing }

    /// Bytes that are queued and that the kernel has not accepted yet.
    public var bufferedBytes: Int { connection.bufferedBytes }

    /// The round-trip time of the last answered ping; nil before the first pong.
    public var roundTrip: Duration? {
        let microseconds = connection.roundTripMicroseconds
        return microseconds < 0 ? nil : .microseconds(microseconds)
    }
}

extension WebSocket.State {
    fileprivate init(_ state: WebSocketState) {
        self =
            switch state {
            case .new: .new
            case .connecting: .connecting
            case .open: .open
            case .closing: .closing
            case .closed: .closed
            case .waiting: .waiting
            }
    }
}

extension WebSocketConnection {
    /// Stops receiving until the mailbox, which is full, has room again.
    fileprivate func pause<Element>(until box: Mailbox<Element>) {
        pauseForRoom()
        // If the box was emptied meanwhile, `resumeWithRoom` was called before there was a pause.
        if !box.isPaused { resumeWithRoom() }
    }
}
