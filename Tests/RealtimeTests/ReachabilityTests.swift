import Realtime
import Testing

@Suite(.timeLimit(.minutes(5))) struct ReachabilityTests {
    @Test func changesAreAwaited() async throws {
        let reachability = try Reachability(.manual)
        #expect(reachability.isOnline)
        var changes = reachability.changes.makeAsyncIterator()
        for expected in [false, true, false] {
            try reachability.setOnline(expected)
            #expect(await changes.next() == expected)
            #expect(reachability.isOnline == expected)
        }
        try reachability.setMode(.always)
        #expect(await changes.next() == true)
    }

    @Test func eachChangeIsReportedAndTheLatestIsKept() async throws {
        let reachability = try Reachability(.manual)
        let (told, report) = AsyncStream.makeStream(of: Bool.self)
        let kept = reachability.changes
        reachability.onChange {
            MainActor.assertIsolated()
            report.yield($0)
        }
        var iterator = told.makeAsyncIterator()
        for expected in [false, true, false] {
            try reachability.setOnline(expected)
            #expect(await iterator.next() == expected)
        }
        var latest = kept.makeAsyncIterator()
        #expect(await latest.next() == false)
    }

    /// Each iteration has all changes, and continues when another one is cancelled.
    @Test func iterationsAreIndependent() async throws {
        let reachability = try Reachability(.manual)
        let changes = reachability.changes
        let (seen, continuation) = AsyncStream.makeStream(of: Bool.self)
        let tasks = (0..<2).map { _ in
            Task { for await isOnline in changes { continuation.yield(isOnline) } }
        }
        var events = seen.makeAsyncIterator()
        try reachability.setOnline(false)
        for _ in tasks { #expect(await events.next() == false) }
        tasks[0].cancel()
        await tasks[0].value
        try reachability.setOnline(true)
        #expect(await events.next() == true)
        withExtendedLifetime(reachability) {}
        tasks[1].cancel()
        await tasks[1].value
    }

    @Test func changesEndWithTheirObject() async throws {
        var reachability: Reachability? = try Reachability(.always)
        let changes = try #require(reachability).changes
        reachability = nil
        for await change in changes { Issue.record("told \(change)") }
    }

    /// The first attempts wait, each object reports that once, and the attempts follow.
    @Test func firstAttemptsWaitForTheNetwork() async throws {
        let reachability = try Reachability(.manual)
        try reachability.setOnline(false)
        let (told, continuation) = AsyncStream.makeStream(of: String.self)
        let report: @Sendable (String, RealtimeError?, Duration?) -> Void = {
            if let error = $1 { continuation.yield("\($0) \($2 == nil): \(error.message)") }
        }
        var options = WebSocket.Options()
        options.reconnect = Backoff()
        options.reachability = reachability
        var handlers = WebSocket.Handlers()
        handlers.error = { report("WebSocket", $0.error, $0.retryIn) }
        let socket = try WebSocket("ws://127.0.0.1:1/", options: options, handlers: handlers)
        try socket.start()
        var pusherOptions = PusherClientOptions(host: .host("127.0.0.1"), port: 1, useTLS: false)
        pusherOptions.reachability = reachability
        let pusher = Pusher(key: "KEY", options: pusherOptions)
        pusher.onStateChange { report("Pusher", $0.error, $0.retryIn) }
        pusher.connect()
        var ddpOptions = DDPClient.Options()
        ddpOptions.reachability = reachability
        let ddp = try DDPClient("ws://127.0.0.1:1/websocket", options: ddpOptions)
        ddp.onStatus { report("DDP", $0.error, $0.retryIn) }
        try ddp.connect()
        var lines = told.makeAsyncIterator()
        var waits: [String] = []
        for _ in 0..<3 { waits.append(try #require(await lines.next())) }
        let text = "true: 127.0.0.1:1: no network reaches it"
        #expect(waits.sorted() == ["DDP \(text)", "Pusher \(text)", "WebSocket \(text)"])
        #expect(pusher.connection.connectionState == .reconnecting && ddp.status == .offline)
        try reachability.setOnline(true)
        var failed: Set<Substring> = []
        while failed.count < 3 {
            let line = try #require(await lines.next())
            #expect(line.contains("refused"))
            failed.insert(line.prefix { $0 != " " })
        }
        try socket.beginClose(.normal)
        pusher.disconnect()
        ddp.close()
    }

    /// The program knows that there is a network, and the monitor does not. It counts again when
    /// the attempt has failed.
    @Test func attemptsThatWaitAreMadeAtOnce() async throws {
        let reachability = try Reachability(.manual)
        try reachability.setOnline(false)
        let (told, continuation) = AsyncStream.makeStream(of: String.self)
        let report: @Sendable (String, RealtimeError?, Duration?) -> Void = {
            guard let error = $1 else { return }
            let isWait = error.message.contains("no network reaches it")
            #expect($2 == nil && (isWait || error.message.contains("refused")))
            continuation.yield("\($0) \(isWait ? "waits" : "failed")")
        }
        let objects = try [
            waitingSocket(reachability, report), waitingSource(reachability, report),
            waitingPoll(reachability, report), waitingSpreadbot(reachability, report),
            waitingPusher(reachability, report), waitingMeteor(reachability, report),
        ]
        var lines = told.makeAsyncIterator()
        var waits: Set<String> = []
        for _ in objects { waits.insert(try #require(await lines.next())) }
        #expect(waits == Set(objects.map { "\($0.name) waits" }))
        for object in objects {
            try object.retryNow()
            #expect(await lines.next() == "\(object.name) failed")
        }
        for object in objects { object.close() }
    }

    @Test func aConnectionRefusesAnotherLoopsReachability() async throws {
        var options = WebSocket.Options()
        options.reconnect = Backoff()
        options.reachability = try Reachability(on: Loop())
        await #expect(throws: RealtimeError.self) {
            try await WebSocket.connect("ws://127.0.0.1:1/", options: options)
        }
    }
}

private typealias Report = @Sendable (String, RealtimeError?, Duration?) -> Void

/// An object that waits for a network.
private struct Waiting {
    let name: String
    let retryNow: () throws -> Void
    let close: () -> Void
}

private func waitingSocket(_ reachability: Reachability, _ report: @escaping Report) throws
    -> Waiting
{
    var options = WebSocket.Options()
    options.reconnect = Backoff()
    options.reachability = reachability
    var handlers = WebSocket.Handlers()
    handlers.error = { report("WebSocket", $0.error, $0.retryIn) }
    let socket = try WebSocket("ws://127.0.0.1:1/", options: options, handlers: handlers)
    try socket.start()
    return Waiting(name: "WebSocket", retryNow: socket.retryNow) { try? socket.beginClose() }
}

private func waitingSource(_ reachability: Reachability, _ report: @escaping Report) throws
    -> Waiting
{
    var options = EventSource.Options()
    options.reachability = reachability
    let source = try EventSource("http://127.0.0.1:1/", options: options, start: false)
    source.onError { report("EventSource", $0.error, $0.retryIn) }
    try source.start()
    return Waiting(name: "EventSource", retryNow: source.retryNow, close: source.close)
}

private func waitingPoll(_ reachability: Reachability, _ report: @escaping Report) throws -> Waiting
{
    var options = LongPoll.Options()
    options.reachability = reachability
    let poll = try LongPoll("http://127.0.0.1:1/", options: options, start: false)
    poll.onError { report("LongPoll", $0.error, $0.retryIn) }
    try poll.start()
    return Waiting(name: "LongPoll", retryNow: poll.retryNow, close: poll.close)
}

private func waitingSpreadbot(_ reachability: Reachability, _ report: @escaping Report) throws
    -> Waiting
{
    var config = Spreadbot.Configuration(baseURL: "http://127.0.0.1:1")
    config.reachability = reachability
    let spreadbot = try Spreadbot(config: config)
    spreadbot.onError { report("Spreadbot", $0.error, $0.retryIn) }
    spreadbot.establishConnection(path: "news")
    return Waiting(name: "Spreadbot", retryNow: spreadbot.retryNow, close: spreadbot.close)
}

private func waitingPusher(_ reachability: Reachability, _ report: @escaping Report) throws
    -> Waiting
{
    var options = PusherClientOptions(host: .host("127.0.0.1"), port: 1, useTLS: false)
    options.reachability = reachability
    let pusher = Pusher(key: "KEY", options: options)
    pusher.onStateChange { report("Pusher", $0.error, $0.retryIn) }
    pusher.connect()
    return Waiting(
        name: "Pusher", retryNow: pusher.connection.retryNow, close: pusher.disconnect)
}

private func waitingMeteor(_ reachability: Reachability, _ report: @escaping Report) throws
    -> Waiting
{
    var options = DDPClient.Options()
    options.reachability = reachability
    let client = try DDPClient("ws://127.0.0.1:1/websocket", options: options)
    client.onStatus { report("DDPClient", $0.error, $0.retryIn) }
    try client.connect()
    return Waiting(name: "DDPClient", retryNow: client.retryNow, close: client.close)
}
