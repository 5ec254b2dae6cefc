import CShims
package import Session
import Synchronization
package import Wire

/// An event source on a loop: the hands to `EventSourceSession`'s brain. Calls come from any
/// thread; the source's own work (EventSourceDriver.swift) happens on the loop's.
///
/// Unchecked because its plain fields belong to the loop's owner (see `Loop.enter`).
package final class EventSourceConnection: @unchecked Sendable {
    package let loop: Loop

    // Any thread.
    let options: StagedOptions<EventSourceConfiguration>
    private let stateNumber = Atomic<Int32>(EventSourceState.connecting.rawValue)
    let gate = DeliveryGate()
    /// The loop's thread is about to look whether it is paused.
    let isPauseNoted = Atomic<Bool>(false)
    private let sharedHandlers = SharedHandlers(EventSourceHandlers())
    let listeners = EventSourceListeners()
    private let shared = Mutex(Shared())
    /// Ids are kept when the caller confirms them.
    private let confirms = Atomic<Bool>(false)

    // The loop's owner only.
    /// As they were when the attempt began.
    @exclusivity(unchecked) var configuration: EventSourceConfiguration
    @exclusivity(unchecked) var handlers = EventSourceHandlers()
    // Those that each event needs, by themselves: the whole struct would be copied for each.
    @exclusivity(unchecked) var onMessage: EventSourceHandlers.Event?
    @exclusivity(unchecked) var onAny: EventSourceHandlers.Event?
    @exclusivity(unchecked) var onEvent: EventSourceHandlers.Event?
    /// Grows with each change of them.
    @exclusivity(unchecked) var handlersAge = 0
    @exclusivity(unchecked) var recentListeners = RecentListeners()
    @exclusivity(unchecked) var session: EventSourceSession?
    /// In memory of its own: as a property it would be copied with each use (Swift 6.3.1).
    let parser: UnsafeMutablePointer<EventStreamParser>
    var transfer: HTTPTransfer?
    let timer = LoopTimer()
    var upkeep = HTTPSourceUpkeep()
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

    package init(url: String, on loop: Loop) throws(RealtimeError) {
        try loop.checkUsable()
        self.loop = loop
        let configuration = try EventSourceConfiguration(url: url)
        self.configuration = configuration
        options = StagedOptions(configuration, of: "event source")
        parser = .allocate(capacity: 1)
        parser.initialize(to: EventStreamParser())
        shared.withLock {
            $0.origin = configuration.url.origin
            $0.reconnectionTime = EventSourceConnection.milliseconds(configuration.reconnectionTime)
        }
    }

    package static func milliseconds(_ duration: Duration) -> Int64 {
        Int64(clamping: duration.clampedNanoseconds / 1_000_000)
    }

    deinit {
        parser.deinitialize(count: 1)
        parser.deallocate()
    }

    // MARK: What it is; any thread

    package var state: EventSourceState {
        if loop.isClosed.load(ordering: .acquiring) { return .closed }
        return EventSourceState(rawValue: stateNumber.load(ordering: .acquiring)) ?? .closed
    }

    /// Whether `start` was called.
    package var wasStarted: Bool { options.isStarted }

    /// As it was set last.
    package var url: String { options.read { $0.configuration.url.text } }

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

    func setState(_ state: EventSourceState) {
        stateNumber.store(state.rawValue, ordering: .releasing)
    }

    var idPlace: IDPlace {
        shared.withLock(\.idPlace) ?? options.read { IDPlace($0.configuration) }
    }

    func publish(_ change: (inout Shared) -> Void) { shared.withLock { change(&$0) } }

    /// Whether it was closed, or given back, as it is with its loop.
    var isClosed: Bool {
        gate.isClosed || loop.isClosed.load(ordering: .acquiring)
    }

    var mayDeliver: Bool { gate.isOpen && !loop.isClosed.load(ordering: .acquiring) }

    // MARK: Options and handlers

    /// Changes options: before start, in a handler that says so, or while credentials are awaited.
    package func configure(
        _ change: (inout EventSourceConfiguration) throws -> Void
    ) throws {
        try changeOptions { options in
            try change(&options.configuration)
            if !options.isStarted { publish(options.configuration) }
        }
    }

    /// Changes options that are taken when it is started: ids, the time that a stream may change
    /// and the parser's limits. Before start alone.
    package func configureOnce(
        _ change: (inout EventSourceConfiguration) throws -> Void
    ) throws {
        try loop.checkUsable()
        try options.changeOnce { options in
            try change(&options.configuration)
            publish(options.configuration)
        }
    }

    private func publish(_ configuration: EventSourceConfiguration) {
        publish {
            $0.lastEventID = configuration.lastEventID ?? $0.lastEventID
            $0.origin = configuration.url.origin
            $0.reconnectionTime = EventSourceConnection.milliseconds(configuration.reconnectionTime)
        }
    }

    private func changeOptions(
        _ change: (inout StagedOptions<EventSourceConfiguration>.State) throws -> Void
    ) throws {
        try loop.checkUsable()
        try options.change(isAsked: loop.isOwner && upkeep.mayReconfigure, change)
    }

    /// Changes where the next attempt goes; as `configure`.
    package func setURL(_ url: String) throws {
        let url = try HTTPURL(parsing: url, as: .http)
        try configure { $0.url = url }
    }

    /// Whether the server can be reached is asked here; nil asks the loop's own.
    package func setReachability(_ reachability: Reachability?) throws {
        guard reachability.map({ $0.loop === loop }) ?? true else {
            throw RealtimeError(
                .invalidArgument, "the reachability belongs to another loop than the event source")
        }
        try changeOptions { $0.reachability = reachability }
    }

    /// Changes handlers, at any time.
    package func setHandlers(_ change: (inout EventSourceHandlers) -> Void) throws(RealtimeError) {
        try loop.checkUsable()
        sharedHandlers.change(change)
        loop.perform { [self] in handlersChanged() }
    }

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

    /// The handlers as they are now, for the loop's thread.
    func takeHandlers() {
        handlers = sharedHandlers.current
        parser.pointee.tellsComments = handlers.comment != nil
        onMessage = handlers.message
        onAny = handlers.any
        onEvent = handlers.sink
        handlersAge += 1
    }

    /// Lets go of all handlers: nothing is told any more.
    func dropHandlers() {
        let old = handlers
        sharedHandlers.change { $0 = EventSourceHandlers() }
        listeners.removeAll()
        takeHandlers()
        withExtendedLifetime(old) {}
    }

    // MARK: Use; any thread

    /// Begins to connect; nothing is told inside this call.
    package func start() throws(RealtimeError) {
        try loop.checkUsable()
        guard !isClosed else { throw RealtimeError(.closed, "the event source is closed") }
        try options.start { options in publish { $0.idPlace = IDPlace(options) } }
        // In the next turn: what is told of an id file would be told inside this call.
        loop.enqueue { [self] in begin() }
    }

    /// Drops the connection and reconnects at once (C13).
    package func restart() throws(RealtimeError) {
        try checkRunning()
        loop.perform { [self] in restartNow() }
    }

    /// Answers what had been left open when credentials were asked for: fresh ones are set, or the
    /// object fails. Any thread.
    /// - Parameter cause: why there are none; nil for the server's refusal.
    package func credentialsAreReady(
        _ fresh: Bool, because cause: RealtimeError? = nil
    ) throws(RealtimeError) {
        try checkRunning()
        // In the next turn: what fails at once would be told inside this call.
        loop.enqueue { [self] in credentialsCame(fresh, because: cause) }
    }

    private func checkRunning() throws(RealtimeError) {
        try loop.checkUsable()
        guard wasStarted else { throw RealtimeError(.state, "the event source was not started") }
        guard state != .closed else { throw RealtimeError(.closed, "the event source is closed") }
    }

    /// Ends it for good, without a callback. Closing again changes nothing.
    package func close() {
        guard !loop.isForked else { return }
        let isFirst = gate.close()
        setState(.closed)
        guard isFirst else { return }
        loop.perform { [self] in closeNow() }
    }

    /// Stops delivering; TCP slows the server down. Any thread; from another than the loop's one
    /// event may still come.
    package func pause() throws(RealtimeError) {
        try loop.checkUsable()
        guard gate.pause(), hasPauseNews() else { return }
        loop.perform { [self] in pauseChanged() }
    }

    package func resume() throws(RealtimeError) {
        try loop.checkUsable()
        // In the next turn, as handlers are called by turns alone, and none inside another.
        guard gate.resume(), hasPauseNews() else { return }
        loop.enqueue { [self] in pauseChanged() }
    }

    /// Whether the loop's thread is to be told: not while it has yet to hear of the last change.
    private func hasPauseNews() -> Bool {
        !isPauseNoted.exchange(true, ordering: .acquiringAndReleasing)
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
        guard EventIDFile.isFit(id: id) else {
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
}
