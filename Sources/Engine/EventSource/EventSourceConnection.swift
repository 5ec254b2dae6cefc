import CShims
package import Session
import Synchronization
package import Wire

/// An event source on a loop: does the I/O for `EventSourceSession`. Any thread may call it; its
/// work (EventSourceDriver.swift) runs on the loop's thread.
///
/// Unchecked because its plain fields belong to the loop's owner (see `Loop.enter`).
package final class EventSourceConnection: HTTPSource<EventSourceSession, EventSourceHandlers>,
    @unchecked Sendable
{
    // Any thread.
    let listeners = EventSourceListeners()
    private let shared = Mutex(PublishedState())
    /// True if ids are kept only when the caller confirms them.
    private let confirms = Atomic<Bool>(false)

    // The loop's owner only.
    // The handlers that each event needs, one by one: the whole struct would be copied for each
    // event.
    @exclusivity(unchecked) var onMessage: EventSourceHandlers.Event?
    @exclusivity(unchecked) var onAny: EventSourceHandlers.Event?
    @exclusivity(unchecked) var onEvent: EventSourceHandlers.Event?
    @exclusivity(unchecked) var onDelivered: (() -> Void)?
    /// Incremented with each change of these handlers.
    @exclusivity(unchecked) var handlersAge = 0
    @exclusivity(unchecked) var recentListeners = RecentListeners()
    /// In memory of its own, because a property would be copied with each use (Swift 6.3.1).
    let parser: UnsafeMutablePointer<EventStreamParser>
    /// Bytes that arrived during a pause.
    @exclusivity(unchecked) var held = ByteBuffer()
    /// Set if the stream ended after the bytes in `held`.
    var heldEnd: HeldEnd?
    /// Incremented with each transfer that is dropped; bytes of an older one are not read.
    @exclusivity(unchecked) var attemptNumber = 0
    @exclusivity(unchecked) var hasDispatched = false
    /// `transfer.bytesReceived` when data last arrived.
    var notedBytes: UInt64 = 0
    /// `EventStreamParser.idCount` when the id was last taken over.
    var knownIDs: UInt64 = 0
    /// Ids are stored: each is taken over, or its event reported as delivered, after the event's
    /// handlers, not at the end of a read.
    var storesIDs = false
    /// True inside `read`. If `endsBody` is set, `read` ends the parser's body when it returns.
    var isReading = false
    var endsBody = false
    var writer: EventIDWriter?
    /// Why the source cannot be used. Set before the start.
    private(set) var unusable: RealtimeError?
    var unstored = UnstoredID()

    struct HeldEnd {
        var failure: HTTPFailure?
    }

    /// State that the caller may read at any time.
    struct PublishedState {
        var lastEventID = ""
        var origin = ""
        var reconnectionTime: Int64 = 0
        /// nil until the source starts.
        var idLocation: IDLocation?
        /// The id to write to the file; nil if it is written.
        var unwrittenID: String?
        /// Why the last id that was to be written is lost; nil if it is not.
        var lostID: RealtimeError?
        /// Whether the loop has yet to take over an id that the caller confirmed.
        var isConfirming = false
        /// Whether the stored id was reset, and no id was confirmed since.
        var isReset = false
    }

    /// Where the ids are stored. Fixed at the start, even if the URL changes (C14).
    struct IDLocation {
        let path: String?
        let key: String

        init(_ configuration: EventSourceConfiguration) {
            (path, key) = (configuration.idFile, configuration.key)
        }
    }

    package convenience init(url: String, on loop: Loop) throws(RealtimeError) {
        try loop.checkUsable()
        self.init(try EventSourceConfiguration(url: url), on: loop)
    }

    /// A source that cannot be used: once started, it ends with this error.
    package convenience init(failing error: RealtimeError, on loop: Loop) {
        self.init(EventSourceConfiguration(), on: loop)
        unusable = error
    }

    private override init(_ configuration: EventSourceConfiguration, on loop: Loop) {
        parser = .allocate(capacity: 1)
        parser.initialize(to: EventStreamParser())
        super.init(configuration, on: loop)
        optionsChanged(configuration)
    }

    package static func milliseconds(_ duration: Duration) -> Int64 {
        Int64(clamping: duration.clampedNanoseconds / 1_000_000)
    }

    deinit {
        parser.deinitialize(count: 1)
        parser.deallocate()
    }

    // MARK: State; any thread

    /// The id of the last event, or of the option; "" for none.
    package var lastEventID: String {
        // A handler that asks gets the id of its own event.
        if loop.isOwner, isReading { noteID() }
        return shared.withLock { $0.lastEventID }
    }

    /// The origin of the stream, after redirects.
    package var origin: String { shared.withLock { $0.origin } }

    /// Milliseconds before an attempt that follows a stable connection.
    package var reconnectionTime: Int64 { shared.withLock { $0.reconnectionTime } }

    var idLocation: IDLocation {
        shared.withLock { $0.idLocation } ?? options.read { IDLocation($0.pointee) }
    }

    func publish(_ change: (inout PublishedState) -> Void) { shared.withLock { change(&$0) } }

    override func optionsChanged(_ configuration: EventSourceConfiguration) {
        publish {
            $0.lastEventID = configuration.lastEventID ?? $0.lastEventID
            $0.origin = configuration.url.origin
            $0.reconnectionTime = EventSourceConnection.milliseconds(configuration.reconnectionTime)
        }
    }

    // MARK: Handlers

    /// Adds a listener for events of one type, at any time.
    /// - Returns: the token for `removeListener`.
    package func addListener(
        _ type: [UInt8], _ handle: @escaping EventSourceHandlers.Event
    ) throws(RealtimeError) -> UInt64 {
        try loop.checkUsable()
        return listeners.add(type, handle)
    }

    /// - Returns: whether the listener existed.
    package func removeListener(_ token: UInt64) throws(RealtimeError) -> Bool {
        try loop.checkUsable()
        return listeners.remove(token)
    }

    package func removeListeners(_ type: [UInt8]) throws(RealtimeError) {
        try loop.checkUsable()
        listeners.removeAll(of: type)
    }

    /// The types that have a listener, each once, sorted bytewise.
    package var listenedTypes: [[UInt8]] { listeners.types }

    override func takeHandlers() {
        super.takeHandlers()
        parser.pointee.reportsComments = handlers.comment != nil
        onMessage = handlers.message
        onAny = handlers.any
        onEvent = handlers.sink
        onDelivered = handlers.delivered
        storesIDs = handlers.storeID != nil || idLocation.path != nil
        handlersAge += 1
    }

    override func dropHandlers() {
        listeners.removeAll()
        super.dropHandlers()
    }

    // MARK: Use; any thread

    package override func start() throws(RealtimeError) {
        try checkOpen()
        try options.start(Self.begun) { options in publish { $0.idLocation = IDLocation(options) } }
        // In the next turn, because the errors of an id file would be reported inside this call.
        loop.enqueue { [self] in begin() }
    }

    /// Drops the connection and reconnects at once (C13).
    package func restart() throws(RealtimeError) {
        try checkRunning()
        loop.perform { [self] in restartNow() }
    }

    /// True if ids are kept when `confirm` is called; false if after their event's handlers.
    package var confirmsIDs: Bool {
        get { confirms.load(ordering: .relaxed) }
        set { confirms.store(newValue, ordering: .relaxed) }
    }

    /// The caller has processed the event with this id, and all before it, so the id may be kept.
    /// Also valid after the source was closed.
    package func confirm(id: String) throws(RealtimeError) {
        try loop.checkUsable()
        guard KeyedFile.isValid(id) else {
            throw RealtimeError(.invalidArgument, "the id contains a CR, LF or NUL")
        }
        let isFirst = shared.withLock { shared in
            shared.unwrittenID = id
            shared.isReset = false
            defer { shared.isConfirming = true }
            return !shared.isConfirming
        }
        if isFirst { loop.perform { [self] in takeConfirmedID() } }
    }

    /// Removes the id that is stored for this source (C14). The ids of later events are stored
    /// again.
    package func resetStoredID() throws(RealtimeError) {
        try loop.checkUsable()
        let location = idLocation
        guard let path = location.path else { throw RealtimeError(.state, "no id file is set") }
        shared.withLock { shared in
            shared.isReset = true
            if shared.unwrittenID != nil { shared.unwrittenID = "" }
        }
        var timeout = EventIDWriter.longLockTimeout
        try KeyedStore(path: path, format: .eventIDs).save(&timeout) { [(location.key, "")] }
        // Once more on the loop: an id that waits, or is being written now, would restore the
        // entry.
        loop.perform { [self] in forgetID() }
    }

    // MARK: HTTPSource, on the loop's thread

    override class var kind: String { "event source" }
    override class var purpose: String { "requesting an event stream" }
    override class var mayEndInCoding: Bool { true }

    override func transferBegan() { if !mayDeliver { transfer?.pause(true) } }

    override func dropTransfer() {
        super.dropTransfer()
        attemptNumber += 1
        notedBytes = 0
        hasDispatched = false
        held.removeAll(keeping: 0)
        heldEnd = nil
        endBody()
    }

    override func answered(_ head: ResponseHead, body: [UInt8]?, requestStarted: Instant?) {
        let answer = session?.received(
            head, body: body ?? [], canAuthorize: handlers.credentials != nil, now: Loop.now(),
            wallClock: Loop.wallClock(), random: randomFraction())
        switch answer {
        case nil: return
        case .open:
            setState(.open)
            publish { $0.origin = session?.origin ?? "" }
            log(.info, "\(configuration.url.displayName): the event stream is open")
            updateTimer()
            if let open = handlers.open { open(opened(head)) }
            if !isClosed { settleOpenings(nil) }
        case .again:
            Log.write(.debug, "redirected by \(head.status)")
            send()
        case .unauthorized: askCredentials(HTTPResponse(head, body: body ?? []))
        case .failed(let failure):
            dropTransfer()
            report(failure)
        }
    }

    override func received(_ body: UnsafeRawBufferPointer, by transfer: HTTPTransfer) {
        guard transfer === self.transfer, !takeRefusal(body) else { return }
        if configuration.idleTimeout > .zero {
            notedBytes = transfer.bytesReceived
            session?.received(now: Loop.now())
            updateTimer()
        }
        if held.isEmpty {
            let used = read(body)
            guard used < body.count, transfer === self.transfer else { return }
            // A handler paused the source; keep the rest.
            held.append(UnsafeRawBufferPointer(rebasing: body[used...]))
        } else {
            // Another thread paused and resumed before this thread noticed. The bytes held back
            // come first.
            held.append(body)
            readHeld()
        }
        // Later bytes wait in the transfer. `pauseChanged` is called after each pause.
        if !held.isEmpty, transfer === self.transfer { transfer.pause(true) }
    }

    override func ended(_ failure: HTTPFailure?, by transfer: HTTPTransfer) {
        guard transfer === self.transfer, !endRefusal() else { return }
        if held.isEmpty {
            transferEnded(failure)
        } else {
            heldEnd = HeldEnd(failure: failure)
        }
    }

    override func transferEnded(_ failure: HTTPFailure?) {
        if failure != nil { noteNetwork() }
        let failure = session?.ended(failure, now: Loop.now(), random: randomFraction())
        dropTransfer()
        if let failure { report(failure) }
    }

    override func note(_ failure: HTTPSourceFailure) {
        if let state = session?.state { setState(state) }
        if failure.isFatal { finishIDs() }
    }

    override var wakeUp: Instant? {
        let times = [super.wakeUp, unstored.unreported == nil ? nil : unstored.due]
        return times.compactMap { $0 }.min()
    }

    override func timeReached(_ now: Instant) {
        guard !isClosed else { return }
        if unstored.unreported != nil, now >= unstored.due { reportID() }
        if refusalReached(now) { return }
        noteBytes(now)
        let isDue = session?.wakeUp.map { $0 <= now } ?? false
        // The server's time begins when it has the request's body.
        let started = (isDue ? transfer?.bodyMoved(now) : nil) ?? transfer?.requestStarted
        let event = session?.timeReached(
            now, requestStarted: started, random: randomFraction())
        switch event {
        case nil, .nothing: updateTimer()
        case .begin: attempt()
        case .failed(let failure):
            dropConnection()
            report(failure)
        }
    }

    override func pauseChanged() {
        session?.setPaused(!mayDeliver, now: Loop.now())
        updateTimer()
        guard transfer != nil, refusal == nil else { return }
        if mayDeliver {
            readHeld()
            if mayDeliver { transfer?.pause(false) }
        } else {
            transfer?.pause(true)
        }
    }

    /// The loop's thread may be about to take over the id of an event whose handler has told this
    /// thread to close, and the program may end after that. A confirmed id is known already, but
    /// only the loop's thread passes it to `storeID`.
    override var closePatience: Duration? {
        guard let location = shared.withLock({ $0.idLocation }) else { return nil }
        let isTaken = location.path != nil && !confirmsIDs
        let isStored = isTaken || sharedHandlers.current.value.storeID != nil
        return isStored ? EventIDWriter.longLockTimeout : nil
    }

    /// Writes an id that the loop has not written, because the program may end after this.
    override func closeReturns() {
        do throws(RealtimeError) {
            try writeUnwrittenID()
        } catch {
            Log.write(.warning, error.message)
        }
    }

    override func closeNow() {
        noteID()
        finishIDs()
        super.closeNow()
    }

    override func loopClosed() {
        transfer = nil
        finishIDs()
        super.loopClosed()
    }
}
