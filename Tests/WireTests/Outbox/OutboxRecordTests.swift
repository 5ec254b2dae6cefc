import Testing
import Wire

/// The records in the bytes of a file.
private func read(_ bytes: [UInt8]) throws(RealtimeError) -> (records: [OutboxRecord], lost: Int) {
    try bytes.withUnsafeBufferPointer { bytes throws(RealtimeError) in
        var reader = try OutboxReader(UnsafeRawBufferPointer(bytes))
        var records: [OutboxRecord] = []
        while let (record, _) = reader.next() { records.append(record) }
        return (records, reader.skipped + bytes.count - reader.end)
    }
}

private func file(_ records: [OutboxRecord]) throws(RealtimeError) -> [UInt8] {
    var bytes = OutboxRecord.firstLine
    for record in records { try record.write(at: UInt64(bytes.count), to: &bytes) }
    return bytes
}

private let some: [OutboxRecord] = [
    .entry(OutboxEntry(id: 1, message: OutboxMessage(.text, key: "k1", payload: Array("é".utf8)))),
    .entry(OutboxEntry(id: 2, message: OutboxMessage(.binary, payload: []))),
    .done(1),
    .entry(
        OutboxEntry(
            id: 9,
            message: OutboxMessage(
                .request, key: "k9", path: "/a?b=ü", contentType: "text/plain",
                payload: Array(0...255)))),
    .done(2),
    .entry(OutboxEntry(id: 10, message: OutboxMessage(.text, key: "last", payload: [0xF5, 0x4F]))),
]

struct OutboxRecordTests {
    @Test func recordsSurviveARoundTrip() throws {
        let (records, lost) = try read(file(some))
        #expect(records == some)
        #expect(lost == 0)
        for record in some {
            guard case .entry(let entry) = record else { continue }
            let count = try file([record]).count - OutboxRecord.firstLine.count
            #expect(count == OutboxRecord.bytes(of: entry.message))
        }
    }

    /// Later versions must be able to read the layout.
    @Test func bytesStayTheSame() throws {
        let message = OutboxMessage(.request, key: "K", path: "P", contentType: "T", payload: [7])
        var bytes: [UInt8] = []
        try OutboxRecord.entry(OutboxEntry(id: 0x0102, message: message)).write(at: 21, to: &bytes)
        let head: [UInt8] = [
            0xF5, 0x4F, 0x42, 0xFA, 1, 3, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0,
            1, 0, 1, 0,
        ]
        #expect(bytes.prefix(28) == head[...])
        #expect(bytes[32..<36] == [0x50, 0x4B, 0x54, 7])
        // Found by Python's zlib.crc32 over the offset's eight bytes and the head, then the body.
        #expect(bytes[28..<32] == [0x0E, 0x3F, 0xA7, 0x86])
        #expect(bytes[36...] == [0xC9, 0x66, 0x40, 0xFC])
    }

    /// Wherever the file is cut off, the complete records before stay.
    @Test func everyTruncationKeepsCompleteRecords() throws {
        let bytes = try file(some)
        var ends: [Int] = []
        for count in 1...some.count { ends.append(try file(Array(some.prefix(count))).count) }
        for count in OutboxRecord.firstLine.count..<bytes.count {
            let whole = ends.prefix { $0 <= count }.count
            let (records, lost) = try read(Array(bytes[..<count]))
            #expect(records == Array(some.prefix(whole)))
            #expect(lost == count - (whole == 0 ? OutboxRecord.firstLine.count : ends[whole - 1]))
        }
    }

    /// Whichever bit flips, only its own record is lost.
    @Test func everyFlippedBitCostsOneRecord() throws {
        let bytes = try file(some)
        var ends: [Int] = []
        for count in 1...some.count { ends.append(try file(Array(some.prefix(count))).count) }
        for index in bytes.indices {
            for bit in 0..<8 {
                var damaged = bytes
                damaged[index] ^= 1 << UInt8(bit)
                guard index >= OutboxRecord.firstLine.count else {
                    #expect(throws: RealtimeError.self) { try read(damaged) }
                    continue
                }
                let hit = ends.prefix { $0 <= index }.count
                var left = some
                left.remove(at: hit)
                let start = hit == 0 ? OutboxRecord.firstLine.count : ends[hit - 1]
                let (records, lost) = try read(damaged)
                #expect(records == left)
                #expect(lost == ends[hit] - start)
            }
        }
    }

    /// Missing or additional bytes move the records that follow; records in the wrong place are not
    /// read.
    @Test func movedRecordsAreNotRead() throws {
        let bytes = try file(some)
        let place = try file(Array(some.prefix(1))).count + 3
        var shorter = bytes
        shorter.remove(at: place)
        #expect(try read(shorter).records == Array(some.prefix(1)))
        var longer = bytes
        longer.insert(0, at: place)
        #expect(try read(longer).records == Array(some.prefix(1)))
    }

    /// A payload that contains a whole outbox, in a record that is damaged.
    @Test func recordsInsideAPayloadAreNotRead() throws {
        let inside = try file(some)
        let entry = OutboxEntry(id: 3, message: OutboxMessage(.binary, payload: inside))
        var bytes = try file([.entry(entry), .done(3)])
        bytes[OutboxRecord.firstLine.count + 8] ^= 1
        let (records, lost) = try read(bytes)
        #expect(records == [.done(3)])
        #expect(lost == OutboxRecord.bytes(of: entry.message))
    }

    @Test func entriesOnlyGrow() throws {
        let message = OutboxMessage(.text, payload: [1])
        func entry(_ id: UInt64) -> OutboxRecord { .entry(OutboxEntry(id: id, message: message)) }
        #expect(
            try read(file([entry(5), entry(5), entry(4), entry(6)])).records == [
                entry(5), entry(6),
            ])
        #expect(try read(file([entry(5), entry(.max), entry(6)])).records == [entry(5), entry(6)])
        #expect(try read(file([.done(.max), entry(1)])).records == [entry(1)])
        #expect(try read(file([entry(0)])).records.isEmpty)
    }

    @Test func foreignFilesAreRefused() {
        for bytes in [[], Array("librealtime outbox 2\n".utf8), Array("{}".utf8), [0]] as [[UInt8]]
        {
            let error = #expect(throws: RealtimeError.self) { try read(bytes) }
            #expect(error?.code == .store)
        }
    }

    @Test func anUnfinishedFirstLineIsRecognized() {
        let line = OutboxRecord.firstLine
        for count in 0..<line.count {
            let part = Array(line[..<count])
            #expect(part.withUnsafeBytes(OutboxReader.isUnfinished))
            let zeros = part + repeatElement(0, count: line.count - count)
            #expect(zeros.withUnsafeBytes(OutboxReader.isUnfinished))
            #expect(!(zeros + [0]).withUnsafeBytes(OutboxReader.isUnfinished))
            #expect(!(part + [0x21]).withUnsafeBytes(OutboxReader.isUnfinished))
        }
        #expect(!line.withUnsafeBytes(OutboxReader.isUnfinished))
    }

    @Test func recordsAboveTheLimitAreRefused() {
        let long = String(repeating: "x", count: 65_536)
        for message in [
            OutboxMessage(.text, key: long, payload: []),
            OutboxMessage(.text, contentType: long, payload: []),
        ] {
            var bytes: [UInt8] = [1]
            let error = #expect(throws: RealtimeError.self) {
                try OutboxRecord.entry(OutboxEntry(id: 1, message: message))
                    .write(at: 0, to: &bytes)
            }
            #expect(error?.code == .tooLarge)
            #expect(bytes == [1])
        }
    }
}
