import Glibc
import Testing
import Wire

@testable import Engine

/// Both stores write a new file beside the old one, and then rename it. A crash may leave the new
/// file; and another program's file may have its name.
struct LeftoverTests {
    private let folder = Folder()
    private static let foreign = Array("somebody's notes".utf8)

    private func compacted() throws(RealtimeError) {
        var storage = try OutboxStorage(path: folder.outbox, disk: OutboxDisk())
        _ = try storage.load(limit: 1 << 20)
        _ = try storage.compact([])
    }

    private func saved() throws(RealtimeError) {
        var patience = Duration.seconds(60)
        try KeyedStore(path: folder.outbox, format: .eventIDs).save(&patience) { [("key", "id")] }
    }

    @Test func aForeignFileStays() throws {
        folder.write(LeftoverTests.foreign, "outbox.new")
        for store in [compacted, saved] {
            let error = #expect(throws: RealtimeError.self) { try store() }
            #expect(error?.code == .store)
            #expect(error?.message.contains("\(folder.outbox).new exists and is not its") == true)
            #expect(folder.read("outbox.new") == LeftoverTests.foreign)
            _ = unlink(folder.outbox)
        }
    }

    @Test func aLinkStays() throws {
        folder.write(OutboxRecord.firstLine, "target")
        #expect(symlink("\(folder.path)/target", "\(folder.outbox).new") == 0)
        #expect(throws: RealtimeError.self) { try compacted() }
        #expect(folder.names.contains("outbox.new"))
        #expect(folder.read("target") == OutboxRecord.firstLine)
    }

    /// Complete or interrupted.
    @Test(arguments: [0, 5, OutboxRecord.firstLine.count])
    func leftoversOfACrashAreReplaced(_ count: Int) throws {
        folder.write(Array(OutboxRecord.firstLine.prefix(count)), "outbox.new")
        try compacted()
        #expect(folder.names == ["outbox"])
    }

    /// A forked child has each descriptor, too: a duplicate stands for its copy.
    @Test func aChildDoesNotKeepTheLockOfASave() throws {
        let store = KeyedStore(path: folder.outbox, format: .eventIDs)
        var patience = Duration.seconds(60)
        var copy: Int32 = -1
        try store.save(&patience) {
            copy = copyOfLock()
            return [("key", "first")]
        }
        defer { _ = close(copy) }
        #expect(copy >= 0)
        patience = .zero
        try store.save(&patience) { [("key", "second")] }
        #expect(try store.load("key") == "second")
    }

    private func copyOfLock() -> Int32 {
        for descriptor in Int32(0)..<1024 {
            var name = [CChar](repeating: 0, count: 4096)
            let count = readlink("/proc/self/fd/\(descriptor)", &name, name.count)
            guard count > 0 else { continue }
            let text = String(decoding: name[..<count].map(UInt8.init(bitPattern:)), as: UTF8.self)
            if text == "\(folder.outbox).lock" { return dup(descriptor) }
        }
        return -1
    }
}
