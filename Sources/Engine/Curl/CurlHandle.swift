import CShims
import Session
import Wire

/// A libcurl easy handle that serves one exchange after another over the same network. Options that
/// stay the same are set once, because setting them takes longer than a short exchange; `prepare`
/// sets the others.
final class CurlHandle {
    let easy: UnsafeMutableRawPointer
    /// The object that it works for, which removes itself when it is done or released. Read for
    /// each line and piece that arrives.
    @exclusivity(unchecked) private(set) var worker: UnsafeMutableRawPointer?
    @exclusivity(unchecked) private var hasCalls = false
    private let configuration: NetworkConfiguration
    private let network: CurlNetwork
    /// A URL with the origin that is set on the handle.
    @exclusivity(unchecked) private var lastURL: HTTPURL
    @exclusivity(unchecked) private var origin: CurlOrigin
    @exclusivity(unchecked) private(set) var route: CurlRoute
    /// The network chooses addresses in its own way, so connections to a proxy must not be shared
    /// with other networks. Direct ones are told apart by `CurlNetwork.placeholder`.
    private let hasOwnAddresses: Bool
    private let forkGeneration = shim_fork_generation()
    private let notes: UnsafeMutablePointer<shim_curl_notes>
    @exclusivity(unchecked) private var connection = CurlConnection()
    // The current settings; kept if the next request needs the same.
    @exclusivity(unchecked) private var settings: Settings?
    @exclusivity(unchecked) private var list: UnsafeMutablePointer<curl_slist>?
    /// Headers for a proxy that must open a tunnel.
    @exclusivity(unchecked) private var proxyList: UnsafeMutablePointer<curl_slist>?
    @exclusivity(unchecked) private var listed: Listed?
    /// Whether the last request was a GET without a body.
    @exclusivity(unchecked) private var isPlain = true

    /// The size of one read of libcurl. Pages that smaller reads do not touch cost no memory.
    private static let readBytes = 60 << 10

    convenience init(
        _ configuration: NetworkConfiguration, to url: HTTPURL, on multi: CurlMulti
    ) throws(RealtimeError) {
        let origin = try CurlOrigin(url)
        guard let easy = curl_easy_init() else {
            throw RealtimeError(.system, "libcurl could not create a handle")
        }
        let network: CurlNetwork
        do throws(RealtimeError) {
            network = try CurlNetwork(configuration, on: easy)
        } catch {
            curl_easy_cleanup(easy)
            throw error
        }
        self.init(easy, configuration, network, to: url, origin, on: multi)
        try network.set(route, on: easy)
    }

    private init(
        _ easy: UnsafeMutableRawPointer, _ configuration: NetworkConfiguration,
        _ network: CurlNetwork, to url: HTTPURL, _ origin: CurlOrigin, on multi: CurlMulti
    ) {
        self.easy = easy
        self.configuration = configuration
        self.network = network
        self.origin = origin
        lastURL = url
        route = CurlRoute(to: url, by: configuration)
        hasOwnAddresses = !configuration.resolves.isEmpty || configuration.interface != nil
        notes = .allocate(capacity: 1)
        notes.initialize(to: shim_curl_notes())
        notes.pointee.tls.turn = multi.tls
        origin.set(on: easy)
        _ = shim_curl_set_string(easy, CURLOPT_PROTOCOLS_STR, "http,https")
        _ = shim_curl_set_long(easy, CURLOPT_NOSIGNAL, 1)
        _ = shim_curl_set_long(easy, CURLOPT_QUICK_EXIT, 1)
        notes.pointee.cut_if_dirty = CurlSockets.cutIfDirty
        notes.pointee.cut_user = Unmanaged.passUnretained(multi.sockets).toOpaque()
        _ = shim_curl_set_notes(easy, notes)
        notes.pointee.dial.receive_buffer_bytes = Int32(clamping: configuration.receiveBufferBytes)
        _ = shim_curl_set_close_socket(
            easy, CurlSockets.closed, Unmanaged.passUnretained(multi.sockets).toOpaque())
        _ = shim_curl_set_long(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
        _ = shim_curl_set_long(easy, CURLOPT_BUFFERSIZE, CurlHandle.readBytes)
    }

    /// The connection that its exchange uses.
    func opened(by httpVersion: Int) -> Shared<Opened> {
        connection.opened(
            on: easy, httpVersion, route.isSecure ? tlsGuard : nil, configuration.unixSocket)
    }

    /// Sets the worker that libcurl's callbacks serve. All workers of a handle use the same
    /// callbacks.
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
        _ = shim_curl_set_debug(easy, calls.log, me)
        notes.pointee.dial.wanted = calls.socketWanted
        notes.pointee.dial.user = me
    }

    /// The worker is done or released.
    func dismiss() { worker = nil }

    deinit {
        // In a forked child the connections belong to the parent.
        guard forkGeneration == shim_fork_generation() else { return }
        curl_easy_cleanup(easy)
        curl_slist_free_all(list)
        curl_slist_free_all(proxyList)
        shim_tls_forget(&notes.pointee.tls)
        shim_curl_drop_dialed(&notes.pointee.dial)
        notes.deallocate()
    }

    /// The connection is established, and the request is being sent.
    var isConnected: Bool { notes.pointee.is_connected }

    /// How long it took until the request could be sent; zero before.
    var requestDelay: UInt64 {
        // Until this exchange has a connection, libcurl returns the last exchange's figure.
        isConnected ? shim_curl_request_delay(easy) : 0
    }

    /// Bytes of the response's body so far, before they are decoded.
    var bytesReceived: UInt64 { shim_curl_bytes_received(easy) }

    /// Sets whether the server said that it did not process the request, which may then be
    /// repeated.
    func setNotBegun(_ isNotBegun: Bool) { notes.pointee.was_not_begun = isNotBegun }

    /// The last connection was shut down before the request was sent on it.
    var wasCut: Bool { notes.pointee.was_cut }

    /// libcurl would have repeated the request on another connection, and was prevented.
    var wasKeptBack: Bool { notes.pointee.was_kept_back }

    /// libcurl has repeated a request itself. It counts repetitions per handle, so reusing this one
    /// could end an unrelated exchange.
    var wasRepeated: Bool { notes.pointee.was_repeated }

    /// The TLS connection that it uses or used; nil for none.
    var tlsGuard: UnsafeMutablePointer<shim_tls_guard>? { notes.pointee.tls.guard }

    /// Whether the last exchange reused a connection.
    var wasReused: Bool { shim_curl_was_reused(easy) }

    /// Closes the connection after the exchange, so that no other uses it.
    func abandonConnection() {
        // The next request sets this option again.
        settings?.isAlone = true
        _ = shim_curl_set_long(easy, CURLOPT_FORBID_REUSE, 1)
    }

    /// libcurl's description of a failure; "" if there is none.
    var errorText: UnsafePointer<CChar> { shim_curl_error_text(notes) }

    // MARK: Connections

    /// The network that its connections use.
    var dialNetwork: NetworkConfiguration { configuration }

    /// libcurl needs a new connection. If that is to repeat a request that must not be repeated,
    /// its attempt may fail.
    func mayDial() -> Bool {
        let notes = notes.pointee
        let isKeptBack =
            notes.is_connected && notes.goes_out_once && !notes.was_not_begun && !notes.was_cut
        if isKeptBack { self.notes.pointee.was_kept_back = true }
        return !isKeptBack
    }

    /// Sets the socket for libcurl's next connection. If it needs no TLS, it is also used if
    /// another connection is idle by now: otherwise it would be closed, and a later exchange might
    /// need one.
    func give(_ socket: DialedSocket) {
        notes.pointee.dial.give(socket)
        guard !route.isSecure, settings?.isFresh == false else { return }
        // As in `limitConnecting`.
        settings?.isFresh = true
        _ = shim_curl_set_long(easy, CURLOPT_FRESH_CONNECT, 1)
    }

    /// Limits the rest of connecting: to a proxy's host, and TLS.
    func limitConnecting(to time: Duration) {
        let milliseconds = Int(min(max(1, time.clampedNanoseconds / 1_000_000), UInt64(Int32.max)))
        // The other settings are still needed; the next request sets this one again.
        settings?.connectMilliseconds = milliseconds
        _ = shim_curl_set_long(easy, CURLOPT_CONNECTTIMEOUT_MS, milliseconds)
    }

    // MARK: One exchange

    /// - Parameter isCrowded: too many connections are idle, so close those that were not used
    ///   lately.
    func prepare(
        _ request: borrowing HTTPRequest, _ options: borrowing HTTPTransferOptions, isCrowded: Bool
    ) throws(RealtimeError) {
        shim_curl_clear_notes(notes)
        notes.pointee.goes_out_once =
            options.goesOutOnce && !RetryRules.isIdempotent(request.method)
        if !request.url.hasSameOrigin(as: lastURL) {
            let new = try CurlOrigin(request.url)
            new.set(on: easy)
            // Released only now that libcurl has the new one.
            origin = new
            lastURL = request.url
            route = CurlRoute(to: lastURL, by: configuration)
            try network.set(route, on: easy)
        }
        _ = shim_curl_set_string(
            easy, CURLOPT_REQUEST_TARGET, route.isForwarded ? request.url.text : request.url.target)
        var wanted = Settings(
            for: request, options, isAlone: hasOwnAddresses && route.proxyURL != nil,
            isTunnel: route.isTunnel)
        if isCrowded { wanted.idleSeconds = 2 }
        if wanted != settings { wanted.set(on: easy) }
        settings = wanted
        setBody(request)
        try setFields(request, decodes: wanted.decodes)
    }

    /// Whether it waits for a connection that it can share.
    var waitsForShare: Bool { settings?.waitsForShare ?? false }

    /// Whether content codings were offered, so that we decode. libcurl would decode a whole read
    /// at once, however much it grows. A caller that sends Accept-Encoding also decodes the
    /// response.
    var decodes: Bool { settings?.decodes ?? false }

    /// The options of a request, apart from its URL, headers and body.
    private struct Settings: Equatable {
        var offersHTTP2: Bool
        var connectMilliseconds: Int
        var decodes: Bool
        var waitsForShare: Bool
        var isFresh: Bool
        /// No other exchange may use its connection.
        var isAlone: Bool
        /// For callers that want it, and to limit a proxy's response to CONNECT.
        var hasProgress: Bool
        /// To learn that the server did not process a request. Not needed for idempotent requests,
        /// which are repeated anyway.
        var isWatched: Bool
        /// Connections that were idle for longer are not used. libcurl closes them, too, but only
        /// when it makes another, and at most once a second.
        var idleSeconds = 118

        init(
            for request: borrowing HTTPRequest, _ options: borrowing HTTPTransferOptions,
            isAlone: Bool, isTunnel: Bool
        ) {
            // libcurl 7.88 sends on a shareable connection before its tunnel is open.
            offersHTTP2 = options.offersHTTP2 && !isTunnel
            // libcurl's default would end an attempt after 300 s.
            let connectTime =
                options.connectTimeout > .zero
                ? max(1, options.connectTimeout.clampedNanoseconds / 1_000_000) : .max
            connectMilliseconds = Int(min(connectTime, UInt64(Int32.max)))
            decodes = options.decodes && !request.has("Accept-Encoding")
            waitsForShare = options.prefersSharing && offersHTTP2
            self.isAlone = isAlone
            isFresh = options.takesFreshConnection || isAlone
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
            _ = shim_curl_set_long(easy, CURLOPT_FORBID_REUSE, isAlone ? 1 : 0)
            _ = shim_curl_set_long(easy, CURLOPT_NOPROGRESS, hasProgress ? 0 : 1)
            _ = shim_curl_set_long(easy, CURLOPT_VERBOSE, isWatched ? 1 : 0)
            _ = shim_curl_set_long(easy, CURLOPT_MAXAGE_CONN, idleSeconds)
        }
    }

    /// Releases what only the last request needed.
    func clear() {
        worker = nil
        guard !isPlain else { return }
        _ = shim_curl_set_pointer(easy, CURLOPT_POSTFIELDS, nil)
        _ = shim_curl_set_string(easy, CURLOPT_CUSTOMREQUEST, nil)
        _ = shim_curl_set_long(easy, CURLOPT_HTTPGET, 1)
        isPlain = true
    }

    /// What the header lines were made from.
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
            sendsBody: request.sendsBody, decodes: decodes, isTunnel: route.isTunnel,
            // On a connection to a proxy, libcurl 7.88 takes the brackets of an IPv6 address from
            // the previous host.
            host: route.isForwarded && !request.has("Host") ? request.url.hostHeader : nil)
        if wanted == listed { return }
        // The request for the tunnel is separate; the other one goes to the server.
        func isForProxy(_ field: HeaderField) -> Bool {
            wanted.isTunnel && field.name.equalsIgnoringASCIICase("Proxy-Authorization")
        }
        var lines = request.fields.filter { !isForProxy($0) }.map(CurlHandle.line)
        func add(_ line: String) { lines.append(Array(line.utf8)) }
        // First, because libcurl checks only the first: it must not wait for a 100 itself, as it
        // would answer a 417 by repeating the request endlessly.
        if wanted.sendsBody { lines.insert(Array("Expect:".utf8), at: 0) }
        if let host = wanted.host { add("Host: \(host)") }
        if let basic = wanted.basic { add("Authorization: \(basic)") }
        if !request.has("User-Agent") { add("User-Agent: \(ClientHandshake.userAgent)") }
        if decodes { add("Accept-Encoding: \(ContentDecoder.acceptedCodings)") }
        // libcurl's default would name the type of a form.
        if wanted.sendsBody, !request.has("Content-Type") { add("Content-Type:") }
        listed = nil
        try CurlHandle.set(&list, to: lines)
        try CurlHandle.set(&proxyList, to: request.fields.filter(isForProxy).map(CurlHandle.line))
        _ = shim_curl_set_pointer(easy, CURLOPT_HTTPHEADER, list)
        _ = shim_curl_set_pointer(easy, CURLOPT_PROXYHEADER, proxyList)
        listed = wanted
    }

    /// For an empty value: libcurl would remove the header, but with a semicolon it sends it empty.
    private static func line(_ field: HeaderField) -> [UInt8] {
        field.value.utf8.trimmingBlanks.isEmpty
            ? Array("\(field.name);".utf8) : Array("\(field.name): ".utf8) + field.content.bytes
    }

    private static func set(
        _ list: inout UnsafeMutablePointer<curl_slist>?, to lines: [[UInt8]]
    ) throws(RealtimeError) {
        curl_slist_free_all(list)
        list = nil
        // libcurl walks to the end of the list that it gets, so pass the last node.
        var last: UnsafeMutablePointer<curl_slist>?
        for line in lines {
            let text = line.map { CChar(bitPattern: $0) } + [0]
            guard let longer = curl_slist_append(last, text) else {
                throw RealtimeError(.system, "libcurl could not store a header")
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

    /// Sets a body that libcurl requests piece by piece.
    private func upload(_ length: Int) {
        _ = shim_curl_set_long(easy, CURLOPT_UPLOAD, 1)
        _ = shim_curl_set_offset(easy, CURLOPT_INFILESIZE_LARGE, length)
    }

    private func copyBody(_ bytes: [UInt8]) {
        // The size first, because libcurl copies that many bytes.
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

/// Idle handles of one network, kept for the next exchange. The loop's owner only.
final class CurlHandles {
    private let network: NetworkConfiguration
    private let loop: Loop
    @exclusivity(unchecked) private var known: CurlMulti?
    @exclusivity(unchecked) private var idle: [CurlHandle] = []
    /// Limited, because each may hold one of libcurl's buffers.
    private static let most = 16

    init(_ network: NetworkConfiguration, on loop: Loop) {
        self.network = network
        self.loop = loop
    }

    /// The loop's multi handle.
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

    /// Takes back a handle whose exchange was completed.
    func putBack(_ handle: CurlHandle) {
        guard idle.count < CurlHandles.most else { return }
        handle.clear()
        idle.append(handle)
    }

    func removeAll() { idle = [] }
}

extension HTTPRequest {
    /// Whether a body or its length is sent. Methods for which a body has a meaning also announce
    /// an empty one (RFC 9110 §8.6).
    fileprivate var sendsBody: Bool {
        body != .none || ["POST", "PUT", "PATCH"].contains(method)
    }
}
