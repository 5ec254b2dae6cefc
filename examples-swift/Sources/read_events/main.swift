// Prints the events of a stream; reconnects by itself.
@preconcurrency import Glibc
import Realtime

setlinebuf(stdout)
let source = try EventSource(CommandLine.arguments[1])
for try await event in source { print("\(event.event): \(event.data)") }
