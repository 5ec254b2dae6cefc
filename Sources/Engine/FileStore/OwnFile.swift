import CShims
import Glibc
import Session
import Wire

/// A file that only this library writes, as this user. Others are refused and left unchanged: those
/// with other content, owned by another user, writable by others, or not regular files (symbolic
/// links included).
struct OwnFile {
    let path: String
    let format: OwnFileFormat
    private static let mode: mode_t = 0o600
    private static let readBytes = 64 << 10

    /// Reads the file; nil if there is none.
    /// - Parameter limit: the result of a longer file is longer than this, and incomplete.
    /// - Throws: `.store` if the file is not ours or cannot be read.
    func read(limit: Int) throws(RealtimeError) -> [UInt8]? {
        guard let (descriptor, size) = try openOurs() else { return nil }
        defer { _ = close(descriptor) }
        var bytes: [UInt8] = []
        // Known in advance, but the file may grow; nothing is reserved that it does not have.
        bytes.reserveCapacity(min(size, limit) + OwnFile.readBytes)
        while bytes.count <= limit {
            var count = 0
            let piece = [UInt8](unsafeUninitializedCapacity: OwnFile.readBytes) { room, filled in
                count = Glibc.read(descriptor, room.baseAddress, room.count)
                filled = max(0, count)
            }
            if count < 0 { throw failure("cannot be read") }
            bytes += piece
            // Read only as much as shows that the file is not ours.
            guard format.isOurs(bytes) else {
                throw refusal(
                    "was not written by librealtime: it does not begin with"
                        + " \"\(format.firstLine)\"")
            }
            if count == 0 { break }
        }
        return bytes
    }

    /// Checks that an existing file is ours, and that the folder takes new files.
    /// - Throws: `.store` if not.
    func check() throws(RealtimeError) {
        if let (descriptor, _) = try openOurs() {
            defer { _ = close(descriptor) }
            var head = [UInt8](repeating: 0, count: format.firstLine.utf8.count + 1)
            let count = Glibc.read(descriptor, &head, head.count)
            guard count >= 0 else { throw failure("cannot be read") }
            guard format.isOurs(head.prefix(count)) else {
                throw refusal(
                    "was not written by librealtime: it does not begin with"
                        + " \"\(format.firstLine)\"")
            }
        }
        guard access(folder, W_OK | X_OK) == 0 else { throw failure("cannot be written") }
    }

    private var folder: String {
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// Opens a file that only this user can have written; nil if there is none.
    private func openOurs() throws(RealtimeError) -> (descriptor: Int32, size: Int)? {
        // Without O_NONBLOCK, opening a pipe would wait for its other end.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY)
        if descriptor < 0, errno == ENOENT { return nil }
        guard descriptor >= 0 else { throw openFailure() }
        do throws(RealtimeError) {
            return (descriptor, try checkOurs(descriptor))
        } catch {
            _ = close(descriptor)
            throw error
        }
    }

    private func openFailure() -> RealtimeError {
        errno == ELOOP
            ? refusal("or its lock is a symbolic link, which is not followed")
            : failure("cannot be opened")
    }

    /// - Returns: the size of the file.
    @discardableResult
    private func checkOurs(_ descriptor: Int32) throws(RealtimeError) -> Int {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw failure("cannot be read") }
        guard shim_is_regular(status.st_mode) else { throw refusal("is not a regular file") }
        guard status.st_uid == geteuid() else { throw refusal("belongs to another user") }
        guard status.st_mode & 0o022 == 0 else {
            throw refusal(
                "can be written by other users (mode \(String(status.st_mode & 0o777, radix: 8)))")
        }
        return Int(status.st_size)
    }

    /// The error for a file that is not ours.
    private func refusal(_ fault: String) -> RealtimeError {
        RealtimeError(.store, "the \(format.name) \(path) \(fault); it is left unchanged")
    }

    /// Opens the file that is locked while this one is replaced: a lock on this one would be lost
    /// with it.
    func openLock() throws(RealtimeError) -> Int32 {
        let flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY
        let descriptor = open(path + ".lock", flags, OwnFile.mode)
        guard descriptor >= 0 else {
            throw errno == ELOOP || errno == ENOENT
                ? openFailure() : failure("has a lock that cannot be opened")
        }
        // Another user could hold the lock forever.
        do throws(RealtimeError) {
            try checkOurs(descriptor)
        } catch {
            _ = close(descriptor)
            throw RealtimeError(.store, "the lock of \(error.message)")
        }
        return descriptor
    }

    /// Takes the lock for `replace`.
    /// - Parameter timeout: how long to wait; reduced by the time that was spent.
    /// - Returns: what `unlock` releases.
    func lock(_ timeout: inout Duration) throws(RealtimeError) -> Int32 {
        let descriptor = try openLock()
        let end = Loop.now() + timeout
        while true {
            if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return descriptor }
            guard errno == EWOULDBLOCK || errno == EINTR, timeout > .zero else { break }
            usleep(1000)
            timeout = end - Loop.now()
        }
        let error = failure("is locked by another process")
        _ = close(descriptor)
        throw error
    }

    static func unlock(_ lock: Int32) {
        // A child forked meanwhile has the descriptor, too, so closing ours would not release the
        // lock.
        _ = flock(lock, LOCK_UN)
        _ = close(lock)
    }

    /// Replaces the file by a new one, so that readers see either the old or the new. The caller
    /// has the lock.
    func replace(_ bytes: [UInt8]) throws(RealtimeError) {
        let fresh = path + ".new"
        let headBytes = format.firstLine.utf8.count + 1
        guard Leftover.remove(fresh, headBytes: headBytes, isOurs: format.isOurs) else {
            throw refusal("cannot be replaced: \(fresh) exists and is not its temporary file")
        }
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
        let descriptor = open(fresh, flags, OwnFile.mode)
        guard descriptor >= 0 else { throw failure("cannot be written") }
        var isWritten = true
        var written = 0
        while isWritten, written < bytes.count {
            let count = bytes.withUnsafeBytes {
                write(descriptor, $0.baseAddress.map { $0 + written }, bytes.count - written)
            }
            if count < 0, errno == EINTR { continue }
            isWritten = count > 0
            written += max(0, count)
        }
        isWritten = isWritten && fsync(descriptor) == 0
        let cause = errno
        _ = close(descriptor)
        guard isWritten else { throw failure("cannot be written", without: fresh, cause) }
        guard rename(fresh, path) == 0 else {
            throw failure("cannot be replaced", without: fresh, errno)
        }
    }

    /// Removes the temporary file, which would take space on a disk that may be full.
    private func failure(
        _ fault: String, without fresh: String, _ cause: Int32
    ) -> RealtimeError {
        _ = unlink(fresh)
        errno = cause
        return failure(fault)
    }

    func failure(_ fault: String) -> RealtimeError {
        let cause = errno
        return RealtimeError(
            .store, "the \(format.name) \(path) \(fault): \(String(cString: strerror(cause)))",
            systemError: cause)
    }
}
