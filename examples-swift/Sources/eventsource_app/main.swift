// Prints the events of a stream. The next run continues after the last event of this one.
//
//     eventsource_app https://example.org/events
import Dispatch
@preconcurrency import Glibc
import Realtime

setlinebuf(stdout)
Log.send(upTo: .warning) { _, line in print(line) }
let source = EventSource(
    url: CommandLine.arguments[1],
    headers: ["Authorization": try EventSource.basicAuth("user", password: "password")])
source.onOpen { print("open") }
source.onError { error in print("error: \(error)") }
source.onMessage { id, event, data in print("\(id) \(event): \(data)") }
source.addEventListener("tick") { id, event, data in print("\(id) \(event): \(data)") }
dispatchMain()
