import CShims

/// Decompresses the messages of one direction of permessage-deflate (RFC 7692 §7.2.2), directly
/// into the caller's buffer. zlib's state, about 40 KiB, is allocated with the first compressed
/// message.
package struct Inflater: ~Copyable {
    package enum Failure: Error, Equatable {
        /// The peer may not send this data (RFC 7692 §7.2.1). The text is zlib's description.
        case corrupt(String)
        /// The message has more bytes than `messageLimit`.
        case tooLarge
        /// The message grew more than `ratioLimit` times.
        case ratio
        /// This process has no memory for more of the message.
        case noMemory
    }

    /// Below this size a message may grow by any ratio: a short run of equal bytes is harmless.
    package static let ratioFreeBytes = 65_536

    private let windowBits: Int
    private let noContextTakeover: Bool
    private var stream: UnsafeMutablePointer<z_stream>?
    /// Bytes of the current message so far, compressed and decompressed.
    private var messageInput = 0
    private var messageOutput = 0
    /// The last byte read ended a block with BFINAL set.
    private var isAtStreamEnd = false

    /// - Parameters:
    ///   - windowBits: the sender's window, 8 to 15.
    ///   - noContextTakeover: whether the sender compresses each message on its own.
    package init(windowBits: Int, noContextTakeover: Bool) throws(RealtimeError) {
        guard (8...15).contains(windowBits) else {
            throw RealtimeError(
                .invalidArgument, "An inflate window of \(windowBits) bits is not in 8 to 15")
        }
        self.windowBits = windowBits
        self.noContextTakeover = noContextTakeover
    }

    deinit { free(stream) }

    /// Decompresses a piece of a message and appends to `output`. If it throws, the caller must
    /// discard what was appended of the message, and must not use the inflater again.
    /// - Parameters:
    ///   - isFinal: whether this is the message's last piece, which may be empty.
    ///   - messageLimit: the most bytes of the whole message; 0 means no limit. `output` never gets
    ///     more than one byte above it.
    ///   - ratioLimit: how many times its compressed size the message may grow, checked above
    ///     `ratioFreeBytes`; 0 means no limit.
    ///   - allowance: the call stops after about this many bytes of output. A whole message of up
    ///     to 1,020 bytes, which inflates to at most 1 MiB, is never stopped.
    /// - Returns: how many bytes at the end of `input` were not used. The next call must begin with
    ///   them.
    package mutating func inflate(
        _ input: UnsafeRawBufferPointer, isFinal: Bool, into output: inout ByteBuffer,
        messageLimit: Int, ratioLimit: Int, allowance: Int = .max
    ) throws(Failure) -> Int {
        if isFinal, messageInput == 0, (1...Inflater.shortBytes).contains(input.count) {
            try inflateShort(
                input, into: &output, messageLimit: messageLimit, ratioLimit: ratioLimit)
            return 0
        }
        messageInput += input.count
        if input.count > 0 {
            let ceiling = Ceiling(
                messageInput: messageInput, messageLimit: messageLimit, ratioLimit: ratioLimit)
            let left = try run(input, into: &output, ceiling: ceiling, allowance: allowance)
            if left > 0 {
                messageInput -= left
                return left
            }
        }
        guard isFinal else { return 0 }
        // A message without any bytes has nothing that the trailer could complete. It counts as
        // empty: senders produce it when their second flush in a row gives no output.
        if messageInput > 0, !isAtStreamEnd {
            let ceiling = Ceiling(
                messageInput: messageInput, messageLimit: messageLimit, ratioLimit: ratioLimit)
            try finishBlock(into: &output, ceiling: ceiling)
        }
        endMessage()
        return 0
    }

    /// Inflates a short message that came whole. It copies the message to append the trailer,
    /// because a second call of zlib would cost more than the copy.
    private mutating func inflateShort(
        _ input: UnsafeRawBufferPointer, into output: inout ByteBuffer, messageLimit: Int,
        ratioLimit: Int
    ) throws(Failure) {
        messageInput = input.count
        let ceiling = Ceiling(
            messageInput: messageInput, messageLimit: messageLimit, ratioLimit: ratioLimit)
        let length = input.count + Inflater.trailer.count
        let failure = withUnsafeTemporaryAllocation(byteCount: length, alignment: 8) {
            whole -> Failure? in
            whole.copyMemory(from: input)
            whole.storeBytes(of: Inflater.trailerWord, toByteOffset: input.count, as: UInt32.self)
            do throws(Failure) {
                _ = try run(
                    UnsafeRawBufferPointer(whole), into: &output, ceiling: ceiling,
                    endsWithTrailer: true)
                return nil
            } catch {
                return error
            }
        }
        if let failure { throw failure }
        try checkBorder()
        endMessage()
    }

    private static let shortBytes = 1020
    /// The least output space given to zlib.
    private static let leastStep = 4096
    /// The empty stored block's length, which senders omit (RFC 7692 §7.2.2).
    private static let trailer: [4 of UInt8] = [0x00, 0x00, 0xFF, 0xFF]
    private static let trailerWord = UInt32(bigEndian: 0x0000_FFFF)

    /// Frees zlib's memory if the next message does not need its content. For a connection that
    /// becomes idle.
    package mutating func releaseIdleMemory() {
        guard noContextTakeover, messageInput == 0 else { return }
        free(stream)
        stream = nil
    }

    /// Passes the omitted trailer to zlib.
    private mutating func finishBlock(
        into output: inout ByteBuffer, ceiling: Ceiling
    ) throws(Failure) {
        try withUnsafeBytes(of: Inflater.trailer) { (bytes) throws(Failure) in
            _ = try run(bytes, into: &output, ceiling: ceiling)
        }
        try checkBorder()
    }

    private func checkBorder() throws(Failure) {
        // The message must end between two blocks without leftover bits; otherwise the next message
        // would be misread. zlib's manual describes these bits of data_type under inflate().
        if !isAtStreamEnd, let stream, stream.pointee.data_type != 128 {
            throw .corrupt("the message ends inside a block")
        }
    }

    private mutating func endMessage() {
        if noContextTakeover, let stream, messageInput > 0 { inflateReset(stream) }
        messageInput = 0
        messageOutput = 0
        isAtStreamEnd = false
    }

    /// - Returns: how many bytes at the end of `input` zlib has not used, because the allowance is
    ///   spent.
    private mutating func run(
        _ input: UnsafeRawBufferPointer, into output: inout ByteBuffer, ceiling: Ceiling,
        endsWithTrailer: Bool = false, allowance: Int = .max
    ) throws(Failure) -> Int {
        let stream = try openStream()
        var rest = input
        var allowance = allowance
        isAtStreamEnd = false
        // Space for a ratio of 4 at first; later, as much again as the message already has.
        var wanted = max(1024, input.count + min(3 * min(input.count, 1 << 20), 1 << 20))
        repeat {
            // zlib counts in 32 bits.
            let piece = UnsafeRawBufferPointer(
                start: rest.baseAddress, count: min(rest.count, 1 << 30))
            rest = UnsafeRawBufferPointer(rebasing: rest[piece.count...])
            stream.pointee.next_in = UnsafeMutablePointer(
                mutating: piece.baseAddress?.assumingMemoryBound(to: UInt8.self))
            stream.pointee.avail_in = UInt32(piece.count)
            var isFull = true
            while isFull || stream.pointee.avail_in > 0 {
                // Stop only while there is unused input, so that the caller knows to call again.
                // Without input zlib has at most a few KiB left to write.
                if allowance <= 0, stream.pointee.avail_in > 0 {
                    return Int(stream.pointee.avail_in) + rest.count
                }
                let allowed = min(
                    ceiling.room(after: messageOutput), max(allowance, Inflater.leastStep))
                guard output.hasMemory(for: min(wanted, allowed)) else { throw .noMemory }
                let space = output.reserve(min(wanted, allowed))
                let room = min(space.count, allowed)
                stream.pointee.next_out = space.baseAddress?.assumingMemoryBound(to: UInt8.self)
                stream.pointee.avail_out = UInt32(room)
                let position = stream.pointee.data_type
                let code = CShims.inflate(stream, Z_SYNC_FLUSH)
                // If the previous output just fitted, this step finds nothing left, and zlib
                // forgets that it is between two blocks. Restore the position.
                if code == Z_BUF_ERROR { stream.pointee.data_type = position }
                isFull = stream.pointee.avail_out == 0
                let written = room - Int(stream.pointee.avail_out)
                output.commit(written)
                messageOutput += written
                allowance -= written
                try ceiling.check(messageOutput)
                try afterStep(code, stream)
                // The message ended without the trailer, so there is nothing to complete.
                if endsWithTrailer, code == Z_STREAM_END,
                    stream.pointee.avail_in == Inflater.trailer.count
                {
                    stream.pointee.avail_in = 0
                    isAtStreamEnd = true
                    return 0
                }
                wanted = max(4096, messageOutput)
            }
        } while !rest.isEmpty
        return 0
    }

    /// Checks zlib's result of a step. Input may be left.
    private mutating func afterStep(
        _ code: Int32, _ stream: UnsafeMutablePointer<z_stream>
    ) throws(Failure) {
        switch code {
        case Z_OK:
            isAtStreamEnd = false
        case Z_BUF_ERROR:
            // There was nothing left to do. This can only happen without input.
            guard stream.pointee.avail_in == 0 else { throw .corrupt("zlib made no progress") }
        case Z_STREAM_END:
            // RFC 7692 §7.2.3.4: a block with BFINAL set ends zlib's stream, not the message. The
            // window is kept: a sender that continues with it needs it, and a sender that starts
            // anew does not refer to it. (inflateReset would drop the window. Copying it would cost
            // too much, since two bytes of input are enough for such a block.)
            inflateResetKeep(stream)
            isAtStreamEnd = stream.pointee.avail_in == 0
        case Z_MEM_ERROR:
            throw .corrupt("zlib has no memory")
        default:
            throw .corrupt(stream.pointee.msg.map { String(cString: $0) } ?? "zlib error \(code)")
        }
    }

    private mutating func openStream() throws(Failure) -> UnsafeMutablePointer<z_stream> {
        if let stream { return stream }
        // zlib's state contains the address of the stream, so it must not move.
        let fresh = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
        fresh.initialize(to: z_stream())
        guard shim_inflate_init(fresh, Int32(windowBits)) == Z_OK else {
            fresh.deallocate()
            throw .corrupt("zlib has no memory")
        }
        stream = fresh
        return fresh
    }
}

private func free(_ stream: UnsafeMutablePointer<z_stream>?) {
    guard let stream else { return }
    inflateEnd(stream)
    stream.deallocate()
}

/// The most bytes that a message may have by both limits.
private struct Ceiling {
    private let bytes: Int
    private let isRatio: Bool

    init(messageInput: Int, messageLimit: Int, ratioLimit: Int) {
        let limit = messageLimit == 0 ? Int.max : messageLimit
        let (product, overflow) = messageInput.multipliedReportingOverflow(by: ratioLimit)
        let ratio =
            ratioLimit == 0 || overflow ? Int.max : max(product, Inflater.ratioFreeBytes)
        bytes = min(limit, ratio)
        isRatio = ratio < limit
    }

    /// The most bytes that zlib may write at once. One above the limit shows that it was exceeded.
    func room(after count: Int) -> Int { min(max(bytes - count, 0), 1 << 30) + 1 }

    func check(_ count: Int) throws(Inflater.Failure) {
        if count > bytes { throw isRatio ? .ratio : .tooLarge }
    }
}
