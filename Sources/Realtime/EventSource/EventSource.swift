internal import CShims
internal import Engine
internal import Session
import Synchronization
public import Wire

/// A stream of server-sent events (HTML §9.2) that reconnects by itself.
///
///     let source = try EventSource("https://example.org/events")
///     for try await event in source { print(event.id, event.event, event.data) }
///
/// or, with the names of IKEventSource:
///
///     source.onMessage { id, event, data in print(data) }
///     source.addEventListener("tick") { id, event, data in print(data) }
///
/// It connects when it is created, or with `start: false` by `start` or the first iteration. Events
/// wait for the first handler, listener or iteration.
/// Handlers run one at a time on the main actor, or where `Options.executor` says; one that is
/// isolated to an actor, for example in main-actor code, runs there. Cancelling the only task that
/// iterates closes the event source, and so does releasing the last reference. All members may be
/// used on any thread.
public final class EventSource: Sendable, AsyncSequence {
    public struct Event: Sendable, Hashable {
        /// The last event id, which stays the same until an event has another one; "" for none.
        public var id: String
        /// The event's type; "message" if the stream sent none.
        public var event: String
        public var data: String
        /// Whether this event had an id of its own.
        public var hadID: Bool
    }

    /// The state, with the standard's numbers.
    public enum ReadyState: Int, Sendable {
        case connecting = 0
        case open = 1
        case closed = 2
    }

    /// A failed attempt, or the end of a stream.
    public typealias ErrorEvent = SourceError

    /// Identifies a listener for `removeEventListener`.
    public struct Listener: Hashable, Sendable {
        let token: UInt64
    }

    /// Receives an event; see `Options.executor` for where it runs.
    public typealias Handler =
        @Sendable @isolated(any) (_ id: String, _ event: String, _ data: String) -> Void

    let connection: EventSourceConnection
    /// Retained, because a loop ends, with everything on it, when its last reference is released.
    private let loop: Loop
    private let mailbox: Mailbox<Mail>
    private let isIterated = Atomic<Bool>(false)
    private let starting: SourceStart
    private let stateHub = StateHub<ReadyState>(.connecting, last: .closed)
    let dispatcher: SourceDispatcher
    /// nil if no ids are stored.
    private let unfinished: UnfinishedEvents?

    /// Creates an event source and, unless `start` is false, connects.
    /// - Parameter url: `http://` or `https://`; user and password become a basic Authorization
    ///   header.
    /// - Throws: `RealtimeError` for an invalid URL or option.
    public convenience init(
        _ url: String, options: Options = Options(), on loop: Loop = .shared, start: Bool = true
    ) throws {
        let connection = try options.connection(to: url, on: loop)
        self.init(connection, options, on: loop)
        if start { try self.start() }
    }

    init(_ connection: EventSourceConnection, _ options: Options, on loop: Loop) {
        self.connection = connection
        self.loop = loop
        let mailbox = Mailbox<Mail>(
            options.maxBufferedEvents, options.maxBufferedBytes, on: loop.engine)
        self.mailbox = mailbox
        starting = SourceStart { [unowned connection] () throws(RealtimeError) in
            try connection.start()
        }
        let keepsIDs = options.idFile != nil || options.onStore != nil
        let unfinished =
            keepsIDs
            ? UnfinishedEvents { [weak connection] in try? connection?.confirm(id: $0) } : nil
        self.unfinished = unfinished
        connection.confirmsIDs = keepsIDs
        dispatcher = SourceDispatcher(
            on: options.executor, options.maxBufferedEvents, options.maxBufferedBytes,
            loop: loop.engine
        ) { [weak connection] in
            try? connection?.pause()
        } resume: { [weak connection] in
            if !mailbox.isPaused { try? connection?.resume() }
        }
        set { [unowned connection] handlers in
            options.addHandlers(to: connection, &handlers) { mailbox.finish(.normal) }
            if let unfinished {
                handlers.delivered = { unfinished.endDelivery() }
                handlers.idChanged = { unfinished.noteLast(connection.lastEventID) }
            }
            handlers.failed = { failure in
                guard failure.isFatal else { return }
                let isEnd = failure.error.code == .closed
                mailbox.finish(isEnd ? .normal : .failed(failure.error))
            }
        }
        try? connection.pause()
        connection.observeState { [stateHub, unowned connection] in
            stateHub.update { ReadyState(connection.state) }
        }
    }

    /// For the command-line tool, which ends if ids cannot be kept.
    /// - Throws: `RealtimeError(.store)` for a file that cannot be used.
    @_spi(CommandLine) public static func checkIDFile(_ path: String) throws(RealtimeError) {
        try EventSourceConnection.checkIDFile(path)
    }

    /// For the command-line tool, after the end: the id of the last processed event is in the file
    /// when this returns.
    /// - Throws: `RealtimeError(.store)` if it could not be written.
    @_spi(CommandLine) public func writeLastID() throws(RealtimeError) {
        try connection.writeLastID()
    }

    deinit {
        dispatcher.close()
        connection.close()
        stateHub.finish(.closed)
    }

    /// Starts connecting, if it was created with `start: false`. An iteration does so by itself.
    /// - Throws: `RealtimeError(.state)` if it was called before.
    public func start() throws(RealtimeError) { try starting.begin() }

    func set(_ change: (inout EventSourceHandlers) -> Void) {
        // Fails if the loop has ended; then no handler is called anyway.
        try? connection.setHandlers(change)
    }

    /// Runs a handler of events, and then stores the event's id.
    func delivering(
        on isolation: (any Actor)?, _ handle: @escaping @Sendable (Event) -> Void
    ) -> EventSourceHandlers.Event {
        { [dispatcher, unfinished] event in
            let event = Event(event)
            guard let unfinished else {
                return dispatcher.run(on: isolation, count: event.count) { handle(event) }
            }
            let number = unfinished.add(event.id)
            dispatcher.run(on: isolation, count: event.count) {
                unfinished.run(number, on: shim_thread_self()) { handle(event) }
            }
        }
    }

    // MARK: Iteration

    /// Events of every type, in order. Above `maxBufferedEvents` and `maxBufferedBytes` the server
    /// is slowed down. Ends after `close()`, and with the stream if `Options.reconnect` is false;
    /// throws `RealtimeError` for a fatal failure. If there are several iterators, each event goes
    /// to one of them. An id is stored once its event and all before it have been processed by
    /// their iterators.
    public func makeAsyncIterator() -> Iterator {
        if !isIterated.exchange(true, ordering: .acquiringAndReleasing) {
            let mailbox = mailbox
            let unfinished = unfinished
            set { [dispatcher, unowned connection] in
                $0.sink = { event in
                    let event = Event(event)
                    let number = unfinished?.add(event.id) ?? 0
                    guard mailbox.put(Mail(event: event, number: number)) else { return }
                    try? connection.pause()
                    // If the box was emptied meanwhile, `resume` was called before there was a
                    // pause.
                    dispatcher.resume()
                }
            }
            dispatcher.resume()
        }
        return Iterator(
            source: self, taker: EventTaker(unfinished), reader: MailboxReader(mailbox))
    }

    public typealias Element = Event
    public typealias AsyncIterator = Iterator

    public struct Iterator: AsyncIteratorProtocol {
        let source: EventSource
        let taker: EventTaker
        let reader: MailboxReader<Mail>

        /// Waits for the next event, on the caller's actor; nil at the end.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws -> Event? { try await source.next(for: taker, reader) }

        public mutating func next() async throws -> Event? {
            try await source.next(for: taker, reader)
        }
    }

    private func next(
        for taker: EventTaker, _ reader: MailboxReader<Mail>
    ) async throws -> Event? {
        if unfinished != nil { taker.finish() }
        let mail = try await nextMail(reader)
        if unfinished != nil, let mail { taker.take(mail.number) }
        return mail?.event
    }

    private func nextMail(_ reader: MailboxReader<Mail>) async throws -> Mail? {
        if let mail = mailbox.takeNow(onResume: dispatcher.resume) { return mail }
        try starting.beginIterating()
        do {
            return try await mailbox.next(onResume: dispatcher.resume)
        } catch let error as CancellationError {
            if reader.leave() { close() }
            throw error
        }
    }

    // MARK: Use

    /// Closes the event source for good and discards waiting events. Called where a handler runs,
    /// that handler does not run again. If ids are stored, the id of the last processed event is in
    /// the file when this returns. A handler that closes the source has processed its event; one
    /// that an iteration took last, or whose handlers are still being called, comes again in the
    /// next run.
    public func close() {
        unfinished?.close(on: shim_thread_self())
        dispatcher.close()
        connection.close()
        mailbox.finish(.normal, discarding: true)
    }

    /// Drops the connection and reconnects at once.
    /// - Throws: `RealtimeError(.closed)`.
    public func restart() throws(RealtimeError) { try connection.restart() }

    /// Reports that the network is back, whatever `Options.reachability` says: an attempt that
    /// waits, for its time or for a network, is made at once.
    public func retryNow() throws(RealtimeError) { try connection.retryNow() }

    /// Deletes the id that the id file stores for this source, and the id of the event whose
    /// handler calls this, or that was taken last. Ids of later events are stored as usual.
    /// - Throws: `RealtimeError`: `.store`; `.state` without an id file.
    public func resetStoredID() throws(RealtimeError) {
        try connection.resetStoredID()
        unfinished?.forget()
    }

    // MARK: State

    public var readyState: ReadyState { ReadyState(connection.state) }

    /// The present state and each change of it; `closed` is the last one.
    public var states: StateSequence<ReadyState> { StateSequence(hub: stateHub) }

    /// The URL of the next attempt, without user and password.
    public var url: String { connection.url }

    /// The origin of the events, after redirects: scheme, host and port.
    public var origin: String { connection.origin }

    /// The last event id, as the next attempt will send it; "" for none.
    public var lastEventID: String { connection.lastEventID }

    /// The server's last `retry`, or the option if there was none.
    public var reconnectionTime: Duration { .milliseconds(connection.reconnectionTime) }

    /// The value of an Authorization header for basic credentials (RFC 7617).
    /// - Throws: `RealtimeError(.invalidArgument)` for a user name with a colon.
    public static func basicAuth(
        _ username: String, password: String
    ) throws(RealtimeError) -> String {
        try HeaderField.basicAuthorization(user: username, password: password)
    }
}

extension EventSource {
    /// An event with its number among the unfinished ones.
    struct Mail: MailboxElement {
        var event: Event
        var number: Int

        var count: Int { event.count }
    }
}

extension EventSource.Event {
    fileprivate var count: Int { id.utf8.count + event.utf8.count + data.utf8.count }

    /// The texts are already valid UTF-8, so decoding changes nothing.
    init(_ event: StreamEvent) {
        id = String(decoding: event.id, as: UTF8.self)
        self.event = String(decoding: event.type, as: UTF8.self)
        data = String(decoding: event.data, as: UTF8.self)
        hadID = event.hadID
    }
}

extension EventSource.ReadyState {
    fileprivate init(_ state: HTTPSourceState) {
        self =
            switch state {
            case .connecting: .connecting
            case .open: .open
            case .closed: .closed
            }
    }
}
