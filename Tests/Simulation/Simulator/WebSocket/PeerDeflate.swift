internal import CShims

/// The peer's compressor: plain zlib, with all the freedom that RFC 7692 §7.2.1 allows.
final class PeerDeflater {
    private let stream: UnsafeMutablePointer<z_stream>
    private let noContextTakeover: Bool

    /// Ways to compress a message; every receiver must handle all of them.
    enum Manner: CaseIterable {
        case plain
        /// Several flushes, so several blocks with empty ones between them.
        case severalBlocks
        /// The window is dropped in the middle.
        case fullFlush
        /// Not compressed at all, in stored blocks.
        case stored
        /// A last block with BFINAL set (§7.2.3.4).
        case finalBlock
    }

    init(level: Int, windowBits: Int, noContextTakeover: Bool) {
        self.noContextTakeover = noContextTakeover
        stream = .allocate(capacity: 1)
        stream.initialize(to: z_stream())
        // zlib has no window of 8 bits: without references back, none is needed.
        let code = shim_deflate_init(stream, Int32(level), Int32(max(9, windowBits)), 8)
        precondition(code == Z_OK, "zlib has no memory")
        if windowBits == 8 { deflateParams(stream, Int32(level), Z_HUFFMAN_ONLY) }
    }

    deinit {
        deflateEnd(stream)
        stream.deallocate()
    }

    func compress(_ message: [UInt8], _ manner: Manner) -> [UInt8] {
        // A second flush in a row gives no bytes; this is the empty message of §7.2.3.6.
        if message.isEmpty { return [0] }
        var output: [UInt8] = []
        let middle = message.count / 2
        switch manner {
        case .plain: output = run(message, Z_SYNC_FLUSH)
        case .severalBlocks:
            output = run(Array(message[..<middle]), Z_SYNC_FLUSH)
            output += run(Array(message[middle...]), Z_SYNC_FLUSH)
        case .fullFlush:
            output = run(Array(message[..<middle]), Z_FULL_FLUSH)
            output += run(Array(message[middle...]), Z_SYNC_FLUSH)
        case .stored:
            output = PeerDeflater.stored(message)
            // zlib does not know these blocks, so later data must not refer back to them.
            deflateReset(stream)
            return output
        case .finalBlock:
            output = run(message, Z_FINISH)
            deflateReset(stream)
            return output
        }
        output.removeLast(4)
        if noContextTakeover { deflateReset(stream) }
        return output
    }

    /// Stored blocks and the beginning of an empty one, byte by byte (RFC 1951 §3.2.4).
    private static func stored(_ message: [UInt8]) -> [UInt8] {
        var output: [UInt8] = []
        for start in stride(from: 0, to: message.count, by: 65_535) {
            let block = message[start..<min(start + 65_535, message.count)]
            let length = UInt16(block.count)
            output += [0, UInt8(length & 0xFF), UInt8(length >> 8)]
            output += [UInt8(~length & 0xFF), UInt8(~length >> 8)] + block
        }
        return output + [0]
    }

    private func run(_ input: [UInt8], _ flush: Int32) -> [UInt8] {
        var input = input
        var output: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 16_384)
        input.withUnsafeMutableBufferPointer { bytes in
            stream.pointee.next_in = bytes.baseAddress
            stream.pointee.avail_in = UInt32(bytes.count)
            repeat {
                buffer.withUnsafeMutableBufferPointer { space in
                    stream.pointee.next_out = space.baseAddress
                    stream.pointee.avail_out = UInt32(space.count)
                    _ = deflate(stream, flush)
                }
                output += buffer[..<(buffer.count - Int(stream.pointee.avail_out))]
            } while stream.pointee.avail_out == 0
        }
        return output
    }
}

/// The peer's decompressor for the client's messages.
final class PeerInflater {
    private let stream: UnsafeMutablePointer<z_stream>
    private let noContextTakeover: Bool

    init(windowBits: Int, noContextTakeover: Bool) {
        self.noContextTakeover = noContextTakeover
        stream = .allocate(capacity: 1)
        stream.initialize(to: z_stream())
        precondition(shim_inflate_init(stream, Int32(windowBits)) == Z_OK, "zlib has no memory")
    }

    deinit {
        inflateEnd(stream)
        stream.deallocate()
    }

    /// nil if the message violates RFC 7692 §7.2.2.
    func inflate(_ message: [UInt8]) -> [UInt8]? {
        var input = message + [0, 0, 0xFF, 0xFF]
        var output: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 16_384)
        let isValid = input.withUnsafeMutableBufferPointer { bytes in
            stream.pointee.next_in = bytes.baseAddress
            stream.pointee.avail_in = UInt32(bytes.count)
            repeat {
                let code = buffer.withUnsafeMutableBufferPointer { space in
                    stream.pointee.next_out = space.baseAddress
                    stream.pointee.avail_out = UInt32(space.count)
                    return CShims.inflate(stream, Z_SYNC_FLUSH)
                }
                guard code == Z_OK || code == Z_BUF_ERROR else { return false }
                output += buffer[..<(buffer.count - Int(stream.pointee.avail_out))]
            } while stream.pointee.avail_out == 0
            return stream.pointee.avail_in == 0
        }
        if noContextTakeover { inflateReset(stream) }
        return isValid ? output : nil
    }
}
