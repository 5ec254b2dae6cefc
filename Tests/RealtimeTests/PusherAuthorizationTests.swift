import Realtime
import Synchronization
import Testing

/// What PusherSwift's tests of the authentication check, and what its users asked for.
@Suite(.timeLimit(.minutes(5))) struct PusherAuthorizationTests {
    /// Asks the app's endpoint, as a program's own authorizer would.
    private struct Relay: Authorizer {
        let rest: REST
        let url: String

        init(_ app: PusherApp) throws {
            rest = try REST(app.authEndpoint, options: .patient)
            url = app.authEndpoint
        }

        func auth(_ socketID: String, _ channelName: String) async throws -> PusherAuth {
            let form = "socket_id=\(socketID)&channel_name=\(channelName)"
            let answer = try await rest.post(
                url,
                body: .bytes(Array(form.utf8), type: "application/x-www-form-urlencoded")
            ).json
            return PusherAuth(
                auth: answer?["auth"]?.stringValue ?? "",
                channelData: answer?["channel_data"]?.stringValue,
                sharedSecret: answer?["shared_secret"]?.stringValue)
        }

        func fetchAuthValue(
            socketID: String, channelName: String,
            completionHandler: @escaping @Sendable (PusherAuth?) -> Void
        ) {
            Task { completionHandler(try? await auth(socketID, channelName)) }
        }
    }

    /// Makes requests without Foundation.
    private struct Builder: PusherAuthRequestBuilder {
        let url: String

        func authorizationRequest(socketID: String, channelName: String) -> REST.Request? {
            guard channelName != "private-none" else { return nil }
            let form = "socket_id=\(socketID)&channel_name=\(channelName)"
            return REST.Request(
                "POST", url,
                body: .bytes(Array(form.utf8), type: "application/x-www-form-urlencoded"),
                headers: [("X-Token", "t")])
        }
    }

    private let kinds = ["private-a", "presence-a", "private-encrypted-a"]

    @Test func theEndpointGetsAForm() async throws {
        let app = try await PusherApp()
        let token = Atomic<Int>(0)
        let pusher = app.pusher(.endpoint(authEndpoint: app.authEndpoint)) {
            $0.authHeaders = [("X-One", "1"), ("X-Token", "old")]
            $0.authHeadersProvider = {
                [("X-Token", "\(token.add(1, ordering: .relaxed).newValue)")]
            }
            $0.authParams = [("tenant", "a b")]
            $0.authParamsProvider = {
                [("nonce", "\(token.load(ordering: .relaxed)) & more")]
            }
        }
        // Names with special characters broke the request.
        let name = "private-a=b@c,d.e;f"
        let channel = pusher.subscribe(name)
        try await pusher.connected()
        try await channel.subscribed()
        let request = try await app.wait(["what": "auth"])
        #expect(request["form"]?["channel_name"]?.stringValue == name)
        #expect(request["form"]?["socket_id"]?.stringValue == pusher.connection.socketId)
        #expect(request["form"]?["tenant"]?.stringValue == "a b")
        #expect(request["form"]?["nonce"]?.stringValue == "1 & more")
        #expect(request["headers"]?["X-One"]?.stringValue == "1")
        #expect(request["headers"]?["X-Token"]?.stringValue == "1")
        // The token may have expired: each request has a fresh one.
        try await app.control("close", ["code": 4200])
        let second = try await app.wait(["what": "auth", "count": 2])
        #expect(second["headers"]?["X-Token"]?.stringValue == "2")
        #expect(second["form"]?["nonce"]?.stringValue == "2 & more")
        try await channel.subscribed()
    }

    @Test func everyMethodAuthorizesEveryKind() async throws {
        let app = try await PusherApp()
        let relay = try Relay(app)
        let methods: [AuthMethod] = [
            .endpoint(authEndpoint: app.authEndpoint),
            .inline(secret: app.secret),
            .authorizer(authorizer: relay),
            .authorizer { try await relay.auth($0, $1) },
            .authRequestBuilder(authRequestBuilder: Builder(url: app.authEndpoint)),
        ]
        for method in methods {
            let pusher = app.pusher(method) { $0.encryptionMasterKey = app.masterKey }
            let channels = kinds.map { pusher.subscribe($0) }
            try await pusher.connected()
            for channel in channels { try await channel.subscribed() }
            // The key came with the authorization.
            let notes = Notes()
            channels[2].bind(eventName: "secret") { (event: PusherEvent) in
                notes.add(event.data ?? "")
            }
            try await app.publish(channels[2].name, "secret", ["amount": 12])
            #expect(await notes.wait(count: 1) == [#"{"amount":12}"#])
            pusher.disconnect()
        }
    }

    /// The first key does not open the events. The second one does, and stays.
    @Test(arguments: 0..<3) func everyMethodRenewsAKey(number: Int) async throws {
        let app = try await PusherApp()
        let methods: [AuthMethod] = [
            .endpoint(authEndpoint: app.authEndpoint),
            .authorizer(authorizer: try Relay(app)),
            .authRequestBuilder(authRequestBuilder: Builder(url: app.authEndpoint)),
        ]
        try await app.control("auth", ["mode": "wrong_shared_secret"])
        let notes = Notes()
        let pusher = app.pusher(methods[number])
        let channel = pusher.subscribe("private-encrypted-a")
        channel.bind(eventName: "secret") { (event: PusherEvent) in notes.add(event.data ?? "") }
        try await pusher.connected()
        try await channel.subscribed()
        for number: Int64 in 1...2 {
            try await app.publish("private-encrypted-a", "secret", .integer(number))
            await notes.wait(for: "\(number)")
        }
        #expect(notes.all == ["1", "2"])
        #expect(try await app.count(["what": "auth"]) == 2)
    }

    @Test func withoutAMethodTheSubscriptionFails() async throws {
        let app = try await PusherApp()
        let notes = Notes()
        let pusher = app.pusher()
        let channel = pusher.subscribe("private-a")
        channel.bind(eventName: "pusher:subscription_error") { (event: PusherEvent) in
            notes.add("event \(event.json?["type"]?.stringValue ?? "")")
        }
        pusher.onSubscriptionFailed { notes.add("\($0.name) \($1.error.code)") }
        try await pusher.connected()
        #expect(Set(await notes.wait(count: 2)) == ["event AuthError", "private-a auth"])
        let error = await #expect(throws: RealtimeError.self) { try await channel.subscribed() }
        #expect(error?.code == .auth)
        #expect(try await app.count(["what": "in", "event": "pusher:subscribe"]) == 0)
        #expect(pusher.connection.connectionState == .connected)
    }

    /// A failed channel is neither silent nor stuck.
    @Test func aRefusalHasStatusAndBody() async throws {
        let app = try await PusherApp()
        let notes = Notes()
        try await app.control("auth", ["mode": "deny", "body": "not you"])
        let pusher = app.pusher(.endpoint(authEndpoint: app.authEndpoint))
        let channel = pusher.subscribe("private-a")
        pusher.onSubscriptionFailed { channel, failure in
            notes.add(
                "\(channel.name) \(failure.error.response?.status ?? 0) \(failure.body ?? "")")
        }
        let event = "pusher:subscription_error"
        channel.bind(eventName: event) { (_: PusherEvent) in notes.add("channel") }
        pusher.bind(eventCallback: { event in
            notes.add("\(event.eventName) \(event.channelName ?? "")")
        })
        pusher.connect()
        #expect(
            Set(await notes.wait(count: 3))
                == ["private-a 403 not you", "channel", "\(event) private-a"])
        #expect(pusher.subscribe("private-a") === channel)
        try await channel.subscribed()
    }

    @Test func aBuilderMayReturnNothing() async throws {
        let app = try await PusherApp()
        let pusher = app.pusher(
            .authRequestBuilder(authRequestBuilder: Builder(url: app.authEndpoint))
        ) { $0.authParamsProvider = { [("tenant", "a b")] } }
        let (none, some) = (pusher.subscribe("private-none"), pusher.subscribe("private-some"))
        try await pusher.connected()
        let error = await #expect(throws: RealtimeError.self) { try await none.subscribed() }
        #expect(error?.code == .auth)
        try await some.subscribed()
        let request = try await app.wait(["what": "auth"])
        #expect(request["headers"]?["X-Token"]?.stringValue == "t")
        #expect(request["form"]?["tenant"]?.stringValue == "a b")
        #expect(request["channels"]?[0]?.stringValue == "private-some")
    }

    /// The failure says what is wrong with the request.
    @Test func aRequestThatCannotBeBuiltKeepsItsError() async throws {
        let app = try await PusherApp()
        let pusher = app.pusher(.endpoint(authEndpoint: app.authEndpoint)) {
            $0.authHeadersProvider = { [("X-Token", "two\r\nlines")] }
        }
        let channel = pusher.subscribe("private-a")
        try await pusher.connected()
        let error = await #expect(throws: RealtimeError.self) { try await channel.subscribed() }
        #expect(error?.code == .invalidHeader && error?.message.contains("X-Token") == true)
    }

    @Test func anErrorOfTheAuthorizerIsReported() async throws {
        struct NoUser: Error {}
        let app = try await PusherApp()
        let pusher = app.pusher(.authorizer { _, _ in throw NoUser() })
        let channel = pusher.subscribe("private-a")
        try await pusher.connected()
        let error = await #expect(throws: RealtimeError.self) { try await channel.subscribed() }
        #expect(error?.code == .auth && error?.message.contains("NoUser") == true)
    }

    /// The answer for an earlier socket id is not used.
    @Test func aLateAnswerIsDiscarded() async throws {
        let app = try await PusherApp()
        let relay = try Relay(app)
        let (sockets, continuation) = AsyncStream.makeStream(of: String.self)
        let held = Mutex<[@Sendable () -> Void]>([])
        let pusher = app.pusher(
            .authorizer { socketID, channelName in
                continuation.yield(socketID)
                await withCheckedContinuation { answer in
                    held.withLock { $0.append { answer.resume() } }
                }
                return try await relay.auth(socketID, channelName)
            })
        let channel = pusher.subscribe("private-a")
        try await pusher.connected()
        var iterator = sockets.makeAsyncIterator()
        let first = await iterator.next()
        try await app.control("close", ["code": 4200])
        let second = await iterator.next()
        #expect(first != second)
        while held.withLock({ $0.count }) < 2 { await Task.yield() }
        for answer in held.withLock({ $0 }) { answer() }
        try await channel.subscribed()
        let message = try await app.received("pusher:subscribe")
        #expect(message["socket_id"]?.stringValue == second)
        #expect(try await app.count(["what": "in", "event": "pusher:subscribe"]) == 1)
    }

    @Test func anAuthValueIsUsedOnce() async throws {
        let app = try await PusherApp()
        let relay = try Relay(app)
        let pusher = app.pusher()
        try await pusher.connected()
        let socketID = pusher.connection.socketId ?? ""
        for name in kinds {
            let auth = try await relay.auth(socketID, name)
            try await pusher.subscribe(name, auth: auth).subscribed()
        }
        let presence = pusher.connection.channels.findPresence(name: "presence-a")
        #expect(presence?.myId == socketID)
        let before = try await app.count(["what": "in", "event": "pusher:subscribe"])
        #expect(before == 3)
        // After a reconnect it is void.
        let notes = Notes()
        pusher.onSubscriptionFailed { channel, _ in notes.add(channel.name) }
        try await app.control("close", ["code": 4200])
        #expect(Set(await notes.wait(count: 3)) == Set(kinds))
    }

    @Test func manyChannelsShareARequest() async throws {
        let app = try await PusherApp()
        let pusher = app.pusher(.endpoint(authEndpoint: app.authEndpoint)) {
            $0.authBatchSize = 50
        }
        let channels = (0..<100).map { pusher.subscribe("private-\($0)") }
        try await pusher.connected()
        for channel in channels { try await channel.subscribed() }
        #expect(try await app.count(["what": "auth"]) == 2)
        try await app.control("close", ["code": 4200])
        try await app.received("pusher:subscribe", count: 200)
        #expect(try await app.count(["what": "auth"]) == 4)
    }

    @Test func secretsAreNotPrinted() {
        let auth = PusherAuth(auth: "key:s1gn", channelData: "{}", sharedSecret: "5hared")
        for text in ["\(auth)", "\(PusherUserAuth(auth: "key:s1gn", userData: "{}"))"] {
            #expect(!text.contains("s1gn") && !text.contains("5hared"))
        }
    }
}
