/// Reads the records in the bytes of an outbox file. It skips damaged bytes up to the next intact
/// record.
package struct OutboxReader {
    private let bytes: UnsafeRawBufferPointer
    private var offset: Int
    /// The largest id so far. Ids only increase, so an entry with a smaller id was left behind by
    /// an earlier state of the file and is skipped.
    package private(set) var lastID: UInt64 = 0
    /// Where the last record ends.
    package private(set) var end: Int
    /// Bytes before `end` that do not belong to a record.
    package private(set) var skipped = 0

    /// - Throws: `.store` if the bytes are not an outbox file.
    package init(_ bytes: UnsafeRawBufferPointer) throws(RealtimeError) {
        guard bytes.starts(with: OutboxRecord.firstLine) else {
            throw RealtimeError(.store, "is not an outbox")
        }
        self.bytes = bytes
        offset = OutboxRecord.firstLine.count
        end = offset
    }

    /// Whether a file holds only a part of its first line. A crash while the file was created
    /// leaves such a file; the bytes that were not written are zeros.
    package static func isUnfinished(_ bytes: UnsafeRawBufferPointer) -> Bool {
        let line = OutboxRecord.firstLine
        guard bytes.count <= line.count else { return false }
        let written = zip(bytes, line).prefix { $0 == $1 }.count
        return written < line.count && bytes[written...].allSatisfy { $0 == 0 }
    }

    /// The next record and its position in the file; nil at the end.
    package mutating func next() -> (record: OutboxRecord, range: Range<Int>)? {
        while let start = nextMarker() {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[start...])
            guard let (record, count) = OutboxRecord.read(rest, at: UInt64(start)),
                take(record)
            else {
                offset = start + 1
                continue
            }
            skipped += start - end
            offset = start + count
            end = offset
            return (record, start..<end)
        }
        offset = bytes.count
        return nil
    }

    private mutating func take(_ record: OutboxRecord) -> Bool {
        switch record {
        case .entry(let entry):
            guard entry.id > lastID, entry.id < .max else { return false }
        case .done(let id):
            guard id < .max else { return false }
        }
        lastID = max(lastID, record.id)
        return true
    }

    private func nextMarker() -> Int? {
        let last = bytes.count - OutboxRecord.headBytes
        var index = offset
        while index <= last {
            if bytes[index] == OutboxRecord.marker[0],
                bytes[index + 1] == OutboxRecord.marker[1]
            {
                return index
            }
            index += 1
        }
        return nil
    }
}
