import Realtime
import Testing

/// Code of a user interface: without a word about actors in its handlers.
@MainActor private final class Screen {
    let spreadbot: Spreadbot
    var lines: [String] = []
    var isSent = false
    private let (calls, continuation) = AsyncStream.makeStream(of: Void.self)

    init(_ executor: Spreadbot.Executor?) throws {
        var config = Spreadbot.Configuration.patient(StreamServer.shared.url(""))
        if let executor { config.executor = executor }
        spreadbot = try Spreadbot(config: config)
    }

    func show() {
        spreadbot.onOpen {
            self.add("open")
            self.greet()
        }
        spreadbot.onTransport { self.add($0.map { "by \($0)" } ?? "none") }
        spreadbot.onError { self.add($0.description) }
        spreadbot.onTokens { access, _ in self.add(access) }
        spreadbot.onMessage { id, event, data in
            self.add(event + " " + String(decoding: data, as: UTF8.self))
            self.spreadbot.closeConnection()
        }
        spreadbot.onDisconnected { self.add($0 == nil ? "over" : "failed") }
        spreadbot.establishConnection(path: "echo")
    }

    private func greet() {
        spreadbot.sendMessageString(message: "hello") { result in
            // Before the echo, or after it.
            if case .success = result { self.isSent = true }
        }
    }

    private func add(_ line: String) {
        lines.append(line)
        continuation.yield()
    }

    /// For as many calls.
    func wait(_ count: Int) async {
        var left = count
        for await _ in calls {
            left -= 1
            if left == 0 { return }
        }
    }
}

private actor Counter {
    private var count = 0
    private let (calls, continuation) = AsyncStream.makeStream(of: Int.self)

    func count(_ spreadbot: Spreadbot) {
        spreadbot.onMessage { _, _, _ in
            self.count += 1
            self.continuation.yield(self.count)
        }
    }

    func wait(for last: Int) async {
        for await count in calls where count == last { return }
    }
}

@Suite(.timeLimit(.minutes(5))) struct SpreadbotHandlersTests {
    /// Also when all others run elsewhere.
    @Test(arguments: [nil, Spreadbot.Executor.loop, .actor(Counter())])
    @MainActor func handlersOfTheMainActorRunThere(executor: Spreadbot.Executor?) async throws {
        let screen = try Screen(executor)
        screen.show()
        await screen.wait(5)
        #expect(screen.lines == ["by webSocket", "open", "echo hello", "none", "over"])
    }

    @Test func handlersRunOnTheMainActorByDefault() async throws {
        let spreadbot = try Spreadbot(config: .patient(StreamServer.shared.url("")))
        let (calls, continuation) = AsyncStream.makeStream(of: String.self)
        // Without isolation: each traps elsewhere.
        spreadbot.onOpen { transport, _, _ in
            MainActor.assumeIsolated { _ = continuation.yield("\(transport)") }
        }
        spreadbot.onMessage { _, _, data in
            let text = String(decoding: data, as: UTF8.self)
            MainActor.assumeIsolated { _ = continuation.yield(text) }
        }
        try await spreadbot.connect(path: "echo")
        spreadbot.sendMessageString(message: "hello") { _ in MainActor.assertIsolated() }
        var iterator = calls.makeAsyncIterator()
        #expect(await iterator.next() == "webSocket")
        #expect(await iterator.next() == "hello")
        let rest = SpreadbotREST(config: ["baseURL": RESTServer.shared.url])
        let answer = await withCheckedContinuation { answered in
            rest.getData(path: "status/204") { answer in
                MainActor.assertIsolated()
                answered.resume(returning: answer.status)
            } onError: { _ in
                answered.resume(returning: -1)
            }
        }
        #expect(answer == 204)
    }

    @Test func handlersOfAnActorRunThere() async throws {
        var config = Spreadbot.Configuration(baseURL: StreamServer.shared.url(""))
        config.maxBufferedMessages = 2
        config.transports = [.sse]
        config.maxDelay = .milliseconds(10)
        let spreadbot = try Spreadbot(config: config)
        let counter = Counter()
        await counter.count(spreadbot)
        try await spreadbot.connect(path: "events/5")
        // More than may wait for it.
        await counter.wait(for: 40)
    }
}
