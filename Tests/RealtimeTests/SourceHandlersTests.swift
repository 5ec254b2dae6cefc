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

/// Where the handlers of event sources, long polls and WebSockets run, and what they do to others.
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
        try await expectOthersToGoOn()
        source.close()
        block.end()
    }

    /// Another client of the loop connects, and the time limit of a third one ends its request.
    private func expectOthersToGoOn(_ location: SourceLocation = #_sourceLocation) async throws {
        var patient = WebSocket.Options()
        patient.openTimeout = nil
        let echo = EchoServer.shared.url("echo")
        let socket = try await WebSocket.connect(echo, options: patient)
        try await socket.close()
        var limited = REST.Options()
        limited.attemptTimeout = .milliseconds(20)
        limited.deadline = nil
        limited.attempts = 1
        let rest = try REST(RESTServer.shared.url, options: limited)
        let failure = await #expect(throws: REST.Failure.self, sourceLocation: location) {
            try await rest.get("slow/600000")
        }
        #expect(failure?.code == .timeout, sourceLocation: location)
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
        try await expectOthersToGoOn()
        poll.close()
        block.end()
    }

    @Test func aSlowHandlerOfAWebSocketDelaysNobodyElse() async throws {
        var options = WebSocket.Options()
        options.executor = .queue(DispatchQueue(label: "handlers"))
        let (called, continuation) = AsyncStream.makeStream(of: String.self)
        let block = Block()
        var handlers = WebSocket.Handlers()
        handlers.message = { _, bytes in
            continuation.yield(bytes.withUnsafeBytes { String(decoding: $0, as: UTF8.self) })
            block.wait()
        }
        handlers.close = { continuation.yield("\($0.code)") }
        let socket = try WebSocket(
            EchoServer.shared.url("count/2"), options: options, handlers: handlers)
        try socket.start()
        var seen = called.makeAsyncIterator()
        #expect(await seen.next() == "0")
        try await expectOthersToGoOn()
        try socket.beginClose()
        _ = try await socket.waitUntilClosed()
        block.end()
        block.end()
        // The second message may have come before the close.
        var last = await seen.next()
        if last == "1" { last = await seen.next() }
        #expect(last == "\(CloseCode.normal)")
    }

    /// The functions that a source asks before an attempt may take time.
    @Test func slowHeadersDelayNobodyElse() async throws {
        let queue = DispatchQueue(label: "questions")
        let (asked, continuation) = AsyncStream.makeStream(of: Int.self)
        let block = Block()
        var options = EventSource.Options()
        options.executor = .queue(queue)
        options.headerProvider = { attempt in
            dispatchPrecondition(condition: .onQueue(queue))
            continuation.yield(attempt)
            block.wait()
            return [("Authorization", "Bearer good")]
        }
        options.onRequest = { attempt, next in
            dispatchPrecondition(condition: .onQueue(queue))
            next.url = server.url("tokens")
            return true
        }
        let source = try EventSource(server.url("refuse"), options: options)
        for await attempt in asked {
            #expect(attempt == 1)
            break
        }
        try await expectOthersToGoOn()
        #expect(source.readyState == .connecting)
        block.end()
        for try await event in source {
            #expect(event.id == "1")
            break
        }
        source.close()
        // The stream ends with its event, so the next attempt may have asked again.
        block.end()
    }

    @Test func slowAttemptsOfALongPollDelayNobodyElse() async throws {
        let (asked, continuation) = AsyncStream.makeStream(of: Void.self)
        let (answers, answer) = AsyncStream.makeStream(of: Bool.self)
        var options = pollOptions()
        options.onRequest = { @MainActor _, _ in
            MainActor.assertIsolated()
            continuation.yield()
            for await isWanted in answers { return isWanted }
            return false
        }
        let poll = try LongPoll(server.url("poll/2"), options: options)
        for await _ in asked { break }
        try await expectOthersToGoOn()
        answer.yield(true)
        var iterator = poll.makeAsyncIterator()
        #expect(try await iterator.next()?.id == "1")
        // The next poll is declined.
        answer.yield(false)
        #expect(try await iterator.next() == nil)
        #expect(poll.state == .closed)
    }

    @Test func aSlowReconnectHandlerDelaysNobodyElse() async throws {
        let echo = EchoServer.shared
        let (asked, continuation) = AsyncStream.makeStream(of: Void.self)
        let (answers, answer) = AsyncStream.makeStream(of: String.self)
        var options = WebSocket.Options()
        options.reconnect = Backoff()
        options.reconnect?.initialDelay = .milliseconds(1)
        var handlers = WebSocket.Handlers()
        handlers.reconnect = { _, next in
            continuation.yield()
            for await url in answers {
                next.url = url
                break
            }
            return true
        }
        let socket = try await WebSocket.connect(
            echo.url("abort"), options: options, handlers: handlers)
        for await _ in asked { break }
        try await expectOthersToGoOn()
        #expect(socket.state == .waiting)
        answer.yield(echo.url("count/1"))
        #expect(try await socket.receive() == .text("0"))
        try await socket.close()
    }

    /// They end the client, which reports them.
    @Test func faultsInAnswersAreReported() async throws {
        let cause = RealtimeError(.cancelled, "the user went away")
        var options = EventSource.Options()
        options.headerProvider = { _ in throw cause }
        let source = try EventSource(server.url("events/1"), options: options)
        var error = await #expect(throws: RealtimeError.self) {
            for try await _ in source { Issue.record("an event") }
        }
        #expect(error?.code == .cancelled && error?.message == cause.message)
        #expect(source.readyState == .closed)

        var polls = pollOptions()
        polls.onRequest = { _, next in
            next.url = "ftp://127.0.0.1"
            return true
        }
        let poll = try LongPoll(server.url("poll/1"), options: polls)
        error = await #expect(throws: RealtimeError.self) {
            for try await _ in poll { Issue.record("a message") }
        }
        #expect(error?.code == .unsupportedScheme)

        var reconnecting = WebSocket.Options()
        reconnecting.reconnect = Backoff()
        reconnecting.reconnect?.initialDelay = .milliseconds(1)
        var handlers = WebSocket.Handlers()
        handlers.reconnect = { _, next in
            next.headers = [("X-Two", "a\r\nb")]
            return true
        }
        let socket = try await WebSocket.connect(
            EchoServer.shared.url("abort"), options: reconnecting, handlers: handlers)
        error = await #expect(throws: RealtimeError.self) { try await socket.receive() }
        #expect(error?.code == .invalidHeader)
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
    @Test func idsWerePassedToTheProgramWhenCloseReturns() async throws {
        let stored = Mutex("")
        var options = EventSource.Options()
        options.onStore = { _, id in stored.withLock { $0 = id } }
        options.executor = .queue(DispatchQueue(label: "handlers"))
        let source = try EventSource(server.url("events/100"), options: options)
        let (seen, continuation) = AsyncStream.makeStream(of: (String, Duration).self)
        source.onMessage { [weak source] id, _, _ in
            guard id == "60" else { return }
            let time = ContinuousClock().measure { source?.close() }
            continuation.yield((stored.withLock { $0 }, time))
        }
        for await (id, time) in seen {
            // It waits so long for the loop's thread, which the machine may delay even longer.
            #expect(id == "60" || time >= .milliseconds(500))
            break
        }
    }

    /// The program may end when `close` has returned.
    @Test(arguments: [true, false]) func idsAreInTheFileWhenCloseReturns(
        inHandler: Bool
    ) async throws {
        let path = "/tmp/realtime_tests_close.\(UInt64.random(in: 0...UInt64.max)).\(inHandler)"
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

    /// Events that arrived while the handler ran are not handled any more, so their ids are not
    /// stored. Except for the first one of a stream, events that go to a single handler take a
    /// shorter way through the engine.
    @Test(arguments: ["message", "odd", "any"], [true, false])
    func idsOfEventsThatNobodyGotAreNotStored(handler: String, inFile: Bool) async throws {
        let path = "/tmp/realtime_tests_lost.\(UInt64.random(in: 0...UInt64.max))"
        defer { for name in [path, path + ".lock"] { unlink(name) } }
        var options = EventSource.Options()
        options.executor = .queue(DispatchQueue(label: "handlers"))
        options.reconnectionTime = .seconds(1000)
        let (stored, store) = AsyncStream.makeStream(of: String.self)
        if inFile {
            options.idFile = path
            options.storeKey = "mine"
        } else {
            options.onStore = { _, id in store.yield(id) }
        }
        let source = try EventSource(server.url("events/100"), options: options, start: false)
        let (closed, continuation) = AsyncStream.makeStream(of: String.self)
        let block = Block()
        let count = Mutex(0)
        let handle: @Sendable (String, String, String) -> Void = { [weak source] id, _, _ in
            let number = count.withLock { count in
                count += 1
                return count
            }
            guard number == 5 else { return }
            block.wait()
            source?.close()
            continuation.yield(id)
        }
        switch handler {
        case "message": source.onMessage(handle)
        case "odd": source.addEventListener("odd", handle)
        default: source.onAny { handle($0.id, $0.event, $0.data) }
        }
        // After the end of the stream all events have been delivered.
        let states = source.states
        try source.start()
        var wasOpen = false
        for await state in states {
            if wasOpen, state == .connecting { break }
            wasOpen = state == .open
        }
        #expect(Int(source.lastEventID) ?? 0 >= 100)
        block.end()
        var ids = closed.makeAsyncIterator()
        let last = ["message": "10", "odd": "9", "any": "5"][handler]
        #expect(await ids.next() == last)
        if inFile {
            let words = try String(contentsOfFile: path, encoding: .utf8)
                .split(whereSeparator: \.isWhitespace)
            #expect(words.last.map { String($0) } == last)
        } else {
            // It may have been called with an earlier one.
            for await id in stored where Int(id) ?? 0 >= Int(last ?? "") ?? 0 {
                #expect(id == last)
                break
            }
        }
    }

    /// An event's id is stored when all of its handlers have returned.
    @Test func anIDWaitsForEachHandlerOfItsEvent() async throws {
        let path = "/tmp/realtime_tests_handlers.\(UInt64.random(in: 0...UInt64.max))"
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
