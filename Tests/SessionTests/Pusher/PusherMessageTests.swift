import Session
import Testing
import Wire

/// What the messages of the server mean that are not about a subscription.
struct PusherMessageTests {
    @Test func `an event without a channel is for the global handlers`() throws {
        let model = try PusherModel.connected()
        #expect(model.receive(#"{"event":"maintenance","data":"{}"}"#) == ["deliver"])
    }

    @Test(arguments: ["pusher:something", "pusher:cache_miss", "pusherish", "client-typing"])
    func `an event of a channel is delivered without a copy`(event: String) throws {
        let model = try PusherModel.connected()
        _ = try model.join("cache-scores")
        #expect(model.event(event, "cache-scores") == ["deliver on 1"])
    }

    @Test func `an event waits for actions before it`() throws {
        let model = try PusherModel.connected()
        _ = try model.join("chat")
        _ = model.received(#"{"event":"pusher:error","data":{"code":4301,"message":"slow"}}"#)
        #expect(
            model.event("new", "chat") == ["event pusher:error", "error 4301", "event new on 1"])
    }

    @Test(arguments: ["pusher_internal:unknown", "pusher:pong", "pusher:connection_established"])
    func `some events are never shown`(event: String) throws {
        let model = try PusherModel.connected()
        _ = try model.join("chat")
        #expect(model.event(event, "chat", data: #"{"socket_id":"9.9"}"#) == [])
        #expect(model.session.socketID == "1.1")
    }

    @Test(arguments: [0, 12])
    func `a subscription count is kept, and an event`(count: Int) throws {
        let model = try PusherModel.connected()
        _ = try model.join("chat")
        #expect(
            model.event(
                "pusher_internal:subscription_count", "chat",
                data: #""{\"subscription_count\":\#(count)}""#) == [
                    "1 counts \(count)", "event pusher:subscription_count on 1",
                ])
    }

    @Test(arguments: ["{}", #"{"subscription_count":"x"}"#, #"{"subscription_count":-1}"#])
    func `a subscription count that is none is ignored`(data: String) throws {
        let model = try PusherModel.connected()
        _ = try model.join("chat")
        #expect(model.event("pusher_internal:subscription_count", "chat", data: data) == [])
        #expect(model.event("pusher_internal:subscription_count", "x", data: "{}") == [])
    }

    // MARK: Errors

    @Test(arguments: [nil, 4301, 4302, 4300, 4303, 4009, 4200])
    func `an error is an event and a call, and changes nothing`(code: Int?) throws {
        let model = try PusherModel.connected()
        #expect(
            model.error(code) == [
                "event pusher:error", "error \(code.map { "\($0)" } ?? "none")",
            ])
        #expect(model.session.state == .connected)
    }

    @Test(arguments: [nil, 4009, 4301, 401])
    func `an error with a channel whose success is awaited fails it`(code: Int?) throws {
        let model = try PusherModel.connected()
        _ = try model.subscribe("chat")
        _ = try model.subscribe("other")
        #expect(
            model.error(code, channel: "chat").dropFirst(2) == [
                "1 failed", "event pusher:subscription_error on 1", "1 refused auth",
            ])
        #expect(model.session.channelState(2) == .sent)
    }

    @Test func `an error with a channel that is subscribed does not fail it`() throws {
        let model = try PusherModel.connected()
        _ = try model.join("private-a")
        #expect(model.error(4301, channel: "private-a").count == 2)
    }

    @Test(arguments: [nil, 4009])
    func `an error without a channel fails the only one that awaits its authorization`(
        code: Int?
    ) throws {
        let model = try PusherModel.connected()
        _ = try model.subscribe("chat")
        _ = try model.subscribe("private-a")
        _ = model.authorize()
        #expect(model.error(code).count == 5)
        #expect(model.session.channelState(2) == .failed)
        #expect(model.failure?.error.message.contains("words") == true)
    }

    @Test func `an error without a channel fails none of several`() throws {
        let model = try PusherModel.connected()
        for name in ["private-a", "private-b"] {
            _ = try model.subscribe(name)
            _ = model.authorize()
        }
        #expect(model.error(4009).count == 2)
    }

    @Test(arguments: [4301, 4300, 4100])
    func `an error with another code fails no channel`(code: Int) throws {
        let model = try PusherModel.connected()
        _ = try model.subscribe("private-a")
        _ = model.authorize()
        #expect(model.error(code).count == 2)
        #expect(model.session.channelState(1) == .sent)
    }
}
