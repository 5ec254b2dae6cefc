internal import Engine
internal import Session
import Synchronization
public import Wire

/// The messages of a path, each once and in order, whatever happens to the network: by WebSocket,
/// server-sent events or long polls, whichever works. Sends arrive in order, or fail.
///
///     let spreadbot = Spreadbot(config: ["baseURL": "https://example.org"])
///     spreadbot.onMessage { id, event, data in print(id, event, data.count) }
///     spreadbot.onError { error in print(error) }
///     spreadbot.establishConnection(path: "news")
///
/// or with await:
///
///     for try await message in try spreadbot.messages(path: "news") { print(message.text) }
///
/// Handlers run one at a time, on the main actor unless `Configuration.executor` names another
/// place. A closure that is isolated to an actor runs on that actor: handlers in main-actor code
/// can use its properties directly. Releasing the last reference drops the connection. All members
/// may be used on any thread.
public final class Spreadbot: Sendable {
    public struct Message: Sendable, Hashable {
        /// The cursor after this message; "" before the first id.
        public var id: String
        /// The event's type; the path if the server sent none.
        public var event: String
        public var data: [UInt8]
        /// Whether this message has an id of its own.
        public var hadID: Bool

        /// The data as UTF-8, with U+FFFD in place of ill-formed parts.
        public var text: String { String(decoding: data, as: UTF8.self) }
    }

    public enum State: Sendable {
        case connecting
        case connected
        case disconnected
    }

    /// What a connection does while it is connecting.
    public enum Phase: Sendable {
        /// The connection is not connecting.
        case none
        case dialing
        /// The delay before the next attempt is running.
        case backoff
        /// There is no network.
        case offline
        /// Tokens are being refreshed.
        case auth
    }

    /// A transport that failed or was lost, or refused tokens.
    public struct ErrorEvent: Error, Sendable, CustomStringConvertible {
        public let error: RealtimeError
        /// The transport that failed; nil if none did.
        public let transport: Transport?
        /// The status of the response; 0 without one.
        public let httpStatus: Int
        /// Whether the connection is disconnected now.
        public let isFatal: Bool
        /// The time until the next attempt, by this transport or another one; nil if there is none,
        /// or if it waits for a network or for tokens.
        public let retryIn: Duration?
        /// The number of attempts in a row on this transport; 0 if the failure does not count.
        public let attempt: Int

        public var description: String { error.description }

        init(_ failure: SpreadbotSession.Failure) {
            error = failure.error
            transport = failure.transport.map { Transport($0) }
            httpStatus = failure.status
            isFatal = failure.isFatal
            retryIn = failure.retryIn
            attempt = failure.attempt
        }

        /// The error of a call.
        init(_ error: RealtimeError, isFatal: Bool) {
            self.error = error
            self.isFatal = isFatal
            (transport, httpStatus, retryIn, attempt) = (nil, 0, nil, 0)
        }
    }

    /// Receives the result of a send: an error if the server does not have it, or may not have it.
    public typealias Completion = @Sendable @isolated(any) (Result<Void, RealtimeError>) -> Void

    let connection: SpreadbotConnection
    /// Retained, because a loop ends, with everything on it, when its last reference is released.
    let loop: Loop
    let dispatcher: SpreadbotDispatcher
    let executor: HandlerExecutor
    private let stateHub = StateHub<State>(.disconnected)
    private let maxBufferedMessages: Int
    private let maxBufferedBytes: Int
    /// Why the configuration cannot be used; nil if it can.
    public let configurationError: RealtimeError?

    /// - Throws: `RealtimeError` for an invalid URL or option.
    public convenience init(config: Configuration, on loop: Loop = .shared) throws {
        self.init(try config.connection(on: loop), config, nil, on: loop)
    }

    /// Creates a connection from a dictionary; see `Configuration.init(_:)` for its keys. If it
    /// cannot be used, `configurationError` says why, and each use of the connection reports that.
    public convenience init(config: [String: any Sendable], on loop: Loop = .shared) {
        do throws(RealtimeError) {
            let config = try Configuration(config)
            self.init(try config.connection(on: loop), config, nil, on: loop)
        } catch {
            let config = (try? Configuration(config)) ?? Configuration(baseURL: "")
            self.init(SpreadbotConnection(unusableOn: loop.engine), config, error, on: loop)
        }
    }

    private init(
        _ connection: SpreadbotConnection, _ config: Configuration, _ error: RealtimeError?,
        on loop: Loop
    ) {
        self.connection = connection
        self.loop = loop
        dispatcher = SpreadbotDispatcher(connection, config)
        executor = config.executor
        maxBufferedMessages = config.maxBufferedMessages
        maxBufferedBytes = config.maxBufferedBytes
        configurationError = error
        dispatcher.addHandlers()
        connection.observeState { [stateHub, unowned connection] in
            stateHub.update { State(connection.state) }
        }
    }

    deinit { close() }

    // MARK: Handlers; the last one set counts

    /// Called when the connection is open, the first time and after each reconnect. `resumed` means
    /// that the transport continues after the last id, so that no messages are missing.
    public func onOpen(
        @_inheritActorContext _ handler: (
            @Sendable @isolated(any) (_ transport: Transport, _ resumed: Bool, Opened) -> Void
        )?
    ) {
        let handler = Handler(handler)
        dispatcher.state.withLock { $0.open = handler }
    }

    /// Sets a handler without arguments for the open connection.
    public func onOpen(
        @_inheritActorContext _ handler: @escaping @Sendable @isolated(any) () -> Void
    ) {
        let handler = Handler(handler)
        dispatcher.state.withLock {
            $0.open = Handler(handler.isolation) { _, _, _ in handler.call() }
        }
    }

    /// Called when a transport fails or tokens are refused, and with errors of calls without
    /// `throws`. A wait for a network is reported once, by the failure that led to it or by
    /// `.connect`; `retryIn` is then nil. An error of a call that occurs before the handler is set
    /// is kept for it.
    public func onError(
        @_inheritActorContext _ handler: (@Sendable @isolated(any) (ErrorEvent) -> Void)?
    ) {
        dispatcher.setErrorHandler(Handler(handler))
    }

    public func onMessage(
        @_inheritActorContext _ handler: (
            @Sendable @isolated(any) (_ id: String, _ event: String, _ data: [UInt8]) -> Void
        )?
    ) {
        onMessage(by: Handler(handler))
    }

    package func onMessage(by handler: Handler<@Sendable (String, String, [UInt8]) -> Void>?) {
        set { [dispatcher] in
            $0.message = handler.map { handler in
                { message in
                    let message = Message(message)
                    dispatcher.run(on: handler.isolation, count: message.count) {
                        handler.call(message.id, message.event, message.data)
                    }
                }
            }
        }
        // An earlier iteration may have paused the connection.
        try? connection.resume()
    }

    /// Called when the transport in use changes; nil when the connection has ended.
    public func onTransport(
        @_inheritActorContext _ handler: (@Sendable @isolated(any) (Transport?) -> Void)?
    ) {
        let handler = Handler(handler)
        set { [dispatcher] in
            $0.transport = handler.map { handler in
                { transport in
                    let transport = transport.map { Transport($0) }
                    dispatcher.run(on: handler.isolation) { handler.call(transport) }
                }
            }
        }
    }

    /// Called with refreshed tokens. Store them for the next run.
    public func onTokens(
        @_inheritActorContext _ handler: (
            @Sendable @isolated(any) (_ accessToken: String, _ refreshToken: String) -> Void
        )?
    ) {
        let handler = Handler(handler)
        set { [dispatcher] in
            $0.tokens = handler.map { handler in
                { access, refresh in
                    dispatcher.run(on: handler.isolation) { handler.call(access, refresh) }
                }
            }
        }
    }

    /// Called when the connection has ended: nil after `closeConnection`, otherwise the fatal
    /// error.
    public func onDisconnected(
        @_inheritActorContext _ handler: (@Sendable @isolated(any) (RealtimeError?) -> Void)?
    ) {
        let handler = Handler(handler)
        dispatcher.state.withLock { $0.disconnected = handler }
    }

    private func set(_ change: (inout SpreadbotHandlers) -> Void) {
        // Fails if the loop has ended; then no handler is called anyway.
        try? connection.setHandlers(change)
    }

    // MARK: The connection

    /// Connects to a path, replacing the current connection. The cursor and the tokens are kept,
    /// but a different path starts without a cursor. A path that does not give a valid URL is
    /// reported by `onError`; if nothing is connected, the error is fatal.
    public func establishConnection(path: String) {
        do throws(RealtimeError) {
            try checkUsable()
            try connection.establish(path: path)
        } catch {
            dispatcher.report(error)
        }
    }

    func checkUsable() throws(RealtimeError) {
        if let configurationError { throw configurationError }
    }

    /// Connects to a path and waits until it is connected.
    /// - Throws: `RealtimeError`: the fatal error, or `.closed` if it was closed meanwhile;
    ///   `CancellationError`, which does not end the connection.
    public func connect(path: String) async throws {
        try checkUsable()
        let ticket = dispatcher.newTicket()
        try await withTaskCancellationHandler {
            try Task.checkCancellation()
            try await withCheckedThrowingContinuation { continuation in
                do throws(RealtimeError) {
                    try connection.establish(path: path) { epoch in
                        dispatcher.wait(ticket, for: epoch, continuation)
                    }
                } catch {
                    // The path was refused before an attempt began.
                    continuation.resume(throwing: error)
                }
                // The task may have been cancelled before it waited.
                if Task.isCancelled { dispatcher.stopWaiting(ticket, CancellationError()) }
            }
        } onCancel: {
            dispatcher.stopWaiting(ticket, CancellationError())
        }
    }

    /// Connects to a path and returns its messages, in order. Above `maxBufferedMessages` and
    /// `maxBufferedBytes` the server is slowed down. Ends after `closeConnection`; throws
    /// `RealtimeError` for a fatal error. It replaces `onMessage`. If several tasks iterate, each
    /// message goes to one of them. Cancelling the only task that iterates ends the connection.
    public func messages(path: String) throws(RealtimeError) -> Messages {
        try checkUsable()
        let mailbox = Mailbox<Message>(
            maxBufferedMessages, maxBufferedBytes, on: loop.engine)
        var old: Mailbox<Message>?
        try connection.establish(path: path) { epoch in
            old = dispatcher.state.withLock { state in
                defer { (state.mailbox, state.mailboxEpoch) = (mailbox, epoch) }
                return state.mailbox
            }
            set { [unowned connection] in
                $0.message = { message in
                    guard mailbox.put(Message(message)) else { return }
                    try? connection.pause()
                    if !mailbox.isPaused { try? connection.resume() }
                }
            }
        }
        old?.finish(.normal)
        // The previous mailbox may have been full.
        try? connection.resume()
        return Messages(spreadbot: self, mailbox: mailbox)
    }

    /// The messages of `messages(path:)`.
    public struct Messages: AsyncSequence, AsyncIteratorProtocol, Sendable {
        public typealias Element = Message
        let spreadbot: Spreadbot
        let mailbox: Mailbox<Message>
        /// nil unless it is an iterator: a sequence alone takes no messages.
        private var reader: MailboxReader<Message>?

        init(spreadbot: Spreadbot, mailbox: Mailbox<Message>) {
            self.spreadbot = spreadbot
            self.mailbox = mailbox
        }

        public func makeAsyncIterator() -> Messages {
            var iterator = Messages(spreadbot: spreadbot, mailbox: mailbox)
            _ = iterator.begun()
            return iterator
        }

        /// Waits for the next message, on the caller's actor; nil at the end.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws -> Message? { try await spreadbot.next(begun()) }

        public mutating func next() async throws -> Message? { try await spreadbot.next(begun()) }

        private mutating func begun() -> MailboxReader<Message> {
            if let reader { return reader }
            let reader = MailboxReader(mailbox)
            self.reader = reader
            return reader
        }
    }

    private func next(_ reader: MailboxReader<Message>) async throws -> Message? {
        let mailbox = reader.mailbox
        if let message = mailbox.takeNow(onResume: { try? connection.resume() }) { return message }
        do {
            return try await mailbox.next { try? connection.resume() }
        } catch let error as CancellationError {
            // Another iteration may have replaced this one.
            let isCurrent = dispatcher.state.withLock { $0.mailbox === mailbox }
            if reader.leave(), isCurrent { try? connection.disconnect() }
            throw error
        }
    }

    /// Ends the connection. A WebSocket sends what is queued, then closes with the closing
    /// handshake. Waiting sends end with `.closed`; those in an outbox wait for the next
    /// connection. The connection may be established again.
    public func closeConnection() { try? connection.disconnect() }

    /// Reports that the network is back, whatever `Configuration.reachability` says: an attempt
    /// that waits, for its time or for a network, is made at once. An open WebSocket is checked by
    /// a ping; with another transport, the WebSocket is tried again.
    public func retryNow() { try? connection.retryNow() }

    /// Drops the connection for good. Waiting sends end with `.closed`; those in an outbox wait for
    /// the next connection with this outbox. All handlers but the completions of sends are
    /// released, and with them what they capture, such as this object. Also called when the last
    /// reference is released.
    public func close() {
        connection.close()
        dispatcher.close(loop)
        stateHub.finish(.disconnected)
    }

    /// Ends the connection and waits until it is closed.
    public func disconnect() async {
        await withCheckedContinuation { continuation in
            do {
                try connection.disconnect { continuation.resume() }
            } catch {
                continuation.resume()
            }
        }
    }

    // MARK: State

    public var state: State { State(connection.state) }

    /// The present state and each change of it; the `disconnected` of `close` is the last one.
    public var states: StateSequence<State> { StateSequence(hub: stateHub) }

    public var phase: Phase {
        switch connection.phase {
        case .none: .none
        case .dialing: .dialing
        case .backoff: .backoff
        case .offline: .offline
        case .auth: .auth
        }
    }

    /// The transport in use or, while connecting, the one tried last.
    public var transport: Transport? { connection.transport.map { Transport($0) } }

    /// The id of the last message that had one, after which the next transport continues; "" for
    /// none.
    public var lastEventID: String { connection.lastEventID }

    /// The current tokens, which a refresh may have changed.
    public var accessToken: String { connection.tokens.access }
    public var refreshToken: String { connection.tokens.refresh }

    /// Replaces the tokens, from the next attempt and request on. Whatever waits for a refresh
    /// continues with them.
    /// - Throws: `RealtimeError(.invalidHeader)` for text that cannot be in a header.
    public func setTokens(accessToken: String, refreshToken: String) throws {
        try connection.setTokens(access: accessToken, refresh: refreshToken)
    }
}

extension Spreadbot.Message: MailboxElement {
    var count: Int { id.utf8.count + event.utf8.count + data.count }

    init(_ message: SpreadbotMessage) {
        id = String(decoding: message.id, as: UTF8.self)
        event = String(decoding: message.event, as: UTF8.self)
        data = Array(message.data)
        hadID = message.hadID
    }
}
