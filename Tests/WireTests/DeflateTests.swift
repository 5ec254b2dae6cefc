import Testing

@testable import Wire

/// The pieces of a received message, each at most `piece` bytes.
private func pieces(_ bytes: [UInt8], of piece: Int) -> [ArraySlice<UInt8>] {
    stride(from: 0, to: bytes.count, by: piece).map { bytes[$0..<min($0 + piece, bytes.count)] }
}

/// One direction of a connection: an inflater that receives whole messages in pieces.
private struct Receiver: ~Copyable {
    var inflater: Inflater
    var output = ByteBuffer()
    var messageLimit = 0
    var ratioLimit = 0

    init(windowBits: Int = 15, noContextTakeover: Bool = false) throws {
        inflater = try Inflater(windowBits: windowBits, noContextTakeover: noContextTakeover)
    }

    /// - Parameter closing: ends the message with an empty piece.
    mutating func message(
        _ bytes: [UInt8], piece: Int = .max, closing: Bool = false
    ) -> Result<[UInt8], Inflater.Failure> {
        let before = output.count
        var parts = pieces(bytes, of: min(piece, max(bytes.count, 1)))
        if closing || parts.isEmpty { parts.append([]) }
        for (index, part) in parts.enumerated() {
            let isFinal = index == parts.count - 1
            let result = part.withUnsafeBytes { part in
                Result { () throws(Inflater.Failure) in
                    try inflater.inflate(
                        part, isFinal: isFinal, into: &output, messageLimit: messageLimit,
                        ratioLimit: ratioLimit)
                }
            }
            if case .failure(let failure) = result { return .failure(failure) }
        }
        return .success(Array(output.readable.dropFirst(before)))
    }
}

private struct Sender: ~Copyable {
    var deflater: Deflater
    var output = ByteBuffer()

    init(level: Int = 6, windowBits: Int = 15, noContextTakeover: Bool = false) throws {
        deflater = try Deflater(
            level: level, windowBits: windowBits, noContextTakeover: noContextTakeover)
    }

    mutating func message(_ bytes: [UInt8]) throws -> [UInt8] {
        let before = output.count
        try bytes.withUnsafeBytes { try deflater.deflate($0, into: &output) }
        return Array(output.readable.dropFirst(before))
    }
}

private let hello = Array("Hello".utf8)

/// Bytes that do not compress, the same in every run.
private func noise(_ count: Int) -> [UInt8] {
    var state: UInt64 = 0x9E37_79B9_7F4A_7C15
    return (0..<count).map { _ in
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return UInt8(truncatingIfNeeded: state >> 33)
    }
}

/// Typical text: it refers back over any distance.
private func records(_ count: Int) -> [UInt8] {
    (0..<count).flatMap { Array("{\"id\":\($0),\"price\":\($0 &* 7919 % 1009),\"ok\":true}".utf8) }
}

@Suite struct InflaterTests {
    /// RFC 7692 §7.2.3.1 to §7.2.3.6, and other encodings of one message.
    @Test(
        arguments: [
            ([0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00], hello),
            ([0x00, 0x05, 0x00, 0xFA, 0xFF, 0x48, 0x65, 0x6C, 0x6C, 0x6F, 0x00], hello),
            ([0xF3, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00, 0x00], hello),
            (
                [0xF2, 0x48, 0x05, 0x00, 0x00, 0x00, 0xFF, 0xFF, 0xCA, 0xC9, 0xC9, 0x07, 0x00],
                hello
            ),
            ([0x00], []), ([], []),
            // A BFINAL block without an empty one after it; two of them; the flush with BFINAL.
            ([0xF3, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00], hello),
            (
                [
                    0xF3, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00, 0xF3, 0x48, 0xCD, 0xC9, 0xC9, 0x07,
                    0x00,
                    0x00,
                ], hello + hello
            ),
            ([0x03, 0x00], []), ([0x01], []),
        ] as [([UInt8], [UInt8])])
    func oneMessage(compressed: [UInt8], message: [UInt8]) throws {
        for (piece, noContext) in [(Int.max, false), (1, false), (2, true), (1, true)] {
            for closing in [false, true] {
                var receiver = try Receiver(noContextTakeover: noContext)
                // Three times, because a message must not affect the next.
                for _ in 0..<3 {
                    let result = receiver.message(compressed, piece: piece, closing: closing)
                    #expect(result == .success(message))
                }
            }
        }
    }

    /// RFC 7692 §7.2.3.2, after each way to send the first message.
    @Test(
        arguments: [
            [0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00],
            [0xF3, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00, 0x00],
            [0xF3, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00],
        ] as [[UInt8]], [Int.max, 1])
    func theWindowIsSharedBetweenMessages(first: [UInt8], piece: Int) throws {
        let second: [UInt8] = [0xF2, 0x00, 0x11, 0x00, 0x00]
        var receiver = try Receiver()
        #expect(receiver.message(first, piece: piece) == .success(hello))
        #expect(receiver.message([]) == .success([]))
        #expect(receiver.message(second, piece: piece) == .success(hello))
        var forgetful = try Receiver(noContextTakeover: true)
        #expect(forgetful.message(first, piece: piece) == .success(hello))
        let distance = Inflater.Failure.corrupt("invalid distance too far back")
        #expect(forgetful.message(second, piece: piece) == .failure(distance))
    }

    @Test(
        arguments: [
            [0x07], [0xFF], [0x00, 0x05, 0x00, 0xFB, 0xFF, 0x48], [0xF2, 0x00, 0x11, 0x00, 0x00],
            [0x04, 0xFF, 0xFF], [0xF3, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00, 0xFF],
            // Ends inside a block: the start of Hello's bytes, and a trailer that was not removed.
            [0xF2], [0xF2, 0x48], [0xF2, 0x48, 0xCD, 0xC9], [0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07],
            [0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00, 0x00, 0x00, 0xFF, 0xFF],
            [0x00, 0x06, 0x00, 0xF9, 0xFF, 0x48], [0x00, 0x00],
        ] as [[UInt8]])
    func malformedDataIsCorrupt(compressed: [UInt8]) throws {
        for piece in [Int.max, 1] {
            var receiver = try Receiver()
            guard case .failure(.corrupt(let text)) = receiver.message(compressed, piece: piece)
            else {
                Issue.record("accepted \(compressed) in pieces of \(piece)")
                continue
            }
            #expect(!text.isEmpty)
        }
    }

    /// Many of these sizes fill their output exactly.
    @Test(arguments: [true, false]) func anySizeFitsItsOutput(closing: Bool) throws {
        for count in 1...5000 {
            var sender = try Sender()
            let message = [UInt8](repeating: 97, count: count)
            let compressed = try sender.message(message)
            var receiver = try Receiver()
            let result = receiver.message(compressed, closing: closing)
            guard result == .success(message) else {
                Issue.record("\(count) bytes: \(result)")
                return
            }
        }
    }

    @Test func everyCutMessageIsCorrupt() throws {
        var sender = try Sender()
        let whole = try sender.message(records(40))
        for length in 1..<whole.count {
            var receiver = try Receiver()
            let result = receiver.message(Array(whole[..<length]))
            guard case .failure(.corrupt) = result else {
                Issue.record("accepted the first \(length) of \(whole.count) bytes")
                continue
            }
        }
    }

    @Test(arguments: [1, 1023, 1024, 65_535, 65_536, 999_999], [Int.max, 1, 100])
    func theMessageLimitHoldsWhileInflating(limit: Int, piece: Int) throws {
        var sender = try Sender(level: 9)
        let bomb = try sender.message([UInt8](repeating: 0x20, count: 1_000_000))
        var receiver = try Receiver()
        receiver.output.append("before")
        receiver.messageLimit = limit
        #expect(receiver.message(bomb, piece: piece) == .failure(.tooLarge))
        #expect(receiver.output.count <= "before".utf8.count + limit + 1)
        #expect(receiver.output.capacity <= max(2 * limit, 65_536))
    }

    @Test(arguments: [Int.max, 1])
    func aMessageOfTheLimitPassesAndEachCountsAlone(piece: Int) throws {
        var sender = try Sender()
        var receiver = try Receiver()
        let message = records(3000)
        receiver.messageLimit = message.count
        for _ in 0..<3 {
            let compressed = try sender.message(message)
            #expect(receiver.message(compressed, piece: piece) == .success(message))
        }
        receiver.messageLimit = message.count - 1
        #expect(
            receiver.message(try sender.message(message), piece: piece) == .failure(.tooLarge))
    }

    @Test(arguments: [Int.max, 1, 50])
    func theRatioIsLimitedOnceAMessageIsLarge(piece: Int) throws {
        var sender = try Sender(level: 9, noContextTakeover: true)
        var receiver = try Receiver(noContextTakeover: true)
        receiver.ratioLimit = 10
        let small = [UInt8](repeating: 0x20, count: Inflater.ratioFreeBytes)
        #expect(receiver.message(try sender.message(small), piece: piece) == .success(small))
        let random = noise(300_000)
        #expect(receiver.message(try sender.message(random), piece: piece) == .success(random))
        let bomb = try sender.message([UInt8](repeating: 0x20, count: 1_000_000))
        let before = receiver.output.count
        #expect(receiver.message(bomb, piece: piece) == .failure(.ratio))
        #expect(receiver.output.count - before <= Inflater.ratioFreeBytes + 1)
    }

    @Test func theTighterLimitIsTheOneNamed() throws {
        var sender = try Sender(level: 9)
        let bomb = try sender.message([UInt8](repeating: 0x20, count: 1_000_000))
        for (limit, ratio, failure) in [
            (70_000, 1, Inflater.Failure.ratio), (60_000, 1, .tooLarge), (500_000, 900, .tooLarge),
            (1_000_000, Int.max, nil), (0, 1100, nil),
        ] as [(Int, Int, Inflater.Failure?)] {
            var receiver = try Receiver()
            receiver.messageLimit = limit
            receiver.ratioLimit = ratio
            switch receiver.message(bomb) {
            case .failure(let found): #expect(found == failure)
            case .success(let message): #expect(failure == nil && message.count == 1_000_000)
            }
        }
    }

    /// Each of these blocks ends zlib's stream; 100,000 of them must not allocate a window each.
    @Test func aFloodOfFinalBlocksIsOneEmptyMessage() throws {
        let flood = (0..<100_000).flatMap { _ in [0x03, 0x00] as [UInt8] }
        var receiver = try Receiver()
        #expect(receiver.message(flood) == .success([]))
        #expect(receiver.message([0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00]) == .success(hello))
    }

    @Test func aDistanceBeyondTheAgreedWindowIsCorrupt() throws {
        var sender = try Sender(windowBits: 15)
        let random = noise(3000)
        let compressed = try sender.message(random + random)
        var wide = try Receiver(windowBits: 12)
        #expect(wide.message(compressed) == .success(random + random))
        // Within one call zlib sees its output; between pieces it has only the window.
        var narrow = try Receiver(windowBits: 8)
        guard case .failure(.corrupt) = narrow.message(compressed, piece: 100) else {
            Issue.record("a window of 256 bytes reached back 3000")
            return
        }
    }

    @Test func idleMemoryIsReleasedOnlyWithoutContext() throws {
        let first: [UInt8] = [0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00]
        let second: [UInt8] = [0xF2, 0x00, 0x11, 0x00, 0x00]
        var keeping = try Receiver()
        #expect(keeping.message(first) == .success(hello))
        keeping.inflater.releaseIdleMemory()
        #expect(keeping.message(second) == .success(hello))
        var forgetting = try Receiver(noContextTakeover: true)
        for _ in 0..<2 {
            #expect(forgetting.message(first) == .success(hello))
            forgetting.inflater.releaseIdleMemory()
        }
    }

    @Test(arguments: [7, 16, 0, -15])
    func otherWindowsAreRefused(bits: Int) {
        let error = #expect(throws: RealtimeError.self) {
            _ = try Inflater(windowBits: bits, noContextTakeover: false)
        }
        #expect(error?.code == .invalidArgument)
    }
}

@Suite struct DeflaterTests {
    @Test(arguments: 9...15, [false, true])
    func messagesComeBack(windowBits: Int, noContextTakeover: Bool) throws {
        let messages: [[UInt8]] = [
            hello, [], [], hello, noise(1), noise(70_000), records(20), records(9000), [], hello,
            [UInt8](repeating: 0, count: 200_000), noise(65_536), records(20),
        ]
        for level in [1, 6, 9] {
            var sender = try Sender(
                level: level, windowBits: windowBits, noContextTakeover: noContextTakeover)
            var receiver = try Receiver(
                windowBits: windowBits, noContextTakeover: noContextTakeover)
            for (index, message) in messages.enumerated() {
                let compressed = try sender.message(message)
                #expect(compressed.suffix(4) != [0x00, 0x00, 0xFF, 0xFF])
                let piece = [Int.max, 1000, 1][index % 3]
                #expect(receiver.message(compressed, piece: piece) == .success(message))
            }
        }
    }

    /// RFC 7692 §7.2.3.1, §7.2.3.2 and §7.2.3.6.
    @Test func theContextIsKeptOrNot() throws {
        let first: [UInt8] = [0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00]
        var keeping = try Sender()
        #expect(try keeping.message(hello) == first)
        #expect(try keeping.message(hello) == [0xF2, 0x00, 0x11, 0x00, 0x00])
        #expect(try keeping.message([]) == [0x00])
        keeping.deflater.releaseIdleMemory()
        #expect(try keeping.message(hello).count < first.count)
        var forgetting = try Sender(noContextTakeover: true)
        for _ in 0..<2 {
            #expect(try forgetting.message(hello) == first)
            forgetting.deflater.releaseIdleMemory()
            #expect(try forgetting.message(hello) == first)
        }
    }

    @Test(arguments: [
        (0, 15, 8), (10, 15, 8), (-1, 15, 8), (1, 8, 8), (1, 16, 8), (1, 15, 0), (1, 15, 10),
    ])
    func otherSettingsAreRefused(level: Int, bits: Int, memory: Int) {
        let error = #expect(throws: RealtimeError.self) {
            _ = try Deflater(
                level: level, windowBits: bits, memoryLevel: memory, noContextTakeover: false)
        }
        #expect(error?.code == .invalidArgument)
    }
}
