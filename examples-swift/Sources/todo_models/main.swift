// Makes a list of todos on a Meteor server, and does one after the other.
//
//     todo_models URL LIST TEXT…
@preconcurrency import Glibc
import Realtime

setlinebuf(stdout)

/// A document of the collection `lists`.
struct List: DDPModel {
    var id = String.randomID()
    var name = ""
    /// The todos whose documents contain this list's id.
    @Relationship(inverse: "list", storage: false) var todos: [Todo.Reference] = []
}

/// A document of the collection `todos`. The id of its list is in the field `listId`.
struct Todo: DDPModel {
    var id = String.randomID()
    var text = ""
    var done = false
    @Relationship(inverse: "todos") var list: List.Reference? = nil
}

let words = CommandLine.arguments
let client = try DDPClient(words[1])
let models = try DDPModels(client, List.self, Todo.self)
try client.connect()

let list = List(name: words[2])
let loader = try SubscriptionLoader(client)
try loader.add("lists")
// As a parameter, an object becomes its id.
try loader.add("todos", with: list)
try await loader.ready()

// Here these are one change; the server gets an insertion for each.
try models.save { changes in
    try changes.insert(list)
    for text in words.dropFirst(3) {
        try changes.insert(Todo(text: text, list: list.reference))
    }
}

var open: [Todo] = []
let byText: EJSONObject = ["sort": ["text": 1]]
for try await change in try models.changes(Todo.self, ["done": false], options: byText) {
    open.apply(change)
    print("\(list.name): \(open.map { $0.text }.joined(separator: ", "))")
    guard let next = open.first else { break }
    // The todo leaves the result now. `completed` also waits for the server.
    try await models.update(next) { $0.done = true }.completed()
}
let todos = try models.get(models.find(List.self, id: list.id)?.todos ?? [])
print("done: \(todos.map { $0.text }.sorted().joined(separator: ", "))")
