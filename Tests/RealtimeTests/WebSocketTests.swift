import Realtime
import Synchronization
import Testing

private let server = EchoServer.shared

/// The error that an operation throws, of the expected type.
private func failure<E: Error>(
    _ type: E.Type, _ work: () async throws -> some Any
) async throws -> E {
    do {
        _ = try await work()
    } catch let error as E {
        return error
    }
    throw Unexpected(what: "no \(type) was thrown")
}

private struct Unexpected: Error {
    let what: String
}

@Suite(.timeLimit(.minutes(5))) struct WebSocketTests {
    @Test(arguments: [true, false]) func messagesAreEchoed(compression: Bool) async throws {
        var options = WebSocket.Options()
        options.compression = compression
        let socket = try await WebSocket.connect(server.url("echo"), options: options)
        let messages: [WebSocket.Message] = [
            .text("hello"), .text(""), .binary([]), .binary([0, 255, 7]), .text("žluťoučký 🐎"),
            .text(String(repeating: "all work and no play ", count: 100_000)),
            .binary((0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }),
        ]
        for message in messages {
            switch message {
            case .text(let text): try await socket.send(text)
            case .binary(let bytes): try await socket.send(bytes)
            }
            #expect(try await socket.receive() == message)
        }
        let closing = try await socket.close(reason: "done")
        #expect(closing == WebSocket.Closing(code: .normal, reason: "done", isClean: true))
        #expect(try await socket.receive() == nil)
        #expect(socket.state == .closed)
    }

    @Test func theSequenceEndsAtANormalClose() async throws {
        var options = WebSocket.Options()
        options.maxBufferedMessages = 4
        let socket = try await WebSocket.connect(server.url("count/5000"), options: options)
        var next = 0
        for try await message in socket.messages {
            #expect(message == .text(String(next)))
            next += 1
        }
        #expect(next == 5000)
        #expect(try await socket.waitUntilClosed().code == .normal)
    }

    @Test func basicCredentialsAreChecked() throws {
        var options = WebSocket.Options()
        try options.setBasicAuthorization(user: "Aladdin", password: "open sesame")
        #expect(options.headers.map(\.value) == ["Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="])
        let error = #expect(throws: RealtimeError.self) {
            try options.setBasicAuthorization(user: "a:b", password: "c")
        }
        #expect(error?.code == .invalidArgument)
    }

    @Test func anotherCodeIsThrownWithItsReason() async throws {
        let socket = try await WebSocket.connect(server.url("close/4001/enough"))
        let closing = try await failure(WebSocket.Closing.self) { try await socket.receive() }
        #expect(closing.code.rawValue == 4001)
        #expect(closing.reason == "enough")
        #expect(closing.isClean)
    }

    @Test func aLostConnectionIsAnErrorThatNamesTheHost() async throws {
        let socket = try await WebSocket.connect(server.url("abort"))
        let error = try await failure(RealtimeError.self) { try await socket.receive() }
        #expect(error.code == .connectionLost)
        #expect(error.message.contains("127.0.0.1:\(server.port)"))
        #expect(try await socket.waitUntilClosed().code == .abnormal)
    }

    @Test func tlsWorksWithItsOwnAuthorityAndNotWithout() async throws {
        var options = WebSocket.Options()
        options.caFile = server.caFile
        let socket = try await WebSocket.connect(server.secureURL("echo"), options: options)
        try await socket.send("secret")
        #expect(try await socket.receive() == .text("secret"))
        try await socket.close()
        let error = try await failure(RealtimeError.self) {
            try await WebSocket.connect(server.secureURL("echo"))
        }
        #expect(error.code == .tls)
    }

    @Test func theSubprotocolIsAgreed() async throws {
        var options = WebSocket.Options()
        options.subprotocols = ["unknown", "chat"]
        let socket = try await WebSocket.connect(server.url("echo"), options: options)
        #expect(socket.opened?.subprotocol == "chat")
        #expect(socket.opened?.extensions.hasPrefix("permessage-deflate") == true)
    }

    @Test func aSocketKeepsItsLoop() async throws {
        func connect() async throws -> WebSocket {
            let loop = try Loop()
            try loop.start()
            return try await WebSocket.connect(server.url("echo"), on: loop)
        }
        let socket = try await connect()
        try await socket.send("hello")
        #expect(try await socket.receive() == .text("hello"))
    }

    @Test func aPingIsMeasured() async throws {
        var options = WebSocket.Options()
        // Only this one ends, however long the machine takes.
        options.pingInterval = nil
        let socket = try await WebSocket.connect(server.url("echo"), options: options)
        #expect(socket.roundTrip == nil)
        #expect(try await socket.ping() > .zero)
        #expect(socket.roundTrip != nil)
    }

    @Test(arguments: [true, false])
    func messagesInPiecesInBothDirections(compression: Bool) async throws {
        var options = WebSocket.Options()
        options.compression = compression
        options.deliversPieces = true
        let socket = try await WebSocket.connect(server.url("echo"), options: options)
        let chunk = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* $0 >> 7) }
        let sending = Task {
            try await socket.sendMessage(.binary) { message in
                for _ in 0..<20 { try await message.write(chunk) }
            }
        }
        var received: [UInt8] = []
        for try await piece in socket.pieces {
            #expect(piece.isFirst == received.isEmpty && piece.kind == .binary)
            received += piece.bytes
            if piece.isLast { break }
        }
        try await sending.value
        #expect(received == Array((0..<20).map { _ in chunk }.joined()))
        try await socket.sendMessage(.text) { message in
            try await message.write([0xE2, 0x82])
            try await message.write([0xAC])
            try await message.write("!")
        }
        var text: [UInt8] = []
        while let piece = try await socket.receivePiece() {
            text += piece.bytes
            if piece.isLast { break }
        }
        #expect(text == Array("€!".utf8))
        // Numbers are those of the loop's last turn; a pong comes in a later turn than the text.
        _ = try await socket.ping()
        #expect(socket.statistics.messagesSent == 2 && socket.statistics.messagesReceived == 2)
        #expect(Loop.shared.statistics.messagesReceived >= 2)
    }

    @Test func anAbandonedMessageEndsTheConnection() async throws {
        let socket = try await WebSocket.connect(server.url("echo"))
        _ = try await failure(Unexpected.self) {
            try await socket.sendMessage(.text) { message in
                try await message.write("half of it")
                throw Unexpected(what: "nothing more")
            }
        }
        let closing = try await socket.waitUntilClosed()
        // This server answers a close frame inside a message with 1002.
        #expect(closing.isClean && [.internalError, .protocolError].contains(closing.code))
    }

    @Test func aLostConnectionReconnectsAndMessagesContinue() async throws {
        var options = WebSocket.Options()
        options.reconnect = Backoff()
        options.reconnect?.initialDelay = .milliseconds(1)
        options.offlineQueue = 10
        let attempts = Mutex<[Int]>([])
        var handlers = WebSocket.Handlers()
        handlers.error = { #expect($0.closing.code == .abnormal && !$0.isFatal) }
        let echo = server.url("echo")
        handlers.reconnect = { attempt, next in
            attempts.withLock { $0.append(attempt) }
            next.url = echo
            return true
        }
        let socket = try await WebSocket.connect(
            server.url("abort"), options: options, handlers: handlers)
        while attempts.withLock(\.isEmpty) { try await Task.sleep(for: .milliseconds(1)) }
        try await socket.send("kept")
        #expect(try await socket.receive() == .text("kept"))
        #expect(attempts.withLock { $0 } == [1])
        #expect(socket.statistics.connections == 2)
        try await socket.close()
        #expect(try await socket.receive() == nil)
    }

    @Test(arguments: [true, false])
    func aNormalCloseIsFollowedByAReconnectIfWanted(isWanted: Bool) async throws {
        var options = WebSocket.Options()
        options.reconnect = Backoff()
        options.reconnect?.initialDelay = .milliseconds(1)
        options.reconnectAfterNormalClose = isWanted
        let socket = try await WebSocket.connect(server.url("count/1"), options: options)
        #expect(try await socket.receive() == .text("0"))
        #expect(try await socket.receive() == (isWanted ? .text("0") : nil))
        try await socket.close()
    }

    @Test func aRefusalHasTheServersResponse() async throws {
        let error = try await failure(RealtimeError.self) {
            try await WebSocket.connect(server.url("refuse"))
        }
        #expect(error.code == .httpStatus)
        #expect(error.response?.status == 403)
        #expect(error.response?.header("content-type")?.hasPrefix("text/plain") == true)
        #expect(error.response.map { String(decoding: $0.body, as: UTF8.self) } == "go away\n")
    }

    @Test func theLogHasTheConnectionAndNoSecret() async throws {
        let lines = Mutex<[String]>([])
        Log.send(upTo: .debug) { _, line in lines.withLock { $0.append(line) } }
        defer { Log.send(to: nil) }
        var options = WebSocket.Options()
        options.setBearerToken("secret-token")
        let socket = try await WebSocket.connect(server.url("echo/?secret=1"), options: options)
        try await socket.send("secret-payload")
        _ = try await socket.receive()
        try await socket.close()
        let all = lines.withLock { $0 }
        #expect(all.contains { $0.contains("is open") && $0.contains("\(server.port)") })
        #expect(!all.contains { $0.contains("secret") })
    }

    @Test func anUnansweredPingCanBeCancelled() async throws {
        var options = WebSocket.Options()
        // Otherwise the silent server is lost after a while.
        options.pingInterval = nil
        let socket = try await WebSocket.connect(server.url("hang"), options: options)
        let waiting = Task { try await socket.ping() }
        waiting.cancel()
        _ = try await failure(CancellationError.self) { try await waiting.value }
        let ended = Task { try await socket.waitUntilClosed() }
        ended.cancel()
        _ = try await failure(CancellationError.self) { try await ended.value }
        #expect(socket.state == .open)
    }

    @Test func messagesEndAfterOurOwnCloseWhateverItsCode() async throws {
        let socket = try await WebSocket.connect(server.url("echo"))
        let closing = try await socket.close(CloseCode(rawValue: 3000), reason: "mine")
        #expect(closing.code.rawValue == 3000)
        #expect(try await socket.receive() == nil)
    }

    @Test func aSilentPeerTimesOut() async throws {
        var options = WebSocket.Options()
        options.pingInterval = .milliseconds(50)
        options.pongTimeout = .milliseconds(100)
        let socket = try await WebSocket.connect(server.url("hang"), options: options)
        let error = try await failure(RealtimeError.self) { try await socket.receive() }
        #expect(error.code == .timeout)
        #expect(error.message.contains("pongTimeout"))
    }

    /// A cancelled `receive` does not; see WebSocketReceivingTests.
    @Test func cancellingAnIterationClosesTheConnection() async throws {
        let socket = try await WebSocket.connect(server.url("echo"))
        let waiting = Task { for try await _ in socket.messages {} }
        waiting.cancel()
        _ = try await failure(CancellationError.self) { try await waiting.value }
        #expect(try await socket.waitUntilClosed().code == .goingAway)
    }

    @Test func cancellingConnectEndsTheAttempt() async throws {
        let connecting = Task { try await WebSocket.connect(server.url("echo")) }
        connecting.cancel()
        _ = try await failure(CancellationError.self) { try await connecting.value }
    }

    @Test func manyTasksSendAndEveryMessageIsEchoedOnce() async throws {
        let socket = try await WebSocket.connect(server.url("echo"))
        try await withThrowingTaskGroup(of: Void.self) { group in
            for task in 0..<8 {
                group.addTask {
                    for index in 0..<50 { try await socket.send("\(task) \(index)") }
                }
            }
            try await group.waitForAll()
        }
        var seen: [String: [Int]] = [:]
        for _ in 0..<400 {
            guard case .text(let text) = try await socket.receive() else { break }
            let parts = text.split(separator: " ")
            seen[String(parts[0]), default: []].append(Int(parts[1]) ?? -1)
        }
        #expect(seen.count == 8)
        for (_, order) in seen { #expect(order == Array(0..<50)) }
    }

    @Test func handlersAreCalledInOrderWithoutTasks() async throws {
        let notes = Mutex<[String]>([])
        let socketBox = Mutex<WebSocket?>(nil)
        let closing = try await withCheckedThrowingContinuation {
            (done: CheckedContinuation<WebSocket.Closing, any Error>) in
            @Sendable func note(_ text: String) { notes.withLock { $0.append(text) } }
            var handlers = WebSocket.Handlers()
            handlers.open = { opened in
                note("open \(opened.subprotocol)")
                try? socketBox.withLock { $0 }?.enqueue("one")
                let two: [UInt8] = [1, 2]
                try? socketBox.withLock { $0 }?.enqueue(two.span.bytes)
            }
            handlers.message = { kind, bytes in
                note("\(kind) \(bytes.byteCount)")
                if kind == .binary { try? socketBox.withLock { $0 }?.beginClose(reason: "bye") }
            }
            handlers.error = { done.resume(throwing: $0.error) }
            handlers.close = { done.resume(returning: $0) }
            do {
                let socket = try WebSocket(server.url("echo"), handlers: handlers)
                socketBox.withLock { $0 = socket }
                try socket.start()
            } catch {
                done.resume(throwing: error)
            }
        }
        // The handlers hold the mailbox, and the socket holds the handlers.
        socketBox.withLock { $0 = nil }
        #expect(notes.withLock { $0 } == ["open ", "text 3", "binary 2"])
        #expect(closing == WebSocket.Closing(code: .normal, reason: "bye", isClean: true))
    }

    @Test func sendingAfterCloseIsRefused() async throws {
        let socket = try await WebSocket.connect(server.url("echo"))
        try await socket.close()
        let error = try await failure(RealtimeError.self) { try await socket.send("late") }
        #expect(error.code == .closed)
    }

    @Test(arguments: [
        (UInt16(1005), "", RealtimeError.Code.invalidCloseCode),
        (UInt16(999), "", .invalidCloseCode),
        (UInt16(1000), String(repeating: "é", count: 62), .closeReasonTooLong),
    ])
    func aCloseThatMustNotBeSentIsRefused(
        code: UInt16, reason: String, expected: RealtimeError.Code
    ) async throws {
        let socket = try await WebSocket.connect(server.url("echo"))
        let error = try await failure(RealtimeError.self) {
            try await socket.close(CloseCode(rawValue: code), reason: reason)
        }
        #expect(error.code == expected)
        #expect(socket.state == .open)
    }
}

@Test(arguments: [
    ("http://localhost/", RealtimeError.Code.unsupportedScheme),
    ("ws//x", .invalidURL), ("ws://", .invalidURL), ("ws://h/#part", .invalidURL),
    ("", .invalidURL),
])
func badURLsAreRefused(url: String, expected: RealtimeError.Code) async throws {
    let error = try await failure(RealtimeError.self) { try await WebSocket.connect(url) }
    #expect(error.code == expected)
}

@Test func badOptionsAreRefusedByName() async throws {
    let changes: [(String, RealtimeError.Code, (inout WebSocket.Options) -> Void)] = [
        ("bad name", .invalidHeader, { $0.headers = [("bad name", "x")] }),
        ("X-Split", .invalidHeader, { $0.headers = [("X-Split", "a\r\nb")] }),
        ("not safe", .invalidHeader, { $0.safeHeaders = ["not safe"] }),
        ("a b", .invalidSubprotocol, { $0.subprotocols = ["a b"] }),
        ("chat", .invalidSubprotocol, { $0.subprotocols = ["chat", "chat"] }),
        ("compressionLevel", .invalidArgument, { $0.compressionLevel = 10 }),
        ("clientMaxWindowBits", .invalidArgument, { $0.clientMaxWindowBits = 8 }),
        ("pingInterval", .invalidArgument, { $0.pingInterval = .zero }),
        ("a hundred years", .invalidArgument, { $0.idleTimeout = .seconds(Int64.max) }),
        ("32767 s", .invalidArgument, { $0.network.tcpKeepAlive = .seconds(32_768) }),
        ("10.0.0.0/99", .invalidArgument, { $0.network.noProxy = "10.0.0.0/99" }),
    ]
    for (culprit, expected, change) in changes {
        var options = WebSocket.Options()
        change(&options)
        let error = try await failure(RealtimeError.self) {
            try await WebSocket.connect("ws://127.0.0.1:1/", options: options)
        }
        #expect(error.code == expected)
        #expect(error.message.contains(culprit))
    }
}

@Test func aRefusedConnectionNamesThePort() async throws {
    let error = try await failure(RealtimeError.self) {
        try await WebSocket.connect("ws://127.0.0.1:1/")
    }
    #expect(error.code == .connect)
    #expect(error.message.contains("127.0.0.1:1"))
}
