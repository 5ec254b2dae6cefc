import CShims

/// Decompresses the messages of one direction of permessage-deflate (RFC 7692 §7.2.2), straight
/// into the caller's buffer. zlib's state, some 40 KiB, is made for the first compressed message.
package struct Inflater: ~Copyable {
    package enum Failure: Error, Equatable {
        /// The data is not what RFC 7692 §7.2.1 lets a peer send; the text says what zlib found.
        case corrupt(String)
        /// The message has more bytes than `messageLimit`.
        case tooLarge
        /// The message grew more than `ratioLimit` times.
        case ratio
    }

    /// Up to here a message may grow by any ratio: a short run of equal bytes is no bomb.
    package static let ratioFreeBytes = 65_536

    private let windowBits: Int
    private let noContextTakeover: Bool
    private var stream: UnsafeMutablePointer<z_stream>?
    /// Bytes of the current message so far, compressed and not.
    private var messageInput = 0
    private var messageOutput = 0
    /// The last byte seen was the end of a block with BFINAL set.
    private var isAtStreamEnd = false

    /// - Parameters:
    ///   - windowBits: the sender's window, 8 to 15.
    ///   - noContextTakeover: the sender compresses each message on its own.
    package init(windowBits: Int, noContextTakeover: Bool) throws(RealtimeError) {
        guard (8...15).contains(windowBits) else {
            throw RealtimeError(
                .invalidArgument, "An inflate window of \(windowBits) bits is not in 8 to 15")
        }
        self.windowBits = windowBits
        self.noContextTakeover = noContextTakeover
    }

    deinit { free(stream) }

    /// Decompresses a piece of a message and appends to `output`. What was appended of a message
    /// that fails is the caller's to drop; the inflater is of no use afterwards.
    /// - Parameters:
    ///   - isFinal: this is the message's last piece, which may be empty.
    ///   - messageLimit: bytes that the whole message may have, 0 for any number. `output` never
    ///     gets more than one byte above it.
    ///   - ratioLimit: how many times its compressed size the message may have once it is above
    ///     `ratioFreeBytes`, 0 for any.
    ///   - allowance: the call stops after about this many bytes of output. A whole message of up
    ///     to 1,020 bytes, which inflate to 1 MiB at most, is never stopped.
    /// - Returns: how many bytes at the end of `input` were not used. The next call must begin with
    ///   them. 0 when all were used.
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
        // A message of no bytes at all has nothing that the trailer could complete. It is taken as
        // empty, which is what a sender means whose second flush in a row gave no byte.
        if messageInput > 0, !isAtStreamEnd {
            let ceiling = Ceiling(
                messageInput: messageInput, messageLimit: messageLimit, ratioLimit: ratioLimit)
            try finishBlock(into: &output, ceiling: ceiling)
        }
        endMessage()
        return 0
    }

    /// A short message in one piece: copied to where its trailer can stand behind it, since a
    /// second call of zlib's would cost more than the copy.
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
    /// The smallest output buffer that zlib is given.
    private static let leastStep = 4096
    /// The empty stored block's length, which a sender leaves out (RFC 7692 §7.2.2).
    private static let trailer: [4 of UInt8] = [0x00, 0x00, 0xFF, 0xFF]
    private static let trailerWord = UInt32(bigEndian: 0x0000_FFFF)

    /// Gives zlib's memory back when nothing in it is needed for the next message: for a
    /// connection that falls idle.
    package mutating func releaseIdleMemory() {
        guard noContextTakeover, messageInput == 0 else { return }
        free(stream)
        stream = nil
    }

    /// Adds the trailer.
    private mutating func finishBlock(
        into output: inout ByteBuffer, ceiling: Ceiling
    ) throws(Failure) {
        try withUnsafeBytes(of: Inflater.trailer) { (bytes) throws(Failure) in
            _ = try run(bytes, into: &output, ceiling: ceiling)
        }
        try checkBorder()
    }

    private func checkBorder() throws(Failure) {
        // Anything but the border between two blocks, no bit left over, would put the next message
        // out of step; zlib's manual for inflate() has these bits of data_type.
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

    /// - Returns: how many bytes at the end of `input` zlib has not taken, because the allowance
    ///   is used up.
    private mutating func run(
        _ input: UnsafeRawBufferPointer, into output: inout ByteBuffer, ceiling: Ceiling,
        endsWithTrailer: Bool = false, allowance: Int = .max
    ) throws(Failure) -> Int {
        let stream = try openStream()
        var rest = input
        var allowance = allowance
        isAtStreamEnd = false
        // Room for a ratio of 4 at first; from then on as much again as the message has.
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
                // Stop only while there is unused input, so that the caller knows to come back.
                // Without input zlib has at most a few KiB left to write.
                if allowance <= 0, stream.pointee.avail_in > 0 {
                    return Int(stream.pointee.avail_in) + rest.count
                }
                let allowed = min(
                    ceiling.room(after: messageOutput), max(allowance, Inflater.leastStep))
                let space = output.reserve(min(wanted, allowed))
                let room = min(space.count, allowed)
                stream.pointee.next_out = space.baseAddress?.assumingMemoryBound(to: UInt8.self)
                stream.pointee.avail_out = UInt32(room)
                let place = stream.pointee.data_type
                let code = CShims.inflate(stream, Z_SYNC_FLUSH)
                // A step that found nothing left, behind output that just fitted, has no place of
                // its own: zlib forgets in it that it stands between two blocks.
                if code == Z_BUF_ERROR { stream.pointee.data_type = place }
                isFull = stream.pointee.avail_out == 0
                let written = room - Int(stream.pointee.avail_out)
                output.commit(written)
                messageOutput += written
                allowance -= written
                try ceiling.check(messageOutput)
                try afterStep(code, stream)
                // The message had ended without it: nothing is left to complete.
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

    /// Looks at what zlib made of a step; input may be left.
    private mutating func afterStep(
        _ code: Int32, _ stream: UnsafeMutablePointer<z_stream>
    ) throws(Failure) {
        switch code {
        case Z_OK:
            isAtStreamEnd = false
        case Z_BUF_ERROR:
            // There was nothing left to do, which only a step without input can meet.
            guard stream.pointee.avail_in == 0 else { throw .corrupt("zlib made no progress") }
        case Z_STREAM_END:
            // RFC 7692 §7.2.3.4: a block with BFINAL set ends zlib's stream, not the message. The
            // window is kept: a sender who goes on with it needs it, one who starts anew does not
            // refer to it. (Not inflateReset, which drops it, nor a copy of the window, since two
            // bytes of input are enough for such a block.)
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
        // zlib's state points back at the stream, so it may not move.
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

/// The bytes that a message may have by both limits.
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

    /// Bytes that zlib may write at once: one above the limit tells that it was passed.
    func room(after count: Int) -> Int { min(max(bytes - count, 0), 1 << 30) + 1 }

    func check(_ count: Int) throws(Inflater.Failure) {
        if count > bytes { throw isRatio ? .ratio : .tooLarge }
    }
}
