import Realtime
import Synchronization
import Testing

@Suite struct SubscriptionLoaderTests {
    /// What handlers received, in order.
    private final class Log: Sendable {
        let lines = Mutex<[String]>([])

        func add(_ line: String) { lines.withLock { $0.append(line) } }
        var text: String { lines.withLock { $0.joined(separator: " ") } }
    }

    /// Handlers of these clients have run when a wait for the same ends.
    private func onTheLoop() -> DDPClient.Options {
        var options = DDPClient.Options()
        options.executor = .loop
        return options
    }

    @Test(.timeLimit(.minutes(5))) func handlersRunAtOnceWhenReady() async throws {
        let app = try await MeteorApp()
        let client = try DDPClient(app.url, options: onTheLoop())
        let log = Log()
        let loader = try SubscriptionLoader(client)
        // Nothing to wait for.
        try loader.whenReady { log.add("empty \($0 == nil)") }
        #expect(log.text == "empty true" && loader.isReady)
        log.lines.withLock { $0 = [] }
        // As Meteor iOS's own.
        try loader.whenReady { log.add("empty true") }
        #expect(log.text == "empty true")

        try loader.add("all")
        #expect(!loader.isReady)
        try loader.whenReady { log.add("first \($0 == nil)") }
        try loader.whenReady { log.add("second \($0 == nil)") }
        #expect(log.text == "empty true")
        try client.connect()
        try await loader.ready()
        #expect(log.text == "empty true first true second true")
        #expect(loader.isReady && loader.error == nil)
        #expect(try client.collection("players").count == 2)
        // Now all are ready, also those that others use.
        try loader.whenReady { log.add("third \($0 == nil)") }
        #expect(log.text.hasSuffix("third true"))
        let other = try SubscriptionLoader(client)
        try other.add(DDPPublication("all"))
        #expect(other.isReady)
        try other.whenReady { _ in log.add("other") }
        #expect(log.text.hasSuffix("other"))
    }

    @Test(.timeLimit(.minutes(5))) func theFirstErrorIsKept() async throws {
        let app = try await MeteorApp()
        try await app.control("publication", ["name": "bad", "error": ["error": "no-entry"]])
        let client = try app.client(onTheLoop())
        let loader = try SubscriptionLoader(client)
        try loader.add("bad")
        try loader.add("all")
        try loader.add("missing")
        let error = await #expect(throws: DDPError.self) { try await loader.ready() }
        #expect(error?.code == "no-entry" && loader.error?.code == "no-entry")
        #expect(loader.isReady)
        #expect(try client.collection("players").count == 2)
        let log = Log()
        try loader.whenReady { log.add($0?.code ?? "none") }
        #expect(log.text == "no-entry")
        await #expect(throws: DDPError.self) {
            try await client.load([DDPPublication("all"), DDPPublication("missing")])
        }
    }

    @Test(.timeLimit(.minutes(5))) func closingReleasesTheSubscriptions() async throws {
        let app = try await MeteorApp()
        var options = DDPClient.Options()
        options.unusedSubscriptionTime = .zero
        let client = try app.client(options)
        let players = try client.collection("players")
        let loader = try await client.load([DDPPublication("all")])
        #expect(players.count == 2)
        var results = try players.results().makeAsyncIterator()
        loader.close()
        loader.close()
        while let documents = try await results.next(), !documents.isEmpty {}
        #expect(throws: RealtimeError.self) { try loader.add("all") }
        #expect(throws: RealtimeError.self) { try loader.whenReady { _ in } }
        #expect(loader.isReady)

        // One that is closed while it waits ends the wait.
        try await app.control("publication", ["name": "slow", "hold": true])
        let waiting = try SubscriptionLoader(client)
        try waiting.add("slow")
        let wait = Task { try await waiting.ready() }
        waiting.close()
        await #expect(throws: (any Error).self) { try await wait.value }
    }

    /// One that is added before the handlers are called, on their thread, is waited for too.
    @Test(.timeLimit(.minutes(5))) func whatIsAddedMeanwhileIsWaitedFor() async throws {
        let app = try await MeteorApp()
        try await app.control("publication", ["name": "bad", "error": ["error": "no-entry"]])
        try await app.control("publication", ["name": "slow", "hold": true])
        let client = try DDPClient(app.url, options: onTheLoop())
        let loader = try SubscriptionLoader(client)
        let log = Log()
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
        let other = try client.subscribe("bad", keep: .zero) { [unowned loader] error in
            #expect(throws: Never.self) {
                try loader.add("slow")
                try loader.whenReady { log.add("second \($0?.code ?? "")") }
            }
            // After all that the loop has to report now.
            try? Loop.shared.post { continuation.yield() }
        }
        try loader.add("bad")
        try loader.whenReady { log.add("first \($0?.code ?? "")") }
        try client.connect()
        for await _ in stream { break }
        #expect(log.text == "" && !loader.isReady && loader.error?.code == "no-entry")
        loader.close()
        withExtendedLifetime(other) {}
    }

    @Test func aClosedClientHasNoLoaders() throws {
        let client = try DDPClient("ws://127.0.0.1:1")
        let loader = try SubscriptionLoader(client)
        client.close()
        #expect(throws: RealtimeError.self) { try loader.add("all") }
        #expect(throws: RealtimeError.self) { try loader.whenReady { _ in } }
        #expect(throws: RealtimeError.self) { try SubscriptionLoader(client) }
    }
}
