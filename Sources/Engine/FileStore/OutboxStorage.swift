import CShims
import Glibc
import Wire

/// How an outbox's bytes, and its folder's, reach the disk. Tests have full and broken ones.
struct OutboxDisk: Sendable {
    var write: @Sendable (Int32, UnsafeRawBufferPointer, Int) -> Int = {
        pwrite($0, $1.baseAddress, $1.count, off_t($2))
    }
    var sync: @Sendable (Int32) -> Int32 = { fdatasync($0) }
}

/// An outbox's open and locked file: records are written behind its `end`. One user at a time.
struct OutboxStorage: ~Copyable {
    /// What is told of to the user: the path as it was given.
    private let path: String
    /// Without links, so that a file that is replaced is the one that was opened.
    private let realPath: String
    private let disk: OutboxDisk
    private var descriptor: Int32
    /// A forked child must not give away its parent's lock. Its copy of the descriptor is closed.
    private let process = getpid()
    /// Behind the last record.
    private(set) var end = 0
    /// Set while bytes behind `end` could not be cut off.
    private var hasExcess = false
    /// Set while the folder may not know of the file.
    private var owesFolder = false

    private static let mode: mode_t = 0o600
    private static let copyBytes = 1 << 20

    /// Opens, or makes, and locks a file.
    /// - Throws: `.busy` while someone has it; `.store` also for a file that another user may have
    ///   written, or may read; `.invalidArgument` for no path.
    init(path: String, disk: OutboxDisk) throws(RealtimeError) {
        guard !path.isEmpty, !path.utf8.contains(0) else {
            throw RealtimeError(.invalidArgument, "the outbox's path is empty or has a NUL in it")
        }
        let descriptor = try OutboxStorage.openLocked(path)
        guard let real = realpath(path, nil) else {
            let error = OutboxStorage.failure(path, "cannot be found")
            shim_private_close(descriptor)
            throw error
        }
        defer { free(real) }
        self.path = path
        self.realPath = String(cString: real)
        self.disk = disk
        self.descriptor = descriptor
    }

    deinit { release() }

    /// Closes the file, and lets others open it.
    mutating func close() {
        release()
        descriptor = -1
    }

    private func release() {
        guard descriptor >= 0, process == getpid() else { return }
        _ = flock(descriptor, LOCK_UN)
        shim_private_close(descriptor)
    }

    /// Everything in the file, which has its first line afterwards. What the caller cannot use at
    /// its end is to be cut off. It may not be durable yet.
    mutating func load(limit: Int) throws(RealtimeError) -> [UInt8] {
        owesFolder = true
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw failure("cannot be read") }
        // Of someone else's file no more is read than shows it.
        let head = try read(0..<OutboxRecord.firstLine.count)
        let size = Int(status.st_size)
        if size <= head.count, head.withUnsafeBytes(OutboxReader.isUnfinished) {
            return try begin()
        }
        guard head == OutboxRecord.firstLine else {
            throw RealtimeError(.store, "the file \(path) is no outbox")
        }
        guard size <= limit else {
            throw RealtimeError(.store, "the outbox \(path) has \(size) bytes, \(limit) allowed")
        }
        return try read(0..<size)
    }

    private mutating func begin() throws(RealtimeError) -> [UInt8] {
        hasExcess = true
        try append(OutboxRecord.firstLine)
        return OutboxRecord.firstLine
    }

    /// Writes behind the end. What could not be written whole is not there afterwards.
    mutating func append(_ bytes: [UInt8]) throws(RealtimeError) {
        try cutExcess()
        hasExcess = true
        try writeAll(bytes, to: descriptor, at: end)
        hasExcess = false
        end += bytes.count
    }

    /// Makes what was written before durable: to be called without any lock, by one at a time.
    var syncing: Syncing {
        Syncing(descriptor: descriptor, folder: owesFolder ? folder : nil, disk: disk)
    }

    /// The file up to `end` is durable.
    mutating func synced() { owesFolder = false }

    /// Forgets what is behind `offset`, now or before the next write.
    mutating func cut(to offset: Int) {
        end = offset
        hasExcess = true
        _ = try? cutExcess()
    }

    /// Replaces the file by one with these records alone, in this order, durable.
    /// - Returns: Where they are now; nil for one that cannot be read any more.
    mutating func compact(_ places: [Range<Int>]) throws(RealtimeError) -> [Range<Int>?] {
        let fresh = realPath + ".new"
        let headBytes = OutboxRecord.firstLine.count
        let isFree = Leftover.remove(fresh, headBytes: headBytes) { head in
            head.elementsEqual(OutboxRecord.firstLine)
                || head.withUnsafeBytes(OutboxReader.isUnfinished)
        }
        guard isFree else {
            throw RealtimeError(
                .store,
                "the outbox \(path) cannot be compacted, as \(fresh) is in the way and not its own")
        }
        let target = shim_private_open(fresh, O_RDWR | O_CREAT | O_EXCL, OutboxStorage.mode)
        guard target >= 0 else { throw failure("cannot be compacted") }
        do throws(RealtimeError) {
            var moved: [Range<Int>?] = []
            let size = try copy(places, to: target, &moved)
            var status = stat()
            if fstat(descriptor, &status) == 0 { _ = fchmod(target, status.st_mode & 0o777) }
            // Locked before anyone can find it.
            guard flock(target, LOCK_EX | LOCK_NB) == 0, disk.sync(target) == 0,
                rename(fresh, realPath) == 0
            else { throw failure("cannot be replaced") }
            shim_private_close(descriptor)
            descriptor = target
            end = size
            hasExcess = false
            // Until the folder is written, a crash brings the old file back.
            owesFolder = true
            if OutboxStorage.sync(nil, folder, disk) == nil { owesFolder = false }
            return moved
        } catch {
            shim_private_close(target)
            _ = unlink(fresh)
            throw error
        }
    }

    struct Syncing: Sendable {
        fileprivate let descriptor: Int32
        fileprivate let folder: String?
        fileprivate let disk: OutboxDisk

        /// - Returns: What is wrong, as an errno; nil when all is durable.
        func run() -> Int32? { OutboxStorage.sync(descriptor, folder, disk) }
    }

    func failure(_ fault: String) -> RealtimeError { OutboxStorage.failure(path, fault) }

    func failure(_ cause: Int32) -> RealtimeError {
        errno = cause
        return failure("cannot be written")
    }
}

extension OutboxStorage {
    /// The file under the path, and not one that was replaced while we waited.
    private static func openLocked(_ path: String) throws(RealtimeError) -> Int32 {
        for _ in 0..<16 {
            let flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NOCTTY
            let descriptor = shim_private_open(path, flags, mode)
            guard descriptor >= 0 else {
                guard errno == ELOOP else { throw failure(path, "cannot be opened") }
                throw RealtimeError(
                    .store,
                    "the outbox \(path) is a symbolic link, which is not followed: name the file"
                        + " itself")
            }
            do throws(RealtimeError) {
                try checkPrivate(descriptor, path)
                if try lock(descriptor, path) { return descriptor }
            } catch {
                shim_private_close(descriptor)
                throw error
            }
            shim_private_close(descriptor)
        }
        throw RealtimeError(.busy, "the outbox \(path) is being replaced by someone else")
    }

    /// What others can write, they can have us send; what they can read is not secret.
    private static func checkPrivate(_ descriptor: Int32, _ path: String) throws(RealtimeError) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw failure(path, "cannot be read") }
        guard shim_is_regular(status.st_mode) else {
            throw RealtimeError(.store, "the outbox \(path) is not a regular file")
        }
        guard status.st_uid == geteuid() else {
            throw RealtimeError(
                .store,
                "the outbox \(path) belongs to the user \(status.st_uid), and this process runs as"
                    + " \(geteuid()): use a file of its own")
        }
        guard status.st_mode & 0o077 == 0 else {
            let mode = String(status.st_mode & 0o777, radix: 8)
            throw RealtimeError(
                .store,
                "the outbox \(path) has the mode \(mode), which lets other users at it: use"
                    + " chmod 600 \(path)")
        }
    }

    /// - Returns: false when the path names another file by now.
    private static func lock(_ descriptor: Int32, _ path: String) throws(RealtimeError) -> Bool {
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            guard errno == EWOULDBLOCK else { throw failure(path, "cannot be locked") }
            throw RealtimeError(.busy, "the outbox \(path) is in use, here or by another process")
        }
        var own = stat()
        var named = stat()
        return fstat(descriptor, &own) == 0 && lstat(path, &named) == 0
            && named.st_ino == own.st_ino && named.st_dev == own.st_dev
    }

    private var folder: String {
        let end = realPath.lastIndex(of: "/") ?? realPath.startIndex
        return end == realPath.startIndex ? "/" : String(realPath[..<end])
    }

    /// - Returns: An errno, or nil.
    private static func sync(_ descriptor: Int32?, _ folder: String?, _ disk: OutboxDisk) -> Int32?
    {
        if let descriptor, disk.sync(descriptor) != 0 { return errno }
        guard let folder else { return nil }
        let opened = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard opened >= 0 else { return errno }
        defer { _ = Glibc.close(opened) }
        // Some file systems have nothing to do there, and say so.
        guard disk.sync(opened) != 0, errno != EINVAL, errno != ENOTSUP else { return nil }
        return errno
    }

    private mutating func cutExcess() throws(RealtimeError) {
        guard hasExcess else { return }
        guard ftruncate(descriptor, off_t(end)) == 0 else { throw failure("cannot be cut") }
        hasExcess = false
    }

    private mutating func writeAll(
        _ bytes: [UInt8], to target: Int32, at offset: Int
    ) throws(RealtimeError) {
        var written = 0
        while written < bytes.count {
            let count = bytes.withUnsafeBytes {
                disk.write(
                    target, UnsafeRawBufferPointer(rebasing: $0[written...]), offset + written)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else {
                let error = failure(count == 0 ? ENOSPC : errno)
                if target == descriptor { _ = try? cutExcess() }
                throw error
            }
            written += count
        }
    }

    /// What there is of a range.
    private func read(_ range: Range<Int>) throws(RealtimeError) -> [UInt8] {
        if range.isEmpty { return [] }
        var fault: Int32 = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: range.count) { bytes, used in
            while used < range.count {
                let rest = UnsafeMutableBufferPointer(rebasing: bytes[used...])
                let offset = off_t(range.lowerBound + used)
                let count = pread(descriptor, rest.baseAddress, range.count - used, offset)
                if count < 0, errno == EINTR { continue }
                fault = count < 0 ? errno : 0
                if count <= 0 { return }
                used += count
            }
        }
        guard fault == 0 else {
            errno = fault
            throw failure("cannot be read")
        }
        return bytes
    }

    /// A record is read anew, as its checksums are of its place.
    /// - Returns: The size of the target.
    private mutating func copy(
        _ places: [Range<Int>], to target: Int32, _ moved: inout [Range<Int>?]
    ) throws(RealtimeError) -> Int {
        var bytes = OutboxRecord.firstLine
        var written = 0
        for place in places {
            let old = try read(place)
            let record = old.withUnsafeBytes {
                OutboxRecord.read($0, at: UInt64(place.lowerBound))?.record
            }
            guard let record else {
                moved.append(nil)
                continue
            }
            let start = written + bytes.count
            try record.write(at: UInt64(start), to: &bytes)
            moved.append(start..<(written + bytes.count))
            if bytes.count >= OutboxStorage.copyBytes {
                try writeAll(bytes, to: target, at: written)
                written += bytes.count
                bytes.removeAll(keepingCapacity: true)
            }
        }
        try writeAll(bytes, to: target, at: written)
        return written + bytes.count
    }

    private static func failure(_ path: String, _ fault: String) -> RealtimeError {
        let cause = errno
        return RealtimeError(
            .store, "the outbox \(path) \(fault): \(String(cString: strerror(cause)))",
            systemError: cause)
    }
}
