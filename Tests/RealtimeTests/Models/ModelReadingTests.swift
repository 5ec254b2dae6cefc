import Realtime
import Testing

/// Objects of documents: METIncrementalStoreTests, "Fetching".
@Suite struct ModelReadingTests {
    @Test func allObjectsOfAModel() throws {
        let box = try ModelBox(ModelBox.players)
        let names = try box.models.find(Player.self).map { $0.id }
        #expect(names == ["lovelace", "gauss", "shannon", "turing"])
        #expect(try box.models.count(Player.self) == 4)
        #expect(try box.models.count(Player.self, ["score": ["$lt": 10]]) == 1)
        #expect(try box.models.find(Avatar.self).isEmpty)
    }

    @Test func objectsAreSortedAndSelected() throws {
        let box = try ModelBox(ModelBox.players)
        let sorted = try box.models.find(Player.self, options: ["sort": ["score": 1]])
        #expect(sorted.map { $0.id } == ["gauss", "shannon", "turing", "lovelace"])
        let best = try box.models.find(Player.self, ["score": ["$gte": 25]])
        #expect(best.map { $0.name } == ["Ada Lovelace"])
        #expect(throws: RealtimeError.self) { try box.models.find(Player.self, ["a": ["$no": 1]]) }
    }

    @Test func anObjectByItsID() throws {
        let box = try ModelBox(ModelBox.players)
        #expect(
            try box.models.find(Player.self, id: "lovelace")
                == Player(id: "lovelace", name: "Ada Lovelace", score: 25))
        #expect(try box.models.find(Player.self, id: "unknown") == nil)
    }

    @Test func aFieldMayHaveAnotherName() throws {
        let box = try ModelBox([("messages", ["_id": "m1", "createdAt": .date(5)])])
        let message = try box.models.find(Message.self, id: "m1")
        #expect(message?.creationDate == EJSONDate(milliseconds: 5))
    }

    /// Publications choose the fields that they publish.
    @Test func aMissingFieldHasTheDefault() throws {
        let box = try ModelBox([("players", ["_id": "a", "other": true])])
        #expect(try box.player("a") == Player(id: "a", name: nil, score: 0))
    }

    @Test func aNullFieldIsNil() throws {
        let box = try ModelBox([
            ("players", ["_id": "a", "name": .null]), ("players", ["_id": "b", "score": .null]),
        ])
        #expect(try box.player("a").name == nil)
        let error = #expect(throws: DecodingError.self) { try box.player("b") }
        guard case .valueNotFound(_, let context)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(context.codingPath.map { $0.stringValue } == ["players", "b", "score"])
        #expect(context.debugDescription == "null is not Int")
    }

    @Test func aFieldOfAnotherKindIsAnError() throws {
        let box = try ModelBox([("players", ["_id": "a", "score": "many"])])
        let error = #expect(throws: DecodingError.self) { try box.player("a") }
        guard case .typeMismatch(_, let context)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(context.codingPath.map { $0.stringValue } == ["players", "a", "score"])
        #expect(context.debugDescription == "a string is not Int")
    }

    @Test func aModelThatWasNotNamed() throws {
        struct Other: DDPModel { var id = String.randomID() }
        let box = try ModelBox()
        #expect(throws: RealtimeError.self) { try box.models.find(Other.self) }
        #expect(throws: RealtimeError.self) { try box.models.insert(Other()) }
        #expect(throws: RealtimeError.self) { try box.models.count(Other.self) }
    }

    // MARK: Relationships, two-way storage

    private static let mail: [(String, EJSONObject)] = [
        ("players", ["_id": "lovelace", "avatarId": "avatar1", "sentMessageIds": ["m1", "m2"]]),
        (
            "players",
            ["_id": "gauss", "sentMessageIds": ["m3"], "receivedMessageIds": ["m2", "m1"]]
        ),
        ("avatars", ["_id": "avatar1", "playerId": "lovelace"]),
        ("messages", ["_id": "m1", "senderId": "lovelace", "receiverIds": ["gauss"]]),
        ("messages", ["_id": "m2", "senderId": "lovelace", "receiverIds": ["gauss", "turing"]]),
        ("messages", ["_id": "m3", "senderId": "gauss"]),
    ]

    @Test func oneToOne() throws {
        let box = try ModelBox(ModelReadingTests.mail)
        #expect(try box.models.get(box.player("lovelace").avatar)?.id == "avatar1")
        let avatar = try box.models.find(Avatar.self, id: "avatar1")
        #expect(try box.models.get(avatar?.player)?.id == "lovelace")
        #expect(try box.models.get(box.player("gauss").avatar) == nil)
    }

    @Test func oneToMany() throws {
        let box = try ModelBox(ModelReadingTests.mail)
        func sent(_ id: String) throws -> [String] {
            try box.models.get(box.player(id).sentMessages).map { $0.id }
        }
        #expect(try sent("lovelace") == ["m1", "m2"])
        #expect(try sent("gauss") == ["m3"])
        let message = try box.models.find(Message.self, id: "m1")
        #expect(try box.models.get(message?.sender)?.id == "lovelace")
    }

    @Test func manyToMany() throws {
        let box = try ModelBox(ModelReadingTests.mail)
        let received = try box.models.get(box.player("gauss").receivedMessages)
        #expect(received.map { $0.id } == ["m2", "m1"])
        let message = try box.models.find(Message.self, id: "m1")
        #expect(try box.models.get(message?.receivers ?? []).map { $0.id } == ["gauss"])
    }

    @Test func objectsThatAreNotThere() throws {
        let box = try ModelBox(ModelReadingTests.mail)
        // Its other receiver has not come yet.
        let message = try box.models.find(Message.self, id: "m2")
        #expect(message?.receivers.map { $0.id } == ["gauss", "turing"])
        #expect(try box.models.get(message?.receivers ?? []).map { $0.id } == ["gauss"])
        try box.client.collection("avatars").remove("avatar1")
        #expect(try box.player("lovelace").avatar?.id == "avatar1")
        #expect(try box.models.get(box.player("lovelace").avatar) == nil)
        try box.client.collection("players").insert(["_id": "turing"])
        #expect(try box.models.get(message?.receivers ?? []).map { $0.id } == ["gauss", "turing"])
    }

    @Test func nullMeansNoReferences() throws {
        let box = try ModelBox([
            ("players", ["_id": "a", "avatarId": .null, "sentMessageIds": .null]),
            ("players", ["_id": "b", "sentMessageIds": []]),
        ])
        #expect(try box.player("a").avatar == nil && box.player("a").sentMessages.isEmpty)
        #expect(try box.player("b").sentMessages.isEmpty)
    }

    // MARK: Relationships, one-way storage

    private static let library: [(String, EJSONObject)] = [
        (
            "books",
            [
                "_id": .objectID(.of("1")), "authorId": "ada", "labels": ["math", "new"],
                "coverId": "red",
            ]
        ),
        (
            "books",
            [
                "_id": .objectID(.of("2")), "authorId": "ada", "labels": ["math"],
                "previousId": .objectID(.of("1")),
            ]
        ),
        ("writers", ["_id": "ada"]), ("writers", ["_id": "bob"]), ("covers", ["_id": "red"]),
        ("covers", ["_id": "blue"]), ("tags", ["_id": "math"]), ("tags", ["_id": "new"]),
    ]

    @Test func theOtherEndIsSearched() throws {
        let box = try ModelBox(ModelReadingTests.library)
        let authors = try box.models.find(Author.self)
        #expect(authors.map { $0.books.map { $0.id } } == [[.of("1"), .of("2")], []])
        let tags = try box.models.find(Tag.self)
        #expect(tags.map { $0.books.count } == [2, 1])
        let covers = try box.models.find(Cover.self)
        #expect(covers.map { $0.book?.id } == [.of("1"), nil])
        #expect(try box.models.find(Author.self, id: "ada")?.books.count == 2)
    }

    @Test func theEndWithStorage() throws {
        let box = try ModelBox(ModelReadingTests.library)
        let books = try box.models.find(Book.self)
        #expect(try box.models.get(books[0].author)?.id == "ada")
        #expect(try box.models.get(books[0].tags).map { $0.id } == ["math", "new"])
        #expect(try box.models.get(books[0].cover)?.id == "red")
        #expect(try box.models.get(books[1].cover) == nil)
        #expect(try box.models.get(books[1].previous)?.id == .of("1"))
    }
}
