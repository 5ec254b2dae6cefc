import CShims
package import Session
import Synchronization
package import Wire

/// The state of a connection; the numbers are the C ABI's.
public enum WebSocketState: Int32, Sendable {
    case new = 0
    case connecting = 1
    case open = 2
    /// Lost, and waiting for the next attempt.
    case waiting = 3
    case closing = 4
    case closed = 5
}

/// A WebSocket on a loop: does the I/O for `WebSocketLife`, which decides about attempts and the
/// end, and `WebSocketSession`, which reads and writes messages. Any thread may call it; its work
/// (WebSocketDriver.swift) runs on the loop's thread.
///
/// Not a `ClientDriver`: it acts on each step at once, because a message that waited in a queue of
/// actions would cost several times as much.
///
/// Unchecked because its plain fields belong to the loop's owner (see `Loop.enter`).
package final class WebSocketConnection: Endpoint<WebSocketConfiguration, WebSocketHandlers>,
    @unchecked Sendable
{
    // The order of the properties saves memory: small ones are together and fill gaps.

    // Any thread.
    private let stateNumber = Atomic<Int32>(WebSocketState.new.rawValue)
    /// The state of the text of a message that is being sent in pieces.
    let streaming = Mutex<StreamedText?>(nil)
    let isStreaming = Atomic<Bool>(false)
    /// A send passed the high-water mark, so the drained handler must be called.
    let owesDrained = Atomic<Bool>(false)
    let pool: WebSocketPool
    /// The options that senders check.
    let sendLimits = SendLimits()
    let outgoingBytes = Atomic<Int>(0)
    let postedBytes = Atomic<Int>(0)
    let counters = WebSocketCounters()
    /// The number of messages queued for the loop, or kept for the next connection.
    let postedMessages = Atomic<Int>(0)
    let roundTrip = Atomic<Int64>(-1)

    // The loop's owner only. Checking exclusive access at run time would cost a tenth of a message.
    @exclusivity(unchecked) var life = WebSocketLife()
    @exclusivity(unchecked) var link = Link.none
    /// In memory of its own, so that using it costs no reference count.
    @exclusivity(unchecked) package var session: UnsafeMutablePointer<WebSocketSession>?
    let timer = LoopTimer()
    @exclusivity(unchecked) var watch = Watch()
    /// The TCP/TLS connection was established, so any failure happened after it.
    var reachedServer = false
    @exclusivity(unchecked) var isScheduled = false
    /// Bytes may wait that epoll does not report: held ones, or some in the TLS library.
    var wantsRead = false
    /// A failure has not been reported to the user yet.
    @exclusivity(unchecked) var owesFailure = false
    /// True for a leg of a Spreadbot connection, which reports the results of its legs itself.
    var isLeg = false
    /// Bytes that were read, but not delivered because of a pause.
    var held = ByteBuffer()
    /// Messages for the next connection.
    var kept: [KeptMessage] = []
    /// The callbacks of pings that wait for their pong.
    var awaitedPongs: [AwaitedPong] = []

    enum Link {
        case none
        case connecting(StreamConnect)
        case connected(Transport)
    }

    /// Set when an attempt begins.
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

    /// Whether messages must wait. Closing overrides a pause: nothing more is delivered, and the
    /// peer's close frame must be read.
    var isPaused: Bool { gate.isPaused && !gate.isEnding }

    package convenience init(url: String, on loop: Loop) throws(RealtimeError) {
        try loop.checkUsable()
        self.init(try WebSocketConfiguration(url: url), on: loop)
    }

    private override init(_ configuration: WebSocketConfiguration, on loop: Loop) {
        pool = WebSocketPool.of(loop)
        super.init(configuration, on: loop)
    }

    deinit { dropSession() }

    package var state: WebSocketState {
        if loop.isClosed.load(ordering: .acquiring) { return .closed }
        return WebSocketState(rawValue: stateNumber.load(ordering: .acquiring)) ?? .closed
    }

    /// Whether `close` was called before the peer closed.
    package var didClose: Bool { gate.isEnding }

    func setState(_ state: WebSocketState) {
        let old = stateNumber.exchange(state.rawValue, ordering: .acquiringAndReleasing)
        if old != state.rawValue { stateChanged() }
    }

    /// Bytes that are queued and that the kernel has not taken yet.
    package var bufferedBytes: Int {
        outgoingBytes.load(ordering: .relaxed) + postedBytes.load(ordering: .relaxed)
    }

    /// The URL of the connection, after redirects.
    var currentURL: HTTPURL { life.url(configuration) }

    package var sendHighWaterBytes: Int { sendLimits.highWater }

    /// The last round trip; -1 before the first.
    package var roundTripMicroseconds: Int64 { roundTrip.load(ordering: .relaxed) }

    // MARK: Endpoint

    override var hasEnded: Bool { state == .closed }

    override var isEstablished: Bool { state == .open }

    /// The numbers are the same.
    package var connectionState: ConnectionState {
        ConnectionState(rawValue: state.rawValue) ?? .closed
    }

    override var isAuthorizing: Bool { life.stage == .authorizing }

    override func authorize() {
        life.authorized()
        begin()
    }

    override func refuseCredentials(because cause: RealtimeError?) {
        options.take()
        end(because: cause ?? life.error)
    }

    override func giveUp(_ error: RealtimeError) { end(because: error) }

    override func continueAttempt() { endWait(continues: true) }

    override func declineAttempt(because cause: RealtimeError?) {
        if let cause { report(cause) }
        endWait(continues: false)
    }

    override func same(_ options: Shared<WebSocketConfiguration>) -> Shared<WebSocketConfiguration>
    {
        pool.shared(options)
    }

    override func takeHandlers() {
        super.takeHandlers()
        session?.pointee.setDeliversPieces(handlers.delivery.isInPieces)
        gate.renew()
    }

    override func handlersChanged() {
        super.handlersChanged()
        // Nothing more is reported. The turn releases the handlers.
        if life.stage == .ended { scheduleTurn() }
    }

    /// Changes the URL of the next attempt. Allowed whenever `configure` is.
    package func setURL(_ url: String) throws(RealtimeError) {
        let url = try HTTPURL(parsing: url, as: .webSocket)
        try configure { $0.url = url }
    }

    // MARK: Use

    /// Starts connecting.
    package func start() throws(RealtimeError) {
        try loop.checkUsable()
        try options.start(Self.begun) { sendLimits.set($0) }
        _ = become(.connecting, from: .new)
        loop.perform { [self] in
            takeHandlers()
            begin()
        }
    }

    /// Starts the closing handshake. Any thread; closing again does nothing.
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
        // Not ignored if the peer has begun to close, because another attempt would follow.
        case .connecting, .open, .closing, .waiting: break
        }
        guard gate.end() else { return }
        setStateUnlessClosed(.closing)
        loop.perform { [self] in
            closeNow(code == 0 ? nil : CloseCode(rawValue: code), reason)
        }
    }

    override func pause(_ pause: DeliveryGate.Pause) throws(RealtimeError) {
        try loop.checkUsable()
        if gate.pause(pause) { loop.perform { [self] in pauseChanged() } }
    }

    override func resume(_ pause: DeliveryGate.Pause) throws(RealtimeError) {
        try loop.checkUsable()
        if gate.resume(pause) { loop.perform { [self] in pauseChanged() } }
    }

    /// Drops the connection. No callback begins after this has returned. Any thread.
    /// - Parameter last: a text that is sent before, if the kernel takes it at once.
    package func abandon(saying last: [UInt8]? = nil) {
        guard !loop.isForked else { return }
        gate.close()
        loop.perform { [self] in abandonNow(saying: last) }
    }

    /// Returns false if another thread closed the connection meanwhile.
    func becomeOpen() -> Bool { become(.open, from: .connecting) }

    /// Likewise, at the end of the wait for the next attempt.
    func becomeConnecting() -> Bool { become(.connecting, from: .waiting) }

    private func become(_ new: WebSocketState, from old: WebSocketState) -> Bool {
        let change = stateNumber.compareExchange(
            expected: old.rawValue, desired: new.rawValue, ordering: .acquiringAndReleasing)
        if change.exchanged { stateChanged() }
        return change.exchanged
    }

    /// Another thread may close the connection while the loop's thread ends it: closed stays
    /// closed.
    private func setStateUnlessClosed(_ new: WebSocketState) {
        var current = stateNumber.load(ordering: .acquiring)
        while current != WebSocketState.closed.rawValue {
            let change = stateNumber.compareExchange(
                expected: current, desired: new.rawValue, ordering: .acquiringAndReleasing)
            if change.exchanged { return stateChanged() }
            current = change.original
        }
    }
}
