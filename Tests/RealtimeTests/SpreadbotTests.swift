import Dispatch
import Foundation
import Realtime
import Synchronization
import Testing

private let server = StreamServer.shared

private func spreadbot(
    _ change: (inout Spreadbot.Configuration) -> Void = { _ in }
) throws -> Spreadbot {
    var config = Spreadbot.Configuration(baseURL: server.url(""))
    config.maxDelay = .milliseconds(10)
    // Other suites run at the same time: these tests do not check time limits.
    config.answerTimeout = .seconds(60)
    config.connectTimeout = .seconds(60)
    // So that handlers have run before `connect` returns.
    config.executor = .loop
    change(&config)
    return try Spreadbot(config: config)
}

/// Records notes, and is the executor of callbacks; those that must run on it assert that.
private actor Recorder {
    private(set) var told: [String] = []
    private var waiting: CheckedContinuation<Void, Never>?
    private var waitedFor = 0

    func note(_ text: String) {
        told.append(text)
        waiting?.resume()
        waiting = nil
    }

    /// Waits for the next note.
    func wait() async {
        while told.count <= waitedFor { await withCheckedContinuation { waiting = $0 } }
        waitedFor += 1
    }
}

/// Runs jobs on its own queue.
private final class QueueExecutor: TaskExecutor {
    private static let key = DispatchSpecificKey<Bool>()
    private let queue = DispatchQueue(label: "line")

    init() { queue.setSpecific(key: QueueExecutor.key, value: true) }

    var isCurrent: Bool { DispatchQueue.getSpecific(key: QueueExecutor.key) == true }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}

@Suite(.timeLimit(.minutes(5))) struct SpreadbotTests {
    @Test func messagesAreIterated() async throws {
        let spreadbot = try spreadbot { $0.lastEventID = "2" }
        var count = 2
        for try await message in try spreadbot.messages(path: "events/3") {
            count += 1
            #expect(message.id == String(count) && message.hadID)
            #expect(message.text == "number\n\(count)")
            #expect(message.event == (count % 2 == 1 ? "odd" : "events/3"))
            // Each stream has three events, and the next continues after the last id.
            if count == 11 { break }
        }
        #expect(spreadbot.transport == .sse && Int(spreadbot.lastEventID) ?? 0 >= 11)
        await spreadbot.disconnect()
        #expect(spreadbot.state == .disconnected && spreadbot.transport == nil)
    }

    @Test func sendsEnd() async throws {
        let spreadbot = try spreadbot()
        let early = await #expect(throws: RealtimeError.self) {
            try await spreadbot.sendMessageString(message: "early")
        }
        #expect(early?.code == .closed)
        let (calls, continuation) = AsyncStream.makeStream(of: String.self)
        spreadbot.onMessage { id, event, data in
            continuation.yield("\(id)\(event) \(String(decoding: data, as: UTF8.self))")
        }
        spreadbot.onOpen { transport, resumed, _ in
            continuation.yield("open \(transport) \(resumed)")
        }
        spreadbot.onTransport { continuation.yield("\($0.map { "\($0)" } ?? "none")") }
        spreadbot.onDisconnected { continuation.yield("over \($0 == nil)") }
        try await spreadbot.connect(path: "echo")
        #expect(spreadbot.state == .connected && spreadbot.phase == .none)
        try await spreadbot.sendMessageString(message: "one")
        try await spreadbot.sendMessageBinary(message: Array("two".utf8))
        let done = Mutex(false)
        var told: [String] = []
        for await call in calls {
            told.append(call)
            if call == "echo two" {
                spreadbot.sendMessageString(message: "three") { result in
                    if case .success = result { done.withLock { $0 = true } }
                }
                spreadbot.closeConnection()
            }
            if call.hasPrefix("over") { break }
        }
        // The third one's answer comes before the end, or not at all.
        #expect(
            told.filter { $0 != "echo three" } == [
                "webSocket", "open webSocket false", "echo one", "echo two", "none", "over true",
            ])
        #expect(done.withLock { $0 })
    }

    @Test func fatalErrorsAreThrown() async throws {
        let spreadbot = try spreadbot()
        let errors = Mutex<[Spreadbot.ErrorEvent]>([])
        spreadbot.onError { error in errors.withLock { $0.append(error) } }
        let refused = await #expect(throws: RealtimeError.self) {
            try await spreadbot.connect(path: "poll/1")
        }
        #expect(refused?.code == .auth)
        let told = errors.withLock { $0 }
        #expect(told.count == 1 && told[0].isFatal && told[0].httpStatus == 401)
        #expect(told.first?.transport == .webSocket)
        try spreadbot.setTokens(accessToken: "good", refreshToken: "")
        for try await message in try spreadbot.messages(path: "poll/1") {
            #expect(message.text == "message 1")
            break
        }
        #expect(spreadbot.transport == .poll && spreadbot.accessToken == "good")
    }

    /// Nobody listens: all legs fail twice; after the first time another round follows.
    @Test func roundsHaveALimit() async throws {
        let spreadbot = try spreadbot {
            $0.baseURL = "http://127.0.0.1:1"
            $0.transports = [.poll]
            $0.maxReconnects = 0
            $0.maxRounds = 2
        }
        let errors = Mutex<[Spreadbot.ErrorEvent]>([])
        spreadbot.onError { error in errors.withLock { $0.append(error) } }
        let error = await #expect(throws: RealtimeError.self) {
            try await spreadbot.connect(path: "x")
        }
        #expect(error?.code == .reconnectsExhausted)
        #expect(errors.withLock { $0.map(\.isFatal) } == [false, true])
    }

    @Test func waitingCanBeCancelled() async throws {
        let reachability = try Reachability(.manual)
        try reachability.setOnline(false)
        let spreadbot = try spreadbot { $0.reachability = reachability }
        let (opens, continuation) = AsyncStream.makeStream(of: Void.self)
        spreadbot.onOpen { _, _, _ in continuation.yield() }
        let waiting = Task { try await spreadbot.connect(path: "echo") }
        while spreadbot.phase != .offline { await Task.yield() }
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
        let sending = Task { try await spreadbot.sendMessageString(message: "never") }
        sending.cancel()
        await #expect(throws: CancellationError.self) { try await sending.value }
        try reachability.setOnline(true)
        for await _ in opens { break }
        try await spreadbot.sendMessageString(message: "now")
    }

    @Test func handlersRunOnAnActor() async throws {
        let recorder = Recorder()
        let spreadbot = try spreadbot {
            $0.executor = .actor(recorder)
            $0.maxBufferedMessages = 2
        }
        let (calls, continuation) = AsyncStream.makeStream(of: Void.self)
        spreadbot.onMessage { id, _, _ in
            // Traps on another executor.
            recorder.assumeIsolated { $0.note(id) }
            continuation.yield()
        }
        try await spreadbot.connect(path: "events/5")
        var count = 0
        for await _ in calls {
            count += 1
            if count == 40 { break }
        }
        let told = await recorder.told
        #expect(Array(told.prefix(40)) == (1...40).map(String.init))
    }

    @Test func handlersRunByATaskExecutor() async throws {
        let line = QueueExecutor()
        let spreadbot = try spreadbot { $0.executor = .task(line) }
        let (calls, continuation) = AsyncStream.makeStream(of: Bool.self)
        spreadbot.onMessage { _, _, _ in continuation.yield(line.isCurrent) }
        try await spreadbot.connect(path: "events/3")
        var count = 0
        for await isThere in calls {
            #expect(isThere)
            count += 1
            if count == 6 { break }
        }
    }

    @Test func handlersOfRequestsRunOnAnActor() async throws {
        let recorder = Recorder()
        var config = Spreadbot.Configuration(baseURL: RESTServer.shared.url)
        config.executor = .actor(recorder)
        var rest: SpreadbotREST? = try SpreadbotREST(config: config)
        // The last request is running when the client is released, and reports that.
        for path in ["slow/1", "status/404", "http://[", "silent/a/99"] {
            rest?.getData(path: path) { answer in
                recorder.assumeIsolated { $0.note("\(answer.status)") }
            } onError: { failure in
                recorder.assumeIsolated { $0.note("\(failure.code)") }
            }
            if path.hasPrefix("silent") { rest = nil }
            await recorder.wait()
        }
        let told = await recorder.told
        #expect(told == ["200", "httpStatus", "invalidURL", "closed"])
    }

    @Test func requestsShareTokens() async throws {
        let spreadbot = try spreadbot { $0.accessToken = "good" }
        let rest = try SpreadbotREST(sharing: spreadbot)
        #expect(try await rest.getData(path: "poll/3").text == "message 1")
        let own = SpreadbotREST(config: ["baseURL": RESTServer.shared.url])
        let posted = try await own.postData(path: "/echo", payload: ["a": [1, nil]])
        let headers = posted.json?["headers"]
        #expect(posted.json?["method"] == "POST", "\(posted.text)")
        #expect(posted.text.contains("dempotency-") && headers != nil, "\(posted.text)")
        #expect(posted.text.contains("application/json"))
        let answer = await withCheckedContinuation { continuation in
            own.getData(
                path: "status/404", onSuccess: { _ in continuation.resume(returning: 0) },
                onError: { continuation.resume(returning: $0.response?.status ?? -1) })
        }
        #expect(answer == 404)
    }

    @Test func durableSendsOutliveTheConnection() async throws {
        let file = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: file) }
        let reachability = try Reachability(.manual)
        try reachability.setOnline(false)
        try keep(in: file.path(), reachability)
        let (ends, continuation) = AsyncStream.makeStream(of: Bool.self)
        var config = Spreadbot.Configuration(baseURL: RESTServer.shared.url)
        config.outbox = file.path()
        let rest = try SpreadbotREST(config: config)
        rest.postData(
            path: "status/404", payload: ["late": true],
            onSuccess: { _ in continuation.yield(true) },
            onError: { continuation.yield($0.response?.status != 404) })
        // After the message that the first connection left, in order.
        for await isWrong in ends {
            #expect(!isWrong)
            break
        }
        let answer = try await rest.postData(path: "echo", payload: .text("whole"))
        #expect(answer.text.contains("whole") && answer.text.contains("dempotency-"))
        let log = try String(contentsOf: file, encoding: .isoLatin1)
        #expect(!log.contains("early"), "the file still has what was sent")
    }

    /// Sends without a network, and releases the connection.
    private func keep(in file: String, _ reachability: Reachability) throws {
        var config = Spreadbot.Configuration(baseURL: RESTServer.shared.url)
        config.outbox = file
        config.reachability = reachability
        let rest = try SpreadbotREST(config: config)
        rest.postData(
            path: "echo", payload: ["early": 1], onSuccess: { _ in Issue.record("it was sent") },
            onError: { #expect($0.code == .closed) })
        #expect(throws: RealtimeError.self) { try SpreadbotREST(config: config) }
        let text = try String(contentsOf: URL(filePath: file), encoding: .isoLatin1)
        #expect(text.contains("early"))
    }

    @Test func anEndDoesNotAffectTheNextConnection() async throws {
        let spreadbot = try spreadbot()
        for _ in 0..<20 {
            try await spreadbot.connect(path: "echo")
            spreadbot.closeConnection()
            try await spreadbot.connect(path: "echo")
            spreadbot.closeConnection()
            // Even if the message before was not read completely.
            var count = 0
            for try await _ in try spreadbot.messages(path: "events/9") {
                count += 1
                if count == 3 { break }
            }
            #expect(count == 3)
        }
        let again = Mutex(0)
        spreadbot.onDisconnected { [weak spreadbot] _ in
            let count = again.withLock { again in
                again += 1
                return again
            }
            guard count == 1, let spreadbot else { return }
            spreadbot.establishConnection(path: "echo")
        }
        await spreadbot.disconnect()
        #expect(spreadbot.state != .disconnected)
        await spreadbot.disconnect()
    }

    @Test func aFullMailboxDoesNotDelaySends() async throws {
        let spreadbot = try spreadbot { $0.maxBufferedMessages = 2 }
        let messages = try spreadbot.messages(path: "echo")
        try await spreadbot.connect(path: "echo")
        // More echoes than the mailbox takes, and no task takes them.
        for number in 0..<20 { try await spreadbot.sendMessageString(message: "\(number)") }
        withExtendedLifetime(messages) {}
        // Another iteration is not blocked by it.
        for try await message in try spreadbot.messages(path: "events/1") {
            #expect(message.id == "1")
            break
        }
    }

    @Test func messagesBeyondTheBufferAreConfirmed() async throws {
        let spreadbot = try spreadbot()
        try await spreadbot.connect(path: "sink")
        try await spreadbot.sendMessageBinary(
            message: [UInt8](repeating: 7, count: (64 << 20) + 1))
        try await spreadbot.sendMessageString(message: "after it")
    }

    @Test func endsOfSendsAreAlwaysReported() async throws {
        let recorder = Recorder()
        let (ends, continuation) = AsyncStream.makeStream(of: Void.self)
        for _ in 0..<5 {
            var spreadbot: Spreadbot? = try spreadbot { $0.executor = .actor(recorder) }
            try await spreadbot?.connect(path: "echo")
            spreadbot?.sendMessageString(message: "last") { _ in continuation.yield() }
            spreadbot = nil
        }
        var count = 0
        for await _ in ends {
            count += 1
            if count == 5 { break }
        }
    }

    @Test func badOptionsAreRefused() throws {
        #expect(throws: RealtimeError.self) { try spreadbot { $0.safeHeaders = ["not safe"] } }
    }
}
