import Glibc
import Wire

/// Last event ids in a file, for any number of sources and processes (C14): each change reads the
/// file under a lock, and replaces it whole. The lock is a file of its own beside it, since a file
/// that is replaced cannot be held.
struct EventIDStore {
    let path: String
    private static let mode: mode_t = 0o600
    /// How long other processes may hold the lock, in tries of a millisecond: each has it for as
    /// long as the disk takes.
    private static let lockTries = 100
    /// The same for what cannot be tried again.
    private static let lastLockTries = 3000

    /// - Throws: `.store` for a file that is damaged or cannot be read; none at all is no error.
    func load(_ key: String) throws(RealtimeError) -> String? { try read()[key] }

    /// Stores an id; "" takes the key away. A damaged file gives way to a fresh one.
    /// - Parameter isLast: there is no later to try it again.
    func save(_ id: String, _ key: String, isLast: Bool) throws(RealtimeError) {
        let lock = try lock(isLast ? EventIDStore.lastLockTries : EventIDStore.lockTries)
        // Closing it gives the lock back.
        defer { _ = close(lock) }
        var file: EventIDFile
        do throws(RealtimeError) {
            file = try read()
        } catch {
            Log.write(.warning, "\(error.message); it is begun anew")
            file = EventIDFile()
        }
        guard file[key] ?? "" != id else { return }
        file[key] = id
        try replace(file.bytes)
    }

    private func read() throws(RealtimeError) -> EventIDFile {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        if descriptor < 0, errno == ENOENT { return EventIDFile() }
        guard descriptor >= 0 else { throw failure("cannot be opened") }
        defer { _ = close(descriptor) }
        var bytes: [UInt8] = []
        while bytes.count <= EventIDFile.limit {
            let known = bytes.count
            let room = 64 << 10
            bytes.append(contentsOf: repeatElement(0, count: room))
            let count = bytes.withUnsafeMutableBytes {
                Glibc.read(descriptor, $0.baseAddress.map { $0 + known }, room)
            }
            bytes.removeLast(room - max(0, count))
            if count < 0 { throw failure("cannot be read") }
            if count == 0 { break }
        }
        do throws(RealtimeError) {
            return try EventIDFile(parsing: bytes)
        } catch {
            throw RealtimeError(.store, "the id file \(path) \(error.message)")
        }
    }

    private func lock(_ tries: Int) throws(RealtimeError) -> Int32 {
        let descriptor = open(path + ".lock", O_RDWR | O_CREAT | O_CLOEXEC, EventIDStore.mode)
        guard descriptor >= 0 else { throw failure("has a lock that cannot be opened") }
        for _ in 0..<tries {
            if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return descriptor }
            guard errno == EWOULDBLOCK || errno == EINTR else { break }
            usleep(1000)
        }
        let error = failure("is locked by another process")
        _ = close(descriptor)
        throw error
    }

    /// A new file in the place of the old: whoever reads sees the one or the other.
    private func replace(_ bytes: [UInt8]) throws(RealtimeError) {
        let fresh = path + ".new"
        // Under the lock nobody else writes it; one that is left of a crash is overwritten.
        let descriptor = open(
            fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, EventIDStore.mode)
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
        guard isWritten else {
            errno = cause
            throw failure("cannot be written")
        }
        guard rename(fresh, path) == 0 else { throw failure("cannot be replaced") }
    }

    private func failure(_ fault: String) -> RealtimeError {
        RealtimeError(
            .store, "the id file \(path) \(fault): \(String(cString: strerror(errno)))")
    }
}
