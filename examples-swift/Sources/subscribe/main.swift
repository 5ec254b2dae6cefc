// Receives COUNT text messages, which must be the decimal numbers 0, 1, ... COUNT-1, each once and
// in order: what a subscriber expects of a feed with sequence numbers.
//
//     subscribe ws://127.0.0.1:8080/feed 50 [CA.pem]
import Glibc
import Realtime

struct Gap: Error, CustomStringConvertible {
    let expected: String
    let received: WebSocket.Message

    var description: String { "expected \(expected), received \(received)" }
}

/// - Returns: how many came before the connection ended.
func subscribe(to url: String, count: Int, caFile: String?) async throws -> Int {
    var options = WebSocket.Options()
    options.caFile = caFile
    let socket = try await WebSocket.connect(url, options: options)
    var next = 0
    for try await message in socket.messages {
        let expected = String(next)
        guard message == .text(expected) else {
            throw Gap(expected: expected, received: message)
        }
        print(expected, terminator: next % 20 == 19 ? "\n" : " ")
        fflush(nil)
        next += 1
        if next == count { break }
    }
    try await socket.close()
    if next % 20 != 0 { print() }
    return next
}

let arguments = CommandLine.arguments
guard (3...4).contains(arguments.count), let count = Int(arguments[2]), count > 0 else {
    print("usage: subscribe URL COUNT [CA-FILE]")
    exit(2)
}
do {
    let caFile = arguments.count == 4 ? arguments[3] : nil
    let received = try await subscribe(to: arguments[1], count: count, caFile: caFile)
    let isWhole = received == count
    print(
        "\(isWhole ? "ok" : "FAILED"): \(received) of \(count) messages, in order, each once")
    exit(isWhole ? 0 : 1)
} catch {
    print("\nFAILED: \(error)")
    exit(1)
}
