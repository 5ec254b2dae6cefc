import CShims

/// Masking keys: unpredictable, one for each frame (RFC 6455 §5.3). They are made in bulk by a
/// strong generator, so a frame needs no system call. The sessions of a loop share them.
package final class MaskKeys {
    // Used by one loop, one call at a time: the dynamic check of each access would cost more than
    // the key.
    @exclusivity(unchecked) private var used = MaskKeys.poolSize
    private let pool: UnsafeMutableBufferPointer<UInt32>
    private let refill: (UnsafeMutableRawBufferPointer) -> Void
    private static let poolSize = 1024

    /// - Parameter refill: fills the buffer with unpredictable bytes.
    package init(refill: @escaping (UnsafeMutableRawBufferPointer) -> Void) {
        self.refill = refill
        pool = .allocate(capacity: MaskKeys.poolSize)
        pool.initialize(repeating: 0)
    }

    deinit { pool.deallocate() }

    package func next() -> UInt32 {
        if used == pool.count {
            refill(UnsafeMutableRawBufferPointer(pool))
            used = 0
        }
        let key = pool[used]
        // A used key must not stay in memory.
        pool[used] = 0
        used += 1
        return key
    }
}

/// Writes a client's frames, masked (RFC 6455 §5.2, §5.3).
package enum FrameWriter {
    /// The longest header: two bytes, eight bytes of length, four of key.
    package static let maximumHeaderSize = 14

    /// Appends one frame to `output`: header, key and masked payload in one pass.
    package static func write(
        _ opcode: Opcode, isFinal: Bool, isCompressed: Bool, payload: UnsafeRawBufferPointer,
        key: UInt32, into output: inout ByteBuffer
    ) {
        let room = output.reserve(maximumHeaderSize + payload.count)
        guard let base = room.baseAddress else { return }
        var size = 2
        let first = (isFinal ? 0x80 : 0) | (isCompressed ? 0x40 : 0) | opcode.rawValue
        base.storeBytes(of: first, as: UInt8.self)
        let length = payload.count
        if length < 126 {
            base.storeBytes(of: 0x80 | UInt8(length), toByteOffset: 1, as: UInt8.self)
        } else if length < 65536 {
            base.storeBytes(of: 0x80 | 126, toByteOffset: 1, as: UInt8.self)
            base.storeBytes(of: UInt16(length).bigEndian, toByteOffset: 2, as: UInt16.self)
            size = 4
        } else {
            base.storeBytes(of: 0x80 | 127, toByteOffset: 1, as: UInt8.self)
            base.storeBytes(of: UInt64(length).bigEndian, toByteOffset: 2, as: UInt64.self)
            size = 10
        }
        base.storeBytes(of: key, toByteOffset: size, as: UInt32.self)
        size += 4
        if let source = payload.baseAddress {
            mask(source, count: length, key: key, into: base + size)
        }
        output.commit(size + length)
    }

    /// Copies `count` bytes from `source` to `target`, XORing each with the key's next byte in
    /// memory order.
    @inline(__always)
    static func mask(
        _ source: UnsafeRawPointer, count: Int, key: UInt32, into target: UnsafeMutableRawPointer
    ) {
        shim_mask(
            target.assumingMemoryBound(to: UInt8.self),
            source.assumingMemoryBound(to: UInt8.self), count, key)
    }
}
