import Glibc
package import Wire

/// Messages that wait to be sent, in a file that outlives the process. A message for which `append`
/// has returned survives a crash or a power failure, until it is removed. Any thread; one lock.
///
/// Threads that append at the same time share one sync of the disk. `remove` writes a mark but does
/// not sync it: after a crash, messages removed last may reappear, with their keys.
package final class OutboxFile: @unchecked Sendable {
    package struct Limits: Sendable {
        /// How many messages may wait.
        package var entries: Int
        /// How many bytes their records may have in all.
        package var bytes: Int

        package init(entries: Int = 10_000, bytes: Int = 64 << 20) {
            self.entries = entries
            self.bytes = bytes
        }
    }

    private let limits: Limits
    private let lock = Monitor()
    private let process = getpid()

    // The lock guards everything below.
    private var storage: OutboxStorage
    /// The byte ranges of the waiting messages' records.
    private var ranges: [UInt64: Range<Int>] = [:]
    private var liveBytes = 0
    private var lastID: UInt64 = 0
    /// Entries up to this id are durable, and so is the file up to this offset.
    private var syncedID: UInt64 = 0
    private var syncedEnd = 0
    private var isSyncing = false
    private var waiting = 0
    private var isClosed = false
    private var lastFailure = RealtimeError(.store, "")
    /// Marks that have yet to be written, and marks that are written but not yet durable.
    private var pendingMarks: [UInt64] = []
    private var unsyncedMarks: [UInt64] = []
    /// With more dead bytes than this, the file is compacted.
    private var deadLimit = OutboxFile.compactAbove
    /// Lines for the log, whose sink may call the outbox. So they are logged when the lock is
    /// released.
    private var warnings: [String] = []

    private static let compactAbove = 1 << 20
    /// The file never grows beyond this size, and a larger one is not read.
    static let largestFile = 1 << 30
    private static let firstRecord = OutboxRecord.firstLine.count

    /// Opens the outbox at `path`, or creates one that only its owner can read.
    /// - Returns: The outbox and its waiting messages in order, even if they are more than `limits`
    ///   allow.
    /// - Throws: `.busy` while this or another process has it open; `.store` if the file is not an
    ///   outbox (it is left unchanged) or the system denies access. The message names the path.
    package static func open(
        _ path: String, limits: Limits = Limits()
    ) throws(RealtimeError) -> (file: OutboxFile, entries: [OutboxEntry]) {
        try open(path, limits: limits, disk: OutboxDisk())
    }

    static func open(
        _ path: String, limits: Limits, disk: OutboxDisk
    ) throws(RealtimeError) -> (file: OutboxFile, entries: [OutboxEntry]) {
        let file = OutboxFile(try OutboxStorage(path: path, disk: disk), limits)
        let entries = try file.locked { () throws(RealtimeError) in try file.load(path) }
        return (file, entries)
    }

    private init(_ storage: consuming OutboxStorage, _ limits: Limits) {
        self.storage = storage
        self.limits = limits
    }

    /// Adds a message. Returns when it is on the disk.
    /// - Returns: Its id, greater than all before.
    /// - Throws: `.queueFull`; `.tooLarge`; `.closed`; `.forked` in a child of the process that
    ///   opened it; `.store` if the disk fails, or another file has the outbox's name: then the
    ///   message is not in the file, and later ones may succeed.
    package func append(_ message: OutboxMessage) throws(RealtimeError) -> UInt64 {
        guard process == getpid() else {
            throw RealtimeError(.forked, "the outbox belongs to the parent process")
        }
        return try locked { () throws(RealtimeError) in
            // Compaction cannot move records whose threads wait for the disk. With very many dead
            // bytes, let those threads finish first.
            while isCompactionDue(above: 4 * deadLimit) || isLost, waiting > 0 { lock.wait() }
            if isLost { try restore() }
            compactIfDue()
            let size = OutboxRecord.bytes(of: message)
            try check(size)
            try writePendingMarks()
            let start = storage.end
            // An id is never used again, even if the append fails.
            lastID += 1
            let id = lastID
            var bytes: [UInt8] = []
            try OutboxRecord.entry(OutboxEntry(id: id, message: message))
                .write(at: UInt64(start), to: &bytes)
            try storage.append(bytes)
            ranges[id] = start..<storage.end
            liveBytes += size
            try awaitSync(of: id)
            return id
        }
    }

    /// Removes a message that was sent or given up. The mark reaches the disk with a later
    /// `append`, or when the system writes it.
    package func remove(_ id: UInt64) {
        guard process == getpid() else { return }
        locked {
            guard !isClosed, id <= syncedID, let range = ranges.removeValue(forKey: id) else {
                return
            }
            liveBytes -= range.count
            if ranges.isEmpty { return clear() }
            pendingMarks.append(id)
            do throws(RealtimeError) {
                try writePendingMarks()
            } catch {
                warnings.append("\(error.message); messages already sent may be sent again")
            }
            compactIfDue()
        }
    }

    /// Closes the file, after the calls of `append` in progress. Others may open it then.
    package func close() {
        locked {
            isClosed = true
            while waiting > 0 { lock.wait() }
            if process == getpid() { _ = try? writePendingMarks() }
            storage.close()
        }
    }

    private func load(_ path: String) throws(RealtimeError) -> [OutboxEntry] {
        let bytes = try storage.load(limit: OutboxFile.largestFile)
        var entries: [UInt64: OutboxEntry] = [:]
        let (end, skipped) = try bytes.withUnsafeBufferPointer { bytes throws(RealtimeError) in
            var reader: OutboxReader
            do throws(RealtimeError) {
                reader = try OutboxReader(UnsafeRawBufferPointer(bytes))
            } catch {
                throw RealtimeError(.store, "the file \(path) \(error.message)")
            }
            while let (record, range) = reader.next() {
                switch record {
                case .entry(let entry):
                    entries[entry.id] = entry
                    ranges[entry.id] = range
                case .done(let id):
                    entries[id] = nil
                    ranges[id] = nil
                }
            }
            lastID = reader.lastID
            return (reader.end, reader.skipped)
        }
        let lost = skipped + bytes.count - end
        if lost > 0 {
            warnings.append("the outbox \(path) was damaged: \(lost) bytes were dropped")
        }
        liveBytes = ranges.values.reduce(0) { $0 + $1.count }
        storage.cut(to: end)
        // The messages count as durable from now on, but may not be on the disk yet.
        if let fault = storage.syncing.run() { throw storage.failure(fault) }
        storage.synced()
        syncedID = lastID
        syncedEnd = end
        if ranges.isEmpty { clear() } else if skipped > 0 { compact() }
        return entries.values.sorted { $0.id < $1.id }
    }
}

extension OutboxFile {
    private func locked<Result, Failure: Error>(
        _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        lock.lock()
        defer {
            let lines = warnings
            warnings = []
            lock.unlock()
            for line in lines { Log.write(.warning, line) }
        }
        return try body()
    }

    /// Throws if a record of this size cannot be added.
    private func check(_ size: Int) throws(RealtimeError) {
        guard !isClosed else { throw RealtimeError(.closed, "the outbox is closed") }
        guard size <= limits.bytes else {
            throw RealtimeError(
                .tooLarge, "a message of \(size) bytes is more than the outbox may hold")
        }
        guard ranges.count < limits.entries, size <= limits.bytes - liveBytes else {
            throw RealtimeError(
                .queueFull,
                "\(ranges.count) messages of \(liveBytes) bytes already wait in the outbox")
        }
        // The file grows while it cannot be compacted, until nothing waits.
        let marks = (pendingMarks.count + ranges.count + 1) * OutboxRecord.headBytes
        guard size + marks <= OutboxFile.largestFile - storage.end, lastID < .max - 1 else {
            throw storage.failure(EFBIG)
        }
    }

    /// Waits until the entry is durable. The first waiting thread syncs everything written by then;
    /// entries written meanwhile wait for the next sync.
    private func awaitSync(of id: UInt64) throws(RealtimeError) {
        waiting += 1
        defer {
            waiting -= 1
            if waiting == 0 { lock.wakeAll() }
        }
        // An entry that was rolled back is not in the table any more.
        while id > syncedID, ranges[id] != nil {
            if isSyncing {
                lock.wait()
            } else {
                sync()
            }
        }
        if ranges[id] == nil { throw lastFailure }
    }

    private func sync() {
        isSyncing = true
        let (id, end, marks) = (lastID, storage.end, unsyncedMarks.count)
        let syncing = storage.syncing
        lock.unlock()
        let fault = syncing.run()
        lock.lock()
        isSyncing = false
        if let fault {
            lastFailure = storage.failure(fault)
            rollBack()
        } else {
            storage.synced()
            syncedID = id
            syncedEnd = end
            unsyncedMarks.removeFirst(marks)
        }
        lock.wakeAll()
    }

    /// After a failed sync, it is unknown which of the unsynced bytes are on the disk, and another
    /// sync would not tell. So all of them are cut off, and marks are written again.
    private func rollBack() {
        for (id, range) in ranges where id > syncedID {
            ranges[id] = nil
            liveBytes -= range.count
        }
        storage.cut(to: syncedEnd)
        pendingMarks = unsyncedMarks + pendingMarks
        unsyncedMarks = []
    }

    private func writePendingMarks() throws(RealtimeError) {
        guard !pendingMarks.isEmpty else { return }
        var bytes: [UInt8] = []
        for id in pendingMarks {
            try OutboxRecord.done(id).write(at: UInt64(storage.end + bytes.count), to: &bytes)
        }
        try storage.append(bytes)
        unsyncedMarks += pendingMarks
        pendingMarks = []
    }

    /// Nothing waits: shortens the file to its first line.
    private func clear() {
        storage.cut(to: OutboxFile.firstRecord)
        syncedEnd = OutboxFile.firstRecord
        pendingMarks = []
        unsyncedMarks = []
        deadLimit = OutboxFile.compactAbove
    }

    private func isCompactionDue(above limit: Int) -> Bool {
        let size = storage.end - OutboxFile.firstRecord
        let dead = size - liveBytes
        return dead > limit && dead > size / 2
    }

    private func compactIfDue() {
        if !isClosed, waiting == 0, isCompactionDue(above: deadLimit) { compact() }
    }

    /// Writes the waiting messages to a new file, which replaces this one. Call while no thread
    /// waits for the disk: then everything that is copied is also durable in the old file, until
    /// the new one replaces it.
    private func rewrite() throws(RealtimeError) {
        let ids = ranges.keys.sorted()
        let moved = try storage.compact(ids.compactMap { ranges[$0] })
        for (id, range) in zip(ids, moved) { ranges[id] = range }
        let lost = ids.count - ranges.count
        if lost > 0 { warnings.append("the outbox lost \(lost) messages to a damaged disk") }
        liveBytes = ranges.values.reduce(0) { $0 + $1.count }
        syncedEnd = storage.end
        pendingMarks = []
        unsyncedMarks = []
        deadLimit = OutboxFile.compactAbove
    }

    /// Whether the file was removed or replaced while it is open.
    private var isLost: Bool { !isClosed && !storage.hasName }

    /// The file was removed: the next one has all messages that still wait.
    private func restore() throws(RealtimeError) {
        try rewrite()
        warnings.append(
            "the outbox \(storage.path) was removed; a new file has the \(ranges.count) messages"
                + " that wait")
    }

    private func compact() {
        do throws(RealtimeError) {
            try rewrite()
        } catch {
            // Tried again when there is as much more to gain.
            deadLimit = storage.end - liveBytes + OutboxFile.compactAbove
            warnings.append("\(error.message); the file stays as large as it is")
        }
    }
}
