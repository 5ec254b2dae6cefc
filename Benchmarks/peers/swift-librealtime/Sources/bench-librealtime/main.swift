// librealtime's Swift API: `receive`, `deflate` and `echo` with handlers; modes that end in
// `-async` with `for try await`, and `await` on each send; `receive-main` with `for try await` on
// the main actor; `rest-N` with N tasks that await responses; `pusher` with a bound handler.
import Glibc
import Meter
import Realtime

func receive(
    _ meter: Meter, on actor: isolated (any Actor)? = #isolation
) async throws {
    var options = WebSocket.Options()
    options.compression = false
    let socket = try await WebSocket.connect(meter.task.url, options: options)
    meter.start()
    try await socket.send("go")
    for try await message in socket.messages {
        let isLast =
            switch message {
            case .text(let text): meter.message(text.utf8.count, last: text.utf8.last ?? 0)
            case .binary(let bytes): meter.message(bytes.count, last: bytes.last ?? 0)
            }
        if isLast { break }
    }
    meter.stop()
}

func send(_ meter: Meter) async throws {
    var options = WebSocket.Options()
    options.compression = false
    let socket = try await WebSocket.connect(meter.task.url, options: options)
    let payload = meter.task.payload
    meter.start()
    for _ in 0..<meter.task.count { try await socket.send(payload) }
    guard case .text(let verdict) = try await socket.receive() else { fail("no verdict came") }
    meter.stop()
    meter.sent(verdict)
}

let meter = Meter(BenchTask(CommandLine.arguments))
do {
    switch meter.task.mode {
    case "receive", "deflate", "echo": try runWithHandlers(meter)
    case "receive-async": try await receive(meter, on: nil)
    case "receive-main": try await receive(meter)
    case "send-async": try await send(meter)
    case "pusher": try await handleEvents(meter)
    case "pusher-loop": try await handleEvents(meter, on: .loop)
    case "pusher-json": try await handleEvents(meter, readsJSON: true)
    case "pusher-async": try await iterateOverEvents(meter)
    case "rest-1": try await sendRequests(meter, parallel: 1)
    case "rest-16": try await sendRequests(meter, parallel: 16)
    default: exit(notSupported)
    }
} catch {
    fail("\(error)")
}
meter.report()
