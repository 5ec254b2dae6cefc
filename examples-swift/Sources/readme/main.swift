// The smallest whole program: say hello, print the first answer, close.
import Realtime

let socket = try await WebSocket.connect(CommandLine.arguments[1])
try await socket.send("hello")
for try await message in socket.messages {
    if case .text(let text) = message { print(text) }
    break
}
try await socket.close()
