import Session
import Testing
import Wire

@testable import Engine

/// What the end of a socket becomes, and what counts as a sign of life.
struct PusherSocketTests {
    /// Connects, and returns the changes of the state until the first with an error.
    private func loss(_ pusher: PusherHarness) throws -> PusherStateChange {
        var found: PusherStateChange?
        try pusher.connection.setHandlers { handlers in
            handlers.state = { change in
                if found == nil, change.error != nil { found = change }
            }
        }
        try pusher.connection.connect()
        try pusher.run { found != nil }
        return try #require(found)
    }

    @Test func aRefusedHandshakeHasItsResponse() throws {
        let pusher = try PusherHarness()
        try pusher.control(
            "fault", ["point": "handshake", "do": "status", "code": 503, "text": "later"])
        let change = try loss(pusher)
        #expect(change.new == .reconnecting)
        #expect(change.error?.response?.status == 503)
        #expect(change.closeCode == nil)
        try pusher.run { pusher.connection.state == .connected }
    }

    @Test func aHandshakeWithoutAnAnswerTimesOut() throws {
        let pusher = try PusherHarness()
        try pusher.connection.configure { $0.connectTimeout = .milliseconds(200) }
        try pusher.control("fault", ["point": "handshake", "do": "ignore", "times": .null])
        let change = try loss(pusher)
        #expect(change.new == .reconnecting)
        #expect(change.error?.code == .timeout)
    }

    @Test func aServerThatIsNotThereIsAnError() throws {
        let pusher = try PusherHarness()
        try pusher.connection.configure { $0.port = 1 }
        let change = try loss(pusher)
        #expect(change.new == .reconnecting)
        #expect(change.error?.code == .connect)
    }

    @Test func aFatalCloseCodeEndsTheConnection() throws {
        let pusher = try PusherHarness()
        let connected = "connecting → connected"
        try pusher.connection.connect()
        try pusher.run(until: connected)
        try pusher.control("close", ["code": 4009, "reason": "not you"])
        try pusher.run(until: "connected → disconnected")
        #expect(pusher.lines.contains("error 4009 not you"))
    }

    @Test func anUnknownKeyEndsTheConnection() throws {
        let pusher = try PusherHarness()
        let connection = try PusherConnection(key: "unknown", on: pusher.loop)
        defer { connection.close() }
        try connection.configure { (options) throws(RealtimeError) in
            let port = pusher.connection.options.read { $0.pointee.port }
            try options.setHost("127.0.0.1")
            (options.port, options.usesTLS) = (port, false)
        }
        var last: PusherStateChange?
        try connection.setHandlers { $0.state = { last = $0 } }
        try connection.connect()
        try pusher.run { last?.new == .disconnected }
        #expect(last?.closeCode == 4001)
    }

    /// Each ping of the client has a long time for its answer. The next one is sent only after a
    /// sign of life, and here the server sends none but a ping frame.
    @Test func aPingFrameOfTheServerIsASignOfLife() throws {
        let pusher = try PusherHarness(
            ["activity_timeout": 0.1, "keep_alive": "none", "answers_pings": false])
        try pusher.connection.configure { $0.pongTimeout = .seconds(600) }
        try pusher.connect()
        for count in 1...3 {
            let pings = try pusher.wait(
                ["what": "in", "event": "pusher:ping", "count": .number(Double(count))])
            #expect(pings.count == count)
            try pusher.control("send_frame", ["kind": "ping"])
        }
        #expect(pusher.connection.state == .connected)
    }

    @Test func aSilentServerIsAskedAndThenLost() throws {
        let pusher = try PusherHarness(
            ["activity_timeout": 0.1, "keep_alive": "none", "answers_pings": false])
        try pusher.connection.configure { $0.pongTimeout = .milliseconds(100) }
        let change = try loss(pusher)
        #expect(change.old == .connected && change.new == .reconnecting)
        #expect(change.error?.code == .timeout)
        try pusher.wait(["what": "in", "event": "pusher:ping"])
    }

    @Test func theServersPingIsAnswered() throws {
        let pusher = try PusherHarness()
        try pusher.connect()
        try pusher.control("send", ["text": #"{"event":"pusher:ping","data":"{}"}"#])
        try pusher.wait(["what": "in", "event": "pusher:pong"])
    }

    @Test func aServerThatDoesNotReadGetsNoFurtherEvents() throws {
        let pusher = try PusherHarness()
        try pusher.connection.configure { [secret = pusher.secret] options in
            options.setSecret(SecretBytes(secret))
            options.compression = false
        }
        let channel = try pusher.connection.subscribe("private-a")
        try pusher.connection.connect()
        try pusher.run(until: "subscribed private-a")
        try pusher.control("end", ["how": "stall"])
        let data = "\"\(String(repeating: "a", count: 1 << 20))\""
        var refusal: RealtimeError?
        // The kernel takes some MiB, and 8 wait here.
        for _ in 0..<100 where refusal == nil {
            do { try data.withBytes { try channel.trigger("client-a", $0) } } catch {
                refusal = error as? RealtimeError
            }
            try pusher.settle()
        }
        #expect(refusal?.code == .bufferFull)
        #expect(pusher.connection.state == .connected)
    }

    /// All in one call of the loop's thread, which writes nothing meanwhile.
    @Test(arguments: [false, true])
    func aBurstOfEventsIsRefusedAndLosesNone(afterSubscribing: Bool) throws {
        let pusher = try PusherHarness()
        try pusher.connection.configure { [secret = pusher.secret] options in
            options.setSecret(SecretBytes(secret))
            options.compression = false
        }
        let channel = try pusher.connection.subscribe("private-a")
        if afterSubscribing {
            try pusher.connection.connect()
            try pusher.run(until: "subscribed private-a")
        }
        let data = "\"\(String(repeating: "a", count: 1 << 18))\""
        var accepted = 0
        var refusal: RealtimeError?
        for _ in 0..<60 where refusal == nil {
            do {
                try data.withBytes { try channel.trigger("client-a", $0) }
                accepted += 1
            } catch { refusal = error as? RealtimeError }
        }
        #expect(refusal?.code == .bufferFull)
        #expect((30...32).contains(accepted))
        try pusher.connection.connect()
        try pusher.wait(
            ["what": "in", "event": "client-a", "count": .number(Double(accepted))])
        #expect(pusher.connection.state == .connected)
    }

    @Test func anEventThatCanNeverBeSentIsRefused() throws {
        let pusher = try PusherHarness()
        let channel = try pusher.connection.subscribe("private-a")
        let data = "\"\(String(repeating: "a", count: 8 << 20))\""
        let refusal = #expect(throws: RealtimeError.self) {
            try data.withBytes { try channel.trigger("client-a", $0) }
        }
        #expect(refusal?.code == .tooLarge)
    }

    @Test func aServerThatDoesNotReadIsLost() throws {
        let pusher = try PusherHarness()
        try pusher.connection.configure { $0.compression = false }
        try pusher.connect()
        try pusher.control("end", ["how": "stall"])
        var loss: RealtimeError?
        try pusher.connection.setHandlers { handlers in
            handlers.state = { if loss == nil { loss = $0.error } }
        }
        // No event: each is a subscription of 1 MiB.
        let data = #"{"user_id":"u-1","user_info":"\#(String(repeating: "a", count: 1 << 20))"}"#
        for index in 0..<100 where loss == nil {
            let answer = PusherAuthorizationAnswer(
                auth: "k:0", channelData: data, sharedSecret: nil)
            _ = try pusher.connection.subscribe("presence-\(index)", answer: answer)
            try pusher.settle()
        }
        #expect(loss?.code == .bufferFull)
        #expect(loss?.message.contains("does not read") == true)
    }

    @Test(arguments: ["[]", "{", "", #"{"event":5}"#, #"{"channel":"orders"}"#])
    func whatIsNoMessageIsSkipped(_ text: String) throws {
        let pusher = try PusherHarness()
        _ = try pusher.connection.subscribe("orders")
        _ = try pusher.connection.bind("paid") { [unowned pusher] view, _, _ in
            pusher.lines.append("paid")
        }
        try pusher.connection.connect()
        try pusher.run(until: "subscribed orders")
        try pusher.control("send", ["text": .string(text)])
        try pusher.control("send_frame", ["kind": "binary", "text": "x"])
        try pusher.publish("orders", "paid", 1)
        try pusher.run(until: "paid")
        #expect(pusher.connection.state == .connected)
    }
}
