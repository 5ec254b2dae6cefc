import CShims
import Glibc
import Session
import Wire

/// Waits for a connection.
protocol CurlConnectOwner: AnyObject {
    /// - Parameter curl: reads and writes, because libcurl does TLS; nil for a plain socket, which
    ///   the owner takes over.
    func connected(_ socket: Int32, _ curl: CurlConnect?)
    func connectFailed(_ error: RealtimeError)
    /// The loop has ended.
    func loopClosed()
}

/// One connection being made by libcurl on a socket that is connected already: TLS and proxies
/// (`CURLOPT_CONNECT_ONLY`). Only to a Unix socket does libcurl connect itself. Afterwards we take
/// over a plain socket for good and free the easy handle. Under TLS we keep the handle, for
/// `curl_easy_recv` and `curl_easy_send`.
final class CurlConnect: CurlUser {
    let easy: UnsafeMutableRawPointer
    var seat: Int?
    private let multi: CurlMulti
    /// Retained until it is notified, which ends the cycle with the connection. (A weak reference
    /// would put every retain of a connection on the runtime's slow path.)
    private var owner: (any CurlConnectOwner)?
    /// libcurl reads and writes, because it does TLS.
    private let keepsCurl: Bool
    let route: CurlRoute
    private let errorText: UnsafeMutablePointer<CChar>
    private let socketKeeper = SocketKeeper()
    private let tls: UnsafeMutablePointer<shim_tls_source>
    private let dial: UnsafeMutablePointer<shim_curl_dial>
    private var network: CurlNetwork?
    private var isOpen = true
    private var tunnelAnswer = TunnelAnswer()
    /// The bytes of a TLS write that must be repeated: OpenSSL requires the same bytes at the same
    /// address.
    private var staged: UnsafeMutableRawBufferPointer?
    private var stagedCount = 0
    private static let recordBytes = 16 << 10

    /// - Parameters:
    ///   - socket: the connection to the server or to the proxy, which this closes; nil if the
    ///     network has a Unix socket.
    ///   - time: the time until the owner gives up; nil for no limit.
    convenience init(
        to url: HTTPURL, by network: NetworkConfiguration, over socket: DialedSocket?,
        within time: Duration?, multi: CurlMulti, owner: any CurlConnectOwner
    ) throws(RealtimeError) {
        guard let easy = curl_easy_init() else {
            if let socket { _ = Glibc.close(socket.descriptor) }
            throw RealtimeError(.system, "libcurl could not create a handle")
        }
        self.init(easy, to: url, by: network, multi, owner)
        if let socket { dial.pointee.give(socket) }
        configure(url, time)
        let applied = try CurlNetwork(network, on: easy)
        self.network = applied
        try applied.set(route, on: easy)
        try multi.add(self)
    }

    private init(
        _ easy: UnsafeMutableRawPointer, to url: HTTPURL, by network: NetworkConfiguration,
        _ multi: CurlMulti, _ owner: any CurlConnectOwner
    ) {
        self.easy = easy
        self.multi = multi
        self.owner = owner
        route = CurlRoute(to: url, by: network)
        keepsCurl = url.isSecure || route.isProxySecure
        errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
        errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        tls = .allocate(capacity: 1)
        tls.initialize(to: shim_tls_source(turn: multi.tls, guard: nil))
        dial = .allocate(capacity: 1)
        dial.initialize(to: shim_curl_dial())
        dial.pointee.socket = CURL_SOCKET_BAD
        dial.pointee.receive_buffer_bytes = Int32(clamping: network.receiveBufferBytes)
    }

    private func configure(_ url: HTTPURL, _ time: Duration?) {
        _ = shim_curl_set_string(easy, CURLOPT_URL, url.connectURL)
        _ = shim_curl_set_long(easy, CURLOPT_CONNECT_ONLY, 1)
        _ = shim_curl_set_long(easy, CURLOPT_NOSIGNAL, 1)
        // A proxy must open a tunnel: it cannot forward a WebSocket.
        _ = shim_curl_set_long(easy, CURLOPT_HTTPPROXYTUNNEL, 1)
        // WebSocket only over HTTP/1.1. This decides what TLS offers (ALPN).
        _ = shim_curl_set_long(easy, CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
        // Otherwise dropping an attempt would wait for the resolver's thread: a name server that
        // does not answer would block the whole loop.
        _ = shim_curl_set_long(easy, CURLOPT_QUICK_EXIT, 1)
        // Later than the connection's own timer. libcurl's default would be 300 s.
        let most = UInt64(Int32.max)
        let limit = time.map { min($0.clampedNanoseconds / 1_000_000 + 1000, most) } ?? most
        _ = shim_curl_set_long(easy, CURLOPT_CONNECTTIMEOUT_MS, Int(limit))
        _ = shim_curl_set_pointer(easy, CURLOPT_ERRORBUFFER, errorText)
        _ = shim_tls_watch(easy, tls)
        _ = shim_curl_set_dial(easy, dial)
        if route.proxyURL != nil {
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
        shim_curl_drop_dialed(dial)
        dial.deallocate()
        staged?.deallocate()
    }

    var isConnected: Bool { owner == nil }

    /// Nothing to deliver: bytes are read from the socket.
    func deliver() {}

    func multiClosed() {
        let owner = owner
        close()
        owner?.loopClosed()
    }

    /// libcurl has finished with it.
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
                RealtimeError(.connect, "libcurl connected to \(route) without a socket"))
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
        if result == CURLE_ABORTED_BY_CALLBACK { return TunnelAnswer.error(on: route) }
        return CurlFailure.error(result, errorText, of: easy, on: route, isConnecting: true)
    }

    /// The error for an attempt that took too long.
    /// - Parameter time: the limit, and the option that sets it.
    func late(_ time: String) -> RealtimeError { CurlFailure.late(time, of: easy, on: route) }

    // MARK: Floods

    var tlsGuard: UnsafeMutablePointer<shim_tls_guard>? {
        isOpen ? tls.pointee.guard : nil
    }

    /// Not needed here: each read credits its bytes.
    func creditTLS() {}

    /// Nothing to pause: a proxy's response to CONNECT is limited.
    func suspend() -> Bool { false }
    func resume() {}

    /// An established connection reports the flood with its next read.
    func flooded() {
        guard let owner else { return }
        self.owner = nil
        owner.connectFailed(CurlFailure.flood(on: route))
    }

    // MARK: TLS

    func read(into buffer: UnsafeMutableRawBufferPointer) -> StreamRead {
        // The loop may have ended before its connections.
        guard isOpen else { return .failed("the loop was freed", isTLS: false, systemError: 0) }
        // Each call returns one TLS record. Fill the buffer, because epoll does not see what
        // OpenSSL holds.
        var total = 0
        multi.tls.pointee.number &+= 1
        defer { shim_tls_credit(tls.pointee.guard, UInt64(total)) }
        while total < buffer.count {
            var count = 0
            let result = curl_easy_recv(
                easy, buffer.baseAddress.map { $0 + total }, buffer.count - total, &count)
            if result == CURLE_AGAIN { break }
            guard result == CURLE_OK, count > 0 else {
                // Return what arrived before the end; the next read finds the end again.
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
                CurlFailure.flood(on: route).message, isTLS: false, systemError: 0)
        }
        return .bytes(total, isDrained: total < buffer.count)
    }

    /// Under TLS 1.3 a server that requires a client certificate rejects us only here, by an alert
    /// after the handshake (RFC 8446 §4.4.2.4). OpenSSL's own errors contain the library's name.
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

/// Keeps the socket that was taken over open when libcurl wants to close it.
private final class SocketKeeper {
    var kept: curl_socket_t = CURL_SOCKET_BAD

    static func close(_ user: UnsafeMutableRawPointer?, _ socket: curl_socket_t) -> Int32 {
        if let user {
            let me = Unmanaged<SocketKeeper>.fromOpaque(user).takeUnretainedValue()
            if me.kept == socket {
                // Only once, because a later libcurl socket may get the same number.
                me.kept = CURL_SOCKET_BAD
                return 0
            }
        }
        return Glibc.close(socket)
    }
}
