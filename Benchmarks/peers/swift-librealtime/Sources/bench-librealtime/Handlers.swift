// A handler receives messages on a loop that the main thread runs.
import Meter
import Realtime
import Wire

/// Set once the connection is created, before the loop runs.
final class Box: @unchecked Sendable {
    var socket: WebSocket?
}

func runWithHandlers(_ meter: Meter) throws {
    let loop = try Loop()
    let box = Box()
    let task = meter.task
    let payload = task.payload
    var options = WebSocket.Options()
    options.compression = task.mode == "deflate"
    options.executor = .loop
    var handlers = WebSocket.Handlers()
    handlers.error = { fail("\($0)") }
    handlers.open = { _ in
        meter.start()
        do throws(RealtimeError) {
            if task.mode == "echo" {
                meter.ask()
                try box.socket?.enqueue(payload.span.bytes)
            } else {
                try box.socket?.enqueue("go")
            }
        } catch {
            fail("\(error)")
        }
    }
    handlers.message = { _, bytes in
        let count = bytes.byteCount
        let last = bytes.unsafeLoad(fromByteOffset: count - 1, as: UInt8.self)
        let isLast: Bool
        if task.mode == "echo" {
            isLast = meter.answer(count, last: last)
            if !isLast {
                meter.ask()
                do throws(RealtimeError) {
                    try box.socket?.enqueue(payload.span.bytes)
                } catch {
                    fail("\(error)")
                }
            }
        } else {
            isLast = meter.message(count, last: last)
        }
        if isLast {
            meter.stop()
            do throws(RealtimeError) { try loop.stop() } catch { fail("\(error)") }
        }
    }
    box.socket = try WebSocket(task.url, options: options, on: loop, handlers: handlers)
    try box.socket?.start()
    try loop.run()
}
