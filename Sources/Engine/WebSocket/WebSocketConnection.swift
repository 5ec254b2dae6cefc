import CShims
package import Session
import Synchronization
package import Wire

/// Where a connection stands; the numbers are the C ABI's.
public enum WebSocketState: Int32, Sendable {
    case new = 0
    case connecting = 1
    case open = 2
    case closing = 3
    case closed = 4
    /// Lost; the next attempt is waited for.
    case waiting = 5
}

/// A WebSocket on a loop: the hands to the brains of `WebSocketLife`, which decides what becomes of
/// it, and of `WebSocketSession`, which reads and writes. Calls come from any thread; the
/// connection's own work (WebSocketDriver.swift) happens on the loop's.
///
/// Unchecked because its plain fields belong to the loop's owner (see `Loop.enter`). Before
/// `start`, any thread changes options and handlers while it holds `setting`. After `start`, only
/// the loop's owner touches them, without that lock.
package final class WebSocketConnection: @unchecked Sendable {
    package let loop: Loop
    let pool: WebSocketPool
    // Exclusive access to these is by `setting`, then by the loop's claim; the dynamic check of
    // each would cost a tenth of a message.
    @exclusivity(unchecked) private var options: Shared<WebSocketConfiguration>
    /// Those options that senders on any thread look at.
    let sendLimits = SendLimits()
    @exclusivity(unchecked) var handlers = WebSocketHandlers()

    // Any thread. Memory is by this order: small properties stand together, in the gaps of others.
    private let stateNumber = Atomic<Int32>(WebSocketState.new.rawValue)
    /// Every setter holds it, and so does `start`, after which setters fail.
    let setting = Mutex<Void>(())
    /// What comes, where threads wait for it; guarded by `setting`.
    var inbox: Inbox?
    let outgoingBytes = Atomic<Int>(0)
    let postedBytes = Atomic<Int>(0)
    /// A message is being sent in pieces, with the state of its text.
    let streaming = Mutex<StreamedText?>(nil)
    let isStreaming = Atomic<Bool>(false)
    /// Why no message may be delivered; 0 when one may.
    let gate = Atomic<UInt8>(0)
    /// A send took the unsent bytes above the high-water mark: the drained handler is owed.
    let owesDrained = Atomic<Bool>(false)
    let counters = WebSocketCounters()
    /// Messages on their way to the loop, or kept for the next connection.
    let postedMessages = Atomic<Int>(0)
    let roundTrip = Atomic<Int64>(-1)

    // The loop's owner only.
    @exclusivity(unchecked) var life = WebSocketLife()
    @exclusivity(unchecked) var link = Link.none
    /// In memory of its own, which costs no reference count with each use.
    @exclusivity(unchecked) var session: UnsafeMutablePointer<WebSocketSession>?
    let timer = LoopTimer()
    /// The attempt came to a connection: what failed, failed behind it.
    var reachedServer = false
    @exclusivity(unchecked) var isScheduled = false
    /// Bytes wait that epoll will not tell of: held ones, or in the TLS library.
    var wantsRead = false
    /// In the reconnect handler, where options may be changed.
    var mayReconfigure = false
    /// Of a Spreadbot connection, which says itself what comes of its legs.
    var isLeg = false
    @exclusivity(unchecked) var watch = Watch()
    /// Bytes that were read and then not wanted, by a pause.
    var held = ByteBuffer()
    /// A failure was not reported to the user.
    @exclusivity(unchecked) var owesFailure = false
    /// Who says whether an attempt makes sense; nil for the loop's own, once one is to follow.
    var reachability: Reachability?
    /// Bytes that went through the transport and are not published yet.
    @exclusivity(unchecked) var wireBytesSent: UInt64 = 0
    @exclusivity(unchecked) var wireBytesReceived: UInt64 = 0
    /// Messages for the next connection.
    var kept: [KeptMessage] = []
    /// Who is told of a pong, by the ping's number.
    var awaitedPongs: [AwaitedPong] = []

    enum Link {
        case none
        case connecting(CurlConnect)
        case connected(Transport)
    }

    /// Written before start and in the reconnect handler.
    struct SendLimits: ~Copyable {
        private let highWaterBytes = Atomic<Int>(0)
        private let mostBytes = Atomic<Int>(0)
        private let mostOffline = Atomic<Int>(0)

        var highWater: Int { highWaterBytes.load(ordering: .relaxed) }
        var bytes: Int { mostBytes.load(ordering: .relaxed) }
        var offlineMessages: Int { mostOffline.load(ordering: .relaxed) }

        func set(_ configuration: WebSocketConfiguration) {
            highWaterBytes.store(configuration.sendHighWater, ordering: .relaxed)
            mostBytes.store(configuration.sendLimit, ordering: .relaxed)
            mostOffline.store(configuration.offlineQueueLimit, ordering: .relaxed)
        }
    }

    struct AwaitedPong {
        var number: UInt64
        var sentAt: Instant
        var answered: (Duration) -> Void
    }

    enum Gate {
        static let paused: UInt8 = 1
        static let closing: UInt8 = 2
        /// The user gave it back: no callback at all.
        static let abandoned: UInt8 = 4
    }

    /// Whether messages must wait. Closing overrides it: nothing is delivered any more, and the
    /// peer's close frame must be read.
    var isPaused: Bool {
        gate.load(ordering: .acquiring) & (Gate.paused | Gate.closing) == Gate.paused
    }

    package init(url: String, on loop: Loop) throws(RealtimeError) {
        try loop.checkUsable()
        self.loop = loop
        pool = WebSocketPool.of(loop)
        options = Shared(try WebSocketConfiguration(url: url))
        sendLimits.set(options.value)
    }

    deinit { dropSession() }

    package var state: WebSocketState {
        if loop.isClosed.load(ordering: .acquiring) { return .closed }
        return WebSocketState(rawValue: stateNumber.load(ordering: .acquiring)) ?? .closed
    }

    /// Whether `close` was called before the peer ended it.
    package var didClose: Bool { gate.load(ordering: .acquiring) & Gate.closing != 0 }

    func setState(_ state: WebSocketState) {
        stateNumber.store(state.rawValue, ordering: .releasing)
    }

    /// Bytes queued and not yet taken by the kernel.
    package var bufferedBytes: Int {
        outgoingBytes.load(ordering: .relaxed) + postedBytes.load(ordering: .relaxed)
    }

    /// On the loop's thread once it was started.
    var configuration: WebSocketConfiguration {
        @inline(__always) _read { yield options.value }
    }

    /// Where the connection goes, after redirects.
    var currentURL: HTTPURL { life.url(configuration) }

    /// Connections of a loop with the same options share them.
    func shareOptions() { options = pool.shared(options) }

    package var sendHighWaterBytes: Int { sendLimits.highWater }

    /// The last round trip, -1 before the first.
    package var roundTripMicroseconds: Int64 { roundTrip.load(ordering: .relaxed) }

    // MARK: Before start

    /// Changes options, which the reconnect handler may do too.
    package func configure(_ change: (inout WebSocketConfiguration) throws -> Void) throws {
        try setting.withLock { _ in
            if !(loop.isOwner && mayReconfigure) { try checkNew("an option") }
            // In its place, unless other connections have the same.
            if !isKnownUniquelyReferenced(&options) { options = Shared(options.value) }
            try change(&options.value)
            sendLimits.set(options.value)
        }
    }

    package func setHandlers(_ change: (inout WebSocketHandlers) -> Void) throws(RealtimeError) {
        // Released outside the lock and after the new ones are in place, because the destroy
        // function of their user data may call this very setter.
        var old: WebSocketHandlers?
        defer { withExtendedLifetime(old) {} }
        try setting.withLock { _ throws(RealtimeError) in
            try checkNew("a callback")
            old = handlers
            change(&handlers)
        }
    }

    /// Changes where the next attempt goes; as `configure`.
    package func setURL(_ url: String) throws {
        let url = try HTTPURL(parsing: url, as: .webSocket)
        try configure { $0.url = url }
    }

    /// Changes who says whether an attempt makes sense, nil for the loop's own; as `configure`.
    package func setReachability(_ reachability: Reachability?) throws {
        guard reachability.map({ $0.loop === loop }) ?? true else {
            throw RealtimeError(
                .invalidArgument, "the reachability belongs to another loop than the connection")
        }
        // Released outside the lock, because it may hold a callback with user data.
        var old: Reachability?
        defer { withExtendedLifetime(old) {} }
        try configure { _ in old = exchange(&self.reachability, with: reachability) }
    }

    private func checkNew(_ what: String) throws(RealtimeError) {
        try loop.checkUsable()
        guard state == .new else {
            throw RealtimeError(.state, "\(what) must be set before the connection is started")
        }
    }

    /// Starts connecting.
    package func start() throws(RealtimeError) {
        try loop.checkUsable()
        guard setting.withLock({ _ in become(.connecting, from: .new) }) else {
            throw RealtimeError(.state, "the connection was started before")
        }
        loop.perform { [self] in begin() }
    }

    // MARK: Use

    /// Closes in order. Any thread; closing again changes nothing.
    /// - Parameter code: 0 for a close frame without a code.
    package func close(code: UInt16, reason: String) throws(RealtimeError) {
        guard code == 0 || CloseCode(rawValue: code).mayBeSent else {
            throw RealtimeError(
                .invalidCloseCode,
                "close code \(code) must not be sent; use 1000 or one of 3000-4999")
        }
        guard reason.utf8.count <= ClosePayload.maximumReasonBytes else {
            throw RealtimeError(
                .closeReasonTooLong,
                "the close reason has \(reason.utf8.count) bytes, 123 are allowed")
        }
        guard code != 0 || reason.isEmpty else {
            throw RealtimeError(.invalidArgument, "a close reason needs a close code")
        }
        try loop.checkUsable()
        switch state {
        case .new: throw RealtimeError(.state, "the connection was not started")
        case .closed: return
        // The peer may have begun to close: without this another attempt would follow.
        case .connecting, .open, .closing, .waiting: break
        }
        let old = gate.bitwiseOr(Gate.closing, ordering: .acquiringAndReleasing).oldValue
        guard old & Gate.closing == 0 else { return }
        setStateUnlessClosed(.closing)
        loop.perform { [self] in
            closeNow(code == 0 ? nil : CloseCode(rawValue: code), reason)
        }
    }

    /// Stops receiving. Any thread; from another than the loop's one message may still come.
    package func pause() throws(RealtimeError) {
        try loop.checkUsable()
        let old = gate.bitwiseOr(Gate.paused, ordering: .acquiringAndReleasing).oldValue
        if old & Gate.paused == 0 { loop.perform { [self] in pauseChanged() } }
    }

    /// Goes on receiving. Any thread.
    package func resume() throws(RealtimeError) {
        try loop.checkUsable()
        let old = gate.bitwiseAnd(~Gate.paused, ordering: .acquiringAndReleasing).oldValue
        if old & Gate.paused != 0 { loop.perform { [self] in pauseChanged() } }
    }

    /// Drops the connection; no callback begins after this returned. Any thread.
    package func abandon() {
        guard !loop.isForked else { return }
        gate.bitwiseOr(Gate.abandoned, ordering: .acquiringAndReleasing)
        loop.perform { [self] in abandonNow() }
    }

    /// False when another thread closed it meanwhile.
    func becomeOpen() -> Bool { become(.open, from: .connecting) }

    /// The same at the end of the wait for the next attempt.
    func becomeConnecting() -> Bool { become(.connecting, from: .waiting) }

    private func become(_ new: WebSocketState, from old: WebSocketState) -> Bool {
        stateNumber.compareExchange(
            expected: old.rawValue, desired: new.rawValue, ordering: .acquiringAndReleasing
        ).exchanged
    }

    /// The loop's thread may end it while another closes it: closed stays closed.
    private func setStateUnlessClosed(_ new: WebSocketState) {
        var current = stateNumber.load(ordering: .acquiring)
        while current != WebSocketState.closed.rawValue {
            let change = stateNumber.compareExchange(
                expected: current, desired: new.rawValue, ordering: .acquiringAndReleasing)
            if change.exchanged { return }
            current = change.original
        }
    }
}
