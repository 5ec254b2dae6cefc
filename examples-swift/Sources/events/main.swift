// Prints the events of a stream (Server-Sent Events), each with its id and type, until COUNT have
// arrived, or forever. With the last id, a second run continues where the first one stopped.
//
//     events https://example.org/events [COUNT [ID]]
import Glibc
import Realtime

func complain(_ text: String) {
    _ = "events: \(text)\n".withCString { write(STDERR_FILENO, $0, strlen($0)) }
}

func run(_ url: String, count: Int?, id: String?) async throws {
    var options = EventSource.Options()
    options.lastEventID = id
    options.retryStatuses = EventSource.Options.resilient
    let source = try EventSource(url, options: options)
    source.onOpen { _ in complain("the stream is open") }
    source.onError { event in
        guard let delay = event.retryIn else { return }
        complain("\(event.error); attempt \(event.attempt) in \(delay)")
    }
    var left = count ?? 0
    for try await event in source {
        print(event.hadID ? event.id : "-", event.event, event.data)
        fflush(nil)
        left -= 1
        if left == 0 { break }
    }
}

let arguments = CommandLine.arguments.dropFirst()
let count = arguments.dropFirst().first.map { Int($0) ?? 0 }
guard (1...3).contains(arguments.count), count ?? 1 > 0 else {
    complain("usage: events URL [COUNT [ID]]")
    exit(2)
}
do {
    try await run(arguments[1], count: count, id: arguments.count == 3 ? arguments[3] : nil)
} catch {
    complain("\(error)")
    exit(1)
}
