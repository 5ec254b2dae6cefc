import CShims
import Glibc

/// A file that a crash left behind before it took another file's place.
enum Leftover {
    /// Removes it, if there is one. The caller holds the lock of the file whose place it was to
    /// take, so nobody else of ours writes it.
    /// - Parameters:
    ///   - headBytes: how much of its beginning `isOurs` looks at.
    ///   - isOurs: whether this store writes files that begin so, also if it was interrupted.
    /// - Returns: false for a file that is not ours: it stays as it is.
    static func remove(
        _ path: String, headBytes: Int, isOurs: (ArraySlice<UInt8>) -> Bool
    ) -> Bool {
        // A pipe would wait for its other end.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY)
        guard descriptor >= 0 else { return errno == ENOENT }
        defer { _ = close(descriptor) }
        var status = stat()
        var head = [UInt8](repeating: 0, count: headBytes)
        guard fstat(descriptor, &status) == 0, shim_is_regular(status.st_mode),
            status.st_uid == geteuid()
        else { return false }
        let count = read(descriptor, &head, head.count)
        guard count >= 0, isOurs(head.prefix(count)) else { return false }
        return unlink(path) == 0 || errno == ENOENT
    }
}
