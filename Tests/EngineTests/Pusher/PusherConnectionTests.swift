import CShims
import Session
import Synchronization
import Testing
import Wire

@testable import Engine

extension PusherEventView {
    var name: String { String(decoding: event, as: UTF8.self) }
    var text: String { String(decoding: data.bytes, as: UTF8.self) }
}

struct PusherConnectionTests {
    @Test func anEventReachesTheHandlersOfAllThenThoseOfItsChannel() throws {
        let pusher = try PusherHarness()
        let channel = try pusher.connection.subscribe("orders")
        _ = try channel.bind("paid") { [unowned pusher] view, channel, _ in
            pusher.lines.append("channel \(view.name) \(view.text) \(channel?.name ?? "")")
        }
        _ = try channel.bind(nil) { [unowned pusher] view, _, _ in
            pusher.lines.append("all of channel \(view.name)")
        }
        _ = try pusher.connection.bind(nil) { [unowned pusher] view, channel, _ in
            pusher.lines.append("all \(view.name) \(channel?.name ?? "")")
        }
        _ = try pusher.connection.bind("paid") { [unowned pusher] view, _, _ in
            pusher.lines.append("named \(view.name)")
        }
        try pusher.connection.connect()
        try pusher.run(until: "subscribed orders")
        try pusher.publish("orders", "paid", ["sum": 7])
        try pusher.run(until: "all of channel paid")
        #expect(
            pusher.lines == [
                "disconnected → connecting", "connecting → connected",
                "all pusher:subscription_succeeded orders",
                "all of channel pusher:subscription_succeeded", "subscribed orders",
                "all paid orders", "named paid", #"channel paid {"sum":7} orders"#,
                "all of channel paid",
            ])
        #expect(pusher.connection.socketID != nil)
        #expect(channel.isSubscribed)
    }

    @Test func aDisconnectWaitsForTheServersCloseFrame() throws {
        let pusher = try PusherHarness()
        try pusher.connect()
        try pusher.connection.disconnect()
        #expect(pusher.connection.state == .disconnecting)
        try pusher.run(until: "disconnecting → disconnected")
        #expect(pusher.connection.socketID == nil)
        try pusher.wait(["what": "in", "kind": "close", "code": 1000])
    }

    @Test func aLostConnectionIsEstablishedAgainWithItsChannels() throws {
        let pusher = try PusherHarness()
        _ = try pusher.connection.subscribe("orders")
        try pusher.connection.connect()
        try pusher.run(until: "subscribed orders")
        try pusher.control("end", ["how": "reset"])
        try pusher.run(until: "connected → reconnecting")
        try pusher.run { pusher.lines.filter { $0 == "subscribed orders" }.count == 2 }
    }

    @Test func connectIsAllowedInTheStateHandler() throws {
        let pusher = try PusherHarness()
        try pusher.connection.setHandlers { handlers in
            let report = handlers.state
            handlers.state = { [unowned pusher] change in
                report?(change)
                #expect(pusher.connection.state == change.new)
                if change.new == .disconnected { try? pusher.connection.connect() }
            }
        }
        try pusher.connect()
        try pusher.connection.disconnect()
        try pusher.run { pusher.lines.filter { $0 == "connecting → connected" }.count == 2 }
        try pusher.connection.setHandlers { $0.state = nil }
    }

    @Test func aHandlerMayUnbindAnotherAndCloseTheConnection() throws {
        let pusher = try PusherHarness()
        let channel = try pusher.connection.subscribe("orders")
        var second: UInt64 = 0
        _ = try channel.bind("paid") { [unowned pusher] _, _, _ in
            pusher.lines.append("first")
            channel.bindings.remove(second)
            _ = try? channel.bind("paid") { [unowned pusher] _, _, _ in pusher.lines.append("new") }
        }
        second = try channel.bind("paid") { [unowned pusher] _, _, _ in
            pusher.lines.append("second")
        }
        _ = try channel.bind("paid") { [unowned pusher] _, _, _ in
            pusher.lines.append("third")
            pusher.connection.close()
        }
        _ = try channel.bind("paid") { [unowned pusher] _, _, _ in pusher.lines.append("fourth") }
        try pusher.connection.connect()
        try pusher.run(until: "subscribed orders")
        pusher.lines = []
        try pusher.publish("orders", "paid", 1)
        try pusher.run(until: "third")
        try pusher.settle()
        #expect(pusher.lines == ["first", "third"])
        #expect(!channel.isRegistered)
    }

    @Test(arguments: ["state", "subscribed", "event", "authorize", "error"])
    func nothingIsLeftAfterACloseInsideACallback(_ place: String) throws {
        let pusher = try PusherHarness()
        let loop = pusher.loop
        weak var gone: PusherConnection?
        do {
            let connection = try PusherConnection(
                key: pusher.connection.options.read { $0.pointee.key }, on: loop)
            try connection.configure { (options) throws(RealtimeError) in
                options = pusher.connection.options.read { $0.pointee }
            }
            gone = connection
            try connection.setHandlers { [unowned connection] handlers in
                func close(_ now: String) { if now == place { connection.close() } }
                handlers.state = { if $0.new == .connected { close("state") } }
                handlers.subscribed = { _ in close("subscribed") }
                handlers.error = { _ in close("error") }
                handlers.authorize = { _ in close("authorize") }
            }
            let channel = try connection.subscribe("orders")
            _ = try channel.bind("paid") { [unowned connection] _, _, _ in connection.close() }
            if place == "authorize" { _ = try connection.subscribe("private-x") }
            try connection.connect()
            try pusher.run { connection.isClosed || channel.isSubscribed }
            if place == "event" { try pusher.publish("orders", "paid", 1) }
            if place == "error" {
                try pusher.control("send", ["text": #"{"event":"pusher:error","data":{}}"#])
            }
            try pusher.run { connection.isClosed }
        }
        try pusher.run { gone == nil }
    }

    @Test func nothingIsLeftIfTheLoopEndsFirst() throws {
        weak var gone: PusherConnection?
        do {
            let loop = try Loop()
            let connection = try PusherConnection(key: "k", on: loop)
            gone = connection
            // The job that begins the connection waits, and is dropped with the loop.
            loop.enqueue {}
            let channel = try connection.subscribe("orders")
            loop.close()
            #expect(channel.isRegistered)
            connection.close()
            #expect(!channel.isRegistered)
        }
        #expect(gone == nil)
    }

    @Test func aHandleThatOutlivesItsChannelGivesErrors() throws {
        let pusher = try PusherHarness()
        try pusher.connect()
        let channel = try pusher.connection.subscribe("private-a")
        #expect(try pusher.connection.subscribe("private-a") === channel)
        try channel.unsubscribe()
        #expect(!channel.isRegistered && pusher.connection.allChannels.isEmpty)
        try channel.unsubscribe()
        #expect(throws: RealtimeError.self) { _ = try channel.bind(nil) { _, _, _ in } }
        #expect(throws: RealtimeError.self) {
            try "1".withBytes { try channel.trigger("client-a", $0) }
        }
        #expect(try pusher.connection.subscribe("private-a") !== channel)
    }

    private final class Companion: PusherChannelCompanion {
        let ends = Atomic(0)

        func ended() { ends.add(1, ordering: .relaxed) }
    }

    @Test(arguments: ["unsubscribe", "close"])
    func aCompanionStaysUntilItsChannelEnds(_ end: String) throws {
        let pusher = try PusherHarness()
        let connection = pusher.connection
        let companion = try connection.subscribe("orders") { handle -> Companion in
            #expect(handle.companion == nil)
            let companion = Companion()
            handle.companion = companion
            return companion
        }
        let handle = try connection.subscribe("orders") { handle in
            #expect(handle.companion === companion)
            return handle
        }
        #expect(companion.ends.load(ordering: .relaxed) == 0)
        if end == "close" { connection.close() } else { try handle.unsubscribe() }
        try handle.unsubscribe()
        connection.close()
        #expect(companion.ends.load(ordering: .relaxed) == 1 && handle.companion == nil)
    }

    /// Swift considers the Kelvin sign equal to the letter.
    @Test func aChannelIsFoundByTheBytesOfItsName() throws {
        let pusher = try PusherHarness()
        let connection = pusher.connection
        let handle = try connection.subscribe("K")
        #expect(connection.channel(named: "\u{212A}") == nil)
        #expect(try !connection.unsubscribe("\u{212A}"))
        #expect(connection.channel(named: "K") === handle && handle.isRegistered)
    }

    /// One thread has taken the name out of the registry, but its job runs only after that of
    /// another thread, which subscribes again.
    @Test func aSubscribeMayOvertakeAnUnsubscribe() throws {
        let pusher = try PusherHarness()
        let first = try pusher.connection.subscribe("orders")
        try pusher.connect()
        try pusher.run(until: "subscribed orders")
        let second = PusherChannelHandle(first.channel, 99, of: pusher.connection)
        first.end()
        pusher.connection.subscribeNow(second, nil)
        pusher.connection.unsubscribeNow(first)
        pusher.connection.schedule()
        try pusher.run { second.isSubscribed }
        let connection = pusher.connection
        #expect(connection.channel(second.number) === second)
        #expect(connection.channel(first.number) == nil)
        second.end()
    }

    /// The server's log shows what the client did during the pause: subscriptions, which are sent
    /// in a pause, too, are its first and its last message.
    @Test func aPauseHoldsEventsBackAndKeepsTheConnection() throws {
        let pusher = try PusherHarness(["activity_timeout": 0.1])
        let channel = try pusher.connection.subscribe("orders")
        _ = try channel.bind("paid") { [unowned pusher] view, _, _ in
            pusher.lines.append(view.text)
        }
        try pusher.connection.connect()
        try pusher.run(until: "subscribed orders")
        try pusher.connection.pause()
        _ = try pusher.connection.subscribe("first")
        let entries = try pusher.wait(["what": "in", "channel": "first"])
        let first = try #require(entries.first?["number"])
        pusher.lines = []
        try pusher.publish("orders", "paid", 1)
        // This timer is due after that of the keep-alive, which would send a ping each time.
        var isOver = false
        _ = try pusher.loop.addTimer(after: .milliseconds(500), every: .zero) { isOver = true }
        try pusher.run { isOver }
        _ = try pusher.connection.subscribe("last")
        try pusher.wait(["what": "in", "channel": "last"])
        #expect(pusher.lines == [])
        let meanwhile = try pusher.control("log", ["what": "in", "after": first])
        #expect(meanwhile.arrayValue?.map { $0["channel"] } == ["last"])
        try pusher.connection.resume()
        try pusher.run(until: "1")
        #expect(pusher.connection.state == .connected)
        // The keep-alive continues.
        try pusher.wait(["what": "in", "event": "pusher:ping", "after": first])
    }

    @Test func eventsComeInBatchesAtTheEndOfATurn() throws {
        let pusher = try PusherHarness()
        let channel = try pusher.connection.subscribe("orders")
        var batches: [[String]] = []
        try pusher.connection.setHandlers { handlers in
            handlers.events = { base, records in
                batches.append(
                    records.map { record in
                        func text(_ offset: UInt64, _ length: UInt64) -> String {
                            String(
                                decoding: UnsafeRawBufferPointer(
                                    start: base + Int(offset), count: Int(length)),
                                as: UTF8.self)
                        }
                        return [
                            "\(record.channel_number)",
                            text(record.event_offset, record.event_length),
                            text(record.data_offset, record.data_length),
                            text(record.user_id_offset, record.user_id_length),
                            "\(record.data_kind)",
                        ].joined(separator: " ")
                    })
            }
        }
        try pusher.connection.connect()
        try pusher.run(until: "subscribed orders")
        #expect(batches.joined().elementsEqual(["1 pusher:subscription_succeeded {}  1"]))
        batches = []
        try pusher.control(
            "publish", ["channel": "orders", "event": "paid", "data": ["sum": 7], "count": 1000])
        try pusher.run { batches.joined().count == 1000 }
        #expect(batches.joined().allSatisfy { $0 == #"1 paid {"sum":7}  1"# })
        #expect(batches.count < 500)
        withExtendedLifetime(channel) {}
    }

    @Test func theDebugLogShowsMessagesWithoutSecrets() throws {
        let pusher = try PusherHarness()
        var log: [String] = []
        try pusher.connection.setHandlers { $0.debug = { log.append($0) } }
        try pusher.connection.configure { [secret = pusher.secret] options in
            options.setSecret(SecretBytes(secret))
        }
        _ = try pusher.connection.subscribe("private-a")
        try pusher.connection.connect()
        try pusher.run(until: "subscribed private-a")
        #expect(log.allSatisfy { $0.hasPrefix("[PUSHER DEBUG] ") })
        #expect(
            log.contains { $0.contains("received: {\"event\":\"pusher:connection_established") })
        #expect(
            log.contains {
                $0.hasSuffix(
                    #"sent: {"event":"pusher:subscribe","data":{"channel":"private-a","auth":"…"}}"#
                )
            })
    }
}

extension String {
    func withBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        var text = self
        return try text.withUTF8 { try body(UnsafeRawBufferPointer($0)) }
    }
}
