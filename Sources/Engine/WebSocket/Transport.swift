import CShims
import Glibc

/// A connected byte stream: a plain socket of our own, or TLS through libcurl. Non-blocking.
struct Transport {
    enum ReadResult {
        /// So many bytes; `isDrained` when nothing more can wait behind them.
        case bytes(Int, isDrained: Bool)
        case wouldBlock
        /// The peer ended the stream.
        case end
        /// Broken; `isTLS` when the TLS library found fault, or was told of one by an alert.
        case failed(String, isTLS: Bool)
    }

    enum WriteResult {
        case bytes(Int)
        case wouldBlock
        /// The peer no longer reads; what it sent before can still be read.
        case failed
    }

    let descriptor: Int32
    private let curl: CurlConnect?

    init(plain descriptor: Int32) {
        self.descriptor = descriptor
        curl = nil
    }

    init(curl: CurlConnect, descriptor: Int32) {
        self.descriptor = descriptor
        self.curl = curl
    }

    /// Whether bytes may wait where epoll does not see them.
    var isBuffered: Bool { curl != nil }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> ReadResult {
        if let curl { return curl.read(into: buffer) }
        let count = Glibc.recv(descriptor, buffer.baseAddress, buffer.count, 0)
        if count > 0 { return .bytes(count, isDrained: count < buffer.count) }
        if count == 0 { return .end }
        if errno == EAGAIN || errno == EINTR { return .wouldBlock }
        return .failed(String(cString: strerror(errno)), isTLS: false)
    }

    func write(_ bytes: UnsafeRawBufferPointer) -> WriteResult {
        if let curl { return curl.write(bytes) }
        let count = rt_send(descriptor, bytes.baseAddress, bytes.count)
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
