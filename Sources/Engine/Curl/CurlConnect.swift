import CShims
import Glibc
import Session
import Wire

/// Who waits for a connection.
protocol CurlConnectOwner: AnyObject {
    /// - Parameter curl: reads and writes, since TLS is libcurl's; nil for a plain socket, which is
    ///   the owner's from here on.
    func connected(_ socket: Int32, _ curl: CurlConnect?)
    func connectFailed(_ error: RealtimeError)
    /// The loop is over.
    func loopClosed()
}

/// One connection being made by libcurl: name resolution, happy eyeballs, TLS, proxies
/// (`CURLOPT_CONNECT_ONLY`). Afterwards a plain socket is taken over for good and the easy handle
/// is freed; under TLS the handle stays, for `curl_easy_recv` and `curl_easy_send`.
final class CurlConnect: CurlUser {
    let easy: UnsafeMutableRawPointer
    var seat: Int?
    private let multi: CurlMulti
    /// Until it is told; then the cycle with the connection ends. (A weak reference would put every
    /// retain of a connection on the runtime's slow path.)
    private var owner: (any CurlConnectOwner)?
    /// Reading and writing are libcurl's, since TLS is.
    private let keepsCurl: Bool
    let way: CurlWay
    private let errorText: UnsafeMutablePointer<CChar>
    private let socketKeeper = SocketKeeper()
    private let tls: UnsafeMutablePointer<shim_tls_source>
    private var network: CurlNetwork?
    private var isOpen = true
    private var tunnelAnswer = TunnelAnswer()
    /// The bytes of a TLS write that must be repeated: OpenSSL wants the same ones at the same
    /// place.
    private var staged: UnsafeMutableRawBufferPointer?
    private var stagedCount = 0
    private static let recordBytes = 16 << 10

    /// - Parameter time: what there is for it, when its owner ends it; nil for no limit. libcurl
    ///   gives an address that does not answer half of it, when there is another.
    convenience init(
        to url: HTTPURL, by network: NetworkConfiguration, within time: Duration?,
        multi: CurlMulti, owner: any CurlConnectOwner
    ) throws(RealtimeError) {
        guard let easy = curl_easy_init() else {
            throw RealtimeError(.system, "libcurl could not make a handle")
        }
        self.init(easy, to: url, by: network, multi, owner)
        configure(url, time)
        self.network = try CurlNetwork(network, on: easy)
        way.set(on: easy)
        try multi.add(self)
    }

    private init(
        _ easy: UnsafeMutableRawPointer, to url: HTTPURL, by network: NetworkConfiguration,
        _ multi: CurlMulti, _ owner: any CurlConnectOwner
    ) {
        self.easy = easy
        self.multi = multi
        self.owner = owner
        way = CurlWay(to: url, by: network)
        keepsCurl = url.isSecure || way.isProxySecure
        errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
        errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        tls = .allocate(capacity: 1)
        tls.initialize(to: shim_tls_source(turn: multi.tls, guard: nil))
    }

    private func configure(_ url: HTTPURL, _ time: Duration?) {
        _ = shim_curl_set_string(easy, CURLOPT_URL, url.connectURL)
        _ = shim_curl_set_long(easy, CURLOPT_CONNECT_ONLY, 1)
        _ = shim_curl_set_long(easy, CURLOPT_NOSIGNAL, 1)
        // A proxy must tunnel: it cannot forward a WebSocket.
        _ = shim_curl_set_long(easy, CURLOPT_HTTPPROXYTUNNEL, 1)
        // WebSocket over HTTP/1.1 alone: this decides what TLS offers (ALPN).
        _ = shim_curl_set_long(easy, CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
        // Without it, dropping an attempt waits for the resolver's thread: a name server that does
        // not answer would hold up the whole loop.
        _ = shim_curl_set_long(easy, CURLOPT_QUICK_EXIT, 1)
        // Behind the connection's own timer; libcurl's default would end it at 300 s.
        let most = UInt64(Int32.max)
        let limit = time.map { min($0.clampedNanoseconds / 1_000_000 + 1000, most) } ?? most
        _ = shim_curl_set_long(easy, CURLOPT_CONNECTTIMEOUT_MS, Int(limit))
        _ = shim_curl_set_pointer(easy, CURLOPT_ERRORBUFFER, errorText)
        _ = shim_tls_watch(easy, tls)
        if way.proxyURL != nil {
            _ = shim_curl_set_progress(
                easy,
                { user, _, _, _, _ in
                    guard let user else { return 0 }
                    let me = Unmanaged<CurlConnect>.fromOpaque(user).takeUnretainedValue()
                    return me.tunnelAnswer.isTooLong() ? 1 : 0
                }, Unmanaged.passUnretained(self).toOpaque())
        }
        _ = shim_curl_set_close_socket(
            easy, { SocketKeeper.close($0, $1) },
            Unmanaged.passUnretained(socketKeeper).toOpaque())
    }

    deinit { close() }

    /// Drops the attempt or the connection.
    func close() {
        guard isOpen, !multi.isForked else { return }
        isOpen = false
        owner = nil
        multi.remove(self)
        curl_easy_cleanup(easy)
        network = nil
        errorText.deallocate()
        shim_tls_forget(tls)
        tls.deallocate()
        staged?.deallocate()
    }

    var isConnected: Bool { owner == nil }

    /// Nothing: its bytes are read from the socket.
    func deliver() {}

    func multiClosed() {
        let owner = owner
        close()
        owner?.loopClosed()
    }

    /// libcurl is done with it.
    func finished(_ result: CURLcode) {
        guard let owner else { return }
        self.owner = nil
        guard result == CURLE_OK else {
            owner.connectFailed(error(result))
            return
        }
        var socket: curl_socket_t = CURL_SOCKET_BAD
        guard shim_curl_active_socket(easy, &socket) == CURLE_OK, socket != CURL_SOCKET_BAD else {
            owner.connectFailed(
                RealtimeError(.connect, "libcurl connected to \(way) without a socket"))
            return
        }
        if keepsCurl {
            owner.connected(socket, self)
        } else {
            socketKeeper.kept = socket
            close()
            owner.connected(socket, nil)
        }
    }

    private func error(_ result: CURLcode) -> RealtimeError {
        if result == CURLE_ABORTED_BY_CALLBACK { return TunnelAnswer.error(on: way) }
        return CurlFailure.error(result, errorText, of: easy, on: way, isConnecting: true)
    }

    /// Its owner's time is over.
    /// - Parameter time: the limit, and the option that sets it.
    func late(_ time: String) -> RealtimeError { CurlFailure.late(time, of: easy, on: way) }

    // MARK: Floods

    var tlsGuard: UnsafeMutablePointer<shim_tls_guard>? {
        isOpen ? tls.pointee.guard : nil
    }

    /// It does so with each read.
    func creditTLS() {}

    /// A proxy's answer to CONNECT is limited.
    func suspend() -> Bool { false }
    func resume() {}

    /// Of one that is connected, the next read says so.
    func flooded() {
        guard let owner else { return }
        self.owner = nil
        owner.connectFailed(CurlFailure.flood(on: way))
    }

    // MARK: TLS

    func read(into buffer: UnsafeMutableRawBufferPointer) -> StreamRead {
        // The loop may be gone before its connections.
        guard isOpen else { return .failed("the loop was freed", isTLS: false, systemError: 0) }
        // One TLS record a call: fill the buffer, since epoll does not see what OpenSSL holds.
        var total = 0
        multi.tls.pointee.number &+= 1
        defer { shim_tls_credit(tls.pointee.guard, UInt64(total)) }
        while total < buffer.count {
            var count = 0
            let result = curl_easy_recv(
                easy, buffer.baseAddress.map { $0 + total }, buffer.count - total, &count)
            if result == CURLE_AGAIN { break }
            guard result == CURLE_OK, count > 0 else {
                // What came before the end counts; the end is seen again by the next read.
                if total > 0 { return .bytes(total, isDrained: false) }
                if result == CURLE_OK { return .end }
                return readFailure(result)
            }
            total += count
        }
        if total == 0 {
            guard let lowest = shim_tls_lowest(tls.pointee.guard) else { return .wouldBlock }
            shim_tls_judge(lowest)
            guard lowest.pointee.is_flood else { return .wouldBlock }
            return .failed(
                CurlFailure.flood(on: way).message, isTLS: false, systemError: 0)
        }
        return .bytes(total, isDrained: total < buffer.count)
    }

    /// Under TLS 1.3 a server that misses a client certificate says so only here, by an alert
    /// behind the handshake (RFC 8446 §4.4.2.4); OpenSSL's own errors name the library.
    private func readFailure(_ result: CURLcode) -> StreamRead {
        let detail = String(cString: errorText)
        let cause = detail.isEmpty ? String(cString: curl_easy_strerror(result)) : detail
        let isTLS = strstr(errorText, "SSL routines") != nil
        return .failed(cause, isTLS: isTLS, systemError: 0)
    }

    func write(_ bytes: UnsafeRawBufferPointer) -> StreamWrite {
        guard isOpen else { return .failed }
        if staged == nil {
            let fresh = UnsafeMutableRawBufferPointer.allocate(
                byteCount: min(CurlConnect.recordBytes, bytes.count), alignment: 16)
            fresh.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[..<fresh.count]))
            staged = fresh
            stagedCount = fresh.count
        }
        var count = 0
        let result = curl_easy_send(easy, staged?.baseAddress, stagedCount, &count)
        if result == CURLE_AGAIN { return .wouldBlock }
        staged?.deallocate()
        staged = nil
        guard result == CURLE_OK else { return .failed }
        return .bytes(count)
    }
}

/// Keeps one socket open when libcurl wants it closed: the one that was taken over.
private final class SocketKeeper {
    var kept: curl_socket_t = CURL_SOCKET_BAD

    static func close(_ user: UnsafeMutableRawPointer?, _ socket: curl_socket_t) -> Int32 {
        if let user {
            let me = Unmanaged<SocketKeeper>.fromOpaque(user).takeUnretainedValue()
            if me.kept == socket {
                // Once: a later socket of libcurl's may get the same number.
                me.kept = CURL_SOCKET_BAD
                return 0
            }
        }
        return Glibc.close(socket)
    }
}
