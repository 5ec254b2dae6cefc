import Dispatch
import Foundation
import RealtimeFoundation
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

// Classes as programs for PusherSwift have them: with state, and without a word about Sendable or
// actors. That this file compiles is half of the test.

class AuthRequestBuilder: AuthRequestBuilderProtocol {
    let url: String
    var requests = 0

    init(url: String) { self.url = url }

    func requestFor(socketID: String, channelName: String) -> URLRequest? {
        MainActor.assertIsolated()
        requests += 1
        guard let url = URL(string: url) else { return nil }
        var request = URLRequest(url: url)
        request.httpMethod = "POST"
        request.httpBody = "socket_id=\(socketID)&channel_name=\(channelName)".data(using: .utf8)
        request.addValue("number \(requests)", forHTTPHeaderField: "X-Token")
        return request
    }
}

class SomeAuthorizer: Authorizer {
    var asked: [String] = []

    func fetchAuthValue(
        socketID: String, channelName: String,
        completionHandler: @escaping @Sendable (PusherAuth?) -> Void
    ) {
        MainActor.assertIsolated()
        asked.append(channelName)
        DispatchQueue.global().async { completionHandler(PusherAuth(auth: "key:signature")) }
    }
}

@MainActor class BoundAuthorizer: Authorizer {
    var asked: [String] = []

    func fetchAuthValue(
        socketID: String, channelName: String, completionHandler: @escaping (PusherAuth?) -> Void
    ) {
        asked.append(channelName)
        completionHandler(nil)
    }
}

@MainActor class BoundBuilder: AuthRequestBuilderProtocol {
    var asked: [String] = []

    func requestFor(socketID: String, channelName: String) -> URLRequest? {
        asked.append(channelName)
        return nil
    }
}

class DummyDelegate: PusherDelegate {
    var failed: [String] = []
    let notes = Notes()

    func failedToSubscribeToChannel(
        name: String, response: URLResponse?, data: String?, error: NSError?
    ) {
        failed.append(name)
        notes.add(name)
    }
}

/// Code that belongs to no actor.
struct Program {
    let app: PusherApp

    func authorized() -> Pusher {
        let options = app.options(
            AuthMethod.authRequestBuilder(
                authRequestBuilder: AuthRequestBuilder(url: app.authEndpoint)))
        return Pusher(key: app.key, options: options)
    }

    func authorizedLater() -> Pusher {
        let builder = AuthRequestBuilder(url: app.authEndpoint)
        builder.requests = 5
        return app.pusher(.authRequestBuilder(authRequestBuilder: builder))
    }

    func refused() -> (Pusher, DummyDelegate) {
        let authorizer = SomeAuthorizer()
        let pusher = app.pusher(.authorizer(authorizer: authorizer))
        let delegate = DummyDelegate()
        pusher.delegate = delegate
        return (pusher, delegate)
    }

    func observed(_ notes: Notes) -> Pusher {
        let pusher = app.pusher(.inline(secret: app.secret))
        let onMemberAdded: (PusherPresenceChannelMember) -> Void = { member in
            notes.add("+\(member.userId)")
        }
        let onMemberRemoved = { (member: PusherPresenceChannelMember) in
            notes.add("-\(member.userId)")
        }
        pusher.subscribeToPresenceChannel(
            channelName: "presence-a", onMemberAdded: onMemberAdded,
            onMemberRemoved: onMemberRemoved)
        return pusher
    }
}

/// A user interface.
@MainActor class ViewController {
    let app: PusherApp
    let authorizer = SomeAuthorizer()
    let bound = BoundAuthorizer()
    let onMemberAdded: (PusherPresenceChannelMember) -> Void
    let notes: Notes
    var name = "ann"
    var count = 0

    init(_ app: PusherApp) {
        self.app = app
        let notes = Notes()
        self.notes = notes
        onMemberAdded = { member in notes.add("+\(member.userId)") }
    }

    func plain() -> Pusher { app.pusher(.authorizer(authorizer: self.authorizer)) }

    func isolated() -> Pusher { app.pusher(.authorizer(authorizer: bound)) }

    func observed() -> Pusher {
        let pusher = app.pusher(.inline(secret: app.secret))
        pusher.connection.userDataFetcher = { () -> PusherPresenceChannelMember in
            PusherPresenceChannelMember(userId: self.name, userInfo: nil)
        }
        let onMemberChange = { (member: PusherPresenceChannelMember) in
            self.count += 1
            self.notes.add("changed \(member.userId)")
        }
        pusher.subscribeToPresenceChannel(
            channelName: "presence-a", onMemberAdded: onMemberChange,
            onMemberRemoved: onMemberChange)
        pusher.subscribe(
            "presence-a", onMemberAdded: self.onMemberAdded, onMemberRemoved: { self.left($0) })
        return pusher
    }

    private func left(_ member: PusherPresenceChannelMember) { notes.add("-\(member.userId)") }
}

@Suite(.timeLimit(.minutes(5))) struct PusherSwift6Tests {
    @Test func aPlainBuilderWorksFromAnyCode() async throws {
        let app = try await PusherApp()
        let program = Program(app: app)
        for (pusher, number) in [(program.authorized(), 1), (program.authorizedLater(), 6)] {
            let channel = pusher.subscribe("private-a")
            try await pusher.connected()
            try await channel.subscribed()
            let requests = try await app.control("log", ["what": "auth"]).arrayValue
            #expect(requests?.last?["headers"]?["X-Token"]?.stringValue == "number \(number)")
            pusher.close()
        }
    }

    @Test func aPlainAuthorizerAnswersLater() async throws {
        let app = try await PusherApp()
        let (pusher, delegate) = Program(app: app).refused()
        pusher.subscribe("private-a")
        pusher.connect()
        // The server refuses what it has signed.
        await delegate.notes.wait(for: "private-a")
        #expect(await delegate.failed == ["private-a"])
        let message = try await app.received("pusher:subscribe")
        #expect(message["data"]?["auth"]?.stringValue == "key:signature")
    }

    @Test @MainActor func objectsOfTheMainActorAreCalledThere() async throws {
        let app = try await PusherApp()
        let screen = ViewController(app)
        let builder = BoundBuilder()
        let pushers = [
            screen.plain(), screen.isolated(),
            app.pusher(.authRequestBuilder(authRequestBuilder: builder)),
        ]
        for pusher in pushers {
            let channel = pusher.subscribe("private-a")
            try await pusher.connected()
            await #expect(throws: RealtimeError.self) { try await channel.subscribed() }
            pusher.close()
        }
        #expect(screen.authorizer.asked == ["private-a"])
        #expect(screen.bound.asked == ["private-a"] && builder.asked == ["private-a"])
    }

    /// Also when all other handlers run elsewhere.
    @Test @MainActor func theExecutorDoesNotMoveObjects() async throws {
        let app = try await PusherApp()
        let builder = AuthRequestBuilder(url: app.authEndpoint)
        let pusher = app.pusher(.authRequestBuilder(authRequestBuilder: builder)) {
            $0.executor = .loop
        }
        let channel = pusher.subscribe("private-a")
        try await pusher.connected()
        try await channel.subscribed()
        #expect(builder.requests == 1)
    }

    @Test @MainActor func storedClosuresReceiveMembers() async throws {
        let app = try await PusherApp()
        let screen = ViewController(app)
        let pusher = screen.observed()
        try await pusher.connected()
        try await pusher.subscribe("presence-a").subscribed()
        let other = app.pusher(.inline(secret: app.secret))
        other.connection.userDataFetcher = { PusherPresenceChannelMember(userId: "bo") }
        let same = other.subscribe("presence-a")
        try await other.connected()
        try await same.subscribed()
        other.close()
        #expect(await screen.notes.wait(count: 4) == ["changed bo", "+bo", "changed bo", "-bo"])
        #expect(screen.count == 2)
        #expect(pusher.connection.channels.findPresence(name: "presence-a")?.myId == "ann")
    }

    @Test func storedClosuresNeedNoActor() async throws {
        let app = try await PusherApp()
        let notes = Notes()
        let pusher = Program(app: app).observed(notes)
        try await pusher.connected()
        try await pusher.subscribe("presence-a").subscribed()
        let other = app.pusher(.inline(secret: app.secret))
        other.connection.userDataFetcher = { PusherPresenceChannelMember(userId: "bo") }
        let same = other.subscribe("presence-a")
        try await other.connected()
        try await same.subscribed()
        other.close()
        #expect(await notes.wait(count: 2) == ["+bo", "-bo"])
    }

    /// A provider may read the state of an actor, and its error fails the subscription.
    @Test @MainActor func providersMayWait() async throws {
        struct NoToken: Error {}
        let app = try await PusherApp()
        let screen = ViewController(app)
        let pusher = app.pusher(.endpoint(authEndpoint: app.authEndpoint)) {
            $0.authHeadersProvider = { [("X-Token", await screen.name)] }
        }
        let channel = pusher.subscribe("private-a")
        try await pusher.connected()
        try await channel.subscribed()
        let request = try await app.wait(["what": "auth"])
        #expect(request["headers"]?["X-Token"]?.stringValue == "ann")
        let failing = app.pusher(.endpoint(authEndpoint: app.authEndpoint)) {
            $0.authParamsProvider = { throw NoToken() }
        }
        let other = failing.subscribe("private-a")
        try await failing.connected()
        let error = await #expect(throws: RealtimeError.self) { try await other.subscribed() }
        #expect(error?.code == .auth && error?.message.contains("NoToken") == true)
    }

    /// The program's objects are released with the connection, and not called any more.
    @Test @MainActor func aClosedConnectionReleasesItsObjects() async throws {
        weak var released: AuthRequestBuilder?
        do {
            let builder = AuthRequestBuilder(url: "http://127.0.0.1:1/")
            released = builder
            let pusher = Pusher(
                key: "KEY",
                options: PusherClientOptions(
                    authMethod: .authRequestBuilder(authRequestBuilder: builder)))
            pusher.close()
        }
        while released != nil { await Task.yield() }
    }
}
