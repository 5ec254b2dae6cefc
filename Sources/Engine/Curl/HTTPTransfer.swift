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
final class HTTPTransfer: CurlUser {
    struct Options {
        var network = NetworkConfiguration()
        /// From the start to a connection that is ready, TLS included; zero for none.
        var connectTimeout: Duration = .zero
        /// Offers every coding that libcurl knows, and decodes.
        var decodes = true
        /// Over TLS, where the server agrees to it.
        var offersHTTP2 = true
        /// Waits for a connection that can be shared rather than opening another.
        var prefersSharing = false
        var takesFreshConnection = false
        var reportsProgress = false
        /// The kernel's probes of an idle connection, unless the network sets its own.
        var keepsAlive = false
    }

    struct Progress: Equatable {
        /// Bytes of bodies; the totals are 0 when they are not known.
        var sent: UInt64 = 0
        var toSend: UInt64 = 0
        var received: UInt64 = 0
        var toReceive: UInt64 = 0
    }

    let easy: UnsafeMutableRawPointer
    private let multi: CurlMulti
    private let way: CurlWay
    private var owner: (any HTTPTransferOwner)?
    private let errorText: UnsafeMutablePointer<CChar>
    private var fields: UnsafeMutablePointer<curl_slist>?
    private var network: CurlNetwork?
    private let options: Options
    private let started = Loop.now()
    private var isOpen = true

    // What libcurl handed over and is not told yet.
    private var isNoted = false
    private var headReader = CurlHead()
    private var head: ResponseHead?
    private var body = ByteBuffer()
    private var progress: Progress?
    private var wantsBody = false
    private var result: CURLcode?

    private var isDelivering = false
    /// The owner wants no body now.
    private var isPaused = false
    /// libcurl was told to hold the body, or to wait for the request's.
    private var isHeld = false
    private var uploaded = ByteBuffer()
    private var uploadEnded = false
    private var uploadFailed = false
    private var uploadWaits = false

    /// Undelivered bytes above which libcurl is told to wait.
    private static let heldBytes = 256 << 10
    /// One read of libcurl's. What a small read does not touch costs no memory.
    private static let readBytes = 64 << 10

    init(
        _ request: HTTPRequest, _ options: Options, multi: CurlMulti,
        owner: any HTTPTransferOwner
    ) throws(RealtimeError) {
        guard let easy = curl_easy_init() else {
            throw RealtimeError(.system, "libcurl could not make a handle")
        }
        self.easy = easy
        self.multi = multi
        self.owner = owner
        self.options = options
        way = CurlWay(to: request.url, by: options.network)
        errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
        errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        network = try CurlNetwork(options.network, way, on: easy)
        configure(request)
        try setFields(request)
        setBody(request)
        try multi.add(self)
    }

    deinit { close() }

    /// 10, 11, 20 or 30; 0 before the answer.
    var httpVersion: Int { isOpen ? Int(rt_curl_http_version(easy)) : 0 }

    /// When the request could go out; nil before.
    var requestStarted: Instant? {
        guard isOpen else { return nil }
        let delay = rt_curl_request_delay(easy)
        return delay == 0 ? nil : started + .nanoseconds(Int64(clamping: delay))
    }

    /// Drops the exchange; its owner hears nothing more.
    func close() {
        guard isOpen, !multi.isForked else { return }
        isOpen = false
        owner = nil
        multi.remove(self)
        curl_easy_cleanup(easy)
        network = nil
        curl_slist_free_all(fields)
        errorText.deallocate()
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
        uploaded.append(bytes)
        releaseUpload()
    }

    /// The request's body is whole; or it cannot be had, which ends the exchange.
    func endUpload(failed: Bool = false) {
        uploadEnded = true
        uploadFailed = failed
        releaseUpload()
    }

    private func releaseUpload() {
        guard uploadWaits, isOpen else { return }
        uploadWaits = false
        letGo()
    }

    private func letGo() {
        isHeld = false
        _ = curl_easy_pause(easy, CURLPAUSE_CONT)
    }

    // MARK: CurlUser

    func finished(_ result: CURLcode) {
        self.result = result
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
        if let head {
            self.head = nil
            owner?.received(head, by: self)
        }
        deliverBody()
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

    private func deliverBody() {
        while isOpen, !isPaused, !body.isEmpty {
            // Taken out, since more may be written while it is told.
            var chunk = ByteBuffer()
            swap(&chunk, &body)
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
        let isConnecting = rt_curl_request_delay(easy) == 0
        if headReader.isTooLarge {
            return HTTPFailure(
                RealtimeError(
                    .tooLarge,
                    "\(way) answered with more than \(CurlHead.limit) bytes of headers"))
        }
        if uploadFailed {
            return HTTPFailure(
                RealtimeError(
                    .cancelled, "the body of the request to \(way) ended with an error"))
        }
        return HTTPFailure(
            CurlFailure.error(result, errorText, on: way, isConnecting: isConnecting),
            precedesRequest: isConnecting, isFinal: result == CURLE_SSL_PINNEDPUBKEYNOTMATCH,
            // Of a connection that was kept and found dead: libcurl sends again what it has itself.
            isStale: result == CURLE_SEND_FAIL_REWIND)
    }

    // MARK: The request

    private func configure(_ request: HTTPRequest) {
        _ = rt_curl_set_string(easy, CURLOPT_URL, request.url.requestURL)
        _ = rt_curl_set_string(easy, CURLOPT_PROTOCOLS_STR, "http,https")
        _ = rt_curl_set_long(easy, CURLOPT_NOSIGNAL, 1)
        _ = rt_curl_set_long(easy, CURLOPT_QUICK_EXIT, 1)
        _ = rt_curl_set_pointer(easy, CURLOPT_ERRORBUFFER, errorText)
        _ = rt_curl_set_long(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
        _ = rt_curl_set_long(easy, CURLOPT_BUFFERSIZE, HTTPTransfer.readBytes)
        let version =
            options.offersHTTP2 ? Int(CURL_HTTP_VERSION_2TLS) : Int(CURL_HTTP_VERSION_1_1)
        _ = rt_curl_set_long(easy, CURLOPT_HTTP_VERSION, version)
        // libcurl's default would end an attempt after 300 s.
        let connectTime =
            options.connectTimeout > .zero
            ? max(1, options.connectTimeout.clampedNanoseconds / 1_000_000) : UInt64(Int32.max)
        _ = rt_curl_set_long(
            easy, CURLOPT_CONNECTTIMEOUT_MS, Int(min(connectTime, UInt64(Int32.max))))
        let namesCodings = !request.values("Accept-Encoding").isEmpty
        if options.decodes, !namesCodings {
            _ = rt_curl_set_string(easy, CURLOPT_ACCEPT_ENCODING, "")
        }
        if options.prefersSharing { _ = rt_curl_set_long(easy, CURLOPT_PIPEWAIT, 1) }
        // A connection to an address of one's own choice is for who chose it.
        let isOwn = !options.network.resolves.isEmpty
        if isOwn || options.takesFreshConnection {
            _ = rt_curl_set_long(easy, CURLOPT_FRESH_CONNECT, 1)
        }
        if isOwn { _ = rt_curl_set_long(easy, CURLOPT_FORBID_REUSE, 1) }
        if options.keepsAlive, options.network.tcpKeepAlive == .zero {
            _ = rt_curl_set_long(easy, CURLOPT_TCP_KEEPALIVE, 1)
            _ = rt_curl_set_long(easy, CURLOPT_TCP_KEEPIDLE, 30)
            _ = rt_curl_set_long(easy, CURLOPT_TCP_KEEPINTVL, 15)
            _ = rt_curl_set_open_socket(
                easy, Int32(clamping: options.network.receiveBufferBytes), 4)
        }
        let me = Unmanaged.passUnretained(self).toOpaque()
        _ = rt_curl_set_data(
            easy, CURLOPT_HEADERFUNCTION, HTTPTransfer.headerCame, CURLOPT_HEADERDATA, me)
        _ = rt_curl_set_data(
            easy, CURLOPT_WRITEFUNCTION, HTTPTransfer.bodyCame, CURLOPT_WRITEDATA, me)
        if options.reportsProgress {
            _ = rt_curl_set_progress(easy, HTTPTransfer.progressCame, me)
        }
    }

    private func setFields(_ request: HTTPRequest) throws(RealtimeError) {
        func isSet(_ name: String) -> Bool { !request.values(name).isEmpty }
        var lines = request.fields.map {
            $0.value.isEmpty ? "\($0.name);" : "\($0.name): \($0.value)"
        }
        if let credentials = request.url.basicAuthorization, !isSet("Authorization") {
            lines.append("Authorization: \(credentials)")
        }
        if !isSet("User-Agent") { lines.append("User-Agent: \(ClientHandshake.userAgent)") }
        // libcurl's own: it would wait for a 100, and name the type of a form.
        if !isSet("Expect") { lines.append("Expect:") }
        if request.body != .none, !isSet("Content-Type") { lines.append("Content-Type:") }
        for line in lines {
            guard let longer = curl_slist_append(fields, line) else {
                throw RealtimeError(.system, "libcurl could not keep a header")
            }
            fields = longer
        }
        _ = rt_curl_set_pointer(easy, CURLOPT_HTTPHEADER, fields)
    }

    private func setBody(_ request: HTTPRequest) {
        switch request.body {
        case .none:
            if request.method == "HEAD" {
                _ = rt_curl_set_long(easy, CURLOPT_NOBODY, 1)
                return
            }
            // Those whose body has a meaning say that they have none (RFC 9110 §8.6).
            if ["POST", "PUT", "PATCH"].contains(request.method) { copyBody([]) }
        case .bytes(let bytes): copyBody(bytes)
        case .stream(let length):
            _ = rt_curl_set_long(easy, CURLOPT_UPLOAD, 1)
            _ = rt_curl_set_offset(easy, CURLOPT_INFILESIZE_LARGE, length ?? -1)
            _ = rt_curl_set_data(
                easy, CURLOPT_READFUNCTION, HTTPTransfer.bodyWanted, CURLOPT_READDATA,
                Unmanaged.passUnretained(self).toOpaque())
        }
        if request.method != "GET" || request.body != .none {
            _ = rt_curl_set_string(easy, CURLOPT_CUSTOMREQUEST, request.method)
        }
    }

    private func copyBody(_ bytes: [UInt8]) {
        // The size first: libcurl copies as many.
        _ = rt_curl_set_offset(easy, CURLOPT_POSTFIELDSIZE_LARGE, bytes.count)
        bytes.withUnsafeBytes {
            let base = UnsafeMutableRawPointer(mutating: $0.baseAddress ?? HTTPTransfer.noBytes)
            _ = rt_curl_set_pointer(easy, CURLOPT_COPYPOSTFIELDS, base)
        }
    }

    private static var noBytes: UnsafeRawPointer {
        UnsafeRawPointer(StaticString("").utf8Start)
    }

    // MARK: What libcurl calls

    private static func from(_ user: UnsafeMutableRawPointer?) -> HTTPTransfer? {
        user.map { Unmanaged<HTTPTransfer>.fromOpaque($0).takeUnretainedValue() }
    }

    private static let headerCame: rt_curl_data_fn = { data, _, count, user in
        guard let data, let me = from(user) else { return 0 }
        let line = UnsafeRawBufferPointer(start: data, count: count)
        if let head = me.headReader.read(line) {
            me.head = head
            me.note()
        }
        return me.headReader.isTooLarge ? 0 : count
    }

    private static let bodyCame: rt_curl_data_fn = { data, _, count, user in
        guard let data, let me = from(user) else { return 0 }
        if me.body.count >= heldBytes || me.isPaused && !me.body.isEmpty {
            me.isHeld = true
            return Int(CURL_WRITEFUNC_PAUSE)
        }
        if me.body.isEmpty { me.multi.lend(&me.body) }
        me.body.append(UnsafeRawBufferPointer(start: data, count: count))
        me.note()
        return count
    }

    private static let bodyWanted: rt_curl_data_fn = { data, _, capacity, user in
        guard let data, let me = from(user) else { return 0 }
        let count = min(capacity, me.uploaded.count)
        if count > 0, let source = me.uploaded.readable.baseAddress {
            UnsafeMutableRawPointer(data).copyMemory(from: source, byteCount: count)
            me.uploaded.consume(count)
            return count
        }
        if me.uploadEnded { return me.uploadFailed ? Int(CURL_READFUNC_ABORT) : 0 }
        me.uploadWaits = true
        me.wantsBody = true
        me.note()
        return Int(CURL_READFUNC_PAUSE)
    }

    private static let progressCame: rt_curl_progress_fn = {
        user, toReceive, received, toSend, sent in
        guard let me = from(user) else { return 0 }
        let progress = Progress(
            sent: UInt64(max(0, sent)), toSend: UInt64(max(0, toSend)),
            received: UInt64(max(0, received)), toReceive: UInt64(max(0, toReceive)))
        if progress != me.progress, progress != me.toldProgress {
            me.progress = progress
            me.toldProgress = progress
            me.note()
        }
        return 0
    }

    private var toldProgress = Progress()
}
