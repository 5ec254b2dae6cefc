import Foundation
import Realtime
import RealtimeFoundation
import Testing

/// Models of a server's documents.
@Suite struct DDPModelsTests {
    struct List: DDPModel {
        var id = String.randomID()
        var name = ""
        @Relationship(inverse: "list", storage: false) var todos: [Todo.Reference] = []
    }

    struct Todo: DDPModel, Equatable {
        var id = String.randomID()
        var text = ""
        var done = false
        var due: Date?
        var picture: Data?
        @Relationship(inverse: "todos") var list: List.Reference? = nil
    }

    /// With a list of two todos, and a publication of all of them.
    private func todosApp() async throws -> MeteorApp {
        let app = try await MeteorApp()
        for name in ["lists", "todos"] {
            try await app.control("collection", ["name": .string(name)])
        }
        try await app.control(
            "insert", ["collection": "lists", "many": [["_id": "l", "name": "Groceries"]]])
        try await app.control(
            "insert",
            [
                "collection": "todos",
                "many": [
                    ["_id": "t1", "text": "milk", "listId": "l", "due": ["$date": 1500]],
                    ["_id": "t2", "text": "eggs", "listId": "l", "picture": ["$binary": "AQI="]],
                ],
            ])
        try await app.control(
            "publication",
            ["name": "todos", "cursors": [["collection": "lists"], ["collection": "todos"]]])
        return app
    }

    private func documents(_ app: MeteorApp, _ collection: JSONValue) async throws -> EJSON {
        try EJSON(parsing: try await app.ask("find", ["collection": collection]).text)
    }

    @Test(.timeLimit(.minutes(5))) func objectsOfTheServer() async throws {
        let app = try await todosApp()
        let client = try app.client()
        let models = try DDPModels(client, Todo.self)
        try await client.subscribe("todos").ready()
        let list = try #require(try models.find(List.self).first)
        let todos = try models.get(list.todos)
        #expect(todos.map { $0.text } == ["milk", "eggs"])
        #expect(todos[0].due == Date(timeIntervalSince1970: 1.5) && todos[0].picture == nil)
        #expect(todos[1].picture == Data([1, 2]) && !todos[1].done)
        #expect(try models.get(todos[0].list)?.name == "Groceries")

        let bread = Todo(text: "bread", list: list.reference)
        try await models.save { changes in
            try changes.update(todos[0]) { $0.done = true }
            try changes.insert(bread)
            try changes.delete(todos[1])
        }.completed()
        #expect(
            try await documents(app, "todos") == [
                [
                    "_id": "t1", "text": "milk", "listId": "l", "due": .date(1500), "done": true,
                ],
                ["_id": .string(bread.id), "text": "bread", "done": false, "listId": "l"],
            ])
        #expect(try models.find(Todo.self).map { $0.text } == ["milk", "bread"])
    }

    @Test(.timeLimit(.minutes(5))) func whatTheServerRefusesIsUndone() async throws {
        let app = try await todosApp()
        try await app.control("collection", ["name": "lists", "update": false])
        let client = try app.client()
        let models = try DDPModels(client, Todo.self)
        try await client.subscribe("todos").ready()
        let list = try #require(try models.find(List.self).first)
        let (names, continuation) = AsyncStream.makeStream(of: String.self)
        let query = try models.observe(List.self) { change in
            for name in change.inserted.map({ $0.element.name })
                + change.updated.map({ $0.element.name })
            {
                continuation.yield(name)
            }
        }
        var seen = names.makeAsyncIterator()
        #expect(await seen.next() == "Groceries")
        // Until the change has been seen: changes that follow each other may be reported as one.
        let updates: JSONValue = ["msg": "method", "method": "/lists/update"]
        try await app.control(
            "fault", ["point": "received", "msg": "method", "match": updates, "do": "hold"])
        let save = try models.save { changes in
            try changes.update(list) { $0.name = "Shopping" }
            try changes.insert(Todo(id: "t3", text: "tea"))
        }
        #expect(await seen.next() == "Shopping")
        try await app.control("wait_held", [:])
        try await app.control("release", [:])
        let error = await #expect(throws: DDPError.self) { try await save.completed() }
        #expect(error?.code == "403")
        #expect(try models.find(List.self).map { $0.name } == ["Groceries"])
        #expect(try models.find(Todo.self, id: "t3")?.text == "tea")
        #expect(await seen.next() == "Groceries")
        query.stop()
    }

    @Test(.timeLimit(.minutes(5))) func aLiveQueryFollowsTheServer() async throws {
        let app = try await todosApp()
        let client = try app.client()
        let models = try DDPModels(client, Todo.self)
        try await client.subscribe("todos").ready()
        var changes = try models.changes(
            Todo.self, ["done": ["$ne": true]], options: ["sort": ["text": 1]]
        ).makeAsyncIterator()
        var todos: [Todo] = []
        todos.apply(try #require(try await changes.next()))
        #expect(todos.map { $0.text } == ["eggs", "milk"])
        try await app.control(
            "update",
            ["collection": "todos", "id": "t2", "modifier": ["$set": ["text": "oats"]]])
        todos.apply(try #require(try await changes.next()))
        #expect(todos.map { $0.text } == ["milk", "oats"])
        // Done here first: the server's answer changes nothing more.
        try await models.update(todos[0]) { $0.done = true }.completed()
        todos.apply(try #require(try await changes.next()))
        #expect(todos.map { $0.text } == ["oats"])
    }

    // MARK: Parameters: METCoreDataDDPClientTests

    @Test(.timeLimit(.minutes(5))) func objectsAsParameters() async throws {
        struct Place: Codable { var x = 1.5 }
        struct Choice: Codable { var todo = Todo(id: "t") }
        let app = try await todosApp()
        try await app.control(
            "method",
            [
                "name": "echo",
                "ops": [
                    [
                        "op": "return",
                        "value": [["$param": 0], ["$param": 1], ["$param": 2], ["$param": 3]],
                    ]
                ],
            ])
        let client = try app.client()
        let (list, todo) = (List(id: "l"), Todo(id: "t"))
        #expect(
            try await client.call("echo", with: list, [todo, Todo(id: "u")], ["a": todo], Choice())
                == ["l", ["t", "u"], ["a": "t"], ["todo": "t"]])
        let other = Book(id: .of("1"))
        #expect(
            try await client.call("echo", with: other, other.reference, todo.reference, todo.list)
                == [.objectID(.of("1")), .objectID(.of("1")), "t", .null])
        #expect(
            try await client.call(
                "echo", with: "text", 5, Date(timeIntervalSince1970: 1), Place())
                == ["text", 5, .date(1000), ["x": 1.5]])
        #expect(
            try await client.send("echo", with: EJSON.bytes([1]), Data([2]), true, nil as Int?)
                .result() == [.bytes([1]), .bytes([2]), true, .null])
    }

    @Test(.timeLimit(.minutes(5))) func objectsAsParametersOfSubscriptions() async throws {
        let app = try await todosApp()
        try await app.control(
            "publication",
            [
                "name": "todosOf",
                "cursors": [["collection": "todos", "selector": ["listId": ["$param": 0]]]],
            ])
        let client = try app.client()
        let models = try DDPModels(client, Todo.self)
        try await client.subscribe("todosOf", with: List(id: "other")).ready()
        #expect(try models.find(Todo.self).isEmpty)
        try await client.subscribe("todosOf", with: List(id: "l"), keep: .zero).ready()
        #expect(try models.find(Todo.self).count == 2)
        let loader = try SubscriptionLoader(client)
        try loader.add("todosOf", with: List(id: "l"))
        try loader.add(try DDPPublication("todosOf", with: List(id: "x")))
        try await loader.ready()
        #expect(try models.find(Todo.self).count == 2)
    }

    @Test(.timeLimit(.minutes(5))) func resultsAreDecoded() async throws {
        struct Sum: Codable, Equatable { var total: Int }
        let app = try await todosApp()
        try await app.control(
            "method",
            ["name": "sum", "ops": [["op": "return", "value": ["total": ["$param": 0]]]]])
        let client = try app.client()
        #expect(try await client.call("sum", with: 7, returning: Sum.self) == Sum(total: 7))
        let error = await #expect(throws: DecodingError.self) {
            try await client.call("sum", with: "seven", returning: Sum.self)
        }
        guard case .typeMismatch(_, let context)? = error else { return }
        #expect(context.codingPath.map { $0.stringValue } == ["total"])
        await #expect(throws: EncodingError.self) { try await client.call("sum", with: Int.max) }
    }
}
