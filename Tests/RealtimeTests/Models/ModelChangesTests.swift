import Realtime
import Synchronization
import Testing

/// Which objects are reported: METIncrementalStoreTests, "Responding To Database Changes".
@Suite struct ModelChangesTests {
    /// What a change says, as `+a *b -c`: inserted, updated and deleted ids, each in order.
    private static func text(_ changes: DDPObjectChanges?) -> String {
        guard let changes else { return "end" }
        func list(_ sign: String, _ objects: [DDPObjectChanges.Object]) -> [String] {
            objects.map { "\(sign)\($0.id.jsonText)" }.sorted()
        }
        return
            (list("+", changes.inserted) + list("*", changes.updated)
            + list("-", changes.deleted)).joined(separator: " ")
    }

    private static let mail: [(String, EJSONObject)] = [
        ("players", ["_id": "ada", "sentMessageIds": ["m1"]]), ("players", ["_id": "bob"]),
        ("players", ["_id": "cid"]), ("messages", ["_id": "m1", "senderId": "ada"]),
        ("messages", ["_id": "m2"]), ("scientists", ["_id": "s"]),
    ]

    enum Write: Sendable {
        case insert(String, EJSONObject)
        case set(String, String, EJSONObject)
        case unset(String, String, String)
        case remove(String, String)

        func perform(_ stub: DDPStub) throws {
            switch self {
            case .insert(let collection, let document): try stub.insert(collection, document)
            case .set(let collection, let id, let fields):
                try stub.update(collection, .string(id), ["$set": .object(fields)])
            case .unset(let collection, let id, let field):
                try stub.update(collection, .string(id), ["$unset": [field: ""]])
            case .remove(let collection, let id): try stub.remove(collection, .string(id))
            }
        }
    }

    /// Writes that are made together, and what is reported.
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let report: String
        let writes: [Write]

        init(_ name: String, _ report: String, _ writes: Write...) {
            testDescription = name
            self.report = report
            self.writes = writes
        }
    }

    static let cases: [Case] = [
        Case(
            "documents are objects", "+dan *bob -cid", .insert("players", ["_id": "dan"]),
            .set("players", "bob", ["score": 1]), .remove("players", "cid")),
        Case(
            "both ends of a reference to one", "*bob *m2",
            .set("messages", "m2", ["senderId": "bob"])),
        Case(
            "the old and the new end", "*ada *bob *m1",
            .set("messages", "m1", ["senderId": "bob"])),
        Case(
            "the old end of a reference that is cleared", "*ada *m1",
            .unset("messages", "m1", "senderId")),
        Case(
            "both ends of a reference to many", "*bob *cid *m2",
            .set("messages", "m2", ["receiverIds": ["bob", "cid"]])),
        Case(
            "only the references that differ", "*ada *m2",
            .set("players", "ada", ["sentMessageIds": ["m1", "m2"]])),
        Case(
            "an inserted object updates that to which it refers", "+m3 *ada",
            .insert("messages", ["_id": "m3", "senderId": "ada"])),
        Case(
            "a deleted object updates what refers to it, and to which it refers", "*ada -m1",
            .remove("messages", "m1")),
        Case(
            "an inserted object is not updated too", "+dan +m3",
            .insert("players", ["_id": "dan", "sentMessageIds": ["m3"]]),
            .insert("messages", ["_id": "m3", "senderId": "dan"])),
        Case(
            "a deleted object is not updated too", "-ada -m1", .remove("players", "ada"),
            .remove("messages", "m1")),
        Case(
            "a reference to an object that is not there", "*m2",
            .set("messages", "m2", ["senderId": "nobody"])),
        Case(
            "a change that is undone", "*cid", .set("players", "bob", ["score": 1]),
            .unset("players", "bob", "score"), .set("players", "cid", ["score": 1])),
        Case(
            "a collection without a model", "*cid", .insert("scientists", ["_id": "t"]),
            .set("scientists", "s", ["a": 1]), .set("players", "cid", ["score": 1])),
        Case(
            "one-way storage", "+b *w", .insert("books", ["_id": "b", "authorId": "w"])),
    ]

    @Test(.timeLimit(.minutes(5)), arguments: cases)
    func reports(_ one: Case) async throws {
        let box = try ModelBox(ModelChangesTests.mail + [("writers", ["_id": "w"])])
        try box.client.setStub("write") { stub, _ in
            for write in one.writes { try write.perform(stub) }
            return .null
        }
        var reports = box.models.objectChanges.makeAsyncIterator()
        try box.client.send("write")
        #expect(ModelChangesTests.text(await reports.next()) == one.report)
    }

    @Test(.timeLimit(.minutes(5))) func aLateTargetUpdatesWhatRefersToIt() async throws {
        let box = try ModelBox([
            ("messages", ["_id": "m1", "senderId": "ada", "receiverIds": ["ada", "bob"]]),
            ("messages", ["_id": "m2", "receiverIds": ["bob"]]),
        ])
        var reports = box.models.objectChanges.makeAsyncIterator()
        try box.client.collection("players").insert(["_id": "ada"])
        #expect(ModelChangesTests.text(await reports.next()) == "+ada *m1")
        try box.client.collection("players").insert(["_id": "bob"])
        #expect(ModelChangesTests.text(await reports.next()) == "+bob *m1 *m2")
        // It goes again.
        try box.client.collection("players").remove("bob")
        #expect(ModelChangesTests.text(await reports.next()) == "*m1 *m2 -bob")
        // A reference that is gone is forgotten.
        try box.client.collection("messages").update("m2", ["$unset": ["receiverIds": ""]])
        #expect(ModelChangesTests.text(await reports.next()) == "*m2")
        try box.client.collection("players").insert(["_id": "bob"])
        #expect(ModelChangesTests.text(await reports.next()) == "+bob *m1")
    }

    @Test(.timeLimit(.minutes(5))) func savingReportsOnce() async throws {
        let box = try ModelBox(ModelBox.players)
        var reports = box.models.objectChanges.makeAsyncIterator()
        let message = Message(id: "m")
        try box.models.save { changes in
            try changes.insert(message)
            try changes.delete(box.player("turing"))
            try changes.update(box.player("gauss")) { $0.sentMessages = [message.reference] }
        }
        let report = await reports.next()
        #expect(ModelChangesTests.text(report) == "+m *gauss -turing")
        #expect(report?.inserted(Message.self) == ["m"] && report?.inserted(Player.self) == [])
        #expect(report?.updated(Player.self) == ["gauss"])
        #expect(report?.deleted(Player.self) == ["turing"])
        #expect(report?.inserted.first?.collection == "messages")
    }

    @Test(.timeLimit(.minutes(5))) func aSlowReaderMissesNothing() async throws {
        let box = try ModelBox(ModelBox.players)
        let sequence = box.models.objectChanges
        // What the loop's thread reports before the barrier is in the queue.
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
        let barrier = box.models.observeObjects { changes in
            if changes.inserted(Player.self).contains("last") { continuation.yield() }
        }
        let players = try box.client.collection("players")
        try players.insert(["_id": "new"])
        try players.update("new", ["$set": ["score": 1]])
        try players.insert(["_id": "brief"])
        try players.remove("brief")
        try players.update("gauss", ["$set": ["score": 1]])
        try players.update("gauss", ["$set": ["score": 2]])
        try players.remove("gauss")
        try players.remove("turing")
        try players.insert(["_id": "turing"])
        try players.insert(["_id": "last"])
        for await _ in stream { break }
        var reports = sequence.makeAsyncIterator()
        #expect(ModelChangesTests.text(await reports.next()) == "+last +new *turing -gauss")
        box.client.close()
        #expect(ModelChangesTests.text(await reports.next()) == "end")
        barrier.stop()
    }

    @Test(.timeLimit(.minutes(5))) func anObservationEnds() async throws {
        let box = try ModelBox()
        let count = Mutex(0)
        let observation = box.models.observeObjects { _ in count.withLock { $0 += 1 } }
        var reports = box.models.objectChanges.makeAsyncIterator()
        let players = try box.client.collection("players")
        try players.insert(["_id": "a"])
        _ = await reports.next()
        observation.stop()
        try players.insert(["_id": "b"])
        _ = await reports.next()
        #expect(count.withLock { $0 } == 1)
        let waiting = Task { [reports] in
            var reports = reports
            return await reports.next() == nil
        }
        waiting.cancel()
        #expect(await waiting.value)
    }
}

extension EJSON {
    /// An id: a text as it is.
    fileprivate var jsonText: String {
        if case .string(let text) = self { text } else { text }
    }
}
