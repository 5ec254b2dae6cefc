import Dispatch
import Realtime
import Synchronization
import Testing

/// What PusherSwift's tests of the top-level functions check, and the async forms.
@Suite(.timeLimit(.minutes(5))) struct PusherTests {
    @Test func connectAndDisconnectReachTheServer() async throws {
        let app = try await PusherApp()
        let pusher = app.pusher()
        try await pusher.connected()
        #expect(pusher.connection.connectionState == .connected)
        let socketID = try #require(pusher.connection.socketId)
        try await app.wait(["what": "open", "socket_id": .string(socketID)])
        let channel = pusher.subscribe("channel")
        try await channel.subscribed()
        #expect(channel.isSubscribed)
        // A second call has no effect.
        pusher.connect()
        try await pusher.connected()
        #expect(pusher.connection.socketId == socketID)
        pusher.disconnect()
        try await app.wait(["what": "end", "socket_id": .string(socketID)])
        try await app.control("wait_connections", ["count": 0])
        // Channels and callbacks are kept for the next connection.
        try await pusher.connected()
        try await channel.subscribed()
        #expect(pusher.connection.socketId != socketID)
    }

    @Test func aDisconnectEndsTheSubscriptions() async throws {
        let app = try await PusherApp()
        let notes = Notes()
        let pusher = app.pusher(.inline(secret: app.secret))
        let channels = ["a", "private-a", "presence-a"].map { pusher.subscribe($0) }
        pusher.onStateChange { change in
            let count = channels.count { $0.isSubscribed }
            notes.add("\(change.new) with \(count)")
        }
        try await pusher.connected()
        for channel in channels { try await channel.subscribed() }
        pusher.disconnect()
        await notes.wait(for: "disconnected with 0")
        #expect(pusher.connection.connectionState == .disconnected)
    }

    @Test func aChannelKnowsItsNameAndKind() throws {
        let pusher = Pusher(key: "KEY")
        let names: [(String, PusherChannelType)] = [
            ("chat", .normal), ("private-chat", .private), ("presence-chat", .presence),
            ("private-encrypted-chat", .private), ("privateer-chat", .normal),
            ("private", .normal), ("presence", .normal),
        ]
        for (name, type) in names {
            let channel = pusher.subscribe(name)
            #expect(channel.name == name && channel.type == type && !channel.isSubscribed)
            #expect(channel.isEncrypted == name.contains("encrypted"))
            #expect((channel is PusherPresenceChannel) == (type == .presence))
            #expect(pusher.subscribe(name) === channel)
            #expect(pusher.connection.channels.find(name: name) === channel)
        }
        #expect(pusher.connection.channels.all.map(\.name) == names.map(\.0))
        #expect(pusher.connection.channels.findPresence(name: "chat") == nil)
        #expect(pusher.connection.channels.find(name: "unknown") == nil)
    }

    /// One message for each channel, whether it was subscribed before or after the connection was
    /// made, and however often.
    @Test func subscriptionsAreSentOnce() async throws {
        let app = try await PusherApp()
        let pusher = app.pusher(.inline(secret: app.secret))
        let early = pusher.subscribe("early")
        #expect(pusher.subscribe("early") === early)
        try await pusher.connected()
        let late = pusher.subscribe("private-late")
        let presence = pusher.subscribeToPresenceChannel(channelName: "presence-late")
        for channel in [early, late, presence] { try await channel.subscribed() }
        #expect(pusher.subscribe("private-late") === late)
        try await pusher.subscribe("last").subscribed()
        let count = try await app.count(["what": "in", "event": "pusher:subscribe"])
        #expect(count == 4)
    }

    @Test func unsubscribedChannelsAreRemoved() async throws {
        let app = try await PusherApp()
        let pusher = app.pusher()
        let notes = Notes()
        let (one, two, three) =
            (pusher.subscribe("one"), pusher.subscribe("two"), pusher.subscribe("three"))
        one.bind { (event: PusherEvent) in notes.add(event.eventName) }
        try await pusher.connected()
        for channel in [one, two, three] { try await channel.subscribed() }
        pusher.unsubscribe("one")
        #expect(pusher.connection.channels.find(name: "one") == nil)
        #expect(!one.isSubscribed && !one.isRegistered && two.isRegistered)
        let message = try await app.received("pusher:unsubscribe")
        #expect(
            message["channel"]?.stringValue ?? message["data"]?["channel"]?.stringValue == "one")
        pusher.unsubscribeAll()
        #expect(pusher.connection.channels.all.isEmpty && !three.isRegistered)
        try await app.received("pusher:unsubscribe", count: 3)
        // The old handle has no effect any more, and the new one is another.
        #expect(one.bind(eventName: "x") { (_: PusherEvent) in } == "")
        one.trigger(eventName: "client-x", data: nil)
        #expect(throws: RealtimeError.self) { try one.trigger("client-x", nil) }
        await #expect(throws: RealtimeError.self) { try await one.subscribed() }
        let again = pusher.subscribe("one")
        #expect(again !== one)
        try await again.subscribed()
    }

    /// Also such that never connected: they do not come back later.
    @Test func idleChannelsAreUnsubscribed() async throws {
        let app = try await PusherApp()
        let pusher = app.pusher()
        pusher.subscribe("never")
        pusher.subscribe("private-failed")
        pusher.unsubscribe("never")
        try await pusher.connected()
        await #expect(throws: RealtimeError.self) {
            try await pusher.subscribe("private-failed").subscribed()
        }
        pusher.unsubscribe("private-failed")
        try await pusher.subscribe("last").subscribed()
        #expect(try await app.count(["what": "in", "event": "pusher:subscribe"]) == 1)
        #expect(try await app.count(["what": "in", "event": "pusher:unsubscribe"]) == 0)
    }

    /// The server does not answer the first subscription, but the ping that follows.
    @Test func channelsAreSubscribedAgainWithoutAnAnswer() async throws {
        let app = try await PusherApp()
        try await app.control(
            "fault", ["point": "received", "event": "pusher:subscribe", "do": "ignore"])
        let pusher = app.pusher(.inline(secret: app.secret))
        let first = pusher.subscribe("private-a")
        try await pusher.connected()
        try await app.received("pusher:subscribe")
        pusher.unsubscribe("private-a")
        let second = pusher.subscribe("private-a")
        try await second.subscribed()
        #expect(second !== first && !first.isSubscribed)
        for (event, count) in [("pusher:subscribe", 2), ("pusher:ping", 1)] {
            #expect(try await app.count(["what": "in", "event": .string(event)]) == count)
        }
    }

    @Test func successReachesAllCallbacksInOrder() async throws {
        let app = try await PusherApp()
        let notes = Notes()
        let pusher = app.pusher()
        let channel = pusher.subscribe("channel")
        channel.bind(eventName: "pusher:subscription_succeeded") { (_: PusherEvent) in
            notes.add("channel")
        }
        channel.bind { (event: PusherEvent) in notes.add("all of \(event.channelName ?? "")") }
        pusher.bind(eventName: "pusher:subscription_succeeded") { _ in notes.add("global by name") }
        pusher.bind(eventCallback: { _ in notes.add("global") })
        pusher.onSubscribed { notes.add("subscribed \($0.name)") }
        pusher.connect()
        #expect(
            await notes.wait(count: 5) == [
                "global by name", "global", "channel", "all of channel", "subscribed channel",
            ])
    }

    @Test func unboundCallbacksAreNotCalled() async throws {
        let app = try await PusherApp()
        let notes = Notes()
        let pusher = app.pusher()
        let channel = pusher.subscribe("channel")
        let first = channel.bind(eventName: "a") { (_: PusherEvent) in notes.add("first") }
        channel.bind(eventName: "a") { (_: PusherEvent) in notes.add("second") }
        channel.bind(eventName: "b") { (_: PusherEvent) in notes.add("b") }
        let all = pusher.bind(eventCallback: { notes.add("all \($0.eventName)") })
        let named = pusher.bind(eventName: "b") { _ in notes.add("global b") }
        try await pusher.connected()
        try await channel.subscribed()
        // The call may have begun, on the main actor, when the wait for the subscription ends.
        await notes.wait(for: "all pusher:subscription_succeeded")
        channel.unbind(eventName: "a", callbackId: first)
        pusher.unbind(callbackId: all)
        // Unknown ids have no effect.
        channel.unbind(eventName: "a", callbackId: "nonsense")
        pusher.unbind(callbackId: "9999")
        let before = notes.all.count
        for event in ["a", "b"] { try await app.publish("channel", event) }
        await notes.wait(for: "b")
        #expect(Array(notes.all.dropFirst(before)) == ["second", "global b", "b"])
        pusher.unbind(callbackId: named)
        channel.unbindAll(forEventName: "a")
        channel.bind(eventName: "c") { (_: PusherEvent) in notes.add("c") }
        for event in ["a", "b", "c"] { try await app.publish("channel", event) }
        await notes.wait(for: "c")
        #expect(Array(notes.all.dropFirst(before + 3)) == ["b", "c"])
        channel.unbindAll()
        pusher.unbindAll()
        let last = pusher.subscribe("last")
        for event in ["a", "b", "c"] { try await app.publish("channel", event) }
        try await last.subscribed()
        #expect(notes.all.count == before + 5)
    }

    /// Signals each event, on a thread of its own.
    private actor Witness {
        func watch(_ channel: PusherChannel, _ seen: DispatchSemaphore) {
            channel.bind(eventName: "e") { (_: PusherEvent) in
                self.preconditionIsolated()
                seen.signal()
            }
        }
    }

    /// The main actor is busy while events arrive: it calls no handler that it unbinds meanwhile.
    @Test func callsThatWaitEndWithTheirBinding() async throws {
        let app = try await PusherApp()
        let (notes, seen) = (Notes(), DispatchSemaphore(value: 0))
        let others = Mutex<[String]>([])
        let pusher = app.pusher()
        let channel = pusher.subscribe("channel")
        channel.bind(eventName: "e") { (event: PusherEvent) in
            notes.add("first \(event.data ?? "")")
            guard event.data == "0" else { return }
            for _ in 0..<3 { seen.wait() }
            for id in others.withLock({ $0 }) { channel.unbind(eventName: "e", callbackId: id) }
        }
        let ids = (0..<2).map { number in
            channel.bind(eventName: "e") { (_: PusherEvent) in notes.add("other \(number)") }
        }
        others.withLock { $0 = ids }
        channel.bind(eventName: "last") { (_: PusherEvent) in notes.add("last") }
        await Witness().watch(channel, seen)
        try await pusher.connected()
        try await channel.subscribed()
        for number in 0..<3 { try await app.publish("channel", "e", .integer(Int64(number))) }
        try await app.publish("channel", "last")
        await notes.wait(for: "last")
        #expect(notes.all == ["first 0", "first 1", "first 2", "last"])
    }

    @Test func eventsAreIterated() async throws {
        let app = try await PusherApp()
        let pusher = app.pusher { $0.maxBufferedEvents = 2 }
        let counted = pusher.subscribe("channel")
        let numbers = counted.events("number")
        try await pusher.connected()
        try await counted.subscribed()
        for number: Int64 in 0..<10 {
            try await app.publish("channel", "number", .integer(number))
            try await app.publish("channel", "other")
        }
        var seen: [Int64] = []
        for await event in numbers {
            seen.append(event.json?.integerValue ?? -1)
            if seen.count == 10 { break }
        }
        #expect(seen == Array(0..<10))
        let everything = pusher.events()
        try await app.publish("channel", "last")
        for await event in everything where event.eventName == "last" { break }
        pusher.unsubscribe("channel")
        for await _ in numbers { Issue.record("an event of a channel that is unsubscribed") }
        // It could wait for ever.
        let waiting = Task { for await _ in pusher.events() {} }
        waiting.cancel()
        await waiting.value
    }

    /// Otherwise a function with only a loop over events would end at once.
    @Test func anIterationKeepsTheConnection() async throws {
        let app = try await PusherApp()
        func events() -> PusherEvents {
            let pusher = app.pusher()
            defer { pusher.connect() }
            return pusher.subscribe("channel").events("news")
        }
        let news = events()
        try await app.received("pusher:subscribe")
        try await app.publish("channel", "news", 1)
        for await event in news {
            #expect(event.json == 1)
            break
        }
    }

    @Test func waitingEndsWithTheReason() async throws {
        let app = try await PusherApp()
        let pusher = app.pusher()
        let idle = pusher.subscribe("idle")
        let cancelled = Task { try await idle.subscribed() }
        cancelled.cancel()
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        let unsubscribed = Task { try await idle.subscribed() }
        // Whether it waits by then or not.
        pusher.unsubscribe("idle")
        await #expect(throws: RealtimeError.self) { try await unsubscribed.value }
        let refused = Pusher(
            key: "unknown", options: app.options { $0.connectTimeout = .seconds(60) })
        let error = await #expect(throws: RealtimeError.self) { try await refused.connected() }
        #expect(error?.message.contains("4001") == true, "\(error?.message ?? "")")
        #expect(refused.connection.connectionState == .disconnected)
    }

    @Test func releasingTheLastReferenceDropsTheConnection() async throws {
        let app = try await PusherApp()
        var pusher: Pusher? = app.pusher()
        let channel = try #require(pusher?.subscribe("channel"))
        channel.bind { (_: PusherEvent) in withExtendedLifetime(channel) {} }
        try await pusher?.connected()
        try await app.control("wait_connections", ["count": 1])
        pusher = nil
        try await app.control("wait_connections", ["count": 0])
        #expect(!channel.isRegistered && channel.connection == nil)
    }
}
