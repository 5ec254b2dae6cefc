import Dispatch
import Foundation
import RealtimeFoundation
import Synchronization
import Testing

private struct User: Codable, Equatable, Sendable {
    var name: String
    var tags: [String]
}

private struct Visit: Encodable, Sendable {
    var userName: String
}

/// What the server's /echo answers.
private struct Echo: Decodable, Sendable {
    var method: String
    var body: String
}

@Suite(.timeLimit(.minutes(5))) struct FoundationTests {
    private let web = RESTServer.shared

    @Test func urlsTakeTheirObjectsThere() async throws {
        let base = try #require(URL(string: web.url))
        let rest = try REST(base, options: .patient)
        let answer = try await rest.get("redirect/1")
        #expect(answer.finalURL == base.appending(path: "echo"))
        let whole = REST.Request("PUT", base.appending(path: "echo"), body: .text("x"))
        let put = try await REST(options: .patient).send(whole)
        #expect(try put.decoded(as: Echo.self).method == "PUT")
        let socketURL = try #require(URL(string: EchoServer.shared.url("echo")))
        let socket = try await WebSocket.connect(socketURL)
        try await socket.send(Data("bytes".utf8))
        #expect(try await socket.receive()?.contents == Data("bytes".utf8))
        try socket.enqueue(Data([7, 0]))
        #expect(try await socket.receive() == .binary([7, 0]))
        let streams = try #require(URL(string: StreamServer.shared.url("")))
        for try await event in try EventSource(streams.appending(path: "events/1")) {
            #expect(event.contents == Data("number\n1".utf8))
            break
        }
        var options = LongPoll.Options()
        options.headers = [("Authorization", "Bearer good")]
        for try await message in try LongPoll(streams.appending(path: "poll/1"), options: options) {
            #expect(message.contents == Data(message.text.utf8))
            break
        }
        #expect(throws: RealtimeError.self) { try EventSource(URL(filePath: "/tmp/stream")) }
    }

    @Test func filesAreURLs() {
        var source = EventSource.Options()
        source.idFileURL = URL(filePath: "/tmp/a folder/ids")
        #expect(source.idFile == "/tmp/a folder/ids")
        #expect(source.idFileURL == URL(filePath: "/tmp/a folder/ids"))
        var network = Network()
        network.caFileURL = URL(filePath: "/tmp/ca.pem")
        #expect(network.caFile == "/tmp/ca.pem")
        network.caFileURL = nil
        #expect(network.caFile == nil && network.caFileURL == nil)
        var spreadbot = Spreadbot.Configuration(baseURL: URL(filePath: "/"))
        spreadbot.outboxURL = URL(filePath: "/tmp/outbox")
        #expect(spreadbot.outbox == "/tmp/outbox" && spreadbot.outboxURL != nil)
    }

    @Test func bodiesAndAnswersAreCodable() async throws {
        let rest = try REST(web.url, options: .patient)
        let user = User(name: "Ada", tags: ["a"])
        let echo = try await rest.post("echo", json: user).decoded(as: Echo.self)
        #expect(echo.method == "POST")
        #expect(try JSONDecoder().decode(User.self, from: Data(echo.body.utf8)) == user)
        #expect(try await rest.get("echo", as: Echo.self).method == "GET")
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        let body = try REST.Request.Body.json(encoding: Visit(userName: "Ada"), by: encoder)
        let sent = try await rest.put("echo", body: body).decoded(as: Echo.self)
        #expect(sent.body == #"{"user_name":"Ada"}"#)
        let bytes = try await rest.put("echo", body: .data(Data("raw".utf8), type: "text/plain"))
        #expect(bytes.contents.count == bytes.body.count && bytes.text.contains("raw"))
    }

    @Test func errorsOfCodingSayWhatIsWrong() async throws {
        func message(_ json: String) -> String? {
            let message = WebSocket.Message.text(json)
            let error = #expect(throws: RealtimeError.self) { try message.decoded(as: [User].self) }
            #expect(error?.code == .protocolViolation)
            return error?.message
        }
        #expect(
            message(#"[{"name": "x", "tags": [1]}]"#)
                == "the message cannot be read as Array<User>: [0].tags[0] is not String")
        #expect(message(#"[{"name": "x"}]"#)?.hasSuffix("[0].tags is missing") == true)
        #expect(message(#"[{"name": null}]"#)?.contains("[0].name is null, String") == true)
        #expect(message("{}")?.hasSuffix("the whole is not Array<Any>") == true)
        #expect(message(#"[{"secret"#)?.hasSuffix("it is not JSON") == true)
        let rest = try REST(web.url, options: .patient)
        let wrong = await #expect(throws: RealtimeError.self) {
            try await rest.get("echo", as: User.self)
        }
        let text = "the body from \(web.url)/echo cannot be read as User: name is missing"
        #expect(wrong?.message == text)
        let endless = #expect(throws: RealtimeError.self) {
            try REST.Request.Body.json(encoding: ["x": Double.infinity])
        }
        #expect(endless?.code == .invalidArgument)
        #expect(endless?.message.hasSuffix("x has an invalid value") == true)
    }

    @Test func handlersRunOnAQueue() async throws {
        let key = DispatchSpecificKey<Bool>()
        let queue = DispatchQueue(label: "handlers", attributes: .concurrent)
        queue.setSpecific(key: key, value: true)
        var config = Spreadbot.Configuration(baseURL: StreamServer.shared.url(""))
        config.executor = .queue(queue)
        let spreadbot = try Spreadbot(config: config)
        let (calls, continuation) = AsyncStream.makeStream(of: Bool.self)
        spreadbot.onMessage { _, _, _ in
            continuation.yield(DispatchQueue.getSpecific(key: key) == true)
        }
        try await spreadbot.connect(path: "echo")
        try await spreadbot.sendMessageBinary(message: Data("one".utf8))
        let ends = Mutex(0)
        send(spreadbot, Data("two".utf8)) { _ in ends.withLock { $0 += 1 } }
        var count = 0
        for await isThere in calls {
            #expect(isThere)
            count += 1
            if count == 2 { break }
        }
    }

    /// Where the form that does not wait is meant.
    private func send(
        _ spreadbot: Spreadbot, _ data: Data, _ completion: @escaping Spreadbot.Completion
    ) {
        spreadbot.sendMessageBinary(message: data, completion: completion)
    }
}
