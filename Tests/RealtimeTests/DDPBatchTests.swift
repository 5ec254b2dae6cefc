import Realtime
import Testing

/// Writes that the program makes together, without models.
@Suite struct DDPBatchTests {
    /// A client without a connection: its documents are what the test writes.
    private func client() throws -> DDPClient {
        let client = try DDPClient("ws://127.0.0.1:1")
        try client.collection("players").insert(["_id": "a", "score": 1])
        try client.collection("players").insert(["_id": "b", "score": 2])
        return client
    }

    private func scores(_ client: DDPClient) throws -> [EJSON] {
        try client.collection("players").find(options: ["sort": ["_id": 1]])
            .map { $0["score"] ?? .null }
    }

    @Test(.timeLimit(.minutes(5))) func aBatchIsOneNotification() async throws {
        let client = try client()
        try await LiveChangesTests.settle(client)
        let (stream, continuation) = AsyncStream.makeStream(of: [DDPChange].self)
        client.onChanges { continuation.yield($0) }
        let (lists, listContinuation) = AsyncStream.makeStream(
            of: DDPListChange<DDPDocument>.self)
        let query = try client.collection("players").observeList(options: ["sort": ["score": 1]]) {
            listContinuation.yield($0)
        }
        var rows = lists.makeAsyncIterator()
        var players: [DDPDocument] = []
        players.apply(try #require(await rows.next()))
        #expect(players.map { $0.id } == ["a", "b"])

        let writes = try client.batch { batch in
            batch.insert("players", ["_id": "c", "score": 0])
            batch.update("players", "a", ["$inc": ["score": 5]])
            batch.remove("players", "b")
            batch.insert("messages", ["_id": "m"])
        }
        #expect(writes.calls.map { $0.stubValue } == ["c", 1, 1, "m"])
        var changes = stream.makeAsyncIterator()
        let report = try #require(await changes.next())
        #expect(
            report.map { "\($0.kind) \($0.collection) \($0.id.text)" } == [
                #"added players "c""#, #"changed players "a""#, #"removed players "b""#,
                #"added messages "m""#,
            ])
        let change = try #require(await rows.next())
        #expect(change.deleted.map { $0.id } == ["b"] && change.inserted.count == 1)
        players.apply(change)
        #expect(players.map { $0.id } == ["c", "a"] && change.count == 2)
        query.stop()
    }

    @Test func documentsGetIDs() throws {
        let client = try client()
        _ = try client.collection("orders", objectIDs: true)
        let writes = try client.batch { batch in
            batch.insert("players", ["score": 3])
            batch.insert("orders", ["total": 1])
        }
        guard case .string(let text) = writes.calls[0].stubValue else {
            Issue.record("\(writes.calls[0].stubValue)")
            return
        }
        #expect(text.count == 17)
        #expect(try client.collection("players")[.string(text)]?["score"] == 3)
        guard case .objectID = writes.calls[1].stubValue else {
            Issue.record("\(writes.calls[1].stubValue)")
            return
        }
    }

    @Test func anEmptyBatchHasNoCalls() async throws {
        let writes = try client().batch { _ in }
        #expect(writes.calls.isEmpty)
        try await writes.completed()
    }

    @Test func nothingIsWrittenIfTheBodyThrowsOrADocumentIsTooDeep() throws {
        let client = try client()
        #expect(throws: Missing.self) {
            try client.batch { batch in
                batch.remove("players", "a")
                throw Missing(id: "a")
            }
        }
        var deep = EJSON.null
        for _ in 0..<200 { deep = .array([deep]) }
        let error = #expect(throws: RealtimeError.self) {
            try client.batch { batch in
                batch.remove("players", "a")
                batch.insert("players", ["deep": deep])
            }
        }
        #expect(error?.code == .invalidArgument)
        #expect(try scores(client) == [1, 2])
        client.close()
        let closed = #expect(throws: RealtimeError.self) { try client.batch { _ in } }
        #expect(closed?.code == .closed)
    }

    @Test func aWriteThatFailsHereFailsItsCall() async throws {
        let client = try client()
        var options = DDPCallOptions()
        options.throwStubErrors = true
        let writes = try client.batch(options: options) { batch in
            batch.insert("players", ["_id": "a", "score": 9])
            batch.update("players", "b", ["$set": ["score": 7]])
        }
        let error = await #expect(throws: DDPError.self) { try await writes.calls[0].completed() }
        #expect(error?.kind == .stub)
        await #expect(throws: DDPError.self) { try await writes.calls[0].result() }
        #expect(try scores(client) == [1, 7] && writes.calls[1].stubValue == 1)
    }

    @Test func aBatchInAStubIsAPartOfIt() throws {
        let client = try client()
        try client.setStub("swap") { [unowned client] _, _ in
            let writes = try client.batch { batch in
                batch.update("players", "a", ["$set": ["score": 2]])
                batch.update("players", "b", ["$set": ["score": 1]])
                batch.insert("players", ["_id": "a"])
            }
            return .array(writes.calls.map { $0.stubValue })
        }
        #expect(try client.send("swap").stubValue == [1, 1, .null])
        #expect(try scores(client) == [2, 1])
    }

    @Test(.timeLimit(.minutes(5))) func theServerDoesEachWrite() async throws {
        let app = try await MeteorApp()
        try await app.control("collection", ["name": "messages", "insert": false])
        let client = try app.client()
        try await client.subscribe("all").ready()
        let writes = try client.batch { batch in
            batch.insert("messages", ["_id": "m", "text": "no"])
            batch.update("players", "a", ["$set": ["name": "Ada King"]])
            batch.remove("players", "b")
        }
        #expect(try client.collection("messages").count == 1)
        let error = await #expect(throws: DDPError.self) { try await writes.completed() }
        #expect(error?.code == "403")
        #expect(try client.collection("messages").count == 0)
        #expect(try await writes.calls[1].completed() == 1)
        let found = try await app.ask("find", ["collection": "players"])
        #expect(try EJSON(parsing: found.text) == [["_id": "a", "name": "Ada King"]])
    }
}
