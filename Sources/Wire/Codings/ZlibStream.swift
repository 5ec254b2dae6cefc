import CShims

/// gzip (RFC 1952), with all of its members, or deflate: zlib's format (RFC 1950), as RFC 9110
/// §8.4.1.2 wants it, or raw deflate (RFC 1951), which many servers send under that name. zlib
/// checks the header's CRC, and the checksum and length at the end.
final class ZlibStream: CodedStream {
    private let isGzip: Bool
    /// On the heap: zlib's state points back at it.
    private let stream: UnsafeMutablePointer<z_stream>
    private var place = Place.start
    private var isRaw = false
    /// The first byte of a deflate body, while the second has to come that tells its format.
    private var first: UInt8?
    private var members = 0
    private var bytesBehindEnd = 0

    private enum Place {
        case start
        case inside
        /// Behind a member of gzip: another may follow, or zeros, which pad what was on a tape.
        case between
        case end
    }

    /// libcurl allows as many behind raw deflate: servers append the checksum of the other format.
    private static let toleratedBytes = 4

    convenience init?(isGzip: Bool) {
        let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
        stream.initialize(to: z_stream())
        // The format of deflate is known with its second byte.
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

    var isWhole: Bool { place == .between || place == .end }

    func decode(
        _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
    ) -> CodedStep {
        var step = CodedStep()
        if place == .start { start(input, &step) }
        repeat {
            let rest = UnsafeRawBufferPointer(rebasing: input[step.consumed...])
            switch place {
            case .start: return step
            case .inside: inflate(rest, output, &step)
            case .between: step.consumed += skipPadding(rest)
            case .end: finishBehindEnd(rest, &step)
            }
        } while step.fault == nil && step.consumed < input.count && step.produced < output.count
        return step
    }

    private func start(_ input: UnsafeRawBufferPointer, _ step: inout CodedStep) {
        guard !isGzip else {
            place = .inside
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
        // 31. Raw deflate begins so only with a stored block whose padding is not zero.
        let number = UInt16(header) << 8 | UInt16(second)
        isRaw = header & 0x0F != 8 || header >> 4 > 7 || number % 31 != 0
        if isRaw { inflateReset2(stream, -15) }
        place = .inside
        if var held = first {
            first = nil
            withUnsafeBytes(of: &held) { bytes in
                var ignored = CodedStep()
                // One byte of either format gives no output.
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
            // zlib refuses NULL, also for no room.
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
            place = isGzip ? .between : .end
            // The next member has a window of its own; its memory is used again.
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
        if count < input.count { place = .inside }
        return count
    }

    private func finishBehindEnd(_ input: UnsafeRawBufferPointer, _ step: inout CodedStep) {
        guard !input.isEmpty else { return }
        bytesBehindEnd += input.count
        if isRaw, bytesBehindEnd <= ZlibStream.toleratedBytes {
            step.consumed += input.count
        } else {
            step.fault = "data is followed by something else"
        }
    }
}
