import CShims
import Session
import Synchronization
import Wire

// What a long poll does on its loop's thread.
extension LongPollConnection: HTTPTransferOwner, TimerTarget, ReachabilityObserver {
    // MARK: Polls

    func begin(_ session: LongPollSession) {
        guard !isClosed, self.session == nil else { return }
        takeHandlers()
        takeOptions()
        var session = session
        session.setOnline(isReachable, now: Loop.now(), random: 0)
        session.start(now: Loop.now())
        self.session = session
        updateTimer()
    }

    /// What was set since counts from now on.
    private func takeOptions() {
        let options = options.take()
        configuration = options.configuration
        // Without a monitor everything counts as reachable.
        let wanted = options.reachability ?? (try? loop.defaultReachability())
        if wanted !== reachability {
            reachability?.remove(self)
            wanted?.add(self)
            reachability = wanted
        }
        session?.setOnline(isReachable, now: Loop.now(), random: randomFraction())
    }

    private var isReachable: Bool {
        reachability?.isReachable(configuration.url, by: configuration.network) ?? true
    }

    func reachabilityChanged() {
        session?.setOnline(isReachable, now: Loop.now(), random: randomFraction())
        updateTimer()
    }

    private func poll() {
        guard let attempt = session?.attempt, !isClosed else { return }
        if let request = handlers.request {
            do {
                guard try reconfiguring({ try request(attempt) }) else { return close() }
            } catch {
                return giveUp(error)
            }
            guard !isClosed else { return }
        }
        takeOptions()
        // What they say may be out of reach.
        guard session?.mayBegin() ?? false else { return updateTimer() }
        session?.beginPoll(configuration, now: Loop.now())
        send()
    }

    /// Runs a handler that may change options.
    private func reconfiguring<Result>(_ body: () throws -> Result) throws -> Result {
        mayReconfigure = true
        defer { mayReconfigure = false }
        return try body()
    }

    private func giveUp(_ error: any Error) {
        let error = error as? RealtimeError ?? RealtimeError(.cancelled, "\(error)")
        guard let failure = session?.fail(error) else { return }
        dropTransfer()
        tell(failure)
    }

    private func send() {
        guard let request = session?.request else { return }
        dropTransfer()
        var options = HTTPTransfer.Options()
        options.network = configuration.network
        options.connectTimeout = configuration.connectTimeout
        options.decodes = configuration.compression
        options.offersHTTP2 = configuration.http2
        options.keepsAlive = true
        Log.write(.debug, "\(request.url.displayName): polling")
        do throws(RealtimeError) {
            transfer = try HTTPTransfer(request, options, multi: loop.curl(), owner: self)
        } catch {
            pollEnded(HTTPFailure(error))
        }
        updateTimer()
    }

    private func dropTransfer() {
        transfer?.close()
        transfer = nil
        body.removeAll(keeping: LongPollConnection.keptStorage)
    }

    /// Storage of a body above this goes back to the system after each poll.
    private static let keptStorage = 64 << 10

    // MARK: HTTPTransferOwner

    func received(_ head: ResponseHead, by transfer: HTTPTransfer) {
        guard transfer === self.transfer, !isClosed else { return }
        let answer = session?.received(
            head, requestStarted: transfer.requestStarted,
            canAuthorize: handlers.credentials != nil, now: Loop.now())
        switch answer {
        case nil: return
        case .read: updateTimer()
        case .again:
            Log.write(.debug, "redirected by \(head.status)")
            send()
        case .unauthorized: askCredentials(head)
        case .failed(let failure):
            dropTransfer()
            tell(failure)
        }
    }

    private func askCredentials(_ head: ResponseHead) {
        dropTransfer()
        refused = head
        updateTimer()
        // Before it is asked: another thread may have them before it has answered.
        options.awaitCredentials()
        do {
            let answer = try reconfiguring {
                try handlers.credentials?(HTTPResponse(head, body: [])) ?? .none
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

    func refuseCredentials(because cause: RealtimeError? = nil) {
        guard session?.isAuthorizing == true, let head = refused else { return }
        refused = nil
        _ = options.take()
        let failure = cause.map { session?.fail($0, status: head.status) }
        if let failure = failure ?? session?.unauthorized(head) { tell(failure) }
    }

    func authorize() {
        guard session?.isAuthorizing == true else { return }
        refused = nil
        takeOptions()
        session?.authorized(configuration, now: Loop.now())
        send()
    }

    func received(_ bytes: UnsafeRawBufferPointer, by transfer: HTTPTransfer) {
        guard transfer === self.transfer, let session else { return }
        do throws(RealtimeError) {
            let goesOn = try self.session?.received(bytes.count, now: Loop.now()) ?? false
            if session.keepsBody { body.append(bytes) }
            updateTimer()
            // What nobody wants is not read for ever.
            if !goesOn { pollEnded(nil) }
        } catch {
            giveUp(error)
        }
    }

    func ended(_ failure: HTTPFailure?, by transfer: HTTPTransfer) {
        guard transfer === self.transfer else { return }
        pollEnded(failure)
    }

    private func pollEnded(_ failure: HTTPFailure?) {
        let before = session?.state
        let outcome = session?.ended(
            failure, now: Loop.now(), wallClock: Loop.wallClock(), random: randomFraction())
        transfer?.close()
        transfer = nil
        if case .message? = outcome, !prepareDelivery() { return }
        noteState(before)
        guard !isClosed else { return }
        switch outcome {
        case nil: return
        case .message: deliver()
        case .nothing: dropTransfer()
        case .failed(let failure):
            dropTransfer()
            tell(failure)
        }
        updateTimer()
    }

    private func noteState(_ before: LongPollState?) {
        guard let state = session?.state, !isClosed else { return }
        setState(state)
        guard state == .open, before != .open else { return }
        Log.write(.info, "\(configuration.url.displayName): the server answers polls")
        handlers.open?()
    }

    // MARK: Messages

    /// - Returns: false for what is not built as it says, which is told.
    private func prepareDelivery() -> Bool {
        guard let session else { return false }
        var whole = ByteBuffer()
        swap(&whole, &body)
        do throws(RealtimeError) {
            delivery = try LongPollDelivery(
                whole, contentType: session.contentType, id: session.messageID,
                before: session.lastEventID)
        } catch {
            let failure = self.session?.rejected(
                error, now: Loop.now(), random: randomFraction())
            if let failure { tell(failure) }
            return false
        }
        return true
    }

    /// Tells what has come, until it is closed or paused; then the cursor moves.
    func deliver() {
        guard delivery != nil, !isDelivering else { return }
        isDelivering = true
        var current = delivery.take()
        while current?.isEmpty == false, mayDeliver {
            current?.tell { handlers.message?($0) }
        }
        isDelivering = false
        if current?.isEmpty == false {
            if !isClosed { delivery = consume current }
            return
        }
        session?.delivered(now: Loop.now())
        if let id = session?.lastEventID { publish(id: id) }
        updateTimer()
    }

    // MARK: Telling

    private func tell(_ failure: LongPollSession.Failure) {
        guard !isClosed else { return }
        if let session {
            setState(session.state)
            publish(id: session.lastEventID)
        }
        let level: LogLevel = failure.isFatal ? .error : .warning
        Log.write(level, failure.error.message)
        updateTimer()
        handlers.failed?(failure)
        guard !isClosed else { return }
        if let error = handlers.error {
            error(failure)
        } else {
            untold = failure
        }
        if failure.isFatal { finish() }
    }

    func handlersChanged() {
        takeHandlers()
        if untold != nil, handlers.error != nil { loop.enqueue { [self] in tellUntold() } }
    }

    private func tellUntold() {
        guard let failure = untold, let error = handlers.error, !isClosed else { return }
        untold = nil
        error(failure)
        if failure.isFatal { dropHandlers() }
    }

    // MARK: Time

    func updateTimer() {
        if let next = session?.wakeUp {
            loop.arm(timer, self, at: next)
        } else {
            loop.disarm(timer)
        }
    }

    func timeReached(_ now: Instant) {
        guard !isClosed else { return }
        let event = session?.timeReached(
            now, requestStarted: transfer?.requestStarted, random: randomFraction())
        switch event {
        case nil, .nothing: updateTimer()
        case .begin: poll()
        case .held:
            dropTransfer()
            updateTimer()
        case .failed(let failure):
            dropTransfer()
            tell(failure)
        }
    }

    // MARK: The user

    func restartNow() {
        guard !isClosed, let state = session?.state, state != .closed else { return }
        if session?.isAuthorizing == true { return authorize() }
        // What came is delivered first: dropped, it would be asked for again.
        guard delivery == nil, !isDelivering else { return }
        dropTransfer()
        session?.restart(now: Loop.now())
        updateTimer()
    }

    func closeNow() {
        session?.close()
        dropTransfer()
        delivery = nil
        finish()
    }

    /// Nothing more is told.
    private func finish() {
        setState(.closed)
        _ = options.take()
        loop.disarm(timer)
        reachability?.remove(self)
        if untold == nil || isClosed { dropHandlers() }
    }

    func loopClosed() {
        transfer = nil
        gate.bitwiseOr(Gate.closed, ordering: .acquiringAndReleasing)
        setState(.closed)
        dropHandlers()
    }
}
