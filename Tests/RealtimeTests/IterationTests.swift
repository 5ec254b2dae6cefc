import Realtime
import Testing

private let server = StreamServer.shared

private func pollOptions() -> LongPoll.Options {
    var options = LongPoll.Options()
    options.cursor = .headerID
    options.interval = .milliseconds(10)
    options.headers = [("Authorization", "Bearer good")]
    return options
}

/// Iterating over objects that were not started, and cancelling one of several iterations. For
/// WebSockets see WebSocketReceivingTests, for event sources also EventSourceTests.
@Suite(.timeLimit(.minutes(5))) struct IterationTests {
    // MARK: Objects that were not started

    @Test func iteratingStartsAnEventSource() async throws {
        let source = try EventSource(server.url("events/2"), start: false)
        for try await event in source {
            #expect(event.id == "1")
            break
        }
        // The program may do so, too, because the iteration may be in another task; but once.
        try source.start()
        #expect(throws: RealtimeError.self) { try source.start() }
        source.close()
    }

    @Test func iteratingStartsALongPoll() async throws {
        let poll = try LongPoll(server.url("poll/2"), options: pollOptions(), start: false)
        for try await message in poll {
            #expect(message.id == "1")
            break
        }
        try poll.start()
        #expect(throws: RealtimeError.self) { try poll.start() }
        poll.close()
    }

    @Test func aStartThatFailsIsThrownByEachIteration() async throws {
        var options = LongPoll.Options()
        options.cursor = .validators
        options.lastEventID = "no cursor"
        let poll = try LongPoll(server.url("poll/2"), options: options, start: false)
        for _ in 0..<2 {
            let error = await #expect(throws: RealtimeError.self) {
                for try await _ in poll {}
            }
            #expect(error?.code == .invalidArgument)
        }
        #expect(throws: RealtimeError.self) { try poll.start() }
    }

    @Test func iteratingWhatWasClosedBeforeItsStartEnds() async throws {
        let source = try EventSource(server.url("events/2"), start: false)
        source.close()
        for try await _ in source { Issue.record("an event") }
        let poll = try LongPoll(server.url("poll/2"), options: pollOptions(), start: false)
        poll.close()
        for try await _ in poll { Issue.record("a message") }
    }

    // MARK: Cancelling

    /// Cancels one of two tasks that iterate, then the other.
    private func cancelTwo<Source: AsyncSequence & Sendable>(
        of source: Source, isClosed: () -> Bool
    ) async {
        let (began, continuation) = AsyncStream.makeStream(of: Void.self)
        let tasks = (0..<2).map { _ in
            Task {
                var iterator = source.makeAsyncIterator()
                continuation.yield()
                while try await iterator.next() != nil {}
            }
        }
        var events = began.makeAsyncIterator()
        for _ in tasks { await events.next() }
        tasks[0].cancel()
        await #expect(throws: CancellationError.self) { try await tasks[0].value }
        #expect(!isClosed())
        tasks[1].cancel()
        await #expect(throws: CancellationError.self) { try await tasks[1].value }
        #expect(isClosed())
    }

    @Test func theOthersKeepAnEventSource() async throws {
        let source = try EventSource(server.url("events/1"))
        await cancelTwo(of: source) { source.readyState == .closed }
    }

    @Test func theOthersKeepALongPoll() async throws {
        let poll = try LongPoll(server.url("poll/1"), options: pollOptions())
        await cancelTwo(of: poll) { poll.state == .closed }
    }

    @Test func theOthersKeepASpreadbot() async throws {
        var config = Spreadbot.Configuration(baseURL: server.url(""))
        config.maxDelay = .milliseconds(10)
        config.transports = [.sse]
        let spreadbot = try Spreadbot(config: config)
        let messages = try spreadbot.messages(path: "events/3")
        let (seen, continuation) = AsyncStream.makeStream(of: Int.self)
        let tasks = (0..<2).map { number in
            Task {
                var iterator = messages.makeAsyncIterator()
                continuation.yield(0)
                while let message = try await iterator.next() {
                    if number == 1 { continuation.yield(Int(message.id) ?? 0) }
                }
            }
        }
        var ids = seen.makeAsyncIterator()
        // Both may have begun before either has a message, or not.
        var beginnings = 0
        while beginnings < 2, let id = await ids.next() { beginnings += id == 0 ? 1 : 0 }
        tasks[0].cancel()
        await #expect(throws: CancellationError.self) { try await tasks[0].value }
        let last = Int(spreadbot.lastEventID) ?? 0
        while let id = await ids.next(), id <= last {}
        #expect(spreadbot.state != .disconnected)
        tasks[1].cancel()
        await #expect(throws: CancellationError.self) { try await tasks[1].value }
        for await state in spreadbot.states where state == .disconnected { break }
    }

    @Test func theOthersKeepTheEventsOfAChannel() async throws {
        let app = try await PusherApp()
        let pusher = app.pusher()
        let channel = pusher.subscribe("channel")
        let events = channel.events("news")
        pusher.connect()
        try await channel.subscribed()
        let (seen, continuation) = AsyncStream.makeStream(of: Int64.self)
        let tasks = (0..<2).map { _ in
            Task {
                continuation.yield(-1)
                for await event in events { continuation.yield(event.json?.integerValue ?? 0) }
            }
        }
        var numbers = seen.makeAsyncIterator()
        for _ in tasks { #expect(await numbers.next() == -1) }
        tasks[0].cancel()
        await tasks[0].value
        for number: Int64 in 1...3 {
            try await app.publish("channel", "news", .integer(number))
            #expect(await numbers.next() == number)
        }
        tasks[1].cancel()
        await tasks[1].value
    }

    @Test func theOthersKeepTheSequencesOfAMeteorClient() async throws {
        let box = try ModelBox(ModelBox.players)
        let players = try box.client.collection("players")
        let (seen, continuation) = AsyncStream.makeStream(of: String.self)
        func twice<Elements: AsyncSequence & Sendable>(
            _ name: String, _ elements: Elements
        ) -> [Task<Void, any Error>] {
            (0..<2).map { number in
                Task {
                    continuation.yield("begin")
                    for try await _ in elements { continuation.yield("\(name) \(number)") }
                }
            }
        }
        let tasks = try [
            twice("results", players.results()), twice("changes", players.changes()),
            twice("objects", box.models.objectChanges),
            twice("models", box.models.changes(Player.self)),
        ]
        var events = seen.makeAsyncIterator()
        var beginnings = 0
        while beginnings < 8 { if await events.next() == "begin" { beginnings += 1 } }
        for pair in tasks {
            pair[0].cancel()
            try await pair[0].value
        }
        try players.insert(["_id": "new"])
        var missing: Set = ["results 1", "changes 1", "objects 1", "models 1"]
        while !missing.isEmpty, let event = await events.next() { missing.remove(event) }
        box.client.close()
        for pair in tasks { try await pair[1].value }
    }

    /// Each iteration has all results, however many there are.
    @Test func eachIterationOfResultsIsIndependent() async throws {
        let box = try ModelBox()
        let players = try box.client.collection("players")
        let results = try players.results(options: ["sort": ["n": 1]])
        var (one, other) = (results.makeAsyncIterator(), results.makeAsyncIterator())
        #expect(try await one.next() == [])
        for number in [3, 1, 2] { try players.insert(["n": .number(Double(number))]) }
        while try await one.next()?.count != 3 {}
        #expect(try await other.next()?.map { $0["n"] } == [1, 2, 3])
        // Many leave at once, and others move.
        let writes = try box.client.batch { batch in
            for number in 0..<40 {
                batch.insert("players", ["_id": .string("p\(number)"), "n": 9])
            }
        }
        #expect(writes.calls.count == 40)
        #expect(try await one.next()?.count == 43)
        try box.client.batch { batch in
            for number in 0..<40 { batch.remove("players", .string("p\(number)")) }
            for document in try players.find(["n": 1]) {
                batch.update("players", document.id, ["$set": ["n": 5]])
            }
        }
        #expect(try await one.next()?.map { $0["n"] } == [2, 3, 5])
        box.client.close()
        #expect(try await one.next() == nil)
    }

    /// No piece of a body is lost when one of its readers is cancelled.
    @Test func theOthersGetTheRestOfABody() async throws {
        let rest = try REST(RESTServer.shared.url)
        let stream = try await rest.stream(REST.Request("GET", "bytes/3000000"))
        let (counts, continuation) = AsyncStream.makeStream(of: Int.self)
        let tasks = (0..<2).map { _ in
            Task {
                for try await piece in stream { continuation.yield(piece.count) }
            }
        }
        var taken = counts.makeAsyncIterator()
        var sum = await taken.next() ?? 0
        tasks[0].cancel()
        _ = await tasks[0].result
        try await tasks[1].value
        continuation.finish()
        while let count = await taken.next() { sum += count }
        #expect(sum == 3_000_000)
    }
}
