import Glibc
import Realtime

/// Files as the commands use them; "-" is standard input or output.
enum Files {
    /// The whole of one.
    static func read(_ path: String) throws -> [UInt8] {
        let descriptor = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw failure("cannot be read", path) }
        defer { if path != "-" { close(descriptor) } }
        var bytes: [UInt8] = []
        while true {
            var got = 0
            let more = [UInt8](unsafeUninitializedCapacity: 64 << 10) { buffer, count in
                repeat {
                    got = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
                } while got < 0 && errno == EINTR
                count = max(0, got)
            }
            guard got >= 0 else { throw failure("cannot be read", path) }
            if got == 0 { return bytes }
            bytes += more
        }
    }

    static func failure(_ what: String, _ path: String) -> RealtimeError {
        RealtimeError(.system, "\"\(path)\" \(what): \(String(cString: strerror(errno)))")
    }
}
