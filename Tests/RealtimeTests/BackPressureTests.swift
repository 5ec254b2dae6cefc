import Testing

@testable import Realtime

/// Waits until the loop has had this many turns from now on.
private func turns(_ count: Int, of loop: Loop) async throws {
    for _ in 0..<count {
        try await withCheckedThrowingContinuation {
            (continuation: CheckedContinuation<Void, any Error>) in
            do throws(RealtimeError) {
                try loop.post { continuation.resume() }
            } catch {
                continuation.resume(throwing: error)
            }
        }
    }
}

@Suite(.timeLimit(.minutes(5))) struct BackPressureTests {
    /// All of them fit into one read; without the pause they would all be in the mailbox at once.
    @Test func aFullMailboxStopsReceiving() async throws {
        var options = WebSocket.Options()
        options.maxBufferedMessages = 4
        let socket = try await WebSocket.connect(
            EchoServer.shared.url("count/3000"), options: options)
        let box = try #require(socket.mailbox)
        while !box.isPaused { try await turns(1, of: .shared) }
        try await turns(20, of: .shared)
        #expect(box.count == 4)
        var received = 0
        for try await message in socket.messages {
            #expect(message == .text(String(received)))
            #expect(box.count <= 4)
            received += 1
        }
        #expect(received == 3000)
    }

    /// Neither reason to pause ends the other.
    @Test func aPauseOfTheProgramOutlastsAFullMailbox() async throws {
        var options = WebSocket.Options()
        options.maxBufferedMessages = 4
        let socket = try await WebSocket.connect(
            EchoServer.shared.url("count/3000"), options: options)
        let box = try #require(socket.mailbox)
        while !box.isPaused { try await turns(1, of: .shared) }
        try socket.pause()
        for number in 0..<4 { #expect(try await socket.receive() == .text(String(number))) }
        #expect(!box.isPaused)
        try await turns(20, of: .shared)
        #expect(box.count == 0)
        try socket.resume()
        #expect(try await socket.receive() == .text("4"))
        try await socket.close()
    }

    @Test func aFullMailboxOfPiecesStopsReceiving() async throws {
        var options = WebSocket.Options()
        options.maxBufferedBytes = 10
        options.deliversPieces = true
        let socket = try await WebSocket.connect(
            EchoServer.shared.url("count/1000"), options: options)
        let box = try #require(socket.pieceBox)
        while !box.isPaused { try await turns(1, of: .shared) }
        try await turns(20, of: .shared)
        #expect(box.count <= 10)
        var received = 0
        for try await piece in socket.pieces {
            #expect(piece.bytes == Array(String(received).utf8) && piece.isFirst && piece.isLast)
            received += 1
        }
        #expect(received == 1000)
    }

    /// Messages that wait for the loop count with 14 bytes of header each: the 53rd passes the mark
    /// only by its header.
    @Test func waitingSendersContinueWhenTheBufferIsEmpty() async throws {
        var options = WebSocket.Options()
        options.compression = false
        options.sendHighWaterBytes = 52 * 78 + 70
        let socket = try await WebSocket.connect(EchoServer.shared.url("sink"), options: options)
        let payload = [UInt8](repeating: 7, count: 64)
        for _ in 0..<5000 { try await socket.send(payload) }
        for _ in 0..<10 {
            try await socket.sendMessage(.binary) { message in
                for _ in 0..<500 { try await message.write(payload) }
            }
        }
        try await socket.close()
        #expect(socket.statistics.messagesSent == 5010)
    }

    @Test func aWaitingSenderContinuesOnTheNextConnection() async throws {
        var options = WebSocket.Options()
        options.sendHighWaterBytes = 1000
        options.offlineQueue = 10
        options.reconnect = Backoff()
        options.reconnect?.initialDelay = .milliseconds(1)
        let (isLost, lost) = AsyncStream.makeStream(of: Void.self)
        var handlers = WebSocket.Handlers()
        handlers.error = { if !$0.isFatal { lost.yield() } }
        handlers.reconnect = { _, next in
            next.url = EchoServer.shared.url("echo")
            return true
        }
        let socket = try await WebSocket.connect(
            EchoServer.shared.url("abort"), options: options, handlers: handlers)
        for await _ in isLost { break }
        let text = String(repeating: "x", count: 2000)
        try await socket.send(text)
        #expect(try await socket.receive() == .text(text))
        try await socket.close()
    }
}
