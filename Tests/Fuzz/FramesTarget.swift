/// A server's frames: the events are the same whole and in pieces, text is UTF-8 by the standard
/// library's judgement, too, and messages respect their limit.
func fuzzFrames(_ input: consuming Input) {
    let options = input.byte()
    var limits = MessageLimits()
    limits.messageBytes = options & 1 != 0 ? 0 : Int(input.byte()) * 16 + 1
    limits.inflateRatio = options & 2 != 0 ? 0 : Int(input.byte()) + 1
    let deflate =
        options & 4 != 0
        ? nil
        : DeflateParameters(
            serverMaxWindowBits: 8 + Int(options >> 5), serverNoContextTakeover: options & 8 != 0)
    let size = Int(input.byte()) + 1
    let bytes = input.rest

    let whole = receive(bytes, size: max(bytes.count, 1), limits, deflate)
    let split = receive(bytes, size: size, limits, deflate)
    // See fuzzInflate: with a small window or a ratio limit, a message may fail earlier in pieces.
    if deflate == nil || deflate?.serverMaxWindowBits == 15 && limits.inflateRatio == 0 {
        require(whole.messages == split.messages, "messages in pieces of \(size) differ")
        // A compressed message may have two faults; then the pieces decide which one is found.
        let sameFailure =
            deflate == nil
            ? whole.failure == split.failure
            : (whole.failure == nil) == (split.failure == nil)
        require(
            sameFailure,
            "\(String(describing: whole.failure)), in pieces \(String(describing: split.failure))")
    }
}

private struct Received {
    /// The messages, as opcode and payload.
    var messages: [[UInt8]] = []
    var failure: ProtocolFailure?

    mutating func add(_ tag: Int32, _ payload: some Sequence<UInt8>) {
        messages.append([UInt8(truncatingIfNeeded: tag)] + payload)
    }
}

private func receive(
    _ bytes: UnsafeRawBufferPointer, size: Int, _ limits: MessageLimits,
    _ deflate: DeflateParameters?
) -> Received {
    var reader = MessageReader(limits: limits, deflate: deflate)
    var received = Received()
    for piece in bytes.pieces(of: size) {
        var offset = 0
        do throws(ProtocolFailure) {
            while try step(&reader, piece, &offset, &received, limits) {}
        } catch {
            require(error.code.mayBeSent, "close code \(error.code)")
            received.failure = error
            return received
        }
        require(offset == piece.count, "\(offset) bytes used of \(piece.count)")
        reader.discardDelivered()
    }
    return received
}

/// Handles the next event; false if more bytes are needed.
private func step(
    _ reader: inout MessageReader, _ input: UnsafeRawBufferPointer, _ offset: inout Int,
    _ received: inout Received, _ limits: MessageLimits
) throws(ProtocolFailure) -> Bool {
    switch try reader.next(input, &offset) {
    case .needMoreBytes: return false
    case .allowanceSpent: require(false, "an allowance that was never set is used up")
    case .message(let kind, let range): check(input[range], kind, limits, &received)
    case .assembledMessage(let kind, let range):
        check(reader.assembled[range], kind, limits, &received)
    case .piece: require(false, "a piece, although nothing is streamed")
    case .control(let opcode):
        require(opcode.isControl && reader.control.count <= 125, "\(opcode)")
        received.add(Int32(opcode.rawValue), reader.control)
        if opcode == .close {
            let close = try ClosePayload.parse(reader.control)
            received.add(0, Array("\(close)".utf8))
        }
    }
    return true
}

private func check(
    _ payload: UnsafeRawBufferPointer.SubSequence, _ kind: MessageKind, _ limits: MessageLimits,
    _ received: inout Received
) {
    require(limits.messageBytes == 0 || payload.count <= limits.messageBytes, "\(payload.count)")
    if kind == .text {
        require(String(validating: payload, as: UTF8.self) != nil, "text that is not UTF-8")
    }
    received.add(kind.rawValue, payload)
}
