/// An outbox file: arbitrary bytes after the first line, or records that the input corrupts. Each
/// record that is read equals the bytes in the file, records are in order, and all other bytes
/// count as lost.
func fuzzOutbox(_ input: consuming Input) {
    var input = input
    var file = OutboxRecord.firstLine
    var records: [OutboxRecord] = []
    for _ in 0..<(input.byte() % 8) {
        let record = nextRecord(&input, id: UInt64(records.count + 1))
        try? record.write(at: UInt64(file.count), to: &file)
        records.append(record)
    }
    require(read(file) == records, "a written record is not read")
    for _ in 0..<(input.byte() % 4) where !file.isEmpty {
        let place = (Int(input.byte()) << 8 | Int(input.byte())) % file.count
        switch input.byte() % 3 {
        case 0: file[place] ^= input.byte()
        case 1: file.removeSubrange(place...)
        default: file.insert(input.byte(), at: place)
        }
    }
    _ = read(file + input.rest)
    _ = Array(input.rest).withUnsafeBytes(OutboxReader.isUnfinished)
}

/// The records; nil if the file is refused.
private func read(_ file: [UInt8]) -> [OutboxRecord]? {
    file.withUnsafeBytes { bytes in
        guard var reader = try? OutboxReader(bytes) else { return nil }
        var records: [OutboxRecord] = []
        var end = OutboxRecord.firstLine.count
        var gaps = 0
        var last: UInt64 = 0
        while let (record, place) = reader.next() {
            require(place.lowerBound >= end, "records overlap")
            gaps += place.lowerBound - end
            end = place.upperBound
            var again: [UInt8] = []
            try? record.write(at: UInt64(place.lowerBound), to: &again)
            require(again.elementsEqual(bytes[place]), "another record is written")
            if case .entry(let entry) = record {
                require(entry.id > last, "an id does not grow")
                last = entry.id
            }
            records.append(record)
        }
        require(reader.end == end && reader.skipped == gaps, "bytes are lost uncounted")
        return records
    }
}

private func nextRecord(_ input: inout Input, id: UInt64) -> OutboxRecord {
    let kind = OutboxMessage.Kind(rawValue: input.byte() % 4)
    guard let kind else { return .done(id) }
    func bytes(_ input: inout Input) -> [UInt8] {
        (0..<(input.byte() % 48)).map { _ in input.byte() }
    }
    let message = OutboxMessage(
        kind, key: String(decoding: bytes(&input), as: UTF8.self),
        path: String(decoding: bytes(&input), as: UTF8.self),
        contentType: String(decoding: bytes(&input), as: UTF8.self), payload: bytes(&input))
    return .entry(OutboxEntry(id: id, message: message))
}
