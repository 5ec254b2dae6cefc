import Dispatch
import Realtime
import RealtimeFoundation
import Synchronization
import Testing

/// Blocks a handler until a test has done what must not wait for it.
private final class Block: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)

    func wait() { semaphore.wait() }
    func end() { semaphore.signal() }
}

/// Says when it is released.
private final class Probe: Sendable {
    private let released: @Sendable () -> Void

    init(_ released: @escaping @Sendable () -> Void) { self.released = released }

    deinit { released() }
}

/// The handlers of a client and of what belongs to it.
private enum Kind: CaseIterable {
    case status, changes, account, refused, query, list, stream, stopped, loader, objects, models

    /// Sets the handler, and lets the server cause a call of it.
    /// - Returns: what must be kept for that.
    func begin(_ client: DDPClient, _ handle: @escaping @Sendable () -> Void) throws -> [Any] {
        let players = try client.collection("players")
        let models = try DDPModels(client, Player.self)
        var kept: [Any] = [models]
        switch self {
        case .status: client.onStatus { _ in handle() }
        case .changes: client.onChanges { _ in handle() }
        case .account: client.onAccount { _ in handle() }
        case .refused: client.onRefused { _, _ in handle() }
        case .query: kept.append(try players.observe { _ in handle() })
        case .list: kept.append(try players.observeList { _ in handle() })
        case .stream: try client.setStream("players") { _ in handle() }
        case .stopped: kept.append(try client.subscribe("none") { _ in handle() })
        case .loader:
            let loader = try SubscriptionLoader(client)
            try loader.add("all")
            try loader.whenReady { _ in handle() }
            kept.append(loader)
        case .objects: kept.append(models.observeObjects { _ in handle() })
        case .models: kept.append(try models.observe(Player.self) { _ in handle() })
        }
        kept.append(try client.subscribe("all"))
        return kept
    }

    func cause(_ client: DDPClient, _ app: MeteorApp) async throws {
        switch self {
        case .account: try client.setUserID("ada")
        case .refused:
            // The server sends it on the connections that there are.
            for await status in client.states where status == .connected { break }
            try await app.control("send", ["text": #"{"msg":"error","reason":"no"}"#])
        default: break
        }
    }
}

/// A program's class, as iOS programs have them.
@MainActor private final class Model {
    private(set) var rows: [String] = []
    private let client: DDPClient
    private var query: DDPLiveQuery?
    private var all: DDPSubscription?
    let (seen, continuation) = AsyncStream.makeStream(of: String.self)

    init(_ url: String) throws { client = try DDPClient(url) }

    func start() throws {
        client.onStatus { [weak self] in self?.note("\($0.status)") }
        client.onChanges { [weak self] _ in self?.note("changes") }
        query = try client.collection("players").observe { [weak self] _ in self?.note("query") }
        all = try client.subscribe("none") { [weak self] in self?.note($0?.code ?? "") }
        try client.connect()
    }

    private func note(_ row: String) {
        MainActor.assertIsolated()
        rows.append(row)
        continuation.yield(row)
    }

    /// What is ready when it is asked for is reported at once, as to the code of Meteor's iOS app.
    func callsWhenReadyAtOnce() throws -> Bool {
        var isCalled = false
        try SubscriptionLoader(client).whenReady { _ in isCalled = true }
        return isCalled
    }
}

/// Where the handlers of a Meteor client run, and what they do to others.
@Suite(.timeLimit(.minutes(5))) struct DDPHandlersTests {
    @Test @MainActor func handlersOfAMainActorClassRunThere() async throws {
        let app = try await MeteorApp()
        let model = try Model(app.url)
        #expect(try model.callsWhenReadyAtOnce())
        try model.start()
        var missing: Set = ["connecting", "connected", "query", "404"]
        for await row in model.seen {
            missing.remove(row)
            if missing.isEmpty { break }
        }
    }

    @Test(arguments: Kind.allCases) private func theyRunOnTheMainActor(kind: Kind) async throws {
        let app = try await MeteorApp()
        let client = try DDPClient(app.url)
        let (called, continuation) = AsyncStream.makeStream(of: Void.self)
        let kept = try kind.begin(client) {
            MainActor.assertIsolated()
            continuation.yield()
        }
        try client.connect()
        try await kind.cause(client, app)
        for await _ in called { break }
        client.close()
        withExtendedLifetime(kept) {}
    }

    /// Other clients of the loop connect, and their time limits count, while a handler blocks.
    @Test(arguments: Kind.allCases) private func aSlowHandlerDelaysNobodyElse(
        kind: Kind
    ) async throws {
        let app = try await MeteorApp()
        var options = DDPClient.Options()
        options.executor = .queue(DispatchQueue(label: "handlers"))
        let client = try DDPClient(app.url, options: options)
        let (called, continuation) = AsyncStream.makeStream(of: Void.self)
        let block = Block()
        let kept = try kind.begin(client) {
            continuation.yield()
            block.wait()
        }
        try client.connect()
        try await kind.cause(client, app)
        for await _ in called { break }
        let other = try app.client()
        try await other.subscribe("all").ready()
        // Its own tasks continue as well.
        try await client.subscribe("all", [1]).ready()
        client.close()
        // For each call that waits or has begun: none begins after `close`.
        block.end()
        withExtendedLifetime((kept, other)) {}
    }

    /// More calls than may wait, so that the queue is full in between.
    @Test func handlersAreCalledInOrder() async throws {
        var options = DDPClient.Options()
        options.executor = .queue(DispatchQueue(label: "handlers"))
        let client = try DDPClient("ws://127.0.0.1:1", options: options)
        let players = try client.collection("players")
        try players.insert(["_id": "a"])
        let (seen, continuation) = AsyncStream.makeStream(of: String.self)
        let query = try players.observe { changes in
            for change in changes { continuation.yield("query \(change.fields["n"] ?? .null)") }
        }
        var calls = seen.makeAsyncIterator()
        #expect(await calls.next() == "query \(EJSON.null)")
        client.onChanges { changes in
            for change in changes { continuation.yield("changes \(change.fields["n"] ?? .null)") }
        }
        let rounds = 3000
        for round in 0..<rounds {
            try players.update("a", ["$set": ["n": .number(Double(round))]])
        }
        for round in 0..<rounds {
            let number = EJSON.number(Double(round))
            #expect(await calls.next() == "changes \(number)")
            #expect(await calls.next() == "query \(number)")
        }
        query.stop()
    }

    /// The server is slowed down while many calls wait, and nothing is missing.
    @Test func handlersThatFallBehindGetEveryMessage() async throws {
        let app = try await MeteorApp()
        let count = 5000
        let many = (0..<count).map { ["_id": .string("p\($0)")] as JSONValue }
        try await app.control("insert", ["collection": "players", "many": .array(many)])
        var options = DDPClient.Options()
        options.executor = .queue(DispatchQueue(label: "handlers"))
        let client = try DDPClient(app.url, options: options)
        let (seen, continuation) = AsyncStream.makeStream(of: EJSON.self)
        let block = Block()
        let hasBegun = Mutex(false)
        try client.setStream("players") { event in
            if !hasBegun.withLock({ $0 }) {
                hasBegun.withLock { $0 = true }
                block.wait()
            }
            continuation.yield(event.id)
        }
        let all = try client.subscribe("all")
        try client.connect()
        let other = try app.client()
        try await other.subscribe("all").ready()
        block.end()
        var ids = Set<String>()
        for await id in seen {
            if case .string(let text) = id { ids.insert(text) }
            if ids.count == count + 2 { break }
        }
        try await all.ready()
        client.close()
    }

    private enum End: CaseIterable { case close, stop, release }

    /// What waits for its executor when the client is closed, or the query ends, does not run.
    @Test(arguments: End.allCases) private func noHandlerBeginsAfterTheEnd(
        end: End
    ) async throws {
        var options = DDPClient.Options()
        options.executor = .queue(DispatchQueue(label: "handlers"))
        let client = try DDPClient("ws://127.0.0.1:1", options: options)
        let players = try client.collection("players")
        let (called, continuation) = AsyncStream.makeStream(of: Void.self)
        let (released, probed) = AsyncStream.makeStream(of: Void.self)
        let block = Block()
        let count = Mutex(0)
        var query = Optional(
            try observe(players, Probe { probed.yield() }) {
                count.withLock { $0 += 1 }
                continuation.yield()
                block.wait()
            })
        for await _ in called { break }
        let results = try players.results().makeAsyncIterator()
        for number in 0..<10 { try players.insert(["n": .number(Double(number))]) }
        // After the loop has passed them on.
        var latest = results
        while try await latest.next()?.count != 10 {}
        switch end {
        case .close: client.close()
        case .stop: query?.stop()
        case .release: query = nil
        }
        block.end()
        // All that waited is done.
        for await _ in released { break }
        #expect(count.withLock { $0 } == 1)
        withExtendedLifetime((client, query)) {}
    }

    private func observe(
        _ players: DDPCollection, _ probe: Probe, _ handle: @escaping @Sendable () -> Void
    ) throws -> DDPLiveQuery {
        try players.observe { _ in withExtendedLifetime(probe) { handle() } }
    }

    /// Stubs run before their calls return, wherever handlers run.
    @Test @MainActor func stubsStayWhereTheirCallsAre() throws {
        var options = DDPClient.Options()
        options.executor = .queue(DispatchQueue(label: "handlers"))
        let client = try DDPClient("ws://127.0.0.1:1", options: options)
        try client.setStub("here") { _, _ in
            MainActor.assertIsolated()
            return 5
        }
        #expect(try client.send("here").stubValue == 5)
    }
}
