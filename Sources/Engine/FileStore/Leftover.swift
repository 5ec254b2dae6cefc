import CShims
import Glibc

/// A temporary file that remained after a crash, before it was renamed to replace another file.
enum Leftover {
    /// Removes the file, if there is one. The caller holds the lock of the file that it was to
    /// replace, so no other user of this store is writing it.
    /// - Parameters:
    ///   - headBytes: how many of its first bytes `isOurs` gets.
    ///   - isOurs: whether this store writes files that begin so, possibly incomplete.
    /// - Returns: false if the file is not ours; then it is left unchanged.
    static func remove(
        _ path: String, headBytes: Int, isOurs: (ArraySlice<UInt8>) -> Bool
    ) -> Bool {
        // Without O_NONBLOCK, opening a pipe would wait for its other end.
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
