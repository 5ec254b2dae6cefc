import CShims
import Testing

@testable import Wire

/// The result of reading some bytes, in a form that can be compared.
private enum Outcome: Equatable {
    case text(String)
    case binary([UInt8])
    case control(Opcode, [UInt8])
    case failed(CloseCode)
}

/// Feeds the pieces only to `next`.
private func read(
    _ pieces: [[UInt8]], limits: MessageLimits = MessageLimits(), deflate: DeflateParameters? = nil,
    streams: Bool = false, allowance: Int = .max
) -> [Outcome] {
    var reader = MessageReader(limits: limits, deflate: deflate, streams: streams)
    reader.allow(inflating: allowance)
    var outcomes: [Outcome] = []
    var streamed: [UInt8] = []
    for piece in pieces {
        let failed = piece.withUnsafeBytes { input -> Bool in
            var offset = 0
            while true {
                do throws(ProtocolFailure) {
                    switch try reader.next(input, &offset) {
                    case .needMoreBytes: return false
                    case .allowanceSpent: reader.allow(inflating: allowance)
                    case .message(let kind, let range):
                        outcomes.append(outcome(kind, Array(input[range])))
                    case .assembledMessage(let kind, let range):
                        outcomes.append(outcome(kind, Array(reader.assembled[range])))
                        reader.discardDelivered()
                    case .piece(let kind, let range, let isFirst, let isLast):
                        let piece = Array(reader.assembled[range])
                        #expect(isFirst || !streamed.isEmpty || isLast)
                        if kind == .text {
                            #expect(piece.withUnsafeBytes { UTF8Validator.isValid($0) })
                        }
                        streamed = isFirst ? piece : streamed + piece
                        reader.discardDelivered()
                        if isLast { outcomes.append(outcome(kind, streamed)) }
                    case .control(let opcode):
                        outcomes.append(.control(opcode, Array(reader.control)))
                    }
                } catch {
                    outcomes.append(.failed(error.code))
                    return true
                }
            }
        }
        if failed { break }
    }
    return outcomes
}

private func outcome(_ kind: MessageKind, _ bytes: [UInt8]) -> Outcome {
    kind == .text ? .text(String(decoding: bytes, as: UTF8.self)) : .binary(bytes)
}

private func expectAtEverySplit(
    _ bytes: [UInt8], _ expected: [Outcome], limits: MessageLimits = MessageLimits(),
    deflate: DeflateParameters? = nil, sourceLocation: SourceLocation = #_sourceLocation
) {
    for pieces in splits(bytes) {
        #expect(
            read(pieces, limits: limits, deflate: deflate) == expected,
            "cut into \(pieces.map(\.count))", sourceLocation: sourceLocation)
        // The limits of whole messages do not apply to streamed ones.
        if limits != MessageLimits() { continue }
        #expect(
            read(pieces, limits: limits, deflate: deflate, streams: true) == expected,
            "streamed, cut into \(pieces.map(\.count))", sourceLocation: sourceLocation)
    }
}

@Suite struct MessageReaderTests {
    @Test func messagesAndControlFramesComeInOrder() {
        let long = [UInt8](repeating: 7, count: 300)
        expectAtEverySplit(
            frame(.text, "hi") + frame(.ping, "p") + frame(.binary, long) + frame(.text, "")
                + frame(.close, [3, 232]),
            [
                .text("hi"), .control(.ping, [112]), .binary(long), .text(""),
                .control(.close, [3, 232]),
            ])
    }

    @Test func fragmentsAreJoinedAroundControlFrames() {
        expectAtEverySplit(
            frame(.text, "one ", isFinal: false) + frame(.ping, "x")
                + frame(.continuation, "", isFinal: false)
                + frame(.continuation, "two") + frame(.binary, [1]),
            [.control(.ping, [120]), .text("one two"), .binary([1])])
    }

    @Test func streamingAppliesFromTheNextMessage() throws {
        var reader = MessageReader(limits: MessageLimits(), deflate: nil)
        func events(_ bytes: [UInt8]) throws -> [MessageReader.Event] {
            try bytes.withUnsafeBytes { input in
                var events: [MessageReader.Event] = []
                var offset = 0
                while true {
                    let event = try reader.next(input, &offset)
                    if event == .needMoreBytes { return events }
                    reader.discardDelivered()
                    events.append(event)
                }
            }
        }
        // A message that has begun ends in the same way.
        #expect(try events(frame(.binary, [1, 2], isFinal: false)).isEmpty)
        reader.setStreams(true)
        #expect(
            try events(frame(.continuation, [3])) == [.assembledMessage(.binary, 0..<3)])
        let first = try events(frame(.binary, [1, 2], isFinal: false))
        #expect(first == [.piece(.binary, 0..<2, isFirst: true, isLast: false)])
        reader.setStreams(false)
        let last = try events(frame(.continuation, [3]))
        #expect(last == [.piece(.binary, 0..<1, isFirst: false, isLast: true)])
        #expect(try events(frame(.binary, [1, 2], isFinal: false)).isEmpty)
        #expect(
            try events(frame(.continuation, [3])) == [.assembledMessage(.binary, 0..<3)])
        // Between two messages it applies at once.
        reader.setStreams(true)
        let next = try events(frame(.binary, [1], isFinal: false))
        #expect(next == [.piece(.binary, 0..<1, isFirst: true, isLast: false)])
    }

    @Test func aCharacterMayBeSplitBetweenFragments() {
        let horse = Array("🐎".utf8)
        expectAtEverySplit(
            frame(.text, [horse[0], horse[1]], isFinal: false)
                + frame(.continuation, [horse[2], horse[3]]),
            [.text("🐎")])
    }

    @Test func aFrameOfSixtyFourKiBHasItsLengthInEightBytes() {
        let payload = [UInt8](repeating: 9, count: 65_536)
        let bytes = frame(.binary, payload)
        for cut in [1, 2, 9, 10, 11, 4000] {
            #expect(read([Array(bytes[..<cut]), Array(bytes[cut...])]) == [.binary(payload)])
        }
    }

    @Test(
        arguments: [
            ("reserved bit 2", [0xA1, 0x00]), ("reserved bit 3", [0x91, 0x00]),
            ("RSV1 without deflate", [0xC1, 0x00]),
            ("opcode 3", [0x83, 0x00]), ("opcode 11", [0x8B, 0x00]), ("masked", [0x81, 0x80]),
            ("126 for a short length", [0x82, 126, 0, 125]),
            ("127 for a short length", [0x82, 127, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]),
            ("the length's top bit", [0x82, 127, 0x80, 0, 0, 0, 0, 0, 0, 0]),
            ("ping of 126 bytes", [0x89, 126, 0, 126]), ("fragmented ping", [0x09, 0x00]),
            ("continuation of nothing", [0x80, 0x00]),
            ("message in a message", [0x01, 0x00, 0x81, 0x00]),
        ] as [(String, [UInt8])])
    func brokenFramesFailWith1002(name: String, bytes: [UInt8]) {
        expectAtEverySplit(bytes, [.failed(.protocolError)])
        // A good message before it in the same read is delivered first.
        expectAtEverySplit(frame(.text, "ok") + bytes, [.text("ok"), .failed(.protocolError)])
    }

    @Test func invalidTextFailsAtItsFirstBadByteOfAnUnfinishedFrame() {
        // A frame that announces ten bytes; the third is wrong, and the rest never comes.
        expectAtEverySplit([0x81, 10, 0x61, 0xCE, 0x61], [.failed(.invalidPayload)])
        expectAtEverySplit(frame(.text, [0xED, 0xA0, 0x80]), [.failed(.invalidPayload)])
        // An incomplete character at the end of the message.
        expectAtEverySplit(frame(.text, [0x61, 0xE2, 0x82]), [.failed(.invalidPayload)])
    }

    @Test func aFrameAboveTheLimitFailsBeforeItsPayload() {
        var limits = MessageLimits()
        limits.messageBytes = 10
        expectAtEverySplit(
            frame(.binary, [UInt8](repeating: 0, count: 10)),
            [.binary([UInt8](repeating: 0, count: 10))], limits: limits)
        expectAtEverySplit([0x82, 11], [.failed(.messageTooBig)], limits: limits)
        expectAtEverySplit(
            frame(.binary, [1, 2, 3, 4, 5, 6], isFinal: false) + [0x80, 5],
            [.failed(.messageTooBig)], limits: limits)
        expectAtEverySplit(
            [0x82, 127, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF],
            [.failed(.messageTooBig)], limits: limits)
    }

    @Test func compressedMessagesAreInflatedOverFragments() throws {
        // RFC 7692 §7.2.3.1: "Hello" as one frame and as two fragments.
        let hello: [UInt8] = [0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00]
        let deflate = DeflateParameters()
        expectAtEverySplit(
            frame(.text, hello, isCompressed: true), [.text("Hello")], deflate: deflate)
        expectAtEverySplit(
            frame(.text, Array(hello[..<3]), isFinal: false, isCompressed: true)
                + frame(.pong, "") + frame(.continuation, Array(hello[3...])),
            [.control(.pong, []), .text("Hello")], deflate: deflate)
        expectAtEverySplit(
            frame(.text, [0xFF, 0xFF], isCompressed: true), [.failed(.invalidPayload)],
            deflate: deflate)
        expectAtEverySplit(
            frame(.text, hello, isFinal: false, isCompressed: true)
                + frame(.continuation, [], isFinal: true, isCompressed: true),
            [.failed(.protocolError)], deflate: deflate)
        expectAtEverySplit(
            frame(.ping, [], isCompressed: true), [.failed(.protocolError)], deflate: deflate)
    }

    /// 8 MiB of text that compress to 8 KiB, as one frame and as fragments.
    private static let bomb: (compressed: [UInt8], text: [UInt8]) = {
        let text = [UInt8](repeating: UInt8(ascii: "a"), count: 8 << 20)
        var output = ByteBuffer()
        if var deflater = try? Deflater(level: 9, windowBits: 15, noContextTakeover: true) {
            text.withUnsafeBytes { try? deflater.deflate($0, into: &output) }
        }
        return (Array(output.readable), text)
    }()

    @Test(arguments: [1, 5000, 1 << 20], [true, false])
    func inflatingStopsInTheMiddleOfAMessage(allowance: Int, streams: Bool) throws {
        let (compressed, text) = MessageReaderTests.bomb
        let half = compressed.count / 2
        let bytes =
            frame(.text, compressed, isCompressed: true) + frame(.ping, "p")
            + frame(.text, Array(compressed[..<half]), isFinal: false, isCompressed: true)
            + frame(.pong, "q") + frame(.continuation, Array(compressed[half...]))
            + frame(.text, "end")
        let whole = Outcome.text(String(decoding: text, as: UTF8.self))
        let expected: [Outcome] = [
            whole, .control(.ping, [112]), .control(.pong, [113]), whole, .text("end"),
        ]
        let pieces =
            [[bytes]]
            + [1, 3, half, compressed.count].map { cut in
                [Array(bytes[..<cut]), Array(bytes[cut...])]
            }
        for pieces in pieces {
            let outcomes = read(
                pieces, deflate: DeflateParameters(), streams: streams, allowance: allowance)
            #expect(outcomes == expected, "cut into \(pieces.map(\.count))")
        }
    }

    @Test(arguments: [true, false])
    func aStepInflatesLittleMoreThanItsAllowance(streams: Bool) throws {
        let bytes = frame(.binary, MessageReaderTests.bomb.compressed, isCompressed: true)
        var reader = MessageReader(
            limits: MessageLimits(), deflate: DeflateParameters(), streams: streams)
        let allowance = 100_000
        try bytes.withUnsafeBytes { input in
            var offset = 0
            var turns = 1
            var known = 0
            var total = 0
            reader.allow(inflating: allowance)
            while true {
                let event = try reader.next(input, &offset)
                #expect(reader.assembled.count - known <= allowance + 16_384)
                known = reader.assembled.count
                switch event {
                case .allowanceSpent:
                    #expect(offset < input.count)
                    turns += 1
                    reader.allow(inflating: allowance)
                case .assembledMessage(_, let range), .piece(_, let range, _, _):
                    total += range.count
                    reader.discardDelivered()
                    known = 0
                case .needMoreBytes:
                    #expect(total == 8 << 20 && turns > (8 << 20) / (allowance + 16_384))
                    return
                case .message, .control: Issue.record("\(event)")
                }
            }
        }
    }

    @Test func anInterruptedMessageFailsLikeAWholeOne() throws {
        // Above the limit, and invalid text after the place of the interruption.
        var limits = MessageLimits()
        limits.messageBytes = 1 << 20
        let (compressed, _) = MessageReaderTests.bomb
        let bytes = frame(.text, compressed, isCompressed: true)
        #expect(
            read([bytes], limits: limits, deflate: DeflateParameters(), allowance: 4096)
                == [.failed(.messageTooBig)])
        var output = ByteBuffer()
        var deflater = try Deflater(level: 9, windowBits: 15, noContextTakeover: true)
        let wrong = [UInt8](repeating: UInt8(ascii: "a"), count: 1 << 20) + [0xFF]
        try wrong.withUnsafeBytes { try deflater.deflate($0, into: &output) }
        let wrongBytes = frame(.text, Array(output.readable), isCompressed: true)
        #expect(
            read([wrongBytes], deflate: DeflateParameters(), allowance: 4096)
                == [.failed(.invalidPayload)])
    }

    @Test func wholeMessagesAndNextFindTheSame() {
        let bytes =
            frame(.text, "a") + frame(.binary, [UInt8](repeating: 1, count: 200))
            + frame(.text, "ž") + frame(.ping, "stop") + frame(.text, "b")
        var reader = MessageReader(limits: MessageLimits(), deflate: nil)
        let slots = UnsafeMutableBufferPointer<rt_message>.allocate(capacity: 8)
        defer { slots.deallocate() }
        slots.initialize(repeating: rt_message())
        bytes.withUnsafeBytes { input in
            var offset = 0
            #expect(reader.wholeMessages(input, &offset, into: slots) == 3)
            #expect(slots[..<3].map { Int($0.length) } == [1, 200, 2])
            #expect(slots[..<3].map(\.kind) == [1, 2, 1])
            // It stops at the ping, which it reports by finding nothing.
            #expect(offset == 3 + 204 + 4)
            #expect(reader.wholeMessages(input, &offset, into: slots) == 0)
        }
    }

    /// Reads `bytes` like a connection that reads the rest of large frames directly into their
    /// storage.
    private func readDirectly(_ bytes: [UInt8], pieces: Int) -> (outcomes: [Outcome], direct: Int) {
        var reader = MessageReader(limits: MessageLimits(), deflate: nil)
        var outcomes: [Outcome] = []
        var place = 0
        var direct = 0
        func note(_ event: MessageReader.Event?) {
            guard case .assembledMessage(let kind, let range)? = event else { return }
            outcomes.append(outcome(kind, Array(reader.assembled[range])))
            reader.discardDelivered()
        }
        do throws(ProtocolFailure) {
            while place < bytes.count {
                if let space = reader.directSpace() {
                    let count = min(pieces, space.count, bytes.count - place)
                    space.copyBytes(from: bytes[place..<(place + count)])
                    place += count
                    direct += count
                    note(try reader.direct(count))
                    continue
                }
                let limit = min(pieces, reader.takeReadLimit(), bytes.count - place)
                let input = Array(bytes[place..<(place + limit)])
                place += input.count
                var failure: ProtocolFailure?
                input.withUnsafeBytes { input in
                    var offset = 0
                    do throws(ProtocolFailure) {
                        while true {
                            let event = try reader.next(input, &offset)
                            if event == .needMoreBytes { break }
                            if case .message(let kind, let range) = event {
                                outcomes.append(outcome(kind, Array(input[range])))
                            }
                            note(event)
                        }
                    } catch {
                        failure = error
                    }
                }
                if let failure { throw failure }
            }
        } catch {
            outcomes.append(.failed(error.code))
        }
        return (outcomes, direct)
    }

    @Test(arguments: [777, 40_000, 1 << 20])
    func theRestOfALargeFrameIsReadDirectly(_ pieces: Int) {
        let large = (0..<200_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        let text = String(repeating: "žluť €", count: 20_000)
        let bytes =
            frame(.binary, large) + frame(.text, "x") + frame(.text, text)
            + frame(.binary, large, isFinal: false) + frame(.continuation, large)
        let (outcomes, direct) = readDirectly(bytes, pieces: pieces)
        #expect(
            outcomes == [.binary(large), .text("x"), .text(text), .binary(large + large)])
        #expect(direct > 0 || pieces > bytes.count)
        var broken = Array(text.utf8)
        broken[100_001] = 0xFF
        #expect(
            readDirectly(frame(.text, broken), pieces: min(pieces, 50_000)).outcomes
                == [.failed(.invalidPayload)])
    }

    /// After one large frame the next header is read alone: 4 KiB, plus the missing part of the
    /// first, less than 32 KiB. This does not happen after small frames.
    @Test func littleOfLargeFramesInARowIsCopied() {
        let large = [UInt8](repeating: 7, count: 1 << 20)
        let piece = 256 << 10
        let row = readDirectly((0..<4).flatMap { _ in frame(.binary, large) }, pieces: piece)
        #expect(row.outcomes == [Outcome](repeating: .binary(large), count: 4))
        #expect(row.direct > 4 * large.count - piece - 3 * (36 << 10))
        let small = (0..<20).flatMap { _ in frame(.binary, [UInt8](repeating: 7, count: 60_000)) }
        #expect(readDirectly(small, pieces: piece).direct < small.count / 4)
    }

    /// A frame with the largest length that a header can express, without a limit.
    @Test func theLargestFrameLimitsNoRead() throws {
        var limits = MessageLimits()
        limits.messageBytes = 0
        var reader = MessageReader(limits: limits, deflate: nil)
        let header = [0x82, 127, 0x7F] + [UInt8](repeating: 0xFF, count: 7)
        header.withUnsafeBytes { input in
            var offset = 0
            #expect((try? reader.next(input, &offset)) == .needMoreBytes)
        }
        #expect(reader.directSpace() != nil)
        let event = try reader.direct(1)
        #expect(event == nil)
        #expect(reader.takeReadLimit() == 36 << 10)
        #expect(reader.takeReadLimit() == .max)
    }

    @Test func memoryOfAnAssembledMessageIsReleased() {
        var reader = MessageReader(limits: MessageLimits(), deflate: nil)
        let bytes = frame(.binary, [UInt8](repeating: 1, count: 1_000_000))
        for piece in [bytes[..<500_000], bytes[500_000...]] {
            piece.withUnsafeBytes { input in
                var offset = 0
                while let event = try? reader.next(input, &offset), event != .needMoreBytes {
                    reader.discardDelivered()
                }
            }
        }
        #expect(reader.assembled.isEmpty)
    }
}
