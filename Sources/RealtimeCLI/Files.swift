import Glibc
import Realtime

/// Reads files; "-" is standard input.
enum Files {
    /// Returns the content of a file.
    static func read(_ path: String) throws -> [UInt8] {
        let descriptor = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw failure("cannot be read", path) }
        defer { if path != "-" { close(descriptor) } }
        var bytes: [UInt8] = []
        while true {
            var got = 0
            let more = [UInt8](unsafeUninitializedCapacity: 64 << 10) { buffer, count in
                got = read(descriptor, buffer)
                count = max(0, got)
            }
            guard got >= 0 else { throw failure("cannot be read", path) }
            if got == 0 { return bytes }
            bytes += more
        }
    }

    /// Like read(2), but also waits for a non-blocking descriptor: standard input is often shared,
    /// and another process may make it non-blocking.
    static func read(_ descriptor: Int32, _ buffer: UnsafeMutableBufferPointer<UInt8>) -> Int {
        while true {
            let got = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
            guard got < 0, errno == EINTR || errno == EAGAIN else { return got }
            if errno == EAGAIN { wait(descriptor, POLLIN) }
        }
    }

    /// Waits until a non-blocking descriptor is ready again.
    static func wait(_ descriptor: Int32, _ events: Int32) {
        var wait = pollfd(fd: descriptor, events: Int16(events), revents: 0)
        poll(&wait, 1, -1)
    }

    static func failure(_ what: String, _ path: String) -> RealtimeError {
        let cause = String(cString: strerror(errno))
        return RealtimeError(
            .system, "\(path == "-" ? "standard input" : "\"\(path)\"") \(what): \(cause)")
    }
}
