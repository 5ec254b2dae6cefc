import Realtime
import Synchronization
import Testing

private let server = EchoServer.shared

/// Code of a user interface: without a word about actors in its handlers.
@MainActor private final class Screen {
    var rows: [String] = []
    private var socket: WebSocket?
    private let (changes, continuation) = AsyncStream.makeStream(of: Void.self)

    func show(_ url: String) throws {
        let handlers = WebSocket.Handlers(
            open: { _ in self.add("open") },
            message: { kind, bytes in
                self.add("\(kind) \(bytes.byteCount)")
                try? self.socket?.beginClose()
            },
            close: { closing in self.add("\(closing.code)") })
        // Elsewhere, unless a closure says where it belongs.
        var options = WebSocket.Options()
        options.executor = .loop
        socket = try WebSocket(url, options: options, handlers: handlers)
        try socket?.start()
    }

    private func add(_ row: String) {
        rows.append(row)
        continuation.yield()
    }

    func wait(_ count: Int) async {
        if rows.count >= count { return }
        for await _ in changes where rows.count >= count { return }
    }
}

@Suite(.timeLimit(.minutes(5))) struct WebSocketHandlersTests {
    @Test func handlersCanBeReplacedAtAnyTime() async throws {
        let notes = Mutex<[String]>([])
        @Sendable func note(_ text: String) { notes.withLock { $0.append(text) } }
        let socketBox = Mutex<WebSocket?>(nil)
        @Sendable func setHandlers(_ handlers: WebSocket.Handlers) {
            #expect(throws: Never.self) {
                try socketBox.withLock { $0 }?.setHandlers(handlers)
            }
        }
        let closing = try await withCheckedThrowingContinuation {
            (done: CheckedContinuation<WebSocket.Closing, any Error>) in
            var last = WebSocket.Handlers()
            last.piece = { kind, bytes, isFirst, isLast in
                note("piece \(kind) \(bytes.byteCount) \(isFirst) \(isLast)")
                try? socketBox.withLock { $0 }?.beginClose()
            }
            last.close = { done.resume(returning: $0) }
            var second = WebSocket.Handlers()
            second.message = { [last] _, bytes in
                note("second \(bytes.byteCount)")
                if bytes.byteCount == 3 { setHandlers(last) }
            }
            var first = WebSocket.Handlers()
            first.open = { [second] _ in
                note("open")
                setHandlers(second)
                for text in ["1", "22", "333", "4444"] {
                    try? socketBox.withLock { $0 }?.enqueue(text)
                }
            }
            first.message = { _, _ in note("first") }
            first.close = { _ in note("first close") }
            do {
                var options = WebSocket.Options()
                options.executor = .loop
                let socket = try WebSocket(
                    server.url("echo"), options: options, handlers: first)
                socketBox.withLock { $0 = socket }
                try socket.start()
            } catch {
                done.resume(throwing: error)
            }
        }
        socketBox.withLock { $0 = nil }
        let expected = ["open", "second 1", "second 2", "second 3", "piece text 4 true true"]
        #expect(notes.withLock { $0 } == expected)
        #expect(closing.code == .normal)
    }

    @Test func otherHandlersCanBeReplaced() async throws {
        var options = WebSocket.Options()
        options.executor = .loop
        options.pingInterval = nil
        let socket = try await WebSocket.connect(server.url("echo"), options: options)
        var handlers = WebSocket.Handlers()
        handlers.message = { _, _ in }
        let error = #expect(throws: RealtimeError.self) { try socket.setHandlers(handlers) }
        #expect(error?.code == .invalidArgument)
        let pongs = Mutex(0)
        handlers.message = nil
        handlers.pong = { _ in pongs.withLock { $0 += 1 } }
        try socket.setHandlers(handlers)
        _ = try await socket.ping()
        try socket.setHandlers(WebSocket.Handlers())
        _ = try await socket.ping()
        #expect(pongs.withLock { $0 } == 1)
        try await socket.send("hello")
        #expect(try await socket.receive() == .text("hello"))
        try await socket.close()
    }

    @Test(arguments: [true, false]) func handlersRunOnTheActorTheyAreIsolatedTo(
        inPieces: Bool
    ) async throws {
        let (seen, continuation) = AsyncStream.makeStream(of: String.self)
        var handlers = WebSocket.Handlers()
        handlers.open = { @MainActor _ in
            MainActor.assertIsolated()
            continuation.yield("open")
        }
        if inPieces {
            handlers.piece = { @MainActor kind, bytes, isFirst, isLast in
                MainActor.assertIsolated()
                continuation.yield("\(kind) \(bytes.byteCount) \(isFirst) \(isLast)")
            }
        } else {
            handlers.message = { @MainActor kind, bytes in
                MainActor.assertIsolated()
                continuation.yield("\(kind) \(bytes.byteCount)")
            }
        }
        handlers.pong = { @MainActor _ in
            MainActor.assertIsolated()
            continuation.yield("pong")
        }
        handlers.close = { @MainActor closing in
            MainActor.assertIsolated()
            continuation.yield("\(closing.code)")
            continuation.finish()
        }
        var options = WebSocket.Options()
        options.executor = .loop
        options.pingInterval = nil
        let socket = try WebSocket(server.url("echo"), options: options, handlers: handlers)
        try socket.start()
        var rows: [String] = []
        for await row in seen {
            rows.append(row)
            switch row {
            case "open": try socket.enqueue("hello")
            case _ where row.hasPrefix("text"): _ = try await socket.ping()
            case "pong": try socket.beginClose()
            default: break
            }
        }
        let message = inPieces ? "text 5 true true" : "text 5"
        #expect(rows == ["open", message, "pong", "\(CloseCode.normal)"])
    }

    @Test @MainActor func handlersOfAMainActorClassRunThere() async throws {
        let screen = Screen()
        try screen.show(server.url("count/1"))
        await screen.wait(3)
        #expect(screen.rows == ["open", "text 1", "\(CloseCode.normal)"])
    }

    /// Messages are copied, so they are whole however late the handler runs.
    @Test func handlersThatFallBehindGetEveryMessage() async throws {
        var options = WebSocket.Options()
        options.maxBufferedMessages = 4
        let (seen, continuation) = AsyncStream.makeStream(of: String.self)
        var handlers = WebSocket.Handlers()
        handlers.message = { _, bytes in
            MainActor.assertIsolated()
            continuation.yield(bytes.withUnsafeBytes { String(decoding: $0, as: UTF8.self) })
        }
        handlers.close = { _ in continuation.finish() }
        let socket = try WebSocket(server.url("count/3000"), options: options, handlers: handlers)
        try socket.start()
        var count = 0
        for await text in seen {
            #expect(text == String(count))
            count += 1
        }
        #expect(count == 3000)
    }
}
