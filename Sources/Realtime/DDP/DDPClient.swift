internal import Documents
internal import Engine
internal import Session
public import Wire

/// A client of a Meteor server: methods with latency compensation, subscriptions, and local
/// documents that follow the server.
///
///     let client = try DDPClient("https://example.org")
///     try client.connect()
///     let lists = try client.subscribe("lists")
///     try await lists.ready()
///     for list in try client.collection("lists").find() { print(list["name"] ?? .null) }
///     let id = try await client.call("addList", ["Groceries"])
///
/// A lost connection is established again; then the user is logged in, subscriptions are repeated,
/// and calls that have no result yet are sent again. Calls and subscriptions may be made at any
/// time, also without a connection: they wait for one.
///
/// Handlers run one at a time on the main actor, or where `Options.executor` says; one that is
/// isolated to an actor, for example in main-actor code, runs there. While many calls of handlers
/// wait, the server is slowed down. Only stubs and `onOpen` run elsewhere, because what they do
/// belongs to a call or a connection that waits for it. Releasing the last reference closes the
/// client. All members may be used on any thread.
public final class DDPClient: Sendable {
    public enum Status: Sendable {
        /// No connection is wanted, or an attempt waits for the network or for the foreground.
        case offline
        case connecting
        /// The server has confirmed the connection.
        case connected
        /// The connection was lost or could not be established; the next attempt is awaited.
        case waiting
        /// The client gave up: the server speaks no known version or sends more than
        /// `maxDocumentBytes`, a live query takes too long, or reconnecting is switched off.
        case failed
    }

    /// A change of the status.
    public struct StatusChange: Sendable {
        public let status: Status
        /// Failed attempts in a row.
        public let retryCount: Int
        /// The time until the next attempt; nil unless `waiting`.
        public let retryIn: Duration?
        /// Why the client failed; "" otherwise.
        public let reason: String
        /// What ended the connection; nil if it ended as requested.
        public let error: RealtimeError?
    }

    let engine: DDPConnection
    /// Retained, because a loop ends, with everything on it, when its last reference is released.
    private let loop: Loop
    let storeToken: (@Sendable (String?) -> Void)?
    let dispatcher: SourceDispatcher
    private let stateHub = StateHub<Status>(.offline)

    /// How many calls of handlers may wait, and how many bytes of documents for them, before
    /// receiving pauses.
    private static let waitingCalls = (count: 1024, bytes: 8 << 20)

    /// Creates a client. Nothing is sent before `connect`.
    /// - Parameter url: `https://host/path`, `http`, `wss` or `ws`; `/websocket` is appended unless
    ///   the path ends so.
    /// - Throws: `RealtimeError` for an invalid URL or option.
    public init(
        _ url: String, options: Options = Options(), on loop: Loop = .shared
    ) throws(RealtimeError) {
        let engine = try DDPConnection(url: url, on: loop.engine)
        self.engine = engine
        self.loop = loop
        storeToken = options.storeToken
        let dispatcher = SourceDispatcher(
            on: options.executor, DDPClient.waitingCalls.count, DDPClient.waitingCalls.bytes,
            loop: loop.engine
        ) { [weak engine] in
            try? engine?.pause()
        } resume: { [weak engine] in
            try? engine?.resume()
        }
        self.dispatcher = dispatcher
        try engine.configure { (target) throws(RealtimeError) in try options.apply(to: &target) }
        try engine.setReachability(options.reachability?.engine)
        try engine.setHandlers { handlers in
            handlers.loadToken = options.loadToken.map { load in
                { load().flatMap { DDPLoginToken(text: $0) } }
            }
        }
        try setAccountHandler(nil, options.storeToken)
        onStatus(nil)
    }

    deinit { close() }

    /// For the command-line tool: why the login is not kept (`Options.tokenFile`); nil if it is.
    @_spi(CommandLine) public var tokenFault: RealtimeError? { engine.tokenFault }

    /// Ends the connection. Over a WebSocket, earlier calls are sent, as far as the system takes
    /// them at once. Calls that have no result yet fail, and may run at the server. Nothing is
    /// reported any more: called where a handler runs, that handler does not run again. The file
    /// for the documents (`Options.documentFile`) is complete when this returns.
    public func close() {
        dispatcher.close()
        engine.close()
        stateHub.finish(.offline)
    }

    // MARK: Connecting

    /// Connects, and keeps connected. Without a network the client waits for one, `.offline`; with
    /// one, a client that waits for its next attempt makes it at once, and `retryCount` stays.
    /// - Throws: `.store` if the file for the token or for the documents cannot be used;
    ///   `.invalidArgument` if they are the same, or if there are both a `tokenFile` and a
    ///   `loadToken`; `.closed`.
    public func connect() throws(RealtimeError) { try engine.connect() }

    /// Ends the connection and all attempts. Calls and subscriptions wait for the next `connect`.
    public func disconnect() throws(RealtimeError) { try engine.disconnect() }

    /// Drops the connection, also if it is fine, and connects again.
    public func reconnect() throws(RealtimeError) { try engine.reconnect() }

    /// Takes over what the program knows about the network, in addition to what the client observes
    /// itself. If the network is reachable and the client waits for its next attempt, it makes it
    /// at once. If it is not, no attempt is made until it is, and `connect` waits.
    public func networkChanged(isReachable: Bool) throws(RealtimeError) {
        try engine.networkChanged(isReachable: isReachable)
    }

    /// Reports that the network is back, as `networkChanged(isReachable: true)` does. A connection
    /// is also checked by a ping.
    public func retryNow() throws(RealtimeError) { try engine.retryNow() }

    /// The program moves to the background: the connection is kept for a while
    /// (`Options.backgroundGrace`), and no new attempt is made.
    public func enterBackground() throws(RealtimeError) { try engine.enterBackground() }

    /// The program is in the foreground again: a client that was connected connects.
    public func enterForeground() throws(RealtimeError) { try engine.enterForeground() }

    // MARK: State

    public var status: Status { Status(engine.status) }

    /// The status that was reported last, and each change of it; the `offline` of `close` is the
    /// last one.
    public var states: StateSequence<Status> { StateSequence(hub: stateHub) }

    /// Failed attempts in a row.
    public var retryCount: Int { engine.retryCount }

    /// The time until the next attempt; nil unless `waiting`.
    public var retryIn: Duration? { engine.retryIn }

    /// Why the client has failed; "" otherwise.
    public var reason: String { engine.failureReason }

    /// Whether some documents may be those of an earlier run (`Options.documentFile`): until the
    /// subscriptions of that run are ready again, or if it had none, until the quiescence limit.
    public var hasStaleDocuments: Bool { engine.hasStaleDocuments }

    /// The server's response that opened the present or the last connection, and that connection;
    /// nil before the first one. By SockJS it is the response to the first poll.
    public var opened: Opened? { engine.opened }

    /// The protocol version that was agreed; nil unless connected.
    public var version: String? { engine.version }

    // MARK: Handlers; the last one set counts. Calls that wait for their executor when a handler is
    // replaced or removed still run, unless the client is closed.

    /// Called with each change of the status. A wait for a network is reported once, by the failure
    /// that led to it or by `.connect`; the status is then `.offline`, and may have been before.
    public func onStatus(
        @_inheritActorContext _ handler: (@Sendable @isolated(any) (StatusChange) -> Void)?
    ) {
        let handler = Handler(handler)
        set { [dispatcher, stateHub] in
            $0.status = { change in
                let change = StatusChange(change)
                stateHub.update { change.status }
                guard let handler else { return }
                dispatcher.run(on: handler.isolation) { handler.call(change) }
            }
        }
    }

    /// Called each time a connection is open, always on the loop's thread, because the connection
    /// waits for its end: the calls that it makes with `send` go before all calls that waited for a
    /// connection, after the login with a token. One with `DDPCallOptions.wait` is finished before
    /// the others are sent. It must not block: everything else on the loop, also each time limit,
    /// waits for it.
    public func onOpen(_ handler: (@Sendable () -> Void)?) { set { $0.open = handler } }

    /// Called with the changes of the local documents that were made together, by the server or by
    /// a stub. Live queries are reported after them.
    public func onChanges(
        @_inheritActorContext _ handler: (@Sendable @isolated(any) ([DDPChange]) -> Void)?
    ) {
        let handler = Handler(handler)
        set { [dispatcher] in
            $0.changed = handler.map { handler in
                let gathered = GatheredChanges()
                return { piece, _ in
                    guard let (changes, count) = gathered.add(piece) else { return }
                    dispatcher.run(on: handler.isolation, count: count) {
                        handler.call(changes.map { DDPChange($0) })
                    }
                }
            }
        }
    }

    /// Called with the collection of a live query that has ended by itself, because its regular
    /// expressions need too many steps for documents that have changed. The query has reported all
    /// changes before; its iterations throw the error, and `DDPLiveQuery.error` has it.
    public func onQueryEnd(
        @_inheritActorContext _ handler:
            (@Sendable @isolated(any) (_ collection: String, _ error: RealtimeError) -> Void)?
    ) {
        let handler = Handler(handler)
        set { [dispatcher] in
            $0.queryEnded = handler.map { handler in
                { ended in
                    dispatcher.run(on: handler.isolation) {
                        handler.call(ended.collection, ended.error)
                    }
                }
            }
        }
    }

    /// Called when the documents of an earlier run (`Options.documentFile`) have been replaced by
    /// those of the server. Not called if there were none.
    public func onCurrent(
        @_inheritActorContext _ handler: (@Sendable @isolated(any) () -> Void)?
    ) {
        let handler = Handler(handler)
        set { [dispatcher] in
            $0.current = handler.map { handler in
                { dispatcher.run(on: handler.isolation, handler.call) }
            }
        }
    }

    /// Called with what the server did not understand: its reason, and the message as JSON text if
    /// the server repeats it. The connection stays.
    public func onRefused(
        @_inheritActorContext _ handler: (
            @Sendable @isolated(any) (_ reason: String, _ offending: String?) -> Void
        )?
    ) {
        let handler = Handler(handler)
        set { [dispatcher] in
            $0.refused = handler.map { handler in
                { reason, offending in
                    let text = offending.map { String(decoding: $0, as: UTF8.self) }
                    let count = reason.utf8.count + (offending?.count ?? 0)
                    dispatcher.run(on: handler.isolation, count: count) {
                        handler.call(reason, text)
                    }
                }
            }
        }
    }

    /// Called with a line for what is out of the ordinary: messages that are ignored, lost
    /// connections, stubs that fail, and logins that are repeated.
    public func onDebug(
        @_inheritActorContext _ handler: (@Sendable @isolated(any) (String) -> Void)?
    ) {
        let handler = Handler(handler)
        set { [dispatcher] in
            $0.debug = handler.map { handler in
                { line in
                    dispatcher.run(on: handler.isolation, count: line.utf8.count) {
                        handler.call(line)
                    }
                }
            }
        }
    }

    private func set(_ change: (inout DDPHandlers) -> Void) {
        // Fails if the loop has ended; then no handler is called anyway.
        try? engine.setHandlers(change)
    }

    // MARK: Documents

    /// A collection of local documents. It is declared: its inserts, updates and removals change
    /// the local documents before the server has answered.
    /// - Parameter objectIDs: whether new documents get ObjectIDs of MongoDB, and not texts.
    public func collection(
        _ name: String, objectIDs: Bool = false
    ) throws(RealtimeError) -> DDPCollection {
        try engine.declare(name, ids: objectIDs ? .objectIDs : .strings)
        return DDPCollection(name: name, client: self)
    }

    /// Makes a collection a stream: its documents are events, as Rocket.Chat's servers send them.
    /// Nothing is merged or kept, so that the collection has no documents, and nothing is held back
    /// after a reconnect. Call it before the subscription.
    /// - Parameter handler: called with each message, at once and as the server has sent it. nil
    ///   makes the collection an ordinary one again.
    public func setStream(
        _ collection: String,
        @_inheritActorContext _ handler: (@Sendable @isolated(any) (DDPChange) -> Void)?
    ) throws(RealtimeError) {
        let handler = Handler(handler)
        try engine.setStream(
            collection,
            handler.map { [dispatcher] handler in
                { event in
                    dispatcher.run(on: handler.isolation, count: event.storedBytes) {
                        handler.call(DDPChange(event, in: collection, isInitial: false))
                    }
                }
            })
    }
}

extension DDPClient.Status {
    init(_ status: DDPStatus) {
        self =
            switch status {
            case .offline: .offline
            case .connecting: .connecting
            case .connected: .connected
            case .waiting: .waiting
            case .failed: .failed
            }
    }
}

extension DDPClient.StatusChange {
    init(_ change: DDPStatusChange) {
        status = DDPClient.Status(change.status)
        retryCount = change.retryCount
        retryIn = change.retryIn
        reason = change.reason
        error = change.error
    }
}
