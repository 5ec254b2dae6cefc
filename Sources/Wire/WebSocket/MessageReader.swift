package import CShims

/// Turns a server's bytes into whole messages and control frames. It joins fragments (RFC 6455
/// §5.4), checks UTF-8 as it arrives (§8.1), decompresses (RFC 7692 §7.2.2) and enforces limits.
///
/// A message that lies whole in one input is not copied. Others are assembled in one buffer, which
/// the caller empties with `discardDelivered` after it has delivered them.
package struct MessageReader: ~Copyable {
    package enum Event: Equatable {
        case needMoreBytes
        /// A whole message, as a range of the input.
        case message(MessageKind, Range<Int>)
        /// A whole message, as a range of `assembled`.
        case assembledMessage(MessageKind, Range<Int>)
        /// A piece of a message, as a range of `assembled`; only when streaming. Text is cut
        /// between characters.
        case piece(MessageKind, Range<Int>, isFirst: Bool, isLast: Bool)
        /// A whole control frame. Its payload is in `control`.
        case control(Opcode)
        /// As many bytes were inflated as `allow` granted. Call `allow` again, then pass the rest
        /// of the input, which may begin in the middle of a message.
        case allowanceSpent
    }

    private enum State {
        case betweenMessages
        case inMessage(MessageKind, isCompressed: Bool)
    }

    private var frames: FrameReader
    /// The header of the data or control frame being read.
    private var current: FrameHeader?
    private var state = State.betweenMessages
    private var utf8 = UTF8Validator()
    private var streams: Bool
    /// The value of `streams` for the next message.
    private var willStream: Bool
    /// No piece of the current message was returned yet.
    private var isFirstPiece = true
    /// A part of a large frame was just read directly into the assembly.
    private var readLarge = false
    private var inflater: Inflater?
    private let deflate: DeflateParameters?
    private let limits: MessageLimits
    private let owner: OptionOwner
    private var messageCount: UInt64 = 0
    private var payloadBytes: UInt64 = 0
    /// Bytes of messages that did not lie whole in one input: first those delivered, then the
    /// message being assembled, which begins at `messageStart`.
    private var assembly = ByteBuffer()
    private var messageStart = 0
    private var controlBytes = ByteBuffer()
    /// How many bytes may still be inflated before the next `allow`.
    private var allowance = Int.max

    /// If at least this much is missing, it is read directly into the assembly and not copied
    /// there.
    private static let directBytes = 32 << 10
    /// The most in one direct read: the second-level cache holds it beside the kernel's source.
    private static let directPiece = 128 << 10
    /// How far the next read may reach past the end of a frame that is larger than `directPiece`.
    private static let peekBytes = 4 << 10
    /// Storage above this size is freed after each message.
    private static let storageLimit = 2 << 20
    /// The most storage reserved for a frame before its payload arrives.
    private static let expectedBytes = 1 << 20

    /// How much of a compressed frame is inflated at once when messages are streamed. The output is
    /// at most 1,032 times as large.
    private static let inflatePiece = 4096

    /// - Parameters:
    ///   - owner: the object whose options the limits are.
    ///   - streams: whether messages that do not lie whole in one input are returned in pieces.
    ///     `limits.messageBytes` then does not apply.
    package init(
        limits: MessageLimits, of owner: OptionOwner = .websocket, deflate: DeflateParameters?,
        streams: Bool = false
    ) {
        self.owner = owner
        self.limits = limits
        self.streams = streams
        willStream = streams
        self.deflate = deflate
        frames = FrameReader(allowsCompression: deflate != nil)
    }

    /// The bytes to which `assembledMessage` and `piece` ranges refer; valid until the next call.
    package var assembled: UnsafeRawBufferPointer { assembly.readable }

    /// The payload of the last control frame, at most 125 bytes; valid until the next call.
    package var control: UnsafeRawBufferPointer { controlBytes.readable }

    /// Lets `next` inflate about this many bytes before it returns `allowanceSpent`. A read of 256
    /// KiB can inflate to 256 MiB, and the caller has other work to do. Default: no limit.
    package mutating func allow(inflating bytes: Int) { allowance = bytes }

    /// Removes messages from the counts, because `wholeMessages` will find them again.
    package mutating func giveBack(_ messages: UnsafeBufferPointer<rt_message>) {
        messageCount &-= UInt64(truncatingIfNeeded: messages.count)
        for message in messages { payloadBytes &-= message.length }
    }

    /// Returns the messages completed since the last call, and their bytes after decompression.
    package mutating func takeCounts() -> (messages: UInt64, bytes: UInt64) {
        defer {
            messageCount = 0
            payloadBytes = 0
        }
        return (messageCount, payloadBytes)
    }

    /// Whether `next` has read bytes of a message since the last call, even if only a few. Messages
    /// that it found whole may not count.
    package mutating func tookData() -> Bool { frames.tookData() }

    /// Sets whether messages are returned in pieces, starting with the next message.
    package mutating func setStreams(_ streams: Bool) {
        willStream = streams
        if case .betweenMessages = state { self.streams = streams }
    }

    /// Reads from `offset`, which it advances, up to the next event.
    package mutating func next(
        _ input: UnsafeRawBufferPointer, _ offset: inout Int
    ) throws(ProtocolFailure) -> Event {
        if allowance <= 0, offset < input.count { return .allowanceSpent }
        if let event = try wholeCompressed(input, &offset) { return event }
        var message = rt_message()
        let isWhole = withUnsafeMutablePointer(to: &message) {
            wholeMessages(input, &offset, into: UnsafeMutableBufferPointer(start: $0, count: 1))
        }
        if isWhole == 1, let kind = MessageKind(rawValue: message.kind) {
            let start = Int(message.offset)
            return .message(kind, start..<(start + Int(message.length)))
        }
        while true {
            let pieceLimit = streams && deflate != nil ? MessageReader.inflatePiece : .max
            switch try frames.next(input, &offset, pieceLimit: pieceLimit) {
            case .needMoreBytes: return .needMoreBytes
            case .header(let header): try begin(header)
            case .payload(let range, let isLast):
                if let event = try take(input, range, isLast, &offset) { return event }
            }
        }
    }

    /// Swaps the storage of `assembled` if it is empty. One storage serves all connections of a
    /// loop, and an idle connection holds none.
    package mutating func exchangeStorage(_ other: inout ByteBuffer) {
        guard assembly.isEmpty, messageStart == 0 else { return }
        swap(&assembly, &other)
    }

    /// Discards assembled messages, which the caller has delivered.
    package mutating func discardDelivered() {
        if case .inMessage = state {
            assembly.consume(messageStart)
        } else if !assembly.isEmpty {
            assembly.removeAll(keeping: MessageReader.storageLimit)
        }
        messageStart = 0
    }

    /// Frees zlib's memory if the next message does not need its content.
    package mutating func releaseIdleMemory() { inflater?.releaseIdleMemory() }

    /// The hot path: finds messages at `offset` that are one plain frame each, whole in the input,
    /// and advances `offset` past them. It stops at the first frame that is split, fragmented,
    /// compressed, a control frame or invalid; `next` reads that one.
    /// - Returns: how many `messages` it filled in. Their offsets count from the input's start.
    package mutating func wholeMessages(
        _ input: UnsafeRawBufferPointer, _ offset: inout Int,
        into messages: UnsafeMutableBufferPointer<rt_message>
    ) -> Int {
        guard case .betweenMessages = state, frames.isAtFrameStart else { return 0 }
        let limit = limits.messageBytes == 0 || streams ? Int.max : limits.messageBytes
        var count = 0
        var bytes = 0
        while count < messages.count {
            guard let (kind, range) = MessageReader.wholeMessage(input, offset),
                range.count <= limit
            else { break }
            if kind == .text,
                !UTF8Validator.isValid(UnsafeRawBufferPointer(rebasing: input[range]))
            {
                break
            }
            messages[count] = rt_message(
                offset: UInt64(range.lowerBound), length: UInt64(range.count),
                kind: kind.rawValue, reserved: 0)
            count += 1
            bytes &+= range.count
            offset = range.upperBound
        }
        messageCount &+= UInt64(truncatingIfNeeded: count)
        payloadBytes &+= UInt64(truncatingIfNeeded: bytes)
        return count
    }

    /// Reads the message at `offset` if it is one compressed frame, whole in the input. Nearly all
    /// are, and need no state between calls.
    @inline(__always)
    private mutating func wholeCompressed(
        _ input: UnsafeRawBufferPointer, _ offset: inout Int
    ) throws(ProtocolFailure) -> Event? {
        guard deflate != nil, !streams, case .betweenMessages = state, frames.isAtFrameStart,
            let (kind, range) = MessageReader.wholeMessage(input, offset, rsv1: 0x40)
        else { return nil }
        offset = range.upperBound
        let start = assembly.count
        messageStart = start
        let left = try inflate(UnsafeRawBufferPointer(rebasing: input[range]), isFinal: true)
        if left > 0 { return try suspend(kind, payload: range.count, left: left, &offset) }
        let text = UnsafeRawBufferPointer(rebasing: assembly.readable[start...])
        guard kind == .binary || UTF8Validator.isValid(text) else {
            throw ProtocolFailure.invalidText
        }
        messageCount &+= 1
        payloadBytes &+= UInt64(truncatingIfNeeded: text.count)
        messageStart = assembly.count
        return .assembledMessage(kind, start..<assembly.count)
    }

    /// Called when the allowance ends inside a frame that `wholeCompressed` began. From here on the
    /// frame is treated like one whose last bytes have not arrived.
    private mutating func suspend(
        _ kind: MessageKind, payload: Int, left: Int, _ offset: inout Int
    ) throws(ProtocolFailure) -> Event {
        offset -= left
        frames.unread(left)
        current = FrameHeader(
            isFinal: true, isCompressed: true, opcode: kind == .text ? .text : .binary,
            payloadLength: payload, size: 0)
        state = .inMessage(kind, isCompressed: true)
        utf8.reset()
        isFirstPiece = true
        _ = try took(kind, from: messageStart, false)
        return .allowanceSpent
    }

    /// The payload of the frame at `start` if it is a final data frame and whole in the input.
    /// `rsv1` is 0x40 to find compressed frames.
    @inline(__always)
    private static func wholeMessage(
        _ input: UnsafeRawBufferPointer, _ start: Int, rsv1: UInt8 = 0
    ) -> (MessageKind, Range<Int>)? {
        let available = input.count - start
        guard available >= 2 else { return nil }
        let kind: MessageKind
        switch input[start] ^ rsv1 {
        case 0x81: kind = .text
        case 0x82: kind = .binary
        default: return nil
        }
        var size = 2
        var length = Int(input[start + 1])
        if length == 126 {
            guard available >= 4 else { return nil }
            size = 4
            length = Int(input[start + 2]) << 8 | Int(input[start + 3])
            guard length >= 126 else { return nil }
        } else if length == 127 {
            guard available >= 10 else { return nil }
            size = 10
            length = 0
            // Eight bytes. If the payload fits into the input, the first three are 0.
            for index in 2..<10 { length = length << 8 | Int(input[start + index]) }
            guard length >= 65536 else { return nil }
        } else if length > 127 {
            return nil
        }
        guard length <= available - size else { return nil }
        return (kind, (start + size)..<(start + size + length))
    }

    private mutating func begin(_ header: FrameHeader) throws(ProtocolFailure) {
        current = header
        switch (header.opcode, state) {
        case (.close, _), (.ping, _), (.pong, _):
            controlBytes.removeAll(keeping: 128)
        case (.continuation, .betweenMessages):
            throw ProtocolFailure(
                .protocolError, "continuation frame without a message to continue")
        case (.continuation, .inMessage(_, let isCompressed)):
            if header.isCompressed {
                throw ProtocolFailure(.protocolError, "RSV1 set on a continuation frame")
            }
            // A compressed message's size is not known before it is inflated.
            if !isCompressed { try checkSize(header.payloadLength) }
        case (.text, .inMessage), (.binary, .inMessage):
            throw ProtocolFailure(.protocolError, "new message before the last one ended")
        case (.text, .betweenMessages), (.binary, .betweenMessages):
            state = .inMessage(
                header.opcode == .text ? .text : .binary, isCompressed: header.isCompressed)
            utf8.reset()
            messageStart = assembly.count
            isFirstPiece = true
            if !header.isCompressed {
                try checkSize(header.payloadLength)
                _ = assembly.reserve(min(header.payloadLength, MessageReader.expectedBytes))
            }
        }
    }

    /// Takes a piece of the current frame's payload.
    private mutating func take(
        _ input: UnsafeRawBufferPointer, _ range: Range<Int>, _ isLast: Bool, _ offset: inout Int
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
            let left = try inflate(piece, isFinal: endsMessage)
            if left > 0 {
                offset -= left
                frames.unread(left)
                // After a piece, the next call of `next` finds the allowance spent.
                return try took(kind, from: before, false) ?? .allowanceSpent
            }
        } else {
            try limits.checkMemory(of: assembly, adding: piece.count)
            assembly.append(piece)
        }
        return try took(kind, from: before, endsMessage)
    }

    /// Space into which the rest of a large frame can be read directly, at most what is missing;
    /// nil if an ordinary read is better, or must fail. Report the bytes read with `direct`.
    package mutating func directSpace() -> UnsafeMutableRawBufferPointer? {
        guard case .inMessage(_, isCompressed: false) = state, !streams, let current,
            !current.opcode.isControl, frames.missingPayload >= MessageReader.directBytes
        else { return nil }
        let missing = min(frames.missingPayload, MessageReader.directPiece)
        guard assembly.hasMemory(for: missing) else { return nil }
        return UnsafeMutableRawBufferPointer(rebasing: assembly.reserve(missing)[..<missing])
    }

    /// Records `count` bytes that were read into `directSpace`.
    package mutating func direct(_ count: Int) throws(ProtocolFailure) -> Event? {
        guard let current, case .inMessage(let kind, _) = state else { return nil }
        let before = assembly.count
        assembly.commit(count)
        let isLast = frames.skipPayload(count)
        readLarge = current.payloadLength > MessageReader.directPiece
        return try took(kind, from: before, isLast && current.isFinal)
    }

    /// The most bytes that the next read should take. A large frame is likely followed by another.
    /// All bytes read with its header would have to be copied, so only the header is read.
    package mutating func takeReadLimit() -> Int {
        guard readLarge else { return .max }
        readLarge = false
        return min(frames.missingPayload, MessageReader.directBytes) + MessageReader.peekBytes
    }

    /// Handles new bytes of the message, from `before` to the end of the assembly.
    private mutating func took(
        _ kind: MessageKind, from before: Int, _ endsMessage: Bool
    ) throws(ProtocolFailure) -> Event? {
        if kind == .text {
            let fresh = UnsafeRawBufferPointer(rebasing: assembly.readable[before...])
            guard utf8.accepts(fresh), !endsMessage || utf8.isComplete else {
                throw ProtocolFailure.invalidText
            }
        }
        payloadBytes &+= UInt64(assembly.count - before)
        if streams { return nextPiece(kind, isLast: endsMessage) }
        guard endsMessage else { return nil }
        endMessage()
        let message = messageStart..<assembly.count
        messageStart = assembly.count
        return .assembledMessage(kind, message)
    }

    private mutating func endMessage() {
        state = .betweenMessages
        streams = willStream
        messageCount &+= 1
    }

    /// The next piece of a streamed message; nil if no whole character is there yet.
    private mutating func nextPiece(_ kind: MessageKind, isLast: Bool) -> Event? {
        let end = assembly.count - (kind == .text && !isLast ? incompleteTail : 0)
        guard isLast || end > messageStart else { return nil }
        let piece = messageStart..<end
        messageStart = end
        let isFirst = isFirstPiece
        isFirstPiece = false
        if isLast { endMessage() }
        return .piece(kind, piece, isFirst: isFirst, isLast: isLast)
    }

    /// How many bytes at the end are the beginning of a character.
    private var incompleteTail: Int {
        if utf8.isComplete { return 0 }
        let bytes = assembly.readable
        // At most three, since the text is valid so far.
        for length in 1...3 where length <= bytes.count {
            if bytes[bytes.count - length] & 0xC0 != 0x80 { return length }
        }
        return 0
    }

    /// - Returns: how many bytes of `piece` were not used because the allowance is spent.
    private mutating func inflate(
        _ piece: UnsafeRawBufferPointer, isFinal: Bool
    ) throws(ProtocolFailure) -> Int {
        let before = assembly.count
        defer { allowance -= assembly.count - before }
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
            return try inflater?.inflate(
                piece, isFinal: isFinal, into: &assembly,
                messageLimit: streams ? 0 : limits.messageBytes, ratioLimit: limits.inflateRatio,
                allowance: allowance) ?? 0
        } catch {
            switch error {
            case .corrupt(let why):
                throw ProtocolFailure(.invalidPayload, "compressed message is corrupt: \(why)")
            case .tooLarge: throw limits.tooLarge(owner)
            case .ratio: throw limits.grewTooMuch(owner)
            case .noMemory: throw limits.noMemory(for: assembly.count - messageStart)
            }
        }
    }

    /// Rejects a frame that would make its message too large, before its payload is awaited.
    @inline(__always)
    private func checkSize(_ frame: Int) throws(ProtocolFailure) {
        let limit = streams ? 0 : limits.messageBytes
        if limit > 0, frame > limit - (assembly.count - messageStart) {
            throw limits.tooLarge(owner)
        }
    }
}
