import Realtime
import Testing

/// What saving writes: METIncrementalStoreTests, "Saving".
@Suite struct ModelSavingTests {
    // MARK: Objects

    @Test func anInsertedObjectIsADocument() throws {
        let box = try ModelBox()
        try box.models.insert(Player(id: "crick", name: "Francis Crick", score: 35))
        #expect(try box.document("players", "crick") == ["name": "Francis Crick", "score": 35])
        #expect(try box.player("crick").name == "Francis Crick")
    }

    @Test func nilPropertiesHaveNoField() throws {
        let box = try ModelBox()
        try box.models.insert(Player(id: "crick"))
        #expect(try box.document("players", "crick") == ["score": 0])
        try box.models.update(box.player("crick")) { $0.name = "Crick" }
        #expect(try box.document("players", "crick") == ["score": 0, "name": "Crick"])
        try box.models.update(box.player("crick")) { $0.name = nil }
        #expect(try box.document("players", "crick") == ["score": 0])
    }

    struct Lamp: DDPModel, Equatable {
        struct Place: Codable, Equatable { var x: Int? = 1 }
        var id = String.randomID()
        var color: String? = "red"
        var place: Place? = Place()
    }

    /// A missing field would have the default.
    @Test func nilIsNullIfTheDefaultIsNot() throws {
        let client = try DDPClient("ws://127.0.0.1:1")
        let models = try DDPModels(client, Lamp.self)
        let lamps = try client.collection("lamps")
        let lamp = Lamp(id: "a", color: nil)
        try models.insert(lamp)
        #expect(lamps["a"]?.fields == ["color": .null, "place": ["x": 1]])
        #expect(try models.find(Lamp.self, id: "a") == lamp)
        try models.update(lamp) { ($0.color, $0.place) = ("blue", nil) }
        #expect(lamps["a"]?.fields == ["color": "blue", "place": .null])
        #expect(try models.find(Lamp.self) == [Lamp(id: "a", color: "blue", place: nil)])
        try lamps.insert(["_id": "b", "place": ["x": 2, "other": true], "more": 1])
        let published = try #require(try models.find(Lamp.self, id: "b"))
        #expect(published == Lamp(id: "b", place: Lamp.Place(x: 2)))
        // An object of its own is one field.
        try models.update(published) { $0.place?.x = 3 }
        #expect(lamps["b"]?.fields == ["place": ["x": 3], "more": 1])
    }

    @Test func aFieldMayHaveAnotherName() throws {
        let box = try ModelBox()
        try box.models.insert(Message(id: "m1", creationDate: EJSONDate(milliseconds: 5)))
        #expect(try box.document("messages", "m1") == ["createdAt": .date(5)])
    }

    @Test func onlyChangedFieldsAreWritten() throws {
        let box = try ModelBox(ModelBox.players)
        let lovelace = try box.player("lovelace")
        // The server changes another field, and one that the model does not have.
        try box.update("players", "lovelace", ["name": "Ada King", "rank": 1])
        let save = try box.models.update(lovelace) { $0.score = 30 }
        #expect(save.calls.count == 1 && save.calls[0].stubValue == 1)
        #expect(
            try box.document("players", "lovelace")
                == ["name": "Ada King", "score": 30, "rank": 1])
        #expect(try box.models.update(lovelace) { $0.score = 25 + 0 }.calls.isEmpty)
    }

    @Test func aDeletedObjectIsGone() throws {
        let box = try ModelBox(ModelBox.players)
        let lovelace = try box.player("lovelace")
        try box.models.delete(lovelace)
        #expect(try box.document("players", "lovelace") == nil)
        #expect(try box.models.delete(lovelace).calls.isEmpty)
    }

    @Test func whatCannotBeSaved() throws {
        let box = try ModelBox(ModelBox.players)
        let there = #expect(throws: RealtimeError.self) {
            try box.models.insert(Player(id: "gauss"))
        }
        #expect(
            there?.code == .invalidArgument && there?.message == "Player gauss is there already")
        let gone = #expect(throws: RealtimeError.self) {
            try box.models.update(Player(id: "nobody")) { $0.score = 1 }
        }
        #expect(gone?.code == .notFound && gone?.message == "Player nobody is not there")
        #expect(throws: RealtimeError.self) {
            try box.models.update(box.player("gauss")) { $0 = Player(id: "other") }
        }
        #expect(throws: Missing.self) {
            try box.models.save { changes in
                try changes.insert(Player(id: "new"))
                throw Missing(id: "a")
            }
        }
        // If one part of a set cannot be saved, nothing is.
        #expect(throws: RealtimeError.self) {
            try box.models.save { changes in
                try changes.insert(Player(id: "new"))
                try changes.update(Player(id: "nobody")) { $0.score = 1 }
            }
        }
        #expect(try box.models.find(Player.self).count == 4)
    }

    // MARK: One notification

    @Test(.timeLimit(.minutes(5))) func aSetIsOneNotification() async throws {
        let box = try ModelBox(ModelBox.players)
        var changes = box.changes().makeAsyncIterator()
        let save = try box.models.save { changes in
            try changes.delete(box.player("shannon"))
            try changes.insert(Player(id: "crick", name: "Francis Crick", score: 35))
            try changes.update(box.player("gauss")) { $0.score = 10 }
        }
        #expect(save.calls.count == 3)
        let seen = await changes.next()
        #expect(
            Set(seen?.map { "\($0.kind) \($0.id.text)" } ?? []) == [
                #"added "crick""#, #"changed "gauss""#, #"removed "shannon""#,
            ])
        let update = seen?.first { $0.kind == .changed }
        #expect(update?.fields == ["score": 10] && update?.cleared == [])
        let insertion = seen?.first { $0.kind == .added }
        #expect(insertion?.fields == ["name": "Francis Crick", "score": 35])
    }

    // MARK: Relationships, two-way storage

    @Test func oneToOne() throws {
        let box = try ModelBox(ModelBox.players)
        let avatar = Avatar(id: "a1")
        try box.models.save { changes in
            try changes.update(box.player("lovelace")) { $0.avatar = avatar.reference }
            try changes.insert(avatar)
        }
        #expect(try box.document("players", "lovelace")?["avatarId"] == "a1")
        #expect(try box.document("avatars", "a1") == ["playerId": "lovelace"])
        // Another player takes it, and a third one gets another avatar from the avatar's side.
        try box.models.update(box.player("gauss")) { $0.avatar = avatar.reference }
        #expect(try box.document("players", "lovelace")?["avatarId"] == nil)
        #expect(try box.document("players", "gauss")?["avatarId"] == "a1")
        #expect(try box.document("avatars", "a1") == ["playerId": "gauss"])
        try box.models.insert(Avatar(id: "a2", player: Player.Reference(id: "gauss")))
        #expect(try box.document("players", "gauss")?["avatarId"] == "a2")
        #expect(try box.document("avatars", "a1") == [:])
    }

    @Test func oneToMany() throws {
        let box = try ModelBox(ModelBox.players)
        let messages = [Message(id: "m1"), Message(id: "m2")]
        try box.models.save { changes in
            try changes.update(box.player("lovelace")) {
                $0.sentMessages = messages.map { $0.reference }
            }
            for message in messages { try changes.insert(message) }
        }
        #expect(try box.document("messages", "m1") == ["senderId": "lovelace"])
        #expect(try box.document("messages", "m2") == ["senderId": "lovelace"])
        #expect(try box.document("players", "lovelace")?["sentMessageIds"] == ["m1", "m2"])
        // A message has one sender: it leaves the old one.
        try box.models.update(box.player("gauss")) { $0.sentMessages = [messages[1].reference] }
        #expect(try box.document("messages", "m2") == ["senderId": "gauss"])
        #expect(try box.document("players", "lovelace")?["sentMessageIds"] == ["m1"])
        // And the same from the message's side.
        let first = try #require(try box.models.find(Message.self, id: "m1"))
        try box.models.update(first) { $0.sender = Player.Reference(id: "gauss") }
        #expect(try box.document("players", "lovelace")?["sentMessageIds"] == nil)
        #expect(try box.document("players", "gauss")?["sentMessageIds"] == ["m2", "m1"])
    }

    @Test func manyToMany() throws {
        let box = try ModelBox(ModelBox.players)
        let (first, second) = (Message(id: "m1"), Message(id: "m2"))
        try box.models.save { changes in
            try changes.update(box.player("lovelace")) {
                $0.receivedMessages = [first.reference, second.reference]
            }
            try changes.update(box.player("gauss")) { $0.receivedMessages = [second.reference] }
            try changes.insert(first)
            try changes.insert(second)
        }
        #expect(try box.document("messages", "m1") == ["receiverIds": ["lovelace"]])
        #expect(try box.document("messages", "m2") == ["receiverIds": ["lovelace", "gauss"]])
        #expect(try box.document("players", "gauss")?["receivedMessageIds"] == ["m2"])
        let message = try #require(try box.models.find(Message.self, id: "m2"))
        try box.models.update(message) { $0.receivers.removeFirst() }
        #expect(try box.document("players", "lovelace")?["receivedMessageIds"] == ["m1"])
        #expect(try box.document("messages", "m2") == ["receiverIds": ["gauss"]])
    }

    @Test func noReferencesHaveNoField() throws {
        let box = try ModelBox([
            ("players", ["_id": "a", "avatarId": "a1", "sentMessageIds": ["m1"]]),
            ("avatars", ["_id": "a1", "playerId": "a"]),
            ("messages", ["_id": "m1", "senderId": "a"]),
        ])
        try box.models.update(box.player("a")) {
            $0.avatar = nil
            $0.sentMessages = []
        }
        #expect(try box.document("players", "a") == [:])
        #expect(try box.document("avatars", "a1") == [:])
        #expect(try box.document("messages", "m1") == [:])
    }

    @Test func newObjectsReferToEachOther() throws {
        let box = try ModelBox()
        let (sender, message) = (Player(id: "p"), Message(id: "m"))
        try box.models.save { changes in
            var sent = message
            sent.sender = sender.reference
            try changes.insert(sent)
            try changes.insert(sender)
        }
        #expect(try box.document("messages", "m") == ["senderId": "p"])
        #expect(try box.document("players", "p") == ["score": 0, "sentMessageIds": ["m"]])
    }

    /// The document of the other end may not have come yet.
    @Test func theOtherEndMayBeMissing() throws {
        let box = try ModelBox()
        try box.models.insert(Message(id: "m", sender: Player.Reference(id: "p")))
        #expect(try box.document("messages", "m") == ["senderId": "p"])
        #expect(try box.document("players", "p") == nil)
    }

    @Test func theOrderOfReferencesIsTheCallers() throws {
        let box = try ModelBox([("players", ["_id": "a", "sentMessageIds": ["m1", "m2", "m3"]])])
        let save = try box.models.update(box.player("a")) { $0.sentMessages.reverse() }
        #expect(save.calls.count == 1)
        #expect(try box.document("players", "a") == ["sentMessageIds": ["m3", "m2", "m1"]])
    }

    @Test func aDeletedObjectIsForgotten() throws {
        let box = try ModelBox([
            ("players", ["_id": "a", "avatarId": "a1", "sentMessageIds": ["m1", "m2"]]),
            ("avatars", ["_id": "a1", "playerId": "a"]),
            ("messages", ["_id": "m1", "senderId": "a"]),
            ("messages", ["_id": "m2", "senderId": "a"]),
        ])
        try box.models.save { changes in
            try changes.delete(Avatar(id: "a1"))
            try changes.delete(Message(id: "m1"))
        }
        #expect(try box.document("players", "a") == ["sentMessageIds": ["m2"]])
        try box.models.delete(Player(id: "a"))
        #expect(try box.document("messages", "m2") == [:])
    }

    // MARK: Relationships, one-way storage

    private static let library: [(String, EJSONObject)] = [
        ("books", ["_id": .objectID(.of("1"))]), ("books", ["_id": .objectID(.of("2"))]),
        ("writers", ["_id": "ada"]), ("covers", ["_id": "red"]), ("covers", ["_id": "blue"]),
        ("tags", ["_id": "math"]), ("tags", ["_id": "new"]),
    ]
    private static let first = EJSON.objectID(.of("1"))
    private static let second = EJSON.objectID(.of("2"))

    @Test func theEndWithStorageIsWritten() throws {
        let box = try ModelBox(ModelSavingTests.library)
        let books = try box.models.find(Book.self)
        try box.models.update(#require(try box.models.find(Author.self, id: "ada"))) {
            $0.books = books.map { $0.reference }
        }
        try box.models.update(#require(try box.models.find(Tag.self, id: "math"))) {
            $0.books = [books[1].reference]
        }
        try box.models.update(#require(try box.models.find(Cover.self, id: "red"))) {
            $0.book = books[0].reference
        }
        #expect(
            try box.document("books", ModelSavingTests.first)
                == ["authorId": "ada", "coverId": "red"])
        #expect(
            try box.document("books", ModelSavingTests.second)
                == ["authorId": "ada", "labels": ["math"]])
        #expect(try box.document("writers", "ada") == [:] && box.document("covers", "red") == [:])

        // The cover of a book is replaced from both ends, and an author loses a book.
        try box.models.update(books[0]) { $0.cover = Cover.Reference(id: "blue") }
        #expect(try box.models.find(Cover.self).map { $0.book?.id } == [nil, .of("1")])
        try box.models.update(#require(try box.models.find(Cover.self, id: "blue"))) {
            $0.book = books[1].reference
        }
        #expect(try box.document("books", ModelSavingTests.first) == ["authorId": "ada"])
        try box.models.update(#require(try box.models.find(Author.self, id: "ada"))) {
            $0.books.removeAll { $0.id == .of("1") }
        }
        #expect(try box.document("books", ModelSavingTests.first) == [:])
        #expect(
            try box.document("books", ModelSavingTests.second)
                == ["authorId": "ada", "labels": ["math"], "coverId": "blue"])
    }

    /// Each book has one cover, and only books know: every change must see those before it.
    @Test func manyChangesOfTheEndWithoutStorage() throws {
        let box = try ModelBox(ModelSavingTests.library)
        let books = try box.models.find(Book.self)
        let covers = try box.models.find(Cover.self)
        try box.models.save { changes in
            try changes.update(covers[0]) { $0.book = books[0].reference }
            try changes.update(covers[1]) { $0.book = books[0].reference }
            try changes.update(covers[0]) { $0.book = books[1].reference }
            try changes.insert(Cover(id: "green", book: books[1].reference))
            try changes.delete(books[0])
        }
        #expect(try box.document("books", ModelSavingTests.first) == nil)
        #expect(try box.document("books", ModelSavingTests.second) == ["coverId": "green"])
        #expect(
            try box.models.find(Cover.self).map { $0.book?.id } == [nil, nil, .of("2")])
    }

    @Test func aNewObjectWithoutStorage() throws {
        let box = try ModelBox(ModelSavingTests.library)
        try box.models.save { changes in
            let book = Book(id: .of("3"), title: "New")
            try changes.insert(Author(id: "bob", books: [book.reference]))
            try changes.insert(book)
        }
        #expect(
            try box.document("books", .objectID(.of("3"))) == ["title": "New", "authorId": "bob"])
        let error = #expect(throws: RealtimeError.self) {
            try box.models.insert(Tag(id: "t", books: [Book.Reference(id: .of("4"))]))
        }
        #expect(error?.code == .invalidArgument)
        #expect(try box.document("tags", "t") == nil)
    }

    /// Nobody is asked to forget an object that only its own document knows.
    @Test func deletingWithOneWayStorage() throws {
        let box = try ModelBox(ModelSavingTests.library)
        try box.update("books", ModelSavingTests.first, ["authorId": "ada"])
        let save = try box.models.delete(Author(id: "ada"))
        #expect(save.calls.count == 1)
        let book = try #require(try box.models.find(Book.self, id: .of("1")))
        #expect(book.author?.id == "ada")
        #expect(try box.models.get(book.author) == nil)
    }

    @Test func aBatchInAStub() throws {
        let box = try ModelBox(ModelBox.players)
        try box.client.setStub("promote") { [models = box.models] _, _ in
            let player = try models.find(Player.self, id: "gauss")
            try models.save { changes in
                if let player { try changes.update(player) { $0.score += 100 } }
                try changes.insert(Message(id: "m", body: "Well done."))
            }
            return .null
        }
        try box.client.send("promote")
        #expect(try box.player("gauss").score == 105)
        #expect(try box.document("messages", "m") == ["body": "Well done."])
    }
}

extension ModelBox {
    /// The changes of documents from now on, an element for each notification.
    func changes() -> AsyncStream<[DDPChange]> {
        let (stream, continuation) = AsyncStream.makeStream(of: [DDPChange].self)
        // Those that were made before may still be reported.
        let known = try? client.collection("players").find().map { $0.id }
        client.onChanges { changes in
            let isOld = changes.allSatisfy { change in
                change.kind == .added && known?.contains(change.id) ?? false
            }
            if !isOld { continuation.yield(changes) }
        }
        return stream
    }
}
