import CShims
import Session
import Synchronization
import Wire

// What an event source does on its loop's thread.
extension EventSourceConnection: HTTPTransferOwner, TimerTarget, ReachabilityObserver {
    // MARK: Attempts

    func begin() {
        guard !isClosed, session == nil else { return }
        takeHandlers()
        takeOptions()
        var initial = configuration.lastEventID
        if let path = configuration.idFile {
            let stored = openStore(path)
            initial = initial ?? stored
        }
        var session = EventSourceSession(configuration, lastEventID: initial ?? "")
        parser.deinitialize(count: 1)
        parser.initialize(
            to: EventStreamParser(
                limits: configuration.limits, lastEventID: Array((initial ?? "").utf8),
                tellsComments: handlers.comment != nil))
        publish { $0.lastEventID = initial ?? "" }
        session.setOnline(isReachable, now: Loop.now(), random: 0)
        session.setPaused(!mayDeliver, now: Loop.now())
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

    private func attempt() {
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
        session?.beginAttempt(configuration, now: Loop.now())
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
        Log.write(.debug, "\(request.url.displayName): requesting an event stream")
        do throws(RealtimeError) {
            transfer = try HTTPTransfer(request, options, multi: loop.curl(), owner: self)
            if !mayDeliver { transfer?.pause(true) }
        } catch {
            streamEnded(HTTPFailure(error))
        }
        updateTimer()
    }

    private func dropTransfer() {
        transfer?.close()
        transfer = nil
        attemptNumber += 1
        hasDispatched = false
        held.removeAll(keeping: 0)
        heldEnd = nil
        endBody()
    }

    /// Not while a handler holds what the parser gave it.
    private func endBody() {
        if isReading {
            endsBody = true
        } else {
            parser.pointee.endBody()
        }
    }

    // MARK: HTTPTransferOwner

    func received(_ head: ResponseHead, by transfer: HTTPTransfer) {
        guard transfer === self.transfer, !isClosed else { return }
        let answer = session?.received(
            head, canAuthorize: handlers.credentials != nil, now: Loop.now(),
            wallClock: Loop.wallClock(), random: randomFraction())
        switch answer {
        case nil: return
        case .open:
            setState(.open)
            publish { $0.origin = session?.origin ?? "" }
            Log.write(.info, "\(configuration.url.displayName): the event stream is open")
            updateTimer()
            handlers.open?()
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

    func received(_ body: UnsafeRawBufferPointer, by transfer: HTTPTransfer) {
        guard transfer === self.transfer else { return }
        if configuration.idleTimeout > .zero {
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

    func ended(_ failure: HTTPFailure?, by transfer: HTTPTransfer) {
        guard transfer === self.transfer else { return }
        if held.isEmpty {
            streamEnded(failure)
        } else {
            heldEnd = HeldEnd(failure: failure)
        }
    }

    private func streamEnded(_ failure: HTTPFailure?) {
        let failure = session?.ended(failure, now: Loop.now(), random: randomFraction())
        dropTransfer()
        if let failure { tell(failure) }
    }

    // MARK: The stream

    /// Reads on in the stream, until it is closed, paused or begun anew.
    /// - Returns: how many bytes were used.
    private func read(_ input: UnsafeRawBufferPointer) -> Int {
        let attempt = attemptNumber
        var used = 0
        isReading = true
        defer {
            isReading = false
            noteID()
            if endsBody {
                endsBody = false
                parser.pointee.endBody()
            }
        }
        do throws(RealtimeError) {
            while mayDeliver, attempt == attemptNumber {
                switch try parser.pointee.next(input, &used) {
                case .needMoreBytes: return used
                // Another thread may have closed it while this was parsed.
                case .event where isClosed, .comment where isClosed: return used
                case .event: deliver()
                case .comment(let text): handlers.comment?(text)
                case .retry(let milliseconds):
                    session?.setReconnectionTime(milliseconds: milliseconds)
                    publish { $0.reconnectionTime = milliseconds }
                }
            }
        } catch {
            let failure = session?.fail(error)
            dropTransfer()
            if let failure { tell(failure) }
        }
        return used
    }

    private func deliver() {
        if !hasDispatched {
            hasDispatched = true
            session?.dispatched()
        }
        let event = EventSourceEvent(
            id: parser.pointee.id, type: parser.pointee.type, data: parser.pointee.data,
            hasID: parser.pointee.hasID)
        if let onMessage, parser.pointee.isMessage { onMessage(event) }
        if hasListeners { tellListeners(event) }
        if let onAny, !isClosed { onAny(event) }
        if let onEvent, !isClosed { onEvent(event) }
    }

    private func tellListeners(_ event: EventSourceEvent) {
        for listener in handlers.listeners where event.type.elementsEqual(listener.type) {
            guard !isClosed else { return }
            // One that was removed meanwhile, by itself or another, is not called.
            guard handlers.listeners.contains(where: { $0.token == listener.token }) else {
                continue
            }
            listener.handle(event)
        }
    }

    // MARK: Telling

    func tell(_ failure: EventSourceSession.Failure) {
        guard !isClosed else { return }
        if let state = session?.state { setState(state) }
        let level: LogLevel = failure.isFatal ? .error : .warning
        Log.write(level, failure.error.message)
        updateTimer()
        if failure.isFatal { writeID(isLast: true) }
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
        parser.pointee.tellsComments = handlers.comment != nil
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
        let times = [session?.wakeUp, unstored.id == nil ? nil : unstored.due].compactMap { $0 }
        if let next = times.min() {
            loop.arm(timer, self, at: next)
        } else {
            loop.disarm(timer)
        }
    }

    func timeReached(_ now: Instant) {
        guard !isClosed else { return }
        if unstored.id != nil, now >= unstored.due { writeID() }
        let event = session?.timeReached(
            now, requestStarted: transfer?.requestStarted, random: randomFraction())
        switch event {
        case nil, .nothing: updateTimer()
        case .begin: attempt()
        case .failed(let failure):
            dropTransfer()
            tell(failure)
        }
    }

    // MARK: The user

    func restartNow() {
        guard !isClosed, let state = session?.state, state != .closed else { return }
        if session?.isAuthorizing == true { return authorize() }
        dropTransfer()
        session?.restart(now: Loop.now())
        setState(.connecting)
        updateTimer()
    }

    func pauseChanged() {
        // Before it looks: a change from now on is told anew.
        _ = isPauseNoted.exchange(false, ordering: .acquiringAndReleasing)
        session?.setPaused(!mayDeliver, now: Loop.now())
        updateTimer()
        guard transfer != nil else { return }
        if mayDeliver {
            readHeld()
            if mayDeliver { transfer?.pause(false) }
        } else {
            transfer?.pause(true)
        }
    }

    private func readHeld() {
        guard !held.isEmpty, !isReading else { return }
        var input = ByteBuffer()
        swap(&input, &held)
        let attempt = attemptNumber
        let used = read(input.readable)
        guard !isClosed, attempt == attemptNumber else { return }
        input.consume(used)
        if !input.isEmpty {
            swap(&input, &held)
        } else if let end = heldEnd {
            streamEnded(end.failure)
        }
    }

    func closeNow() {
        noteID()
        writeID(isLast: true)
        session?.close()
        dropTransfer()
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
        writeID(isLast: true)
        gate.bitwiseOr(Gate.closed, ordering: .acquiringAndReleasing)
        setState(.closed)
        dropHandlers()
    }
}
