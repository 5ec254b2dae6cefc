// Receives COUNT text messages and checks that they are the decimal numbers 0, 1, ... COUNT-1, each
// once and in order, as a subscriber of a feed with sequence numbers expects. Uses a WebSocket;
// server-sent events if the URL begins with http; or long polls.
//
//     subscribe ws://127.0.0.1:8080/feed 50 [CA.pem]
//     subscribe [--poll] http://127.0.0.1:8080/feed 50 [CA.pem]
import Glibc
import Realtime

struct Gap: Error, CustomStringConvertible {
    let expected: String
    let received: String

    var description: String { "expected \(expected), received \(received)" }
}

/// Compares each message with the expected one.
struct Sequence {
    let count: Int
    private(set) var next = 0

    init(count: Int) { self.count = count }

    /// - Returns: whether it was the last one.
    mutating func take(_ text: String) throws -> Bool {
        let expected = String(next)
        guard text == expected else { throw Gap(expected: expected, received: text) }
        print(expected, terminator: next % 20 == 19 ? "\n" : " ")
        fflush(nil)
        next += 1
        if next == count, next % 20 != 0 { print() }
        return next == count
    }
}

enum Transport { case webSocket, sse, poll }

/// - Returns: how many messages arrived before the end.
func subscribe(
    to url: String, by transport: Transport, count: Int, caFile: String?
) async throws -> Int {
    var sequence = Sequence(count: count)
    var network = Network()
    network.caFile = caFile
    switch transport {
    case .webSocket:
        var options = WebSocket.Options()
        options.network = network
        let socket = try await WebSocket.connect(url, options: options)
        for try await message in socket.messages {
            guard case .text(let text) = message else { throw Gap(expected: "", received: "bytes") }
            if try sequence.take(text) { break }
        }
        try await socket.close()
    case .sse:
        var options = EventSource.Options()
        options.network = network
        for try await event in try EventSource(url, options: options) {
            if try sequence.take(event.data) { break }
        }
    case .poll:
        var options = LongPoll.Options()
        options.network = network
        for try await message in try LongPoll(url, options: options) {
            if try sequence.take(message.text) { break }
        }
    }
    return sequence.next
}

var arguments = Array(CommandLine.arguments.dropFirst())
let polls = arguments.first == "--poll"
if polls { arguments.removeFirst() }
guard (2...3).contains(arguments.count), let count = Int(arguments[1]), count > 0 else {
    print("usage: subscribe [--poll] URL COUNT [CA-FILE]")
    exit(2)
}
let transport: Transport =
    polls ? .poll : arguments[0].lowercased().hasPrefix("http") ? .sse : .webSocket
do {
    let caFile = arguments.count == 3 ? arguments[2] : nil
    let received = try await subscribe(
        to: arguments[0], by: transport, count: count, caFile: caFile)
    let isWhole = received == count
    print(
        "\(isWhole ? "ok" : "FAILED"): \(received) of \(count) messages, in order, each once")
    exit(isWhole ? 0 : 1)
} catch {
    print("\nFAILED: \(error)")
    exit(1)
}
