import Glibc
package import Wire

/// Messages that wait to be sent, in a file that outlives the process: what `append` has returned
/// for is there after a crash or a loss of power, until it is removed. Any thread; one lock.
///
/// Threads that append at the same time share one sync of the disk. Removing writes a mark that is
/// not waited for: after a crash, what was removed last may be there again, under its key.
package final class OutboxFile: @unchecked Sendable {
    package struct Limits: Sendable {
        /// How many may wait.
        package var entries: Int
        /// What their records may have, in bytes.
        package var bytes: Int

        package init(entries: Int = 10_000, bytes: Int = 64 << 20) {
            self.entries = entries
            self.bytes = bytes
        }
    }

    private let limits: Limits
    private let lock = Monitor()
    private let process = getpid()

    // All below is guarded by the lock.
    private var storage: OutboxStorage
    /// Where the records of those that wait are.
    private var places: [UInt64: Range<Int>] = [:]
    private var liveBytes = 0
    private var lastID: UInt64 = 0
    /// Entries up to this one are durable, and so is the file up to this offset.
    private var syncedID: UInt64 = 0
    private var syncedEnd = 0
    private var isSyncing = false
    private var waiting = 0
    private var isClosed = false
    private var lastFailure = RealtimeError(.store, "")
    /// Marks that are still to be written, and those that are written and not durable.
    private var owedMarks: [UInt64] = []
    private var freshMarks: [UInt64] = []
    /// How many dead bytes there may be before the file is written anew.
    private var deadLimit = OutboxFile.compactAbove
    /// For the log, whose sink may call the outbox: written when the lock is given back.
    private var warnings: [String] = []

    private static let compactAbove = 1 << 20
    /// What no file grows beyond, and none that is larger is read.
    static let largestFile = 1 << 30
    private static let firstRecord = OutboxRecord.firstLine.count

    /// Opens the outbox in `path`, or makes one that only its owner may read.
    /// - Returns: The outbox, and what waits in it, in order, even more than `limits` allow.
    /// - Throws: `.busy` while it is open elsewhere, in this process or another; `.store` for what
    ///   is no outbox, which is left as it is, and for what the system refuses; the path is named.
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

    /// Adds a message, and returns when it is on the disk.
    /// - Returns: Its id, greater than all before.
    /// - Throws: `.queueFull`; `.tooLarge`; `.closed`; `.forked` in a child of the process that
    ///   opened it; `.store` when the disk refuses: the message is not in the file then, and later
    ///   ones may succeed.
    package func append(_ message: OutboxMessage) throws(RealtimeError) -> UInt64 {
        guard process == getpid() else {
            throw RealtimeError(.forked, "the outbox belongs to the parent process")
        }
        return try locked { () throws(RealtimeError) in
            // Those who wait for the disk cannot be moved. When there is too much to clear away
            // they are let through first.
            while isCompactionDue(above: 4 * deadLimit), waiting > 0 { lock.wait() }
            compactIfDue()
            let size = OutboxRecord.bytes(of: message)
            try check(size)
            try writeOwedMarks()
            let start = storage.end
            // Never used again, whatever becomes of it.
            lastID += 1
            let id = lastID
            var bytes: [UInt8] = []
            try OutboxRecord.entry(OutboxEntry(id: id, message: message))
                .write(at: UInt64(start), to: &bytes)
            try storage.append(bytes)
            places[id] = start..<storage.end
            liveBytes += size
            try awaitSync(of: id)
            return id
        }
    }

    /// Takes away what was sent or given up; nothing else has to be done for it. The mark reaches
    /// the disk with what is appended later, or when the system writes it.
    package func remove(_ id: UInt64) {
        guard process == getpid() else { return }
        locked {
            guard !isClosed, id <= syncedID, let place = places.removeValue(forKey: id) else {
                return
            }
            liveBytes -= place.count
            if places.isEmpty { return clear() }
            owedMarks.append(id)
            do throws(RealtimeError) {
                try writeOwedMarks()
            } catch {
                warnings.append("\(error.message); what was sent may be sent again")
            }
            compactIfDue()
        }
    }

    /// Closes the file, once those who append have their answer. Others may open it then.
    package func close() {
        locked {
            isClosed = true
            while waiting > 0 { lock.wait() }
            if process == getpid() { _ = try? writeOwedMarks() }
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
            while let (record, place) = reader.next() {
                switch record {
                case .entry(let entry):
                    entries[entry.id] = entry
                    places[entry.id] = place
                case .done(let id):
                    entries[id] = nil
                    places[id] = nil
                }
            }
            lastID = reader.lastID
            return (reader.end, reader.skipped)
        }
        let lost = skipped + bytes.count - end
        if lost > 0 {
            warnings.append("the outbox \(path) was damaged: \(lost) bytes are dropped")
        }
        liveBytes = places.values.reduce(0) { $0 + $1.count }
        storage.cut(to: end)
        // What was read is promised from now on, and may not have been durable yet.
        if let fault = storage.syncing.run() { throw storage.failure(fault) }
        storage.synced()
        syncedID = lastID
        syncedEnd = end
        if places.isEmpty { clear() } else if skipped > 0 { compact() }
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

    /// Whether a record of this size may be added.
    private func check(_ size: Int) throws(RealtimeError) {
        guard !isClosed else { throw RealtimeError(.closed, "the outbox is closed") }
        guard size <= limits.bytes else {
            throw RealtimeError(
                .tooLarge, "a message of \(size) bytes is more than the outbox may hold")
        }
        guard places.count < limits.entries, size <= limits.bytes - liveBytes else {
            throw RealtimeError(
                .queueFull,
                "\(places.count) messages of \(liveBytes) bytes wait in the outbox already")
        }
        // Where it cannot be written anew it grows, until nothing waits.
        let marks = (owedMarks.count + places.count + 1) * OutboxRecord.headBytes
        guard size + marks <= OutboxFile.largestFile - storage.end, lastID < .max - 1 else {
            throw storage.failure(EFBIG)
        }
    }

    /// Waits until the entry is durable: the first who waits syncs for all who have written by
    /// then; those who come meanwhile are the next one's.
    private func awaitSync(of id: UInt64) throws(RealtimeError) {
        waiting += 1
        defer {
            waiting -= 1
            if waiting == 0 { lock.wakeAll() }
        }
        // One that was taken back is not among those that wait.
        while id > syncedID, places[id] != nil {
            if isSyncing {
                lock.wait()
            } else {
                sync()
            }
        }
        if places[id] == nil { throw lastFailure }
    }

    private func sync() {
        isSyncing = true
        let (id, end, marks) = (lastID, storage.end, freshMarks.count)
        let syncing = storage.syncing
        lock.unlock()
        let fault = syncing.run()
        lock.lock()
        isSyncing = false
        if let fault {
            lastFailure = storage.failure(fault)
            takeBack()
        } else {
            storage.synced()
            syncedID = id
            syncedEnd = end
            freshMarks.removeFirst(marks)
        }
        lock.wakeAll()
    }

    /// After a failed sync nobody knows what is on the disk of that which was not durable, and it
    /// is not asked again: all of it is cut off. Marks are written anew.
    private func takeBack() {
        for (id, place) in places where id > syncedID {
            places[id] = nil
            liveBytes -= place.count
        }
        storage.cut(to: syncedEnd)
        owedMarks = freshMarks + owedMarks
        freshMarks = []
    }

    private func writeOwedMarks() throws(RealtimeError) {
        guard !owedMarks.isEmpty else { return }
        var bytes: [UInt8] = []
        for id in owedMarks {
            try OutboxRecord.done(id).write(at: UInt64(storage.end + bytes.count), to: &bytes)
        }
        try storage.append(bytes)
        freshMarks += owedMarks
        owedMarks = []
    }

    /// Nothing waits: the file is its first line again.
    private func clear() {
        storage.cut(to: OutboxFile.firstRecord)
        syncedEnd = OutboxFile.firstRecord
        owedMarks = []
        freshMarks = []
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

    /// While nobody waits for the disk: all that is copied is durable in the old file, too, until
    /// the new one has its place.
    private func compact() {
        let ids = places.keys.sorted()
        do throws(RealtimeError) {
            let moved = try storage.compact(ids.compactMap { places[$0] })
            for (id, place) in zip(ids, moved) { places[id] = place }
            let lost = ids.count - places.count
            if lost > 0 { warnings.append("the outbox lost \(lost) messages to a damaged disk") }
            liveBytes = places.values.reduce(0) { $0 + $1.count }
            syncedEnd = storage.end
            owedMarks = []
            freshMarks = []
            deadLimit = OutboxFile.compactAbove
        } catch {
            // Tried again when there is as much more to gain.
            deadLimit = storage.end - liveBytes + OutboxFile.compactAbove
            warnings.append("\(error.message); it stays as large as it is")
        }
    }
}
