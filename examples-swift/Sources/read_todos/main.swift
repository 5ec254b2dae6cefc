// Prints a list of todos on a Meteor server, and again after each change. Reconnects by itself.
//
//     read_todos URL LIST
@preconcurrency import Glibc
import Realtime

setlinebuf(stdout)
let words = CommandLine.arguments
let client = try DDPClient(words[1])
try client.connect()
let subscription = try client.subscribe("todos", [.string(words[2])])
try await subscription.ready()
for try await todos in try client.collection("todos").results(options: ["sort": ["text": 1]]) {
    print("The list:")
    for todo in todos { print(EJSON.object(todo.fields).text) }
}
