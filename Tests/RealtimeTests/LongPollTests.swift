import Realtime
import Synchronization
import Testing

private let server = StreamServer.shared

private func options(
    _ change: (inout LongPoll.Options) -> Void = { _ in }
) -> LongPoll.Options {
    var options = LongPoll.Options()
    options.cursor = .headerID
    options.interval = .milliseconds(10)
    options.headers = [("Authorization", "Bearer good")]
    change(&options)
    return options
}

@Suite(.timeLimit(.minutes(5))) struct LongPollTests {
    @Test func messagesAreIterated() async throws {
        let poll = try LongPoll(server.url("poll/5"), options: options { $0.lastEventID = "2" })
        var count = 2
        for try await message in poll {
            count += 1
            #expect(message.id == String(count) && message.hadID)
            #expect(message.text == "message \(count)")
            #expect(message.contentType.hasPrefix("text/plain"))
            if count == 5 { break }
        }
        poll.close()
        #expect(poll.state == .closed)
        for try await _ in poll { Issue.record("a message after the end") }
    }

    @Test func noPollIsMadeUntilMessagesAreTaken() async throws {
        let asked = Mutex(0)
        let poll = try LongPoll(
            server.url("poll/100"),
            options: options {
                $0.maxBufferedMessages = 2
                $0.headerProvider = { _ in
                    asked.withLock { $0 += 1 }
                    return []
                }
            })
        var count = 0
        for try await message in poll {
            count += 1
            #expect(message.id == String(count))
            // One is taken, two are in the mailbox, one waits after them. Once the last message has
            // arrived, more polls follow.
            let asked = asked.withLock { $0 }
            #expect(asked <= count + 4 || count > 96, "\(asked) polls for \(count) messages")
            if count == 100 { break }
        }
    }

    @Test func handlersAreCalled() async throws {
        let (calls, continuation) = AsyncStream.makeStream(of: String.self)
        let poll = try LongPoll(server.url("poll/2"), options: options(), start: false)
        poll.onOpen { _ in continuation.yield("open") }
        poll.onMessage { continuation.yield($0.text) }
        poll.onError { continuation.yield("\($0)") }
        try poll.start()
        #expect(throws: RealtimeError.self) { try poll.start() }
        var iterator = calls.makeAsyncIterator()
        for expected in ["open", "message 1", "message 2"] {
            #expect(await iterator.next() == expected)
        }
        try poll.restart()
        poll.close()
        #expect(throws: RealtimeError.self) { try poll.restart() }
    }

    @Test func credentialsAreFetched() async throws {
        let poll = try LongPoll(
            server.url("poll/1"),
            options: options {
                $0.headers = []
                $0.credentials = { response in
                    #expect(response.status == 401)
                    await Task.yield()
                    return [("Authorization", "Bearer good")]
                }
            })
        var iterator = poll.makeAsyncIterator()
        #expect(try await iterator.next()?.text == "message 1")
    }

    @Test func fatalFailuresAreThrown() async throws {
        for (path, code) in [("refuse", RealtimeError.Code.httpStatus), ("gone", .gone)] {
            let poll = try LongPoll(
                server.url(path), options: options { $0.failWhenGone = true })
            let error = await #expect(throws: RealtimeError.self) {
                for try await _ in poll {}
            }
            #expect(error?.code == code)
            #expect(poll.state == .closed)
        }
    }

    @Test func aDeletedChannelResetsTheCursor() async throws {
        let poll = try LongPoll(server.url("gone"), options: options())
        let (errors, continuation) = AsyncStream.makeStream(of: LongPoll.ErrorEvent.self)
        poll.onError { continuation.yield($0) }
        var iterator = errors.makeAsyncIterator()
        for _ in 0..<2 {
            let error = try #require(await iterator.next())
            #expect(error.error.code == .gone && !error.isFatal && error.httpStatus == 410)
            #expect(error.retryIn == .milliseconds(10))
        }
    }

    @Test func cancellingATaskCloses() async throws {
        let poll = try LongPoll(server.url("poll/0"), options: options())
        let task = Task {
            for try await _ in poll {}
        }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(poll.state == .closed)
    }

    @Test func badOptionsAreRefused() {
        for change: @Sendable (inout LongPoll.Options) -> Void in [
            { $0.interval = .milliseconds(-1) }, { $0.maxBodyBytes = -1 },
            { $0.headers = [("Accept", "text/event-stream")] },
            { $0.headers = [("Expect", "100-continue")] }, { $0.safeHeaders = ["a b"] },
            { $0.maxBufferedMessages = 0 }, { $0.cursor = .queryID(parameter: "") },
            { $0.lastEventID = "\n" },
            {
                $0.cursor = .validators
                $0.lastEventID = "any"
            },
        ] {
            #expect(throws: RealtimeError.self) {
                try LongPoll(server.url("poll/1"), options: options(change))
            }
        }
        #expect(throws: RealtimeError.self) { try LongPoll("ws://localhost") }
    }
}
