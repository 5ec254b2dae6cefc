import CShims
import Glibc
import Session
import Wire

/// Receives the parts of an exchange. Called on the loop's thread, outside of libcurl, in this
/// order: the head once, the body any number of times, `ended` once.
protocol HTTPTransferOwner: AnyObject {
    /// The head of the final response has arrived.
    func received(_ head: ResponseHead, by transfer: HTTPTransfer)
    /// Decoded bytes of the body; valid until this returns.
    func received(_ body: UnsafeRawBufferPointer, by transfer: HTTPTransfer)
    /// Whether to give up the connection that brought this response, because another server of the
    /// same name may answer the next attempt. Called in libcurl's callback: changes nothing.
    func leavesServer(after head: ResponseHead) -> Bool
    /// The whole response has arrived in time. Its body is still being decoded or delivered.
    func answerCame(by transfer: HTTPTransfer)
    /// The exchange has ended. `failure` is nil if the response is complete.
    func ended(_ failure: HTTPFailure?, by transfer: HTTPTransfer)
    /// The progress of the exchange, if `reportsProgress` is set.
    func progressed(_ progress: HTTPTransfer.Progress, by transfer: HTTPTransfer)
    /// More of a streamed request body is needed: call `HTTPTransfer.upload`.
    func wantsBody(of transfer: HTTPTransfer)
    /// The loop has ended.
    func loopClosed()
}

extension HTTPTransferOwner {
    func leavesServer(after head: ResponseHead) -> Bool { false }
    func answerCame(by transfer: HTTPTransfer) {}
    func progressed(_ progress: HTTPTransfer.Progress, by transfer: HTTPTransfer) {}
    func wantsBody(of transfer: HTTPTransfer) {}
}

/// One HTTP exchange by libcurl, over HTTP/1.1 or 2: a request, and its response's head and body.
/// It does not handle redirects, credentials or retries.
final class HTTPTransfer: CurlUser, DecodingUser, TimerTarget {
    var easy: UnsafeMutableRawPointer { handle.easy }
    var isConnected: Bool { handle.isConnected }
    @exclusivity(unchecked) var seat: Int?
    let handle: CurlHandle
    /// Takes the handle back after the exchange.
    private let handles: CurlHandles?
    let multi: CurlMulti
    @exclusivity(unchecked) private var owner: (any HTTPTransferOwner)?
    /// When libcurl began.
    @exclusivity(unchecked) var started = Loop.now()
    @exclusivity(unchecked) var dialing: Dialing
    @exclusivity(unchecked) var isOpen = true

    // Data from libcurl that was not delivered yet.
    @exclusivity(unchecked) private var isNoted = false
    @exclusivity(unchecked) private(set) var headReader = CurlHead()
    @exclusivity(unchecked) private var head: ResponseHead?
    @exclusivity(unchecked) private var body = ByteBuffer()
    @exclusivity(unchecked) private var progress: Progress?
    @exclusivity(unchecked) private var reportedProgress = Progress()
    @exclusivity(unchecked) private var wantsBody = false
    @exclusivity(unchecked) var result: CURLcode?
    @exclusivity(unchecked) private(set) var isAnswered = false
    private let isHead: Bool
    /// The response's body lasts until its connection ends.
    @exclusivity(unchecked) private(set) var isEndedByClose = false
    /// Decodes the body if the response has a content coding; `body` then holds undecoded bytes.
    @exclusivity(unchecked) private(set) var decoder: ContentDecoder?
    /// True while queued in the multi handle's `decoding`.
    @exclusivity(unchecked) var waitsToDecode = false
    /// Why the rest of the response cannot be read.
    @exclusivity(unchecked) private var fault: HTTPFailure?
    @exclusivity(unchecked) var refusal = HTTP2Refusal()

    @exclusivity(unchecked) private var isDelivering = false
    /// The owner paused the body.
    @exclusivity(unchecked) private var isPaused = false
    /// libcurl is paused and reads no more; if `isSuspended`, until the transfer has its turn.
    @exclusivity(unchecked) var isHeld = false
    @exclusivity(unchecked) var isSuspended = false
    /// `suspend` paused libcurl, so the owner's pause must not prolong that: the head, which is
    /// reported to a paused owner, may still be missing.
    @exclusivity(unchecked) var isHeldForOthers = false
    @exclusivity(unchecked) private var isUnpausing = false
    @exclusivity(unchecked) var requestBody: RequestBody
    /// Limits connecting, then the wait for the server's decision about the body (100 Continue).
    @exclusivity(unchecked) private var onlyTimer: LoopTimer?
    @exclusivity(unchecked) private var awaitsContinue = false
    /// The same time that libcurl would wait.
    private static let continueTimeout = Duration.seconds(1)

    /// With this many undelivered bytes, libcurl is paused.
    private static let heldBytes = 256 << 10
    /// The bytes that each completed exchange is credited for on its TLS connection.
    private static let exchangeBytes: UInt64 = 64
    let reportsProgress: Bool
    let mayEndInCoding: Bool
    @exclusivity(unchecked) var tunnelAnswer = TunnelAnswer()
    /// The bytes that its TLS connection was credited for.
    @exclusivity(unchecked) private var credited: UInt64 = 0
    @exclusivity(unchecked) private(set) var isFlooded = false

    /// - Parameters:
    ///   - handle: made for the network to use.
    ///   - handles: takes the handle back after the exchange.
    convenience init(
        _ request: borrowing HTTPRequest, _ options: borrowing HTTPTransferOptions,
        by handle: CurlHandle, backTo handles: CurlHandles? = nil, multi: CurlMulti,
        owner: any HTTPTransferOwner
    ) throws(RealtimeError) {
        self.init(of: request, options, by: handle, handles, multi, owner)
        handle.calls(HTTPTransfer.calls, for: Unmanaged.passUnretained(self).toOpaque())
        try handle.prepare(request, options, isCrowded: multi.sockets.isCrowded)
        try multi.add(self)
    }

    private init(
        of request: borrowing HTTPRequest, _ options: borrowing HTTPTransferOptions,
        by handle: CurlHandle, _ handles: CurlHandles?, _ multi: CurlMulti,
        _ owner: any HTTPTransferOwner
    ) {
        self.handle = handle
        dialing = Dialing(options)
        reportsProgress = options.reportsProgress
        body.isSecret = options.isSecret
        mayEndInCoding = options.mayEndInCoding
        isHead = request.method == "HEAD"
        requestBody = RequestBody(request)
        self.handles = handles
        self.multi = multi
        self.owner = owner
    }

    deinit { close() }

    /// 10, 11, 20 or 30; 0 before the response.
    var httpVersion: Int { isOpen ? Int(shim_curl_http_version(easy)) : 0 }

    /// True if a connection was made for this exchange.
    var madeConnection: Bool { isOpen && !handle.wasReused }

    /// Bytes of the body as received, before they are decoded.
    var bytesReceived: UInt64 { isOpen ? handle.bytesReceived : 0 }

    /// When the request could be sent; nil before.
    var requestStarted: Instant? {
        guard isOpen else { return nil }
        let delay = handle.requestDelay
        return delay == 0 ? nil : started + .nanoseconds(Int64(clamping: delay))
    }

    /// Drops the exchange; its owner is not notified any more.
    /// - Parameter connectionToo: the connection may be dead. It is not used again once all
    ///   exchanges have left it.
    func close(connectionToo: Bool = false) {
        guard isOpen, !multi.isForked else { return }
        // Bytes of this exchange must not count as a flood against others on its connection.
        creditTLS()
        if result != CURLE_OK { shim_tls_drop_answer(handle.tlsGuard) }
        isOpen = false
        owner = nil
        dialing.dial?.leave(self)
        dialing.dial = nil
        stopTimer()
        // After the exchange has ended, the handle may serve another one.
        if connectionToo, result == nil { handle.abandonConnection() }
        multi.remove(self)
        handle.dismiss()
        // After an aborted exchange libcurl may have state left, so the handle is not reused.
        if result == CURLE_OK, !handle.wasRepeated { handles?.putBack(handle) }
    }

    /// Delivers the rest of the body undecoded, for a response whose body is not wanted.
    func stopDecoding() { decoder = nil }

    /// Pauses or resumes the delivery of the body.
    func pause(_ paused: Bool) {
        guard isOpen, isPaused != paused else { return }
        isPaused = paused
        // What waits here is delivered by the loop; what waits in libcurl follows it.
        if !paused { note() }
    }

    /// Adds bytes to a streamed request body.
    func upload(_ bytes: UnsafeRawBufferPointer) {
        requestBody.append(bytes)
        releaseUpload()
    }

    /// Ends the request's body: it is complete, or it failed, which ends the exchange.
    func endUpload(failed: Bool = false) {
        requestBody.end(failed: failed)
        releaseUpload()
    }

    private func releaseUpload() {
        guard isOpen, requestBody.hasWaited() else { return }
        unpause()
    }

    /// Connecting took too long, or the server decided about the request's body, or it was late.
    func timeReached(_ now: Instant) {
        if dialing.dial != nil { return dialTimeReached() }
        if requestBody.isWithheld { requestBody.begin() }
        releaseUpload()
    }

    private func awaitContinue(for time: Duration) {
        awaitsContinue = true
        multi.loop.arm(timer(), self, at: Loop.now() + time)
    }

    func timer() -> LoopTimer {
        let timer = onlyTimer ?? LoopTimer()
        onlyTimer = timer
        return timer
    }

    func stopTimer() {
        awaitsContinue = false
        if let onlyTimer, onlyTimer.isArmed { multi.loop.disarm(onlyTimer) }
    }

    private func unpause() {
        (isHeld, isHeldForOthers) = (false, false)
        // libcurl passes all that it kept from inside this call. If we paused it meanwhile, it
        // would copy everything again.
        isUnpausing = true
        // Sending stays paused while the request's body has no bytes.
        _ = curl_easy_pause(easy, requestBody.isAwaited ? CURLPAUSE_SEND : CURLPAUSE_CONT)
        isUnpausing = false
    }

    // MARK: CurlUser

    func finished(_ result: CURLcode) {
        // Its connection is made first.
        if dialing.isWanted { return }
        self.result = result
        creditTLS()
        shim_tls_credit(handle.tlsGuard, HTTPTransfer.exchangeBytes)
        var socket: curl_socket_t = CURL_SOCKET_BAD
        if shim_curl_kept_socket(easy, &socket) {
            multi.sockets.keep(socket, isAlternating: httpVersion < 20)
        }
        // The proxy's response to CONNECT, which libcurl does not pass on.
        if result != CURLE_OK, head == nil, !isAnswered, shim_curl_connect_status(easy) == 407 {
            var refusal = ResponseHead(status: 407, reason: "Proxy Authentication Required")
            refusal.proxy = handle.route.proxyName
            head = refusal
            self.result = CURLE_OK
        }
        // Delivers the rest and then ends the exchange.
        deliver()
        if hasCome { owner?.answerCame(by: self) }
    }

    /// The whole response has arrived, and its owner does not pause it: only our work delays its
    /// end.
    var hasCome: Bool { isOpen && result == CURLE_OK && !isPaused }

    var tlsGuard: UnsafeMutablePointer<shim_tls_guard>? { isOpen ? handle.tlsGuard : nil }

    func creditTLS() {
        guard let tlsGuard else { return }
        let carried = handle.bytesReceived + UInt64(headReader.bytes)
        if carried > credited { shim_tls_credit(tlsGuard, carried - credited) }
        credited = max(credited, carried)
    }

    func flooded() {
        guard isOpen, result == nil else { return }
        isFlooded = true
        result = CURLE_RECV_ERROR
        // Undelivered bytes must not keep the transfer on the connection.
        handle.abandonConnection()
        multi.remove(self)
        deliver()
    }

    func multiClosed() {
        let owner = owner
        close()
        owner?.loopClosed()
    }

    /// Calls `deliver` once libcurl has returned.
    func note() {
        guard !isNoted else { return }
        isNoted = true
        multi.needsDelivery(self)
    }

    func deliver() {
        isNoted = false
        // A pause that ends inside a callback must not start another delivery in it.
        guard isOpen, !isDelivering else { return }
        if dialing.isWanted { return dial() }
        isDelivering = true
        deliverAll()
        isDelivering = false
    }

    private func deliverAll() {
        if var head {
            self.head = nil
            isAnswered = true
            // A server must not send this status itself (RFC 9110 §15.5.8).
            if head.status == 407, !handle.route.isTunnel { head.proxy = handle.route.proxyName }
            owner?.received(head, by: self)
        }
        deliverBody()
        if let fault, isOpen { return end(fault) }
        holdBack()
        if let progress, isOpen {
            self.progress = nil
            owner?.progressed(progress, by: self)
        }
        if wantsBody, isOpen {
            wantsBody = false
            owner?.wantsBody(of: self)
        }
        guard isOpen, isBodyDelivered else { return }
        if let result {
            end(failure(result))
        } else if isHeld, !isSuspended, !isPaused || isHeldForOthers {
            // libcurl calls the write callback from inside this, which notes what arrives.
            unpause()
        }
    }

    private func end(_ failure: HTTPFailure?) {
        let owner = owner
        close()
        owner?.ended(failure, by: self)
    }

    func dialFailed(_ error: RealtimeError) {
        dialing.dial = nil
        if isOpen { end(HTTPFailure(error, precedesRequest: true)) }
    }

    /// Pauses libcurl while the owner takes no more. Bytes then stay in the kernel and slow the
    /// server.
    private func holdBack() {
        guard isOpen, result == nil,
            body.count >= HTTPTransfer.heldBytes || isPaused && !body.isEmpty
        else { return }
        hold()
    }

    /// Everything that arrived was delivered.
    private var isBodyDelivered: Bool { body.isEmpty && decoder?.hasMore != true }

    private func deliverBody() {
        if let decoder { deliver(by: decoder) }
        while decoder == nil, isOpen, !isPaused, !body.isEmpty, multi.mayDeliver(body: self) {
            // Removed from `body`, because more may be added while it is delivered.
            var chunk = ByteBuffer()
            chunk.isSecret = body.isSecret
            swap(&chunk, &body)
            multi.countDelivered(chunk.count)
            owner?.received(chunk.readable, by: self)
            if body.isEmpty {
                chunk.removeAll(keeping: Int.max)
                swap(&chunk, &body)
            }
        }
        // What is left waits for the end of a pause, or for the loop's next turn.
        guard body.isEmpty else { return }
        if body.isSecret { body.removeAll(keeping: 0) } else { multi.takeBack(&body) }
    }

    /// Decodes and delivers what arrived, as far as the loop's turn allows.
    private func deliver(by decoder: ContentDecoder) {
        let turns = multi.decoding
        guard isOpen, !isPaused, !isBodyDelivered, turns.admits(self) else { return }
        var left = DecodingTurns.bytesPerTransfer
        while isOpen, !isPaused, self.decoder != nil, !isBodyDelivered {
            guard left > 0, turns.hasRoom else { return turns.enqueue(self) }
            let step: ContentDecoder.Step
            do throws(ContentDecoder.Failure) {
                step = try decoder.decode(body.readable, into: turns.space)
            } catch {
                fault = HTTPFailure(
                    error.error(from: "\(handle.route)"), isFinal: error.isFinal)
                return
            }
            body.consume(step.consumed)
            left -= step.consumed + step.produced
            turns.count(step.consumed + step.produced)
            guard step.produced > 0 else { continue }
            multi.countDelivered(step.produced)
            let piece = UnsafeRawBufferPointer(rebasing: turns.space[..<step.produced])
            owner?.received(piece, by: self)
        }
    }

    // MARK: Called by libcurl's callbacks

    func take(line: UnsafeRawBufferPointer) -> Bool {
        if let head = headReader.read(line) {
            if handle.decodes {
                decoder = ContentDecoder(contentEncoding: head.values("Content-Encoding"))
            }
            isEndedByClose = handle.tlsGuard != nil && !isHead && head.hasBodyUntilClose
            // Otherwise a later request might find the connection to the failed server again.
            let isLeft = owner?.leavesServer(after: head) ?? false
            if isLeft || TemporaryStatus.isOutOfService(head.status) { handle.abandonConnection() }
            self.head = head
            note()
        }
        if requestBody.isWithheld, head != nil || headReader.saysContinue {
            requestBody.begin(isWanted: (head?.status ?? 100) < 300)
            if requestBody.isAwaited { awaitContinue(for: .zero) }  // not in libcurl's callback
        }
        return !headReader.isTooLarge && headReader.fault == nil
    }

    func take(body bytes: UnsafeRawBufferPointer) -> Int {
        // libcurl reads up to a hundred times before it returns, as long as bytes arrive.
        if body.count >= HTTPTransfer.heldBytes, !isUnpausing {
            isHeld = true
            return Int(CURL_WRITEFUNC_PAUSE)
        }
        if body.isEmpty, !body.isSecret { multi.lend(&body) }
        body.append(bytes)
        note()
        return bytes.count
    }

    func give(_ space: UnsafeMutableRawBufferPointer) -> Int {
        switch requestBody.take(into: space) {
        case .bytes(let count): return count
        case .failed: return Int(CURL_READFUNC_ABORT)
        case .later(let isNew):
            if requestBody.isWithheld, !awaitsContinue {
                awaitContinue(for: HTTPTransfer.continueTimeout)
            } else if isNew {
                wantsBody = true
                note()
            }
            return Int(CURL_READFUNC_PAUSE)
        }
    }

    func take(_ progress: Progress) {
        guard progress != self.progress, progress != reportedProgress else { return }
        self.progress = progress
        reportedProgress = progress
        note()
    }
}
