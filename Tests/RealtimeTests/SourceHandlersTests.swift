import Dispatch
import Foundation
import Glibc
import RealtimeFoundation
import Synchronization
import Testing

private let server = StreamServer.shared

private func pollOptions() -> LongPoll.Options {
    var options = LongPoll.Options()
    options.cursor = .headerID
    options.headers = [("Authorization", "Bearer good")]
    return options
}

/// Blocks a handler until a test has done what must not wait for it.
private final class Block: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)

    func wait() { semaphore.wait() }
    func end() { semaphore.signal() }
}

/// An app's class, as iOS programs have them.
@MainActor private final class Model {
    var rows: [String] = []
    var errors = 0
    private let source: EventSource
    private let poll: LongPoll
    let (seen, continuation) = AsyncStream.makeStream(of: String.self)

    init() throws {
        source = try EventSource(server.url("events/2"), start: false)
        poll = try LongPoll(server.url("poll/1"), options: pollOptions(), start: false)
    }

    func start() throws {
        source.onOpen { [weak self] in self?.note("open") }
        source.onError { [weak self] _ in self?.errors += 1 }
        source.onMessage { [weak self] id, _, _ in self?.note("message \(id)") }
        source.addEventListener("odd") { [weak self] id, _, _ in self?.note("odd \(id)") }
        poll.onMessage { [weak self] in self?.note("poll \($0.id)") }
        try source.start()
        try poll.start()
    }

    private func note(_ row: String) {
        MainActor.assertIsolated()
        rows.append(row)
        continuation.yield(row)
    }
}

/// Where the handlers of event sources and long polls run, and what they do to others.
@Suite(.timeLimit(.minutes(5))) struct SourceHandlersTests {
    @Test @MainActor func handlersOfAMainActorClassRunThere() async throws {
        let model = try Model()
        try model.start()
        var missing: Set = ["open", "odd 1", "message 2", "poll 1"]
        for await row in model.seen {
            missing.remove(row)
            if missing.isEmpty { break }
        }
        #expect(model.rows.contains("odd 1"))
    }

    /// Other clients of the loop connect, and their time limits count, while a handler blocks.
    @Test func aSlowHandlerDelaysNobodyElse() async throws {
        var options = EventSource.Options()
        options.executor = .queue(DispatchQueue(label: "handlers"))
        let source = try EventSource(server.url("events/2"), options: options)
        let (called, continuation) = AsyncStream.makeStream(of: Void.self)
        let block = Block()
        source.onAny { _ in
            continuation.yield()
            block.wait()
        }
        for await _ in called { break }
        let socket = try await WebSocket.connect(EchoServer.shared.url("echo"))
        try await socket.close()
        var limited = REST.Options()
        limited.attemptTimeout = .milliseconds(20)
        limited.attempts = 1
        let rest = try REST(RESTServer.shared.url, options: limited)
        let failure = await #expect(throws: REST.Failure.self) { try await rest.get("slow/600000") }
        #expect(failure?.code == .timeout)
        source.close()
        block.end()
    }

    @Test func aSlowHandlerOfALongPollDelaysNobodyElse() async throws {
        var options = pollOptions()
        options.executor = .queue(DispatchQueue(label: "handlers"))
        let poll = try LongPoll(server.url("poll/2"), options: options)
        let (called, continuation) = AsyncStream.makeStream(of: Void.self)
        let block = Block()
        poll.onMessage { _ in
            continuation.yield()
            block.wait()
        }
        for await _ in called { break }
        let socket = try await WebSocket.connect(EchoServer.shared.url("echo"))
        try await socket.close()
        poll.close()
        block.end()
    }

    /// A handler that falls behind slows the server down, and misses nothing.
    @Test func handlersThatFallBehindGetEveryEvent() async throws {
        var options = EventSource.Options()
        options.maxBufferedEvents = 4
        options.executor = .queue(DispatchQueue(label: "handlers"))
        let source = try EventSource(server.url("events/2000"), options: options)
        let (seen, continuation) = AsyncStream.makeStream(of: String.self)
        source.onAny { continuation.yield($0.id) }
        var count = 0
        for await id in seen {
            count += 1
            guard id == String(count) else { break }
            if count == 2000 { break }
        }
        #expect(count == 2000)
        source.close()
    }

    /// The program may end when `close` has returned.
    @Test(arguments: [true, false]) func idsAreInTheFileWhenCloseReturns(
        inHandler: Bool
    ) async throws {
        let path = "/tmp/realtime_tests_close.\(getpid()).\(inHandler)"
        defer { for name in [path, path + ".lock"] { unlink(name) } }
        var options = EventSource.Options()
        options.idFile = path
        options.storeKey = "mine"
        options.executor = .queue(DispatchQueue(label: "handlers"))
        let source = try EventSource(server.url("events/100"), options: options)
        let (seen, continuation) = AsyncStream.makeStream(of: String.self)
        let block = Block()
        source.onAny { [weak source] event in
            if inHandler, event.id == "60" { source?.close() }
            continuation.yield(event.id)
            // The handler of the 61st has begun, so the 60th is processed.
            if !inHandler, event.id == "61" { block.wait() }
        }
        for await id in seen where id == (inHandler ? "60" : "61") { break }
        if !inHandler { source.close() }
        let stored = try String(contentsOfFile: path, encoding: .utf8)
        block.end()
        #expect(stored.split(whereSeparator: \.isWhitespace).contains("60"))
    }

    /// An event's id is stored when all of its handlers have returned.
    @Test func anIDWaitsForEachHandlerOfItsEvent() async throws {
        let path = "/tmp/realtime_tests_handlers.\(getpid())"
        defer { for name in [path, path + ".lock"] { unlink(name) } }
        var options = EventSource.Options()
        options.idFile = path
        options.storeKey = "mine"
        options.executor = .queue(DispatchQueue(label: "handlers"))
        let source = try EventSource(server.url("events/9"), options: options)
        let (seen, continuation) = AsyncStream.makeStream(of: String.self)
        let block = Block()
        // The listener runs before `onAny`, which has the event that the block ends at.
        source.addEventListener("odd") { id, _, _ in continuation.yield(id) }
        source.onAny { event in if event.id == "3" { block.wait() } }
        for await id in seen where id == "3" { break }
        source.close()
        // The third event's second handler has not returned.
        let words = try String(contentsOfFile: path, encoding: .utf8)
            .split(whereSeparator: \.isWhitespace)
        block.end()
        #expect(words.contains("2") && !words.contains("3"))
    }
}
