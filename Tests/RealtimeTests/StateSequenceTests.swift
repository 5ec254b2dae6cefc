import Synchronization
import Testing

@testable import Realtime

/// The sequence of states, which all objects have.
@Suite(.timeLimit(.minutes(5))) struct StateSequenceTests {
    private func all<State>(_ states: StateSequence<State>) async -> [State] {
        var all: [State] = []
        for await state in states { all.append(state) }
        return all
    }

    // MARK: By itself

    @Test func itBeginsWithThePresentStateAndEndsWithTheLast() async {
        let hub = StateHub(0, last: 9)
        let states = StateSequence(hub: hub)
        var early = states.makeAsyncIterator()
        hub.update { 1 }
        hub.update { 1 }
        var late = states.makeAsyncIterator()
        hub.update { 2 }
        hub.update { 9 }
        hub.update { 3 }
        for expected in [0, 1, 2, 9, nil, nil] { #expect(await early.next() == expected) }
        for expected in [1, 2, 9, nil] { #expect(await late.next() == expected) }
        #expect(await all(states) == [9])
    }

    @Test func finishingAddsTheLastStateOnce() async {
        let hub = StateHub(0)
        var states = StateSequence(hub: hub).makeAsyncIterator()
        hub.finish(0)
        #expect(await states.next() == 0)
        #expect(await states.next() == nil)
    }

    @Test func aSlowReaderGetsTheNewest() async {
        let hub = StateHub(0)
        let slow = StateSequence(hub: hub)
        var iterator = slow.makeAsyncIterator()
        for state in 1...1000 { hub.update { state } }
        hub.finish(-1)
        for expected in 938...1000 { #expect(await iterator.next() == expected) }
        #expect(await iterator.next() == -1)
        #expect(await iterator.next() == nil)
    }

    @Test func oneThatIsCancelledLeavesTheOthers() async {
        let hub = StateHub(0)
        let states = StateSequence(hub: hub)
        let (began, continuation) = AsyncStream.makeStream(of: Void.self)
        let tasks = (0..<3).map { _ in
            Task {
                var seen: [Int] = []
                for await state in states {
                    seen.append(state)
                    continuation.yield()
                }
                return seen
            }
        }
        var begun = began.makeAsyncIterator()
        for _ in tasks { await begun.next() }
        tasks[0].cancel()
        #expect(await tasks[0].value == [0])
        hub.update { 1 }
        hub.finish(2)
        for task in tasks.dropFirst() { #expect(await task.value == [0, 1, 2]) }
    }

    // MARK: Of each object

    @Test func aWebSocketHasStates() async throws {
        let socket = try WebSocket(
            EchoServer.shared.url("echo"), handlers: WebSocket.Handlers())
        let states = Task { [states = socket.states] in await all(states) }
        var own = socket.states.makeAsyncIterator()
        #expect(await own.next() == .new)
        try socket.start()
        while await own.next() != .open {}
        try await socket.close()
        let seen = await states.value
        // The task may have begun later.
        let expected: [WebSocket.State] = [.new, .connecting, .open, .closing, .closed]
        #expect(Array(expected.suffix(seen.count)) == seen && seen.last == .closed)
        #expect(await own.next() == .closing)
        #expect(await own.next() == .closed)
        #expect(await own.next() == nil)
        #expect(await all(socket.states) == [.closed])
    }

    @Test func aLostWebSocketWaits() async throws {
        var options = WebSocket.Options()
        options.reconnect = Backoff()
        let socket = try WebSocket(
            "ws://127.0.0.1:1", options: options, handlers: WebSocket.Handlers())
        var states = socket.states.makeAsyncIterator()
        try socket.start()
        for expected: WebSocket.State in [.new, .connecting, .waiting] {
            #expect(await states.next() == expected)
        }
        try socket.beginClose()
        while let state = await states.next() { #expect(state != .open) }
    }

    /// A sequence keeps no object.
    @Test func releasingAnObjectEndsItsStates() async throws {
        var socket = Optional(
            try WebSocket(EchoServer.shared.url("echo"), handlers: WebSocket.Handlers()))
        var source = Optional(try EventSource(StreamServer.shared.url("events/1"), start: false))
        var poll = Optional(try LongPoll(StreamServer.shared.url("poll/1"), start: false))
        var spreadbot = Optional(
            try Spreadbot(config: Spreadbot.Configuration(baseURL: "http://127.0.0.1:1")))
        var pusher = Optional(Pusher(key: "KEY"))
        var client = Optional(try DDPClient("ws://127.0.0.1:1"))
        let ofSocket = try #require(socket?.states)
        let ofSource = try #require(source?.states)
        let ofPoll = try #require(poll?.states)
        let ofSpreadbot = try #require(spreadbot?.states)
        let ofPusher = try #require(pusher?.connection.states)
        let ofClient = try #require(client?.states)
        (socket, source, poll, spreadbot, pusher, client) = (nil, nil, nil, nil, nil, nil)
        #expect(await all(ofSocket).last == .closed)
        #expect(await all(ofSource).last == .closed)
        #expect(await all(ofPoll).last == .closed)
        #expect(await all(ofSpreadbot) == [.disconnected])
        #expect(await all(ofPusher) == [.disconnected])
        #expect(await all(ofClient) == [.offline])
    }

    @Test func anEventSourceHasStates() async throws {
        let source = try EventSource(StreamServer.shared.url("events/1"), start: false)
        var states = source.states.makeAsyncIterator()
        try source.start()
        #expect(await states.next() == .connecting)
        #expect(await states.next() == .open)
        source.close()
        while let state = await states.next() {
            if state == .closed { break }
        }
        #expect(await states.next() == nil)
        #expect(await all(source.states) == [.closed])
    }

    @Test func aLongPollHasStates() async throws {
        var options = LongPoll.Options()
        options.cursor = .headerID
        options.headers = [("Authorization", "Bearer good")]
        let poll = try LongPoll(
            StreamServer.shared.url("poll/1"), options: options, start: false)
        var states = poll.states.makeAsyncIterator()
        #expect(await states.next() == .connecting)
        poll.onMessage { _ in }
        try poll.start()
        #expect(await states.next() == .open)
        poll.close()
        #expect(await states.next() == .closed)
        #expect(await states.next() == nil)
    }

    @Test func aSpreadbotHasStates() async throws {
        let spreadbot = try Spreadbot(
            config: Spreadbot.Configuration(baseURL: "http://127.0.0.1:1"))
        var states = spreadbot.states.makeAsyncIterator()
        #expect(await states.next() == .disconnected)
        spreadbot.establishConnection(path: "x")
        #expect(await states.next() == .connecting)
        spreadbot.closeConnection()
        #expect(await states.next() == .disconnected)
        // It may be established again.
        spreadbot.establishConnection(path: "x")
        #expect(await states.next() == .connecting)
        spreadbot.close()
        #expect(await states.next() == .disconnected)
        #expect(await states.next() == nil)
    }

    @Test func aPusherHasStates() async throws {
        let app = try await PusherApp()
        let pusher = app.pusher()
        var states = pusher.connection.states.makeAsyncIterator()
        #expect(await states.next() == .disconnected)
        try await pusher.connected()
        #expect(await states.next() == .connecting)
        #expect(await states.next() == .connected)
        pusher.disconnect()
        while await states.next() != .disconnected {}
        pusher.close()
        #expect(await states.next() == nil)
    }

    @Test func aMeteorClientHasStates() async throws {
        let app = try await MeteorApp()
        let client = try DDPClient(app.url)
        var states = client.states.makeAsyncIterator()
        // Another handler changes nothing.
        client.onStatus { _ in }
        client.onStatus(nil)
        try client.connect()
        for expected: DDPClient.Status in [.offline, .connecting, .connected] {
            #expect(await states.next() == expected)
        }
        try client.reconnect()
        while await states.next() != .connected {}
        client.close()
        #expect(await states.next() == .offline)
        #expect(await states.next() == nil)
    }
}
