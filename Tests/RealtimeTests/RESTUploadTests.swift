import Realtime
import Synchronization
import Testing

/// Bodies that are produced while they are sent.
struct RESTUploadTests {
    private typealias Pieces = AsyncThrowingStream<[UInt8], any Error>

    private struct Broken: Error {}

    private func rest() throws -> REST {
        var options = REST.Options.patient
        options.backoff.initialDelay = .milliseconds(2)
        return try REST(RESTServer.shared.url, options: options)
    }

    @Test(arguments: [nil, 200_006])
    func piecesOfAnySize(length: Int?) async throws {
        let (pieces, feed) = Pieces.makeStream()
        feed.yield(Array("abc".utf8))
        feed.yield([])
        feed.yield([UInt8](repeating: UInt8(ascii: "x"), count: 200_000))
        let later = Task {
            try await rest().put("echo", body: .pieces(length: length, pieces))
        }
        feed.yield(Array("def".utf8))
        feed.finish()
        let text = try await later.value.text
        #expect(text.contains("\"abcxxx") && text.contains("xxxdef\""))
        #expect(text.contains("chunked") == (length == nil))
    }

    @Test func takenPiecesAreNotSentAgain() async throws {
        let (pieces, feed) = Pieces.makeStream()
        feed.yield(Array("abc".utf8))
        feed.finish()
        let refused = await #expect(throws: REST.Failure.self) {
            try await rest().put("flaky/taken-once/1", body: .pieces(pieces))
        }
        #expect(refused?.code == .httpStatus && refused?.attempts == 1)
    }

    @Test func aSequenceThatFailsEndsTheRequest() async throws {
        let (pieces, feed) = Pieces.makeStream()
        feed.yield(Array("abc".utf8))
        feed.finish(throwing: Broken())
        let failure = await #expect(throws: REST.Failure.self) {
            try await rest().put("echo", body: .pieces(pieces))
        }
        #expect(failure?.code == .cancelled)
    }

    /// Excess bytes would become the server's next request.
    @Test(arguments: [2, 5]) func aBodyHasThePromisedLength(length: Int) async throws {
        let (pieces, feed) = Pieces.makeStream()
        feed.yield(Array("abc".utf8))
        feed.finish()
        let failure = await #expect(throws: REST.Failure.self) {
            try await rest().put("echo", body: .pieces(length: length, pieces))
        }
        #expect(failure?.code == .invalidArgument, "\(String(describing: failure))")
    }

    @Test func theSequenceEndsWithTheRequest() async throws {
        let (pieces, feed) = Pieces.makeStream()
        let (ends, end) = AsyncStream.makeStream(of: Void.self)
        feed.onTermination = { _ in end.finish() }
        feed.yield(Array("abc".utf8))
        let task = Task { try await rest().put("echo", body: .pieces(pieces)) }
        task.cancel()
        await #expect(throws: CancellationError.self) { _ = try await task.value }
        for await _ in ends {}
    }
}
