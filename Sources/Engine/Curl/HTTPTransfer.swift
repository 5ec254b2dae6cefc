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
    func progressed(_ progress: HTTPTransfer.Progress, by transfer: HTTPTransfer) {}
    func wantsBody(of transfer: HTTPTransfer) {}
}

/// One HTTP exchange by libcurl, HTTP/1.1 or 2: a request, its answer's head and body. Redirects,
/// credentials and retries are not its business.
final class HTTPTransfer: CurlUser, TimerTarget {
    var easy: UnsafeMutableRawPointer { handle.easy }
    var isConnected: Bool { handle.isConnected }
    @exclusivity(unchecked) var seat: Int?
    private let handle: CurlHandle
    /// Where the handle goes when the exchange is over.
    private let handles: CurlHandles?
    private let multi: CurlMulti
    @exclusivity(unchecked) private var owner: (any HTTPTransferOwner)?
    private let started = Loop.now()
    @exclusivity(unchecked) private var isOpen = true

    // What libcurl handed over and is not told yet.
    @exclusivity(unchecked) private var isNoted = false
    @exclusivity(unchecked) private var headReader = CurlHead()
    @exclusivity(unchecked) private var head: ResponseHead?
    @exclusivity(unchecked) private var body = ByteBuffer()
    @exclusivity(unchecked) private var progress: Progress?
    @exclusivity(unchecked) private var wantsBody = false
    @exclusivity(unchecked) private var result: CURLcode?
    @exclusivity(unchecked) private var isAnswered = false
    /// What comes may be decoded by libcurl.
    @exclusivity(unchecked) private var isCoded = false
    /// Bytes of the body in the first read, as they came.
    @exclusivity(unchecked) private var firstRead: UInt64 = 0
    @exclusivity(unchecked) private var refusal = HTTP2Refusal()

    @exclusivity(unchecked) private var isDelivering = false
    /// The owner wants no body now.
    @exclusivity(unchecked) private var isPaused = false
    /// libcurl was told to hold the body, or to wait for the request's.
    @exclusivity(unchecked) private var isHeld = false
    @exclusivity(unchecked) private var isLettingGo = false
    @exclusivity(unchecked) private var requestBody: RequestBody
    /// Ends the wait for the server's word on the request's body.
    @exclusivity(unchecked) private var wordTimer: LoopTimer?
    /// As long as libcurl would wait.
    private static let wordTime = Duration.seconds(1)

    /// Undelivered bytes above which libcurl is told to wait.
    private static let heldBytes = 256 << 10
    /// What is decoded and not told may grow to this.
    private let mostUndelivered: Int
    private let decodes: Bool
    private let limitName: String
    @exclusivity(unchecked) private var hasOverflown = false

    /// - Parameters:
    ///   - handle: made for the network that is meant.
    ///   - handles: where it goes when the exchange is over.
    init(
        _ request: borrowing HTTPRequest, _ options: borrowing Options, by handle: CurlHandle,
        backTo handles: CurlHandles? = nil, multi: CurlMulti, owner: any HTTPTransferOwner
    ) throws(RealtimeError) {
        self.handle = handle
        mostUndelivered = options.mostUndelivered
        decodes = options.decodes
        limitName = options.limitName
        requestBody = RequestBody(request)
        self.handles = handles
        self.multi = multi
        self.owner = owner
        handle.worker = .passUnretained(self)
        try handle.prepare(request, options)
        try multi.add(self)
    }

    deinit { close() }

    /// 10, 11, 20 or 30; 0 before the answer.
    var httpVersion: Int { isOpen ? Int(rt_curl_http_version(easy)) : 0 }

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
        isOpen = false
        owner = nil
        if let wordTimer, wordTimer.isArmed { multi.loop.disarm(wordTimer) }
        // A handle whose exchange is done may go to another.
        if connectionToo, result == nil { handle.abandonConnection() }
        multi.remove(self)
        handle.worker = nil
        // One that was broken off may have something left.
        if result == CURLE_OK, !handle.wasRepeated { handles?.giveBack(handle) }
    }

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
        var socket: curl_socket_t = CURL_SOCKET_BAD
        if rt_curl_kept_socket(easy, &socket) { multi.sockets.keep(socket) }
        // What a proxy said instead of opening a tunnel; libcurl keeps its answer to itself.
        if result != CURLE_OK, head == nil, !isAnswered, rt_curl_connect_status(easy) == 407 {
            var refusal = ResponseHead(status: 407, reason: "Proxy Authentication Required")
            refusal.proxy = handle.way.proxyName
            head = refusal
            self.result = CURLE_OK
        }
        // Behind what is still to be told.
        deliver()
    }

    func multiClosed() {
        let owner = owner
        close()
        owner?.loopClosed()
    }

    /// Has `deliver` called when libcurl has returned.
    private func note() {
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
        holdBack()
        if let progress, isOpen {
            self.progress = nil
            owner?.progressed(progress, by: self)
        }
        if wantsBody, isOpen {
            wantsBody = false
            owner?.wantsBody(of: self)
        }
        guard isOpen, body.isEmpty else { return }
        if let result {
            let owner = owner
            let failure = failure(result)
            close()
            owner?.ended(failure, by: self)
        } else if isHeld, !isPaused {
            // Its write callback is called in here, and notes what comes.
            letGo()
        }
    }

    /// What its owner does not take now stays in the kernel, and slows the server down.
    private func holdBack() {
        guard isOpen, result == nil,
            body.count >= HTTPTransfer.heldBytes || isPaused && !body.isEmpty
        else { return }
        hold()
    }

    /// libcurl reads a hundred times before it returns, as long as there is something.
    private var hasEnough: Bool {
        guard body.count >= HTTPTransfer.heldBytes, !isLettingGo else { return false }
        // It keeps what is left of this read, decoded, and fails above 64 MiB: the first is taken
        // whole, as most answers that grow so much are short.
        return !isCoded || handle.bytesReceived != firstRead
    }

    /// Has libcurl read no more; not in its callbacks, where it would read once more first.
    private func hold() {
        guard !isHeld else { return }
        isHeld = true
        // A request's body that waits goes on waiting.
        _ = curl_easy_pause(easy, CURLPAUSE_RECV | (requestBody.isAwaited ? CURLPAUSE_SEND : 0))
    }

    private func deliverBody() {
        while isOpen, !isPaused, !body.isEmpty {
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

    private func failure(_ result: CURLcode) -> HTTPFailure? {
        if result == CURLE_OK { return nil }
        let isConnecting = handle.requestDelay == 0
        let way = handle.way
        if headReader.isTooLarge {
            return HTTPFailure(
                RealtimeError(
                    .tooLarge,
                    "\(way) answered with more than \(CurlHead.limit) bytes of headers"))
        }
        if let what = requestBody.failure {
            return HTTPFailure(
                RealtimeError(what.code, "the body of the request to \(way) \(what.text)"))
        }
        if hasOverflown {
            return HTTPFailure(
                RealtimeError(
                    .tooLarge,
                    "\(way) answered with more than \(mostUndelivered) bytes"
                        + (limitName.isEmpty ? decodedAtOnce : " (\(limitName))")), isFinal: true)
        }
        if result == CURLE_OUT_OF_MEMORY, isCoded, isHeld {
            return HTTPFailure(
                RealtimeError(.tooLarge, "\(way) answered with more than 64 MiB\(decodedAtOnce)"),
                isFinal: true)
        }
        if handle.wasKeptBack || isStale(result) {
            let text = "\(way) ended its connection before an answer"
            return HTTPFailure(RealtimeError(.connectionLost, text), isStale: true)
        }
        if refusal.holds, !isAnswered {
            return HTTPFailure(
                RealtimeError(
                    .connectionLost, "\(way) took no request on its HTTP/2 connection"),
                precedesRequest: true)
        }
        return HTTPFailure(
            CurlFailure.error(result, handle.errorText, on: way, isConnecting: isConnecting),
            precedesRequest: isConnecting, isFinal: result == CURLE_SSL_PINNEDPUBKEYNOTMATCH)
    }

    private var decodedAtOnce: String { " at once, decoded: without compression it can be taken" }

    /// Whether a connection that was kept was found dead (R6): libcurl sends again by itself what
    /// it has, unless it was sending it still.
    private func isStale(_ result: CURLcode) -> Bool {
        switch result {
        case CURLE_SEND_FAIL_REWIND: true
        case CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_GOT_NOTHING:
            handle.wasReused && !headReader.hasBegun
        default: false
        }
    }

    // MARK: What libcurl calls

    /// Without a retain for each line: libcurl's multi handle holds who it works for.
    private static func with(
        _ user: UnsafeMutableRawPointer?, _ body: (HTTPTransfer) -> Int
    ) -> Int {
        guard let user,
            let worker = Unmanaged<CurlHandle>.fromOpaque(user)._withUnsafeGuaranteedRef({
                $0.worker
            })
        else { return 0 }
        return worker._withUnsafeGuaranteedRef(body)
    }

    static let headerCame: rt_curl_data_fn = { data, _, count, user in
        with(user) { me in me.take(header: UnsafeRawBufferPointer(start: data, count: count)) }
    }

    static let wordCame: rt_curl_debug_fn = { _, kind, text, count, user in
        guard kind == CURLINFO_TEXT else { return 0 }
        return Int32(
            with(user) { me in
                me.refusal.read(UnsafeRawBufferPointer(start: text, count: count))
                me.handle.setNotBegun(me.refusal.holds)
                return 0
            })
    }

    static let bodyCame: rt_curl_data_fn = { data, _, count, user in
        with(user) { me in me.take(body: UnsafeRawBufferPointer(start: data, count: count)) }
    }

    static let bodyWanted: rt_curl_data_fn = { data, _, capacity, user in
        with(user) { me in
            me.give(UnsafeMutableRawBufferPointer(start: data, count: capacity))
        }
    }

    static let progressCame: rt_curl_progress_fn = {
        user, toReceive, received, toSend, sent in
        let progress = Progress(
            sent: UInt64(max(0, sent)), toSend: UInt64(max(0, toSend)),
            received: UInt64(max(0, received)), toReceive: UInt64(max(0, toReceive)))
        return Int32(
            with(user) { me in
                me.take(progress)
                return 0
            })
    }

    private func take(header line: UnsafeRawBufferPointer) -> Int {
        if let head = headReader.read(line) {
            isCoded = decodes && !head.values("Content-Encoding").isEmpty
            self.head = head
            note()
        }
        if requestBody.isWithheld, head != nil || headReader.saysContinue {
            requestBody.begin(isWanted: (head?.status ?? 100) < 300)
            // libcurl cannot be called in here.
            if requestBody.isAwaited { awaitWord(for: .zero) }
        }
        return headReader.isTooLarge ? 0 : line.count
    }

    private func take(body bytes: UnsafeRawBufferPointer) -> Int {
        if hasEnough {
            isHeld = true
            return Int(CURL_WRITEFUNC_PAUSE)
        }
        guard bytes.count <= mostUndelivered - body.count else {
            hasOverflown = true
            return 0
        }
        if body.isEmpty { multi.lend(&body) }
        if isCoded, firstRead == 0 { firstRead = handle.bytesReceived }
        body.append(bytes)
        note()
        return bytes.count
    }

    private func give(_ space: UnsafeMutableRawBufferPointer) -> Int {
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

    private func take(_ progress: Progress) {
        guard progress != self.progress, progress != toldProgress else { return }
        self.progress = progress
        toldProgress = progress
        note()
    }

    @exclusivity(unchecked) private var toldProgress = Progress()
}
