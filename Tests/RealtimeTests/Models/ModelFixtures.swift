import Realtime

// A model with relationships of all kinds in two-way storage, and one with one-way storage.

struct Player: DDPModel, Equatable {
    var id = String.randomID()
    var name: String?
    var score = 0
    @Relationship(inverse: "player") var avatar: Avatar.Reference? = nil
    @Relationship(inverse: "sender") var sentMessages: [Message.Reference] = []
    @Relationship(inverse: "receivers") var receivedMessages: [Message.Reference] = []
}

struct Avatar: DDPModel, Equatable {
    var id = String.randomID()
    var url: String?
    @Relationship(inverse: "avatar") var player: Player.Reference? = nil
}

struct Message: DDPModel, Equatable {
    var id = String.randomID()
    var body: String?
    var creationDate: EJSONDate?
    @Relationship(inverse: "sentMessages") var sender: Player.Reference? = nil
    @Relationship(inverse: "receivedMessages") var receivers: [Player.Reference] = []

    enum CodingKeys: String, CodingKey {
        case id, body, sender, receivers
        case creationDate = "createdAt"
    }
}

/// Documents of books contain all references.
struct Book: DDPModel, Equatable {
    var id = ObjectID.randomID()
    var title = ""
    @Relationship(inverse: "books") var author: Author.Reference? = nil
    @Relationship(field: "labels", inverse: "books") var tags: [Tag.Reference] = []
    @Relationship(inverse: "book") var cover: Cover.Reference? = nil
    /// Known at this end only.
    var previous: Book.Reference?
}

struct Author: DDPModel, Equatable {
    static let collection = "writers"
    var id = String.randomID()
    @Relationship(inverse: "author", storage: false) var books: [Book.Reference] = []
}

struct Tag: DDPModel, Equatable {
    var id = String.randomID()
    @Relationship(inverse: "tags", storage: false) var books: [Book.Reference] = []
}

struct Cover: DDPModel, Equatable {
    var id = String.randomID()
    @Relationship(inverse: "cover", storage: false) var book: Book.Reference? = nil
}

/// The models of a client without a connection: its documents are what the test writes.
struct ModelBox {
    let client: DDPClient
    let models: DDPModels

    init(_ documents: [(String, EJSONObject)] = []) throws {
        var options = DDPClient.Options()
        // So that handlers have run when the loop has reported a change.
        options.executor = .loop
        client = try DDPClient("ws://127.0.0.1:1", options: options)
        models = try DDPModels(client, Player.self, Book.self)
        for (collection, document) in documents {
            try client.collection(collection).insert(document)
        }
    }

    static let players: [(String, EJSONObject)] = [
        ("players", ["_id": "lovelace", "name": "Ada Lovelace", "score": 25]),
        ("players", ["_id": "gauss", "name": "Carl Friedrich Gauss", "score": 5]),
        ("players", ["_id": "shannon", "name": "Claude Shannon", "score": 10]),
        ("players", ["_id": "turing", "name": "Alan Turing", "score": 20]),
    ]

    /// The fields of a document; nil if it is not there.
    func document(_ collection: String, _ id: EJSON) throws -> EJSONObject? {
        try client.collection(collection)[id]?.fields
    }

    func update(_ collection: String, _ id: EJSON, _ fields: EJSONObject) throws {
        try client.collection(collection).update(id, ["$set": .object(fields)])
    }

    func player(_ id: String) throws -> Player {
        guard let player = try models.find(Player.self, id: id) else { throw Missing(id: id) }
        return player
    }
}

struct Missing: Error {
    let id: String
}

extension ObjectID {
    /// An id of equal digits.
    static func of(_ digit: Character) -> ObjectID {
        ObjectID(hex: String(repeating: digit, count: 24)) ?? ObjectID.randomID()
    }
}
