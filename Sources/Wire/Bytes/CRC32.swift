import CShims

/// The CRC-32 of bytes, which may come in pieces.
/// - Parameter start: the checksum of the bytes before these.
package func crc(_ bytes: UnsafeRawBufferPointer, after start: UInt32 = 0) -> UInt32 {
    let base = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
    // For a NULL address zlib returns the initial value instead of `start`.
    guard let base, bytes.count > 0 else { return start }
    return UInt32(truncatingIfNeeded: crc32_z(UInt(start), base, bytes.count))
}
