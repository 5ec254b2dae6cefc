import CShims
package import Session
import Synchronization
package import Wire

/// An event source on a loop: the hands to `EventSourceSession`'s brain. Calls come from any
/// thread; the source's own work (EventSourceDriver.swift) happens on the loop's.
///
/// Unchecked because its plain fields belong to the loop's owner (see `Loop.enter`).
package final class EventSourceConnection: HTTPSource<EventSourceSession, EventSourceHandlers>,
    @unchecked Sendable
{
    // Any thread.
    let listeners = EventSourceListeners()
    private let shared = Mutex(Shared())
    /// Ids are kept when the caller confirms them.
    private let confirms = Atomic<Bool>(false)

    // The loop's owner only.
    // Those that each event needs, by themselves: the whole struct would be copied for each.
    @exclusivity(unchecked) var onMessage: EventSourceHandlers.Event?
    @exclusivity(unchecked) var onAny: EventSourceHandlers.Event?
    @exclusivity(unchecked) var onEvent: EventSourceHandlers.Event?
    /// Grows with each change of them.
    @exclusivity(unchecked) var handlersAge = 0
    @exclusivity(unchecked) var recentListeners = RecentListeners()
    /// In memory of its own: as a property it would be copied with each use (Swift 6.3.1).
    let parser: UnsafeMutablePointer<EventStreamParser>
    /// Bytes that came and were not wanted then, by a pause.
    @exclusivity(unchecked) var held = ByteBuffer()
    /// The stream ended behind what is held.
    var heldEnd: HeldEnd?
    /// Grows with each transfer that is dropped: bytes of an older one are not read on.
    @exclusivity(unchecked) var attemptNumber = 0
    @exclusivity(unchecked) var hasDispatched = false
    /// Of the transfer's, when something was heard of it last.
    var bytesHeard: UInt64 = 0
    /// `EventStreamParser.idCount` when the id was taken notice of.
    var knownIDs: UInt64 = 0
    /// Inside `read`; and its parser is to be told of the body's end behind it.
    var isReading = false
    var endsBody = false
    var writer: EventIDWriter?
    var unstored = UnstoredID()

    struct HeldEnd {
        var failure: HTTPFailure?
    }

    /// What the caller may ask for at any time.
    struct Shared {
        var lastEventID = ""
        var origin = ""
        var reconnectionTime: Int64 = 0
        /// nil before it starts.
        var idPlace: IDPlace?
    }

    /// Where its ids are kept: as it was at the start, whatever URLs follow (C14).
    struct IDPlace {
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

    // MARK: What it is; any thread

    /// Of the last event, or of the option; "" for none.
    package var lastEventID: String {
        // A handler asks for its own event's.
        if loop.isOwner, isReading { noteID() }
        return shared.withLock { $0.lastEventID }
    }

    /// Where the stream comes from, after redirects.
    package var origin: String { shared.withLock { $0.origin } }

    /// Milliseconds before an attempt that follows a stable connection.
    package var reconnectionTime: Int64 { shared.withLock { $0.reconnectionTime } }

    var idPlace: IDPlace {
        shared.withLock { $0.idPlace } ?? options.read { IDPlace($0.pointee) }
    }

    func publish(_ change: (inout Shared) -> Void) { shared.withLock { change(&$0) } }

    override func optionsChanged(_ configuration: EventSourceConfiguration) {
        publish {
            $0.lastEventID = configuration.lastEventID ?? $0.lastEventID
            $0.origin = configuration.url.origin
            $0.reconnectionTime = EventSourceConnection.milliseconds(configuration.reconnectionTime)
        }
    }

    // MARK: Handlers

    /// Adds a listener for events of one type, at any time.
    /// - Returns: what `removeListener` takes.
    package func addListener(
        _ type: [UInt8], _ handle: @escaping EventSourceHandlers.Event
    ) throws(RealtimeError) -> UInt64 {
        try loop.checkUsable()
        return listeners.add(type, handle)
    }

    /// - Returns: whether there was one.
    package func removeListener(_ token: UInt64) throws(RealtimeError) -> Bool {
        try loop.checkUsable()
        return listeners.remove(token)
    }

    package func removeListeners(_ type: [UInt8]) throws(RealtimeError) {
        try loop.checkUsable()
        listeners.removeAll(of: type)
    }

    /// Types with a listener, each once, sorted bytewise.
    package var listenedTypes: [[UInt8]] { listeners.types }

    override func takeHandlers() {
        super.takeHandlers()
        parser.pointee.reportsComments = handlers.comment != nil
        onMessage = handlers.message
        onAny = handlers.any
        onEvent = handlers.sink
        handlersAge += 1
    }

    override func dropHandlers() {
        listeners.removeAll()
        super.dropHandlers()
    }

    // MARK: Use; any thread

    package override func start() throws(RealtimeError) {
        try checkOpen()
        try options.start(Self.begun) { options in publish { $0.idPlace = IDPlace(options) } }
        // In the next turn: what is told of an id file would be told inside this call.
        loop.enqueue { [self] in begin() }
    }

    /// Drops the connection and reconnects at once (C13).
    package func restart() throws(RealtimeError) {
        try checkRunning()
        loop.perform { [self] in restartNow() }
    }

    /// Whether ids are kept when `confirm` says so, instead of after their event's handlers.
    package var confirmsIDs: Bool {
        get { confirms.load(ordering: .relaxed) }
        set { confirms.store(newValue, ordering: .relaxed) }
    }

    /// The event with this id is done with, and all before it: the id may be kept. Also when the
    /// source is closed.
    package func confirm(id: String) throws(RealtimeError) {
        try loop.checkUsable()
        guard EventIDFile.isValid(id: id) else {
            throw RealtimeError(.invalidArgument, "the id has a CR, LF or NUL")
        }
        loop.perform { [self] in keepID(id) }
    }

    /// Takes the id away that is stored for this source (C14); those of later events are stored.
    package func resetStoredID() throws(RealtimeError) {
        try loop.checkUsable()
        let place = idPlace
        guard let path = place.path else { throw RealtimeError(.state, "no id file is set") }
        var patience = EventIDWriter.longPatience
        try EventIDStore(path: path).save(&patience) { [(place.key, "")] }
        // And once more there: an id that waits, or is being written now, would bring it back.
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
        bytesHeard = 0
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
        case .again:
            Log.write(.debug, "redirected by \(head.status)")
            send()
        case .unauthorized: askCredentials(HTTPResponse(head, body: body ?? []))
        case .failed(let failure):
            dropTransfer()
            tell(failure)
        }
    }

    override func received(_ body: UnsafeRawBufferPointer, by transfer: HTTPTransfer) {
        guard transfer === self.transfer, !takeRefusal(body) else { return }
        if configuration.idleTimeout > .zero {
            bytesHeard = transfer.bytesReceived
            session?.received(now: Loop.now())
            updateTimer()
        }
        if held.isEmpty {
            let used = read(body)
            guard used < body.count, transfer === self.transfer else { return }
            // Paused inside: the rest waits here.
            held.append(UnsafeRawBufferPointer(rebasing: body[used...]))
        } else {
            // A pause of another thread's is over before this one has heard of it: what it held
            // back is first.
            held.append(body)
            readHeld()
        }
        // What comes later waits in the transfer; `pauseChanged` follows each pause.
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
        let failure = session?.ended(failure, now: Loop.now(), random: randomFraction())
        dropTransfer()
        if let failure { tell(failure) }
    }

    override func note(_ failure: HTTPSourceFailure) {
        if let state = session?.state { setState(state) }
        if failure.isFatal { finishIDs() }
    }

    override var wakeUp: Instant? {
        let times = [super.wakeUp, unstored.untold == nil ? nil : unstored.due]
        return times.compactMap { $0 }.min()
    }

    override func timeReached(_ now: Instant) {
        guard !isClosed else { return }
        if unstored.untold != nil, now >= unstored.due { tellID() }
        if refusalReached(now) { return }
        hearBytes(now)
        let event = session?.timeReached(
            now, requestStarted: transfer?.requestStarted, random: randomFraction())
        switch event {
        case nil, .nothing: updateTimer()
        case .begin: attempt()
        case .failed(let failure):
            dropConnection()
            tell(failure)
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
