/// A record of an outbox file: an entry, or the mark that an entry is done. The file is a line that
/// names the format, followed by records. Numbers are little-endian:
///
///     0  marker F5 4F 42 FA          16  bytes of the payload, 4
///     4  type: 1 entry, 2 done       20  bytes of the path, 4
///     5  kind of an entry, else 0    24  bytes of the key, 2
///     6  0, 0                        26  bytes of the content type, 2
///     8  id, 8                       28  CRC-32 of the record's offset and bytes 0 to 27, 4
///
/// An entry's head is followed by path, key, content type and payload, and by the CRC-32 of those
/// and of the head. Because the checksum includes the offset, a record is valid only at its own
/// position. So neither a copy of a file in a payload nor the remains of an earlier file is
/// mistaken for a record. The marker, which never occurs in text, and the head's own checksum let a
/// reader find the next record after damage.
package enum OutboxRecord: Equatable, Sendable {
    case entry(OutboxEntry)
    case done(UInt64)

    /// The first line of the file.
    package static let firstLine = Array("librealtime outbox 1\n".utf8)
    package static let headBytes = 32
    static let marker: [UInt8] = [0xF5, 0x4F, 0x42, 0xFA]
    private static let checksumBytes = 4

    package var id: UInt64 {
        switch self {
        case .entry(let entry): entry.id
        case .done(let id): id
        }
    }

    /// The size of a message's record, in bytes.
    package static func bytes(of message: OutboxMessage) -> Int {
        headBytes + message.path.utf8.count + message.key.utf8.count
            + message.contentType.utf8.count + message.payload.count + checksumBytes
    }

    /// Appends the record, encoded for `offset` in the file.
    /// - Throws: `.tooLarge` if the length of a part does not fit its field.
    package func write(at offset: UInt64, to bytes: inout [UInt8]) throws(RealtimeError) {
        switch self {
        case .done(let id):
            bytes.append(contentsOf: OutboxHead(type: .done, id: id).bytes(at: offset))
        case .entry(let entry):
            let message = entry.message
            guard let payload = UInt32(exactly: message.payload.count),
                let path = UInt32(exactly: message.path.utf8.count),
                let key = UInt16(exactly: message.key.utf8.count),
                let contentType = UInt16(exactly: message.contentType.utf8.count)
            else { throw RealtimeError(.tooLarge, "the message is too large for an outbox") }
            let head = OutboxHead(
                type: .entry, kind: message.kind.rawValue, id: entry.id, payload: payload,
                path: path, key: key, contentType: contentType)
            bytes.reserveCapacity(bytes.count + OutboxRecord.bytes(of: message))
            bytes.append(contentsOf: head.bytes(at: offset))
            let body = bytes.count
            bytes.append(contentsOf: message.path.utf8)
            bytes.append(contentsOf: message.key.utf8)
            bytes.append(contentsOf: message.contentType.utf8)
            bytes.append(contentsOf: message.payload)
            let checksum = bytes.withUnsafeBytes {
                crc(UnsafeRawBufferPointer(rebasing: $0[body...]), after: head.checksum(at: offset))
            }
            withUnsafeBytes(of: checksum.littleEndian) { bytes.append(contentsOf: $0) }
        }
    }

    /// Reads the record at the beginning of `bytes`, which is at `offset` in the file.
    /// - Returns: the record and its size in bytes; nil if there is none or it is incomplete.
    package static func read(
        _ bytes: UnsafeRawBufferPointer, at offset: UInt64
    ) -> (record: OutboxRecord, count: Int)? {
        guard let head = OutboxHead(bytes, at: offset) else { return nil }
        guard head.type == .entry else { return (.done(head.id), headBytes) }
        let lengths = [
            Int(head.path), Int(head.key), Int(head.contentType), Int(head.payload),
        ]
        let end = lengths.reduce(headBytes, +)
        guard bytes.count >= end + checksumBytes,
            let kind = OutboxMessage.Kind(rawValue: head.kind)
        else { return nil }
        let body = UnsafeRawBufferPointer(rebasing: bytes[headBytes..<end])
        let checksum = crc(body, after: head.checksum(at: offset))
        guard bytes.little(at: end, as: UInt32.self) == checksum else { return nil }
        var start = 0
        let parts = lengths.map { length in
            defer { start += length }
            return UnsafeRawBufferPointer(rebasing: body[start..<(start + length)])
        }
        guard let path = String(validating: parts[0], as: UTF8.self),
            let key = String(validating: parts[1], as: UTF8.self),
            let contentType = String(validating: parts[2], as: UTF8.self)
        else { return nil }
        let message = OutboxMessage(
            kind, key: key, path: path, contentType: contentType, payload: parts[3].copied)
        return (.entry(OutboxEntry(id: head.id, message: message)), end + checksumBytes)
    }
}

/// The first 32 bytes of a record.
private struct OutboxHead {
    enum Kind: UInt8 {
        case entry = 1
        case done = 2
    }

    let type: Kind
    var kind: UInt8 = 0
    let id: UInt64
    var payload: UInt32 = 0
    var path: UInt32 = 0
    var key: UInt16 = 0
    var contentType: UInt16 = 0

    private static let checked = 28

    /// The head without its checksum.
    private var bytes: [UInt8] {
        var bytes = OutboxRecord.marker + [type.rawValue, kind, 0, 0]
        withUnsafeBytes(of: id.littleEndian) { bytes.append(contentsOf: $0) }
        withUnsafeBytes(of: payload.littleEndian) { bytes.append(contentsOf: $0) }
        withUnsafeBytes(of: path.littleEndian) { bytes.append(contentsOf: $0) }
        withUnsafeBytes(of: key.littleEndian) { bytes.append(contentsOf: $0) }
        withUnsafeBytes(of: contentType.littleEndian) { bytes.append(contentsOf: $0) }
        return bytes
    }

    func checksum(at offset: UInt64) -> UInt32 {
        bytes.withUnsafeBytes { crc($0, after: crc(of: offset)) }
    }

    func bytes(at offset: UInt64) -> [UInt8] {
        var bytes = bytes
        withUnsafeBytes(of: checksum(at: offset).littleEndian) { bytes.append(contentsOf: $0) }
        return bytes
    }
}

extension OutboxHead {
    /// Reads a head; nil if it is not valid.
    init?(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) {
        guard bytes.count >= OutboxRecord.headBytes,
            bytes.prefix(OutboxRecord.marker.count).elementsEqual(OutboxRecord.marker)
        else { return nil }
        let checked = UnsafeRawBufferPointer(rebasing: bytes[..<OutboxHead.checked])
        let checksum = crc(checked, after: crc(of: offset))
        guard bytes.little(at: OutboxHead.checked, as: UInt32.self) == checksum,
            let type = Kind(rawValue: bytes[4])
        else { return nil }
        self.init(
            type: type, kind: bytes[5], id: bytes.little(at: 8, as: UInt64.self),
            payload: bytes.little(at: 16, as: UInt32.self),
            path: bytes.little(at: 20, as: UInt32.self),
            key: bytes.little(at: 24, as: UInt16.self),
            contentType: bytes.little(at: 26, as: UInt16.self))
    }
}

private func crc(of offset: UInt64) -> UInt32 {
    withUnsafeBytes(of: offset.littleEndian) { crc($0) }
}

extension UnsafeRawBufferPointer {
    fileprivate var copied: [UInt8] {
        // With capacity 0 the standard library writes to storage that all empty arrays share.
        if isEmpty { return [] }
        return [UInt8](unsafeUninitializedCapacity: count) { bytes, used in
            UnsafeMutableRawBufferPointer(bytes).copyMemory(from: self)
            used = count
        }
    }

    fileprivate func little<Number: FixedWidthInteger & BitwiseCopyable>(
        at offset: Int, as type: Number.Type
    ) -> Number {
        Number(littleEndian: loadUnaligned(fromByteOffset: offset, as: type))
    }
}
