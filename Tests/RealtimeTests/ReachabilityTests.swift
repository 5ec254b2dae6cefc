import Realtime
import Testing

@Suite(.timeLimit(.minutes(5))) struct ReachabilityTests {
    @Test func changesAreAwaited() async throws {
        let reachability = try Reachability(.manual)
        #expect(reachability.isOnline)
        var changes = reachability.changes.makeAsyncIterator()
        for expected in [false, true, false] {
            try reachability.setOnline(expected)
            #expect(await changes.next() == expected)
            #expect(reachability.isOnline == expected)
        }
        try reachability.setMode(.always)
        #expect(await changes.next() == true)
    }

    @Test func eachChangeIsReportedAndTheLatestIsKept() async throws {
        let reachability = try Reachability(.manual)
        let (told, report) = AsyncStream.makeStream(of: Bool.self)
        let kept = reachability.changes
        reachability.onChange {
            MainActor.assertIsolated()
            report.yield($0)
        }
        var iterator = told.makeAsyncIterator()
        for expected in [false, true, false] {
            try reachability.setOnline(expected)
            #expect(await iterator.next() == expected)
        }
        var latest = kept.makeAsyncIterator()
        #expect(await latest.next() == false)
    }

    /// Each iteration has all changes, and continues when another one is cancelled.
    @Test func iterationsAreIndependent() async throws {
        let reachability = try Reachability(.manual)
        let changes = reachability.changes
        let (seen, continuation) = AsyncStream.makeStream(of: Bool.self)
        let tasks = (0..<2).map { _ in
            Task { for await isOnline in changes { continuation.yield(isOnline) } }
        }
        var events = seen.makeAsyncIterator()
        try reachability.setOnline(false)
        for _ in tasks { #expect(await events.next() == false) }
        tasks[0].cancel()
        await tasks[0].value
        try reachability.setOnline(true)
        #expect(await events.next() == true)
        withExtendedLifetime(reachability) {}
        tasks[1].cancel()
        await tasks[1].value
    }

    @Test func changesEndWithTheirObject() async throws {
        var reachability: Reachability? = try Reachability(.always)
        let changes = try #require(reachability).changes
        reachability = nil
        for await change in changes { Issue.record("told \(change)") }
    }

    @Test func aConnectionRefusesAnotherLoopsReachability() async throws {
        var options = WebSocket.Options()
        options.reconnect = Backoff()
        options.reachability = try Reachability(on: Loop())
        await #expect(throws: RealtimeError.self) {
            try await WebSocket.connect("ws://127.0.0.1:1/", options: options)
        }
    }
}
