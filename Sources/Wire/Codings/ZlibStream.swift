import CShims

/// gzip (RFC 1952) with all of its members, or deflate. deflate is zlib's format (RFC 1950), as
/// RFC 9110 §8.4.1.2 requires, or raw deflate (RFC 1951), which many servers send under that name.
/// zlib checks the header's CRC, and the checksum and length at the end.
final class ZlibStream: CodedStream {
    private let isGzip: Bool
    /// On the heap, because zlib's state contains its address.
    private let stream: UnsafeMutablePointer<z_stream>
    private var position = Position.start
    private var isRaw = false
    /// The first byte of a deflate body, until the second shows which format it is.
    private var first: UInt8?
    private var members = 0
    private var bytesAfterEnd = 0

    private enum Position {
        case start
        case inside
        /// After a member of gzip. Another may follow, or zeros, with which tapes were padded.
        case between
        case end
    }

    /// How many bytes may follow raw deflate, because some servers append the zlib format's
    /// checksum. libcurl allows as many.
    private static let toleratedBytes = 4

    convenience init?(isGzip: Bool) {
        let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
        stream.initialize(to: z_stream())
        // For deflate, the second byte tells which format it is.
        guard shim_inflate_init_format(stream, isGzip ? 31 : 15) == Z_OK else {
            stream.deallocate()
            return nil
        }
        self.init(isGzip, stream)
    }

    private init(_ isGzip: Bool, _ stream: UnsafeMutablePointer<z_stream>) {
        self.isGzip = isGzip
        self.stream = stream
    }

    deinit {
        inflateEnd(stream)
        stream.deallocate()
    }

    var isWhole: Bool { position == .between || position == .end }

    func decode(
        _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
    ) -> CodedStep {
        var step = CodedStep()
        if position == .start { start(input, &step) }
        repeat {
            let rest = UnsafeRawBufferPointer(rebasing: input[step.consumed...])
            switch position {
            case .start: return step
            case .inside: inflate(rest, output, &step)
            case .between: step.consumed += skipPadding(rest)
            case .end: finishAfterEnd(rest, &step)
            }
        } while step.fault == nil && step.consumed < input.count && step.produced < output.count
        return step
    }

    private func start(_ input: UnsafeRawBufferPointer, _ step: inout CodedStep) {
        guard !isGzip else {
            position = .inside
            return
        }
        guard let byte = input.first else { return }
        guard let header = first ?? (input.count > 1 ? byte : nil) else {
            first = byte
            step.consumed = 1
            return
        }
        let second = first == nil ? input[1] : byte
        // RFC 1950 §2.2: the method, the window, and a check that makes both bytes a multiple of
        // 31. Raw deflate only begins like this with a stored block whose padding is not zero.
        let number = UInt16(header) << 8 | UInt16(second)
        isRaw = header & 0x0F != 8 || header >> 4 > 7 || number % 31 != 0
        if isRaw { inflateReset2(stream, -15) }
        position = .inside
        if var held = first {
            first = nil
            withUnsafeBytes(of: &held) { bytes in
                var ignored = CodedStep()
                // Neither format gives output after one byte.
                inflate(bytes, UnsafeMutableRawBufferPointer(start: nil, count: 0), &ignored)
                step.fault = ignored.fault
            }
        }
    }

    private func inflate(
        _ input: UnsafeRawBufferPointer, _ output: UnsafeMutableRawBufferPointer,
        _ step: inout CodedStep
    ) {
        let room = UnsafeMutableRawBufferPointer(rebasing: output[step.produced...])
        var none: UInt8 = 0
        let code = withUnsafeMutablePointer(to: &none) { noRoom in
            stream.pointee.next_in = UnsafeMutablePointer(
                mutating: input.baseAddress?.assumingMemoryBound(to: UInt8.self))
            stream.pointee.avail_in = UInt32(input.count)
            // zlib rejects NULL, even if there is no space.
            stream.pointee.next_out =
                room.baseAddress?.assumingMemoryBound(to: UInt8.self) ?? noRoom
            stream.pointee.avail_out = UInt32(room.count)
            return CShims.inflate(stream, Z_SYNC_FLUSH)
        }
        step.consumed += input.count - Int(stream.pointee.avail_in)
        step.produced += room.count - Int(stream.pointee.avail_out)
        switch code {
        case Z_OK, Z_BUF_ERROR: return
        case Z_STREAM_END:
            members += 1
            position = isGzip ? .between : .end
            // The next member has its own window; it reuses the memory.
            if isGzip { inflateReset(stream) }
        case Z_NEED_DICT: step.fault = "data needs a dictionary"
        case Z_MEM_ERROR: step.fault = "data: no memory to decode it"
        default: step.fault = fault(stream.pointee.msg.map { String(cString: $0) })
        }
    }

    private func fault(_ message: String?) -> String {
        switch message {
        case "incorrect header check", "unknown compression method":
            members > 0 ? "data is followed by something else" : "data does not begin as such"
        case "header crc mismatch": "header CRC does not match"
        case "incorrect data check": isGzip ? "CRC does not match" : "checksum does not match"
        case "incorrect length check": "length does not match"
        default: "data: \(message ?? "not valid")"
        }
    }

    private func skipPadding(_ input: UnsafeRawBufferPointer) -> Int {
        let count = input.firstIndex { $0 != 0 } ?? input.count
        if count < input.count { position = .inside }
        return count
    }

    private func finishAfterEnd(_ input: UnsafeRawBufferPointer, _ step: inout CodedStep) {
        guard !input.isEmpty else { return }
        bytesAfterEnd += input.count
        if isRaw, bytesAfterEnd <= ZlibStream.toleratedBytes {
            step.consumed += input.count
        } else {
            step.fault = "data is followed by something else"
        }
    }
}
