// Makes one request and prints the response: a GET, or a POST of JSON. Retries when that is safe,
// within ten seconds.
//
//     request https://example.org/ [JSON]
import Glibc
import Realtime

func complain(_ text: String) {
    _ = "request: \(text)\n".withCString { write(STDERR_FILENO, $0, strlen($0)) }
}

func run(_ url: String, json: String?) async throws {
    var options = REST.Options()
    options.deadline = .seconds(10)
    // With a key, servers that support keys perform a repeated POST once.
    options.idempotencyKeys = true
    let rest = try REST(options: options)
    let answer =
        if let json { try await rest.post(url, body: .json(json)) } else { try await rest.get(url) }
    complain("\(answer.status) in attempt \(answer.attempts)")
    print(answer.text)
}

let arguments = CommandLine.arguments.dropFirst()
guard (1...2).contains(arguments.count) else {
    complain("usage: request URL [JSON]")
    exit(2)
}
do {
    try await run(arguments[1], json: arguments.count == 2 ? arguments[2] : nil)
} catch {
    complain("\(error)")
    exit(1)
}
