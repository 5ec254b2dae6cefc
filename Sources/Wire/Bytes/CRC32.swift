import CShims

/// The CRC-32 of bytes, or of all bytes so far when they come in pieces.
/// - Parameter start: the checksum of the bytes before these.
package func crc(_ bytes: UnsafeRawBufferPointer, after start: UInt32 = 0) -> UInt32 {
    let base = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
    // Of no address zlib takes nothing to go on from.
    guard let base, bytes.count > 0 else { return start }
    return UInt32(truncatingIfNeeded: crc32_z(UInt(start), base, bytes.count))
}
