import Foundation
import RealtimeFoundation
import Testing

/// A user interface in the style of Spreadbot_iOS: handlers, a configuration as a dictionary, bytes
/// as Foundation has them.
@MainActor private final class Chat {
    private let bot: Spreadbot
    private let rest: SpreadbotREST
    private(set) var label = ""
    private(set) var answers: [Int] = []
    private let (changes, continuation) = AsyncStream.makeStream(of: Void.self)

    init() throws {
        bot = try Spreadbot(config: [
            "baseURL": StreamServer.shared.url(""), "transports": ["webSocket"], "maxRounds": 3,
            "log": false,
        ])
        rest = try SpreadbotREST(config: ["baseURL": RESTServer.shared.url])
    }

    /// Called in async code, without await.
    func open() throws {
        bot.onOpen { self.note("open") }
        bot.onMessage(as: Data.self) { id, event, data in
            self.note(event + " " + String(decoding: data, as: UTF8.self))
        }
        bot.onError { error in self.note("\(error)") }
        bot.onDisconnected { _ in self.note("closed") }
        try bot.establishConnection(path: "echo")
    }

    func say(_ text: String) throws {
        try bot.sendMessageBinary(message: Data(text.utf8)) { result in
            if case .failure(let error) = result { self.note("not sent: \(error)") }
        }
    }

    func ask() {
        rest.getData(
            path: "echo", onSuccess: { self.answered($0) }, onError: { self.note("\($0)") })
        rest.postData(
            path: "echo", payload: Data(#"{"name":"Ada"}"#.utf8),
            onSuccess: { self.answered($0) }, onError: { self.note("\($0)") })
        rest.getData(
            path: "status/404", onSuccess: { self.answered($0) },
            onError: { failure in
                self.answers.append(failure.response?.status ?? 0)
                self.note("refused")
            })
    }

    func close() { bot.closeConnection() }

    private func answered(_ answer: REST.Response) {
        answers.append(answer.status)
        note(answer.json?["method"]?.stringValue ?? "")
    }

    private func note(_ text: String) {
        label += text + "\n"
        continuation.yield()
    }

    /// Until the label has a line.
    func wait(for line: String) async {
        if label.contains(line + "\n") { return }
        for await _ in changes where label.contains(line + "\n") { return }
    }
}

@Suite(.timeLimit(.minutes(5))) struct SpreadbotIOSTests {
    @MainActor @Test func aConnectionIsUsedWithoutAwait() async throws {
        let chat = try Chat()
        try chat.open()
        await chat.wait(for: "open")
        try chat.say("hello")
        await chat.wait(for: "echo hello")
        chat.close()
        await chat.wait(for: "closed")
        #expect(chat.label == "open\necho hello\nclosed\n")
    }

    @MainActor @Test func requestsAnswerOnTheMainActor() async throws {
        let chat = try Chat()
        chat.ask()
        for line in ["GET", "POST", "refused"] { await chat.wait(for: line) }
        #expect(chat.answers.sorted() == [200, 200, 404])
    }

    @Test func requestsAreCodable() async throws {
        struct Echo: Decodable, Sendable {
            var method: String
            var body: String
        }
        let rest = try SpreadbotREST(config: ["baseURL": RESTServer.shared.url])
        #expect(try await rest.getData(path: "echo", as: Echo.self).method == "GET")
        let posted = try await rest.postData(path: "echo", json: ["a": 1]).decoded(as: Echo.self)
        #expect(posted.body == #"{"a":1}"#)
        let raw = try await rest.postData(path: "echo", payload: Data("[]".utf8))
        #expect(try raw.decoded(as: Echo.self).body == "[]")
        #expect(raw.text.contains("application/json"))
    }
}
