import CShims
import Glibc
import Session
import Wire

/// Who waits for an exchange. All are called on the loop's thread, outside of libcurl, in this
/// order: head once, body any number of times, ended once.
protocol HTTPTransferOwner: AnyObject {
    /// The final answer's head has come.
    func received(_ head: ResponseHead, by transfer: HTTPTransfer)
    /// Bytes of the body, decoded; valid until this returns.
    func received(_ body: UnsafeRawBufferPointer, by transfer: HTTPTransfer)
    /// The whole answer has come in time. Its body is still being decoded or delivered.
    func answerCame(by transfer: HTTPTransfer)
    /// It is over; nil when the answer is whole.
    func ended(_ failure: HTTPFailure?, by transfer: HTTPTransfer)
    /// How far it has come, for those who asked.
    func progressed(_ progress: HTTPTransfer.Progress, by transfer: HTTPTransfer)
    /// More of a streamed request body is wanted: `HTTPTransfer.upload`.
    func wantsBody(of transfer: HTTPTransfer)
    /// The loop is over.
    func loopClosed()
}

extension HTTPTransferOwner {
    func answerCame(by transfer: HTTPTransfer) {}
    func progressed(_ progress: HTTPTransfer.Progress, by transfer: HTTPTransfer) {}
    func wantsBody(of transfer: HTTPTransfer) {}
}

/// One HTTP exchange by libcurl, HTTP/1.1 or 2: a request, its answer's head and body. Redirects,
/// credentials and retries are not its business.
final class HTTPTransfer: CurlUser, DecodingUser, TimerTarget {
    var easy: UnsafeMutableRawPointer { handle.easy }
    var isConnected: Bool { handle.isConnected }
    @exclusivity(unchecked) var seat: Int?
    let handle: CurlHandle
    /// Where the handle goes when the exchange is over.
    private let handles: CurlHandles?
    private let multi: CurlMulti
    @exclusivity(unchecked) private var owner: (any HTTPTransferOwner)?
    private let started = Loop.now()
    @exclusivity(unchecked) var isOpen = true

    // What libcurl handed over and is not told yet.
    @exclusivity(unchecked) private var isNoted = false
    @exclusivity(unchecked) private(set) var headReader = CurlHead()
    @exclusivity(unchecked) private var head: ResponseHead?
    @exclusivity(unchecked) private var body = ByteBuffer()
    @exclusivity(unchecked) private var progress: Progress?
    @exclusivity(unchecked) private var toldProgress = Progress()
    @exclusivity(unchecked) private var wantsBody = false
    @exclusivity(unchecked) var result: CURLcode?
    @exclusivity(unchecked) private(set) var isAnswered = false
    private let isHead: Bool
    /// The answer's body lasts until its connection ends.
    @exclusivity(unchecked) private(set) var isEndedByClose = false
    /// Decodes the body if the answer names a content coding; `body` then holds what came.
    @exclusivity(unchecked) private(set) var decoder: ContentDecoder?
    /// Queued in the multi handle's `decoding`.
    @exclusivity(unchecked) var waitsToDecode = false
    /// Why the answer cannot be read on.
    @exclusivity(unchecked) private var fault: RealtimeError?
    @exclusivity(unchecked) var refusal = HTTP2Refusal()

    @exclusivity(unchecked) private var isDelivering = false
    /// The owner wants no body now.
    @exclusivity(unchecked) private var isPaused = false
    /// libcurl was told to hold the body, or to wait for the request's.
    @exclusivity(unchecked) var isHeld = false
    @exclusivity(unchecked) var isSuspended = false
    @exclusivity(unchecked) private var isLettingGo = false
    @exclusivity(unchecked) private(set) var requestBody: RequestBody
    /// Ends the wait for the server's word on the request's body.
    @exclusivity(unchecked) private var wordTimer: LoopTimer?
    /// As long as libcurl would wait.
    private static let wordTime = Duration.seconds(1)

    /// Undelivered bytes above which libcurl is told to wait.
    private static let heldBytes = 256 << 10
    /// What an exchange that ends counts for its TLS connection.
    private static let exchangeBytes: UInt64 = 64
    let reportsProgress: Bool
    let mayEndInCoding: Bool
    @exclusivity(unchecked) var tunnelAnswer = TunnelAnswer()
    /// Bytes that its TLS connection has been credited with.
    @exclusivity(unchecked) private var credited: UInt64 = 0
    @exclusivity(unchecked) private(set) var isFlooded = false

    /// - Parameters:
    ///   - handle: made for the network that is meant.
    ///   - handles: where it goes when the exchange is over.
    convenience init(
        _ request: borrowing HTTPRequest, _ options: borrowing HTTPTransferOptions,
        by handle: CurlHandle, backTo handles: CurlHandles? = nil, multi: CurlMulti,
        owner: any HTTPTransferOwner
    ) throws(RealtimeError) {
        self.init(of: request, options, by: handle, handles, multi, owner)
        handle.calls(HTTPTransfer.calls, for: Unmanaged.passUnretained(self).toOpaque())
        try handle.prepare(request, options)
        try multi.add(self)
    }

    private init(
        of request: borrowing HTTPRequest, _ options: borrowing HTTPTransferOptions,
        by handle: CurlHandle, _ handles: CurlHandles?, _ multi: CurlMulti,
        _ owner: any HTTPTransferOwner
    ) {
        self.handle = handle
        reportsProgress = options.reportsProgress
        mayEndInCoding = options.mayEndInCoding
        isHead = request.method == "HEAD"
        requestBody = RequestBody(request)
        self.handles = handles
        self.multi = multi
        self.owner = owner
    }

    deinit { close() }

    /// 10, 11, 20 or 30; 0 before the answer.
    var httpVersion: Int { isOpen ? Int(shim_curl_http_version(easy)) : 0 }

    /// Its connection was made for it.
    var madeConnection: Bool { isOpen && !handle.wasReused }

    /// Bytes of the body as they came, before they are decoded.
    var bytesReceived: UInt64 { isOpen ? handle.bytesReceived : 0 }

    /// When the request could go out; nil before.
    var requestStarted: Instant? {
        guard isOpen else { return nil }
        let delay = handle.requestDelay
        return delay == 0 ? nil : started + .nanoseconds(Int64(clamping: delay))
    }

    /// Drops the exchange; its owner hears nothing more.
    /// - Parameter connectionToo: it may be dead: it is not used any more once nobody is on it.
    func close(connectionToo: Bool = false) {
        guard isOpen, !multi.isForked else { return }
        // Bytes of this exchange do not count as a flood against others on its connection.
        creditTLS()
        if result != CURLE_OK { shim_tls_drop_answer(handle.tlsGuard) }
        isOpen = false
        owner = nil
        if let wordTimer, wordTimer.isArmed { multi.loop.disarm(wordTimer) }
        // A handle whose exchange is done may go to another.
        if connectionToo, result == nil { handle.abandonConnection() }
        multi.remove(self)
        handle.dismiss()
        // One that was broken off may have something left.
        if result == CURLE_OK, !handle.wasRepeated { handles?.giveBack(handle) }
    }

    /// Delivers the rest of the body as it comes: for an answer whose body is not wanted.
    func stopDecoding() { decoder = nil }

    /// Stops, or goes on, handing the body over.
    func pause(_ paused: Bool) {
        guard isOpen, isPaused != paused else { return }
        isPaused = paused
        // What waits here is told from the loop; what waits in libcurl comes after it.
        if !paused { note() }
    }

    /// Hands over bytes of a streamed request body.
    func upload(_ bytes: UnsafeRawBufferPointer) {
        requestBody.append(bytes)
        releaseUpload()
    }

    /// The request's body is whole; or it cannot be had, which ends the exchange.
    func endUpload(failed: Bool = false) {
        requestBody.end(failed: failed)
        releaseUpload()
    }

    private func releaseUpload() {
        guard isOpen, requestBody.hasWaited() else { return }
        letGo()
    }

    /// The server has had its word on the request's body, or has said nothing.
    func timeReached(_ now: Instant) {
        if requestBody.isWithheld { requestBody.begin() }
        releaseUpload()
    }

    private func awaitWord(for time: Duration) {
        let timer = wordTimer ?? LoopTimer()
        wordTimer = timer
        multi.loop.arm(timer, self, at: Loop.now() + time)
    }

    private func letGo() {
        isHeld = false
        // What libcurl kept comes in here, all of it: what is held in the midst is copied again.
        isLettingGo = true
        // A request's body that waits goes on waiting.
        _ = curl_easy_pause(easy, requestBody.isAwaited ? CURLPAUSE_SEND : CURLPAUSE_CONT)
        isLettingGo = false
    }

    // MARK: CurlUser

    func finished(_ result: CURLcode) {
        self.result = result
        creditTLS()
        shim_tls_credit(handle.tlsGuard, HTTPTransfer.exchangeBytes)
        var socket: curl_socket_t = CURL_SOCKET_BAD
        if shim_curl_kept_socket(easy, &socket) {
            multi.sockets.keep(socket, isAlternating: httpVersion < 20)
        }
        // What a proxy said instead of opening a tunnel; libcurl keeps its answer to itself.
        if result != CURLE_OK, head == nil, !isAnswered, shim_curl_connect_status(easy) == 407 {
            var refusal = ResponseHead(status: 407, reason: "Proxy Authentication Required")
            refusal.proxy = handle.way.proxyName
            head = refusal
            self.result = CURLE_OK
        }
        // Behind what is still to be told.
        deliver()
        if hasCome { owner?.answerCame(by: self) }
    }

    /// The whole answer has come, and its owner holds nothing up: only our own work delays its end.
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
        // What its owner does not take yet must not keep it on the connection.
        handle.abandonConnection()
        multi.remove(self)
        deliver()
    }

    func multiClosed() {
        let owner = owner
        close()
        owner?.loopClosed()
    }

    /// Has `deliver` called when libcurl has returned.
    func note() {
        guard !isNoted else { return }
        isNoted = true
        multi.hasNews(self)
    }

    func deliver() {
        isNoted = false
        // A pause that ends inside a callback must not begin another round in it.
        guard isOpen, !isDelivering else { return }
        isDelivering = true
        deliverAll()
        isDelivering = false
    }

    private func deliverAll() {
        if var head {
            self.head = nil
            isAnswered = true
            // A server has no such answer of its own (RFC 9110 §15.5.8).
            if head.status == 407, !handle.way.isTunnel { head.proxy = handle.way.proxyName }
            owner?.received(head, by: self)
        }
        deliverBody()
        if let fault, isOpen { return end(HTTPFailure(fault)) }
        holdBack()
        if let progress, isOpen {
            self.progress = nil
            owner?.progressed(progress, by: self)
        }
        if wantsBody, isOpen {
            wantsBody = false
            owner?.wantsBody(of: self)
        }
        guard isOpen, isBodyTold else { return }
        if let result {
            end(failure(result))
        } else if isHeld, !isPaused, !isSuspended {
            // Its write callback is called in here, and notes what comes.
            letGo()
        }
    }

    private func end(_ failure: HTTPFailure?) {
        let owner = owner
        close()
        owner?.ended(failure, by: self)
    }

    /// What its owner does not take now stays in the kernel, and slows the server down.
    private func holdBack() {
        guard isOpen, result == nil,
            body.count >= HTTPTransfer.heldBytes || isPaused && !body.isEmpty
        else { return }
        hold()
    }

    /// Has libcurl read no more; not in its callbacks, where it would read once more first.
    func hold() {
        guard !isHeld else { return }
        isHeld = true
        // A request's body that waits goes on waiting.
        _ = curl_easy_pause(easy, CURLPAUSE_RECV | (requestBody.isAwaited ? CURLPAUSE_SEND : 0))
    }

    /// Everything that came was delivered.
    private var isBodyTold: Bool { body.isEmpty && decoder?.hasMore != true }

    private func deliverBody() {
        if let decoder { deliver(by: decoder) }
        while decoder == nil, isOpen, !isPaused, !body.isEmpty, multi.mayTell(body: self) {
            // Taken out, since more may be written while it is told.
            var chunk = ByteBuffer()
            swap(&chunk, &body)
            multi.hasTold(chunk.count)
            owner?.received(chunk.readable, by: self)
            if body.isEmpty {
                chunk.removeAll(keeping: Int.max)
                swap(&chunk, &body)
            }
        }
        multi.takeBack(&body)
    }

    /// Decodes and delivers what came, as far as the loop's turn allows.
    private func deliver(by decoder: ContentDecoder) {
        let turns = multi.decoding
        guard isOpen, !isPaused, !isBodyTold, turns.admits(self) else { return }
        var left = DecodingTurns.bytesPerTransfer
        while isOpen, !isPaused, self.decoder != nil, !isBodyTold {
            guard left > 0, turns.hasRoom else { return turns.enqueue(self) }
            let step: ContentDecoder.Step
            do throws(ContentDecoder.Failure) {
                step = try decoder.decode(body.readable, into: turns.space)
            } catch {
                fault = error.error(from: "\(handle.way)")
                return
            }
            body.consume(step.consumed)
            left -= step.consumed + step.produced
            turns.count(step.consumed + step.produced)
            guard step.produced > 0 else { continue }
            multi.hasTold(step.produced)
            let piece = UnsafeRawBufferPointer(rebasing: turns.space[..<step.produced])
            owner?.received(piece, by: self)
        }
    }

    // MARK: What libcurl calls

    func take(line: UnsafeRawBufferPointer) -> Bool {
        if let head = headReader.read(line) {
            if handle.decodes {
                decoder = ContentDecoder(contentEncoding: head.values("Content-Encoding"))
            }
            isEndedByClose = handle.tlsGuard != nil && !isHead && head.hasBodyUntilClose
            self.head = head
            note()
        }
        if requestBody.isWithheld, head != nil || headReader.saysContinue {
            requestBody.begin(isWanted: (head?.status ?? 100) < 300)
            // libcurl cannot be called in here.
            if requestBody.isAwaited { awaitWord(for: .zero) }
        }
        return !headReader.isTooLarge && headReader.fault == nil
    }

    func take(body bytes: UnsafeRawBufferPointer) -> Int {
        // libcurl reads a hundred times before it returns, as long as there is something.
        if body.count >= HTTPTransfer.heldBytes, !isLettingGo {
            isHeld = true
            return Int(CURL_WRITEFUNC_PAUSE)
        }
        if body.isEmpty { multi.lend(&body) }
        body.append(bytes)
        note()
        return bytes.count
    }

    func give(_ space: UnsafeMutableRawBufferPointer) -> Int {
        switch requestBody.take(into: space) {
        case .bytes(let count): return count
        case .failed: return Int(CURL_READFUNC_ABORT)
        case .later(let isNew):
            if requestBody.isWithheld, wordTimer == nil {
                awaitWord(for: HTTPTransfer.wordTime)
            } else if isNew {
                wantsBody = true
                note()
            }
            return Int(CURL_READFUNC_PAUSE)
        }
    }

    func take(_ progress: Progress) {
        guard progress != self.progress, progress != toldProgress else { return }
        self.progress = progress
        toldProgress = progress
        note()
    }
}
