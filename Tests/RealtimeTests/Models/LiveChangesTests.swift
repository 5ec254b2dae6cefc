import Realtime
import Synchronization
import Testing

/// Live queries by positions.
@Suite struct LiveChangesTests {
    /// A result that follows the changes, as ids with their scores.
    private struct Follower<Element: Sendable> {
        var elements: [Element] = []
        /// What the last change said, as `-0 +1 0>2 *2`.
        var text = ""

        mutating func follow(_ change: DDPListChange<Element>) {
            text =
                (change.deleted.map { "-\($0.index)" } + change.inserted.map { "+\($0.index)" }
                + change.moved.map { "\($0.old)>\($0.new)" }
                + change.updated.map { "*\($0.new)" }).joined(separator: " ")
            elements.apply(change)
            #expect(elements.count == change.count)
        }
    }

    private static func line(_ documents: [DDPDocument]) -> String {
        documents.map { "\($0.id.text)=\($0["score"]?.text ?? "")" }
            .joined(separator: " ").filter { $0 != "\"" }
    }

    private static func line(_ players: [Player]) -> String {
        players.map { "\($0.id)=\($0.score)" }.joined(separator: " ")
    }

    /// All that the loop's thread has to report has been reported.
    static func settle(_ client: DDPClient) async throws {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
        let name = String.randomID()
        let query = try client.collection(name).observe { changes in
            if changes.contains(where: { $0.id == "last" }) { continuation.yield() }
        }
        try client.collection(name).insert(["_id": "last"])
        for await _ in stream { break }
        // The stream also ends when the test's time is over.
        try Task.checkCancellation()
        query.stop()
    }

    @Test(.timeLimit(.minutes(5))) func documentsByPosition() async throws {
        let box = try ModelBox(ModelBox.players)
        let players = try box.client.collection("players")
        let sorted: EJSONObject = ["sort": ["score": 1], "fields": ["name": 0]]
        var changes = try players.changes(["score": ["$lt": 30]], options: sorted)
            .makeAsyncIterator()
        var result = Follower<DDPDocument>()
        let first = try #require(try await changes.next())
        #expect(first.isInitial)
        result.follow(first)
        #expect(
            LiveChangesTests.line(result.elements) == "gauss=5 shannon=10 turing=20 lovelace=25")
        #expect(result.elements[0]["name"] == nil)

        try box.update("players", "shannon", ["score": 22])
        result.follow(try #require(try await changes.next()))
        #expect(
            LiveChangesTests.line(result.elements) == "gauss=5 turing=20 shannon=22 lovelace=25")
        #expect(result.text == "1>2 *2" || result.text == "2>1 *2")
        try players.remove("gauss")
        result.follow(try #require(try await changes.next()))
        try box.update("players", "lovelace", ["score": 40])
        result.follow(try #require(try await changes.next()))
        #expect(result.text == "-2")
        try players.insert(["_id": "crick", "score": 1])
        let insertion = try #require(try await changes.next())
        #expect(!insertion.isInitial)
        result.follow(insertion)
        #expect(LiveChangesTests.line(result.elements) == "crick=1 turing=20 shannon=22")
        // A field that the query leaves out does not count.
        try box.update("players", "crick", ["name": "Crick"])
        try box.update("players", "crick", ["score": 2])
        result.follow(try #require(try await changes.next()))
        #expect(result.text == "*0")
        box.client.close()
        #expect(try await changes.next() == nil)
    }

    @Test(.timeLimit(.minutes(5))) func anEmptyResultIsReportedFirst() async throws {
        let box = try ModelBox()
        var changes = try box.models.changes(Player.self).makeAsyncIterator()
        let first = try #require(try await changes.next())
        #expect(first.isInitial && first.count == 0 && first.inserted.isEmpty)
        try box.models.insert(Player(id: "a"))
        #expect(try await changes.next()?.inserted.map { $0.element.id } == ["a"])
    }

    /// What a slow reader takes is one change, from the result that it knows to the present one.
    @Test(.timeLimit(.minutes(5)), arguments: [1, 3, 10, 400])
    func aSlowReaderGetsOneChange(_ count: Int) async throws {
        let box = try ModelBox(ModelBox.players)
        let sorted: EJSONObject = ["sort": ["score": 1], "limit": 6]
        let sequence = try box.models.changes(Player.self, options: sorted)
        let players = try box.client.collection("players")
        var changes = sequence.makeAsyncIterator()
        var result = Follower<Player>()
        result.follow(try #require(try await changes.next()))
        for round in 0..<3 {
            for step in 0..<count {
                let number = round * count + step
                let id = "p\(number * 7 % 11)"
                switch number % 5 {
                case 0, 1: try players.insert(["_id": .string(id), "score": .number(Double(step))])
                case 2: try players.remove(.string(id))
                default: try box.update("players", .string(id), ["score": .number(Double(-number))])
                }
            }
            try box.update("players", "gauss", ["name": .string("round \(round)")])
            try await LiveChangesTests.settle(box.client)
            if let change = try await changes.next() { result.follow(change) }
            let expected = try box.models.find(Player.self, options: sorted)
            #expect(result.elements == expected)
        }
    }

    @Test(.timeLimit(.minutes(5))) func callbacksGetEachChange() async throws {
        let box = try ModelBox(ModelBox.players)
        let (stream, continuation) = AsyncStream.makeStream(of: DDPListChange<Player>.self)
        let query = try box.models.observe(
            Player.self, options: ["sort": ["name": 1]]
        ) {
            continuation.yield($0)
        }
        var changes = stream.makeAsyncIterator()
        var result = Follower<Player>()
        result.follow(try #require(await changes.next()))
        try box.models.save { changes in
            try changes.delete(Player(id: "turing"))
            try changes.update(box.player("lovelace")) { $0.name = "Lovelace" }
        }
        let change = try #require(await changes.next())
        #expect(change.deleted.map { $0.id } == ["turing"])
        result.follow(change)
        #expect(
            LiveChangesTests.line(result.elements) == "gauss=5 shannon=10 lovelace=25")
        query.stop()
        try box.models.delete(Player(id: "gauss"))
        try await LiveChangesTests.settle(box.client)
        continuation.finish()
        #expect(await changes.next() == nil)
    }

    @Test(.timeLimit(.minutes(5))) func aRelationshipWithoutStorageUpdates() async throws {
        let box = try ModelBox([("writers", ["_id": "ada"]), ("writers", ["_id": "bob"])])
        var changes = try box.models.changes(Author.self).makeAsyncIterator()
        var result = Follower<Author>()
        result.follow(try #require(try await changes.next()))
        try box.models.insert(
            Book(id: .of("1"), author: Author.Reference(id: "bob")))
        result.follow(try #require(try await changes.next()))
        #expect(result.text == "*1")
        #expect(result.elements.map { $0.books.map { $0.id } } == [[], [.of("1")]])
        // A change of the result itself comes later.
        try box.models.delete(Author(id: "ada"))
        result.follow(try #require(try await changes.next()))
        try box.models.delete(Book(id: .of("1")))
        result.follow(try #require(try await changes.next()))
        #expect(result.text == "*0" && result.elements == [Author(id: "bob")])

        let (stream, continuation) = AsyncStream.makeStream(of: [Int].self)
        let query = try box.models.observe(Author.self) { change in
            continuation.yield(change.updated.map { $0.element.books.count })
        }
        try box.models.insert(Book(id: .of("2"), author: Author.Reference(id: "bob")))
        var updates = stream.makeAsyncIterator()
        // The first result may have the book already.
        while let next = await updates.next(), next != [1] {}
        query.stop()
    }

    @Test(.timeLimit(.minutes(5))) func documentsThatDoNotFitAreLeftOut() async throws {
        let box = try ModelBox(ModelBox.players)
        let (errors, said) = AsyncStream.makeStream(of: (any Error).self)
        box.models.onMisfit { said.yield($0) }
        let byName: EJSONObject = ["sort": ["name": 1]]
        var changes = try box.models.changes(Player.self, options: byName).makeAsyncIterator()
        var result = Follower<Player>()
        result.follow(try #require(try await changes.next()))
        let whole = LiveChangesTests.line(result.elements)
        let place = try #require(result.elements.firstIndex { $0.id == "gauss" })
        let (stream, continuation) = AsyncStream.makeStream(of: DDPListChange<Player>.self)
        let query = try box.models.observe(Player.self, options: byName) { continuation.yield($0) }
        var observed = stream.makeAsyncIterator()
        var same = Follower<Player>()
        same.follow(try #require(await observed.next()))

        try box.update("players", "gauss", ["score": "five"])
        result.follow(try #require(try await changes.next()))
        #expect(result.text == "-\(place)")
        same.follow(try #require(await observed.next()))
        #expect(same.text == "-\(place)")
        #expect(try box.models.find(Player.self, options: byName) == result.elements)
        var reports = errors.makeAsyncIterator()
        let error = try #require(await reports.next() as? DecodingError)
        guard case .typeMismatch(_, let context) = error else { throw error }
        #expect(context.codingPath.map { $0.stringValue } == ["players", "gauss", "score"])
        #expect(throws: DecodingError.self) { try box.models.find(Player.self, id: "gauss") }
        #expect(
            try box.models.get(["gauss", "turing"].map { Player.Reference(id: $0) })
                .map { $0.id } == ["turing"])
        // Others keep their positions, and it comes back.
        try box.update("players", "turing", ["score": 77])
        result.follow(try #require(try await changes.next()))
        #expect(result.elements.contains { $0.id == "turing" && $0.score == 77 })
        try box.update("players", "turing", ["score": 20])
        try box.update("players", "gauss", ["score": 5])
        while LiveChangesTests.line(result.elements) != whole {
            result.follow(try #require(try await changes.next()))
        }
        while LiveChangesTests.line(same.elements) != whole {
            same.follow(try #require(await observed.next()))
        }
        // A first result without any document that fits.
        try box.update("players", "gauss", ["score": "six", "name": "Z"])
        var last = try box.models.changes(Player.self, ["name": "Z"]).makeAsyncIterator()
        let first = try #require(try await last.next())
        #expect(first.isInitial && first.inserted.isEmpty && first.count == 0)
        query.stop()
    }

    @Test(.timeLimit(.minutes(5))) func aCancelledIterationEnds() async throws {
        let box = try ModelBox()
        let sequence = try box.client.collection("players").changes()
        let task = Task {
            var count = 0
            for try await _ in sequence { count += 1 }
            return count
        }
        try await LiveChangesTests.settle(box.client)
        task.cancel()
        #expect(try await task.value <= 1)
    }
}
