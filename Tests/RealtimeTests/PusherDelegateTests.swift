import Realtime
import Testing

/// What PusherSwift's tests of the delegate check, and closures for the same.
@Suite(.timeLimit(.minutes(5))) @MainActor struct PusherDelegateTests {
    /// Implements everything.
    private final class Observer: PusherDelegate {
        let notes = Notes()
        let debugLines = Notes()

        func changedConnectionState(from old: ConnectionState, to new: ConnectionState) {
            MainActor.assertIsolated()
            notes.add("\(old) \(new)")
        }

        func subscribedToChannel(name: String) { notes.add("subscribed \(name)") }

        func failedToSubscribeToChannel(
            name: String, response: HTTPResponse?, data: String?, error: RealtimeError?
        ) {
            notes.add("failed \(name) \(response?.status ?? 0) \(data ?? "none")")
        }

        func debugLog(message: String) { debugLines.add(message) }

        func receivedError(error: PusherError) {
            notes.add("error \(error.code.map { "\($0)" } ?? "none") \(error.message)")
        }

        func failedToDecryptEvent(eventName: String, channelName: String, data: String?) {
            notes.add("undecryptable \(eventName) \(channelName) \(data ?? "none")")
        }
    }

    /// Implements nothing.
    private final class Silent: PusherDelegate {}

    @Test func statesAreReportedInOrder() async throws {
        let app = try await PusherApp()
        let (pusher, observer) = (app.pusher(), Observer())
        pusher.delegate = observer
        pusher.connect()
        await observer.notes.wait(for: "connecting connected")
        pusher.disconnect()
        #expect(
            await observer.notes.wait(count: 4) == [
                "disconnected connecting", "connecting connected", "connected disconnecting",
                "disconnecting disconnected",
            ])
    }

    @Test func aFatalCloseCodeEndsTheConnection() async throws {
        let app = try await PusherApp()
        let (pusher, observer) = (app.pusher(), Observer())
        pusher.delegate = observer
        let changes = Notes()
        pusher.onStateChange { changes.add("\($0.new) \($0.closeCode ?? 0) \($0.error != nil)") }
        try await pusher.connected()
        try await app.control("close", ["code": 4009, "reason": "no more"])
        await observer.notes.wait(for: "connected disconnected")
        #expect(observer.notes.all.contains { $0.hasPrefix("error 4009") })
        await changes.wait(for: "disconnected 4009 true")
        #expect(pusher.connection.connectionState == .disconnected)
    }

    /// PusherSwift passes through `disconnected` here; its documentation does not.
    @Test func otherCloseCodesReconnect() async throws {
        let app = try await PusherApp()
        let (pusher, observer) = (app.pusher(), Observer())
        pusher.delegate = observer
        try await pusher.connected()
        try await app.control("close", ["code": 4200])
        let all = await observer.notes.wait(count: 5)
        #expect(
            all.suffix(3) == [
                "connected reconnecting", "reconnecting connecting", "connecting connected",
            ])
    }

    @Test func subscriptionsAreReported() async throws {
        let app = try await PusherApp()
        let observer = Observer()
        try await app.control("auth", ["mode": "deny", "body": "not you"])
        let pusher = app.pusher(.endpoint(authEndpoint: app.authEndpoint))
        pusher.connection.delegate = observer
        try await pusher.connected()
        pusher.subscribe("private-a")
        await observer.notes.wait(for: "failed private-a 403 not you")
        pusher.subscribe("b")
        await observer.notes.wait(for: "subscribed b")
        pusher.subscribe("not a name")
        await observer.notes.wait(for: "failed not a name 0 none")
        let wrong = pusher.subscribeToPresenceChannel(channelName: "private-wrong")
        await observer.notes.wait(for: "failed private-wrong 0 none")
        #expect(wrong.members.isEmpty && !wrong.isRegistered)
    }

    @Test func errorsOfCallsAreReported() async throws {
        let app = try await PusherApp()
        let (pusher, observer) = (app.pusher(.inline(secret: app.secret)), Observer())
        pusher.delegate = observer
        let (open, closed) = (pusher.subscribe("public"), pusher.subscribe("private-a"))
        open.trigger(eventName: "client-a", data: nil)
        closed.trigger(eventName: "a", data: nil)
        closed.trigger(eventName: "client-a", data: observer)
        let all = await observer.notes.wait(count: 3)
        #expect(all.allSatisfy { $0.hasPrefix("error none") })
        #expect(throws: RealtimeError.self) { try open.trigger("client-a", 1) }
        #expect(throws: RealtimeError.self) { try closed.trigger("a", 1) }
        // Nothing was sent, and those that wait are sent in order, also with the same name.
        for number in 0..<5 { closed.trigger(eventName: "client-n", data: ["n": number]) }
        pusher.connect()
        try await app.received("client-n", count: 5)
        #expect(try await app.count(["what": "in", "event": "client-a"]) == 0)
    }

    @Test func linesAreLoggedOnlyIfSomebodyReadsThem() async throws {
        let app = try await PusherApp()
        let observer = Observer()
        let pusher = app.pusher(.inline(secret: app.secret))
        pusher.delegate = observer
        let channel = pusher.subscribe("private-a")
        try await pusher.connected()
        try await channel.subscribed()
        let notes = Notes()
        pusher.onDebugLog { notes.add($0) }
        try await app.publish("private-a", "news", "some data")
        await notes.wait { $0.contains { $0.contains("some data") } }
        await observer.debugLines.wait { $0.contains { $0.contains("some data") } }
        for line in observer.debugLines.all {
            #expect(line.hasPrefix("[PUSHER DEBUG]"), "\(line)")
            #expect(!line.contains(app.secret) && !line.contains("\(app.key):"), "\(line)")
        }
        // Without a function of its own the delegate is asked only once.
        let silent = Silent()
        pusher.delegate = silent
        pusher.onDebugLog(nil)
        try await app.publish("private-a", "news", "more")
        try await pusher.subscribe("last").subscribed()
    }

    @Test func undecryptableEventsAreReported() async throws {
        let app = try await PusherApp()
        let observer = Observer()
        let pusher = app.pusher(.endpoint(authEndpoint: app.authEndpoint))
        pusher.delegate = observer
        let notes = Notes()
        pusher.onDecryptionFailed { channel, event, _ in notes.add("\(channel.name) \(event)") }
        let channel = pusher.subscribe("private-encrypted-a")
        channel.bind(eventName: "secret") { (event: PusherEvent) in notes.add(event.data ?? "") }
        try await pusher.connected()
        try await channel.subscribed()
        try await app.publish("private-encrypted-a", "secret", ["amount": 12])
        await notes.wait(for: #"{"amount":12}"#)
        try await app.control(
            "publish",
            ["channel": "private-encrypted-a", "event": "open", "data": "x", "encrypt": false])
        await observer.notes.wait { $0.contains { $0.hasPrefix("undecryptable open") } }
        await notes.wait(for: "private-encrypted-a open")
        // The next one is not affected.
        try await app.publish("private-encrypted-a", "secret", 2)
        await notes.wait(for: "2")
    }

    /// The wrong key is replaced by a second request, once for each event that fails.
    @Test func aKeyIsAskedForAgain() async throws {
        let app = try await PusherApp()
        let pusher = app.pusher(.endpoint(authEndpoint: app.authEndpoint))
        let notes = Notes()
        try await app.control("auth", ["mode": "wrong_shared_secret"])
        let channel = pusher.subscribe("private-encrypted-a")
        channel.bind { (event: PusherEvent) in notes.add(event.data ?? "") }
        try await pusher.connected()
        try await channel.subscribed()
        try await app.publish("private-encrypted-a", "secret", "readable")
        await notes.wait { $0.contains { $0.contains("readable") } }
        #expect(try await app.count(["what": "auth"]) == 2)
    }

    @Test func handlersRunWhereTheExecutorSays() async throws {
        let app = try await PusherApp()
        let notes = Notes()
        let pusher = app.pusher { $0.executor = .loop }
        let channel = pusher.subscribe("a")
        add(notes, to: channel)
        // Isolated to the main actor, like this function.
        channel.bind(eventName: "e") { (_: PusherEvent) in
            MainActor.assertIsolated()
            notes.add("here")
        }
        try await pusher.connected()
        try await channel.subscribed()
        try await app.publish("a", "e")
        #expect(Set(await notes.wait(count: 2)) == ["loop", "here"])
    }

    private nonisolated func add(_ notes: Notes, to channel: PusherChannel) {
        let loop = channel.connection
        channel.bind(eventName: "e") { (_: PusherEvent) in
            withExtendedLifetime(loop) {}
            notes.add("loop")
        }
    }
}
