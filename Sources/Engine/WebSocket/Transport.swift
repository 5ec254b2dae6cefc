import CShims
import Glibc

/// A connected byte stream: a plain socket of our own, or TLS through libcurl. Non-blocking.
struct Transport {
    let descriptor: Int32
    private let curl: CurlConnect?

    /// - Parameter curl: reads and writes, where the stream is TLS; nil for a socket of our own.
    init(_ descriptor: Int32, _ curl: CurlConnect?) {
        self.descriptor = descriptor
        self.curl = curl
    }

    /// Whether bytes may wait where epoll does not see them.
    var isBuffered: Bool { curl != nil }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> StreamRead {
        if let curl { return curl.read(into: buffer) }
        let count = Glibc.recv(descriptor, buffer.baseAddress, buffer.count, 0)
        if count > 0 { return .bytes(count, isDrained: count < buffer.count) }
        if count == 0 { return .end }
        if errno == EAGAIN || errno == EINTR { return .wouldBlock }
        return .failed(String(cString: strerror(errno)), isTLS: false)
    }

    func write(_ bytes: UnsafeRawBufferPointer) -> StreamWrite {
        if let curl { return curl.write(bytes) }
        let count = shim_send(descriptor, bytes.baseAddress, bytes.count)
        if count >= 0 { return .bytes(count) }
        if errno == EAGAIN || errno == EINTR { return .wouldBlock }
        return .failed
    }

    func close() {
        if let curl {
            curl.close()
        } else {
            _ = Glibc.close(descriptor)
        }
    }
}
