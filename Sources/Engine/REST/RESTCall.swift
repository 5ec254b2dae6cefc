import Session
import Wire

/// One request with its exchanges, one after the other. Created on any thread, used on the loop's.
///
/// Unchecked because it crosses threads once, through the loop's queue.
final class RESTCall: HTTPTransferOwner, @unchecked Sendable {
    /// What a request knows of its client.
    typealias Client = ClientDriver<RESTSession, RESTConfiguration, RESTClientHandlers>

    let number: UInt64
    @exclusivity(unchecked) var id: RESTSession.ID = 0
    let request: RESTRequest
    let client: Client
    @exclusivity(unchecked) private var handlers: RESTHandlers
    @exclusivity(unchecked) private var transfer: HTTPTransfer?
    @exclusivity(unchecked) private var body = ByteBuffer()
    @exclusivity(unchecked) private var isDiscarding = false
    @exclusivity(unchecked) private var discarded = 0
    @exclusivity(unchecked) private var isPaused = false
    @exclusivity(unchecked) private var httpVersion = 0
    @exclusivity(unchecked) private var connection: Shared<Opened>?
    @exclusivity(unchecked) private var isAnswered = false
    @exclusivity(unchecked) private var wantsBody = false
    /// The progress of the request's body, if it is long enough to take time.
    @exclusivity(unchecked) private var sentBytes: UInt64 = 0
    @exclusivity(unchecked) private var bytesToSend: UInt64 = 0
    /// The URL of the current exchange.
    @exclusivity(unchecked) private(set) var url: HTTPURL

    /// How much of an unwanted response is read, so that its connection can be used again.
    private static let discardLimit = 64 << 10
    /// The size of the buffer for the source of a request body.
    private static let sourceBytes = 64 << 10

    init(
        _ number: UInt64, _ request: RESTRequest, _ handlers: RESTHandlers,
        by client: Client
    ) {
        self.client = client
        self.number = number
        self.handlers = handlers
        self.request = request
        url = request.http.url
        body.isSecret = handlers.isSecret
    }

    /// If the loop ended before it took over the call, the caller must still be notified.
    deinit {
        guard let done = handlers.done else { return }
        let error = RealtimeError(.closed, "the loop was freed")
        done(
            RESTResult(
                outcome: RESTOutcome(error: error, url: url), body: .empty, httpVersion: 0))
    }

    // MARK: For the client

    /// - Parameter handles: provides the easy handle, and takes it back.
    func start(
        _ request: HTTPRequest, isFresh: Bool, rewinds: Bool, _ http: HTTPOptions,
        by handles: CurlHandles
    ) {
        drop()
        body.removeAll(keeping: 0)
        isDiscarding = false
        discarded = 0
        wantsBody = false
        isAnswered = false
        url = request.url
        logStart()
        if rewinds, case .stream = request.body, !mayCall || handlers.rewind?() != true {
            let error = RealtimeError(.cancelled, "the request's body cannot be read again")
            return client.session.failed(id, error, now: Loop.now())
        }
        let policy = self.request.policy
        var options = HTTPTransferOptions()
        options.connectTimeout = policy.connectTimeout
        options.owner = policy.owner
        // A decoder would keep what it has decoded.
        options.decodes = http.compression && !handlers.isSecret
        options.isSecret = handlers.isSecret
        options.offersHTTP2 = http.http2
        options.prefersSharing = options.offersHTTP2 && request.url.isSecure
        options.takesFreshConnection = isFresh
        options.goesOutOnce = true
        options.reportsProgress = handlers.progress != nil || RESTCall.isLong(request.body)
        (sentBytes, bytesToSend) = (0, 0)
        do throws(RealtimeError) {
            let transfer = try HTTPTransfer(
                request, options, by: handles.take(for: request.url), backTo: handles,
                multi: handles.multi(), owner: self)
            if isPaused { transfer.pause(true) }
            self.transfer = transfer
        } catch {
            let failure = HTTPFailure(error, precedesRequest: true)
            client.session.ended(id, failure, now: Loop.now(), random: randomFraction())
        }
    }

    func drop(connectionToo: Bool = false) {
        transfer?.close(connectionToo: connectionToo)
        transfer = nil
    }

    func timeOut() {
        let now = Loop.now()
        if !isAnswered, RESTCall.isLong(request.http.body), let moved = transfer?.bodyMoved(now),
            client.session.continues(id, moved: moved, now: now)
        {
            return
        }
        let time =
            request.policy.attemptTimeout.readable
            + request.policy.owner.mention(.attemptTimeout, or: .authTimeout)
        if let transfer, transfer.requestStarted == nil {
            let error = transfer.late(time)
            drop(connectionToo: true)
            return end(HTTPFailure(error, precedesRequest: true))
        }
        let precedes = transfer == nil
        drop(connectionToo: true)
        let what =
            if isAnswered {
                handlers.body == nil
                    ? "did not complete its response within" : "sent no more of its response for"
            } else {
                sentBytes < bytesToSend
                    ? "accepted no more of the request's body for" : "did not answer within"
            }
        let error = RealtimeError(.timeout, "\(url.displayName) \(what) \(time)")
        end(HTTPFailure(error, precedesRequest: precedes))
    }

    func finish(_ outcome: RESTOutcome) {
        drop()
        logEnd(outcome)
        let done = handlers.done
        handlers = RESTHandlers()
        var whole = ByteBuffer()
        swap(&whole, &body)
        done?(
            RESTResult(
                outcome: outcome, body: outcome.hasBody ? RESTBody(whole) : .empty,
                httpVersion: outcome.head == nil ? 0 : httpVersion,
                connection: outcome.head == nil ? nil : connection))
    }

    func pause(_ isPaused: Bool) {
        self.isPaused = isPaused
        updateHeld()
        transfer?.pause(isPaused)
    }

    /// Stops the attempt's clock while the caller delays the exchange.
    private func updateHeld() {
        // A server that has responded does not wait for the rest of the request's body, unless both
        // bodies are streamed.
        let isHeld = isAnswered ? handlers.body != nil && (isPaused || wantsBody) : wantsBody
        client.session.setHeld(id, isHeld, now: Loop.now())
    }

    /// A short body is in the kernel's buffer at once.
    private static func isLong(_ body: HTTPRequest.Body) -> Bool {
        switch body {
        case .none: false
        case .bytes(let bytes): bytes.count > 16 << 10
        case .stream: true
        }
    }

    func resumeBody() {
        guard wantsBody, let transfer else { return }
        wantsBody(of: transfer)
    }

    /// Once the loop is freed, only `done` may be called, and `loopClosed` has done that.
    private var mayCall: Bool { client.loop.mayCall }

    private func end(_ failure: HTTPFailure?) {
        client.session.ended(id, failure, now: Loop.now(), random: randomFraction())
        guard let next = client.session.next(of: id, now: Loop.now()) else { return }
        log(next)
        guard mayCall else { return }
        handlers.retry?(RESTRetry(cause: next.cause, delay: next.delay, attempt: next.number))
    }

    func waitForNetwork() {
        logWait()
        guard mayCall else { return }
        handlers.retry?(
            RESTRetry(
                cause: client.session.wait(of: id), delay: nil,
                attempt: client.session.attempt(of: id) + 1))
    }

    private func fail(_ error: RealtimeError) {
        client.session.failed(id, error, now: Loop.now())
        client.act()
    }

    // MARK: HTTPTransferOwner

    func leavesServer(after head: ResponseHead) -> Bool {
        client.session.leavesServer(id, after: head.status)
    }

    func received(_ head: ResponseHead, by transfer: HTTPTransfer) {
        guard mayCall else { return drop() }
        httpVersion = transfer.httpVersion
        connection = transfer.connection
        isAnswered = true
        if isPaused || wantsBody { updateHeld() }
        let reception = client.session.received(
            head, of: id, isShared: httpVersion >= 20, isNew: transfer.madeConnection,
            now: Loop.now(), wallClock: Loop.wallClock(), random: randomFraction())
        switch reception {
        case .discard:
            isDiscarding = true
            transfer.stopDecoding()
        case .deliver:
            if let handle = handlers.head, let outcome = client.session.outcome(of: id) {
                handle(
                    RESTHead(
                        outcome: outcome, head: head, httpVersion: httpVersion,
                        connection: connection))
            }
        }
        client.act()
    }

    func received(_ body: UnsafeRawBufferPointer, by transfer: HTTPTransfer) {
        guard mayCall else { return drop() }
        if isDiscarding {
            discarded += body.count
            guard discarded > RESTCall.discardLimit else { return }
            drop()
            end(nil)
            return client.act()
        }
        if let handle = handlers.body {
            client.session.receivedBytes(of: id, now: Loop.now())
            return handle(body)
        }
        let limit = request.policy.bodyLimit
        guard limit == 0 || body.count <= limit - self.body.count else {
            return fail(
                RealtimeError(
                    .tooLarge,
                    "the response of \(url.displayName) has more than \(limit) bytes"
                        + request.policy.owner.mention(.maxBodyBytes)))
        }
        guard self.body.hasMemory(for: body.count) else {
            let what = "the response of \(url.displayName)"
            return fail(Memory.exceeded(what, self.body.count + body.count))
        }
        self.body.append(body)
    }

    func answerCame(by transfer: HTTPTransfer) { client.session.answerCame(id) }

    func ended(_ failure: HTTPFailure?, by transfer: HTTPTransfer) {
        self.transfer = nil
        guard mayCall else { return }
        if failure?.precedesRequest == true { client.noteNetwork() }
        end(failure)
        client.act()
    }

    func progressed(_ progress: HTTPTransfer.Progress, by transfer: HTTPTransfer) {
        guard mayCall else { return }
        if progress.sent > sentBytes { client.session.sent(id, now: Loop.now()) }
        sentBytes = progress.sent
        bytesToSend = progress.toSend
        handlers.progress?(
            RESTProgress(
                sent: progress.sent, toSend: progress.toSend, received: progress.received,
                toReceive: progress.toReceive))
    }

    func wantsBody(of transfer: HTTPTransfer) {
        guard mayCall else { return }
        wantsBody = false
        updateHeld()
        client.session.bodyUsed(id)
        // Not the loop's buffer: we may be in a callback that received a part of it.
        withUnsafeTemporaryAllocation(byteCount: RESTCall.sourceBytes, alignment: 16) { space in
            let step = handlers.source?(space) ?? .end
            // The source may have cancelled the request.
            guard transfer === self.transfer else { return }
            take(step, space, transfer)
        }
    }

    private func take(
        _ step: RESTBodyStep, _ space: UnsafeMutableRawBufferPointer, _ transfer: HTTPTransfer
    ) {
        switch step {
        case .bytes(let count):
            guard count > 0, count <= space.count else { return transfer.endUpload(failed: true) }
            transfer.upload(UnsafeRawBufferPointer(rebasing: space.prefix(count)))
        case .end: transfer.endUpload()
        case .wait:
            wantsBody = true
            updateHeld()
        case .fail: transfer.endUpload(failed: true)
        }
    }

    func loopClosed() { client.loopClosed() }
}
