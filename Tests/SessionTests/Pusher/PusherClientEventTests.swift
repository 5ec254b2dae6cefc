import Session
import Testing
import Wire

/// Events that the application sends.
struct PusherClientEventTests {
    @Test func `an event of a channel that is subscribed is sent`() throws {
        let model = try PusherModel.connected()
        let id = try model.join("private-a")
        #expect(
            try model.trigger(id, "client-x", #"{"on":true}"#) == [
                #"send client-x private-a {"on":true}"#
            ])
    }

    @Test func `an event is sent before a disconnect that follows at once`() throws {
        let model = try PusherModel.connected()
        let id = try model.join("private-a")
        model.session.trigger(id, "client-x", try JSONText(checking: "1"), now: model.now)
        #expect(model.disconnect().first == "send client-x private-a 1")
    }

    @Test func `events wait for the subscription, in order, repeated names included`() throws {
        let model = try PusherModel.connected()
        let (id, _) = try model.subscribe("private-a")
        for number in 1...3 { #expect(try model.trigger(id, "client-x", "\(number)") == []) }
        _ = model.authorize()
        #expect(
            model.succeed("private-a").suffix(4) == [
                "1 ready", "send client-x private-a 1", "send client-x private-a 2",
                "send client-x private-a 3",
            ])
        #expect(model.succeed("private-a").last == "1 ready")
    }

    @Test func `the queue survives reconnects`() throws {
        let model = try PusherModel.connected()
        let id = try model.join("private-a")
        _ = model.end(after: .seconds(5))
        #expect(try model.trigger(id, "client-x") == [])
        _ = try model.pass()
        _ = try model.establish()
        _ = model.authorize()
        #expect(model.succeed("private-a").last == "send client-x private-a 1")
    }

    @Test func `the queue is dropped by unsubscribe`() throws {
        let model = try PusherModel.connected()
        let (id, _) = try model.subscribe("private-a")
        _ = try model.trigger(id, "client-x")
        _ = model.authorize()
        _ = model.unsubscribe(id)
        _ = try model.subscribe("private-a")
        _ = model.succeed("private-a")
        _ = model.authorize()
        #expect(model.succeed("private-a").last == "2 ready")
        #expect(try model.trigger(id, "client-x") == [])
    }

    @Test func `a full queue drops the event, and reports it`() throws {
        let model = try PusherModel.connected { $0.clientEventQueue = 2 }
        let (id, _) = try model.subscribe("private-a")
        _ = try model.trigger(id, "client-x", "1")
        _ = try model.trigger(id, "client-x", "2")
        #expect(try model.trigger(id, "client-y", "3") == ["1 drops client-y queueFull"])
        _ = model.authorize()
        #expect(
            model.succeed("private-a").suffix(2) == [
                "send client-x private-a 1", "send client-x private-a 2",
            ])
    }

    @Test func `no more events are sent in a second than the limit allows`() throws {
        let model = try PusherModel.connected { $0.clientEventRate = 2 }
        let id = try model.join("private-a")
        #expect(try model.trigger(id, "client-x", "1").count == 1)
        #expect(try model.trigger(id, "client-x", "2").count == 1)
        #expect(try model.trigger(id, "client-x", "3") == [])
        #expect(try model.trigger(id, "client-x", "4") == [])
        #expect(try model.trigger(id, "client-x", "5") == [])
        #expect(model.wait == .milliseconds(1100))
        #expect(
            try model.pass() == ["send client-x private-a 3", "send client-x private-a 4"])
        #expect(try model.trigger(id, "client-x", "6") == [])
        #expect(model.wait == .milliseconds(1100))
        #expect(
            try model.pass() == ["send client-x private-a 5", "send client-x private-a 6"])
        #expect(model.pass(.seconds(10)) == [])
        #expect(try model.trigger(id, "client-x", "7").count == 1)
    }

    /// A full second after a pause must not follow upon the events before it.
    @Test func `a second has no more events wherever it begins`() throws {
        let model = try PusherModel.connected { $0.clientEventRate = 2 }
        let id = try model.join("private-a")
        _ = try model.trigger(id, "client-x", "1")
        #expect(model.pass(.milliseconds(900)) == [])
        #expect(try model.trigger(id, "client-x", "2").count == 1)
        #expect(try model.trigger(id, "client-x", "3") == [])
        #expect(model.wait == .milliseconds(200))
        #expect(try model.pass() == ["send client-x private-a 3"])
        #expect(try model.trigger(id, "client-x", "4") == [])
        #expect(model.wait == .milliseconds(900))
    }

    @Test func `what waited for a subscription obeys the limit`() throws {
        let model = try PusherModel.connected { $0.clientEventRate = 1 }
        for name in ["private-a", "private-b"] {
            let (id, _) = try model.subscribe(name)
            _ = model.authorize()
            for number in 1...2 { _ = try model.trigger(id, "client-x", "\(number)") }
        }
        #expect(model.succeed("private-a").last == "send client-x private-a 1")
        #expect(model.succeed("private-b").last == "2 ready")
        #expect(try model.pass() == ["send client-x private-a 2"])
        #expect(try model.pass() == ["send client-x private-b 1"])
        #expect(try model.pass() == ["send client-x private-b 2"])
    }

    @Test func `unsubscribe drops what the limit has delayed`() throws {
        let model = try PusherModel.connected { $0.clientEventRate = 1 }
        let id = try model.join("private-a")
        _ = try model.trigger(id, "client-x")
        _ = try model.trigger(id, "client-x")
        #expect(model.unsubscribe(id) == ["send unsubscribe private-a"])
        #expect(model.pass(.seconds(5)) == [])
    }

    @Test func `an error about an event is reported, and the event is not repeated`() throws {
        let model = try PusherModel.connected()
        let id = try model.join("private-a")
        _ = try model.trigger(id, "client-x")
        #expect(model.error(4301) == ["event pusher:error", "error 4301"])
        #expect(model.session.state == .connected)
    }
}
