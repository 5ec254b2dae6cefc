import CShims
import Session
import Wire

/// What libcurl calls for a handle's worker; each is given the handle.
struct CurlCalls {
    /// A line of the answer's head.
    let header: shim_curl_data_fn
    let body: shim_curl_data_fn
    /// More of the request's body is wanted.
    let bodyWanted: shim_curl_data_fn
    let progress: shim_curl_progress_fn
    /// A line of libcurl's own.
    let word: shim_curl_debug_fn
}

/// An easy handle of libcurl's for one exchange after the other over the same network. What is the
/// same for all of them is set when it is made, which costs more than a short exchange; the rest by
/// `prepare`.
final class CurlHandle {
    let easy: UnsafeMutableRawPointer
    /// What it works for, which takes itself away when it is done, or goes. Asked for with each
    /// line and piece that comes.
    @exclusivity(unchecked) private(set) var worker: UnsafeMutableRawPointer?
    @exclusivity(unchecked) private var hasCalls = false
    private let configuration: NetworkConfiguration
    private let network: CurlNetwork
    /// Where it leads to, and how.
    @exclusivity(unchecked) private var place: HTTPURL
    @exclusivity(unchecked) private var origin: CurlOrigin
    @exclusivity(unchecked) private(set) var way: CurlWay
    /// Its addresses are the network's own: its connections are for nobody else.
    private let hasOwnAddresses: Bool
    private let forkGeneration = shim_fork_generation()
    private let notes: UnsafeMutablePointer<shim_curl_notes>
    @exclusivity(unchecked) private var connection = CurlConnection()
    // What is set, and left when the next request wants the same.
    @exclusivity(unchecked) private var settings: Settings?
    @exclusivity(unchecked) private var list: UnsafeMutablePointer<curl_slist>?
    /// For the proxy that is asked for a tunnel.
    @exclusivity(unchecked) private var proxyList: UnsafeMutablePointer<curl_slist>?
    @exclusivity(unchecked) private var listed: Listed?
    /// GET without a body.
    @exclusivity(unchecked) private var isPlain = true

    /// One read of libcurl's. What a small read does not touch costs no memory.
    private static let readBytes = 60 << 10

    convenience init(
        _ configuration: NetworkConfiguration, to url: HTTPURL, on multi: CurlMulti
    ) throws(RealtimeError) {
        let origin = try CurlOrigin(url)
        guard let easy = curl_easy_init() else {
            throw RealtimeError(.system, "libcurl could not make a handle")
        }
        let network: CurlNetwork
        do throws(RealtimeError) {
            network = try CurlNetwork(configuration, on: easy)
        } catch {
            curl_easy_cleanup(easy)
            throw error
        }
        self.init(easy, configuration, network, to: url, origin, on: multi)
    }

    private init(
        _ easy: UnsafeMutableRawPointer, _ configuration: NetworkConfiguration,
        _ network: CurlNetwork, to url: HTTPURL, _ origin: CurlOrigin, on multi: CurlMulti
    ) {
        self.easy = easy
        self.configuration = configuration
        self.network = network
        self.origin = origin
        place = url
        way = CurlWay(to: url, by: configuration)
        hasOwnAddresses = !configuration.resolves.isEmpty
        notes = .allocate(capacity: 1)
        notes.initialize(to: shim_curl_notes())
        notes.pointee.tls.turn = multi.tls
        origin.set(on: easy)
        way.set(on: easy)
        _ = shim_curl_set_string(easy, CURLOPT_PROTOCOLS_STR, "http,https")
        _ = shim_curl_set_long(easy, CURLOPT_NOSIGNAL, 1)
        _ = shim_curl_set_long(easy, CURLOPT_QUICK_EXIT, 1)
        notes.pointee.cut_if_dirty = CurlSockets.cutIfDirty
        notes.pointee.cut_user = Unmanaged.passUnretained(multi.sockets).toOpaque()
        _ = shim_curl_set_notes(easy, notes)
        _ = shim_curl_set_close_socket(
            easy, CurlSockets.closed, Unmanaged.passUnretained(multi.sockets).toOpaque())
        _ = shim_curl_set_long(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
        _ = shim_curl_set_long(easy, CURLOPT_BUFFERSIZE, CurlHandle.readBytes)
        if hasOwnAddresses { _ = shim_curl_set_long(easy, CURLOPT_FORBID_REUSE, 1) }
        if configuration.tcpKeepAlive == .zero { keepAlive(configuration) }
    }

    /// The connection that its exchange is on.
    func opened(by httpVersion: Int) -> Shared<Opened> {
        connection.opened(
            on: easy, httpVersion, way.isSecure ? tlsGuard : nil, configuration.unixSocket)
    }

    /// Has libcurl call a worker. All workers of a handle have the same calls.
    func calls(_ calls: CurlCalls, for worker: UnsafeMutableRawPointer) {
        self.worker = worker
        guard !hasCalls else { return }
        hasCalls = true
        let me = Unmanaged.passUnretained(self).toOpaque()
        _ = shim_curl_set_data(
            easy, CURLOPT_HEADERFUNCTION, calls.header, CURLOPT_HEADERDATA, me)
        _ = shim_curl_set_data(easy, CURLOPT_WRITEFUNCTION, calls.body, CURLOPT_WRITEDATA, me)
        _ = shim_curl_set_data(easy, CURLOPT_READFUNCTION, calls.bodyWanted, CURLOPT_READDATA, me)
        _ = shim_curl_set_progress(easy, calls.progress, me)
        _ = shim_curl_set_debug(easy, calls.word, me)
    }

    /// The worker is done, or goes.
    func dismiss() { worker = nil }

    deinit {
        // A forked child's copy: its connections are the parent's.
        guard forkGeneration == shim_fork_generation() else { return }
        curl_easy_cleanup(easy)
        curl_slist_free_all(list)
        curl_slist_free_all(proxyList)
        shim_tls_forget(&notes.pointee.tls)
        notes.deallocate()
    }

    /// By default the kernel finds a link that is dead without a word: it probes a connection that
    /// has been idle for 20 s, every 5 s, and gives it up after three probes without an answer. All
    /// connections have it, as an event stream may come later on one that was made for a request.
    /// TCP_USER_TIMEOUT would also end an upload to a server that is alive and reads nothing for a
    /// while: Linux counts it while the peer's window is closed, though every probe is answered.
    private func keepAlive(_ configuration: NetworkConfiguration) {
        _ = shim_curl_set_long(easy, CURLOPT_TCP_KEEPALIVE, 1)
        _ = shim_curl_set_long(easy, CURLOPT_TCP_KEEPIDLE, 20)
        _ = shim_curl_set_long(easy, CURLOPT_TCP_KEEPINTVL, 5)
        _ = shim_curl_set_open_socket(easy, Int32(clamping: configuration.receiveBufferBytes), 3)
    }

    /// There is a connection, and the request goes out.
    var isConnected: Bool { notes.pointee.is_connected }

    /// How long it took until the request could go out; zero before.
    var requestDelay: UInt64 {
        // libcurl's figure is the last exchange's until this one has a connection.
        isConnected ? shim_curl_request_delay(easy) : 0
    }

    /// Of the answer's body so far, before it is decoded.
    var bytesReceived: UInt64 { shim_curl_bytes_received(easy) }

    /// The server has said that it has not begun with the request: it may go out again.
    func setNotBegun(_ isNotBegun: Bool) { notes.pointee.was_not_begun = isNotBegun }

    /// It would have gone out again, on another connection.
    var wasKeptBack: Bool { notes.pointee.was_kept_back }

    /// libcurl has sent a request again by itself. It counts how often a handle has: the count of
    /// one that goes from exchange to exchange would end one that has nothing to do with it.
    var wasRepeated: Bool { notes.pointee.was_repeated }

    /// The TLS connection it is on, or was; nil for none.
    var tlsGuard: UnsafeMutablePointer<shim_tls_guard>? { notes.pointee.tls.guard }

    /// No connection was made for the exchange that is over.
    var wasReused: Bool { shim_curl_was_reused(easy) }

    /// Its connection is for nobody else when it goes.
    func abandonConnection() { _ = shim_curl_set_long(easy, CURLOPT_FORBID_REUSE, 1) }

    /// What libcurl says of a failure, "" when it says nothing.
    var errorText: UnsafePointer<CChar> { shim_curl_error_text(notes) }

    // MARK: One exchange

    func prepare(
        _ request: borrowing HTTPRequest, _ options: borrowing HTTPTransferOptions
    ) throws(RealtimeError) {
        shim_curl_clear_notes(notes)
        notes.pointee.goes_out_once =
            options.goesOutOnce && !RetryRules.isIdempotent(request.method)
        if !request.url.hasSameOrigin(as: place) {
            let new = try CurlOrigin(request.url)
            new.set(on: easy)
            // The old one goes when libcurl has the new.
            origin = new
            place = request.url
            way = CurlWay(to: place, by: configuration)
            way.set(on: easy)
        }
        _ = shim_curl_set_string(
            easy, CURLOPT_REQUEST_TARGET, way.isForwarded ? request.url.text : request.url.target)
        let wanted = Settings(
            for: request, options, hasOwnAddresses: hasOwnAddresses, isTunnel: way.isTunnel)
        if wanted != settings { wanted.set(on: easy) }
        settings = wanted
        setBody(request)
        try setFields(request, decodes: wanted.decodes)
    }

    /// Content codings were offered, and are decoded here: libcurl would decode a read as a whole,
    /// whatever it grows to. A caller who sends an Accept-Encoding decodes the answer, too.
    var decodes: Bool { settings?.decodes ?? false }

    /// What a request wants of libcurl beside where it goes and what it says.
    private struct Settings: Equatable {
        var offersHTTP2: Bool
        var connectMilliseconds: Int
        var decodes: Bool
        var waitsForShare: Bool
        var isFresh: Bool
        /// For those who want it; and to limit what a proxy answers to CONNECT.
        var hasProgress: Bool
        /// For what the server says of requests that it has not begun with; others are sent again
        /// either way.
        var isWatched: Bool

        init(
            for request: borrowing HTTPRequest, _ options: borrowing HTTPTransferOptions,
            hasOwnAddresses: Bool, isTunnel: Bool
        ) {
            // libcurl 7.88 sends on a connection that can be shared before its tunnel is open.
            offersHTTP2 = options.offersHTTP2 && !isTunnel
            // libcurl's default would end an attempt after 300 s.
            let connectTime =
                options.connectTimeout > .zero
                ? max(1, options.connectTimeout.clampedNanoseconds / 1_000_000) : .max
            connectMilliseconds = Int(min(connectTime, UInt64(Int32.max)))
            decodes = options.decodes && !request.has("Accept-Encoding")
            waitsForShare = options.prefersSharing && offersHTTP2
            isFresh = options.takesFreshConnection || hasOwnAddresses
            hasProgress = options.reportsProgress || isTunnel
            isWatched =
                offersHTTP2 && request.url.isSecure && !RetryRules.isIdempotent(request.method)
        }

        func set(on easy: UnsafeMutableRawPointer) {
            let version = offersHTTP2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1
            _ = shim_curl_set_long(easy, CURLOPT_HTTP_VERSION, Int(version))
            _ = shim_curl_set_long(easy, CURLOPT_CONNECTTIMEOUT_MS, connectMilliseconds)
            _ = shim_curl_set_long(easy, CURLOPT_PIPEWAIT, waitsForShare ? 1 : 0)
            _ = shim_curl_set_long(easy, CURLOPT_FRESH_CONNECT, isFresh ? 1 : 0)
            _ = shim_curl_set_long(easy, CURLOPT_NOPROGRESS, hasProgress ? 0 : 1)
            _ = shim_curl_set_long(easy, CURLOPT_VERBOSE, isWatched ? 1 : 0)
        }
    }

    /// Lets go of what only the last request needed.
    func clear() {
        worker = nil
        guard !isPlain else { return }
        _ = shim_curl_set_pointer(easy, CURLOPT_POSTFIELDS, nil)
        _ = shim_curl_set_string(easy, CURLOPT_CUSTOMREQUEST, nil)
        _ = shim_curl_set_long(easy, CURLOPT_HTTPGET, 1)
        isPlain = true
    }

    /// What the header lines were made of.
    private struct Listed: Equatable {
        var fields: [HeaderField]
        var basic: String?
        var sendsBody: Bool
        var decodes: Bool
        var isTunnel: Bool
        var host: String?
    }

    private func setFields(_ request: HTTPRequest, decodes: Bool) throws(RealtimeError) {
        let wanted = Listed(
            fields: request.fields,
            basic: request.has("Authorization") ? nil : request.url.basicAuthorization,
            sendsBody: request.sendsBody, decodes: decodes, isTunnel: way.isTunnel,
            // On a connection to a proxy libcurl 7.88 puts the brackets of an IPv6 address as they
            // were for the host before.
            host: way.isForwarded ? request.url.hostHeader : nil)
        if wanted == listed { return }
        // What asks for a tunnel is a request of its own; the other is the server's.
        func isForProxy(_ field: HeaderField) -> Bool {
            wanted.isTunnel && field.name.equalsIgnoringASCIICase("Proxy-Authorization")
        }
        var lines = request.fields.filter { !isForProxy($0) }.map(CurlHandle.line)
        func add(_ line: String) { lines.append(Array(line.utf8)) }
        // libcurl looks at the first: it must not wait for a 100 itself, as it would answer a 417
        // by the same request again, without end.
        if wanted.sendsBody { lines.insert(Array("Expect:".utf8), at: 0) }
        if let host = wanted.host { add("Host: \(host)") }
        if let basic = wanted.basic { add("Authorization: \(basic)") }
        if !request.has("User-Agent") { add("User-Agent: \(ClientHandshake.userAgent)") }
        if decodes { add("Accept-Encoding: \(ContentDecoder.acceptedCodings)") }
        // libcurl's own would name the type of a form.
        if wanted.sendsBody, !request.has("Content-Type") { add("Content-Type:") }
        listed = nil
        try CurlHandle.set(&list, to: lines)
        try CurlHandle.set(&proxyList, to: request.fields.filter(isForProxy).map(CurlHandle.line))
        _ = shim_curl_set_pointer(easy, CURLOPT_HTTPHEADER, list)
        _ = shim_curl_set_pointer(easy, CURLOPT_PROXYHEADER, proxyList)
        listed = wanted
    }

    /// A value of blanks would take the header away, as none does: the semicolon sends it without.
    private static func line(_ field: HeaderField) -> [UInt8] {
        field.value.utf8.trimmingBlanks.isEmpty
            ? Array("\(field.name);".utf8) : Array("\(field.name): ".utf8) + field.content.bytes
    }

    private static func set(
        _ list: inout UnsafeMutablePointer<curl_slist>?, to lines: [[UInt8]]
    ) throws(RealtimeError) {
        curl_slist_free_all(list)
        list = nil
        // libcurl walks to the end of the list that it is given.
        var last: UnsafeMutablePointer<curl_slist>?
        for line in lines {
            let text = line.map { CChar(bitPattern: $0) } + [0]
            guard let longer = curl_slist_append(last, text) else {
                throw RealtimeError(.system, "libcurl could not keep a header")
            }
            if list == nil { list = longer }
            last = longer.pointee.next ?? longer
        }
    }

    private func setBody(_ request: HTTPRequest) {
        if request.method == "GET", request.body == .none { return }
        isPlain = false
        switch request.body {
        case .none:
            if request.method == "HEAD" {
                _ = shim_curl_set_long(easy, CURLOPT_NOBODY, 1)
                return
            }
            if request.sendsBody { copyBody([]) }
        case .bytes(let bytes) where request.expectsContinue: upload(bytes.count)
        case .bytes(let bytes): copyBody(bytes)
        case .stream(let length): upload(length ?? -1)
        }
        _ = shim_curl_set_string(easy, CURLOPT_CUSTOMREQUEST, request.method)
    }

    /// A body that libcurl asks for.
    private func upload(_ length: Int) {
        _ = shim_curl_set_long(easy, CURLOPT_UPLOAD, 1)
        _ = shim_curl_set_offset(easy, CURLOPT_INFILESIZE_LARGE, length)
    }

    private func copyBody(_ bytes: [UInt8]) {
        // The size first: libcurl copies as many.
        _ = shim_curl_set_offset(easy, CURLOPT_POSTFIELDSIZE_LARGE, bytes.count)
        bytes.withUnsafeBytes {
            let base = UnsafeMutableRawPointer(mutating: $0.baseAddress ?? CurlHandle.noBytes)
            _ = shim_curl_set_pointer(easy, CURLOPT_COPYPOSTFIELDS, base)
        }
    }

    private static var noBytes: UnsafeRawPointer {
        UnsafeRawPointer(StaticString("").utf8Start)
    }
}

/// Handles over one network that wait for their next exchange. The loop's owner only.
final class CurlHandles {
    private let network: NetworkConfiguration
    private let loop: Loop
    @exclusivity(unchecked) private var known: CurlMulti?
    @exclusivity(unchecked) private var idle: [CurlHandle] = []
    /// Each may hold a buffer of libcurl's.
    private static let most = 16

    init(_ network: NetworkConfiguration, on loop: Loop) {
        self.network = network
        self.loop = loop
    }

    /// The loop's.
    func multi() throws(RealtimeError) -> CurlMulti {
        if let known { return known }
        let multi = try CurlMulti.of(loop)
        known = multi
        return multi
    }

    func take(for url: HTTPURL) throws(RealtimeError) -> CurlHandle {
        if let handle = idle.popLast() { return handle }
        return try CurlHandle(network, to: url, on: multi())
    }

    /// Takes one back whose exchange went to its end.
    func giveBack(_ handle: CurlHandle) {
        guard idle.count < CurlHandles.most else { return }
        handle.clear()
        idle.append(handle)
    }

    func removeAll() { idle = [] }
}

extension HTTPRequest {
    /// Has a body, or says that it has none, as those do whose body has a meaning (RFC 9110 §8.6).
    fileprivate var sendsBody: Bool {
        body != .none || ["POST", "PUT", "PATCH"].contains(method)
    }
}
