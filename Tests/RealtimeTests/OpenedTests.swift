import Realtime
import Testing

private let server = StreamServer.shared

/// The details of an opened connection, and of a response that refuses it.
@Suite(.timeLimit(.minutes(5))) struct OpenedTests {
    private func check(_ opened: Opened, status: Int) {
        #expect(opened.response?.status == status)
        #expect(opened.response?.header("Server")?.hasPrefix("Python/") == true)
        #expect(opened.httpVersion == 11)
        #expect(opened.remoteAddress == "127.0.0.1:\(server.port)")
        #expect(opened.localAddress.hasPrefix("127.0.0.1:"))
        #expect(opened.tlsVersion.isEmpty && opened.tlsCipher.isEmpty)
    }

    @Test func streamsAndPollsReportTheirConnection() async throws {
        let (openings, continuation) = AsyncStream.makeStream(of: Opened.self)
        let source = try EventSource(server.url("events/1"), start: false)
        source.onOpen { continuation.yield($0) }
        try source.start()
        var iterator = openings.makeAsyncIterator()
        check(try #require(await iterator.next()), status: 200)
        source.close()
        var options = LongPoll.Options()
        options.headers = [("Authorization", "Bearer good")]
        let poll = try LongPoll(server.url("poll/1"), options: options, start: false)
        poll.onOpen { continuation.yield($0) }
        try poll.start()
        check(try #require(await iterator.next()), status: 200)
        poll.close()
    }

    @Test func aWebSocketReportsItsConnection() async throws {
        let socket = try await WebSocket.connect("ws://127.0.0.1:\(server.port)/echo")
        check(try #require(socket.opened), status: 101)
        #expect(socket.opened?.subprotocol == "")
        try await socket.close()
    }

    @Test func tlsIsReported() async throws {
        let echo = EchoServer.shared
        var options = WebSocket.Options()
        options.caFile = echo.caFile
        let socket = try await WebSocket.connect(echo.secureURL("echo"), options: options)
        #expect(socket.opened?.tlsVersion == "TLSv1.3")
        #expect(socket.opened?.tlsCipher.hasPrefix("TLS_") == true)
        try await socket.close()
    }

    @Test func aRefusalHasTheServersExplanation() async throws {
        let source = try EventSource(server.url("explain/0"))
        let refused = await #expect(throws: RealtimeError.self) {
            for try await _ in source {}
        }
        let poll = try LongPoll(server.url("explain/0"))
        let refusedPoll = await #expect(throws: RealtimeError.self) {
            for try await _ in poll {}
        }
        for error in [refused, refusedPoll] {
            let response = try #require(error?.response)
            #expect(response.status == 403 && response.reason == "Forbidden")
            #expect(response.header("x-why") == "full")
            #expect(String(decoding: response.body, as: UTF8.self) == explanation)
            #expect(error?.systemError == 0)
        }
    }

    private let explanation = #"{"error": "no seat is free"}"#

    @Test func theSystemsErrorIsReported() async throws {
        var options = EventSource.Options()
        options.reconnect = false
        let source = try EventSource("http://127.0.0.1:1/", options: options)
        let error = await #expect(throws: RealtimeError.self) { for try await _ in source {} }
        // ECONNREFUSED
        #expect(error?.code == .connect && error?.systemError == 111)
    }
}
