import Session
import Wire

/// One request with its exchanges, one after the other. Made on any thread, used on the loop's.
///
/// Unchecked because it crosses threads once, through the loop's queue.
final class RESTCall: HTTPTransferOwner, @unchecked Sendable {
    let number: UInt64
    @exclusivity(unchecked) var id: RESTSession.ID = 0
    let request: RESTRequest
    private let client: RESTClient
    @exclusivity(unchecked) private var handlers: RESTHandlers
    @exclusivity(unchecked) private var transfer: HTTPTransfer?
    @exclusivity(unchecked) private var body: [UInt8] = []
    @exclusivity(unchecked) private var isDiscarding = false
    @exclusivity(unchecked) private var discarded = 0
    @exclusivity(unchecked) private var isPaused = false
    @exclusivity(unchecked) private var httpVersion = 0
    @exclusivity(unchecked) private var isAnswered = false
    @exclusivity(unchecked) private var wantsBody = false
    /// Where it goes now.
    @exclusivity(unchecked) private(set) var url: HTTPURL

    /// What is read of an answer that is not wanted, so that its connection can be used again.
    private static let discardLimit = 64 << 10
    /// What is asked of a request body's source at a time.
    private static let sourceBytes = 64 << 10

    init(
        _ client: RESTClient, _ number: UInt64, _ request: RESTRequest, _ handlers: RESTHandlers
    ) {
        self.client = client
        self.number = number
        self.handlers = handlers
        self.request = request
        url = request.http.url
    }

    /// The loop ended before it took the call: its caller is told all the same.
    deinit {
        guard let done = handlers.done else { return }
        let error = RealtimeError(.closed, "the loop was freed")
        done(
            RESTResult(
                outcome: RESTOutcome(error: error, url: url), body: [],
                httpVersion: 0))
    }

    // MARK: For the driver

    func start(_ request: HTTPRequest, isFresh: Bool, rewinds: Bool) {
        drop()
        body = []
        isDiscarding = false
        discarded = 0
        wantsBody = false
        isAnswered = false
        url = request.url
        Log.write(.debug, "REST \(number): \(request.method) \(request.url.text.withoutQuery)")
        if rewinds, case .stream = request.body, !mayCall || handlers.rewind?() != true {
            let error = RealtimeError(.cancelled, "the request's body cannot be had again")
            return client.session.failed(id, error, now: Loop.now())
        }
        let policy = self.request.policy
        var options = HTTPTransfer.Options()
        options.connectTimeout = policy.connectTimeout
        options.decodes = client.configuration.pointee.decodes
        options.offersHTTP2 = client.configuration.pointee.offersHTTP2
        options.prefersSharing = options.offersHTTP2 && request.url.isSecure
        options.takesFreshConnection = isFresh
        options.goesOutOnce = true
        if handlers.body == nil { options.limitAnswer(policy.bodyLimit) }
        options.reportsProgress = handlers.progress != nil
        do throws(RealtimeError) {
            let multi = try client.loop.curl()
            let transfer = try HTTPTransfer(
                request, options, by: client.handle(for: request.url, on: multi),
                backTo: client.handles, multi: multi, owner: self)
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
        let precedes = transfer?.requestStarted == nil
        drop(connectionToo: true)
        let time = request.policy.attemptTimeout.readable
        let what = isAnswered ? "did not end its answer" : "did not answer"
        let error = RealtimeError(
            .timeout,
            "\(url.displayName) \(what) within \(time)"
                + (request.policy.namesTimeout ? " (attempt_timeout)" : ""))
        end(HTTPFailure(error, precedesRequest: precedes))
    }

    func finish(_ outcome: RESTOutcome) {
        drop()
        Log.write(
            .debug,
            "REST \(number): "
                + (outcome.error?.message ?? "\(outcome.head?.status ?? 0)"))
        let done = handlers.done
        handlers = RESTHandlers()
        let result = RESTResult(
            outcome: outcome, body: outcome.hasBody ? body : [],
            httpVersion: outcome.head == nil ? 0 : httpVersion)
        body = []
        done?(result)
    }

    func pause(_ isPaused: Bool) {
        self.isPaused = isPaused
        transfer?.pause(isPaused)
    }

    func resumeBody() {
        guard wantsBody, let transfer else { return }
        wantsBody(of: transfer)
    }

    /// Once the loop is freed nothing is called but `done`, which `loopClosed` has called.
    private var mayCall: Bool { client.loop.mayCall }

    private func end(_ failure: HTTPFailure?) {
        client.session.ended(id, failure, now: Loop.now(), random: randomFraction())
    }

    private func fail(_ error: RealtimeError) {
        client.session.failed(id, error, now: Loop.now())
        client.act()
    }

    // MARK: HTTPTransferOwner

    func received(_ head: ResponseHead, by transfer: HTTPTransfer) {
        guard mayCall else { return drop() }
        httpVersion = transfer.httpVersion
        isAnswered = true
        let reception = client.session.received(
            head, of: id, now: Loop.now(), wallClock: Loop.wallClock(),
            random: randomFraction())
        switch reception {
        case .discard: isDiscarding = true
        case .deliver:
            if let handle = handlers.head, let outcome = client.session.outcome(of: id) {
                handle(RESTHead(outcome: outcome, head: head, httpVersion: httpVersion))
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
        if let handle = handlers.body { return handle(body) }
        let limit = request.policy.bodyLimit
        guard limit == 0 || body.count <= limit - self.body.count else {
            return fail(
                RealtimeError(
                    .tooLarge,
                    "the answer of \(url.displayName) has more than \(limit) bytes"
                        + " (max_body_bytes)"))
        }
        self.body += body
    }

    func ended(_ failure: HTTPFailure?, by transfer: HTTPTransfer) {
        self.transfer = nil
        guard mayCall else { return }
        end(failure)
        client.act()
    }

    func progressed(_ progress: HTTPTransfer.Progress, by transfer: HTTPTransfer) {
        guard mayCall else { return }
        handlers.progress?(
            RESTProgress(
                sent: progress.sent, toSend: progress.toSend, received: progress.received,
                toReceive: progress.toReceive))
    }

    func wantsBody(of transfer: HTTPTransfer) {
        guard mayCall else { return }
        wantsBody = false
        client.session.bodyUsed(id)
        // Not the loop's buffer: this may be inside a callback that was given a part of it.
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
        case .wait: wantsBody = true
        case .fail: transfer.endUpload(failed: true)
        }
    }

    func loopClosed() { client.loopClosed() }
}
