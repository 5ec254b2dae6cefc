import Foundation
import Realtime
import Synchronization
import Testing

/// An app of its own on `Tests/Support/ddp_server`.
private struct MeteorApp: Sendable {
    let url: String
    private let id: String

    private static let server: (port: Int, rest: REST) = {
        let parts = Peer.start("Tests/Support/ddp_server")
        guard parts.count == 3, let port = Int(parts[0]),
            let rest = try? REST("http://127.0.0.1:\(port)")
        else {
            preconditionFailure("the Meteor server said: \(parts)")
        }
        return (port, rest)
    }()

    /// With a collection of two players, and a publication of all of them.
    init() async throws {
        let answer = try await MeteorApp.server.rest.post("control/new_app").json
        id = answer?["id"]?.stringValue ?? ""
        url = "http://127.0.0.1:\(MeteorApp.server.port)/apps/\(id)"
        try await control("collection", ["name": "players"])
        try await control(
            "insert",
            [
                "collection": "players",
                "many": [["_id": "a", "name": "Ada"], ["_id": "b", "name": "Bob"]],
            ])
        try await control(
            "publication", ["name": "all", "cursors": [["collection": "players"]]])
    }

    func control(_ action: String, _ arguments: JSONValue) async throws {
        _ = try await MeteorApp.server.rest.post(
            "apps/\(id)/control/\(action)", body: .json(try arguments.text))
    }

    func rename(_ id: String, to name: String) async throws {
        try await control(
            "update",
            [
                "collection": "players", "id": .string(id),
                "modifier": ["$set": ["name": .string(name)]],
            ])
    }

    func client(_ options: DDPClient.Options = .init()) throws -> DDPClient {
        let client = try DDPClient(url, options: options)
        try client.connect()
        return client
    }
}

@Suite struct DDPClientTests {
    @Test(.timeLimit(.minutes(1))) func documentsFollowTheServer() async throws {
        let app = try await MeteorApp()
        let client = try app.client()
        let players = try client.collection("players")
        let all = try client.subscribe("all")
        try await all.ready()
        #expect(all.isReady && client.status == .connected && client.version == "1")
        #expect(players.count == 2 && players["a"]?["name"] == "Ada" && players["z"] == nil)
        let found = try players.find(["name": ["$gt": "A"]], options: ["sort": ["name": -1]])
        #expect(found.map { $0.id } == ["b", "a"])
        #expect(throws: RealtimeError.self) { try players.find(["name": ["$no": 1]]) }

        var results = try players.results(["name": ["$lt": "B"]]).makeAsyncIterator()
        #expect(await results.next()?.map { $0.id } == ["a"])
        try await app.rename("a", to: "Cleo")
        #expect(await results.next()?.isEmpty == true)
        try await app.rename("b", to: "Amy")
        #expect(await results.next()?.map { $0["name"] } == ["Amy"])
        client.close()
        #expect(await results.next() == nil)
    }

    @Test(.timeLimit(.minutes(1))) func changesAreReportedInOrder() async throws {
        let app = try await MeteorApp()
        let client = try app.client()
        let players = try client.collection("players")
        let loader = try await client.load([DDPPublication("all")])
        let (stream, continuation) = AsyncStream.makeStream(of: DDPChange.self)
        let live = try players.observe([:], options: ["sort": ["name": 1]]) { changes in
            for change in changes { continuation.yield(change) }
        }
        var changes = stream.makeAsyncIterator()
        let (first, second) = (await changes.next(), await changes.next())
        #expect(first?.kind == .added && first?.id == "a" && first?.isInitial == true)
        #expect(second?.kind == .added && second?.fields == ["name": "Bob"])
        try await app.control("remove", ["collection": "players", "id": "a"])
        let third = await changes.next()
        #expect(third?.kind == .removed && third?.id == "a" && third?.isInitial == false)
        live.stop()
        loader.close()
    }

    @Test(.timeLimit(.minutes(1))) func stubsRunBeforeTheCallReturns() async throws {
        let app = try await MeteorApp()
        try await app.control(
            "method",
            [
                "name": "rename",
                "ops": [
                    [
                        "op": "update", "collection": "players", "id": "a",
                        "modifier": ["$set": ["name": "Cleo"]],
                    ], ["op": "return", "value": 5],
                ],
            ])
        let client = try app.client()
        let players = try client.collection("players")
        try await client.subscribe("all").ready()
        try client.setStub("rename") { stub, params in
            #expect(params == ["a"] && stub.userID == nil)
            try stub.update("players", "a", ["$set": ["name": "Cleo"]])
            let id = try stub.insert("players", ["name": "Eve"])
            #expect(try stub.find("players", ["name": "Eve"]).map { $0.id } == [id])
            #expect(try stub.remove("players", ["name": "Bob"]) == 1)
            #expect(try stub.drawID(from: "mine").utf8.count == 17)
            #expect(try (0..<1).contains(stub.drawFraction(from: "mine")))
            #expect(throws: DDPFailure("no", reason: "It is broken.")) {
                try stub.call("broken")
            }
            return "renamed"
        }
        try client.setStub("broken") { _, _ in throw DDPFailure("no", reason: "It is broken.") }
        let call = try client.send("rename", ["a"])
        #expect(call.stubValue == "renamed")
        #expect(try players.find().compactMap { $0["name"] }.count == 2)
        #expect(try await call.result() == 5)
        #expect(try await call.completed() == 5)
        #expect(try players.find().compactMap { $0["name"] } == ["Cleo", "Bob"])
        var options = DDPCallOptions()
        options.throwStubErrors = true
        let failure = #expect(throws: DDPFailure.self) {
            try client.send("broken", options: options)
        }
        #expect(failure?.kind == .stub && failure?.code == "no")
    }

    @Test(.timeLimit(.minutes(1))) func writesAndFailures() async throws {
        let app = try await MeteorApp()
        let client = try app.client()
        let players = try client.collection("players")
        try await client.subscribe("all").ready()
        let insert = try players.insert(["name": "Cid"])
        #expect(players[insert.stubValue]?["name"] == "Cid")
        try players.update(insert.stubValue, ["$set": ["name": "Coy"]])
        try await players.remove("a").completed()
        #expect(
            try players.find([:], options: ["sort": ["name": 1]]).map { $0["name"] }
                == ["Bob", "Coy"])
        let unknown = await #expect(throws: DDPFailure.self) { try await client.call("none") }
        #expect(unknown?.kind == .server && unknown?.code == "404")
        let refused = await #expect(throws: DDPFailure.self) {
            try await client.subscribe("none").ready()
        }
        #expect(refused?.code == "404")
    }

    /// A call that waits for a connection fails when the client is closed.
    @Test(.timeLimit(.minutes(1))) func closingEndsWhatWaits() async throws {
        let client = try DDPClient("ws://127.0.0.1:1")
        let call = try client.send("m")
        let subscription = try client.subscribe("s")
        client.close()
        let failure = await #expect(throws: DDPFailure.self) { try await call.completed() }
        #expect(failure?.kind == .closed)
        await #expect(throws: DDPFailure.self) { try await subscription.ready() }
        await #expect(throws: RealtimeError.self) { try await client.call("m") }
    }

    @Test(.timeLimit(.minutes(1))) func usersStayLoggedIn() async throws {
        let app = try await MeteorApp()
        let keeper = Keeper()
        var options = DDPClient.Options()
        options.loadToken = { keeper.token.withLock { $0 } }
        options.storeToken = { token in keeper.token.withLock { $0 = token } }
        let client = try app.client(options)
        client.onAccount { if case .user(let id) = $0 { keeper.user.withLock { $0 = id } } }
        try await client.createUser(
            name: "ada", email: "ada@example.org", password: "secret", profile: ["age": 36])
        let id = try #require(client.userID)
        #expect(!client.isLoggingIn && keeper.user.withLock { $0 } == id)
        try await client.changePassword(from: "secret", to: "new")
        try await client.forgotPassword(email: "ada@example.org")
        try await client.logOutOthers()
        let second = try app.client(options)
        #expect(second.userID == id)
        try await client.logOut()
        #expect(client.userID == nil && keeper.token.withLock { $0 } == nil)
        try await client.logIn(user: "ada", password: "new")
        #expect(client.userID == id)
        await #expect(throws: DDPFailure.self) { try await client.logIn(token: "wrong") }
    }
}

private final class Keeper: Sendable {
    let token = Mutex<String?>(nil)
    let user = Mutex<String?>(nil)
}
