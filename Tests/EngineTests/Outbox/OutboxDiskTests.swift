import Glibc
import Synchronization
import Testing
import Wire

@testable import Engine

/// Disks that are full, broken or slow.
struct OutboxDiskTests {
    private let folder = Folder()
    private let disk = Disk()

    private func open() throws(RealtimeError) -> (file: OutboxFile, entries: [OutboxEntry]) {
        try OutboxFile.open(folder.outbox, limits: .init(), disk: disk.outbox)
    }

    private func reopened() throws(RealtimeError) -> [String] {
        let (file, entries) = try OutboxFile.open(folder.outbox)
        file.close()
        return entries.texts
    }

    /// If the disk becomes full anywhere in a record, the file stays as it was.
    @Test func fullDisk() throws {
        let (file, _) = try open()
        _ = try file.append(text("before"))
        let bytes = folder.read()
        for room in 0..<OutboxRecord.bytes(of: text("refused")) {
            disk.state.withLock { $0.room = room }
            let error = #expect(throws: RealtimeError.self) { try file.append(text("refused")) }
            #expect(error?.code == .store)
            #expect(error?.message.contains(folder.outbox) == true)
            #expect(folder.read() == bytes)
        }
        disk.state.withLock { $0.room = .max }
        _ = try file.append(text("after"))
        file.close()
        #expect(try reopened() == ["before", "after"])
    }

    @Test func fullDiskDuringCreation() throws {
        disk.state.withLock { $0.room = 5 }
        let error = #expect(throws: RealtimeError.self) { try open() }
        #expect(error?.code == .store)
        #expect(folder.read().isEmpty)
        disk.state.withLock { $0.room = .max }
        try open().file.close()
    }

    /// A mark for which there was no room is written with the next message.
    @Test func fullDiskDuringRemove() throws {
        let (file, _) = try open()
        let ids = try (0..<4).map { try file.append(text("\($0)")) }
        disk.state.withLock { $0.room = 40 }
        file.remove(ids[0])
        file.remove(ids[1])
        #expect(throws: RealtimeError.self) { try file.append(text("refused")) }
        disk.state.withLock { $0.room = .max }
        _ = try file.append(text("4"))
        file.close()
        #expect(try reopened() == ["2", "3", "4"])
    }

    @Test func fullDiskDuringCompaction() throws {
        let (file, _) = try open()
        let large = OutboxMessage(.binary, payload: [UInt8](repeating: 7, count: 1 << 20))
        _ = try file.append(text("kept"))
        let id = try file.append(large)
        disk.state.withLock { $0.room = 60 }
        file.remove(id)
        #expect(folder.names == ["outbox"])
        #expect(folder.read().count > 1 << 20)
        disk.state.withLock { $0.room = .max }
        file.remove(try file.append(large))
        #expect(folder.read().count < 1000)
        file.close()
        #expect(try reopened() == ["kept"])
    }

    /// Entries whose sync failed are removed; earlier entries stay, and marks are not lost.
    @Test func brokenSync() throws {
        let (file, _) = try open()
        let first = try file.append(text("first"))
        _ = try file.append(text("second"))
        let bytes = folder.read()
        disk.state.withLock { $0.syncFault = EIO }
        file.remove(first)
        for _ in 0..<3 {
            let error = #expect(throws: RealtimeError.self) { try file.append(text("refused")) }
            #expect(error?.code == .store)
            #expect(error?.message.contains("Input/output error") == true)
            #expect(folder.read() == bytes)
        }
        disk.state.withLock { $0.syncFault = 0 }
        _ = try file.append(text("third"))
        file.close()
        #expect(try reopened() == ["second", "third"])
        disk.state.withLock { $0.syncFault = EIO }
        #expect(throws: RealtimeError.self) { try open() }
    }

    @Test func appendReturnsAfterTheSync() throws {
        let (file, _) = try open()
        disk.state.withLock { $0.isHeld = true }
        let returned = Mutex(false)
        let threads = Threads(1) { _ in
            _ = try? file.append(text("a"))
            returned.withLock { $0 = true }
        }
        while !disk.state.withLock({ $0.isInSync }) { sched_yield() }
        #expect(!returned.withLock { $0 })
        disk.state.withLock { $0.isHeld = false }
        threads.join()
        #expect(returned.withLock { $0 })
        file.close()
    }

    /// Threads that arrive during a sync share the next one.
    @Test func threadsShareASync() throws {
        let (file, _) = try open()
        let (syncs, writes) = disk.state.withLock { state in
            state.isHeld = true
            return (state.syncs, state.writes)
        }
        let ids = Mutex<[UInt64]>([])
        let threads = Threads(8) { index in
            guard let id = try? file.append(text("\(index)")) else { return }
            ids.withLock { $0.append(id) }
        }
        while disk.state.withLock({ $0.writes }) < writes + 8 { sched_yield() }
        disk.state.withLock { $0.isHeld = false }
        threads.join()
        #expect(disk.state.withLock { $0.syncs } == syncs + 2)
        #expect(Set(ids.withLock { $0 }).count == 8)
        file.close()
        #expect(try reopened().sorted() == (0..<8).map(String.init))
    }

    /// All threads that wait for a failed sync get its error, and none gets another sync's success.
    @Test func threadsShareAFailure() throws {
        let (file, _) = try open()
        _ = try file.append(text("before"))
        let bytes = folder.read()
        let writes = disk.state.withLock { state in
            state.isHeld = true
            state.syncFault = EIO
            return state.writes
        }
        let failures = Mutex<[RealtimeError.Code]>([])
        let threads = Threads(6) { index in
            do throws(RealtimeError) {
                _ = try file.append(text("\(index)"))
            } catch {
                failures.withLock { $0.append(error.code) }
            }
        }
        while disk.state.withLock({ $0.writes }) < writes + 6 { sched_yield() }
        disk.state.withLock { $0.isHeld = false }
        threads.join()
        #expect(failures.withLock { $0 } == Array(repeating: .store, count: 6))
        #expect(folder.read() == bytes)
        disk.state.withLock { $0.syncFault = 0 }
        _ = try file.append(text("after"))
        file.close()
        #expect(try reopened() == ["before", "after"])
    }

    /// The file is not replaced while threads wait for it to be synced.
    @Test func noCompactionDuringASync() throws {
        let (file, _) = try open()
        let large = OutboxMessage(.binary, payload: [UInt8](repeating: 7, count: 1 << 20))
        let id = try file.append(large)
        disk.state.withLock { $0.isHeld = true }
        let threads = Threads(1) { _ in _ = try? file.append(text("waits")) }
        while !disk.state.withLock({ $0.isInSync }) { sched_yield() }
        let syncs = disk.state.withLock { $0.syncs }
        // A new file would have to be synced.
        file.remove(id)
        #expect(disk.state.withLock { $0.syncs } == syncs)
        #expect(folder.read().count > 1 << 20)
        disk.state.withLock { $0.isHeld = false }
        threads.join()
        _ = try file.append(text("next"))
        #expect(folder.read().count < 1000)
        file.close()
        #expect(try reopened() == ["waits", "next"])
    }

    @Test func threadsAppendRemoveAndCompact() throws {
        let (file, _) = try OutboxFile.open(folder.outbox)
        let left = Mutex<[UInt64]>([])
        let failed = Mutex(0)
        let threads = Threads(4) { index in
            for round in 0..<60 {
                let size = round % 3 == 0 ? 40_000 : 100
                let message = OutboxMessage(
                    .binary, key: "\(index)", payload: [UInt8](repeating: UInt8(round), count: size)
                )
                guard let id = try? file.append(message) else {
                    failed.withLock { $0 += 1 }
                    continue
                }
                if round % 10 == 0 {
                    left.withLock { $0.append(id) }
                } else {
                    file.remove(id)
                }
            }
        }
        threads.join()
        #expect(failed.withLock { $0 } == 0)
        file.close()
        let (again, entries) = try OutboxFile.open(folder.outbox)
        #expect(entries.map(\.id) == left.withLock { $0 }.sorted())
        #expect(
            entries.allSatisfy { entry in
                entry.message.payload.allSatisfy { $0 == entry.message.payload.first }
            })
        again.close()
        #expect(folder.names == ["outbox"])
    }
}

/// Threads that run the same code, each with its number.
private final class Threads {
    private final class Task {
        let run: () -> Void
        init(_ run: @escaping () -> Void) { self.run = run }
    }

    private var threads: [pthread_t] = []

    init(_ count: Int, _ run: @escaping @Sendable (Int) -> Void) {
        for index in 0..<count {
            let task = Unmanaged.passRetained(Task { run(index) })
            var thread = pthread_t()
            let result = pthread_create(
                &thread, nil,
                { argument in
                    if let argument {
                        Unmanaged<Task>.fromOpaque(argument).takeRetainedValue().run()
                    }
                    return nil
                }, task.toOpaque())
            precondition(result == 0, "no thread for the test")
            threads.append(thread)
        }
    }

    func join() {
        for thread in threads { pthread_join(thread, nil) }
    }
}
