// Prints the events of a stream; reconnects by itself.
import Realtime

let source = try EventSource(CommandLine.arguments[1])
for try await event in source { print("\(event.event): \(event.data)") }
