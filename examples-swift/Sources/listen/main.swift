// Prints the messages of a path, each once and in order, by WebSocket, server-sent events or long
// polls, whichever works, and reports the transport in use and each change of it. With the last id,
// a second run continues where the first one stopped. TOKEN in the environment is the access token,
// UPGRADE_MS the time before it tries the WebSocket again, if that is not 5 minutes.
//
//     listen https://example.org news [COUNT [ID]]
import Glibc
import Realtime

func complain(_ text: String) {
    _ = "listen: \(text)\n".withCString { write(STDERR_FILENO, $0, strlen($0)) }
}

func run(_ base: String, _ path: String, count: Int?, id: String) async throws {
    var config = Spreadbot.Configuration(baseURL: base)
    config.accessToken = getenv("TOKEN").map { String(cString: $0) } ?? ""
    config.lastEventID = id
    if let upgrade = getenv("UPGRADE_MS"), let time = Int(String(cString: upgrade)) {
        config.upgradeInterval = .milliseconds(time)
    }
    // Report a transport before its first message is printed.
    config.executor = .loop
    let spreadbot = try Spreadbot(config: config)
    spreadbot.onOpen { transport, resumed, _ in
        complain("by \(transport)\(resumed ? ", after the last id" : "")")
    }
    spreadbot.onError { event in
        guard !event.isFatal else { return }
        complain("\(event.error); trying again \(event.retryIn.map { "in \($0)" } ?? "later")")
    }
    var left = count ?? 0
    for try await message in try spreadbot.messages(path: path) {
        print(message.hadID ? message.id : "-", message.text)
        fflush(nil)
        left -= 1
        if left == 0 { break }
    }
    await spreadbot.disconnect()
}

let arguments = CommandLine.arguments.dropFirst()
let count = arguments.dropFirst(2).first.map { Int($0) ?? 0 }
guard (2...4).contains(arguments.count), count ?? 1 > 0 else {
    complain("usage: listen BASE_URL PATH [COUNT [ID]]")
    exit(2)
}
do {
    try await run(
        arguments[1], arguments[2], count: count, id: arguments.count == 4 ? arguments[4] : "")
} catch {
    complain("\(error)")
    exit(1)
}
