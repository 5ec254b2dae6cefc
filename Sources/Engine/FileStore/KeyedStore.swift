import CShims
import Glibc
import Session
import Wire

/// Keeps texts in a file that any number of objects and processes share (C14). Each change
/// reads the file under a lock and replaces it as a whole. The lock is a separate file, because a
/// lock on a file that is replaced would be lost.
///
/// The store refuses files that it did not write, and leaves them unchanged: those with other
/// content, owned by another user, writable by others, or not regular files (symbolic links
/// included).
struct KeyedStore {
    let path: String
    let format: KeyedFileFormat
    private static let mode: mode_t = 0o600
    private static let readBytes = 64 << 10

    /// - Throws: `.store` if the file is not ours, is damaged or cannot be read. A missing file is
    ///   not an error.
    func load(_ key: String) throws(RealtimeError) -> String? { try parse(try read())[key] }

    /// Checks that texts can be stored, as far as that can be known in advance.
    func check() throws(RealtimeError) {
        // Checked first, so that no lock file is made for a file that is not ours.
        _ = try read()
        _ = close(try openLock())
    }

    /// Stores texts; "" removes the key. A damaged file is replaced by a new one.
    /// - Parameter lockTimeout: how long to wait for the lock; reduced by the time that was spent.
    /// - Parameter texts: called once the lock is held.
    /// - Returns: the indices of texts that do not fit: a larger file could not be read again.
    @discardableResult func save(
        _ lockTimeout: inout Duration, _ texts: () -> [(key: String, text: String)]
    ) throws(RealtimeError) -> Set<Int> {
        _ = try read()
        let lock = try lock(&lockTimeout)
        // A child forked meanwhile has the descriptor, too, so closing ours would not release the
        // lock.
        defer {
            _ = flock(lock, LOCK_UN)
            _ = close(lock)
        }
        let bytes = try read()
        var file: KeyedFile
        do throws(RealtimeError) {
            file = try parse(bytes)
        } catch {
            Log.write(.warning, "\(error.message); a new one replaces it")
            file = KeyedFile(format)
        }
        var count = file.bytes.count
        var refused: Set<Int> = []
        var isChanged = false
        for (index, (key, text)) in texts().enumerated() {
            let old = file[key] ?? ""
            guard !old.utf8.elementsEqual(text.utf8) else { continue }
            let growth = KeyedFile.count(key, text) - KeyedFile.count(key, old)
            guard growth <= 0 || count + growth <= KeyedFile.limit else {
                refused.insert(index)
                continue
            }
            file[key] = text
            count += growth
            isChanged = true
        }
        if isChanged { try replace(file.bytes) }
        return refused
    }

    /// The error for texts that `save` did not accept.
    var isFull: RealtimeError {
        RealtimeError(
            .store, "the \(format.name) \(path) is full: \(KeyedFile.limit) bytes are allowed")
    }

    /// Reads the file; nil if there is none.
    private func read() throws(RealtimeError) -> [UInt8]? {
        guard let descriptor = try openOurs() else { return nil }
        defer { _ = close(descriptor) }
        var bytes: [UInt8] = []
        while bytes.count <= KeyedFile.limit {
            let known = bytes.count
            let room = KeyedStore.readBytes
            bytes.append(contentsOf: repeatElement(0, count: room))
            let count = bytes.withUnsafeMutableBytes {
                Glibc.read(descriptor, $0.baseAddress.map { $0 + known }, room)
            }
            bytes.removeLast(room - max(0, count))
            if count < 0 { throw failure("cannot be read") }
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

    /// Opens a file that only this user can have written; nil if there is none.
    private func openOurs() throws(RealtimeError) -> Int32? {
        // Without O_NONBLOCK, opening a pipe would wait for its other end.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY)
        if descriptor < 0, errno == ENOENT { return nil }
        guard descriptor >= 0 else { throw openFailure() }
        do throws(RealtimeError) {
            try checkOurs(descriptor)
        } catch {
            _ = close(descriptor)
            throw error
        }
        return descriptor
    }

    private func openFailure() -> RealtimeError {
        errno == ELOOP
            ? refusal("or its lock is a symbolic link, which is not followed")
            : failure("cannot be opened")
    }

    private func checkOurs(_ descriptor: Int32) throws(RealtimeError) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw failure("cannot be read") }
        guard shim_is_regular(status.st_mode) else { throw refusal("is not a regular file") }
        guard status.st_uid == geteuid() else { throw refusal("belongs to another user") }
        guard status.st_mode & 0o022 == 0 else {
            throw refusal(
                "can be written by other users (mode \(String(status.st_mode & 0o777, radix: 8)))")
        }
    }

    /// The error for a file that is not ours.
    private func refusal(_ fault: String) -> RealtimeError {
        RealtimeError(.store, "the \(format.name) \(path) \(fault); it is left unchanged")
    }

    private func parse(_ bytes: [UInt8]?) throws(RealtimeError) -> KeyedFile {
        guard let bytes else { return KeyedFile(format) }
        do throws(RealtimeError) {
            return try KeyedFile(parsing: bytes, format)
        } catch {
            throw RealtimeError(.store, "the \(format.name) \(path) \(error.message)")
        }
    }

    private func openLock() throws(RealtimeError) -> Int32 {
        let flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY
        let descriptor = open(path + ".lock", flags, KeyedStore.mode)
        guard descriptor >= 0 else {
            throw errno == ELOOP ? openFailure() : failure("has a lock that cannot be opened")
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

    private func lock(_ lockTimeout: inout Duration) throws(RealtimeError) -> Int32 {
        let descriptor = try openLock()
        let end = Loop.now() + lockTimeout
        while true {
            if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return descriptor }
            guard errno == EWOULDBLOCK || errno == EINTR, lockTimeout > .zero else { break }
            usleep(1000)
            lockTimeout = end - Loop.now()
        }
        let error = failure("is locked by another process")
        _ = close(descriptor)
        throw error
    }

    /// Replaces the file by a new one, so that readers see either the old or the new.
    private func replace(_ bytes: [UInt8]) throws(RealtimeError) {
        let fresh = path + ".new"
        let headBytes = format.firstLine.utf8.count + 1
        guard Leftover.remove(fresh, headBytes: headBytes, isOurs: format.isOurs) else {
            throw refusal("cannot be replaced: \(fresh) exists and is not its temporary file")
        }
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
        let descriptor = open(fresh, flags, KeyedStore.mode)
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

    private func failure(_ fault: String) -> RealtimeError {
        let cause = errno
        return RealtimeError(
            .store, "the \(format.name) \(path) \(fault): \(String(cString: strerror(cause)))",
            systemError: cause)
    }
}
