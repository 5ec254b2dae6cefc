import CShims
import Glibc
import Session
import Wire

/// Last event ids in a file, for any number of sources and processes (C14): each change reads the
/// file under a lock, and replaces it whole. The lock is a file of its own beside it, since a file
/// that is replaced cannot be held.
///
/// Files that are not ours are refused and left as they are: those with other content, of another
/// user, or writable by others, and whatever is not a regular file, a link included.
struct EventIDStore {
    let path: String
    private static let mode: mode_t = 0o600
    private static let readBytes = 64 << 10

    /// - Throws: `.store` for a file that is not ours, damaged or cannot be read; none at all is no
    ///   error.
    func load(_ key: String) throws(RealtimeError) -> String? { try parse(try read())[key] }

    /// Whether ids can be stored at all, as far as that can be known before.
    func check() throws(RealtimeError) {
        // First: a file that is not ours gets no lock beside it.
        _ = try read()
        _ = close(try openLock())
    }

    /// Stores ids; "" takes the key away. A damaged file of ours gives way to a fresh one.
    /// - Parameter patience: how long others may hold the lock, each for as long as the disk takes;
    ///   what is left of it.
    /// - Parameter ids: asked for when the lock could be had.
    /// - Returns: which of them there is no room for: what is longer could not be read again.
    @discardableResult func save(
        _ patience: inout Duration, _ ids: () -> [(key: String, id: String)]
    ) throws(RealtimeError) -> Set<Int> {
        _ = try read()
        let lock = try lock(&patience)
        // A child that was forked meanwhile has the descriptor, too: closing ours is not enough.
        defer {
            _ = flock(lock, LOCK_UN)
            _ = close(lock)
        }
        let bytes = try read()
        var file: EventIDFile
        do throws(RealtimeError) {
            file = try parse(bytes)
        } catch {
            Log.write(.warning, "\(error.message); it is begun anew")
            file = EventIDFile()
        }
        var count = file.bytes.count
        var refused: Set<Int> = []
        var isChanged = false
        for (index, (key, id)) in ids().enumerated() {
            let old = file[key] ?? ""
            guard !old.utf8.elementsEqual(id.utf8) else { continue }
            let growth = EventIDFile.count(key, id) - EventIDFile.count(key, old)
            guard growth <= 0 || count + growth <= EventIDFile.limit else {
                refused.insert(index)
                continue
            }
            file[key] = id
            count += growth
            isChanged = true
        }
        if isChanged { try replace(file.bytes) }
        return refused
    }

    /// For those that `save` refuses.
    var isFull: RealtimeError {
        RealtimeError(
            .store, "the id file \(path) has no room: it may have \(EventIDFile.limit) bytes")
    }

    /// Its bytes; nil when there is none.
    private func read() throws(RealtimeError) -> [UInt8]? {
        guard let descriptor = try openOurs(path) else { return nil }
        defer { _ = close(descriptor) }
        var bytes: [UInt8] = []
        while bytes.count <= EventIDFile.limit {
            let known = bytes.count
            let room = EventIDStore.readBytes
            bytes.append(contentsOf: repeatElement(0, count: room))
            let count = bytes.withUnsafeMutableBytes {
                Glibc.read(descriptor, $0.baseAddress.map { $0 + known }, room)
            }
            bytes.removeLast(room - max(0, count))
            if count < 0 { throw failure("cannot be read") }
            // Of someone else's file no more is read than shows it.
            guard EventIDFile.isOurs(bytes) else {
                throw refusal(
                    "was not written by librealtime: it does not begin with"
                        + " \"\(EventIDFile.firstLine)\"")
            }
            if count == 0 { break }
        }
        return bytes
    }

    /// Opens a file that this user alone can have written; nil when there is none.
    private func openOurs(_ place: String) throws(RealtimeError) -> Int32? {
        // A pipe would wait for its other end.
        let descriptor = open(place, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY)
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
            ? refusal("is a symbolic link, or has one as its lock, which is not followed")
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

    /// For a file that is not ours, and stays as it is.
    private func refusal(_ fault: String) -> RealtimeError {
        RealtimeError(.store, "the id file \(path) \(fault); it is left as it is")
    }

    private func parse(_ bytes: [UInt8]?) throws(RealtimeError) -> EventIDFile {
        guard let bytes else { return EventIDFile() }
        do throws(RealtimeError) {
            return try EventIDFile(parsing: bytes)
        } catch {
            throw RealtimeError(.store, "the id file \(path) \(error.message)")
        }
    }

    private func openLock() throws(RealtimeError) -> Int32 {
        let flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY
        let descriptor = open(path + ".lock", flags, EventIDStore.mode)
        guard descriptor >= 0 else {
            throw errno == ELOOP ? openFailure() : failure("has a lock that cannot be opened")
        }
        // Another user's could be held for ever.
        do throws(RealtimeError) {
            try checkOurs(descriptor)
        } catch {
            _ = close(descriptor)
            throw RealtimeError(.store, "the lock of \(error.message)")
        }
        return descriptor
    }

    private func lock(_ patience: inout Duration) throws(RealtimeError) -> Int32 {
        let descriptor = try openLock()
        let end = Loop.now() + patience
        while true {
            if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return descriptor }
            guard errno == EWOULDBLOCK || errno == EINTR, patience > .zero else { break }
            usleep(1000)
            patience = end - Loop.now()
        }
        let error = failure("is locked by another process")
        _ = close(descriptor)
        throw error
    }

    /// A new file in the place of the old: whoever reads sees the one or the other.
    private func replace(_ bytes: [UInt8]) throws(RealtimeError) {
        let fresh = path + ".new"
        let headBytes = EventIDFile.firstLine.utf8.count + 1
        guard Leftover.remove(fresh, headBytes: headBytes, isOurs: EventIDFile.isOurs) else {
            throw refusal("cannot be replaced, as \(fresh) is in the way and not its own")
        }
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
        let descriptor = open(fresh, flags, EventIDStore.mode)
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

    /// What could not take the file's place would fill a disk that is full.
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
            .store, "the id file \(path) \(fault): \(String(cString: strerror(cause)))",
            systemError: cause)
    }
}
