import CShims
import Glibc
import Wire

/// A connected non-blocking byte stream: a plain socket that we own, or TLS through libcurl.
struct Transport {
    let descriptor: Int32
    private let curl: CurlConnect?

    /// - Parameter curl: reads and writes a TLS stream; nil for a plain socket.
    init(_ descriptor: Int32, _ curl: CurlConnect?) {
        self.descriptor = descriptor
        self.curl = curl
    }

    /// Whether bytes may wait in a buffer that epoll does not see.
    var isBuffered: Bool { curl != nil }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> StreamRead {
        if let curl { return curl.read(into: buffer) }
        let count = Glibc.recv(descriptor, buffer.baseAddress, buffer.count, 0)
        if count > 0 { return .bytes(count, isDrained: count < buffer.count) }
        if count == 0 { return .end }
        if errno == EAGAIN || errno == EINTR { return .wouldBlock }
        let cause = errno
        return .failed(String(cString: strerror(cause)), isTLS: false, systemError: cause)
    }

    func write(_ bytes: UnsafeRawBufferPointer) -> StreamWrite {
        if let curl { return curl.write(bytes) }
        let count = shim_send(descriptor, bytes.baseAddress, bytes.count)
        if count >= 0 { return .bytes(count) }
        if errno == EAGAIN || errno == EINTR { return .wouldBlock }
        return .failed
    }

    /// How many written bytes the peer's kernel has not acknowledged.
    var unacknowledgedBytes: Int { Int(shim_unacknowledged_bytes(descriptor)) }

    /// The connection's details for the `open` handler.
    /// - Parameter isSecure: TLS goes to the server itself, not just to a proxy.
    func opened(isSecure: Bool) -> Opened {
        var opened = Opened()
        opened.setAddresses { shim_socket_addresses(descriptor, $0, $1, $2) }
        if isSecure { opened.setTLS(curl?.tlsGuard) }
        return opened
    }

    /// Ends our direction. What was written before still arrives.
    func shutDown() { _ = Glibc.shutdown(descriptor, Int32(SHUT_WR)) }

    func close() {
        if let curl {
            curl.close()
        } else {
            _ = Glibc.close(descriptor)
        }
    }
}
