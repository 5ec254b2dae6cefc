import Glibc
import Session
import Wire

/// Last event ids in a file, for any number of sources and processes (C14): each change reads the
/// file under a lock, and replaces it whole. The lock is a file of its own beside it, since a file
/// that is replaced cannot be held. What is no regular file is left alone.
struct EventIDStore {
    let path: String
    private static let mode: mode_t = 0o600
    /// As many as the kernel follows (path_resolution(7)).
    private static let mostLinks = 40

    /// - Throws: `.store` for a file that is damaged or cannot be read; none at all is no error.
    func load(_ key: String) throws(RealtimeError) -> String? {
        try parse(try read(try target()))[key]
    }

    /// Whether ids can be stored at all, as far as that can be known before.
    func check() throws(RealtimeError) { _ = close(try openLock(try target())) }

    /// Stores ids; "" takes the key away. A damaged file gives way to a fresh one.
    /// - Parameter patience: how long others may hold the lock, each for as long as the disk takes;
    ///   what is left of it.
    /// - Parameter ids: asked for when the lock could be had.
    /// - Returns: which of them there is no room for: what is longer could not be read again.
    @discardableResult func save(
        _ patience: inout Duration, _ ids: () -> [(key: String, id: String)]
    ) throws(RealtimeError) -> Set<Int> {
        let target = try target()
        let lock = try lock(target, &patience)
        // Closing it gives the lock back.
        defer { _ = close(lock) }
        let bytes = try read(target)
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
        if isChanged { try replace(target, file.bytes) }
        return refused
    }

    /// For those that `save` refuses.
    var isFull: RealtimeError {
        RealtimeError(
            .store, "the id file \(path) has no room: it may have \(EventIDFile.limit) bytes")
    }

    /// The file itself, which may be there yet or not: a link to it is not to be replaced.
    private func target() throws(RealtimeError) -> String {
        var target = path
        for _ in 0..<EventIDStore.mostLinks {
            let text = withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(PATH_MAX)) {
                space -> String? in
                guard let base = space.baseAddress else { return nil }
                let count = readlink(target, base, space.count)
                guard count >= 0 else { return nil }
                return String(
                    decoding: UnsafeRawBufferPointer(start: base, count: count), as: UTF8.self)
            }
            // No link, or nothing at all.
            guard let text else { return target }
            let folder = target.utf8.lastIndex(of: UInt8(ascii: "/")).map { target[...$0] } ?? ""
            target = text.utf8.first == UInt8(ascii: "/") ? text : folder + text
        }
        errno = ELOOP
        throw failure("cannot be opened")
    }

    /// A device, or a pipe, is not to be replaced, and gets no lock beside it.
    private func checkKind(_ target: String) throws(RealtimeError) {
        var status = stat()
        if stat(target, &status) == 0 { try checkKind(status) }
    }

    private func checkKind(_ status: stat) throws(RealtimeError) {
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw RealtimeError(.store, "the id file \(path) is no regular file")
        }
    }

    /// Its bytes; nil when there is none.
    private func read(_ target: String) throws(RealtimeError) -> [UInt8]? {
        // A pipe would wait for its other end.
        let descriptor = open(target, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        if descriptor < 0, errno == ENOENT { return nil }
        guard descriptor >= 0 else { throw failure("cannot be opened") }
        defer { _ = close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw failure("cannot be read") }
        try checkKind(status)
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
        return bytes
    }

    private func parse(_ bytes: [UInt8]?) throws(RealtimeError) -> EventIDFile {
        guard let bytes else { return EventIDFile() }
        do throws(RealtimeError) {
            return try EventIDFile(parsing: bytes)
        } catch {
            throw RealtimeError(.store, "the id file \(path) \(error.message)")
        }
    }

    private func openLock(_ target: String) throws(RealtimeError) -> Int32 {
        try checkKind(target)
        let flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK
        let descriptor = open(target + ".lock", flags, EventIDStore.mode)
        guard descriptor >= 0 else { throw failure("has a lock that cannot be opened") }
        return descriptor
    }

    private func lock(
        _ target: String, _ patience: inout Duration
    ) throws(RealtimeError) -> Int32 {
        let descriptor = try openLock(target)
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
    private func replace(_ target: String, _ bytes: [UInt8]) throws(RealtimeError) {
        let fresh = target + ".new"
        // Under the lock nobody else writes it; what is left of a crash may have any mode.
        _ = unlink(fresh)
        let descriptor = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, EventIDStore.mode)
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
        guard rename(fresh, target) == 0 else {
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
        RealtimeError(
            .store, "the id file \(path) \(fault): \(String(cString: strerror(errno)))")
    }
}
