import Session
import Testing
import Wire

/// Which channels are subscribed, and when.
struct PusherSubscriptionTests {
    @Test func `a channel of a connection is subscribed at once`() throws {
        let model = try PusherModel.connected()
        #expect(try model.subscribe("chat").done == ["1 sent", "send subscribe chat"])
    }

    @Test func `a channel without a connection is subscribed when there is one`() throws {
        let model = try PusherModel()
        #expect(try model.subscribe("chat").done == [])
        #expect(
            try model.establish() == ["connecting → connected", "1 sent", "send subscribe chat"])
    }

    @Test func `success tells the state, the handlers, the delegate, and sends what waited`() throws
    {
        let model = try PusherModel.connected()
        let (id, _) = try model.subscribe("presence-lobby")
        _ = model.authorize(channelData: #"{"user_id":"u-17"}"#)
        #expect(try model.trigger(id, "client-a") == [])
        #expect(try model.trigger(id, "client-b", #"{"on":true}"#) == [])
        #expect(
            model.succeed("presence-lobby", data: #""{\"presence\":{\"ids\":[\"u-17\"]}}""#) == [
                "1 subscribed", "1 has u-17", "event pusher:subscription_succeeded on 1", "1 ready",
                "send client-a presence-lobby 1",
                #"send client-b presence-lobby {"on":true}"#,
            ])
    }

    @Test(arguments: ["", #","data":{}"#, #","data":"{}""#, #","data":"""#, #","data":null"#])
    func `success without data is success`(data: String) throws {
        let model = try PusherModel.connected()
        _ = try model.subscribe("chat")
        let text =
            #"{"event":"pusher_internal:subscription_succeeded","channel":"chat"\#(data)}"#
        #expect(
            model.receive(text) == [
                "1 subscribed", "event pusher:subscription_succeeded on 1", "1 ready",
            ])
    }

    @Test func `success without data has the data of an empty object`() throws {
        let model = try PusherModel.connected()
        _ = try model.subscribe("chat")
        _ = model.receive(
            #"{"event":"pusher_internal:subscription_succeeded","channel":"chat"}"#)
        #expect(model.event?.dataBytes == Array("{}".utf8))
    }

    @Test func `a second subscribe sends nothing`() throws {
        let model = try PusherModel.connected()
        let (id, _) = try model.subscribe("private-orders")
        #expect(try model.again(id, "private-orders") == [])
        _ = model.authorize()
        #expect(try model.again(id, "private-orders") == [])
        _ = model.succeed("private-orders")
        #expect(try model.again(id, "private-orders") == [])
    }

    @Test func `subscribe after a failure requests a new authorization`() throws {
        let model = try PusherModel.connected()
        let (id, _) = try model.subscribe("private-orders")
        _ = model.refuse()
        #expect(model.session.channelState(id) == .failed)
        #expect(
            try model.again(id, "private-orders") == [
                "1 authorizing", "authorize private-orders for 1.1",
            ])
        #expect(model.authorize() == ["1 sent", "send subscribe private-orders with KEY:1"])
    }

    @Test func `unsubscribe while subscribed tells the server, and ends the dispatch`() throws {
        let model = try PusherModel.connected()
        let id = try model.join("chat")
        #expect(model.event("new", "chat") == ["deliver on 1"])
        #expect(model.unsubscribe(id) == ["send unsubscribe chat"])
        #expect(model.event("new", "chat") == [])
        #expect(model.unsubscribe(id) == [])
    }

    @Test func `unsubscribe while idle sends nothing, and the channel does not come back`() throws {
        let model = try PusherModel()
        let (id, _) = try model.subscribe("chat")
        #expect(model.unsubscribe(id) == [])
        #expect(try model.establish() == ["connecting → connected"])
    }

    @Test func `unsubscribe after a failure sends nothing, and the channel does not come back`()
        throws
    {
        let model = try PusherModel.connected()
        let (id, _) = try model.subscribe("private-orders")
        _ = model.refuse()
        #expect(model.unsubscribe(id) == [])
        _ = model.end(after: .seconds(5))
        _ = try model.pass()
        #expect(try model.establish() == ["connecting → connected"])
    }

    @Test func `unsubscribe while reconnecting: the channel does not come back`() throws {
        let model = try PusherModel.connected()
        let id = try model.join("chat")
        _ = model.end(after: .seconds(5))
        #expect(model.unsubscribe(id) == [])
        _ = try model.pass()
        #expect(try model.establish() == ["connecting → connected"])
    }

    @Test func `unsubscribe while authorizing: the answer is ignored`() throws {
        let model = try PusherModel.connected()
        let (id, _) = try model.subscribe("private-orders")
        #expect(model.unsubscribe(id) == ["cancel"])
        #expect(model.authorize() == [])
    }

    @Test func `unsubscribe while the success is awaited: it is undone after the success`() throws {
        let model = try PusherModel.connected()
        let (id, _) = try model.subscribe("chat")
        #expect(model.unsubscribe(id) == [])
        #expect(model.event("new", "chat") == [])
        #expect(model.succeed("chat") == ["send unsubscribe chat"])
        #expect(model.succeed("chat") == ["send unsubscribe chat"])
    }

    @Test func `unsubscribe while the success is awaited: an error drops the channel`() throws {
        let model = try PusherModel.connected()
        let (id, _) = try model.subscribe("private-orders")
        _ = model.authorize()
        #expect(model.unsubscribe(id) == [])
        #expect(model.error(4009) == ["event pusher:error", "error 4009"])
        #expect(try model.subscribe("private-orders").done.count == 2)
    }

    @Test func `a drop ends a channel that was to be undone`() throws {
        let model = try PusherModel.connected()
        let (id, _) = try model.subscribe("chat")
        _ = model.unsubscribe(id)
        #expect(model.end(after: .seconds(5)) == ["connected → reconnecting in 0 s"])
        _ = try model.pass()
        #expect(try model.establish() == ["connecting → connected"])
    }

    @Test func `an event before the success is delivered`() throws {
        let model = try PusherModel.connected()
        _ = try model.subscribe("chat")
        #expect(model.event("new", "chat") == ["deliver on 1"])
    }

    @Test func `an event of an unknown channel is dropped`() throws {
        let model = try PusherModel.connected()
        #expect(model.event("new", "chat") == [])
    }

    @Test func `success for an unknown channel is undone`() throws {
        let model = try PusherModel.connected()
        #expect(model.succeed("chat") == ["send unsubscribe chat"])
    }

    @Test func `success for a name that no channel can have is not answered`() throws {
        let model = try PusherModel.connected()
        #expect(model.succeed("a b") == [])
        #expect(model.succeed(String(repeating: "a", count: 165)) == [])
        #expect(model.succeed("#server-to-user-" + String(repeating: "a", count: 241)) == [])
    }

    @Test func `a second success replaces the members, and is reported again`() throws {
        let model = try PusherModel.connected()
        let id = try model.join(
            "presence-lobby", data: #"{"presence":{"ids":["a","b"]}}"#, own: "{}")
        #expect(id == 1)
        #expect(
            model.succeed("presence-lobby", data: #"{"presence":{"ids":["b"]}}"#) == [
                "1 has b", "event pusher:subscription_succeeded on 1", "1 ready",
            ])
    }

    @Test(arguments: ["pusher:subscription_error", "pusher_internal:subscription_error"])
    func `the server refuses a subscription`(event: String) throws {
        let model = try PusherModel.connected()
        let (id, _) = try model.subscribe("private-orders")
        _ = model.authorize()
        #expect(
            model.event(
                event, "private-orders",
                data: #"{"type":"AuthError","error":"no","status":401}"#) == [
                    "1 failed", "event pusher:subscription_error on 1", "1 refused auth",
                ])
        #expect(model.event?.dataKind == .json)
        #expect(model.failure?.error.message.contains("no (status 401)") == true)
        #expect(model.failure?.status == 401)
        #expect(model.session.channelState(id) == .failed)
        #expect(model.session.state == .connected)
    }

    @Test func `a refusal without data is one as well`() throws {
        let model = try PusherModel.connected()
        _ = try model.subscribe("chat")
        #expect(
            model.event("pusher_internal:subscription_error", "chat", data: "{}") == [
                "1 failed", "event pusher:subscription_error on 1", "1 refused auth",
            ])
    }

    @Test func `a success after a failure that concerned something else is a success`() throws {
        let model = try PusherModel.connected()
        let (id, _) = try model.subscribe("private-orders")
        _ = model.authorize()
        _ = model.error(nil)
        #expect(model.session.channelState(id) == .failed)
        #expect(model.succeed("private-orders").first == "1 subscribed")
    }

    @Test func `a late success spares the second attempt its authorization`() throws {
        let model = try PusherModel.connected()
        let (id, _) = try model.subscribe("private-orders")
        _ = model.authorize()
        _ = model.error(nil)
        _ = try model.again(id, "private-orders")
        #expect(model.succeed("private-orders").prefix(2) == ["cancel", "1 subscribed"])
        #expect(model.authorize() == [])
    }

    @Test func `a failed channel is subscribed again with the next connection`() throws {
        let model = try PusherModel.connected()
        _ = try model.subscribe("private-orders")
        _ = model.refuse()
        #expect(model.end(after: .seconds(5)) == ["1 idle", "connected → reconnecting in 0 s"])
        _ = try model.pass()
        #expect(
            try model.establish("2.2") == [
                "connecting → connected", "1 authorizing", "authorize private-orders for 2.2",
            ])
    }

    @Test func `after a drop all channels are subscribed again, in the order of registration`()
        throws
    {
        let model = try PusherModel.connected()
        for name in ["c", "private-b", "a", "presence-x"] { _ = try model.subscribe(name) }
        _ = model.end(after: .seconds(5))
        _ = try model.pass()
        #expect(
            try model.establish("2.2").filter { $0.contains("send") || $0.contains("authorize") }
                == [
                    "send subscribe c", "send subscribe a", "authorize private-b for 2.2",
                    "authorize presence-x for 2.2",
                ])
    }

    @Test func `after a drop a channel is idle before the state changes`() throws {
        let model = try PusherModel.connected()
        _ = try model.join("chat")
        #expect(model.end(after: .seconds(5)) == ["1 idle", "connected → reconnecting in 0 s"])
    }

    @Test func `nothing is reported about a channel that a handler has unsubscribed`() throws {
        let model = try PusherModel.connected()
        let (id, _) = try model.subscribe("chat")
        _ = model.received(
            #"{"event":"pusher_internal:subscription_succeeded","channel":"chat"}"#)
        model.session.unsubscribe(id, now: model.now)
        #expect(model.done() == ["send unsubscribe chat"])
    }

    @Test func `a thousand channels are subscribed with a thousand messages`() throws {
        let model = try PusherModel()
        for number in 0..<1000 { _ = try model.subscribe("chat-\(number)") }
        let sent = try model.establish().filter { $0.hasPrefix("send subscribe") }
        #expect(sent.count == 1000)
        #expect(sent.first == "send subscribe chat-0")
        #expect(sent.last == "send subscribe chat-999")
    }
}
