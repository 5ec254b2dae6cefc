import Foundation
import Realtime
import Synchronization
import Testing

@Suite struct DDPClientTests {
    @Test(.timeLimit(.minutes(5))) func documentsFollowTheServer() async throws {
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
        #expect(try await results.next()?.map { $0.id } == ["a"])
        try await app.rename("a", to: "Cleo")
        #expect(try await results.next()?.isEmpty == true)
        try await app.rename("b", to: "Amy")
        #expect(try await results.next()?.map { $0["name"] } == ["Amy"])
        client.close()
        #expect(try await results.next() == nil)
    }

    @Test(.timeLimit(.minutes(5))) func changesAreReportedInOrder() async throws {
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

    @Test(.timeLimit(.minutes(5))) func eachMessageOfAStreamIsDelivered() async throws {
        let app = try await MeteorApp()
        let client = try app.client()
        let (stream, continuation) = AsyncStream.makeStream(of: DDPChange.self)
        try client.setStream("events") { continuation.yield($0) }
        try await client.subscribe("all").ready()
        #expect(client.opened?.response?.status == 101)
        let text = #"{"msg":"changed","collection":"events","id":"id","fields":{"n":1}}"#
        for _ in 0..<2 { try await app.control("send", ["text": .string(text)]) }
        var events = stream.makeAsyncIterator()
        for _ in 0..<2 {
            let event = await events.next()
            #expect(event?.kind == .changed && event?.id == "id" && event?.fields == ["n": 1])
        }
        #expect(try client.collection("events").count == 0)
        // The handler is released.
        try client.setStream("events", nil)
    }

    @Test(.timeLimit(.minutes(5))) func ownStopsAreReportedIfWanted() async throws {
        let app = try await MeteorApp()
        var options = DDPClient.Options()
        options.reportOwnStops = true
        let client = try app.client(options)
        let (stream, continuation) = AsyncStream.makeStream(of: DDPError?.self)
        let all = try client.subscribe("all") { continuation.yield($0) }
        try await all.ready()
        all.stop()
        var stops = stream.makeAsyncIterator()
        #expect(await stops.next() == .some(nil))
    }

    @Test(.timeLimit(.minutes(5))) func stubsRunBeforeTheCallReturns() async throws {
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
            let random = stub.randomStream("mine")
            #expect(try random.id().utf8.count == 17 && random.id(5).utf8.count == 5)
            #expect(try random.hexString(24).utf8.count == 24)
            #expect(try random.secret().utf8.count == 43)
            #expect(try (0..<1).contains(random.fraction()) && random.choice([7, 7]) == 7)
            #expect(try random.choice([Int]()) == nil)
            #expect(stub.isSimulation && stub.randomStream().name == "default")
            #expect(throws: DDPError("no", reason: "It is broken.")) {
                try stub.call("broken")
            }
            return "renamed"
        }
        try client.setStub("broken") { _, _ in throw DDPError("no", reason: "It is broken.") }
        let call = try client.send("rename", ["a"])
        #expect(call.stubValue == "renamed")
        #expect(try players.find().compactMap { $0["name"] }.count == 2)
        #expect(try await call.result() == 5)
        #expect(try await call.completed() == 5)
        #expect(try players.find().compactMap { $0["name"] } == ["Cleo", "Bob"])
        var options = DDPCallOptions()
        options.throwStubErrors = true
        let failure = #expect(throws: DDPError.self) {
            try client.send("broken", options: options)
        }
        #expect(failure?.kind == .stub && failure?.code == "no")
    }

    @Test(.timeLimit(.minutes(5))) func writesAndFailures() async throws {
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
        let unknown = await #expect(throws: DDPError.self) { try await client.call("none") }
        #expect(unknown?.kind == .server && unknown?.code == "404")
        #expect(unknown?.codeIsNumber == true && unknown?.source.contains("Meteor.Error") == true)
        let refused = await #expect(throws: DDPError.self) {
            try await client.subscribe("none").ready()
        }
        #expect(refused?.code == "404")
    }

    @Test(.timeLimit(.minutes(5))) func callsOfAnOpenConnectionGoFirst() async throws {
        let app = try await MeteorApp()
        try await app.control(
            "method", ["name": "echo", "ops": [["op": "return", "value": ["$param": 0]]]])
        let client = try DDPClient(app.url)
        let order = Mutex<[EJSON]>([])
        client.onOpen { [unowned client] in
            var options = DDPCallOptions()
            options.wait = true
            guard let call = try? client.send("echo", ["first"], options: options) else { return }
            order.withLock { $0.append(call.stubValue) }
        }
        let waited = try client.send("echo", ["waited"])
        try client.connect()
        #expect(try await waited.completed() == "waited")
        // Its handler has been called on the first connection, once.
        #expect(order.withLock { $0.count } == 1)
        #expect(try await app.paramsOfCalls() == [["first"], ["waited"]])
    }

    /// Writing or comparing such a value would use up the stack.
    @Test func valuesThatAreTooDeepAreRefused() throws {
        func nested(_ depth: Int) -> EJSON {
            (1..<depth).reduce(.array([])) { value, level in
                switch level % 3 {
                case 0: .array([1, value])
                case 1: ["a": 1, "b": value]
                default: .custom(EJSONCustom(type: "T", value: value))
                }
            }
        }
        let client = try DDPClient("ws://127.0.0.1:1")
        let players = try client.collection("players")
        for depth in [129, 10_000] {
            let deep = nested(depth)
            let document: EJSONObject = ["a": nested(depth - 1)]
            let uses: [() throws -> Void] = [
                { try client.send("m", [1, deep]) }, { _ = try client.subscribe("s", [deep]) },
                { try players.insert(document) }, { try players.update("a", document) },
                { try players.update(deep, [:]) }, { try players.remove(deep) },
                { _ = try players.find(deep) }, { _ = try players.find(options: document) },
                { _ = try players.observe(deep) { _ in } }, { _ = try players.results(deep) },
            ]
            for (number, use) in uses.enumerated() {
                let error = #expect(throws: RealtimeError.self, "\(number)") { try use() }
                #expect(error?.code == .invalidArgument, "\(number)")
                #expect(error?.message.contains("deeper than 128 levels") == true)
            }
            try client.setStub("m") { stub, _ in
                let uses: [() throws -> Void] = [
                    { try stub.insert("players", document) }, { try stub.remove("players", deep) },
                    { try stub.update("players", deep, [:]) },
                    { try stub.update("players", "a", document) },
                    { try stub.call("other", [deep]) },
                ]
                for (number, use) in uses.enumerated() {
                    let error = #expect(throws: DDPError.self, "\(number)") { try use() }
                    #expect(error?.code == "400")
                }
                #expect(throws: RealtimeError.self) { try stub.find("players", deep) }
                return deep
            }
            var options = DDPCallOptions()
            options.throwStubErrors = true
            let error = #expect(throws: DDPError.self) { try client.send("m", options: options) }
            #expect(error?.kind == .stub && error?.code == "400")
            try client.setStub("m") { _, _ in throw DDPError("no", details: deep) }
            #expect(throws: DDPError.self) { try client.send("m", options: options) }
            try client.setStub("m", nil)
        }
        // The deepest value that is allowed.
        try client.send("m", [nested(128)])
        try players.insert(["a": nested(127)])
        #expect(try players.find(["a": nested(127)]).isEmpty == false)
    }

    @Test(.timeLimit(.minutes(5))) func loginsThatAreTooDeepAreRefused() async throws {
        let client = try DDPClient("ws://127.0.0.1:1")
        let deep = (0..<129).reduce(EJSON.null) { value, _ in .array([value]) }
        await #expect(throws: RealtimeError.self) { try await client.logIn(method: "m", [deep]) }
        await #expect(throws: RealtimeError.self) {
            try await client.createUser(name: "a", password: "b", profile: deep)
        }
        await #expect(throws: RealtimeError.self) {
            try await client.load([DDPPublication("a", [deep])])
        }
    }

    /// A call that waits for a connection fails when the client is closed.
    @Test(.timeLimit(.minutes(5))) func closingEndsWhatWaits() async throws {
        let client = try DDPClient("ws://127.0.0.1:1")
        let call = try client.send("m")
        let subscription = try client.subscribe("s")
        client.close()
        let failure = await #expect(throws: DDPError.self) { try await call.completed() }
        #expect(failure?.kind == .closed)
        await #expect(throws: DDPError.self) { try await subscription.ready() }
        await #expect(throws: RealtimeError.self) { try await client.call("m") }
    }

    @Test(.timeLimit(.minutes(5))) func stoppingEndsTheWaitForASubscription() async throws {
        let client = try DDPClient("ws://127.0.0.1:1")
        let subscription = try client.subscribe("all")
        let waiting = Task { try await subscription.ready() }
        await Task.yield()
        subscription.stop()
        let error = await #expect(throws: DDPError.self) { try await waiting.value }
        #expect(error?.kind == .closed && error?.reason == "the subscription was given up")
        client.close()
    }

    @Test(.timeLimit(.minutes(5))) func usersStayLoggedIn() async throws {
        let app = try await MeteorApp()
        let keeper = Keeper()
        var options = DDPClient.Options()
        options.loadToken = { keeper.token.withLock { $0 } }
        options.storeToken = { token in keeper.token.withLock { $0 = token } }
        // So that handlers have run when a call is done.
        options.executor = .loop
        let client = try app.client(options)
        client.onAccount { if case .user(let id) = $0 { keeper.user.withLock { $0 = id } } }
        try await client.createUser(
            name: "ada", email: "ada@example.org", password: "secret", profile: ["age": 36])
        let id = try #require(client.userID)
        var own = try client.collection("users").results().makeAsyncIterator()
        while try await own.next()?.isEmpty == true {}
        #expect(client.user?.id == .string(id) && client.user?["username"] == "ada")
        #expect(!client.isLoggingIn && keeper.user.withLock { $0 } == id)
        try await client.changePassword(from: "secret", to: "new")
        try await client.forgotPassword(email: "ada@example.org")
        let old = keeper.token.withLock { $0 }
        try await client.newToken()
        #expect(client.userID == id && keeper.token.withLock { $0 } != old)
        try await client.logOutOthers()
        let second = try app.client(options)
        #expect(second.userID == id)
        try await client.logOut()
        #expect(client.user == nil)
        #expect(client.userID == nil && keeper.token.withLock { $0 } == nil)
        try await client.logIn(user: "ada", password: "new")
        #expect(client.userID == id)
        try await client.logIn(user: ["id": .string(id)], password: "new")
        await #expect(throws: DDPError.self) { try await client.logIn(token: "wrong") }
    }
}

private final class Keeper: Sendable {
    let token = Mutex<String?>(nil)
    let user = Mutex<String?>(nil)
}
