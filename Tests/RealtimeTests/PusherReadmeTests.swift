import Foundation
import RealtimeFoundation
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A program in the style of PusherSwift's documentation: it uses each of its functions, on the
/// main actor and without a word about that.
@MainActor private final class Screen: PusherDelegate {
    let pusher: Pusher
    private(set) var lines: [String] = []
    private(set) var debugLines: [String] = []
    private let (changes, continuation) = AsyncStream.makeStream(of: Void.self)

    init(_ pusher: Pusher) {
        self.pusher = pusher
        pusher.delegate = self
    }

    func add(_ line: String) {
        lines.append(line)
        continuation.yield()
    }

    func wait(for line: String) async {
        if lines.contains(line) { return }
        for await _ in changes where lines.contains(line) { return }
    }

    // MARK: PusherDelegate

    func changedConnectionState(from old: ConnectionState, to new: ConnectionState) {
        add("\(old.stringValue()) to \(new.stringValue())")
    }

    func subscribedToChannel(name: String) { add("subscribed to \(name)") }

    func failedToSubscribeToChannel(
        name: String, response: URLResponse?, data: String?, error: NSError?
    ) {
        let status = (response as? HTTPURLResponse)?.statusCode
        add("not subscribed to \(name): \(status ?? 0) \(data ?? "")")
    }

    func debugLog(message: String) { debugLines.append(message) }

    func receivedError(error: PusherError) { add("error \(error.code ?? 0)") }

    func failedToDecryptEvent(eventName: String, channelName: String, data: String?) {
        add("not decrypted: \(eventName) of \(channelName), \(data ?? "")")
    }

    func registeredForPushNotifications(clientId: String) {
        add(clientId.isEmpty ? "registered without an id" : "registered")
    }

    func failedToRegisterForPushNotifications(response: URLResponse, responseBody: String?) {
        let status = (response as? HTTPURLResponse)?.statusCode
        add("not registered: \(status ?? 0) \(responseBody ?? "")")
    }

    func subscribedToInterest(name: String) { add("interested in \(name)") }

    func subscribedToInterests(interests: [String]) {
        add("interested in \(interests.joined(separator: " and "))")
    }

    func unsubscribedFromInterest(name: String) { add("no longer interested in \(name)") }
}

/// The form of PusherSwift 6 and later.
private final class RequestBuilder: AuthRequestBuilderProtocol {
    private let url: String

    init(_ url: String) { self.url = url }

    func requestFor(socketID: String, channelName: String) -> URLRequest? {
        guard let url = URL(string: url) else { return nil }
        var request = URLRequest(url: url)
        request.httpMethod = "POST"
        request.httpBody = "socket_id=\(socketID)&channel_name=\(channelName)&user_id=builder"
            .data(using: .utf8)
        request.addValue("myToken", forHTTPHeaderField: "Authorization")
        return request
    }
}

/// Asks a server of its own, on a thread of its own.
private final class AppAuthorizer: Authorizer {
    private let auth: @Sendable (String, String) -> PusherAuth?

    init(_ auth: @escaping @Sendable (_ socketID: String, _ channelName: String) -> PusherAuth?) {
        self.auth = auth
    }

    func fetchAuthValue(
        socketID: String, channelName: String,
        completionHandler: @escaping @Sendable (PusherAuth?) -> Void
    ) {
        let auth = auth
        Thread.detachNewThread { completionHandler(auth(socketID, channelName)) }
    }
}

@Suite(.timeLimit(.minutes(5))) @MainActor struct PusherReadmeTests {
    @Test func aChannelIsBoundAndUnbound() async throws {
        let app = try await PusherApp()
        let screen = Screen(app.pusher())
        let pusher = screen.pusher
        let channel = pusher.subscribe("my-channel")
        channel.bind(
            eventName: "new-price",
            callback: { (data: Any?) -> Void in
                if let data = data as? [String: AnyObject] {
                    if let price = data["price"] as? String,
                        let company = data["company"] as? String
                    {
                        screen.add("\(company) is now priced at \(price)")
                    }
                }
            })
        let id = channel.bind(eventName: "new-price") { (event: PusherEvent) in
            screen.add("\(event.channelName ?? "") \(event.eventName) \(event.data ?? "")")
        }
        pusher.connect()
        await screen.wait(for: "subscribed to my-channel")
        try await app.publish("my-channel", "new-price", ["price": "7.10", "company": "Acme"])
        await screen.wait(for: #"my-channel new-price {"price":"7.10","company":"Acme"}"#)
        #expect(screen.lines.contains("Acme is now priced at 7.10"))
        channel.unbind(eventName: "new-price", callbackId: id)
        let before = screen.lines.count
        try await app.publish("my-channel", "new-price", ["price": "8.20", "company": "Acme"])
        await screen.wait(for: "Acme is now priced at 8.20")
        #expect(screen.lines.count == before + 1)
        channel.unbindAll(forEventName: "new-price")
        channel.unbindAll()
        pusher.unsubscribe("my-channel")
        pusher.disconnect()
        await screen.wait(for: "disconnecting to disconnected")
    }

    @Test func allEventsAreBoundAndUnbound() async throws {
        let app = try await PusherApp()
        let screen = Screen(app.pusher())
        let pusher = screen.pusher
        pusher.subscribe("my-channel")
        let id = pusher.bind(callback: { (data: Any?) -> Void in
            if let data = data as? [String: AnyObject], let event = data["event"] as? String {
                screen.add("\(event): \(data["data"] as? String ?? "")")
            }
        })
        pusher.bind({ (message: Any?) in
            if let message = message as? [String: AnyObject],
                let eventName = message["event"] as? String, eventName == "pusher:error"
            {
                if let data = message["data"] as? [String: AnyObject],
                    let errorMessage = data["message"] as? String
                {
                    screen.add("Error message: \(errorMessage)")
                }
            }
        })
        pusher.bind(eventCallback: { (event: PusherEvent) in
            screen.add("event \(event.eventName) of \(event.channelName ?? "none")")
        })
        pusher.connect()
        await screen.wait(for: "subscribed to my-channel")
        try await app.publish("my-channel", "comment", "hello")
        await screen.wait(for: "event comment of my-channel")
        #expect(screen.lines.contains("comment: hello"))
        try await app.control(
            "send", ["text": #"{"event":"pusher:error","data":{"code":null,"message":"bad"}}"#])
        await screen.wait(for: "event pusher:error of none")
        #expect(screen.lines.contains("Error message: bad"))
        await screen.wait(for: "error 0")
        pusher.unbind(callbackId: id)
        pusher.unbindAll()
        let count = screen.lines.count
        try await app.publish("my-channel", "comment", "unheard")
        #expect(try await pusher.subscribe("second").subscribed() == ())
        #expect(screen.lines.count <= count + 1)
    }

    @Test func presenceChannelsKnowTheirMembers() async throws {
        let app = try await PusherApp()
        let screen = Screen(app.pusher(.inline(secret: app.secret)))
        let pusher = screen.pusher
        pusher.connection.userDataFetcher = { () -> PusherPresenceChannelMember in
            PusherPresenceChannelMember(userId: "123", userInfo: ["twitter": "someone"])
        }
        let onMemberChange = { (member: PusherPresenceChannelMember) in
            screen.add("member \(member.userId)")
        }
        let channel = pusher.subscribeToPresenceChannel(
            channelName: "presence-channel", onMemberAdded: onMemberChange,
            onMemberRemoved: onMemberChange)
        #expect(channel.members.isEmpty && channel.myId == nil && channel.me() == nil)
        channel.bind(
            eventName: "pusher:subscription_succeeded",
            callback: { (data: Any?) -> Void in
                screen.add("I am \(channel.myId ?? ""), with \(channel.members.count) members")
            })
        pusher.connect()
        await screen.wait(for: "subscribed to presence-channel")
        #expect(screen.lines.contains("I am 123, with 1 members"))
        #expect((channel.me()?.userInfo as? [String: Any])?["twitter"] as? String == "someone")
        #expect(channel.findMember(userId: "123")?.info == ["twitter": "someone"])
        #expect(pusher.connection.channels.findPresence(name: "presence-channel") === channel)
        #expect(pusher.connection.channels.find(name: "presence-channel") === channel)

        let other = app.pusher(.endpoint(authEndpoint: app.authEndpoint))
        try await app.control("user", ["user_id": "456"])
        let same = other.subscribe("presence-channel") as? PusherPresenceChannel
        other.connect()
        await screen.wait(for: "member 456")
        #expect(channel.members.map(\.userId).sorted() == ["123", "456"])
        try await same?.subscribed()
        same?.trigger(eventName: "client-hello", data: ["a": 1])
        let event = try await app.received("client-hello")
        #expect(event["data"]?.stringValue != nil || event["data"]?.objectValue != nil)
        other.disconnect()
        await screen.wait { $0.filter { $0 == "member 456" }.count == 2 }
    }

    @Test func requestsAreBuiltByTheProgram() async throws {
        let app = try await PusherApp()
        let builder = RequestBuilder(app.authEndpoint)
        let options = app.options(AuthMethod.authRequestBuilder(authRequestBuilder: builder))
        let screen = Screen(Pusher(key: app.key, options: options))
        screen.pusher.subscribe("private-my-channel")
        screen.pusher.connect()
        await screen.wait(for: "subscribed to private-my-channel")
        let request = try await app.wait(["what": "auth"])
        #expect(request["headers"]?["Authorization"]?.stringValue == "myToken")
        #expect(request["form"]?["user_id"]?.stringValue == "builder")
    }

    @Test func anAuthorizerAnswersOnAnyThread() async throws {
        let app = try await PusherApp()
        let answers = Notes()
        let authorizer = AppAuthorizer { socketID, channelName in
            answers.add("\(channelName)")
            return nil
        }
        let screen = Screen(app.pusher(.authorizer(authorizer: authorizer)))
        screen.pusher.subscribe("private-my-channel")
        screen.pusher.connect()
        await screen.wait(for: "not subscribed to private-my-channel: 0 ")
        #expect(answers.all == ["private-my-channel"])
    }

    @Test func privateChannelsNeedAMethod() async throws {
        let app = try await PusherApp()
        let screen = Screen(app.pusher(.noMethod))
        screen.pusher.subscribe("private-my-channel")
        screen.pusher.connect()
        await screen.wait(for: "not subscribed to private-my-channel: 0 ")
        #expect(try await app.count(["what": "in", "event": "pusher:subscribe"]) == 0)
    }

    @Test func theServerIsChosen() {
        func url(_ options: PusherClientOptions) -> String {
            Pusher(key: "APP_KEY", options: options).connection.url
        }
        let cluster = PusherClientOptions(
            authMethod: .endpoint(authEndpoint: "http://localhost:9292/pusher/auth"),
            autoReconnect: false, host: .cluster("eu"), encrypted: true, activityTimeout: 60)
        #expect(url(cluster).hasPrefix("wss://ws-eu.pusher.com:443/app/APP_KEY?"))
        let own = PusherClientOptions(host: .host("pusher.example"), port: 6001, useTLS: false)
        #expect(url(own).hasPrefix("ws://pusher.example:6001/app/APP_KEY?"))
    }

    @Test func dataMayStayText() async throws {
        let app = try await PusherApp()
        let options = PusherClientOptions(
            attemptToReturnJSONObject: false, host: .host("127.0.0.1"), port: PusherApp.port,
            encrypted: false)
        let screen = Screen(Pusher(key: app.key, options: options))
        let channel = screen.pusher.subscribe("my-channel")
        channel.bind(
            eventName: "new-price",
            callback: { (data: Any?) -> Void in screen.add(data as? String ?? "not a text") })
        screen.pusher.connect()
        await screen.wait(for: "subscribed to my-channel")
        try await app.publish("my-channel", "new-price", ["price": 7])
        await screen.wait(for: #"{"price":7}"#)
    }

    @Test func theDelegateLearnsOfEventsThatCannotBeDecrypted() async throws {
        let app = try await PusherApp()
        let screen = Screen(app.pusher(.endpoint(authEndpoint: app.authEndpoint)))
        let name = "private-encrypted-my-channel"
        screen.pusher.subscribe(name)
        screen.pusher.connect()
        await screen.wait(for: "subscribed to \(name)")
        try await app.control(
            "publish",
            ["channel": .string(name), "event": "open", "data": "text", "encrypt": false])
        await screen.wait(for: "not decrypted: open of \(name), text")
        #expect(screen.debugLines.contains { $0.contains(name) })
        #expect(screen.debugLines.allSatisfy { $0.hasPrefix("[PUSHER DEBUG]") })
    }

    @Test func devicesHaveInterests() async throws {
        let app = try await PusherApp()
        let screen = Screen(
            app.pusher { $0.pushURL = "http://127.0.0.1:\(PusherApp.port)/push" })
        let nativePusher = screen.pusher.nativePusher
        nativePusher.subscribe(interestName: "donuts")
        nativePusher.setSubscriptions(interests: ["donuts", "pizza"])
        nativePusher.unsubscribe(interestName: "donuts")
        try await app.control("push", ["status": 422, "body": "bad token"])
        nativePusher.register(deviceToken: Data([1]))
        await screen.wait(for: "not registered: 422 bad token")
        nativePusher.register(deviceToken: Data([2]))
        await screen.wait(for: "no longer interested in donuts")
        #expect(
            screen.lines == [
                "not registered: 422 bad token", "registered", "interested in donuts",
                "interested in donuts and pizza", "no longer interested in donuts",
            ])
    }

    @Test func foundationHasFormsOfItsOwn() async throws {
        struct Price: Decodable {
            var price: Double
        }
        let app = try await PusherApp()
        let pusher = app.pusher { $0.pushURL = "http://127.0.0.1:\(PusherApp.port)/push" }
        let push = pusher.nativePusher
        let ids = Notes()
        push.onRegistration { result in
            if case .success(let id) = result { ids.add(id) }
        }
        push.register(deviceToken: Data([0x0A, 0xFF]))
        #expect(await ids.wait(count: 1) != [""])
        let channel = pusher.subscribe("my-channel")
        let events = channel.events("new-price")
        try await pusher.connected()
        try await channel.subscribed()
        try await app.publish("my-channel", "new-price", ["price": 7.5])
        try await app.publish("my-channel", "new-price", ["price": "high"])
        var iterator = events.makeAsyncIterator()
        let good = try #require(await iterator.next())
        #expect(try good.decoded(as: Price.self).price == 7.5)
        let bad = try #require(await iterator.next())
        let error = #expect(throws: RealtimeError.self) { try bad.decoded(as: Price.self) }
        #expect(error?.code == .protocolViolation && error?.message.contains("price") == true)
    }

    @Test func reconnectingIsConfigured() {
        let pusher = Pusher(key: "APP_KEY")
        let connection = pusher.connection
        #expect(connection.delegate == nil && connection.userDataFetcher == nil)
        #expect(connection.reconnectAttemptsMax == nil)
        #expect(connection.maxReconnectGapInSeconds == 120)
        connection.reconnectAttemptsMax = 6
        connection.maxReconnectGapInSeconds = nil
        #expect(connection.reconnectAttemptsMax == 6)
        #expect(connection.maxReconnectGapInSeconds == nil)
        #expect(connection.connectionState == .disconnected && connection.socketId == nil)
        #expect(connection.reconnectAttempts == 0)
    }

    @Test func statesHaveNumbersAndNames() {
        let states: [ConnectionState] = [
            .connecting, .connected, .disconnecting, .disconnected, .reconnecting,
        ]
        #expect(states == ConnectionState.allCases)
        #expect(states.map(\.rawValue) == [0, 1, 2, 3, 4])
        #expect(
            states.map { $0.stringValue() } == [
                "connecting", "connected", "disconnecting", "disconnected", "reconnecting",
            ])
    }
}

extension Screen {
    fileprivate func wait(until test: ([String]) -> Bool) async {
        if test(lines) { return }
        for await _ in changes where test(lines) { return }
    }
}
