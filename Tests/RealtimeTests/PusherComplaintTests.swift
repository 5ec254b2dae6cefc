import Realtime
import Synchronization
import Testing

/// What users of other clients complained about, as far as it concerns this interface. Others are
/// tested beside what they are about: close codes, late and failed authorizations, tokens that
/// change, batches, channels that failed, duplicate subscriptions and members.
@Suite(.timeLimit(.minutes(5))) struct PusherComplaintTests {
    /// An attempt without a server hung, and no error came.
    @Test func anAttemptThatFailsIsReported() async throws {
        let notes = Notes()
        var options = PusherClientOptions(
            autoReconnect: false, host: .host("127.0.0.1"), port: 1, useTLS: false)
        options.executor = .loop
        let pusher = Pusher(key: "KEY", options: options)
        pusher.onStateChange { notes.add("\($0.new) \($0.error.map { "\($0.code)" } ?? "none")") }
        let error = await #expect(throws: RealtimeError.self) { try await pusher.connected() }
        #expect(error?.code == .connect)
        #expect(notes.all == ["connecting none", "disconnected connect"])
    }

    @Test func attemptsCanBeLimitedWhileItRuns() async throws {
        let pusher = Pusher(
            key: "KEY",
            options: PusherClientOptions(host: .host("127.0.0.1"), port: 1, useTLS: false))
        pusher.connect()
        pusher.connection.reconnectAttemptsMax = 1
        pusher.connection.maxReconnectGapInSeconds = 0.01
        await #expect(throws: RealtimeError.self) { try await pusher.connected() }
        #expect(pusher.connection.connectionState == .disconnected)
    }

    /// Servers whose answers differ from Pusher's: success without data was not reported.
    @Test(arguments: ["pusher", "soketi", "reverb", "sockudo", "pusher-fake"])
    func everyServerWorks(dialect: String) async throws {
        let app = try await PusherApp(["dialect": .string(dialect)])
        let notes = Notes()
        let pusher = app.pusher(.inline(secret: app.secret)) {
            $0.encryptionMasterKey = app.masterKey
        }
        pusher.onSubscribed { notes.add($0.name) }
        let names = ["public", "private-a", "presence-a", "private-encrypted-a", "cache-a"]
        let channels = names.map { pusher.subscribe($0) }
        for channel in channels {
            channel.bind(eventName: "e") { (event: PusherEvent) in
                notes.add("\(event.channelName ?? "") \(event.data ?? "")")
            }
        }
        try await pusher.connected()
        for channel in channels { try await channel.subscribed() }
        for name in names {
            try await app.publish(name, "e", "x")
            await notes.wait(for: "\(name) x")
        }
        #expect(notes.all.count == 10)
        pusher.disconnect()
        try await app.control("wait_connections", ["count": 0])
    }

    /// Two calls made two sockets, and one inside the callback did not work.
    @Test func connectMayBeCalledAtAnyTime() async throws {
        let app = try await PusherApp()
        let notes = Notes()
        let pusher = app.pusher { $0.executor = .loop }
        pusher.onStateChange { [weak pusher] change in
            notes.add("\(change.new)")
            if change.new == .disconnected || change.new == .connecting { pusher?.connect() }
        }
        pusher.connect()
        pusher.connect()
        await notes.wait(for: "connected")
        pusher.disconnect()
        await notes.wait { $0.filter { $0 == "connected" }.count == 2 }
        #expect(try await app.count(["what": "open"]) == 2)
    }

    /// Use on several threads crashed.
    @Test func everythingMayBeCalledOnAnyThread() async throws {
        let app = try await PusherApp()
        let pusher = app.pusher(.inline(secret: app.secret))
        try await pusher.connected()
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<8 {
                group.addTask {
                    for round in 0..<50 {
                        let name = "presence-\((number + round) % 3)"
                        let channel = pusher.subscribe(name, onMemberAdded: { _ in })
                        let id = channel.bind(eventName: "e") { (_: PusherEvent) in }
                        let all = pusher.bind { (_: PusherEvent) in }
                        channel.trigger(eventName: "client-e", data: round)
                        _ = (channel as? PusherPresenceChannel)?.members
                        channel.unbind(eventName: "e", callbackId: id)
                        pusher.unbind(callbackId: all)
                        if round % 4 == number % 4 { pusher.unsubscribe(name) }
                        if round % 16 == 15 { channel.unbindAll() }
                        pusher.connection.delegate = nil
                    }
                }
            }
        }
        try await pusher.subscribe("last").subscribed()
        #expect(pusher.connection.connectionState == .connected)
    }

    /// The end of the program's object inside a handler.
    @Test func aHandlerMayReleaseTheConnection() async throws {
        let app = try await PusherApp()
        let holder = Mutex<Pusher?>(app.pusher { $0.executor = .loop })
        holder.withLock { pusher in
            pusher?.subscribe("a").bind { (_: PusherEvent) in
                let released = holder.withLock { pusher in
                    defer { pusher = nil }
                    return pusher
                }
                released?.disconnect()
            }
            pusher?.connect()
        }
        try await app.received("pusher:subscribe")
        try await app.control("wait_connections", ["count": 0])
    }
}
