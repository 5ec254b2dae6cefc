import Realtime
import Synchronization
import Testing

private let server = EchoServer.shared

@Suite(.timeLimit(.minutes(5))) struct WebSocketCredentialsTests {
    private struct NoToken: Error {}

    private var atOnce: Backoff {
        var backoff = Backoff()
        backoff.initialDelay = .zero
        backoff.maxAttempts = 2
        return backoff
    }

    private func failure(_ options: WebSocket.Options, _ path: String) async -> RealtimeError? {
        do {
            _ = try await WebSocket.connect(server.url(path), options: options)
            return nil
        } catch {
            return error as? RealtimeError
        }
    }

    @Test(arguments: [401, 403]) func aRefusedHandshakeIsRepeated(status: Int) async throws {
        let asked = Mutex<[Int]>([])
        var options = WebSocket.Options()
        options.setBearerToken("old")
        options.credentials = { refusal in
            asked.withLock { $0.append(refusal.status) }
            await Task.yield()
            return [("Authorization", "Bearer good")]
        }
        let socket = try await WebSocket.connect(
            server.url("guarded/\(status)"), options: options)
        try await socket.send("hello")
        #expect(try await socket.receive() == .text("hello"))
        #expect(asked.withLock { $0 } == [status])
        _ = try await socket.close()
    }

    @Test func withoutThemTheRefusalIsThrown() async throws {
        var options = WebSocket.Options()
        options.reconnect = atOnce
        options.credentials = { _ in nil }
        let none = await failure(options, "guarded/401")
        #expect(none?.code == .httpStatus && none?.response?.status == 401)
        options.credentials = { _ in [("Authorization", "Bearer bad")] }
        #expect(await failure(options, "guarded/401")?.response?.status == 401)
        options.credentials = { _ in throw NoToken() }
        let thrown = await failure(options, "guarded/401")
        #expect(thrown?.code == .auth && thrown?.message.contains("NoToken") == true)
    }

    @Test func retryStatusesAreChecked() async throws {
        var options = WebSocket.Options()
        options.retryStatuses = [401]
        #expect(await failure(options, "echo")?.code == .invalidArgument)
    }

    @Test func moreStatusesMayBeRetried() async throws {
        var options = WebSocket.Options()
        options.reconnect = atOnce
        options.retryStatuses = [403]
        options.executor = .loop
        let losses = Mutex(0)
        var handlers = WebSocket.Handlers()
        handlers.error = { event in losses.withLock { $0 += event.isFatal ? 0 : 1 } }
        await #expect(throws: RealtimeError.self) {
            _ = try await WebSocket.connect(
                server.url("refuse"), options: options, handlers: handlers)
        }
        #expect(losses.withLock { $0 } == 2)
    }

    @Test func pemTextIsNotAFileName() async throws {
        let pem = "-----BEGIN PRIVATE KEY-----\nMIIEsecret\n-----END PRIVATE KEY-----"
        var networks = [Network](repeating: Network(), count: 4)
        networks[0].caFile = pem
        networks[1].caPath = pem
        networks[2].unixSocket = pem
        networks[3].clientCertificate = .init(certificateFile: "cert.pem", keyFile: pem)
        for network in networks {
            var options = WebSocket.Options()
            options.network = network
            let error = await failure(options, "echo")
            #expect(error?.code == .invalidArgument)
            #expect(error?.message.contains("PEM text") == true)
            #expect(error?.message.contains("MII") == false)
        }
    }
}
