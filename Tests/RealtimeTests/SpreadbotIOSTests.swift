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

    init() {
        bot = Spreadbot(config: [
            "baseURL": StreamServer.shared.url(""), "transports": ["webSocket"], "maxRounds": 3,
            "answerTimeout": 0, "pingInterval": 0, "log": false,
        ])
        rest = SpreadbotREST(config: ["baseURL": RESTServer.shared.url])
    }

    /// Called in async code, without await.
    func open() {
        bot.onOpen { self.note("open") }
        bot.onMessage(as: Data.self) { id, event, data in
            self.note(event + " " + String(decoding: data, as: UTF8.self))
        }
        bot.onError { error in self.note("\(error)") }
        bot.onDisconnected { _ in self.note("closed") }
        bot.establishConnection(path: "echo")
    }

    func say(_ text: String) {
        bot.sendMessageBinary(message: Data(text.utf8)) { result in
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
        let chat = Chat()
        chat.open()
        await chat.wait(for: "open")
        chat.say("hello")
        await chat.wait(for: "echo hello")
        chat.close()
        await chat.wait(for: "closed")
        #expect(chat.label == "open\necho hello\nclosed\n")
    }

    @MainActor @Test func requestsAnswerOnTheMainActor() async throws {
        let chat = Chat()
        chat.ask()
        for line in ["GET", "POST", "refused"] { await chat.wait(for: line) }
        #expect(chat.answers.sorted() == [200, 200, 404])
    }

    @Test func requestsAreCodable() async throws {
        struct Echo: Decodable, Sendable {
            var method: String
            var body: String
        }
        let rest = SpreadbotREST(config: ["baseURL": RESTServer.shared.url])
        #expect(try await rest.getData(path: "echo", as: Echo.self).method == "GET")
        let posted = try await rest.postData(path: "echo", json: ["a": 1]).decoded(as: Echo.self)
        #expect(posted.body == #"{"a":1}"#)
        let raw = try await rest.postData(path: "echo", payload: Data("[]".utf8))
        #expect(try raw.decoded(as: Echo.self).body == "[]")
        #expect(raw.text.contains("application/json"))
    }

    /// Calls without `throws` report to `onError`, also if that is set later.
    @MainActor @Test func anUnusableConfigurationIsReported() async throws {
        let bot = Spreadbot(config: ["baseURL": "ws://127.0.0.1"])
        #expect(bot.configurationError?.code == .unsupportedScheme)
        let notes = Notes()
        bot.onDisconnected { error in notes.add("over \(error?.code == .unsupportedScheme)") }
        bot.establishConnection(path: "news")
        await notes.wait(for: "over true")
        bot.onError { error in notes.add("fatal \(error.isFatal) \(error.error.code)") }
        await notes.wait(for: "fatal true unsupportedScheme")
        bot.sendMessageString(message: "hello") { result in
            if case .failure(let error) = result { notes.add("not sent \(error.code)") }
        }
        await notes.wait(for: "not sent unsupportedScheme")
        func send() { bot.sendMessageBinary(message: Data("hello".utf8)) }
        send()
        await notes.wait { $0.filter { $0.hasPrefix("fatal") }.count == 2 }
        await #expect(throws: RealtimeError.self) { try await bot.connect(path: "news") }
        #expect(throws: RealtimeError.self) { try bot.messages(path: "news") }
        await #expect(throws: RealtimeError.self) {
            try await bot.sendMessageString(message: "hello")
        }
        #expect(bot.state == .disconnected)
        #expect(throws: RealtimeError.self) { try SpreadbotREST(sharing: bot) }
        #expect(Spreadbot(config: ["baseURL": "http://h"]).configurationError == nil)
    }

    @MainActor @Test func aPathThatIsNoURLIsReported() async throws {
        let bot = Spreadbot(config: ["baseURL": StreamServer.shared.url("")])
        let notes = Notes()
        bot.onError { error in notes.add("fatal \(error.isFatal) \(error.error.code)") }
        bot.onDisconnected { _ in notes.add("over") }
        try await bot.connect(path: "echo")
        let path = String(repeating: "x", count: 70_000)
        bot.establishConnection(path: path)
        await notes.wait(for: "fatal false invalidURL")
        #expect(bot.state == .connected)
        bot.closeConnection()
        await notes.wait(for: "over")
        bot.establishConnection(path: path)
        await notes.wait { $0.last == "over" && $0.count == 4 }
        #expect(notes.all[2] == "fatal true invalidURL")
    }

    @MainActor @Test func sendsAfterTheEndComplete() async {
        let bot = Spreadbot(config: ["baseURL": StreamServer.shared.url("")])
        bot.close()
        let result = await withCheckedContinuation { answer in
            bot.sendMessageString(message: "late") { answer.resume(returning: $0) }
        }
        guard case .failure(let error) = result else {
            Issue.record("it was sent")
            return
        }
        #expect(error.code == .closed)
    }

    @MainActor @Test func requestsOfAnUnusableConfigurationFail() async throws {
        let rest = SpreadbotREST(config: ["baseURL": "http://127.0.0.1", "colour": "red"])
        #expect(rest.configurationError?.message.contains("colour") == true)
        let notes = Notes()
        rest.getData(path: "a", onSuccess: { _ in }, onError: { notes.add("get \($0.code)") })
        rest.postData(
            path: "a", payload: Data(), onSuccess: { _ in },
            onError: { failure in notes.add("post \(failure.code)") })
        await notes.wait(count: 2)
        #expect(Set(notes.all) == ["get invalidArgument", "post invalidArgument"])
        let error = await #expect(throws: RealtimeError.self) { try await rest.getData(path: "a") }
        #expect(error == rest.configurationError)
        await #expect(throws: RealtimeError.self) { try await rest.client.get("http://h/") }
        rest.close()
    }
}
