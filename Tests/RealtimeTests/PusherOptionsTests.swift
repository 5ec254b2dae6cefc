import Realtime
import Testing

/// What PusherSwift's tests of the initialization check, and how wrong options are reported.
@Suite(.timeLimit(.minutes(5))) struct PusherOptionsTests {
    private func url(_ options: PusherClientOptions = PusherClientOptions()) -> String {
        let url = Pusher(key: "KEY", options: options).connection.url
        return String(url.prefix { $0 != "?" })
    }

    @Test func defaultsMakeAURL() {
        let url = Pusher(key: "KEY").connection.url
        #expect(url.hasPrefix("wss://ws.pusherapp.com:443/app/KEY?client="))
        #expect(url.contains("&protocol=7") && url.contains("&version="))
    }

    @Test func everyOptionHasItsDefault() {
        let options = PusherClientOptions()
        if case .noMethod = options.authMethod {} else { Issue.record("there is an auth method") }
        #expect(options.attemptToReturnJSONObject && options.autoReconnect && options.useTLS)
        #expect(options.host == .defaultHost && options.port == 0 && options.path == nil)
        #expect(options.activityTimeout == nil && options.pongTimeout == .seconds(30))
        #expect(options.reconnectAttemptsMax == nil && options.maxReconnectGapInSeconds == 120)
        #expect(options.authBatchSize == 1 && !options.upgradeOn4000 && options.authRetries == 0)
    }

    @Test func optionsChangeTheURL() {
        #expect(url(PusherClientOptions(useTLS: false)) == "ws://ws.pusherapp.com:80/app/KEY")
        #expect(url(PusherClientOptions(encrypted: false)) == "ws://ws.pusherapp.com:80/app/KEY")
        #expect(
            url(PusherClientOptions(host: .host("test.example.com")))
                == "wss://test.example.com:443/app/KEY")
        #expect(
            url(PusherClientOptions(host: .cluster("eu"))) == "wss://ws-eu.pusher.com:443/app/KEY")
        #expect(url(PusherClientOptions(port: 6001)) == "wss://ws.pusherapp.com:6001/app/KEY")
        #expect(url(PusherClientOptions(path: "ws/")) == "wss://ws.pusherapp.com:443/ws/app/KEY")
    }

    @Test func labelsOfOlderVersionsSetTheSameOptions() {
        let options = PusherClientOptions(
            authMethod: .inline(secret: "s"), attemptToReturnJSONObject: false,
            autoReconnect: false, host: .host("h"), port: 1, encrypted: false, activityTimeout: 7)
        #expect(!options.attemptToReturnJSONObject && !options.autoReconnect && !options.useTLS)
        #expect(options.host == .host("h") && options.port == 1)
        #expect(options.activityTimeout == .seconds(7))
        if case .inline(let secret) = options.authMethod {
            #expect(secret == "s")
        } else {
            Issue.record("the auth method is lost")
        }
    }

    /// Users pass a URL as the host.
    @Test(arguments: ["ws://127.0.0.1", "127.0.0.1/app", ""])
    func aHostIsNoURL(host: String) async {
        let pusher = Pusher(key: "KEY", options: PusherClientOptions(host: .host(host)))
        #expect(pusher.connection.configurationError?.code == .invalidArgument)
        #expect(pusher.connection.url == "" && pusher.connection.connectionState == .disconnected)
        let error = await #expect(throws: RealtimeError.self) { try await pusher.connected() }
        #expect(error == pusher.connection.configurationError)
    }

    @Test func wrongOptionsAreReportedByConnect() async {
        let notes = Notes()
        let pusher = Pusher(key: "", options: PusherClientOptions())
        pusher.onError { notes.add($0.message) }
        pusher.connect()
        #expect(await notes.wait(count: 1) == [pusher.connection.configurationError?.message])
        let channel = pusher.subscribe("channel")
        await #expect(throws: RealtimeError.self) { try await channel.subscribed() }
        for await _ in channel.events() { Issue.record("there was an event") }
    }

    @Test(
        arguments: [
            { $0.port = 65_536 }, { $0.pongTimeout = .seconds(-1) }, { $0.authBatchSize = 0 },
            { $0.maxBufferedEvents = 0 }, { $0.encryptionMasterKey = [1, 2, 3] },
            { $0.authMethod = .endpoint(authEndpoint: "no url") }, { $0.reconnectAttemptsMax = -1 },
            { $0.path = "x y" },
        ] as [@Sendable (inout PusherClientOptions) -> Void])
    func impossibleOptionsAreRefused(change: @Sendable (inout PusherClientOptions) -> Void) {
        var options = PusherClientOptions()
        change(&options)
        #expect(Pusher(key: "KEY", options: options).connection.configurationError != nil)
    }

    /// The secret is in none of the texts that a program may print.
    @Test func secretsAreNotShown() {
        let options = PusherClientOptions(
            authMethod: .inline(secret: "5ecret"), host: .host("a/5ecret"))
        let pusher = Pusher(key: "KEY", options: options)
        #expect(pusher.connection.configurationError != nil)
        #expect(!"\(AuthMethod.inline(secret: "5ecret"))".contains("5ecret"))
    }
}
