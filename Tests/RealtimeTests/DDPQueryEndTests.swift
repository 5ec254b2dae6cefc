import Realtime
import Synchronization
import Testing

/// Live queries that end by themselves, because their regular expressions take too long.
@Suite struct DDPQueryEndTests {
    private static let selector: EJSON = ["name": ["$regex": "(x+x+)+y"]]

    /// Makes changes that are too much for `selector`.
    private static func overstrain(_ client: DDPClient) throws {
        let text = EJSON.string(String(repeating: "x", count: 300_000))
        _ = try client.batch { batch in
            for _ in 0..<8 { batch.insert("players", ["name": text]) }
        }
    }

    @Test(.timeLimit(.minutes(5))) func iterationsThrow() async throws {
        let client = try DDPClient("ws://127.0.0.1:1")
        let players = try client.collection("players")
        var changes = try players.changes(DDPQueryEndTests.selector).makeAsyncIterator()
        var results = try players.results(DDPQueryEndTests.selector).makeAsyncIterator()
        let models = try DDPModels(client, Player.self)
        var objects = try models.changes(Player.self, DDPQueryEndTests.selector)
            .makeAsyncIterator()
        #expect(try await changes.next()?.count == 0)
        #expect(try await results.next()?.isEmpty == true)
        #expect(try await objects.next()?.count == 0)
        try DDPQueryEndTests.overstrain(client)
        func expectError(_ body: () async throws(RealtimeError) -> Void) async {
            do throws(RealtimeError) {
                try await body()
                Issue.record("the iteration continues")
            } catch {
                #expect(error.code == .invalidArgument && error.message.contains("steps"))
            }
        }
        await expectError { () async throws(RealtimeError) in _ = try await changes.next() }
        await expectError { () async throws(RealtimeError) in _ = try await results.next() }
        await expectError { () async throws(RealtimeError) in _ = try await objects.next() }
        // The client lives on.
        #expect(players.count == 8 && client.status != .failed)
    }

    @Test(.timeLimit(.minutes(5))) func handlersAreNotCalledAnyMore() async throws {
        let client = try DDPClient("ws://127.0.0.1:1")
        let players = try client.collection("players")
        let (ends, continuation) = AsyncStream.makeStream(of: (String, RealtimeError).self)
        client.onQueryEnd { continuation.yield(($0, $1)) }
        let query = try players.observe(DDPQueryEndTests.selector) { _ in }
        let list = try players.observeList(DDPQueryEndTests.selector) { _ in }
        let other = try players.observe { _ in }
        #expect(query.error == nil && list.error == nil)
        try DDPQueryEndTests.overstrain(client)
        var iterator = ends.makeAsyncIterator()
        for _ in 0..<2 {
            let (collection, error) = try #require(await iterator.next())
            #expect(collection == "players" && error.code == .invalidArgument)
        }
        #expect(query.error?.code == .invalidArgument && list.error?.code == .invalidArgument)
        #expect(other.error == nil)
    }
}
