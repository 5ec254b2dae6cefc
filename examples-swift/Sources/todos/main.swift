// Ann and Ben share a list of todos on a Meteor server. Each sees their own change at once, and the
// other's when the server has made it. Ben even makes one while his connection is lost.
//
//     todos [URL]
@preconcurrency import Glibc
import Realtime

setlinebuf(stdout)

/// Prints the list whenever it changes.
struct Person {
    let client: DDPClient
    let todos: DDPCollection
    private let lists: AsyncStream<[String]>
    private let query: DDPLiveQuery
    private let subscription: DDPSubscription

    init(_ name: String, url: String, list: String) async throws {
        let client = try DDPClient(url)
        let todos = try client.collection("todos")
        client.onStatus { change in
            let cause = change.error.map { ": \($0.message)" } ?? ""
            print("\(name) is \(change.status)\(cause)")
        }
        // A stub: does here what the server's method will do.
        try client.setStub("addTodo") { run, params in
            guard case .object(let todo)? = params.first else { return .null }
            return try run.insert("todos", todo)
        }
        let (lists, found) = AsyncStream.makeStream(of: [String].self)
        query = try todos.observe { _ in
            let todos = (try? todos.find(options: ["sort": ["text": 1]])) ?? []
            let list = todos.map { "[\($0["done"] == true ? "x" : " ")] \($0.text("text"))" }
            print("\(name) sees \(list.isEmpty ? "an empty list" : list.joined(separator: ", "))")
            found.yield(list)
        }
        try client.connect()
        subscription = try client.subscribe("todos", [.string(list)])
        try await subscription.ready()
        (self.client, self.todos, self.lists) = (client, todos, lists)
    }

    /// Waits until the list has these, and no others.
    func sees(_ todos: String...) async {
        for await list in lists where list == todos { return }
    }
}

extension DDPDocument {
    func text(_ field: String) -> String {
        guard case .string(let text)? = self[field] else { return "" }
        return text
    }
}

let url = CommandLine.arguments.dropFirst().first ?? "http://127.0.0.1:3000"
// Each run has a list of its own.
let list = "swift-\(UInt32.random(in: 0...UInt32.max))"
let ann = try await Person("Ann", url: url, list: list)
let ben = try await Person("Ben", url: url, list: list)

print("-- Ann adds a todo. She sees it before the server has answered.")
try await ann.client.call("addTodo", [["list": .string(list), "text": "Buy milk", "done": false]])
print("-- The server has added it, so Ben sees it, too.")
await ben.sees("[ ] Buy milk")

print("-- Ben's connection is lost. He does the todo, and sees that at once.")
try ben.client.reconnect()
for todo in try ben.todos.find() {
    try await ben.todos.update(todo.id, ["$set": ["done": true]]).completed()
}
print("-- He is connected again, and his change has reached the server.")
await ann.sees("[x] Buy milk")

print("-- Ann removes the todo.")
for todo in try ann.todos.find() { try await ann.todos.remove(todo.id).completed() }
await ben.sees()
