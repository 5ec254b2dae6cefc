internal import Engine
internal import Session
import Synchronization
public import Wire

/// A stream of Server-Sent Events (HTML §9.2) that comes back by itself.
///
///     let source = try EventSource("https://example.org/events")
///     for try await event in source { print(event.id, event.event, event.data) }
///
/// or, with the names that IKEventSource has:
///
///     source.onMessage { id, event, data in print(data) }
///     source.addEventListener("tick") { id, event, data in print(data) }
///
/// It begins to connect when it is made; events wait for the first handler, listener or iteration.
/// Handlers are called on the loop's thread, one at a time. Cancelling a task that iterates closes
/// it, as the last reference gone does. All members may be used on any thread.
public final class EventSource: Sendable, AsyncSequence {
    public struct Event: Sendable, Hashable {
        /// The last event id, which stays until another comes; "" without.
        public var id: String
        /// Its type; "message" when the stream named none.
        public var event: String
        public var data: String
        /// Whether this event had an id of its own.
        public var hadID: Bool
    }

    /// Where it stands, with the standard's numbers.
    public enum ReadyState: Int, Sendable {
        case connecting = 0
        case open = 1
        case closed = 2
    }

    /// An attempt that failed, or a stream that ended.
    public typealias ErrorEvent = SourceError

    /// What `removeEventListener` takes.
    public struct Listener: Hashable, Sendable {
        let token: UInt64
    }

    public typealias Handler = @Sendable (_ id: String, _ event: String, _ data: String) -> Void

    let connection: EventSourceConnection
    /// Held, since the last reference to a loop ends it and all that is on it.
    private let loop: Loop
    private let mailbox: Mailbox<Mail>
    private let isIterated = Atomic<Bool>(false)
    /// nil when no ids are kept.
    private let unfinished: UnfinishedEvents?

    /// Makes an event source and, unless `start` is false, begins to connect.
    /// - Parameter url: `http://` or `https://`; user and password become a basic Authorization
    ///   header.
    /// - Throws: `RealtimeError` for a bad URL or option.
    public init(
        _ url: String, options: Options = Options(), on loop: Loop = .shared, start: Bool = true
    ) throws {
        connection = try EventSourceConnection(url: url, on: loop.engine)
        self.loop = loop
        let mailbox = Mailbox<Mail>(options.maxBufferedEvents, options.maxBufferedBytes)
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
        /// without user and password. If this file cannot be used, because there is no home or it
        /// is not writable, the log says so (`Log.send`), and no id is kept.
        case standard
        /// This file; see `Options.idFile`.
        case path(String)
        /// No id is kept.
        case none
    }

    /// Makes an event source with these headers, as IKEventSource does, and begins to connect. It
    /// begins after the last event that a former run of the program has handled.
    /// - Parameters:
    ///   - url: `http://` or `https://`.
    ///   - idFile: where the last event id is kept for the next run. By default it is kept;
    ///     `resetStoredID` forgets it.
    /// - Throws: `RealtimeError` for a bad URL or header.
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

    /// Begins to connect, when it was made with `start: false`.
    /// - Throws: `RealtimeError(.state)` when it was started before.
    public func start() throws(RealtimeError) { try connection.start() }

    // MARK: Handlers; the last one set counts

    /// The stream is open: the server answered 200 with text/event-stream.
    public func onOpen(_ handler: (@Sendable (Opened) -> Void)?) {
        set { $0.open = handler }
    }

    /// The same, for a handler without arguments.
    public func onOpen(_ handler: @escaping @Sendable () -> Void) {
        onOpen { _ in handler() }
    }

    /// One that came before the handler was set is kept for it.
    public func onError(_ handler: (@Sendable (ErrorEvent) -> Void)?) {
        set { $0.error = handler.map { handler in { handler(ErrorEvent($0)) } } }
    }

    /// Events of the type "message", named or not.
    public func onMessage(_ handler: Handler?) {
        set { $0.message = handler.map(EventSource.texts) }
        begin()
    }

    /// Every event of any type, after the listeners of its type.
    public func onAny(_ handler: (@Sendable (Event) -> Void)?) {
        set { $0.any = handler.map { handler in { handler(Event($0)) } } }
        begin()
    }

    /// Every comment, as it is read.
    public func onComment(_ handler: (@Sendable (String) -> Void)?) {
        set {
            $0.comment = handler.map { handler in
                { handler(String(decoding: $0, as: UTF8.self)) }
            }
        }
        begin()
    }

    /// Every reconnection time that the stream gives, as it is read.
    public func onRetry(_ handler: (@Sendable (Duration) -> Void)?) {
        set {
            $0.retry = handler.map { handler in { handler(.milliseconds($0)) } }
        }
        begin()
    }

    /// Adds a listener for events of one type, compared byte for byte; several are called in the
    /// order they were added.
    @discardableResult
    public func addEventListener(_ event: String, _ handler: @escaping Handler) -> Listener {
        // Fails when the loop is over: then nothing is called any more.
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

    /// Types that have a listener, sorted bytewise.
    public func events() -> [String] {
        connection.listenedTypes.map { String(decoding: $0, as: UTF8.self) }
    }

    private func set(_ change: (inout EventSourceHandlers) -> Void) {
        // Fails when the loop is over: then nothing is called any more.
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

    /// Events of every type, in order; bounded by `maxBufferedEvents` and `maxBufferedBytes`, above
    /// which the server is slowed down. Ends after `close()`, and without `Options.reconnect` with
    /// the stream; throws `RealtimeError` for a fatal failure. Several iterators share the events
    /// among them; an id is kept when its event and all before it are done with, by each of them.
    public func makeAsyncIterator() -> Iterator {
        if !isIterated.exchange(true, ordering: .acquiringAndReleasing) {
            let mailbox = mailbox
            let unfinished = unfinished
            // What waits in the mailbox is not done with.
            if unfinished != nil { connection.confirmsIDs = true }
            set { [unowned connection] in
                $0.sink = { event in
                    let event = Event(event)
                    let number = unfinished?.came(event.id) ?? 0
                    guard mailbox.put(Mail(event: event, number: number)) else { return }
                    try? connection.pause()
                    // Those who emptied the box meanwhile called resume before there was a pause.
                    if !mailbox.isPaused { try? connection.resume() }
                }
            }
            try? connection.resume()
        }
        return Iterator(source: self, taker: EventTaker(unfinished))
    }

    public typealias Element = Event
    public typealias AsyncIterator = Iterator

    public struct Iterator: AsyncIteratorProtocol {
        let source: EventSource
        let taker: EventTaker

        public mutating func next() async throws -> Event? { try await source.next(for: taker) }
    }

    private func next(for taker: EventTaker) async throws -> Event? {
        if let id = taker.finish() { try? connection.confirm(id: id) }
        do {
            guard let mail = try await mailbox.next(onResume: { try? connection.resume() }) else {
                return nil
            }
            if unfinished != nil { taker.took(mail.number) }
            return mail.event
        } catch let error as CancellationError {
            close()
            throw error
        }
    }

    // MARK: Use

    /// Ends it for good; no handler begins after this returned on the loop's thread, and events
    /// that wait are forgotten. Where ids are kept the event taken last comes again in the next
    /// run, as it may not be done with.
    public func close() {
        connection.close()
        mailbox.finish(.normal, discarding: true)
    }

    /// Drops the connection and connects again at once.
    /// - Throws: `RealtimeError(.closed)`.
    public func restart() throws(RealtimeError) { try connection.restart() }

    /// Forgets the id that is stored for this source in its id file, and that of the event whose
    /// handler calls this, or that was taken last; ids of later events are stored as ever.
    /// - Throws: `RealtimeError`: `.store`; `.state` without an id file.
    public func resetStoredID() throws(RealtimeError) {
        try connection.resetStoredID()
        unfinished?.forget()
    }

    // MARK: State

    public var readyState: ReadyState {
        ReadyState(rawValue: Int(connection.state.rawValue)) ?? .closed
    }

    /// Without user and password.
    public var url: String { connection.url }

    /// Where the events come from, after redirects: scheme, host and port.
    public var origin: String { connection.origin }

    /// As the next attempt sends it; "" for none.
    public var lastEventID: String { connection.lastEventID }

    /// The server's last `retry`, or the option.
    public var reconnectionTime: Duration { .milliseconds(connection.reconnectionTime) }

    /// The value of an Authorization header for basic credentials (RFC 7617).
    /// - Throws: `RealtimeError(.invalidArgument)` for a user name with a colon.
    public static func basicAuth(_ user: String, _ password: String) throws(RealtimeError) -> String
    {
        try HeaderField.basicAuthorization(user: user, password: password)
    }
}

extension EventSource {
    /// An event with its number among those that are unfinished.
    struct Mail: MailboxElement {
        var event: Event
        var number: Int

        var count: Int { event.id.utf8.count + event.event.utf8.count + event.data.utf8.count }

        static var taken: Self {
            Self(event: Event(id: "", event: "", data: "", hadID: false), number: 0)
        }
    }
}

extension EventSource.Event {
    /// The texts are valid UTF-8 already: decoding repairs nothing.
    init(_ event: StreamEvent) {
        id = String(decoding: event.id, as: UTF8.self)
        self.event = String(decoding: event.type, as: UTF8.self)
        data = String(decoding: event.data, as: UTF8.self)
        hadID = event.hadID
    }
}
