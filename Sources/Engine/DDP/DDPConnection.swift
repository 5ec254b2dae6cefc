package import Documents
package import Session
import Synchronization
package import Wire

/// A client of a Meteor server on a loop: does the I/O for `DDPSession`. Any thread may call it.
///
/// Calls, stubs and reads happen at once, on the calling thread; what they cause is reported on the
/// loop's thread (DDPDriver.swift).
///
/// Unchecked because its plain fields belong to the loop's owner (see `Loop.enter`).
package final class DDPConnection:
    ClientDriver<DDPSharedSession, DDPClientConfiguration, DDPHandlers>, @unchecked Sendable
{
    /// The same as `session`, which belongs to the loop's owner as a variable.
    let shared: DDPSharedSession
    // Only with its lock.
    @exclusivity(unchecked) var stubs: [ByteText: DDPStub] = [:]

    // The loop's owner only.
    @exclusivity(unchecked) var socket: (any DDPSocket)?
    /// The number of the socket.
    var socketNumber: UInt64 = 0
    @exclusivity(unchecked) var reader = DDPReader()
    /// Live queries that have not reported all changes by positions.
    @exclusivity(unchecked) var indexFeeds: [DDPIndexFeed] = []
    /// The notification that is being passed on.
    @exclusivity(unchecked) private var delivery: DDPDelivery?
    @exclusivity(unchecked) private var budget = TurnBudget()
    /// Documents, or reports of them, wait for the next turn: nothing is received meanwhile.
    @exclusivity(unchecked) private(set) var isBusy = false
    /// Everything must be done in this turn.
    @exclusivity(unchecked) var isUrgent = false
    @exclusivity(unchecked) var cookies: CookieJar
    @exclusivity(unchecked) var choice = DDPTransportChoice(mayFallBack: true)
    /// The server has confirmed the connection of the socket.
    var isConfirmed = false

    package convenience init(url: String, on loop: Loop) throws(RealtimeError) {
        try loop.checkUsable()
        self.init(DDPClientConfiguration(try DDPAddress(parsing: url)), on: loop)
    }

    private init(_ configuration: DDPClientConfiguration, on loop: Loop) {
        shared = DDPSharedSession(DDPSession(configuration.session))
        cookies = CookieJar(host: configuration.address.webSocket.host)
        super.init(shared, configuration, on: loop)
    }

    /// Why the file for the token does not have the present one; nil if it has. Any thread.
    package var tokenFault: RealtimeError? { shared.locked { shared.tokenFault } }

    /// Ends `connect(timeout:)` of other threads with `.cancelled`, or the next one.
    package override func interrupt() throws(RealtimeError) {
        try loop.checkNotForked()
        let answers = shared.locked {
            shared.isInterrupted = shared.connects.isEmpty
            return exchange(&shared.connects, with: [:])
        }
        for answer in answers.values { answer.set(Inbox.interrupted) }
    }

    // MARK: ClientDriver

    override class var kind: String { "client" }
    override class var begun: String { "the client is used" }

    override func willReachTime() { noteSentBytes() }

    override func performNext() -> Bool {
        guard delivery == nil else { return inTurn { deliver() } }
        // To report changes by positions takes long, too.
        guard indexFeeds.isEmpty || mayContinue() else { return false }
        let (next, isFlushing) = shared.locked {
            let action = shared.session.nextAction()
            return (
                action.map { ($0, shared.session.isForNewHandlers) }, shared.session.isFlushing
            )
        }
        guard let (action, isForNewHandlers) = next else {
            if isFlushing { return inTurn { continueFlush() } }
            setBusy(false)
            return reportIndexes()
        }
        if isForNewHandlers { handlersChanged() }
        switch action {
        case .command(let command): perform(command)
        case .report(.changed(let notification)): pass(DDPDelivery(notification, handlers))
        case .report(let report):
            reportIndexes()
            // A handler may have closed the client, which must not lose a new token.
            if !isClosed { self.report(report) } else { keepLast(report) }
        }
        return true
    }

    // MARK: Long work

    override var mustContinue: Bool { isBusy }

    /// Whether some work may be done now. If this turn's time is over, it follows in the next one.
    private func mayContinue() -> Bool {
        guard !isUrgent, budget.isSpent(on: loop) else { return true }
        setBusy(true)
        return false
    }

    private func inTurn(_ work: () -> Void) -> Bool {
        guard mayContinue() else { return false }
        work()
        return true
    }

    /// Passes a notification on: at once, as almost all, or in pieces.
    private func pass(_ delivery: consuming DDPDelivery) {
        guard delivery.isShort else { return self.delivery = delivery }
        while !isClosed, !delivery.isOver { delivery.deliver(to: self) }
    }

    private func deliver() {
        // Taken out, because a handler may close the client.
        guard var current = exchange(&delivery, with: nil) else { return }
        current.deliver(to: self)
        if !isClosed, !current.isOver { delivery = current }
    }

    private func continueFlush() {
        shared.locked { shared.session.continueFlush(Loop.now()) }
    }

    private func setBusy(_ isBusy: Bool) {
        guard isBusy != self.isBusy else { return }
        self.isBusy = isBusy
        pauseChanged()
    }

    /// Receiving is paused by the program, or until earlier documents are passed on.
    var isHeld: Bool { isPaused || isBusy }

    /// The calling thread may cause something next that the loop reports before it hears of them.
    override func handlersSet() { shared.locked { shared.session.handlersSet() } }

    override func takeHandlers() {
        // First, because others may be set meanwhile.
        shared.locked { shared.session.handlersTaken() }
        super.takeHandlers()
        let wantsLog = handlers.debug != nil
        shared.locked { shared.session.wantsLog = wantsLog }
    }

    override func setUp() {
        choice = DDPTransportChoice(mayFallBack: configuration.mayFallBack)
        reader = DDPReader(maximumBytes: configuration.receiveLimit)
    }

    override func noteNetwork() {
        let isReachable = isReachable
        if isReachable { choice.networkChanged() }
        shared.locked {
            shared.session.networkChanged(isReachable: isReachable, now: Loop.now())
        }
    }

    /// Pauses the socket once the connection is confirmed, or continues. Pauses are for programs
    /// that cannot keep up: calls are sent, but nothing is received.
    override func pauseChanged() {
        let isConnected = shared.locked {
            guard shared.session.status == .connected else { return false }
            shared.session.setPaused(isHeld)
            return true
        }
        if isConnected { socket?.setPaused(isHeld) }
    }

    /// The end.
    override func closeNow() {
        keepLastDocuments()
        sendLast()
        // So that the server does not keep the session.
        dropSocket(saying: shared.locked { shared.session.hasGreeted } ? DDPWriter.disconnect : nil)
        shared.removeAll(DDPSession(configuration.session))
        (indexFeeds, delivery) = ([], nil)
        shared.tellChangeObservers(nil)
        let oldStubs = shared.locked { DDPSendable(exchange(&stubs, with: [:])) }
        withExtendedLifetime(oldStubs) {}
        super.closeNow()
    }

    package override func close() {
        // A stub has the lock.
        guard !shared.isOwned else {
            if !loop.isForked, gate.close() { loop.enqueue { [self] in closeNow() } }
            return
        }
        super.close()
    }

    /// Not later: a program may end before the loop turns again.
    override func closing() { keepLastDocuments() }

    // MARK: Using the machine; any thread

    /// Makes the session from the options, once. The lock is held.
    private func prepare() {
        guard !shared.isPrepared else { return }
        shared.isPrepared = true
        start()
        let options = options.read { $0.pointee }
        var token: DDPLoginToken?
        if case .known(let kept) = keptLogin(options, sharedHandlers.current.value) { token = kept }
        shared.session = DDPSession(
            options.session, store: options.emptyStore,
            jitter: UInt64(randomFraction() * 0x1p53), token: token)
        guard let file = DDPDocumentFile(options) else { return }
        shared.documentFile = file
        shared.session.keepDocuments(file.load())
    }

    /// Reads or writes documents.
    private func reading<Result: Sendable, Failure: Error>(
        _ body: (DDPSharedSession) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try shared.locked { () throws(Failure) in
            prepare()
            return try body(shared)
        }
    }

    /// Passes something to the machine. The actions that result follow in the loop's turn.
    private func changing<Result: Sendable, Failure: Error>(
        _ body: (DDPSharedSession) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let isInside = shared.isOwned
        // Never with the lock: a stub's outermost call does it at its end.
        defer { if !isInside { onLoop {} } }
        let wantsLog = sharedHandlers.current.value.debug != nil
        return try reading { shared throws(Failure) in
            shared.takeContext()
            shared.session.wantsLog = wantsLog
            return try body(shared)
        }
    }

    // MARK: State

    package var status: DDPStatus {
        isClosed ? .offline : reading { $0.session.status }
    }

    package var connectionState: ConnectionState {
        isClosed ? .closed : reading { $0.session.connectionState }
    }

    /// Failed attempts in a row.
    package var retryCount: Int { reading { $0.session.retryCount } }

    /// The time until the next attempt; nil unless waiting for it.
    package var retryIn: Duration? {
        reading { $0.session.retryDue }.map { max($0 - Loop.now(), .zero) }
    }

    /// Why the client has failed; "" otherwise.
    package var failureReason: String { reading { $0.session.failureReason } }

    /// Whether some documents are of an earlier run, and the server has not sent them again yet.
    package var hasStaleDocuments: Bool { reading { $0.session.hasStaleDocuments } }

    /// The protocol version that was agreed; nil unless connected.
    package var version: String? { reading { $0.session.version } }

    /// The user who is logged in; nil for nobody. Until the first connection has logged in, that of
    /// the token.
    package var userID: String? { reading { $0.session.userID } }

    package var isLoggingIn: Bool { reading { $0.session.isLoggingIn } }

    /// The document of the user who is logged in; nil if nobody is, or it is not there.
    package var userDocument: Found? { reading { $0.session.userDocument } }

    /// The server's response that opened the last connection, and that connection; nil before the
    /// first one.
    package var opened: Opened? { reading { $0.opened } }

    // MARK: Connecting

    /// Connects, or makes the next attempt at once.
    /// - Throws: `.store` if the file for the token or for the documents cannot be used;
    ///   `.invalidArgument` if the program keeps the token, and a file, too, or if both files are
    ///   the same.
    package func connect() throws(RealtimeError) {
        try checkOpen()
        let options = options.read { $0.pointee }
        guard options.tokenFile == nil || sharedHandlers.current.value.loadToken == nil else {
            throw RealtimeError(
                .invalidArgument,
                "the login is kept both by a token file and by the program's own functions; "
                    + "use one of them")
        }
        guard options.tokenFile == nil || !options.tokenFile.hasSameBytes(as: options.documentFile)
        else {
            throw RealtimeError(
                .invalidArgument, "the token and the documents are kept in the same file; use two")
        }
        try DDPTokenFile(options)?.check()
        try DDPDocumentFile(options)?.check()
        changing { $0.session.connect(now: Loop.now()) }
    }

    /// Connects again, also if the connection is fine.
    package func reconnect() throws(RealtimeError) {
        try checkOpen()
        changing { $0.session.reconnect(now: Loop.now()) }
    }

    /// Ends the connection and all attempts. Calls and subscriptions wait for the next `connect`.
    package func disconnect() throws(RealtimeError) {
        try checkOpen()
        changing { $0.session.disconnect(now: Loop.now()) }
    }

    /// Takes over what the program knows about the network.
    package func networkChanged(isReachable: Bool) throws(RealtimeError) {
        try checkOpen()
        changing { $0.session.hostReportsNetwork(isReachable: isReachable, now: Loop.now()) }
    }

    /// The program knows that the network is back: an attempt that waits is made at once, and a
    /// ping checks a connection.
    package func retryNow() throws(RealtimeError) {
        try checkOpen()
        changing { $0.session.retryNow(Loop.now()) }
    }

    /// The program moves to the background: the connection is kept for a while, and no attempt is
    /// made.
    package func enterBackground() throws(RealtimeError) {
        try checkOpen()
        changing { $0.session.enterBackground(now: Loop.now()) }
    }

    package func enterForeground() throws(RealtimeError) {
        try checkOpen()
        changing { $0.session.enterForeground(now: Loop.now()) }
    }

    // MARK: Subscriptions

    /// Subscribes now or as soon as there is a connection, and again after each loss. Equal
    /// subscriptions are shared.
    /// - Parameter keep: how long it is kept after its last use; nil for the default.
    package func subscribe(
        _ name: String, _ params: [EJSON] = [], keep: Duration? = nil,
        _ handlers: DDPSubscriptionHandlers = .init()
    ) throws(RealtimeError) -> DDPSession.SubscriptionHandle {
        try checkOpen()
        for value in params { try value.checkDepth("a parameter") }
        return changing { shared in
            let handle = shared.session.subscribe(
                name, params, keep: keep, drawing: &shared.entropy, now: Loop.now())
            shared.subscriptions[handle] = handlers
            return handle
        }
    }

    package func isReady(_ handle: DDPSession.SubscriptionHandle) -> Bool {
        reading { $0.session.isReady(handle) }
    }

    /// Gives a subscription up. After its last use it is kept for a while.
    package func release(_ handle: DDPSession.SubscriptionHandle) throws(RealtimeError) {
        try checkOpen()
        end(handle) { $0.session.release(handle, now: Loop.now()) }
    }

    /// Gives a subscription up. If nobody else uses it, it ends at once.
    package func stop(_ handle: DDPSession.SubscriptionHandle) throws(RealtimeError) {
        try checkOpen()
        end(handle) { $0.session.stop(handle, now: Loop.now()) }
    }

    private func end(
        _ handle: DDPSession.SubscriptionHandle, _ body: (DDPSharedSession) -> Void
    ) {
        // Released without the lock.
        let old = changing { shared in
            body(shared)
            // Otherwise its end is reported.
            guard !shared.session.configuration.reportsOwnStops else {
                return DDPSubscriptionHandlers?.none
            }
            return shared.subscriptions.removeValue(forKey: handle)
        }
        withExtendedLifetime(old) {}
    }

    // MARK: Documents

    /// Declares a collection, so that the stubs of its methods insert, update and remove exist.
    package func declare(
        _ collection: String, ids: NewDocumentIDs = .strings
    ) throws(RealtimeError) {
        try checkOpen()
        reading { $0.session.declare(collection, ids: ids) }
    }

    /// The fields of a document, without its id; nil if it is not there.
    package func document(_ key: DocumentKey) -> EJSONObject? {
        reading { $0.session.store.document(key) }
    }

    package func count(of collection: String) -> Int {
        reading { $0.session.store.count(of: collection) }
    }

    /// - Throws: `.invalidArgument` for a query that takes too long: see `SearchBudget`.
    package func find(
        _ query: Query, in collection: String
    ) throws(RealtimeError) -> [Found] {
        // In a copy, so that a long search holds up neither the loop nor other threads.
        try reading { $0.session.store.collection(collection) }?.find(query) ?? []
    }

    // MARK: Locked access

    func read<Result: Sendable, Failure: Error>(
        _ body: (DDPSharedSession) throws(Failure) -> Result
    ) throws(Failure) -> Result { try reading(body) }

    func change<Result: Sendable, Failure: Error>(
        _ body: (DDPSharedSession) throws(Failure) -> Result
    ) throws(Failure) -> Result { try changing(body) }
}

/// A handler that is only called on the loop's thread.
struct DDPSendable<Value>: @unchecked Sendable {
    let value: Value

    init(_ value: Value) { self.value = value }
}
