import CShims

/// Compresses the messages of one direction of permessage-deflate (RFC 7692 §7.2.1). zlib's state,
/// 256 KiB by default, is made for the first message.
package struct Deflater: ~Copyable {
    private let level: Int
    private let windowBits: Int
    private let memoryLevel: Int
    private let noContextTakeover: Bool
    private var stream: UnsafeMutablePointer<z_stream>?

    /// - Parameters:
    ///   - level: 1 (fast) to 9 (small).
    ///   - windowBits: 9 to 15. zlib refuses raw deflate with 8 or takes 9 instead: where 8 was
    ///     agreed (`DeflateParameters.canCompress` is false) messages go uncompressed.
    ///   - memoryLevel: zlib's, 1 to 9.
    ///   - noContextTakeover: each message is compressed on its own.
    /// - Throws: `.invalidArgument` outside these ranges.
    package init(
        level: Int, windowBits: Int, memoryLevel: Int = 8, noContextTakeover: Bool
    ) throws(RealtimeError) {
        guard (1...9).contains(level), (9...15).contains(windowBits), (1...9).contains(memoryLevel)
        else {
            throw RealtimeError(
                .invalidArgument,
                "zlib compresses with level 1 to 9, window bits 9 to 15 and memory level 1 to 9, "
                    + "not \(level), \(windowBits), \(memoryLevel)")
        }
        self.level = level
        self.windowBits = windowBits
        self.memoryLevel = memoryLevel
        self.noContextTakeover = noContextTakeover
    }

    deinit { free(stream) }

    /// Compresses a whole message, or a piece of one, and appends it to `output`, which is as it
    /// was after an error. Every piece can be decompressed when it has come.
    /// - Parameter endsMessage: an empty piece is of use only as the last.
    /// - Throws: `.system` when zlib has no memory.
    package mutating func deflate(
        _ input: UnsafeRawBufferPointer, endsMessage: Bool = true, into output: inout ByteBuffer
    ) throws(RealtimeError) {
        if input.isEmpty {
            // RFC 7692 §7.2.3.6. zlib would give nothing for a second flush in a row.
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

    /// Gives zlib's memory back when nothing in it is needed for the next message: for a
    /// connection that falls idle.
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
            // A small message fits at once; a large one gets what the buffer's doubling gives.
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

    /// The flush ended in an empty stored block, whose length stays away (RFC 7692 §7.2.1).
    private func removeTrailer(of output: inout ByteBuffer) throws(RealtimeError) {
        guard output.readable.suffix(4).elementsEqual([0x00, 0x00, 0xFF, 0xFF]) else {
            throw RealtimeError(.system, "zlib's flush did not end in an empty stored block")
        }
        output.removeLast(4)
    }

    private mutating func openStream() throws(RealtimeError) -> UnsafeMutablePointer<z_stream> {
        if let stream { return stream }
        // zlib's state points back at the stream, so it may not move.
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
