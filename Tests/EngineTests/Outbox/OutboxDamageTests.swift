import Glibc
import Simulator
import Synchronization
import Testing
import Wire

@testable import Engine

/// A file that is cut, corrupted or half written opens with all its complete entries.
struct OutboxDamageTests {
    private let folder = Folder()
    private let disk = Disk()
    private let texts = ["one", "", "three", "four"]

    private func open() throws(RealtimeError) -> (file: OutboxFile, entries: [OutboxEntry]) {
        try OutboxFile.open(folder.outbox, limits: .init(), disk: disk.outbox)
    }

    /// A file with some entries and a mark, and the end of each record.
    private func make() throws -> (bytes: [UInt8], ends: [Int]) {
        let (file, _) = try open()
        var ends: [Int] = []
        for index in 0..<4 {
            let id = try file.append(text(texts[index]))
            ends.append(folder.read().count)
            if index == 1 {
                file.remove(id)
                ends.append(folder.read().count)
            }
        }
        file.close()
        return (folder.read(), ends)
    }

    /// The texts that the file must have, from the records that are complete and the one that is
    /// not.
    private func left(_ isWhole: (Int) -> Bool) -> [String] {
        let records = [0, 1, nil, 2, 3]
        var left: [String] = []
        for (index, text) in records.enumerated() where isWhole(index) {
            if let text { left.append(texts[text]) } else { left.removeAll { $0 == texts[1] } }
        }
        return left
    }

    @Test func tornAtEveryByte() throws {
        let (bytes, ends) = try make()
        for count in OutboxRecord.firstLine.count..<bytes.count {
            folder.write(Array(bytes[..<count]))
            var (file, entries) = try open()
            #expect(entries.texts == left { ends[$0] <= count })
            // A torn record does not affect the next one.
            _ = try file.append(text("next"))
            file.close()
            (file, entries) = try open()
            #expect(entries.texts == left { ends[$0] <= count } + ["next"])
            file.close()
        }
    }

    @Test func corruptedAtEveryByte() throws {
        let (bytes, ends) = try make()
        for index in OutboxRecord.firstLine.count..<bytes.count {
            let hit = ends.prefix { $0 <= index }.count
            var spoilt = bytes
            spoilt[index] ^= UInt8(1 << (index % 8))
            folder.write(spoilt)
            var (file, entries) = try open()
            #expect(entries.texts == left { $0 != hit })
            _ = try file.append(text("next"))
            file.close()
            (file, entries) = try open()
            #expect(entries.texts == left { $0 != hit } + ["next"])
            file.close()
        }
        for index in 0..<OutboxRecord.firstLine.count {
            var spoilt = bytes
            spoilt[index] ^= 0x10
            folder.write(spoilt)
            #expect(throws: RealtimeError.self) { try open() }
            #expect(folder.read() == spoilt)
        }
    }

    @Test func oneLineSaysWhatWasDropped() throws {
        let (bytes, ends) = try make()
        let lines = Mutex<[String]>([])
        let path = folder.outbox
        Log.set(.warning) { _, line in
            if line.contains(path) { lines.withLock { $0.append(line) } }
        }
        defer { Log.set(.off, nil) }
        var spoilt = bytes
        spoilt[ends[0] + 1] ^= 1
        folder.write(spoilt + [1, 2, 3])
        try open().file.close()
        let lost = ends[1] - ends[0] + 3
        let line = "the outbox \(path) was damaged: \(lost) bytes were dropped"
        #expect(lines.withLock { $0 } == [line])
        // Closing has cleaned it up.
        try open().file.close()
        #expect(lines.withLock { $0.count } == 1)
    }

    /// After a loss of power the disk has only some of the bytes written since the last sync.
    @Test(arguments: 1...30) func powerIsLost(seed: UInt64) throws {
        var random = Random(seed: seed)
        let crashed = Folder()
        var (file, _) = try open()
        var durable = folder.read()
        var waiting: [UInt64: String] = [:]
        for step in 0..<60 {
            if waiting.isEmpty || random.chance(55) {
                let message = String(repeating: "\(step)", count: random.length(upTo: 300))
                waiting[try file.append(text(message))] = message
                durable = folder.read()
            } else {
                let id = random.pick(waiting.keys.sorted())
                waiting[id] = nil
                file.remove(id)
            }
            crashed.write(image(durable, folder.read(), &random))
            let (survivor, entries) = try OutboxFile.open(
                crashed.outbox, limits: .init(), disk: disk.outbox)
            let found = Dictionary(uniqueKeysWithValues: zip(entries.map(\.id), entries.texts))
            for (id, message) in waiting { #expect(found[id] == message, "step \(step)") }
            #expect(entries.map(\.id) == entries.map(\.id).sorted())
            survivor.close()
        }
        file.close()
        (file, _) = try open()
        file.close()
    }

    /// Each block is either as at the last sync or as now; so is the length.
    private func image(_ old: [UInt8], _ new: [UInt8], _ random: inout Random) -> [UInt8] {
        var image = random.chance(50) ? old : new
        for start in stride(from: 0, to: image.count, by: 64) {
            let source = random.chance(50) ? old : new
            for index in start..<min(start + 64, image.count) {
                image[index] = index < source.count ? source[index] : 0
            }
        }
        return image
    }
}
