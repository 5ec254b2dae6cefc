import CShims

/// Reads a server's frames with our reader in pieces, and with the naive reader at once: both must
/// find the same messages and control frames, ending at the same bytes, and the same violation.
func fuzzDifferential(_ input: consuming Input) {
    let options = input.byte()
    var limits = MessageLimits()
    var rules = NaiveReader.Rules()
    var deflate: DeflateParameters?
    let limit = Int(input.byte()) * 16 + 1
    if options & 1 != 0 {
        // With a smaller window, the split decides how a wrong distance is reported. The naive
        // reader inflates again for each frame: without a limit it would take too long.
        deflate = DeflateParameters(serverNoContextTakeover: options & 2 != 0)
        rules.deflate = (15, options & 2 != 0)
        limits.messageBytes = limit
    } else {
        limits.messageBytes = options & 2 != 0 ? limit : 0
    }
    rules.messageLimit = limits.messageBytes
    let batch = Int(options >> 2 & 3)
    let split = input.byte()
    let bytes = input.rest

    let naive = NaiveReader(Array(bytes), rules)
    let ours = OurReader(bytes, split: split, batch: batch, limits, deflate)
    require(
        ours.events.count == naive.events.count,
        "\(ours.events.count) events, naively \(naive.events.count)")
    for (index, (mine, other)) in zip(ours.events, naive.events).enumerated() {
        require(mine == other, "event \(index): \(mine), naively \(other)")
    }
    let code = ours.failure?.code.rawValue
    require(
        code.map(naive.failure.contains) ?? naive.failure.isEmpty,
        "\(ours.failure?.message ?? "accepted"), naively \(naive.failure.sorted())")
    require(ours.close == naive.close?.code, "closed with \(String(describing: ours.close))")
}

/// Wire's reader, driven as in a session, with results in the naive reader's types.
private struct OurReader {
    var events: [NaiveReader.Event] = []
    var failure: ProtocolFailure?
    var close: UInt16?
    /// So small that messages stop in the middle.
    private static let allowance = 1000

    init(
        _ bytes: UnsafeRawBufferPointer, split: UInt8, batch: Int, _ limits: MessageLimits,
        _ deflate: DeflateParameters?
    ) {
        var reader = MessageReader(limits: limits, deflate: deflate)
        reader.allow(inflating: OurReader.allowance)
        var start = 0
        do throws(ProtocolFailure) {
            for piece in bytes.pieces(by: split) {
                try read(piece, from: start, batch, &reader)
                if close != nil { return }
                start += piece.count
            }
        } catch {
            require(error.code.mayBeSent, "close code \(error.code)")
            failure = error
        }
    }

    private mutating func read(
        _ input: UnsafeRawBufferPointer, from start: Int, _ batch: Int,
        _ reader: inout MessageReader
    ) throws(ProtocolFailure) {
        var offset = 0
        // Assembled messages stay until the input is used up, as for the batch callback.
        defer { reader.discardDelivered() }
        while close == nil {
            let before = offset
            for message in whole(input, &offset, batch, &reader) {
                let range = Int(message.offset)..<Int(message.offset + message.length)
                add(UInt8(message.kind), input[range], start + range.upperBound)
            }
            if offset > before { continue }
            switch try reader.next(input, &offset) {
            case .needMoreBytes:
                require(offset == input.count, "\(offset) bytes used of \(input.count)")
                return
            case .allowanceSpent: reader.allow(inflating: OurReader.allowance)
            case .message(let kind, let range):
                add(UInt8(kind.rawValue), input[range], start + offset)
            case .piece: require(false, "a piece, although nothing is streamed")
            case .assembledMessage(let kind, let range):
                add(UInt8(kind.rawValue), reader.assembled[range], start + offset)
            case .control(let opcode):
                if opcode == .close {
                    let (code, _) = try ClosePayload.parse(reader.control)
                    close = code.rawValue
                }
                add(opcode.rawValue, reader.control[...], start + offset)
            }
        }
    }

    private func whole(
        _ input: UnsafeRawBufferPointer, _ offset: inout Int, _ batch: Int,
        _ reader: inout MessageReader
    ) -> ArraySlice<rt_message> {
        if batch == 0 { return [] }
        var messages = [rt_message](repeating: rt_message(), count: batch)
        let count = messages.withUnsafeMutableBufferPointer {
            reader.wholeMessages(input, &offset, into: $0)
        }
        return messages[..<count]
    }

    private mutating func add(
        _ opcode: UInt8, _ payload: UnsafeRawBufferPointer.SubSequence, _ end: Int
    ) {
        events.append(NaiveReader.Event(opcode: opcode, payload: Array(payload), end: end))
    }
}
