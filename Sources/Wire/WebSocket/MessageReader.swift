/// What a peer may make us hold. Each has an option of the same name in the C ABI.
package struct MessageLimits: Sendable, Equatable {
    /// Bytes of one message after decompression; 0 is no limit.
    package var messageBytes: Int = 64 << 20
    /// Bytes of the handshake's answer.
    package var headerBytes: Int = 64 << 10
    /// How many times its size on the wire a message may grow; 0 is no limit.
    package var inflateRatio: Int = 0

    package init() {}
}

/// Turns a server's bytes into whole messages and control frames: fragmentation (RFC 6455 §5.4),
/// UTF-8 as it arrives (§8.1), decompression (RFC 7692 §7.2.2) and limits.
///
/// A message that lies whole in one input is not copied. Others are assembled in one buffer, which
/// the caller empties with `discardDelivered` after it has handed their bytes on.
package struct MessageReader: ~Copyable {
    package enum Event: Equatable {
        case needMoreBytes
        /// A whole message, as a range of the input.
        case message(MessageKind, Range<Int>)
        /// A whole message, as a range of `assembled`.
        case assembledMessage(MessageKind, Range<Int>)
        /// A whole control frame; its payload is in `control`.
        case control(Opcode)
    }

    private enum State {
        case betweenMessages
        case inMessage(MessageKind, isCompressed: Bool)
    }

    private var frames: FrameReader
    private var state = State.betweenMessages
    /// The data or control frame being read.
    private var current: FrameHeader?
    private var utf8 = UTF8Validator()
    private var inflater: Inflater?
    private let deflate: DeflateParameters?
    private let limits: MessageLimits
    /// Bytes of messages that did not lie whole in one input: delivered ones first, then the one
    /// being assembled, which begins at `messageStart`.
    private var assembly = ByteBuffer()
    private var messageStart = 0
    private var controlBytes = ByteBuffer()

    package init(limits: MessageLimits, deflate: DeflateParameters?) {
        self.limits = limits
        self.deflate = deflate
        frames = FrameReader(allowsCompression: deflate != nil)
    }

    /// The bytes that `assembledMessage` ranges speak of; valid until the next call.
    package var assembled: UnsafeRawBufferPointer { assembly.readable }

    /// The payload of the last control frame, at most 125 bytes; valid until the next call.
    package var control: UnsafeRawBufferPointer { controlBytes.readable }

    /// Reads on from `offset`, which it moves, up to the next event.
    package mutating func next(
        _ input: UnsafeRawBufferPointer, _ offset: inout Int
    ) throws(ProtocolFailure) -> Event {
        if case .betweenMessages = state, frames.isAtFrameStart,
            let event = try wholeMessage(input, &offset)
        {
            return event
        }
        while true {
            switch try frames.next(input, &offset) {
            case .needMoreBytes: return .needMoreBytes
            case .header(let header): try begin(header)
            case .payload(let range, let isLast):
                if let event = try take(input, range, isLast) { return event }
            }
        }
    }

    /// Forgets assembled messages that were handed on. Storage above 4 KiB is given back, so that
    /// an idle connection holds none.
    package mutating func discardDelivered() {
        if case .inMessage = state {
            assembly.consume(messageStart)
        } else if !assembly.isEmpty {
            assembly.removeAll(keeping: 4096)
        }
        messageStart = 0
    }

    /// Gives zlib's memory back where no message needs what is in it.
    package mutating func releaseIdleMemory() { inflater?.releaseIdleMemory() }

    /// The hot path: one unfragmented, uncompressed message that lies whole in the input. It moves
    /// `offset` only when it returns an event; everything else takes the general way.
    @inline(__always)
    private func wholeMessage(
        _ input: UnsafeRawBufferPointer, _ offset: inout Int
    ) throws(ProtocolFailure) -> Event? {
        let header = try FrameHeader.parse(
            input, from: offset, allowsCompression: frames.allowsCompression)
        guard let header, header.isFinal, !header.isCompressed else { return nil }
        let start = offset + header.size
        guard header.payloadLength <= input.count - start else { return nil }
        let range = start..<(start + header.payloadLength)
        switch header.opcode {
        case .text:
            try checkSize(header.payloadLength)
            let text = UnsafeRawBufferPointer(rebasing: input[range])
            guard UTF8Validator.isValid(text) else { throw MessageReader.invalidText }
            offset = range.upperBound
            return .message(.text, range)
        case .binary:
            try checkSize(header.payloadLength)
            offset = range.upperBound
            return .message(.binary, range)
        case .continuation, .close, .ping, .pong:
            return nil
        }
    }

    private mutating func begin(_ header: FrameHeader) throws(ProtocolFailure) {
        current = header
        switch (header.opcode, state) {
        case (.close, _), (.ping, _), (.pong, _):
            controlBytes.removeAll(keeping: 128)
        case (.continuation, .betweenMessages):
            throw ProtocolFailure(.protocolError, "continuation frame without a message to continue")
        case (.continuation, .inMessage(_, let isCompressed)):
            if header.isCompressed {
                throw ProtocolFailure(.protocolError, "RSV1 set on a continuation frame")
            }
            // A compressed message's size is known only while it is inflated.
            if !isCompressed { try checkSize(header.payloadLength) }
        case (.text, .inMessage), (.binary, .inMessage):
            throw ProtocolFailure(.protocolError, "new message before the last one ended")
        case (.text, .betweenMessages), (.binary, .betweenMessages):
            state = .inMessage(
                header.opcode == .text ? .text : .binary, isCompressed: header.isCompressed)
            utf8.reset()
            messageStart = assembly.count
            if !header.isCompressed { try checkSize(header.payloadLength) }
        }
    }

    /// Takes a piece of the current frame's payload.
    private mutating func take(
        _ input: UnsafeRawBufferPointer, _ range: Range<Int>, _ isLast: Bool
    ) throws(ProtocolFailure) -> Event? {
        guard let current else { return nil }
        let piece = UnsafeRawBufferPointer(rebasing: input[range])
        if current.opcode.isControl {
            controlBytes.append(piece)
            return isLast ? .control(current.opcode) : nil
        }
        guard case .inMessage(let kind, let isCompressed) = state else { return nil }
        let endsMessage = isLast && current.isFinal
        let before = assembly.count
        if isCompressed {
            try inflate(piece, isFinal: endsMessage)
        } else {
            assembly.append(piece)
        }
        if kind == .text {
            let fresh = UnsafeRawBufferPointer(rebasing: assembly.readable[before...])
            guard utf8.accepts(fresh), !endsMessage || utf8.isComplete else {
                throw MessageReader.invalidText
            }
        }
        guard endsMessage else { return nil }
        state = .betweenMessages
        let message = messageStart..<assembly.count
        messageStart = assembly.count
        return .assembledMessage(kind, message)
    }

    private mutating func inflate(
        _ piece: UnsafeRawBufferPointer, isFinal: Bool
    ) throws(ProtocolFailure) {
        do throws(RealtimeError) {
            if inflater == nil, let deflate {
                inflater = try Inflater(
                    windowBits: deflate.serverMaxWindowBits,
                    noContextTakeover: deflate.serverNoContextTakeover)
            }
        } catch {
            throw ProtocolFailure(.internalError, error.message)
        }
        do throws(Inflater.Failure) {
            try inflater?.inflate(
                piece, isFinal: isFinal, into: &assembly, messageLimit: limits.messageBytes,
                ratioLimit: limits.inflateRatio)
        } catch {
            switch error {
            case .corrupt(let why):
                throw ProtocolFailure(.invalidPayload, "compressed message is corrupt: \(why)")
            case .tooLarge: throw tooLarge()
            case .ratio:
                throw ProtocolFailure(
                    .messageTooBig,
                    "compressed message grew more than \(limits.inflateRatio) times"
                        + " (max_inflate_ratio)")
            }
        }
    }

    /// Refuses a frame that would take its message above the limit, before its bytes are awaited.
    @inline(__always)
    private func checkSize(_ frame: Int) throws(ProtocolFailure) {
        let limit = limits.messageBytes
        if limit > 0, frame > limit - (assembly.count - messageStart) { throw tooLarge() }
    }

    private func tooLarge() -> ProtocolFailure {
        ProtocolFailure(
            .messageTooBig,
            "message of more than \(limits.messageBytes) bytes (max_message_bytes)")
    }

    private static var invalidText: ProtocolFailure {
        ProtocolFailure(.invalidPayload, "text message is not valid UTF-8")
    }
}
