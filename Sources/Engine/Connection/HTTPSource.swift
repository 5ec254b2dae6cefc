package import Session
import Synchronization
package import Wire

/// The handlers that event sources and long polls both have.
package protocol HTTPSourceHandlers: EndpointHandlers {
    var error: ((HTTPSourceFailure) -> Void)? { get }
    /// Called with each failure before `error`. Only `error` makes a failure count as reported.
    var failed: ((HTTPSourceFailure) -> Void)? { get }
    /// The attempt with this number begins. Options may be changed; returning false closes.
    var request: ((Int) throws(RealtimeError) -> Bool)? { get }
    var credentials: ((HTTPResponse) throws(RealtimeError) -> CredentialsAnswer)? { get }
}

/// An event source or a long poll: requests messages by HTTP again and again. This class does what
/// both have in common: options that change between attempts, pauses, credentials, and reporting
/// failures.
///
/// Unchecked because its plain fields belong to the loop's owner (see `Loop.enter`).
package class HTTPSource<Machine: HTTPSourceSession, Handlers: HTTPSourceHandlers>:
    Endpoint<Machine.Configuration, Handlers>, HTTPTransferOwner, TimerTarget,
    ReachabilityObserver, @unchecked Sendable
{
    // Any thread.
    private let stateNumber = Atomic<Int32>(HTTPSourceState.connecting.rawValue)
    /// No attempt is being made: the next one waits for its time, or for a network.
    final let isWaiting = Atomic<Bool>(false)
    /// True while the loop's thread has yet to check whether the source is paused.
    private let isPauseNoted = Atomic<Bool>(false)

    // The loop's owner only.
    @exclusivity(unchecked) final var session: Machine?
    @exclusivity(unchecked) final var transfer: HTTPTransfer?
    final let timer = LoopTimer()
    private final var reachability: Reachability?
    /// A response that refuses, while its body arrives.
    final var refusal: HTTPRefusal?
    /// The response that asked for credentials.
    private final var refused: HTTPResponse?
    /// The last connection may be dead. HTTP/2 would continue to use it.
    private final var needsFreshConnection = false
    /// A failure that no `error` handler has received yet.
    private final var unreported: HTTPSourceFailure?
    /// It is a wait for a network, which has not ended yet.
    private final var isWaitUnreported = false
    /// True for a leg of a Spreadbot connection, which reports the results of its legs itself.
    final var isLeg = false

    // MARK: For subclasses

    /// The purpose of an attempt, for the log.
    class var purpose: String { "" }
    /// Whether a server may end a response inside its content coding.
    class var mayEndInCoding: Bool { false }

    /// Starts the source. Any thread; no handler runs inside this call.
    package func start() throws(RealtimeError) {}

    /// The transfer has begun.
    func transferBegan() {}

    /// The transfer has ended. `failure` is nil if the response is complete.
    func transferEnded(_ failure: HTTPFailure?) {}

    /// Drops everything of an attempt.
    func dropTransfer() {
        refusal = nil
        transfer?.close()
        transfer = nil
    }

    /// Called before a failure is reported.
    func note(_ failure: HTTPSourceFailure) {}

    /// The source was paused or resumed.
    func pauseChanged() {}

    /// The next time that `timeReached` must be called; nil for none.
    var wakeUp: Instant? {
        if isDeferred { return nil }
        return refusal?.deadline ?? session?.wakeUp
    }

    func timeReached(_ now: Instant) {}

    /// The head of a response has arrived.
    /// - Parameters:
    ///   - body: of a response that refuses, as far as it was read; otherwise nil.
    ///   - start: when its request could be sent.
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

    final override var hasEnded: Bool { state == .closed }

    final override var isEstablished: Bool { state == .open }

    package final var state: HTTPSourceState {
        if loop.isClosed.load(ordering: .acquiring) { return .closed }
        return HTTPSourceState(rawValue: stateNumber.load(ordering: .acquiring)) ?? .closed
    }

    final func setState(_ state: HTTPSourceState) {
        let old = stateNumber.exchange(state.rawValue, ordering: .acquiringAndReleasing)
        if old != state.rawValue { stateChanged() }
    }

    final override func pause(_ pause: DeliveryGate.Pause) throws(RealtimeError) {
        try loop.checkUsable()
        guard gate.pause(pause), needsPauseNotice() else { return }
        loop.perform { [self] in notePause() }
    }

    final override func resume(_ pause: DeliveryGate.Pause) throws(RealtimeError) {
        try loop.checkUsable()
        // In the next turn, because handlers run only in turns, and not inside each other.
        guard gate.resume(pause), needsPauseNotice() else { return }
        loop.enqueue { [self] in notePause() }
    }

    /// True if the loop's thread must be notified. False while an earlier notification is pending.
    private func needsPauseNotice() -> Bool {
        !isPauseNoted.exchange(true, ordering: .acquiringAndReleasing)
    }

    private func notePause() {
        // Cleared before the check, so that a later change notifies again.
        _ = isPauseNoted.exchange(false, ordering: .acquiringAndReleasing)
        pauseChanged()
    }

    /// Ends the source for good, without a callback. Closing again does nothing.
    package final func close() {
        guard !loop.isForked else { return }
        let isFirst = gate.close()
        setState(.closed)
        guard isFirst else { return }
        if let patience = closePatience {
            let waiter = Waiter<Bool>(on: loop)
            let answer = Answer(waiter)
            loop.perform { [self] in
                closeNow()
                answer.set(true)
            }
            // On the loop's thread `closeNow` has run by now.
            _ = try? waiter.wait(patience)
        } else {
            loop.perform { [self] in closeNow() }
        }
        closeReturns()
    }

    /// How long the first call of `close` waits for `closeNow`; nil if it need not. Any thread.
    var closePatience: Duration? { nil }

    /// The first call of `close` is about to return; `closeNow` may not have run yet. Any thread.
    func closeReturns() {}

    // MARK: Options

    /// Makes the options that were set since take effect.
    final func takeOptions() {
        takeConfiguration()
        let wanted = chosenReachability
        if wanted !== reachability {
            reachability?.remove(self)
            wanted?.add(self)
            reachability = wanted
        }
        noteNetwork()
    }

    final var isReachable: Bool {
        reachability?.isReachable(configuration.url, by: configuration.network) ?? true
    }

    /// Takes over whether there is a network. To be called before a failure is passed to the
    /// session: the loop reports a lost network only at the end of its turn.
    final func noteNetwork() {
        session?.setOnline(isReachable, now: Loop.now(), random: randomFraction())
    }

    final func reachabilityChanged() {
        noteNetwork()
        noteWait()
        if !isClosed { updateTimer() }
    }

    /// Call when the next attempt may have to wait for the network: reports it once.
    final func noteWait() {
        if session?.waitsForNetwork == true {
            isWaiting.store(true, ordering: .relaxed)
        } else if isWaitUnreported {
            (unreported, isWaitUnreported) = (nil, false)
        }
        guard !isClosed, let attempt = session?.attempt,
            let error = session?.waitBegan(for: configuration.url.displayName)
        else { return }
        let failure = HTTPSourceFailure(error: error, attempt: attempt)
        log(.info, failure.line)
        // The Spreadbot connection of a leg reports its own waits.
        if isLeg { return }
        if let report = handlers.error {
            report(failure)
        } else if unreported == nil {
            (unreported, isWaitUnreported) = (failure, true)
        }
    }

    // MARK: Attempts

    final func attempt() {
        guard let attempt = session?.attempt, !isClosed else { return }
        if let request = handlers.request {
            do throws(RealtimeError) {
                let isOpen = try asksForAttempt { () throws(RealtimeError) in
                    try request(attempt)
                }
                guard isOpen else { return close() }
            } catch {
                return giveUp(error)
            }
            guard !isClosed else { return }
            if isDeferred { return updateTimer() }
        }
        continueAttempt()
    }

    final override func continueAttempt() {
        takeOptions()
        // The new options may name a host that cannot be reached.
        guard session?.mayBegin() ?? false else {
            noteWait()
            if !isClosed { updateTimer() }
            return
        }
        session?.beginAttempt(configuration, now: Loop.now())
        send()
    }

    final override func declineAttempt(because cause: RealtimeError?) {
        if let cause { giveUp(cause) } else { close() }
    }

    final func send() {
        guard let request = session?.request else { return }
        isWaiting.store(false, ordering: .relaxed)
        dropTransfer()
        var options = HTTPTransferOptions()
        options.connectTimeout = configuration.http.connectTimeout
        options.owner = configuration.owner
        options.decodes = configuration.http.compression
        options.mayEndInCoding = Self.mayEndInCoding
        options.offersHTTP2 = configuration.http.http2
        options.goesOutOnce = true
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

    /// Drops the attempt together with its connection, which was silent for too long.
    final func dropConnection() {
        transfer?.close(connectionToo: true)
        needsFreshConnection = true
        dropTransfer()
    }

    final override func giveUp(_ error: RealtimeError) {
        guard let failure = session?.fail(error, status: 0) else { return }
        dropTransfer()
        report(failure)
    }

    // MARK: Responses

    final func leavesServer(after head: ResponseHead) -> Bool {
        TemporaryStatus.leavesServer(head.status) && session?.refuses(head) == true
    }

    final func received(_ head: ResponseHead, by transfer: HTTPTransfer) {
        guard transfer === self.transfer, !isClosed else { return }
        guard session?.refuses(head) == true else {
            return answered(head, body: nil, requestStarted: transfer.requestStarted)
        }
        refusal = HTTPRefusal(head, transfer.requestStarted, now: Loop.now())
        // A pause holds back messages, not the reason why there are none.
        transfer.pause(false)
        updateTimer()
    }

    /// The argument of the `open` handler.
    /// - Parameter head: of the response that opened the source.
    final func opened(_ head: ResponseHead?) -> Opened {
        transfer?.opened(head) ?? Opened()
    }

    /// Adds bytes to the body of a response that refuses.
    /// - Returns: false if there is no such response.
    final func takeRefusal(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard let refusal else { return false }
        refusal.take(bytes)
        if refusal.isFull { _ = endRefusal() }
        return true
    }

    /// Handles a response that refuses, with the part of its body that has arrived.
    /// - Returns: false if there is none.
    final func endRefusal() -> Bool {
        guard let refusal else { return false }
        self.refusal = nil
        answered(refusal.head, body: refusal.body, requestStarted: refusal.requestStarted)
        return true
    }

    /// Ends a response that refuses if the time for its body is over.
    /// - Returns: false if there is no such response.
    final func refusalReached(_ now: Instant) -> Bool {
        guard let refusal else { return false }
        if now < refusal.deadline || !endRefusal() { updateTimer() }
        return true
    }

    // MARK: Credentials

    final override var isAuthorizing: Bool { session?.isAuthorizing == true }

    final func askCredentials(_ response: HTTPResponse) {
        dropTransfer()
        refused = response
        updateTimer()
        askCredentials(response, handlers.credentials)
    }

    final override func refuseCredentials(because cause: RealtimeError?) {
        guard isAuthorizing, let response = refused else { return }
        refused = nil
        options.take()
        let failure = cause.map { session?.fail($0, status: response.status) }
        if let failure = failure ?? session?.unauthorized(response) { report(failure) }
    }

    final override func authorize() {
        guard isAuthorizing else { return }
        refused = nil
        takeOptions()
        session?.authorized(configuration, now: Loop.now())
        send()
    }

    // MARK: Reporting

    /// Logs a line for users; at level debug for a leg, because its Spreadbot connection logs its
    /// own.
    final func log(_ level: LogLevel, _ line: @autoclosure () -> String) {
        Log.write(isLeg ? .debug : level, line())
    }

    final func report(_ failure: HTTPSourceFailure) {
        guard !isClosed else { return }
        if TemporaryStatus.mayDependOnServer(failure.status) { needsFreshConnection = true }
        let failure = failure.redacted(by: sentSecrets)
        if failure.attempt > 0 { isWaiting.store(true, ordering: .relaxed) }
        note(failure)
        // Only the Spreadbot connection decides whether a leg is retried, so leave that out.
        let line = isLeg ? failure.error.message : failure.line
        log(failure.isFatal ? .error : .warning, line)
        updateTimer()
        // First, because a handler may close the source.
        if failure.isFatal {
            inbox?.finish(failure.error)
            settleOpenings(failure.error)
        }
        handlers.failed?(failure)
        guard !isClosed else { return }
        if let error = handlers.error {
            error(failure)
        } else {
            (unreported, isWaitUnreported) = (failure, false)
        }
        if failure.isFatal { finish() }
    }

    override func handlersChanged() {
        super.handlersChanged()
        guard unreported != nil, handlers.error != nil else { return }
        loop.enqueue { [self] in reportUnreported() }
    }

    private func reportUnreported() {
        guard let failure = unreported, let error = handlers.error, !isClosed else { return }
        (unreported, isWaitUnreported) = (nil, false)
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

    /// Ends the source: nothing more is reported.
    final func finish() {
        setState(.closed)
        log(.info, "\(configuration.url.displayName) is closed")
        options.take()
        loop.disarm(timer)
        reachability?.remove(self)
        // The error stays for a handler that is set later.
        dropHandlers()
    }
}
