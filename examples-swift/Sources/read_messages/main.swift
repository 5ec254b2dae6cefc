// Prints the messages of a path, each once and in order, over whichever transport works.
@preconcurrency import Glibc
import Realtime

setlinebuf(stdout)
let config = Spreadbot.Configuration(baseURL: CommandLine.arguments[1])
let spreadbot = try Spreadbot(config: config)
for try await message in try spreadbot.messages(path: CommandLine.arguments[2]) {
    print("\(message.id): \(message.text)")
}
