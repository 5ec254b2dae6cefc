import CShims
import Testing
import Wire

@testable import Session

private func at(_ milliseconds: UInt64) -> Instant {
    Instant(nanoseconds: (milliseconds + 1) * 1_000_000)
}

/// A session, and the frames that it writes, unmasked by a key of zeros.
private struct Peer: ~Copyable {
    var session: WebSocketSession

    init(
        deflate: DeflateParameters? = nil,
        _ configure: (inout WebSocketConfiguration) -> Void = { _ in }
    ) throws {
        var configuration = try WebSocketConfiguration(url: "ws://peer.test/")
        configuration.pingInterval = .zero
        configure(&configuration)
        // A key of zeros leaves payloads readable.
        let keys = MaskKeys { $0.initializeMemory(as: UInt8.self, repeating: 0) }
        session = WebSocketSession(
            configuration: configuration, deflate: deflate, keys: keys, now: at(0))
    }

    /// Feeds bytes and returns every step except the ends of input.
    mutating func receives(_ bytes: [UInt8], at time: Instant = at(0)) -> [WebSocketSession.Step] {
        var steps: [WebSocketSession.Step] = []
        bytes.withUnsafeBytes { input in
            var offset = 0
            while true {
                let step = session.next(input, &offset, now: time)
                if step == .needMoreBytes { break }
                steps.append(step)
                if case .assembledMessage = step { session.discardDelivered() }
            }
        }
        return steps
    }

    /// Takes the queued frames: their first bytes and payloads.
    mutating func written() -> [(first: UInt8, payload: [UInt8])] {
        let bytes = Array(session.outgoing.readable)
        session.didWrite(bytes.count)
        var frames: [(UInt8, [UInt8])] = []
        var at = 0
        while at < bytes.count {
            var length = Int(bytes[at + 1] & 0x7F)
            var header = 2
            if length == 126 {
                length = Int(bytes[at + 2]) << 8 | Int(bytes[at + 3])
                header = 4
            }
            let start = at + header + 4
            frames.append((bytes[at], Array(bytes[start..<(start + length)])))
            at = start + length
        }
        return frames
    }

    mutating func send(_ text: String) throws {
        var text = text
        try text.withUTF8 { try session.send(.text, UnsafeRawBufferPointer($0)) }
    }
}

private let close1000: [UInt8] = [0x88, 2, 0x03, 0xE8]

@Suite struct WebSocketSessionTests {
    @Test func aMessageIsOneFrame() throws {
        var peer = try Peer()
        try peer.send("hello")
        let frames = peer.written()
        #expect(frames.map(\.first) == [0x81])
        #expect(frames.map(\.payload) == [Array("hello".utf8)])
    }

    /// A message in two frames, then the end of the connection, all in one read: code that gathers
    /// messages can still answer before the close frame is sent.
    @Test(arguments: [close1000, [0x83, 0]])
    func theEndWaitsForMessagesNotHandedOn(_ end: [UInt8]) throws {
        var peer = try Peer()
        let bytes = [0x01, 1, 0x61, 0x80, 1, 0x62] + end
        bytes.withUnsafeBytes { input in
            var offset = 0
            let message = peer.session.next(input, &offset, now: at(0))
            #expect(message == .assembledMessage(.text, 0..<2))
            #expect(peer.session.next(input, &offset, now: at(0)) == .deliverFirst)
            #expect(peer.session.next(input, &offset, now: at(0)) == .deliverFirst)
            #expect(offset == bytes.count)
            #expect(peer.session.hasPendingEnd && peer.session.state == .open)
        }
        try peer.send("ab")
        peer.session.discardDelivered()
        let steps = peer.receives([])
        #expect(steps.count == 1 && peer.session.state == .finished)
        #expect(peer.written().map(\.first) == [0x81, 0x88])
    }

    @Test func aPeerThatSendsNoMessageIsIdle() throws {
        var peer = try Peer { $0.idleTimeout = .seconds(5) }
        #expect(peer.session.wakeUp == at(5000))
        _ = peer.receives([0x89, 0], at: at(3000))
        peer.session.received(messagesAt: at(1000))
        #expect(peer.session.wakeUp == at(6000))
        peer.session.setPaused(true, now: at(2000))
        #expect(peer.session.wakeUp == nil)
        #expect(peer.session.timeReached(at(8000)) == .nothing)
        peer.session.setPaused(false, now: at(8000))
        #expect(peer.session.timeReached(at(12_999)) == .nothing)
        guard case .failed(let error, .goingAway) = peer.session.timeReached(at(13_000)) else {
            Issue.record("not idle")
            return
        }
        #expect(error.code == .timeout && error.message.contains("(idleTimeout)"))
        #expect(peer.written().map(\.first) == [0x8A, 0x88])
    }

    /// Each byte of a message that comes slowly, also of its header, proves that the peer is not
    /// idle, whatever its size.
    @Test(arguments: [
        [0x81, 3, 0x61, 0x62, 0x63], [0x82, 126, 0, 126] + [UInt8](repeating: 0, count: 126),
        [0x01, 1, 0x61, 0x80, 0],
    ])
    func aPartOfAMessageIsNotIdle(_ bytes: [UInt8]) throws {
        var peer = try Peer { $0.idleTimeout = .seconds(5) }
        for (index, byte) in bytes.enumerated() {
            let now = at(UInt64(index + 1) * 4000)
            #expect(peer.session.timeReached(now) == .nothing)
            _ = peer.receives([byte], at: now)
            peer.session.discardDelivered()
        }
        let end = at(UInt64(bytes.count) * 4000)
        #expect(peer.session.state == .open && peer.session.wakeUp == end + .seconds(5))
    }

    /// A server that only pings is idle, also inside a message, and if the frames come in parts.
    @Test func partsOfControlFramesAreNoMessages() throws {
        var peer = try Peer { $0.idleTimeout = .seconds(5) }
        _ = peer.receives([0x01, 1, 0x61], at: at(1000))
        for (index, byte) in ([0x89, 2, 1, 2, 0x8A, 0] as [UInt8]).enumerated() {
            _ = peer.receives([byte], at: at(2000 + UInt64(index) * 100))
        }
        #expect(peer.session.wakeUp == at(6000))
    }

    /// A part of a TLS record may be a part of a message, until the rest shows that it was a ping.
    @Test func aPartOfARecordIsNotIdleUntilItsContentIsKnown() throws {
        var peer = try Peer { $0.idleTimeout = .seconds(5) }
        peer.session.received(unknownAt: at(4000))
        #expect(peer.session.wakeUp == at(9000))
        _ = peer.receives([0x89, 0], at: at(4500))
        #expect(peer.session.wakeUp == at(5000))
    }

    @Test func aMessageIsSplitByMaxFrameBytes() throws {
        var peer = try Peer { $0.maxFrameBytes = 2 }
        try peer.send("hello")
        try peer.send("")
        let frames = peer.written()
        #expect(frames.map(\.first) == [0x01, 0x00, 0x80, 0x81])
        #expect(frames.map(\.payload) == [[104, 101], [108, 108], [111], []])
    }

    @Test func longMessagesAreCompressedAndShortOnesNot() throws {
        var peer = try Peer(deflate: DeflateParameters())
        try peer.send("short")
        try peer.send(String(repeating: "long ", count: 100))
        let frames = peer.written()
        #expect(frames.map(\.first) == [0x81, 0xC1])
        #expect(frames[1].payload.count < 60)
    }

    @Test func aWindowOfEightBitsSendsUncompressed() throws {
        var peer = try Peer(deflate: DeflateParameters(clientMaxWindowBits: 8))
        try peer.send(String(repeating: "long ", count: 100))
        #expect(peer.written().map(\.first) == [0x81])
    }

    @Test func aPingIsAnsweredWithItsPayload() throws {
        var peer = try Peer()
        #expect(peer.receives([0x89, 2, 7, 8]) == [.nothing])
        let frames = peer.written()
        #expect(frames.map(\.first) == [0x8A])
        #expect(frames.map(\.payload) == [[7, 8]])
    }

    @Test func aFloodOfPingsIsAnsweredByTheLastAndStaysBounded() throws {
        var peer = try Peer()
        let payload = [UInt8](repeating: 1, count: 125)
        for _ in 0..<10_000 { _ = peer.receives([0x89, 125] + payload) }
        _ = peer.receives([0x89, 1, 42])
        #expect(peer.session.outgoing.count < 70_000)
        _ = peer.written()
        // Once there is room, the last one is answered.
        let frames = peer.written()
        #expect(frames.map(\.first) == [0x8A])
        #expect(frames.map(\.payload) == [[42]])
    }

    @Test func returnedMessagesCountWhenTheyAreFoundAgain() throws {
        var peer = try Peer()
        let input: [UInt8] = [0x81, 2, 0x61, 0x62, 0x81, 1, 0x63]
        input.withUnsafeBytes { input in
            withUnsafeTemporaryAllocation(of: rt_message.self, capacity: 4) { messages in
                messages.initialize(repeating: rt_message())
                var offset = 0
                #expect(peer.session.wholeMessages(input, &offset, into: messages) == 2)
                // A pause after the first one.
                peer.session.giveBack(UnsafeBufferPointer(rebasing: messages[1..<2]))
                offset = 4
                #expect(peer.session.wholeMessages(input, &offset, into: messages) == 1)
            }
        }
        let counts = peer.session.takeCounts()
        #expect(counts.messagesReceived == 2)
        #expect(counts.payloadBytesReceived == 3)
    }

    @Test func noPongFollowsALaterPingsPong() throws {
        var peer = try Peer()
        let payload = [UInt8](repeating: 1, count: 125)
        // The last of these waits for room, and the next arrives when there is some again.
        for _ in 0..<1000 { _ = peer.receives([0x89, 125] + payload) }
        peer.session.didWrite(peer.session.outgoing.count - 1000)
        _ = peer.receives([0x89, 1, 42])
        peer.session.didWrite(peer.session.outgoing.count - 7)
        let frames = peer.written()
        #expect(frames.map(\.payload) == [[42]])
        #expect(peer.written().isEmpty)
    }

    @Test func thePeersCloseIsAnsweredWithItsCode() throws {
        var peer = try Peer()
        let steps = peer.receives([0x88, 4, 0x0F, 0xA1, 0x68, 0x69, 0x81, 1, 0x61])
        #expect(steps == [.closed(CloseCode(rawValue: 4001), reason: "hi")])
        let frames = peer.written()
        #expect(frames.map(\.first) == [0x88])
        #expect(frames.map(\.payload) == [[0x0F, 0xA1]])
        #expect(throws: RealtimeError.self) { try peer.send("late") }
    }

    @Test func aCloseWithoutCodeIsAnsweredWithoutCode() throws {
        var peer = try Peer()
        #expect(peer.receives([0x88, 0]) == [.closed(.noStatus, reason: "")])
        #expect(peer.written().map(\.payload) == [[]])
    }

    @Test func ourCloseFollowsQueuedMessagesAndIsSentOnce() throws {
        var peer = try Peer()
        try peer.send("last")
        peer.session.close(.normal, reason: "bye", now: at(0))
        peer.session.close(.goingAway, reason: "again", now: at(0))
        let frames = peer.written()
        #expect(frames.map(\.first) == [0x81, 0x88])
        #expect(frames.last?.payload == [0x03, 0xE8] + Array("bye".utf8))
        #expect(peer.receives(close1000) == [.closed(.normal, reason: "")])
        #expect(peer.written().isEmpty)
    }

    @Test func messagesAfterOurCloseAreDroppedAndPingsNotAnswered() throws {
        var peer = try Peer()
        peer.session.close(.normal, reason: "", now: at(0))
        _ = peer.written()
        #expect(
            peer.receives([0x81, 1, 0x61, 0x89, 0] + close1000) == [
                .nothing, .nothing, .closed(.normal, reason: ""),
            ])
        #expect(peer.written().isEmpty)
    }

    /// A large message is on its way, so the peer cannot have received the close frame yet.
    @Test func theTimeLimitOfClosingBeginsAnewWhileBytesArrive() throws {
        var peer = try Peer { $0.closeTimeout = .seconds(2) }
        try peer.send(String(repeating: "x", count: 100_000))
        peer.session.didWrite(30_000)
        peer.session.close(.normal, reason: "", unacknowledged: 20_000, now: at(0))
        // Fewer of the bytes that were written have not arrived.
        #expect(peer.session.timeReached(at(2000), unacknowledged: 19_999) == .nothing)
        #expect(peer.session.wakeUp == at(4000))
        peer.session.didWrite(10_000)
        // As many as before were written, but none has arrived since.
        #expect(peer.session.timeReached(at(4000), unacknowledged: 29_999) == .closeTimedOut)
    }

    @Test func theTimeLimitOfClosingCountsFromTheArrivalOfTheLastByte() throws {
        var peer = try Peer { $0.closeTimeout = .seconds(2) }
        try peer.send("last")
        peer.session.close(.normal, reason: "", now: at(0))
        _ = peer.written()
        #expect(peer.session.timeReached(at(2000)) == .nothing)
        #expect(peer.session.timeReached(at(4000)) == .closeTimedOut)
    }

    @Test func theTimeLimitOfClosingIsBoundedAsAWhole() throws {
        var peer = try Peer { $0.closeTimeout = .seconds(2) }
        try peer.send(String(repeating: "x", count: 100_000))
        peer.session.close(.normal, reason: "", now: at(0))
        for second in stride(from: 2, to: 20, by: 2) {
            peer.session.didWrite(1)
            #expect(peer.session.timeReached(at(UInt64(second) * 1000)) == .nothing)
        }
        peer.session.didWrite(1)
        #expect(peer.session.wakeUp == at(20_000))
        #expect(peer.session.timeReached(at(20_000)) == .closeTimedOut)
    }

    @Test func theClosingHandshakeHasATimeLimit() throws {
        var peer = try Peer { $0.closeTimeout = .seconds(2) }
        peer.session.close(.normal, reason: "", now: at(0))
        #expect(peer.session.wakeUp == at(2000))
        #expect(peer.session.timeReached(at(1999)) == .nothing)
        #expect(peer.session.timeReached(at(2000)) == .closeTimedOut)
    }

    @Test(
        arguments: [
            ([0x83, 0], 1002), ([0x81, 1, 0xFF], 1007), ([0x82, 126, 1, 0], 1009),
            ([0x88, 1, 3], 1002),
        ] as [([UInt8], UInt16)])
    func aBrokenProtocolIsAnsweredWithItsCodeOnce(bytes: [UInt8], code: UInt16) throws {
        var peer = try Peer { $0.limits.messageBytes = 100 }
        let steps = peer.receives(bytes + bytes)
        #expect(steps.count == 1)
        guard case .failed(let failure)? = steps.first else {
            Issue.record("\(steps)")
            return
        }
        #expect(failure.code.rawValue == code)
        let frames = peer.written()
        #expect(frames.map(\.first) == [0x88])
        #expect(frames.map(\.payload) == [[UInt8(code >> 8), UInt8(code & 0xFF)]])
        #expect(peer.receives([0x81, 1, 0x61]).isEmpty)
    }

    @Test func aSilentPeerFailsWithTheHostInTheSentence() throws {
        var peer = try Peer {
            $0.pingInterval = .seconds(1)
            $0.pongTimeout = .seconds(3)
        }
        #expect(peer.session.timeReached(at(1000)) == .pinged)
        let ping = peer.written()
        #expect(ping.map(\.first) == [0x89])
        // Answered: the clock starts over.
        let pong = [0x8A, UInt8(ping[0].payload.count)] + ping[0].payload
        #expect(peer.receives(pong, at: at(1500)) == [.pong(.milliseconds(500), number: 1)])
        #expect(peer.session.timeReached(at(2000)) == .pinged)
        #expect(peer.session.timeReached(at(3000)) == .pinged)
        guard case .failed(let error, .internalError) = peer.session.timeReached(at(5000)) else {
            Issue.record("no failure")
            return
        }
        #expect(error.code == .timeout)
        #expect(error.message.contains("peer.test"))
    }

    /// A message that takes longer than a pong may take, over a slow link.
    @Test func aPeerThatSendsBytesIsAlive() throws {
        var peer = try Peer {
            $0.pingInterval = .seconds(1)
            $0.pongTimeout = .milliseconds(500)
        }
        for time in stride(from: 1000, through: 5000, by: 1000) as StrideThrough<UInt64> {
            #expect(peer.session.timeReached(at(time)) == .pinged)
            peer.session.receivedBytes()
            #expect(peer.session.timeReached(at(time + 500)) == .nothing)
        }
        #expect(peer.session.timeReached(at(6000)) == .pinged)
        guard case .failed = peer.session.timeReached(at(6500)) else {
            Issue.record("a silent peer is not given up")
            return
        }
    }

    /// No ping was sent: a peer that accepts data, however slowly, is alive.
    @Test func aLongSendDoesNotMakeThePeerSilent() throws {
        var peer = try Peer {
            $0.pingInterval = .milliseconds(20)
            $0.pongTimeout = .milliseconds(20)
        }
        let message = [UInt8](repeating: 0, count: 1 << 20)
        try message.withUnsafeBytes { try peer.session.send(.binary, $0, compression: .never) }
        for time in stride(from: 20, through: 200, by: 20) as StrideThrough<UInt64> {
            #expect(peer.session.timeReached(at(time)) == .nothing)
            peer.session.didWrite(1000)
        }
        #expect(peer.session.timeReached(at(220)) == .nothing)
        guard case .failed(let error, .internalError) = peer.session.timeReached(at(240)) else {
            Issue.record("a peer that takes nothing is not given up")
            return
        }
        #expect(error.message.contains("took nothing within 20 ms (pongTimeout)"))
    }

    @Test func aPingOfTheCallerIsMeasured() throws {
        var peer = try Peer()
        let payload: [UInt8] = [9, 9, 9]
        let number = try payload.withUnsafeBytes { try peer.session.ping($0, now: at(0)) }
        #expect(peer.written().map(\.payload) == [[9, 9, 9]])
        let answer: [UInt8] = [0x8A, 3, 9, 9, 9]
        #expect(peer.receives(answer, at: at(20)) == [.pong(.milliseconds(20), number: number)])
        #expect(peer.receives([0x8A, 3, 9, 9, 9], at: at(30)) == [.nothing])
        let long = [UInt8](repeating: 0, count: 126)
        #expect(throws: RealtimeError.self) {
            try long.withUnsafeBytes { try peer.session.ping($0, now: at(0)) }
        }
    }
}
