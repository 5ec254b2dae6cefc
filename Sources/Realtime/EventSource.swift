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
/// It connects when it is created; events wait for the first handler, listener or iteration.
/// Handlers are called on the loop's thread, one at a time. Cancelling the only task that iterates
/// closes the event source, and so does releasing the last reference. All members may be used on
/// any thread.
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

    public typealias Handler = @Sendable (_ id: String, _ event: String, _ data: String) -> Void

    let connection: EventSourceConnection
    /// Retained, because a loop ends, with everything on it, when its last reference is released.
    private let loop: Loop
    private let mailbox: Mailbox<Mail>
    private let isIterated = Atomic<Bool>(false)
    /// nil if no ids are stored.
    private let unfinished: UnfinishedEvents?

    /// Creates an event source and, unless `start` is false, connects.
    /// - Parameter url: `http://` or `https://`; user and password become a basic Authorization
    ///   header.
    /// - Throws: `RealtimeError` for an invalid URL or option.
    public init(
        _ url: String, options: Options = Options(), on loop: Loop = .shared, start: Bool = true
    ) throws {
        connection = try EventSourceConnection(url: url, on: loop.engine)
        self.loop = loop
        let mailbox = Mailbox<Mail>(
            options.maxBufferedEvents, options.maxBufferedBytes, on: loop.engine)
        self.mailbox = mailbox
        let keepsIDs = options.idFile != nil || options.onStore != nil
        unfinished = keepsIDs ? UnfinishedEvents() : nil
        try connection.configure { (target) throws(RealtimeError) in
            try options.apply(to: &target)
        }
        try connection.setReachability(options.reachability?.engine)
        try options.addHandlers(to: connection) { mailbox.finish(.normal) }
        try connection.setHandlers { handlers in
            handlers.failed = { failure in
                guard failure.isFatal else { return }
                let isEnd = failure.error.code == .closed
                mailbox.finish(isEnd ? .normal : .failed(failure.error))
            }
        }
        try connection.pause()
        if start { try connection.start() }
    }

    /// Where `EventSource(url:headers:)` keeps the last event id for the next run of the program.
    public enum IDFile: Sendable {
        /// `librealtime/event-ids/PROGRAM` below the folder that XDG_STATE_HOME names, or else
        /// below `~/.local/state`; PROGRAM is the name of the executable. Ids are kept by URL,
        /// without user and password. If this file cannot be used, for example without a home
        /// folder, the log says so (`Log.send`), and no id is kept.
        case standard
        /// This file; see `Options.idFile`.
        case path(String)
        /// No id is kept.
        case none
    }

    /// Creates an event source with these headers, as IKEventSource does, and connects. It
    /// continues after the last event that an earlier run of the program handled.
    /// - Parameters:
    ///   - url: `http://` or `https://`.
    ///   - idFile: where the last event id is kept for the next run; `resetStoredID` deletes it.
    /// - Throws: `RealtimeError` for an invalid URL or header.
    public convenience init(
        url: String, headers: [String: String] = [:], idFile: IDFile = .standard,
        on loop: Loop = .shared
    ) throws {
        var options = Options()
        options.headers = headers.sorted { $0.key < $1.key }.map { (name: $0.key, value: $0.value) }
        switch idFile {
        case .standard: options.idFile = Options.standardIDFile
        case .path(let path): options.idFile = path
        case .none: break
        }
        try self.init(url, options: options, on: loop)
    }

    deinit { connection.close() }

    /// Starts connecting, if it was created with `start: false`.
    /// - Throws: `RealtimeError(.state)` if it was started before.
    public func start() throws(RealtimeError) { try connection.start() }

    // MARK: Handlers; the last one set counts

    /// Called when the stream is open: the server responded with 200 and text/event-stream.
    public func onOpen(_ handler: (@Sendable (Opened) -> Void)?) {
        set { $0.open = handler }
    }

    /// Sets a handler without arguments for the open stream.
    public func onOpen(_ handler: @escaping @Sendable () -> Void) {
        onOpen { _ in handler() }
    }

    /// Called for failed attempts and ended streams. An error that occurs before the handler is set
    /// is kept for it.
    public func onError(_ handler: (@Sendable (ErrorEvent) -> Void)?) {
        set { $0.error = handler.map { handler in { handler(ErrorEvent($0)) } } }
    }

    /// Called for events of the type "message", which is also the type of events without one.
    public func onMessage(_ handler: Handler?) {
        set { $0.message = handler.map(EventSource.texts) }
        begin()
    }

    /// Called for events of all types, after the listeners of the event's type.
    public func onAny(_ handler: (@Sendable (Event) -> Void)?) {
        set { $0.any = handler.map { handler in { handler(Event($0)) } } }
        begin()
    }

    /// Called for each comment as it is read.
    public func onComment(_ handler: (@Sendable (String) -> Void)?) {
        set {
            $0.comment = handler.map { handler in
                { handler(String(decoding: $0, as: UTF8.self)) }
            }
        }
        begin()
    }

    /// Called for each reconnection time as it is read.
    public func onRetry(_ handler: (@Sendable (Duration) -> Void)?) {
        set {
            $0.retry = handler.map { handler in { handler(.milliseconds($0)) } }
        }
        begin()
    }

    /// Adds a listener for events of one type, compared byte for byte. Listeners are called in the
    /// order in which they were added.
    @discardableResult
    public func addEventListener(_ event: String, _ handler: @escaping Handler) -> Listener {
        // Fails if the loop has ended; then no listener is called anyway.
        let token = try? connection.addListener(Array(event.utf8), EventSource.texts(handler))
        begin()
        return Listener(token: token ?? 0)
    }

    /// Removes all listeners for events of one type.
    public func removeEventListener(_ event: String) {
        try? connection.removeListeners(Array(event.utf8))
    }

    public func removeEventListener(_ listener: Listener) {
        _ = try? connection.removeListener(listener.token)
    }

    /// The types that have a listener, in bytewise order.
    public func events() -> [String] {
        connection.listenedTypes.map { String(decoding: $0, as: UTF8.self) }
    }

    private func set(_ change: (inout EventSourceHandlers) -> Void) {
        // Fails if the loop has ended; then no handler is called anyway.
        try? connection.setHandlers(change)
    }

    private func begin() {
        if !isIterated.load(ordering: .acquiring) || !mailbox.isPaused { try? connection.resume() }
    }

    private static func texts(_ handler: @escaping Handler) -> EventSourceHandlers.Event {
        { event in
            handler(
                String(decoding: event.id, as: UTF8.self),
                String(decoding: event.type, as: UTF8.self),
                String(decoding: event.data, as: UTF8.self))
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
            // Events in the mailbox are not processed yet.
            if unfinished != nil { connection.confirmsIDs = true }
            set { [unowned connection] in
                $0.sink = { event in
                    let event = Event(event)
                    let number = unfinished?.add(event.id) ?? 0
                    guard mailbox.put(Mail(event: event, number: number)) else { return }
                    try? connection.pause()
                    // If the box was emptied meanwhile, `resume` was called before there was a
                    // pause.
                    if !mailbox.isPaused { try? connection.resume() }
                }
            }
            try? connection.resume()
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
        if unfinished != nil, let id = taker.finish() { try? connection.confirm(id: id) }
        let mail = try await nextMail(reader)
        if unfinished != nil, let mail { taker.take(mail.number) }
        return mail?.event
    }

    private func nextMail(_ reader: MailboxReader<Mail>) async throws -> Mail? {
        if let mail = mailbox.takeNow(onResume: { try? connection.resume() }) { return mail }
        do {
            return try await mailbox.next { try? connection.resume() }
        } catch let error as CancellationError {
            if reader.leave() { close() }
            throw error
        }
    }

    // MARK: Use

    /// Closes the event source for good and discards waiting events. Called on the loop's thread,
    /// no handler begins after this returns. If ids are stored, the event that was taken last comes
    /// again in the next run, because it may not have been processed.
    public func close() {
        connection.close()
        mailbox.finish(.normal, discarding: true)
    }

    /// Drops the connection and reconnects at once.
    /// - Throws: `RealtimeError(.closed)`.
    public func restart() throws(RealtimeError) { try connection.restart() }

    /// Deletes the id that the id file stores for this source, and the id of the event whose
    /// handler calls this, or that was taken last. Ids of later events are stored as usual.
    /// - Throws: `RealtimeError`: `.store`; `.state` without an id file.
    public func resetStoredID() throws(RealtimeError) {
        try connection.resetStoredID()
        unfinished?.forget()
    }

    // MARK: State

    public var readyState: ReadyState {
        ReadyState(rawValue: Int(connection.state.rawValue)) ?? .closed
    }

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
    public static func basicAuth(_ user: String, _ password: String) throws(RealtimeError) -> String
    {
        try HeaderField.basicAuthorization(user: user, password: password)
    }
}

extension EventSource {
    /// An event with its number among the unfinished ones.
    struct Mail: MailboxElement {
        var event: Event
        var number: Int

        var count: Int { event.id.utf8.count + event.event.utf8.count + event.data.utf8.count }
    }
}

extension EventSource.Event {
    /// The texts are already valid UTF-8, so decoding changes nothing.
    init(_ event: StreamEvent) {
        id = String(decoding: event.id, as: UTF8.self)
        self.event = String(decoding: event.type, as: UTF8.self)
        data = String(decoding: event.data, as: UTF8.self)
        hadID = event.hadID
    }
}
