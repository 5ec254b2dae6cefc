import CShims

/// Compresses the messages of one direction of permessage-deflate (RFC 7692 §7.2.1). zlib's state,
/// 256 KiB by default, is allocated with the first message.
package struct Deflater: ~Copyable {
    private let level: Int
    private let windowBits: Int
    private let memoryLevel: Int
    private let noContextTakeover: Bool
    private var stream: UnsafeMutablePointer<z_stream>?

    /// - Parameters:
    ///   - level: 1 (fast) to 9 (small).
    ///   - windowBits: 9 to 15. With 8, zlib rejects raw deflate or uses 9. So if 8 was agreed
    ///     (`DeflateParameters.canCompress` is false), messages are sent uncompressed.
    ///   - memoryLevel: zlib's memory level, 1 to 9.
    ///   - noContextTakeover: whether to compress each message on its own.
    /// - Throws: `.invalidArgument` outside these ranges.
    package init(
        level: Int, windowBits: Int, memoryLevel: Int = 8, noContextTakeover: Bool
    ) throws(RealtimeError) {
        guard (1...9).contains(level), (9...15).contains(windowBits), (1...9).contains(memoryLevel)
        else {
            throw RealtimeError(
                .invalidArgument,
                "level, window bits and memory level are \(level), \(windowBits), \(memoryLevel);"
                    + " 1 to 9, 9 to 15 and 1 to 9 are expected")
        }
        self.level = level
        self.windowBits = windowBits
        self.memoryLevel = memoryLevel
        self.noContextTakeover = noContextTakeover
    }

    deinit { free(stream) }

    /// Compresses a message, or a piece of one, and appends it to `output`. After an error,
    /// `output` is unchanged. The receiver can decompress each piece when it arrives.
    /// - Parameter endsMessage: whether this is the last piece. Only the last may be empty.
    /// - Throws: `.system` if zlib has no memory.
    package mutating func deflate(
        _ input: UnsafeRawBufferPointer, endsMessage: Bool = true, into output: inout ByteBuffer
    ) throws(RealtimeError) {
        if input.isEmpty {
            // RFC 7692 §7.2.3.6. zlib would produce no output for a second flush in a row.
            if endsMessage { output.append(0x00) }
        } else {
            let stream = try openStream()
            let start = output.count
            do {
                try run(input, stream, into: &output)
                if endsMessage { try removeTrailer(of: &output) }
            } catch {
                output.removeLast(output.count - start)
                throw error
            }
        }
        if endsMessage, noContextTakeover, let stream { deflateReset(stream) }
    }

    /// Frees zlib's memory if the next message does not need its content. For a connection that
    /// becomes idle.
    package mutating func releaseIdleMemory() {
        guard noContextTakeover else { return }
        free(stream)
        stream = nil
    }

    private func run(
        _ input: UnsafeRawBufferPointer, _ stream: UnsafeMutablePointer<z_stream>,
        into output: inout ByteBuffer
    ) throws(RealtimeError) {
        var rest = input
        repeat {
            // zlib counts in 32 bits.
            let piece = UnsafeRawBufferPointer(rebasing: rest.prefix(1 << 30))
            rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(piece.count))
            stream.pointee.next_in = UnsafeMutablePointer(
                mutating: piece.baseAddress?.assumingMemoryBound(to: UInt8.self))
            stream.pointee.avail_in = UInt32(piece.count)
            // A small message fits at once. For a large one, the space grows as the buffer doubles.
            let room =
                piece.count <= 65_536 ? Int(deflateBound(stream, UInt(piece.count))) + 16 : 65_536
            repeat {
                let space = output.reserve(room)
                let count = min(space.count, 1 << 30)
                stream.pointee.next_out = space.baseAddress?.assumingMemoryBound(to: UInt8.self)
                stream.pointee.avail_out = UInt32(count)
                let code = CShims.deflate(stream, rest.isEmpty ? Z_SYNC_FLUSH : Z_NO_FLUSH)
                guard code == Z_OK || code == Z_BUF_ERROR else {
                    throw RealtimeError(.system, "zlib could not compress a message: \(code)")
                }
                output.commit(count - Int(stream.pointee.avail_out))
            } while stream.pointee.avail_out == 0
        } while !rest.isEmpty
    }

    /// Removes the empty stored block's length with which the flush ended (RFC 7692 §7.2.1).
    private func removeTrailer(of output: inout ByteBuffer) throws(RealtimeError) {
        guard output.readable.suffix(4).elementsEqual([0x00, 0x00, 0xFF, 0xFF]) else {
            throw RealtimeError(.system, "zlib's flush did not end in an empty stored block")
        }
        output.removeLast(4)
    }

    private mutating func openStream() throws(RealtimeError) -> UnsafeMutablePointer<z_stream> {
        if let stream { return stream }
        // zlib's state contains the address of the stream, so it must not move.
        let fresh = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
        fresh.initialize(to: z_stream())
        let code = shim_deflate_init(fresh, Int32(level), Int32(windowBits), Int32(memoryLevel))
        guard code == Z_OK else {
            fresh.deallocate()
            throw RealtimeError(.system, "zlib has no memory to compress with: \(code)")
        }
        stream = fresh
        return fresh
    }
}

private func free(_ stream: UnsafeMutablePointer<z_stream>?) {
    guard let stream else { return }
    deflateEnd(stream)
    stream.deallocate()
}
