import Realtime
import Synchronization
import Testing

/// Everything that a program may do with a client, from several threads at once. `make sanitize`
/// runs this under the thread sanitizer.
@Suite struct DDPThreadsTests {
    private static let rounds = 40

    private func makeApp() async throws -> MeteorApp {
        let app = try await MeteorApp()
        try await app.control(
            "collection", ["name": "players", "insert": true, "update": true, "remove": true])
        try await app.control(
            "method",
            [
                "name": "rename",
                "ops": [
                    [
                        "op": "update", "collection": "players", "id": ["$param": 0],
                        "modifier": ["$set": ["name": ["$param": 1]]],
                    ], ["op": "return", "value": ["$param": 1]],
                ],
            ])
        return app
    }

    @Test(.timeLimit(.minutes(5))) func threadsShareAClient() async throws {
        let app = try await makeApp()
        var options = DDPClient.Options()
        // So that handlers have run when a call is done.
        options.executor = .loop
        let client = try app.client(options)
        let players = try client.collection("players")
        let all = try client.subscribe("all")
        try await all.ready()
        try client.setStub("rename") { stub, params in
            guard case .string(let id) = params[0] else { return .null }
            // A stub reads and writes while other threads do.
            try stub.update("players", .string(id), ["$set": ["name": params[1]]])
            _ = try stub.randomStream().id()
            return .number(Double(try stub.find("players").count))
        }
        let changes = Mutex(0)
        client.onChanges { made in
            changes.withLock { $0 += made.count }
            // A handler may do anything.
            _ = players.count
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await Self.write(players) }
            group.addTask { try await Self.call(client) }
            group.addTask { try await Self.read(client, players) }
            group.addTask { try await Self.observe(players) }
            group.addTask { try await Self.subscribe(client) }
            group.addTask { try await Self.disturb(client, app) }
            try await group.waitForAll()
        }
        let settled = try players.insert(["_id": "last"])
        try await settled.completed()
        #expect(
            try players.find(options: ["sort": ["_id": 1]]).map { $0.id } == ["a", "b", "last"])
        #expect(changes.withLock { $0 } > Self.rounds && all.isReady)
        client.close()
    }

    private static func write(_ players: DDPCollection) async throws {
        for round in 0..<rounds {
            let insertion = try players.insert(["name": .string("new \(round)")])
            let id = insertion.stubValue
            #expect(players[id] != nil)
            try players.update(id, ["$set": ["n": .number(Double(round))]])
            try await players.remove(id).completed()
        }
    }

    private static func call(_ client: DDPClient) async throws {
        for round in 0..<rounds {
            let name = EJSON.string("name \(round)")
            #expect(try await client.call("rename", ["a", name]) == name)
        }
    }

    private static func read(_ client: DDPClient, _ players: DDPCollection) async throws {
        for _ in 0..<(rounds * 20) {
            #expect(players["b"] != nil)
            let found = try players.find(
                ["name": ["$exists": true]], options: ["sort": ["name": 1]])
            #expect(found.count >= 2)
            _ = (client.status, client.retryIn, client.userID, client.isLoggingIn, client.version)
            await Task.yield()
        }
    }

    private static func observe(_ players: DDPCollection) async throws {
        for _ in 0..<rounds {
            let seen = Mutex(0)
            let query = try players.observe(options: ["sort": ["name": -1], "limit": 2]) {
                changes in
                seen.withLock { $0 += changes.count }
            }
            for try await found in try players.results() {
                #expect(!found.isEmpty)
                break
            }
            query.stop()
        }
    }

    private static func subscribe(_ client: DDPClient) async throws {
        for round in 0..<rounds {
            let more = try client.subscribe("all", [.number(Double(round))])
            try await more.ready()
            more.stop()
        }
    }

    /// The server changes documents, and the connection is made again.
    private static func disturb(_ client: DDPClient, _ app: MeteorApp) async throws {
        for round in 0..<rounds {
            try await app.rename("b", to: "server \(round)")
            if round % 10 == 5 { try client.reconnect() }
        }
    }
}
