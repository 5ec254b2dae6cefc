/// Cuts a server's bytes into frame headers and pieces of payload, at any split. It copies nothing
/// but a header that is split over two inputs.
package struct FrameReader: Sendable {
    package enum Step: Equatable, Sendable {
        /// All input is used.
        case needMoreBytes
        /// A header was read; its payload follows as pieces, at least one, maybe empty.
        case header(FrameHeader)
        /// The next bytes of the payload, as a range of the input; `isLast` ends the frame.
        case payload(Range<Int>, isLast: Bool)
    }

    /// Whether RSV1 is allowed (permessage-deflate was agreed).
    package let allowsCompression: Bool
    /// Payload bytes of the current frame still to come; nil between frames.
    private var remaining: Int?
    /// The beginning of a header that the last input ended in.
    private var held = InlineArray<10, UInt8>(repeating: 0)
    private var heldCount = 0

    package init(allowsCompression: Bool) { self.allowsCompression = allowsCompression }

    /// Between two frames, with nothing held.
    @inline(__always)
    package var isAtFrameStart: Bool { remaining == nil && heldCount == 0 }

    /// Payload bytes of the current frame that have not come yet.
    package var missingPayload: Int { remaining ?? 0 }

    /// Reads on from `offset`, which it moves.
    /// - Parameter pieceLimit: the most bytes of payload that come as one piece.
    package mutating func next(
        _ input: UnsafeRawBufferPointer, _ offset: inout Int, pieceLimit: Int = .max
    ) throws(ProtocolFailure) -> Step {
        if let remaining {
            if offset == input.count, remaining > 0 { return .needMoreBytes }
            let piece = min(remaining, input.count - offset, pieceLimit)
            let range = offset..<(offset + piece)
            offset += piece
            self.remaining = piece == remaining ? nil : remaining - piece
            return .payload(range, isLast: piece == remaining)
        }
        guard let header = try readHeader(input, &offset) else { return .needMoreBytes }
        remaining = header.payloadLength
        return .header(header)
    }

    /// Notes that so many bytes of payload came elsewhere than in the input.
    /// - Returns: whether they were the last of their frame.
    mutating func skipPayload(_ count: Int) -> Bool {
        guard let remaining, count < remaining else {
            remaining = nil
            return true
        }
        self.remaining = remaining - count
        return false
    }

    /// Puts back the last bytes of payload: the next input begins with them.
    mutating func unread(_ count: Int) { remaining = (remaining ?? 0) + count }

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
        // The header is split: collect it byte by byte, which happens once a read at most.
        while offset < input.count, heldCount < FrameHeader.maximumSize {
            held[heldCount] = input[offset]
            heldCount += 1
            offset += 1
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
