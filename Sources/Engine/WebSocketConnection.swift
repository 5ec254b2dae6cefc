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

/// A WebSocket on a loop: the hands to `WebSocketSession`'s brain. Calls come from any thread; the
/// connection's own work (WebSocketDriver.swift) happens on the loop's.
///
/// Unchecked because its plain fields belong to the loop's owner (see `Loop.enter`), and
/// configuration and handlers to the caller until `start`.
package final class WebSocketConnection: @unchecked Sendable {
    package let loop: Loop
    // Exclusive access to these is by `start` and the loop's claim; the dynamic check of each would
    // cost a tenth of a message.
    @exclusivity(unchecked) var configuration: WebSocketConfiguration
    @exclusivity(unchecked) var handlers = WebSocketHandlers()

    // Any thread.
    private let stateNumber = Atomic<Int32>(WebSocketState.new.rawValue)
    /// Why no message may be delivered; 0 when one may.
    let gate = Atomic<UInt8>(0)
    let outgoingBytes = Atomic<Int>(0)
    let postedBytes = Atomic<Int>(0)
    /// A message is being sent in pieces.
    let isStreaming = Atomic<Bool>(false)
    /// Messages on their way to the loop, or kept for the next connection.
    let postedMessages = Atomic<Int>(0)
    let roundTrip = Atomic<Int64>(-1)
    /// A send took the unsent bytes above the high-water mark: the drained handler is owed.
    let owesDrained = Atomic<Bool>(false)

    // The loop's owner only.
    @exclusivity(unchecked) var phase = Phase.idle
    @exclusivity(unchecked) var session: SessionBox?
    let timer = LoopTimer()
    var openDeadline: Instant?
    @exclusivity(unchecked) var isScheduled = false
    @exclusivity(unchecked) var watch = Watch()
    /// Bytes that were read and then not wanted, by a pause.
    var held = ByteBuffer()
    /// How it ends, known before it has ended.
    var ending: Ending?
    /// Bytes wait that epoll will not tell of: held ones, or in the TLS library.
    var wantsRead = false
    var startFailure: RealtimeError?
    /// Where the attempt under way, or the last one, went.
    @exclusivity(unchecked) var attempt: WebSocketAttempt
    /// Why the connection, or the attempt, failed.
    var lastError: RealtimeError?
    /// Nil when the first connection is the last.
    var reconnection: Reconnection?
    /// In the reconnect handler, where options may be changed.
    var mayReconfigure = false
    /// Messages for the next connection.
    var kept: [KeptMessage] = []
    /// Who is told of a pong, by the ping's number.
    var awaitedPongs: [AwaitedPong] = []

    enum Phase {
        case idle
        case connecting(CurlConnect)
        case handshaking(Transport, Handshaking)
        case refused(Transport, Refused)
        case open(Transport)
        case waiting(until: Instant, attempt: Int)
        case over
    }

    /// The session in memory of its own: as an optional field it would be moved out and back for
    /// every call.
    final class SessionBox {
        @exclusivity(unchecked) var value: WebSocketSession

        init(_ value: consuming WebSocketSession) { self.value = value }
    }

    struct AwaitedPong {
        var number: UInt64
        var sentAt: Instant
        var answered: (Duration) -> Void
    }

    struct Ending {
        var code: CloseCode
        var reason: String
        var isClean: Bool
        /// The code is that of a close frame of the peer's.
        var isPeers = false
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
        configuration = try WebSocketConfiguration(url: url)
        attempt = WebSocketAttempt(configuration)
    }

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

    package var sendHighWaterBytes: Int { configuration.sendHighWater }

    /// The last round trip, -1 before the first.
    package var roundTripMicroseconds: Int64 { roundTrip.load(ordering: .relaxed) }

    // MARK: Before start

    /// Changes options, which the reconnect handler may do too.
    package func configure(_ change: (inout WebSocketConfiguration) throws -> Void) throws {
        if !(loop.isOwner && mayReconfigure) { try checkNew("an option") }
        try change(&configuration)
    }

    package func setHandlers(_ change: (inout WebSocketHandlers) -> Void) throws(RealtimeError) {
        try checkNew("a callback")
        change(&handlers)
    }

    /// Changes where the next attempt goes; as `configure`.
    package func setURL(_ url: String) throws {
        let url = try WebSocketURL(parsing: url)
        try configure { $0.url = url }
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
        let started = stateNumber.compareExchange(
            expected: WebSocketState.new.rawValue, desired: WebSocketState.connecting.rawValue,
            ordering: .acquiringAndReleasing)
        guard started.exchanged else {
            throw RealtimeError(.state, "the connection was started before")
        }
        loop.perform { [self] in begin() }
    }

    // MARK: Use

    /// Queues a message. Any thread.
    package func send(
        _ kind: MessageKind, _ bytes: UnsafeRawBufferPointer
    ) throws(RealtimeError) {
        let isOpen = try checkSendable()
        if kind == .text, !UTF8Validator.isValid(bytes) {
            throw RealtimeError(.invalidUTF8, "the text to send is not valid UTF-8")
        }
        let buffered = bufferedBytes
        try checkRoom(bytes.count, behind: buffered)
        let passesHighWater = bytes.count > configuration.sendHighWater - buffered
        guard isOpen else { return try keep(kind, bytes) }
        switch loop.enter() {
        case .inside:
            if passesHighWater { owesDrained.store(true, ordering: .relaxed) }
            try sendNow(kind, bytes)
        case .claimed:
            defer { loop.endCall() }
            if passesHighWater { owesDrained.store(true, ordering: .relaxed) }
            try sendNow(kind, bytes)
        case .elsewhere:
            let copy = try reserve(bytes)
            postedMessages.add(1, ordering: .relaxed)
            // Behind the bytes: `tellDrained` looks the other way round.
            if passesHighWater { owesDrained.store(true, ordering: .releasing) }
            // Once closing began it is dropped, as the close callback tells.
            loop.enqueue { [self] in sendOrKeep(kind, copy) }
        }
    }

    /// Keeps a message for the next connection.
    private func keep(
        _ kind: MessageKind, _ bytes: UnsafeRawBufferPointer
    ) throws(RealtimeError) {
        let copy = try reserve(bytes)
        let waiting = postedMessages.add(1, ordering: .relaxed).newValue
        guard waiting <= configuration.offlineQueueLimit else {
            postedBytes.subtract(copy.count, ordering: .relaxed)
            postedMessages.subtract(1, ordering: .relaxed)
            throw RealtimeError(
                .bufferFull,
                "\(waiting - 1) messages wait for the connection,"
                    + " \(configuration.offlineQueueLimit) may (offline_queue)")
        }
        loop.perform { [self] in sendOrKeep(kind, copy) }
    }

    /// A copy to be posted, counted before the others that race for the same room look.
    private func reserve(_ bytes: UnsafeRawBufferPointer) throws(RealtimeError) -> [UInt8] {
        let posted = postedBytes.add(bytes.count, ordering: .relaxed).newValue
        do throws(RealtimeError) {
            let others = posted - bytes.count + outgoingBytes.load(ordering: .relaxed)
            try checkRoom(bytes.count, behind: others)
        } catch {
            postedBytes.subtract(bytes.count, ordering: .relaxed)
            throw error
        }
        return Array(bytes)
    }

    /// Refuses what would pass `sendLimit`. One message alone may be larger than the limit, or it
    /// could never be sent.
    private func checkRoom(_ count: Int, behind buffered: Int) throws(RealtimeError) {
        let limit = configuration.sendLimit
        guard limit > 0, buffered > 0, count > limit - buffered else { return }
        // Who was refused waits for the drained event, whatever the high-water mark is.
        if !owesDrained.exchange(true, ordering: .acquiringAndReleasing) {
            // It may have drained between the two looks.
            loop.perform { [self] in scheduleTurn() }
        }
        throw RealtimeError(
            .bufferFull,
            "\(buffered) bytes wait to be sent and \(count) more would pass the limit of"
                + " \(limit) (send_limit); wait until it has drained")
    }

    /// Sends a ping; an empty payload is replaced by one of the library's. Any thread.
    /// - Parameter answered: told the round trip on the loop's thread, unless the connection ends
    ///   before.
    package func ping(
        _ payload: UnsafeRawBufferPointer, answered: ((Duration) -> Void)? = nil
    ) throws(RealtimeError) {
        try checkOpen()
        guard payload.count <= 125 else {
            throw RealtimeError(
                .tooLarge, "a ping's payload has \(payload.count) bytes, 125 are allowed")
        }
        // As long as a message, so that pings to a peer that does not read are bounded too.
        try checkRoom(payload.count + FrameWriter.maximumHeaderSize, behind: bufferedBytes)
        let copy = try reserve(payload)
        loop.perform { [self] in
            defer { postedBytes.subtract(copy.count, ordering: .relaxed) }
            pingNow(copy, answered)
        }
    }

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
        case .closing, .closed: return
        case .connecting, .open, .waiting: break
        }
        gate.bitwiseOr(Gate.closing, ordering: .acquiringAndReleasing)
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

    private func checkOpen() throws(RealtimeError) {
        try loop.checkUsable()
        switch state {
        case .open: return
        case .new, .connecting:
            throw RealtimeError(.state, "the connection is not open yet")
        case .waiting:
            throw RealtimeError(.state, "the connection is lost; the next attempt is waited for")
        case .closing, .closed:
            throw RealtimeError(.closed, "the connection is closing or closed")
        }
    }

    /// Whether a message can go out now; false when it can be kept for the next connection.
    private func checkSendable() throws(RealtimeError) -> Bool {
        try loop.checkUsable()
        switch state {
        case .open: return true
        case .connecting, .waiting:
            if configuration.offlineQueueLimit > 0 { return false }
        case .new, .closing, .closed: break
        }
        try checkOpen()
        return true
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
