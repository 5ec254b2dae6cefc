package import Session
import Synchronization
package import Wire

/// The handlers that all of them have.
package protocol HTTPSourceHandlers: EndpointHandlers {
    var error: ((HTTPSourceFailure) -> Void)? { get }
    /// Failures too, before `error`, which counts as the one that hears them.
    var failed: ((HTTPSourceFailure) -> Void)? { get }
    /// An attempt of this number begins: options may be changed; false closes.
    var request: ((Int) throws(RealtimeError) -> Bool)? { get }
    var credentials: ((HTTPResponse) throws(RealtimeError) -> CredentialsAnswer)? { get }
}

/// What asks a server for messages by HTTP, again and again: an event source or a long poll. Here
/// is what both do in the same way: options that change between attempts, pauses, credentials,
/// failures and their telling.
///
/// Unchecked because its plain fields belong to the loop's owner (see `Loop.enter`).
package class HTTPSource<Session: HTTPSourceSession, Handlers: HTTPSourceHandlers>:
    Endpoint<Session.Configuration, Handlers>, HTTPTransferOwner, TimerTarget,
    ReachabilityObserver, @unchecked Sendable
{
    // Any thread.
    private let stateNumber = Atomic<Int32>(HTTPSourceState.connecting.rawValue)
    /// The loop's thread is about to look whether it is paused.
    private let isPauseNoted = Atomic<Bool>(false)

    // The loop's owner only.
    @exclusivity(unchecked) final var session: Session?
    @exclusivity(unchecked) final var transfer: HTTPTransfer?
    final let timer = LoopTimer()
    private final var reachability: Reachability?
    /// An answer that refuses, while its body comes.
    final var refusal: HTTPRefusal?
    /// The answer that asked for credentials.
    private final var refused: HTTPResponse?
    /// The last connection may be dead: HTTP/2 would go on using it.
    private final var needsFreshConnection = false
    /// A failure that nobody has heard yet.
    private final var untold: HTTPSourceFailure?
    /// Of a Spreadbot connection, which says itself what comes of its legs.
    final var isLeg = false

    // MARK: For subclasses

    /// What an attempt does, for the log.
    class var purpose: String { "" }
    /// Whether a server may end an answer inside of its content coding.
    class var mayEndInCoding: Bool { false }

    /// Starts it. Any thread; no handler runs inside this call.
    package func start() throws(RealtimeError) {}

    /// The transfer has begun.
    func transferBegan() {}

    /// It is over; nil for an answer that came whole.
    func transferEnded(_ failure: HTTPFailure?) {}

    /// Drops what there is of an attempt.
    func dropTransfer() {
        refusal = nil
        transfer?.close()
        transfer = nil
    }

    /// Called before a failure is reported.
    func note(_ failure: HTTPSourceFailure) {}

    /// It may be paused now, or not any more.
    func pauseChanged() {}

    /// When it wants to be called; nil for never.
    var wakeUp: Instant? { refusal?.deadline ?? session?.wakeUp }

    func timeReached(_ now: Instant) {}

    /// An answer has come.
    /// - Parameters:
    ///   - body: of one that refuses the beginning, and no more of it comes; nil of another one.
    ///   - start: when its request could go out.
    func answered(_ head: ResponseHead, body: [UInt8]?, requestStarted start: Instant?) {}

    func received(_ body: UnsafeRawBufferPointer, by transfer: HTTPTransfer) {}

    func ended(_ failure: HTTPFailure?, by transfer: HTTPTransfer) {}

    func closeNow() {
        session?.close()
        dropTransfer()
        finish()
    }

    func loopClosed() {
        transfer = nil
        gate.close()
        setState(.closed)
        dropHandlers()
    }

    // MARK: Any thread

    package final var state: HTTPSourceState {
        if loop.isClosed.load(ordering: .acquiring) { return .closed }
        return HTTPSourceState(rawValue: stateNumber.load(ordering: .acquiring)) ?? .closed
    }

    final func setState(_ state: HTTPSourceState) {
        stateNumber.store(state.rawValue, ordering: .releasing)
    }

    /// As it was set last.
    package final var url: String { options.read { $0.pointee.url.text } }

    /// Changes where the next attempt goes; as `configure`.
    package final func setURL(_ url: String) throws(RealtimeError) {
        let url = try HTTPURL(parsing: url, as: .http)
        try configure { $0.url = url }
    }

    final func checkRunning() throws(RealtimeError) {
        try loop.checkUsable()
        guard wasStarted else { throw RealtimeError(.state, "the \(Self.kind) was not started") }
        guard state != .closed else { throw RealtimeError(.closed, "the \(Self.kind) is closed") }
    }

    /// Answers what had been left open when credentials were asked for: fresh ones are set, or the
    /// object fails.
    /// - Parameter cause: why there are none; nil for the server's refusal.
    package final func credentialsAreReady(
        _ fresh: Bool, because cause: RealtimeError? = nil
    ) throws(RealtimeError) {
        try checkRunning()
        // In the next turn: what fails at once would be reported inside this call.
        loop.enqueue { [self] in credentialsCame(fresh, because: cause) }
    }

    final override func pause(_ pause: DeliveryGate.Pause) throws(RealtimeError) {
        try loop.checkUsable()
        guard gate.pause(pause), hasPauseNews() else { return }
        loop.perform { [self] in notePause() }
    }

    final override func resume(_ pause: DeliveryGate.Pause) throws(RealtimeError) {
        try loop.checkUsable()
        // In the next turn, as handlers are called by turns alone, and none inside another.
        guard gate.resume(pause), hasPauseNews() else { return }
        loop.enqueue { [self] in notePause() }
    }

    /// Whether the loop's thread must be notified: not while it has yet to hear of the last change.
    private func hasPauseNews() -> Bool {
        !isPauseNoted.exchange(true, ordering: .acquiringAndReleasing)
    }

    private func notePause() {
        // Before it looks: a change from now on brings another notice.
        _ = isPauseNoted.exchange(false, ordering: .acquiringAndReleasing)
        pauseChanged()
    }

    /// Ends it for good, without a callback. Closing again changes nothing.
    package final func close() {
        guard !loop.isForked else { return }
        let isFirst = gate.close()
        setState(.closed)
        guard isFirst else { return }
        loop.perform { [self] in closeNow() }
    }

    // MARK: Options

    /// What was set since counts from now on.
    final func takeOptions() {
        takeConfiguration()
        let wanted = chosenReachability
        if wanted !== reachability {
            reachability?.remove(self)
            wanted?.add(self)
            reachability = wanted
        }
        session?.setOnline(isReachable, now: Loop.now(), random: randomFraction())
    }

    final var isReachable: Bool {
        reachability?.isReachable(configuration.url, by: configuration.network) ?? true
    }

    final func reachabilityChanged() {
        session?.setOnline(isReachable, now: Loop.now(), random: randomFraction())
        updateTimer()
    }

    // MARK: Attempts

    final func attempt() {
        guard let attempt = session?.attempt, !isClosed else { return }
        if let request = handlers.request {
            do throws(RealtimeError) {
                let isOpen = try reconfiguring { () throws(RealtimeError) in try request(attempt) }
                guard isOpen else { return close() }
            } catch {
                return giveUp(error)
            }
            guard !isClosed else { return }
        }
        takeOptions()
        // What they say may be out of reach.
        guard session?.mayBegin() ?? false else { return updateTimer() }
        session?.beginAttempt(configuration, now: Loop.now())
        send()
    }

    final func send() {
        guard let request = session?.request else { return }
        dropTransfer()
        var options = HTTPTransferOptions()
        options.connectTimeout = configuration.http.connectTimeout
        options.decodes = configuration.http.compression
        options.mayEndInCoding = Self.mayEndInCoding
        options.offersHTTP2 = configuration.http.http2
        options.takesFreshConnection = needsFreshConnection
        needsFreshConnection = false
        Log.write(
            .debug,
            "\(request.url.displayName): \(Self.purpose), attempt \(session?.attempt ?? 0)")
        do throws(RealtimeError) {
            let multi = try CurlMulti.of(loop)
            let handle = try CurlHandle(configuration.network, to: request.url, on: multi)
            transfer = try HTTPTransfer(request, options, by: handle, multi: multi, owner: self)
            transferBegan()
        } catch {
            transferEnded(HTTPFailure(error))
        }
        updateTimer()
    }

    /// Drops what there is of an attempt with its connection, which said nothing for too long.
    final func dropConnection() {
        transfer?.close(connectionToo: true)
        needsFreshConnection = true
        dropTransfer()
    }

    /// It goes nowhere from here.
    final func giveUp(_ error: RealtimeError) {
        guard let failure = session?.fail(error, status: 0) else { return }
        dropTransfer()
        tell(failure)
    }

    // MARK: Answers

    final func received(_ head: ResponseHead, by transfer: HTTPTransfer) {
        guard transfer === self.transfer, !isClosed else { return }
        guard session?.refuses(head) == true else {
            return answered(head, body: nil, requestStarted: transfer.requestStarted)
        }
        refusal = HTTPRefusal(head, transfer.requestStarted, now: Loop.now())
        // A pause holds back what is delivered, not the reason why nothing is.
        transfer.pause(false)
        updateTimer()
    }

    /// What the open handler receives.
    /// - Parameter head: of the answer that opened it.
    final func opened(_ head: ResponseHead?) -> Opened {
        transfer?.opened(head) ?? Opened()
    }

    /// Takes bytes of the body of an answer that refuses.
    /// - Returns: false when there is no such answer.
    final func takeRefusal(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard let refusal else { return false }
        refusal.take(bytes)
        if refusal.isFull { _ = endRefusal() }
        return true
    }

    /// Judges an answer that refuses by what has come of it.
    /// - Returns: false when there is none.
    final func endRefusal() -> Bool {
        guard let refusal else { return false }
        self.refusal = nil
        answered(refusal.head, body: refusal.body, requestStarted: refusal.requestStarted)
        return true
    }

    /// The time for the body of an answer that refuses may be over.
    /// - Returns: false when there is no such answer.
    final func refusalReached(_ now: Instant) -> Bool {
        guard let refusal else { return false }
        if now < refusal.deadline || !endRefusal() { updateTimer() }
        return true
    }

    // MARK: Credentials

    final func askCredentials(_ response: HTTPResponse) {
        dropTransfer()
        refused = response
        updateTimer()
        // Before it is asked: another thread may have them before it has answered.
        options.awaitCredentials()
        do throws(RealtimeError) {
            let answer = try reconfiguring { () throws(RealtimeError) in
                try handlers.credentials?(response) ?? .none
            }
            guard session?.isAuthorizing == true, !isClosed else { return }
            switch answer {
            case .later: return
            case .ready: authorize()
            case .none: refuseCredentials()
            }
        } catch {
            giveUp(error)
        }
    }

    /// The answer that was left open.
    final func credentialsCame(_ fresh: Bool, because cause: RealtimeError?) {
        guard !isClosed else { return }
        if fresh { authorize() } else { refuseCredentials(because: cause) }
    }

    private func refuseCredentials(because cause: RealtimeError? = nil) {
        guard session?.isAuthorizing == true, let response = refused else { return }
        refused = nil
        options.take()
        let failure = cause.map { session?.fail($0, status: response.status) }
        if let failure = failure ?? session?.unauthorized(response) { tell(failure) }
    }

    final func authorize() {
        guard session?.isAuthorizing == true else { return }
        refused = nil
        takeOptions()
        session?.authorized(configuration, now: Loop.now())
        send()
    }

    // MARK: Telling

    /// What users want to know, unless a Spreadbot connection tells them.
    final func log(_ level: LogLevel, _ line: @autoclosure () -> String) {
        Log.write(isLeg ? .debug : level, line())
    }

    final func tell(_ failure: HTTPSourceFailure) {
        guard !isClosed else { return }
        note(failure)
        // Whether and when a leg is tried again is not its own to say.
        let line = isLeg ? failure.error.message : failure.line
        log(failure.isFatal ? .error : .warning, line)
        updateTimer()
        // First, since a handler may close it.
        if failure.isFatal { inbox?.finish(failure.error) }
        handlers.failed?(failure)
        guard !isClosed else { return }
        if let error = handlers.error {
            error(failure)
        } else {
            untold = failure
        }
        if failure.isFatal { finish() }
    }

    override func handlersChanged() {
        super.handlersChanged()
        guard untold != nil, handlers.error != nil else { return }
        loop.enqueue { [self] in tellUntold() }
    }

    private func tellUntold() {
        guard let failure = untold, let error = handlers.error, !isClosed else { return }
        untold = nil
        error(failure)
        if failure.isFatal { dropHandlers() }
    }

    final func updateTimer() {
        if let next = wakeUp {
            loop.arm(timer, self, at: next)
        } else {
            loop.disarm(timer)
        }
    }

    /// Nothing more is reported.
    final func finish() {
        setState(.closed)
        log(.info, "\(configuration.url.displayName) is closed")
        options.take()
        loop.disarm(timer)
        reachability?.remove(self)
        if untold == nil || isClosed { dropHandlers() }
    }
}
