internal import Engine
internal import Session
import Synchronization
public import Wire

/// Messages by requests that the server answers when there is something new.
///
///     let poll = try LongPoll("https://example.org/messages")
///     for try await message in poll { print(message.id, message.text) }
///
/// or by handlers:
///
///     poll.onMessage { print($0.text) }
///
/// It begins to poll when it is made; messages wait for the handler or the iteration, and polls go
/// on while no more than `maxBufferedMessages` wait. A message whose delivery was cut off by a
/// failure comes again; messages that the server has dropped meanwhile are not known to be missing.
/// Handlers are called on the loop's thread, one at a time. Cancelling a task that iterates closes
/// it, as the last reference gone does. All members may be used on any thread.
public final class LongPoll: Sendable, AsyncSequence {
    public struct Message: Sendable, Hashable {
        /// How far the messages have come; "" before the server said so. It serves
        /// `Options.lastEventID`, and with Nchan the other transports too.
        public var id: String
        /// Whether this message has an id of its own: of a batch only the last has.
        public var hadID: Bool
        /// The media type; "" when the server did not say.
        public var contentType: String
        public var data: [UInt8]

        /// The data as UTF-8, what is ill-formed replaced by U+FFFD.
        public var text: String { String(decoding: data, as: UTF8.self) }
    }

    public enum State: Sendable {
        /// No answer yet, or the last attempt failed.
        case connecting
        /// The server answers, or has held a poll for its whole time.
        case open
        case closed
    }

    /// An attempt that failed.
    public typealias ErrorEvent = SourceError

    let connection: LongPollConnection
    /// Held, since the last reference to a loop ends it and all that is on it.
    private let loop: Loop
    private let mailbox: Mailbox<Message>
    private let isIterated = Atomic<Bool>(false)

    /// Makes a long poll and, unless `start` is false, begins to poll.
    /// - Parameter url: `http://` or `https://`; user and password become a basic Authorization
    ///   header.
    /// - Throws: `RealtimeError` for a bad URL or option.
    public init(
        _ url: String, options: Options = Options(), on loop: Loop = .shared, start: Bool = true
    ) throws {
        connection = try LongPollConnection(url: url, on: loop.engine)
        self.loop = loop
        let mailbox = Mailbox<Message>(options.maxBufferedMessages, options.maxBufferedBytes)
        self.mailbox = mailbox
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
        if start { try connection.start() }
    }

    deinit { connection.close() }

    /// Begins to poll, when it was made with `start: false`.
    /// - Throws: `RealtimeError`: `.state` when it was started before, `.invalidArgument` for a
    ///   last event id that does not fit the cursor.
    public func start() throws(RealtimeError) { try connection.start() }

    // MARK: Handlers; the last one set counts

    /// The server answers, or has held a poll for its whole time: for the first time, or again
    /// after a failure.
    public func onOpen(_ handler: (@Sendable (Opened) -> Void)?) {
        try? connection.setHandlers { $0.open = handler }
    }

    /// One that came before the handler was set is kept for it.
    public func onError(_ handler: (@Sendable (ErrorEvent) -> Void)?) {
        try? connection.setHandlers {
            $0.error = handler.map { handler in { handler(ErrorEvent($0)) } }
        }
    }

    /// Takes the place of an iteration, which still gives what it has kept by then.
    public func onMessage(_ handler: (@Sendable (Message) -> Void)?) {
        try? connection.setHandlers {
            $0.message = handler.map { handler in { handler(Message($0)) } }
        }
        if handler != nil { try? connection.resume() }
    }

    // MARK: Iteration

    /// Messages in order; bounded by `maxBufferedMessages` and `maxBufferedBytes`, above which no
    /// further poll is made. Ends after `close()`; throws `RealtimeError` for a fatal failure.
    /// Several iterators share the messages among them.
    public func makeAsyncIterator() -> Iterator {
        if !isIterated.exchange(true, ordering: .acquiringAndReleasing) {
            let mailbox = mailbox
            try? connection.setHandlers { [unowned connection] in
                $0.message = { message in
                    guard mailbox.put(Message(message)) else { return }
                    try? connection.pause()
                    // Those who emptied the box meanwhile called resume before there was a pause.
                    if !mailbox.isPaused { try? connection.resume() }
                }
            }
            try? connection.resume()
        }
        return Iterator(poll: self)
    }

    public typealias Element = Message
    public typealias AsyncIterator = Iterator

    public struct Iterator: AsyncIteratorProtocol {
        let poll: LongPoll

        public mutating func next() async throws -> Message? { try await poll.next() }
    }

    private func next() async throws -> Message? {
        do {
            return try await mailbox.next { try? connection.resume() }
        } catch let error as CancellationError {
            close()
            throw error
        }
    }

    // MARK: Use

    /// Ends it for good, and aborts the request in flight; messages that wait are forgotten.
    public func close() {
        connection.close()
        mailbox.finish(.normal, discarding: true)
    }

    /// Drops the poll in flight and polls again at once. An answer that is being delivered is
    /// delivered first.
    /// - Throws: `RealtimeError(.closed)`.
    public func restart() throws(RealtimeError) { try connection.restart() }

    public var state: State {
        switch connection.state {
        case .connecting: .connecting
        case .open: .open
        case .closed: .closed
        }
    }

    /// Without user and password.
    public var url: String { connection.url }

    /// How far the messages have come, those that wait to be taken too, as the next poll says it;
    /// "" for the beginning.
    public var lastEventID: String { connection.lastEventID }
}

extension LongPoll.Message: MailboxElement {
    var count: Int { id.utf8.count + contentType.utf8.count + data.count }

    static var taken: Self { Self(id: "", hadID: false, contentType: "", data: []) }

    init(_ message: LongPollMessage) {
        id = String(decoding: message.id, as: UTF8.self)
        hadID = message.hadID
        contentType = String(decoding: message.contentType, as: UTF8.self)
        data = Array(message.data)
    }
}
