import Glibc
import Testing
import Wire

@testable import Engine

struct OutboxFileTests {
    private let folder = Folder()

    private func reopened() throws(RealtimeError) -> [OutboxEntry] {
        let (file, entries) = try OutboxFile.open(folder.outbox)
        file.close()
        return entries
    }

    @Test func waitingEntriesAreKept() throws {
        let messages = [
            text("one"), OutboxMessage(.binary, payload: [0, 255]),
            OutboxMessage(
                .request, key: "k", path: "orders/ü?a=b", contentType: "application/json",
                payload: Array("{}".utf8)),
            OutboxMessage(.text, payload: []),
        ]
        let (file, entries) = try OutboxFile.open(folder.outbox)
        #expect(entries.isEmpty)
        var ids: [UInt64] = []
        for message in messages { ids.append(try file.append(message)) }
        #expect(ids == ids.sorted() && Set(ids).count == ids.count)
        file.close()
        #expect(try reopened() == zip(ids, messages).map { OutboxEntry(id: $0, message: $1) })
        #expect(try reopened().count == 4)
    }

    @Test func removedEntriesAreGone() throws {
        var (file, _) = try OutboxFile.open(folder.outbox)
        var ids: [UInt64] = []
        for index in 0..<5 { ids.append(try file.append(text("\(index)"))) }
        file.remove(ids[1])
        file.remove(ids[3])
        file.remove(ids[3])
        file.remove(99)
        file.close()
        #expect(try reopened().texts == ["0", "2", "4"])
        (file, _) = try OutboxFile.open(folder.outbox)
        let id = try file.append(text("5"))
        #expect(id > ids[4])
        for id in ids { file.remove(id) }
        file.close()
        #expect(try reopened().texts == ["5"])
    }

    @Test func anEmptyOutboxLeavesNothing() throws {
        let (file, _) = try OutboxFile.open(folder.outbox)
        let ids = try (0..<3).map { try file.append(text("\($0)")) }
        for id in ids { file.remove(id) }
        #expect(folder.read() == OutboxRecord.firstLine)
        let id = try file.append(text("again"))
        #expect(id > ids[2])
        file.close()
        #expect(try reopened().texts == ["again"])
    }

    /// A crash would lose what is written to a file without a name.
    @Test func aRemovedFileIsWrittenAgain() throws {
        let (file, _) = try OutboxFile.open(folder.outbox)
        let ids = try ["one", "two", "three"].map { try file.append(text($0)) }
        file.remove(ids[1])
        for round in 0..<2 {
            #expect(unlink(folder.outbox) == 0)
            _ = try file.append(text("after \(round)"))
            // As a program finds it that starts after a crash.
            let found = folder.path + "/found"
            folder.write(folder.read(), "found")
            let (other, entries) = try OutboxFile.open(found)
            other.close()
            let texts = ["one", "three", "after 0", "after 1"]
            #expect(entries.texts == Array(texts.prefix(3 + round)))
            #expect(unlink(found) == 0)
        }
        #expect(folder.names == ["outbox"])
        var status = stat()
        #expect(stat(folder.outbox, &status) == 0 && status.st_mode & 0o777 == 0o600)
        // It is locked as the first one was.
        #expect(throws: RealtimeError.self) { try OutboxFile.open(folder.outbox) }
        file.close()
        #expect(try reopened().texts == ["one", "three", "after 0", "after 1"])
    }

    /// Another process has removed the file, and writes its own.
    @Test func aFileOfAnotherIsNotReplaced() throws {
        let (file, _) = try OutboxFile.open(folder.outbox)
        let large = OutboxMessage(.binary, payload: [UInt8](repeating: 7, count: 2 << 20))
        let first = try file.append(text("first"))
        let second = try file.append(large)
        #expect(unlink(folder.outbox) == 0)
        let (other, _) = try OutboxFile.open(folder.outbox)
        _ = try other.append(text("of the other"))
        let error = #expect(throws: RealtimeError.self) { try file.append(text("refused")) }
        #expect(error?.code == .store)
        #expect(error?.message.contains("another file has its name") == true)
        // Compaction does not replace it either.
        file.remove(second)
        file.remove(first)
        file.close()
        other.close()
        #expect(folder.names == ["outbox"])
        #expect(try reopened().texts == ["of the other"])
    }

    @Test func aRemovedFolderIsAnError() throws {
        let (file, _) = try OutboxFile.open(folder.outbox)
        let id = try file.append(text("one"))
        #expect(unlink(folder.outbox) == 0 && rmdir(folder.path) == 0)
        let error = #expect(throws: RealtimeError.self) { try file.append(text("two")) }
        #expect(error?.code == .store)
        #expect(mkdir(folder.path, 0o700) == 0)
        #expect(try file.append(text("three")) > id)
        file.close()
        #expect(try reopened().texts == ["one", "three"])
    }

    @Test func onlyTheOwnerMayReadTheFile() throws {
        let (file, _) = try OutboxFile.open(folder.outbox)
        var status = stat()
        #expect(stat(folder.outbox, &status) == 0)
        #expect(status.st_mode & 0o777 == 0o600)
        file.close()
    }

    @Test func oneObjectAtATime() throws {
        let (file, _) = try OutboxFile.open(folder.outbox)
        let error = #expect(throws: RealtimeError.self) { try OutboxFile.open(folder.outbox) }
        #expect(error?.code == .busy)
        #expect(error?.message.contains(folder.outbox) == true)
        file.close()
        #expect(throws: RealtimeError(.closed, "the outbox is closed")) {
            try file.append(text("late"))
        }
        file.remove(1)
        file.close()
    }

    /// If others can write it, they could have sent the messages; if they can read it, it is not
    /// secret.
    @Test(arguments: [0o666, 0o644, 0o604, 0o620, 0o601] as [mode_t])
    func filesThatOthersCanUseAreRefused(mode: mode_t) throws {
        _ = try OutboxFile.open(folder.outbox).file.append(text("kept"))
        let content = folder.read()
        chmod(folder.outbox, mode)
        let error = #expect(throws: RealtimeError.self) { try OutboxFile.open(folder.outbox) }
        #expect(error?.code == .store)
        #expect(error?.message.contains("chmod 600 \(folder.outbox)") == true)
        #expect(folder.read() == content)
        chmod(folder.outbox, 0o600)
        #expect(try reopened().texts == ["kept"])
    }

    @Test(.enabled(if: geteuid() == 0)) func filesOfOtherUsersAreRefused() throws {
        _ = try OutboxFile.open(folder.outbox).file.append(text("foreign"))
        #expect(chown(folder.outbox, 12_345, 0) == 0)
        let error = #expect(throws: RealtimeError.self) { try OutboxFile.open(folder.outbox) }
        #expect(error?.code == .store)
        #expect(error?.message.contains("belongs to the user 12345") == true)
    }

    @Test func linksAreNotFollowed() throws {
        let link = "\(folder.path)/link"
        for exists in [false, true] {
            if exists { _ = try OutboxFile.open(folder.outbox).file.append(text("kept")) }
            _ = symlink(folder.outbox, link)
            let error = #expect(throws: RealtimeError.self) { try OutboxFile.open(link) }
            #expect(error?.code == .store)
            #expect(error?.message.contains("symbolic link") == true)
            #expect(folder.names == (exists ? ["link", "outbox"] : ["link"]))
            unlink(link)
        }
        // A link may lead to the folder.
        let (file, _) = try OutboxFile.open(folder.outbox)
        file.close()
        let inside = "\(folder.path)/inside"
        _ = symlink(folder.path, inside)
        let (again, entries) = try OutboxFile.open("\(inside)/outbox")
        #expect(entries.texts == ["kept"])
        again.close()
    }

    @Test func aReleasedObjectClosesTheFile() throws {
        _ = try OutboxFile.open(folder.outbox).file.append(text("kept"))
        #expect(try reopened().texts == ["kept"])
    }

    @Test func foreignFilesAreNotChanged() throws {
        for content in ["{}", "librealtime outbox 2\n", String(repeating: "\0", count: 22)] {
            folder.write(Array(content.utf8))
            let error = #expect(throws: RealtimeError.self) { try OutboxFile.open(folder.outbox) }
            #expect(error?.code == .store)
            #expect(error?.message.contains(folder.outbox) == true)
            #expect(folder.read() == Array(content.utf8))
        }
    }

    @Test func onlyRegularFilesAreAccepted() {
        _ = mkfifo(folder.outbox, 0o600)
        for (path, code) in [
            (folder.outbox, .store), (folder.path, .store), ("\(folder.path)/none/outbox", .store),
            ("/dev/null", .store), ("", .invalidArgument),
            ("\(folder.path)/a\0b", .invalidArgument),
        ] as [(String, RealtimeError.Code)] {
            let error = #expect(throws: RealtimeError.self) { try OutboxFile.open(path) }
            #expect(error?.code == code, "\(path): \(error as Any)")
        }
    }

    @Test func anUnfinishedFirstLineIsWrittenAgain() throws {
        let line = OutboxRecord.firstLine
        for count in 0..<line.count {
            for rest in [0, line.count - count] {
                folder.write(line[..<count] + [UInt8](repeating: 0, count: rest))
                let (file, entries) = try OutboxFile.open(folder.outbox)
                #expect(entries.isEmpty)
                _ = try file.append(text("a"))
                file.close()
                #expect(try reopened().texts == ["a"])
            }
        }
    }

    @Test func limitsAreKept() throws {
        let size = OutboxRecord.bytes(of: text("1"))
        for limits in [
            OutboxFile.Limits(entries: 2), OutboxFile.Limits(bytes: 2 * size + size - 1),
        ] {
            let (file, _) = try OutboxFile.open(folder.outbox, limits: limits)
            let first = try file.append(text("1"))
            _ = try file.append(text("2"))
            let error = #expect(throws: RealtimeError.self) { try file.append(text("3")) }
            #expect(error?.code == .queueFull)
            file.remove(first)
            _ = try file.append(text("4"))
            file.close()
            // Entries above the limits are returned all the same.
            let (again, entries) = try OutboxFile.open(
                folder.outbox, limits: OutboxFile.Limits(entries: 1))
            #expect(entries.texts == ["2", "4"])
            #expect(throws: RealtimeError.self) { try again.append(text("5")) }
            for entry in entries { again.remove(entry.id) }
            again.close()
        }
        let (file, _) = try OutboxFile.open(folder.outbox)
        let long = String(repeating: "x", count: 70_000)
        let error = #expect(throws: RealtimeError.self) {
            try file.append(OutboxMessage(.text, key: long, payload: []))
        }
        #expect(error?.code == .tooLarge)
        // Older entries may be dropped for the next one, but never for this one.
        let (small, _) = try OutboxFile.open(
            folder.path + "/small", limits: OutboxFile.Limits(bytes: size - 1))
        let never = #expect(throws: RealtimeError.self) { try small.append(text("1")) }
        #expect(never?.code == .tooLarge)
        small.close()
        _ = try file.append(text("after"))
        file.close()
        #expect(try reopened().texts == ["after"])
    }

    @Test func compactionRemovesDeadBytes() throws {
        let (file, _) = try OutboxFile.open(folder.outbox)
        chmod(folder.outbox, 0o700)
        let kept = try file.append(text("kept"))
        let large = OutboxMessage(.binary, payload: [UInt8](repeating: 7, count: 100_000))
        var greatest = 0
        for round in 0..<40 {
            let id = try file.append(large)
            if round == 30 { _ = try file.append(text("late")) }
            var status = stat()
            _ = stat(folder.outbox, &status)
            greatest = max(greatest, Int(status.st_size))
            #expect(status.st_mode & 0o777 == 0o700)
            file.remove(id)
        }
        #expect(greatest > 1 << 20 && greatest < 1 << 20 + 400_000, "\(greatest) bytes")
        // The new file is locked like the old one.
        #expect(throws: RealtimeError.self) { try OutboxFile.open(folder.outbox) }
        file.close()
        #expect(folder.names == ["outbox"])
        let (again, entries) = try OutboxFile.open(folder.outbox)
        #expect(entries.texts == ["kept", "late"])
        #expect(entries[0].id == kept)
        again.close()
    }

    /// A file that a crash left during a compaction does not get in the way.
    @Test func anInterruptedCompactionIsRepeated() throws {
        folder.write(OutboxRecord.firstLine + [1, 2, 3], "outbox.new")
        let (file, _) = try OutboxFile.open(folder.outbox)
        _ = try file.append(text("kept"))
        let large = OutboxMessage(.binary, payload: [UInt8](repeating: 7, count: 600_000))
        for _ in 0..<4 { file.remove(try file.append(large)) }
        #expect(folder.names == ["outbox"])
        file.close()
        #expect(try reopened().texts == ["kept"])
    }
}
