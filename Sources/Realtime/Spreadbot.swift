internal import Engine
internal import Session
import Synchronization
public import Wire

/// Messages of a path, each once and in order, whatever happens to the network: by WebSocket, by
/// Server-Sent Events or by long polls, whichever works. What is sent arrives in order, or the send
/// fails.
///
///     let spreadbot = try Spreadbot(config: ["baseURL": "https://example.org"])
///     spreadbot.onMessage { id, event, data in print(id, event, data.count) }
///     try spreadbot.establishConnection(path: "news")
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
        /// How far the messages have come; "" before there was an id.
        public var id: String
        /// What the server named it, or the path.
        public var event: String
        public var data: [UInt8]
        /// Whether this message has an id of its own.
        public var hadID: Bool

        /// The data as UTF-8, what is ill-formed replaced by U+FFFD.
        public var text: String { String(decoding: data, as: UTF8.self) }
    }

    public enum State: Sendable {
        case connecting
        case connected
        case disconnected
    }

    /// What is done while it is connecting.
    public enum Phase: Sendable {
        /// It is not connecting.
        case none
        case dialing
        /// The delay before the next attempt.
        case backoff
        /// There is no network.
        case offline
        /// Tokens are being refreshed.
        case auth
    }

    /// A transport that failed or was lost, or tokens that were refused.
    public struct ErrorEvent: Error, Sendable, CustomStringConvertible {
        public let error: RealtimeError
        /// nil when it was none.
        public let transport: Transport?
        /// The answer's, 0 without one.
        public let httpStatus: Int
        /// Whether it is disconnected now.
        public let isFatal: Bool
        /// The time until the next attempt, by this transport or another; nil when there is none,
        /// or it waits for a network or for tokens.
        public let retryIn: Duration?
        /// Its number in a row by this transport, 0 when it is not counted.
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
    }

    /// How a send ended: with an error when the server does not have it, or may not.
    public typealias Completion = @Sendable @isolated(any) (Result<Void, RealtimeError>) -> Void

    let connection: SpreadbotConnection
    /// Held, since the last reference to a loop ends it and all that is on it.
    let loop: Loop
    fileprivate let desk: SpreadbotDesk
    let executor: Executor
    private let maxBufferedMessages: Int
    private let maxBufferedBytes: Int

    /// - Throws: `RealtimeError` for a bad URL or option.
    public init(config: Configuration, on loop: Loop = .shared) throws {
        connection = try config.connection(on: loop)
        self.loop = loop
        desk = SpreadbotDesk(connection, config)
        executor = config.executor
        maxBufferedMessages = config.maxBufferedMessages
        maxBufferedBytes = config.maxBufferedBytes
        try desk.addHandlers()
    }

    /// The same from a dictionary; see `Configuration.init(_:)` for its names.
    public convenience init(
        config: [String: any Sendable], on loop: Loop = .shared
    ) throws {
        try self.init(config: Configuration(config), on: loop)
    }

    deinit {
        connection.close()
        desk.close(loop)
    }

    // MARK: Handlers; the last one set counts

    /// It is connected: for the first time, or again. `resumed` says that the transport began after
    /// the last id, so that nothing is missing.
    public func onOpen(
        @_inheritActorContext _ handler: (
            @Sendable @isolated(any) (_ transport: Transport, _ resumed: Bool, Opened) -> Void
        )?
    ) {
        let handler = Handler(handler)
        desk.world.withLock { $0.open = handler }
    }

    /// The same, for a handler without arguments.
    public func onOpen(
        @_inheritActorContext _ handler: @escaping @Sendable @isolated(any) () -> Void
    ) {
        let handler = Handler(handler)
        desk.world.withLock {
            $0.open = Handler(handler.isolation) { _, _, _ in handler.call() }
        }
    }

    public func onError(
        @_inheritActorContext _ handler: (@Sendable @isolated(any) (ErrorEvent) -> Void)?
    ) {
        let handler = Handler(handler)
        desk.world.withLock { $0.error = handler }
    }

    public func onMessage(
        @_inheritActorContext _ handler: (
            @Sendable @isolated(any) (_ id: String, _ event: String, _ data: [UInt8]) -> Void
        )?
    ) {
        onMessage(by: Handler(handler))
    }

    package func onMessage(by handler: Handler<@Sendable (String, String, [UInt8]) -> Void>?) {
        set { [desk] in
            $0.message = handler.map { handler in
                { message in
                    let message = Message(message)
                    desk.run(on: handler.isolation, count: message.count) {
                        handler.call(message.id, message.event, message.data)
                    }
                }
            }
        }
        // An iteration before may have paused it.
        try? connection.resume()
    }

    /// Another transport is in use; nil when it is over.
    public func onTransport(
        @_inheritActorContext _ handler: (@Sendable @isolated(any) (Transport?) -> Void)?
    ) {
        let handler = Handler(handler)
        set { [desk] in
            $0.transport = handler.map { handler in
                { transport in
                    let transport = transport.map { Transport($0) }
                    desk.run(on: handler.isolation) { handler.call(transport) }
                }
            }
        }
    }

    /// The tokens were refreshed: keep them for the next run.
    public func onTokens(
        @_inheritActorContext _ handler: (
            @Sendable @isolated(any) (_ accessToken: String, _ refreshToken: String) -> Void
        )?
    ) {
        let handler = Handler(handler)
        set { [desk] in
            $0.tokens = handler.map { handler in
                { access, refresh in
                    desk.run(on: handler.isolation) { handler.call(access, refresh) }
                }
            }
        }
    }

    /// It is over: nil after `closeConnection`, else the fatal error.
    public func onDisconnected(
        @_inheritActorContext _ handler: (@Sendable @isolated(any) (RealtimeError?) -> Void)?
    ) {
        let handler = Handler(handler)
        desk.world.withLock { $0.disconnected = handler }
    }

    private func set(_ change: (inout SpreadbotHandlers) -> Void) {
        // Fails when the loop is over: then nothing is called any more.
        try? connection.setHandlers(change)
    }

    // MARK: The connection

    /// Begins to connect to a path, in place of what is there; cursor and tokens are kept, another
    /// path begins without a cursor.
    /// - Throws: `RealtimeError` for a path that makes no URL.
    public func establishConnection(path: String) throws(RealtimeError) {
        try connection.establish(path: path)
    }

    /// Establishes a connection, and waits until it is connected.
    /// - Throws: `RealtimeError`: what was fatal, or `.closed` when it was closed meanwhile;
    ///   `CancellationError`, which does not end the connection.
    public func connect(path: String) async throws {
        let ticket = desk.newTicket()
        try await withTaskCancellationHandler {
            try Task.checkCancellation()
            try await withCheckedThrowingContinuation { continuation in
                do throws(RealtimeError) {
                    try connection.establish(path: path) { epoch in
                        desk.wait(ticket, for: epoch, continuation)
                    }
                } catch {
                    // It was refused before it had a number.
                    continuation.resume(throwing: error)
                }
                // It may have been cancelled before it waited.
                if Task.isCancelled { desk.stopWaiting(ticket, CancellationError()) }
            }
        } onCancel: {
            desk.stopWaiting(ticket, CancellationError())
        }
    }

    /// Connects to a path and gives its messages, in order; bounded by `maxBufferedMessages` and
    /// `maxBufferedBytes`, above which the server is slowed down. Ends after `closeConnection`,
    /// throws `RealtimeError` for what is fatal. Takes the place of `onMessage`; cancelling the
    /// task that iterates ends the connection.
    public func messages(path: String) throws(RealtimeError) -> Messages {
        let mailbox = Mailbox<Message>(maxBufferedMessages, maxBufferedBytes)
        var old: Mailbox<Message>?
        try connection.establish(path: path) { epoch in
            old = desk.world.withLock { world in
                defer { (world.mailbox, world.mailboxEpoch) = (mailbox, epoch) }
                return world.mailbox
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
        // The one before may have been full.
        try? connection.resume()
        return Messages(spreadbot: self, mailbox: mailbox)
    }

    /// What `messages(path:)` gives.
    public struct Messages: AsyncSequence, AsyncIteratorProtocol, Sendable {
        public typealias Element = Message
        let spreadbot: Spreadbot
        let mailbox: Mailbox<Message>

        public func makeAsyncIterator() -> Messages { self }

        public mutating func next() async throws -> Message? {
            let connection = spreadbot.connection
            do {
                return try await mailbox.next { try? connection.resume() }
            } catch let error as CancellationError {
                // Another iteration may have taken the connection over.
                let isCurrent = spreadbot.desk.world.withLock { $0.mailbox === mailbox }
                if isCurrent { try? connection.disconnect() }
                throw error
            }
        }
    }

    /// Ends the connection: a WebSocket by its closing handshake, behind what was sent. Sends that
    /// wait end with `.closed`, those of an outbox wait for the next establishment. It may be
    /// established again.
    public func closeConnection() { try? connection.disconnect() }

    /// Closes the connection, and waits until it is closed.
    public func disconnect() async {
        await withCheckedContinuation { continuation in
            do {
                try connection.disconnect { continuation.resume() }
            } catch {
                continuation.resume()
            }
        }
    }

    // MARK: Sending

    /// Sends a text, behind those before it: by the WebSocket, or by a POST where there is none, or
    /// none yet; without a network it waits.
    /// - Parameter completion: told once how it ended; never inside this call.
    /// - Throws: `RealtimeError(.closed)`.
    public func sendMessageString(
        message: String, @_inheritActorContext completion: Completion? = nil
    ) throws(RealtimeError) {
        try send(.text, Array(message.utf8), completion)
    }

    /// The same, and waits until the server has it.
    /// - Throws: `RealtimeError`: `.connectionLost` when it may have arrived, or not;
    ///   `CancellationError` when the task was cancelled before it began.
    public func sendMessageString(message: String) async throws {
        try await send(.text, Array(message.utf8))
    }

    /// Sends bytes; otherwise as `sendMessageString`.
    public func sendMessageBinary(
        message: [UInt8], @_inheritActorContext completion: Completion? = nil
    ) throws(RealtimeError) {
        try send(.binary, message, completion)
    }

    public func sendMessageBinary(message: [UInt8]) async throws {
        try await send(.binary, message)
    }

    private func send(
        _ kind: MessageKind, _ bytes: [UInt8], _ completion: Completion?
    ) throws(RealtimeError) {
        let done = Handler(completion).map { completion in
            { [desk] (sent: SpreadbotSent) in
                let result = sent.outcome
                desk.run(on: completion.isolation, isOwed: true) { completion.call(result) }
            }
        }
        do {
            try bytes.withUnsafeBytes { try connection.send(kind, $0, done: done) }
        } catch {
            throw error as? RealtimeError ?? RealtimeError(.system, "\(error)")
        }
    }

    private func send(_ kind: MessageKind, _ bytes: [UInt8]) async throws {
        try await connection.sending { assigned, done in
            try bytes.withUnsafeBytes {
                try connection.send(kind, $0, assigned: assigned, done: done)
            }
        }.outcome.get()
    }

    // MARK: State

    public var state: State {
        switch connection.state {
        case .connecting: .connecting
        case .connected: .connected
        case .disconnected: .disconnected
        }
    }

    public var phase: Phase {
        switch connection.phase {
        case .none: .none
        case .dialing: .dialing
        case .backoff: .backoff
        case .offline: .offline
        case .auth: .auth
        }
    }

    /// The transport in use, or tried last while it is connecting.
    public var transport: Transport? { connection.transport.map { Transport($0) } }

    /// Of the last message that had one, after which the next transport begins; "" for none.
    public var lastEventID: String { connection.lastEventID }

    /// Those in use, which a refresh may have changed.
    public var accessToken: String { connection.tokens.access }
    public var refreshToken: String { connection.tokens.refresh }

    /// Sets tokens in the place of those there are, from the next attempt and request on; what
    /// waits for a refresh goes on with them.
    /// - Throws: `RealtimeError(.invalidHeader)` for what does not fit a header.
    public func setTokens(accessToken: String, refreshToken: String) throws {
        try connection.setTokens(access: accessToken, refresh: refreshToken)
    }
}

extension Spreadbot.Message: MailboxElement {
    var count: Int { id.utf8.count + event.utf8.count + data.count }

    static var taken: Self { Self(id: "", event: "", data: [], hadID: false) }

    init(_ message: SpreadbotMessage) {
        id = String(decoding: message.id, as: UTF8.self)
        event = String(decoding: message.event, as: UTF8.self)
        data = Array(message.data)
        hadID = message.hadID
    }
}
