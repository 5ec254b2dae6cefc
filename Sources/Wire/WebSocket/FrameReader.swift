/// Splits a server's bytes into frame headers and pieces of payload, at any split of the input. It
/// copies only headers that are split over two inputs.
package struct FrameReader: Sendable {
    package enum Step: Equatable, Sendable {
        /// All input has been used.
        case needMoreBytes
        /// A header. Its payload follows in one or more pieces, which may be empty.
        case header(FrameHeader)
        /// The next bytes of the payload, as a range of the input; `isLast` ends the frame.
        case payload(Range<Int>, isLast: Bool)
    }

    /// Whether RSV1 is allowed, because permessage-deflate was agreed.
    package let allowsCompression: Bool
    /// Payload bytes of the current frame still to arrive; nil between frames.
    private var remaining: Int?
    /// Whether the current frame is a data frame.
    private var isData = false
    /// Bytes of a data frame were read, possibly of its header.
    private var hasReadData = false
    /// The part of a header with which the last input ended.
    private var held = InlineArray<10, UInt8>(repeating: 0)
    private var heldCount = 0

    package init(allowsCompression: Bool) { self.allowsCompression = allowsCompression }

    /// Whether the reader is between two frames and holds no part of a header.
    @inline(__always)
    package var isAtFrameStart: Bool { remaining == nil && heldCount == 0 }

    /// Payload bytes of the current frame that have not arrived.
    package var missingPayload: Int { remaining ?? 0 }

    /// Whether bytes of a data frame were read since the last call.
    mutating func tookData() -> Bool { exchange(&hasReadData, with: false) }

    /// Reads from `offset`, which it advances.
    /// - Parameter pieceLimit: the most payload bytes in one piece.
    package mutating func next(
        _ input: UnsafeRawBufferPointer, _ offset: inout Int, pieceLimit: Int = .max
    ) throws(ProtocolFailure) -> Step {
        if let remaining {
            if offset == input.count, remaining > 0 { return .needMoreBytes }
            let piece = min(remaining, input.count - offset, pieceLimit)
            let range = offset..<(offset + piece)
            offset += piece
            if isData, piece > 0 { hasReadData = true }
            self.remaining = piece == remaining ? nil : remaining - piece
            return .payload(range, isLast: piece == remaining)
        }
        guard let header = try readHeader(input, &offset) else { return .needMoreBytes }
        remaining = header.payloadLength
        isData = !header.opcode.isControl
        if isData { hasReadData = true }
        return .header(header)
    }

    /// Records payload that arrived in another way than through the input.
    /// - Returns: whether it completed its frame.
    mutating func skipPayload(_ count: Int) -> Bool {
        guard let remaining, count < remaining else {
            remaining = nil
            return true
        }
        self.remaining = remaining - count
        return false
    }

    /// Puts back the last payload bytes of a data frame; the next input must begin with them.
    mutating func unread(_ count: Int) {
        remaining = (remaining ?? 0) + count
        isData = true
    }

    private mutating func readHeader(
        _ input: UnsafeRawBufferPointer, _ offset: inout Int
    ) throws(ProtocolFailure) -> FrameHeader? {
        if heldCount == 0 {
            let header = try FrameHeader.parse(
                input, from: offset, allowsCompression: allowsCompression)
            if let header {
                offset += header.size
                return header
            }
        }
        // The header is split: collect it byte by byte. This happens at most once per read.
        while offset < input.count, heldCount < FrameHeader.maximumSize {
            held[heldCount] = input[offset]
            heldCount += 1
            offset += 1
            // The opcodes of control frames have this bit (RFC 6455 §5.5).
            if held[0] & 0x08 == 0 { hasReadData = true }
            if let header = try parseHeld() {
                heldCount = 0
                return header
            }
        }
        return nil
    }

    private func parseHeld() throws(ProtocolFailure) -> FrameHeader? {
        let bytes = held
        let count = heldCount
        var failure: ProtocolFailure?
        let header = bytes.span.withUnsafeBytes { raw -> FrameHeader? in
            do throws(ProtocolFailure) {
                return try FrameHeader.parse(
                    UnsafeRawBufferPointer(rebasing: raw[..<count]), from: 0,
                    allowsCompression: allowsCompression)
            } catch {
                failure = error
                return nil
            }
        }
        if let failure { throw failure }
        return header
    }
}
