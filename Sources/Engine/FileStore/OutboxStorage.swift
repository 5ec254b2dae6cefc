import CShims
import Glibc
import Wire

/// Writes an outbox's bytes and syncs it or its folder. Tests replace it to simulate full and
/// failing disks.
struct OutboxDisk: Sendable {
    var write: @Sendable (Int32, UnsafeRawBufferPointer, Int) -> Int = {
        pwrite($0, $1.baseAddress, $1.count, off_t($2))
    }
    var sync: @Sendable (Int32) -> Int32 = { fdatasync($0) }
}

/// An outbox's open and locked file. Records are appended at `end`. One thread at a time.
struct OutboxStorage: ~Copyable {
    /// The path as the user gave it, for messages.
    let path: String
    /// Without symbolic links in its folders, so that compacting replaces the file that was opened.
    private let realPath: String
    private let disk: OutboxDisk
    private var descriptor: Int32
    /// A forked child must not release its parent's lock; its copy of the descriptor is closed.
    private let process = getpid()
    /// The offset after the last record.
    private(set) var end = 0
    /// True while bytes after `end` could not be cut off.
    private var hasExcess = false
    /// True until the folder has been synced, so that it lists the file.
    private var folderNeedsSync = false

    private static let mode: mode_t = 0o600
    private static let copyBytes = 1 << 20

    /// Opens or creates a file, and locks it.
    /// - Throws: `.busy` while another has it locked; `.store` also if another user owns it or has
    ///   access; `.invalidArgument` for an empty path.
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

    /// Closes and unlocks the file.
    mutating func close() {
        release()
        descriptor = -1
    }

    private func release() {
        guard descriptor >= 0, process == getpid() else { return }
        _ = flock(descriptor, LOCK_UN)
        shim_private_close(descriptor)
    }

    /// Reads the whole file; a new one gets its first line. The caller must cut off what it cannot
    /// use at the end. The content may not be durable yet.
    mutating func load(limit: Int) throws(RealtimeError) -> [UInt8] {
        folderNeedsSync = true
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw failure("cannot be read") }
        // Read only this much before it is known that the file is an outbox.
        let head = try read(0..<OutboxRecord.firstLine.count)
        let size = Int(status.st_size)
        if size <= head.count, head.withUnsafeBytes(OutboxReader.isUnfinished) {
            return try begin()
        }
        guard head == OutboxRecord.firstLine else {
            throw RealtimeError(.store, "the file \(path) is not an outbox")
        }
        guard size <= limit else {
            throw RealtimeError(
                .store, "the outbox \(path) has \(size) bytes, more than the \(limit) allowed")
        }
        return try read(0..<size)
    }

    private mutating func begin() throws(RealtimeError) -> [UInt8] {
        hasExcess = true
        try append(OutboxRecord.firstLine)
        return OutboxRecord.firstLine
    }

    /// Appends bytes at the end. If they cannot be written in full, none of them remain.
    mutating func append(_ bytes: [UInt8]) throws(RealtimeError) {
        try cutExcess()
        hasExcess = true
        try writeAll(bytes, to: descriptor, at: end)
        hasExcess = false
        end += bytes.count
    }

    /// Makes everything written so far durable. Run it without any lock, one at a time.
    var syncing: Syncing {
        Syncing(descriptor: descriptor, folder: folderNeedsSync ? folder : nil, disk: disk)
    }

    /// Call when the file up to `end` is durable.
    mutating func synced() { folderNeedsSync = false }

    /// Removes everything after `offset`, at once or before the next write.
    mutating func cut(to offset: Int) {
        end = offset
        hasExcess = true
        _ = try? cutExcess()
    }

    /// Replaces the file by one that has only these records, in this order, and is durable.
    /// - Returns: The new ranges; nil for a record that can no longer be read.
    mutating func compact(_ ranges: [Range<Int>]) throws(RealtimeError) -> [Range<Int>?] {
        let fresh = realPath + ".new"
        let headBytes = OutboxRecord.firstLine.count
        let isFree = Leftover.remove(fresh, headBytes: headBytes) { head in
            head.elementsEqual(OutboxRecord.firstLine)
                || head.withUnsafeBytes(OutboxReader.isUnfinished)
        }
        guard isFree else {
            throw RealtimeError(
                .store,
                "the outbox \(path) cannot be rewritten: \(fresh) exists and is not its"
                    + " temporary file")
        }
        let target = shim_private_open(fresh, O_RDWR | O_CREAT | O_EXCL, OutboxStorage.mode)
        guard target >= 0 else { throw failure("cannot be rewritten") }
        do throws(RealtimeError) {
            var moved: [Range<Int>?] = []
            let size = try copy(ranges, to: target, &moved)
            var status = stat()
            if fstat(descriptor, &status) == 0 { _ = fchmod(target, status.st_mode & 0o777) }
            // Locked before anyone can find it by its name.
            guard flock(target, LOCK_EX | LOCK_NB) == 0, disk.sync(target) == 0 else {
                throw failure("cannot be replaced")
            }
            try name(fresh)
            shim_private_close(descriptor)
            descriptor = target
            end = size
            hasExcess = false
            // Until the folder is synced, a crash can restore the old file.
            folderNeedsSync = true
            if OutboxStorage.sync(nil, folder, disk) == nil { folderNeedsSync = false }
            return moved
        } catch {
            shim_private_close(target)
            _ = unlink(fresh)
            throw error
        }
    }

    /// Whether the file still has its name. When the process ends, the kernel frees a file that was
    /// removed.
    var hasName: Bool { OutboxStorage.isNamed(realPath, descriptor) }

    /// Gives the new file the name of the old one, but not if another file has it by now: that may
    /// be another process's outbox.
    private func name(_ fresh: String) throws(RealtimeError) {
        if hasName {
            guard rename(fresh, realPath) == 0 else { throw failure("cannot be replaced") }
            return
        }
        guard link(fresh, realPath) == 0 else {
            let fault = errno == EEXIST ? "another file has its name" : "cannot be written again"
            throw failure("was removed, and \(fault)")
        }
        _ = unlink(fresh)
    }

    struct Syncing: Sendable {
        fileprivate let descriptor: Int32
        fileprivate let folder: String?
        fileprivate let disk: OutboxDisk

        /// - Returns: The errno of the failure, or nil when everything is durable.
        func run() -> Int32? { OutboxStorage.sync(descriptor, folder, disk) }
    }

    func failure(_ fault: String) -> RealtimeError { OutboxStorage.failure(path, fault) }

    func failure(_ cause: Int32) -> RealtimeError {
        errno = cause
        return failure("cannot be written")
    }
}

extension OutboxStorage {
    /// Opens the file that the path names once the lock is held, not one that was replaced
    /// meanwhile.
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
        throw RealtimeError(.busy, "the outbox \(path) is being replaced by another process")
    }

    /// Messages that others wrote would be sent as ours; messages that others can read are not
    /// secret.
    private static func checkPrivate(_ descriptor: Int32, _ path: String) throws(RealtimeError) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw failure(path, "cannot be read") }
        guard shim_is_regular(status.st_mode) else {
            throw RealtimeError(.store, "the outbox \(path) is not a regular file")
        }
        guard status.st_uid == geteuid() else {
            throw RealtimeError(
                .store,
                "the outbox \(path) belongs to the user \(status.st_uid), but this process runs as"
                    + " \(geteuid()): use a file that this user owns")
        }
        guard status.st_mode & 0o077 == 0 else {
            let mode = String(status.st_mode & 0o777, radix: 8)
            throw RealtimeError(
                .store,
                "the outbox \(path) has the mode \(mode), which gives other users access: use"
                    + " chmod 600 \(path)")
        }
    }

    /// - Returns: false if the path names another file by now.
    private static func lock(_ descriptor: Int32, _ path: String) throws(RealtimeError) -> Bool {
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            guard errno == EWOULDBLOCK else { throw failure(path, "cannot be locked") }
            throw RealtimeError(.busy, "the outbox \(path) is in use, here or by another process")
        }
        return isNamed(path, descriptor)
    }

    /// Whether this path is that of the open file.
    private static func isNamed(_ path: String, _ descriptor: Int32) -> Bool {
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
        // Some file systems need no sync of folders and refuse it.
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

    /// Reads a range, as far as the file has it.
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

    /// Copies records. Each is parsed and written again, because its checksum includes its offset.
    /// - Returns: The size of the target.
    private mutating func copy(
        _ ranges: [Range<Int>], to target: Int32, _ moved: inout [Range<Int>?]
    ) throws(RealtimeError) -> Int {
        var bytes = OutboxRecord.firstLine
        var written = 0
        for range in ranges {
            let old = try read(range)
            let record = old.withUnsafeBytes {
                OutboxRecord.read($0, at: UInt64(range.lowerBound))?.record
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
