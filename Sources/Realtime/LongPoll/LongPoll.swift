internal import Engine
internal import Session
import Synchronization
public import Wire

/// Messages by requests that the server answers when there is something new.
///
///     let poll = try LongPoll("https://example.org/messages")
///     for try await message in poll { print(message.id, message.text) }
///
/// or with a handler:
///
///     poll.onMessage { print($0.text) }
///
/// It starts polling when it is created, or with `start: false` by `start` or the first iteration.
/// Messages wait for the handler or the iteration; polling
/// continues while no more than `maxBufferedMessages` wait. If a failure interrupts the delivery of
/// a message, the message comes again. If the server drops messages between two polls, the library
/// cannot notice that they are missing.
///
/// Handlers run one at a time on the main actor, or where `Options.executor` says; one that is
/// isolated to an actor, for example in main-actor code, runs there. Cancelling the only task that
/// iterates closes the long poll, and so does releasing the last reference. All members may be used
/// on any thread.
public final class LongPoll: Sendable, AsyncSequence {
    public struct Message: Sendable, Hashable {
        /// The cursor after this message; "" before the server sent one. Pass it to
        /// `Options.lastEventID`. Nchan also accepts it on its other transports.
        public var id: String
        /// Whether this message has an id of its own. Of a batch only the last message has.
        public var hadID: Bool
        /// The media type; "" if the server sent none.
        public var contentType: String
        public var data: [UInt8]

        /// The data as UTF-8, with U+FFFD in place of ill-formed parts.
        public var text: String { String(decoding: data, as: UTF8.self) }
    }

    public enum State: Sendable {
        /// No response yet, or the last attempt failed.
        case connecting
        /// The server has responded, or has held a poll for its full time.
        case open
        case closed
    }

    /// A failed attempt.
    public typealias ErrorEvent = SourceError

    let connection: LongPollConnection
    /// Retained, because a loop ends, with everything on it, when its last reference is released.
    private let loop: Loop
    private let mailbox: Mailbox<Message>
    private let dispatcher: SourceDispatcher
    private let isIterated = Atomic<Bool>(false)
    private let starting: SourceStart
    private let stateHub = StateHub<State>(.connecting, last: .closed)

    /// Creates a long poll and, unless `start` is false, starts polling.
    /// - Parameter url: `http://` or `https://`; user and password become a basic Authorization
    ///   header.
    /// - Throws: `RealtimeError` for an invalid URL or option.
    public init(
        _ url: String, options: Options = Options(), on loop: Loop = .shared, start: Bool = true
    ) throws {
        let connection = try LongPollConnection(url: url, on: loop.engine)
        self.connection = connection
        self.loop = loop
        let mailbox = Mailbox<Message>(
            options.maxBufferedMessages, options.maxBufferedBytes, on: loop.engine)
        self.mailbox = mailbox
        starting = SourceStart { [unowned connection] () throws(RealtimeError) in
            try connection.start()
        }
        dispatcher = SourceDispatcher(
            on: options.executor, options.maxBufferedMessages, options.maxBufferedBytes,
            loop: loop.engine
        ) { [weak connection] in
            try? connection?.pause()
        } resume: { [weak connection] in
            if !mailbox.isPaused { try? connection?.resume() }
        }
        try connection.configure { (target) throws(RealtimeError) in
            try options.apply(to: &target)
        }
        try connection.setReachability(options.reachability?.engine)
        try options.addHandlers(to: connection) { mailbox.finish(.normal) }
        try connection.setHandlers { handlers in
            handlers.failed = { failure in
                if failure.isFatal { mailbox.finish(.failed(failure.error)) }
            }
        }
        try connection.pause()
        connection.observeState { [stateHub, unowned connection] in
            stateHub.update { State(connection.state) }
        }
        if start { try self.start() }
    }

    deinit {
        dispatcher.close()
        connection.close()
        stateHub.finish(.closed)
    }

    /// Starts polling, if it was created with `start: false`. An iteration does so by itself.
    /// - Throws: `RealtimeError`: `.state` if it was called before, `.invalidArgument` for a last
    ///   event id that does not fit the cursor.
    public func start() throws(RealtimeError) { try starting.begin() }

    // MARK: Handlers; the last one set counts

    /// Called when the server has responded, or has held a poll for its full time, for the first
    /// time or again after a failure.
    public func onOpen(
        @_inheritActorContext _ handler: (@Sendable @isolated(any) (Opened) -> Void)?
    ) {
        let handler = Handler(handler)
        try? connection.setHandlers { [dispatcher] in
            $0.open = handler.map { handler in
                { opened in dispatcher.run(on: handler.isolation) { handler.call(opened) } }
            }
        }
    }

    /// Called for each failed attempt. A wait for a network is reported once, by the failure that
    /// led to it or by `.connect`; `retryIn` is then nil. An error that occurs before the handler
    /// is set is kept for it.
    public func onError(
        @_inheritActorContext _ handler: (@Sendable @isolated(any) (ErrorEvent) -> Void)?
    ) {
        let handler = Handler(handler)
        try? connection.setHandlers { [dispatcher] in
            $0.error = handler.map { handler in
                { failure in
                    let event = ErrorEvent(failure)
                    dispatcher.run(on: handler.isolation) { handler.call(event) }
                }
            }
        }
    }

    /// Called for each message. It replaces an iteration, which still returns the messages already
    /// buffered.
    public func onMessage(
        @_inheritActorContext _ handler: (@Sendable @isolated(any) (Message) -> Void)?
    ) {
        let handler = Handler(handler)
        try? connection.setHandlers { [dispatcher] in
            $0.message = handler.map { handler in
                { message in
                    let message = Message(message)
                    dispatcher.run(on: handler.isolation, count: message.count) {
                        handler.call(message)
                    }
                }
            }
        }
        if handler != nil { dispatcher.resume() }
    }

    // MARK: Iteration

    /// Messages in order. Above `maxBufferedMessages` and `maxBufferedBytes` no further poll is
    /// made. Ends after `close()`; throws `RealtimeError` for a fatal failure. If there are several
    /// iterators, each message goes to one of them.
    public func makeAsyncIterator() -> Iterator {
        if !isIterated.exchange(true, ordering: .acquiringAndReleasing) {
            let mailbox = mailbox
            try? connection.setHandlers { [dispatcher, unowned connection] in
                $0.message = { message in
                    guard mailbox.put(Message(message)) else { return }
                    try? connection.pause()
                    // If the box was emptied meanwhile, `resume` was called before there was a
                    // pause.
                    dispatcher.resume()
                }
            }
            dispatcher.resume()
        }
        return Iterator(poll: self, reader: MailboxReader(mailbox))
    }

    public typealias Element = Message
    public typealias AsyncIterator = Iterator

    public struct Iterator: AsyncIteratorProtocol {
        let poll: LongPoll
        let reader: MailboxReader<Message>

        /// Waits for the next message, on the caller's actor; nil at the end.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws -> Message? { try await poll.next(reader) }

        public mutating func next() async throws -> Message? { try await poll.next(reader) }
    }

    private func next(_ reader: MailboxReader<Message>) async throws -> Message? {
        if let message = mailbox.takeNow(onResume: dispatcher.resume) { return message }
        try starting.beginIterating()
        do {
            return try await mailbox.next(onResume: dispatcher.resume)
        } catch let error as CancellationError {
            if reader.leave() { close() }
            throw error
        }
    }

    // MARK: Use

    /// Closes the long poll for good, aborts the current request and discards waiting messages.
    /// Called where a handler runs, that handler does not run again.
    public func close() {
        dispatcher.close()
        connection.close()
        mailbox.finish(.normal, discarding: true)
    }

    /// Drops the current poll and polls again at once. A response that is being delivered is
    /// delivered first.
    /// - Throws: `RealtimeError(.closed)`.
    public func restart() throws(RealtimeError) { try connection.restart() }

    /// Reports that the network is back, whatever `Options.reachability` says: an attempt that
    /// waits, for its time or for a network, is made at once.
    public func retryNow() throws(RealtimeError) { try connection.retryNow() }

    public var state: State { State(connection.state) }

    /// The present state and each change of it; `closed` is the last one.
    public var states: StateSequence<State> { StateSequence(hub: stateHub) }

    /// The URL of the next poll, without user and password.
    public var url: String { connection.url }

    /// The cursor that the next poll will send, "" at the beginning. It counts buffered messages as
    /// received.
    public var lastEventID: String { connection.lastEventID }
}

extension LongPoll.State {
    fileprivate init(_ state: HTTPSourceState) {
        self =
            switch state {
            case .connecting: .connecting
            case .open: .open
            case .closed: .closed
            }
    }
}

extension LongPoll.Message: MailboxElement {
    var count: Int { id.utf8.count + contentType.utf8.count + data.count }

    init(_ message: LongPollMessage) {
        id = String(decoding: message.id, as: UTF8.self)
        hadID = message.hadID
        contentType = String(decoding: message.contentType, as: UTF8.self)
        data = Array(message.data)
    }
}
