import Glibc
import Realtime

/// Reads files; "-" is standard input.
enum Files {
    /// Returns the content of a file.
    static func read(_ path: String) throws -> [UInt8] {
        try PEM.refuse(path)
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

    /// Checks that a file, which need not exist, can be replaced.
    /// - Throws: `RealtimeError` with the option's name if it cannot.
    static func checkWritable(_ path: String, _ option: String) throws {
        try PEM.refuse(path, option)
        let slash = path.utf8.lastIndex(of: UInt8(ascii: "/"))
        let folder = slash.map { String(path[...$0]) } ?? "."
        var facts = stat()
        let exists = stat(path, &facts) == 0
        if exists, facts.st_mode & S_IFMT == S_IFDIR {
            errno = EISDIR
        } else if access(folder, W_OK | X_OK) == 0, !exists || access(path, R_OK | W_OK) == 0 {
            return
        }
        let error = failure("cannot be written", path)
        throw RealtimeError(error.code, "\(option): \(error.message)")
    }

    /// Whether a path is that of a regular file; otherwise it is a pipe or a device.
    /// - Throws: for a path of nothing, or of a folder.
    static func isRegular(_ path: String) throws -> Bool {
        try PEM.refuse(path)
        var facts = stat()
        guard stat(path, &facts) == 0 else { throw failure("cannot be read", path) }
        if facts.st_mode & S_IFMT == S_IFDIR {
            errno = EISDIR
            throw failure("cannot be read", path)
        }
        return facts.st_mode & S_IFMT == S_IFREG
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
