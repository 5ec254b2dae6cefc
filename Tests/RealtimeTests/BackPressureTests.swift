import Testing

@testable import Realtime

/// Waits until the loop has had that many turns since now.
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

@Suite(.timeLimit(.minutes(1))) struct BackPressureTests {
    /// All of them fit into one read; without the pause they would all be in the box at once.
    @Test func aFullMailboxStopsReceiving() async throws {
        var options = WebSocket.Options()
        options.maxBufferedMessages = 4
        let socket = try await WebSocket.connect(
            EchoServer.shared.url("count/3000"), options: options)
        while !socket.mailbox.isPaused { try await turns(1, of: .shared) }
        try await turns(20, of: .shared)
        #expect(socket.mailbox.count == 4)
        var received = 0
        for try await message in socket.messages {
            #expect(message == .text(String(received)))
            #expect(socket.mailbox.count <= 4)
            received += 1
        }
        #expect(received == 3000)
    }

    @Test func aFullMailboxOfPiecesStopsReceiving() async throws {
        var options = WebSocket.Options()
        options.maxBufferedBytes = 10
        options.deliversPieces = true
        let socket = try await WebSocket.connect(
            EchoServer.shared.url("count/1000"), options: options)
        while !socket.pieceBox.isPaused { try await turns(1, of: .shared) }
        try await turns(20, of: .shared)
        #expect(socket.pieceBox.count <= 10)
        var received = 0
        for try await piece in socket.pieces {
            #expect(piece.bytes == Array(String(received).utf8) && piece.isFirst && piece.isLast)
            received += 1
        }
        #expect(received == 1000)
    }
}
