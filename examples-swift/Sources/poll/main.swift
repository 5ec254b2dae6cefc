// Prints the messages of a server that answers requests when there is something new (long polling),
// each with its id, until COUNT have arrived, or forever. With the last id, a second run continues
// where the first one stopped.
//
//     poll https://example.org/messages [COUNT [ID]]
import Glibc
import Realtime

func complain(_ text: String) {
    _ = "poll: \(text)\n".withCString { write(STDERR_FILENO, $0, strlen($0)) }
}

func run(_ url: String, count: Int?, id: String) async throws {
    var options = LongPoll.Options()
    options.lastEventID = id
    let poll = try LongPoll(url, options: options)
    poll.onOpen { _ in complain("the server answers") }
    poll.onError { event in
        guard let delay = event.retryIn else { return }
        complain("\(event.error); attempt \(event.attempt) in \(delay)")
    }
    var left = count ?? 0
    for try await message in poll {
        // Of a batch, only the last message has its own id.
        print(message.hadID ? message.id : "-", message.text)
        fflush(nil)
        left -= 1
        if left == 0 { break }
    }
}

let arguments = CommandLine.arguments.dropFirst()
let count = arguments.dropFirst().first.map { Int($0) ?? 0 }
guard (1...3).contains(arguments.count), count ?? 1 > 0 else {
    complain("usage: poll URL [COUNT [ID]]")
    exit(2)
}
do {
    try await run(arguments[1], count: count, id: arguments.count == 3 ? arguments[3] : "")
} catch {
    complain("\(error)")
    exit(1)
}
