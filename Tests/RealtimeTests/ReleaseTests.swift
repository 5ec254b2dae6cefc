import Realtime
import Testing

/// What handlers capture strongly, also the object itself, is released when it is closed for good.
struct ReleaseTests {
    private final class Probe: Sendable {}

    /// An object and what its handlers have captured, both held weakly.
    private struct Held {
        weak var object: AnyObject?
        weak var probe: Probe?
    }

    private struct Fixed: Authorizer {
        let probe: Probe

        func fetchAuthValue(
            socketID: String, channelName: String,
            completionHandler: @escaping @Sendable (PusherAuth?) -> Void
        ) {
            completionHandler(nil)
        }
    }

    /// Waits until the loop has done what was posted to it before, and what that has posted.
    private func settle() async throws {
        for _ in 0..<3 {
            try await withCheckedThrowingContinuation {
                (done: CheckedContinuation<Void, any Error>) in
                do {
                    try Loop.shared.post { done.resume() }
                } catch {
                    done.resume(throwing: error)
                }
            }
        }
    }

    private func pusher() -> Held {
        let probe = Probe()
        var options = PusherClientOptions(authMethod: .authorizer(authorizer: Fixed(probe: probe)))
        options.executor = .loop
        options.authHeadersProvider = { [("X", "\(probe)")] }
        let pusher = Pusher(key: "KEY", options: options)
        let channel = pusher.subscribe("presence-a") { _ in _ = (pusher, probe) }
        pusher.bind { (_: PusherEvent) in _ = (pusher, probe) }
        channel.bind(eventName: "a") { (_: PusherEvent) in _ = (pusher, channel, probe) }
        pusher.user.bind(eventName: "b") { (_: PusherEvent) in _ = (pusher, probe) }
        pusher.onStateChange { _ in _ = (pusher, probe) }
        pusher.connection.userDataFetcher = { [pusher, probe] in
            PusherPresenceChannelMember(userId: "\(pusher) \(probe)")
        }
        pusher.close()
        pusher.close()
        return Held(object: pusher, probe: probe)
    }

    @Test func closingAPusherReleasesWhatItsHandlersCapture() async throws {
        let held = pusher()
        try await settle()
        #expect(held.object == nil && held.probe == nil)
    }

    @Test func nothingFollowsTheCloseOfAPusher() async throws {
        let pusher = Pusher(key: "KEY", options: PusherClientOptions(host: .host("127.0.0.1")))
        let channel = pusher.subscribe("orders")
        pusher.close()
        await #expect(throws: RealtimeError.self) { try await pusher.connected() }
        await #expect(throws: RealtimeError.self) { try await channel.subscribed() }
        #expect(!channel.isRegistered && pusher.connection.channels.all.isEmpty)
        #expect(pusher.connection.connectionState == .disconnected)
    }

    private func spreadbot() throws -> Held {
        let probe = Probe()
        var config = Spreadbot.Configuration(baseURL: "http://127.0.0.1:1")
        config.executor = .loop
        let spreadbot = try Spreadbot(config: config)
        spreadbot.onOpen { _ = (spreadbot, probe) }
        spreadbot.onError { _ in _ = (spreadbot, probe) }
        spreadbot.onTransport { _ in _ = (spreadbot, probe) }
        spreadbot.onTokens { _, _ in _ = (spreadbot, probe) }
        spreadbot.onDisconnected { _ in _ = (spreadbot, probe) }
        spreadbot.close()
        spreadbot.close()
        return Held(object: spreadbot, probe: probe)
    }

    @Test func closingASpreadbotReleasesWhatItsHandlersCapture() async throws {
        let held = try spreadbot()
        try await settle()
        #expect(held.object == nil && held.probe == nil)
    }

    private func requests() throws -> Held {
        let probe = Probe()
        var config = Spreadbot.Configuration(baseURL: "http://127.0.0.1:1")
        config.executor = .loop
        let requests = try SpreadbotREST(config: config)
        try requests.onTokens { _, _ in _ = (requests, probe) }
        requests.close()
        return Held(object: requests, probe: probe)
    }

    @Test func closingSpreadbotRESTReleasesWhatItsHandlerCaptures() async throws {
        let held = try requests()
        try await settle()
        #expect(held.object == nil && held.probe == nil)
        let closed = try SpreadbotREST(config: .init(baseURL: "http://127.0.0.1:1"))
        closed.close()
        await #expect(throws: (any Error).self) { try await closed.getData(path: "a") }
    }

    private let refusing = RESTServer.shared.url + "/status/404"

    private func eventSource() async throws -> Held {
        let probe = Probe()
        var options = EventSource.Options()
        options.executor = .loop
        let source = try EventSource(refusing, options: options, start: false)
        source.onOpen { _ = (source, probe) }
        source.onMessage { _, _, _ in _ = (source, probe) }
        source.addEventListener("a") { _, _, _ in _ = (source, probe) }
        let states = source.states
        try source.start()
        for await state in states where state == .closed { break }
        return Held(object: source, probe: probe)
    }

    /// Also if nobody handles the error.
    @Test func anEventSourceThatFailsReleasesWhatItsHandlersCapture() async throws {
        let held = try await eventSource()
        try await settle()
        #expect(held.object == nil && held.probe == nil)
    }

    private func longPoll() async throws -> Held {
        let probe = Probe()
        var options = LongPoll.Options()
        options.executor = .loop
        let poll = try LongPoll(refusing, options: options, start: false)
        poll.onOpen { _ in _ = (poll, probe) }
        poll.onMessage { _ in _ = (poll, probe) }
        let states = poll.states
        try poll.start()
        for await state in states where state == .closed { break }
        return Held(object: poll, probe: probe)
    }

    @Test func aLongPollThatFailsReleasesWhatItsHandlersCapture() async throws {
        let held = try await longPoll()
        try await settle()
        #expect(held.object == nil && held.probe == nil)
    }

    private func meteorClient() throws -> Held {
        let probe = Probe()
        let client = try DDPClient("ws://127.0.0.1:1")
        let models = try DDPModels(client, Player.self)
        client.onStatus { _ in _ = (client, probe) }
        client.onOpen { _ = (client, probe) }
        client.onChanges { _ in _ = (client, probe) }
        client.onCurrent { _ = (client, probe) }
        client.onRefused { _, _ in _ = (client, probe) }
        client.onDebug { _ in _ = (client, probe) }
        client.onAccount { _ in _ = (client, probe) }
        try client.setStream("events") { _ in _ = (client, probe) }
        try client.setStub("m") { _, _ in
            _ = (client, probe)
            return .null
        }
        models.onMisfit { _ in _ = (models, probe) }
        let loader = try SubscriptionLoader(client)
        try loader.add("a")
        try loader.whenReady { _ in _ = (client, probe) }
        _ = try client.subscribe("b") { _ in _ = (client, probe) }
        client.close()
        client.close()
        return Held(object: models, probe: probe)
    }

    @Test func closingAMeteorClientReleasesWhatItsHandlersCapture() async throws {
        let held = try meteorClient()
        try await settle()
        #expect(held.object == nil && held.probe == nil)
    }

    @Test func aSpreadbotThatIsClosedCannotConnect() async throws {
        let spreadbot = try Spreadbot(config: .init(baseURL: "http://127.0.0.1:1"))
        spreadbot.close()
        await #expect(throws: RealtimeError.self) { try await spreadbot.connect(path: "feed") }
    }
}
