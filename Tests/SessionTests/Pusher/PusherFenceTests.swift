import Session
import Testing
import Wire

/// Channels that are unsubscribed and subscribed again, before the server has answered
/// (docs/pusher-rules.md, U7).
struct PusherFenceTests {
    /// The channel was subscribed with the id 1, and is subscribed again with the id 2.
    private func again(
        _ name: String, _ change: (inout PusherConfiguration) throws -> Void = { _ in }
    ) throws -> PusherModel {
        let model = try PusherModel.connected(change)
        _ = try model.subscribe(name)
        _ = model.authorize()
        #expect(model.session.channelState(1) == .sent)
        #expect(model.unsubscribe(1) == [])
        #expect(try model.subscribe(name).done == ["send ping"])
        #expect(model.session.channelState(2) == .idle)
        return model
    }

    // MARK: What ends the wait

    @Test func `the success of the ended subscription is undone, and the new one is sent`() throws {
        let model = try again("chat")
        #expect(model.event("new", "chat") == [])
        #expect(
            model.succeed("chat") == ["send unsubscribe chat", "2 sent", "send subscribe chat"])
        #expect(model.pong() == [])
        #expect(model.event("new", "chat") == ["deliver on 2"])
        #expect(
            model.succeed("chat") == [
                "2 subscribed", "event pusher:subscription_succeeded on 2", "2 ready",
            ])
    }

    private final class Registration: PusherRegistration {}

    @Test func `a registration is kept until its end, and not until the server's answer`() throws {
        let model = try PusherModel.connected()
        let name = try PusherChannelName("chat")
        let (first, second) = (Registration(), Registration())
        model.session.subscribe(1, name, for: first, answer: nil, now: model.now)
        #expect(model.done() == ["1 sent", "send subscribe chat"])
        #expect(model.session.registration(of: 1) === first)
        _ = model.unsubscribe(1)
        #expect(model.session.registration(of: 1) == nil)
        model.session.subscribe(2, name, for: second, answer: nil, now: model.now)
        #expect(model.session.registration(of: 2) === second)
        _ = model.succeed("chat")
        _ = model.disconnect()
        #expect(model.session.registration(of: 2) === second)
        #expect(model.session.registration(of: 1) == nil)
    }

    @Test func `another registration of a name ends the earlier one`() throws {
        let model = try PusherModel.connected()
        _ = try model.subscribe("chat")
        #expect(try model.subscribe("chat").done == ["send ping"])
        #expect(try model.subscribe("chat").done == [])
        #expect(model.session.channelState(1) == nil && model.session.channelState(2) == nil)
        // The program reports the ends only now.
        #expect(model.unsubscribe(1) == [] && model.unsubscribe(2) == [])
        #expect(model.pong().suffix(2) == ["3 sent", "send subscribe chat"])
        #expect(model.succeed("chat").last == "3 ready")
        #expect(
            try model.subscribe("chat").done == [
                "send unsubscribe chat", "4 sent", "send subscribe chat",
            ])
    }

    @Test func `a call for an earlier registration does not end the later one`() throws {
        let model = try PusherModel.connected()
        _ = try model.subscribe("chat")
        #expect(try model.subscribe("chat").done == ["send ping"])
        // Two threads: one ends the first registration, the other has found it before.
        #expect(try model.again(1, "chat") == [])
        #expect(model.unsubscribe(1) == [])
        #expect(model.session.channelState(1) == nil && model.session.channelState(2) == .idle)
        #expect(model.pong().suffix(2) == ["2 sent", "send subscribe chat"])
        #expect(try model.again(1, "chat") == [])
        #expect(model.succeed("chat").last == "2 ready")
        #expect(try model.again(1, "chat") == [])
        #expect(model.session.channelState(2) == .subscribed)
    }

    @Test func `without an answer before that to the ping, the new one is sent`() throws {
        let model = try again("chat")
        #expect(model.pong() == ["2 sent", "send subscribe chat"])
        #expect(model.wait == .seconds(30))
        #expect(model.succeed("chat").last == "2 ready")
    }

    @Test func `the new one has an authorization of its own`() throws {
        let model = try again("private-a")
        #expect(model.pong() == ["2 authorizing", "authorize private-a for 1.1"])
        #expect(model.authorize("KEY:2") == ["2 sent", "send subscribe private-a with KEY:2"])
    }

    @Test func `an authorization that the program has waits for the answer`() throws {
        let model = try PusherModel.connected()
        _ = try model.subscribe("private-a")
        _ = model.authorize()
        _ = model.unsubscribe(1)
        let answer = PusherAuthorizationAnswer(auth: "KEY:2", channelData: nil, sharedSecret: nil)
        #expect(try model.subscribe("private-a", answer: answer).done == ["send ping"])
        #expect(model.pong() == ["2 sent", "send subscribe private-a with KEY:2"])
    }

    @Test func `a refusal of the ended subscription does not fail the new one`() throws {
        let began = ["2 authorizing", "authorize private-a for 1.1"]
        var model = try again("private-a")
        #expect(model.event("pusher:subscription_error", "private-a", data: "{}") == began)
        for code in [nil, 4009, 4200] as [Int?] {
            model = try again("private-a")
            #expect(model.error(code, channel: "private-a").suffix(2) == began)
            model = try again("private-a")
            #expect(model.error(code).suffix(2) == began)
        }
    }

    @Test func `an error without a channel counts for both subscriptions that wait`() throws {
        let model = try again("private-a")
        _ = try model.subscribe("private-b")
        _ = model.authorize()
        #expect(model.error(4009).count == 2)
        #expect(
            model.error(4009).dropFirst(2) == [
                "2 authorizing", "3 failed", "event pusher:subscription_error on 3",
                "3 refused auth", "authorize private-a for 1.1",
            ])
    }

    @Test func `such an error before the pong is that of the ended subscription`() throws {
        let model = try again("private-a")
        _ = try model.subscribe("private-b")
        _ = model.authorize()
        _ = model.error(nil)
        #expect(model.pong().last == "authorize private-a for 1.1")
        _ = model.authorize()
        #expect(model.error(nil).count == 2)
        #expect(model.session.channelState(2) == .sent)
        _ = model.succeed("private-a")
        #expect(model.session.channelState(2) == .subscribed)
        #expect(model.session.channelState(3) == .failed)
    }

    @Test func `a server that does not answer the ping either is waited for until 30 s are over`()
        throws
    {
        let model = try PusherModel.connected()
        _ = try model.subscribe("chat")
        _ = model.unsubscribe(1)
        _ = model.pass(.seconds(20))
        #expect(try model.subscribe("chat").done == ["send ping"])
        #expect(model.pass(.milliseconds(9999)) == [])
        #expect(try model.pass() == ["2 sent", "send subscribe chat"])
        #expect(model.pong() == [])
        #expect(model.pass(.milliseconds(29_999)) == [])
        #expect(try model.pass().last == "2 refused timeout")
    }

    @Test func `a success that comes while the new one is authorized is undone`() throws {
        let model = try again("private-a")
        _ = model.pong()
        #expect(model.succeed("private-a") == ["send unsubscribe private-a"])
        #expect(model.session.channelState(2) == .authorizing)
        #expect(model.authorize() == ["2 sent", "send subscribe private-a with KEY:1"])
        #expect(model.succeed("private-a").last == "2 ready")
        // On the next connection as well.
        _ = model.end(after: .seconds(5))
        _ = try model.pass()
        _ = try model.establish("2.2")
        #expect(model.succeed("private-a") == ["send unsubscribe private-a"])
        #expect(model.authorize().first == "2 sent")
    }

    @Test func `an error before the ended subscription is not its answer`() throws {
        let model = try PusherModel.connected()
        _ = try model.subscribe("private-b")
        _ = model.authorize()
        _ = model.signIn()
        _ = model.authorizeUser()
        #expect(model.error(nil).count == 2)
        model.now = model.now + .seconds(1)
        _ = try model.subscribe("private-a")
        _ = model.authorize()
        _ = model.confirmUser()
        _ = model.unsubscribe(2)
        #expect(try model.subscribe("private-a").done == ["send ping"])
        // So it is that of the other one.
        #expect(
            model.pong() == [
                "3 authorizing", "1 failed", "event pusher:subscription_error on 1",
                "1 refused auth", "authorize private-a for 1.1",
            ])
    }

    // MARK: Pings

    @Test func `the answer to an earlier ping does not count`() throws {
        let model = try PusherModel.connected()
        #expect(try model.pass() == ["send ping"])
        _ = try model.subscribe("chat")
        _ = model.unsubscribe(1)
        #expect(try model.subscribe("chat").done == ["send ping"])
        #expect(model.pong() == [])
        #expect(model.pong() == ["2 sent", "send subscribe chat"])
    }

    @Test(arguments: [false, true])
    func `a ping after the subscription counts, whatever it was for`(isAnswered: Bool) throws {
        let model = try PusherModel.connected { $0.activityTimeout = .seconds(10) }
        _ = try model.subscribe("chat")
        #expect(model.pass(.seconds(10)) == ["send ping"])
        _ = model.unsubscribe(1)
        let sent = ["2 sent", "send subscribe chat"]
        if isAnswered { #expect(model.pong() == []) }
        #expect(try model.subscribe("chat").done == (isAnswered ? sent : []))
        if !isAnswered { #expect(model.pong() == sent) }
    }

    @Test func `one ping is enough for many channels`() throws {
        let model = try PusherModel.connected()
        for name in ["a", "b"] { _ = try model.subscribe(name) }
        for id in 1...2 as ClosedRange<UInt64> { _ = model.unsubscribe(id) }
        #expect(try model.subscribe("b").done == ["send ping"])
        #expect(try model.subscribe("a").done == [])
        #expect(
            model.pong() == ["3 sent", "send subscribe b", "4 sent", "send subscribe a"])
    }

    @Test func `a pong that answers no ping is ignored`() throws {
        let model = try PusherModel.connected()
        for _ in 0..<3 { #expect(model.pong() == []) }
        _ = try model.subscribe("chat")
        _ = model.unsubscribe(1)
        #expect(try model.subscribe("chat").done == ["send ping"])
        #expect(model.pong() == ["2 sent", "send subscribe chat"])
    }

    @Test func `the ping is a message, also if an option sends ping frames`() throws {
        let model = try again("chat") { $0.usesFramePings = true }
        #expect(model.pong() == ["2 sent", "send subscribe chat"])
        #expect(try model.pass().last == "2 refused timeout")
        #expect(model.pass(.seconds(90)) == ["ping frame"])
    }

    @Test func `a connection that is silent meanwhile is lost as always`() throws {
        let model = try again("chat") {
            $0.activityTimeout = .seconds(1)
            $0.pongTimeout = .seconds(10)
        }
        #expect(try model.pass() == ["send ping"])
        #expect(model.wait == .seconds(10))
        #expect(try model.pass() == ["drop", "connected → reconnecting in 0 s"])
        _ = try model.pass()
        #expect(try model.establish("2.2").last == "send subscribe chat")
    }

    @Test func `the time of a pause does not count`() throws {
        let model = try again("chat")
        model.session.setPaused(true, now: model.now)
        #expect(model.pass(.seconds(100)) == [])
        model.session.setPaused(false, now: model.now)
        #expect(model.pass(.milliseconds(29_999)) == [])
        #expect(model.pass(.milliseconds(1)) == ["2 sent", "send subscribe chat"])
    }

    // MARK: The application, meanwhile

    @Test func `a further subscribe sends nothing`() throws {
        let model = try again("private-a")
        #expect(try model.again(2, "private-a") == [])
        #expect(model.pong() == ["2 authorizing", "authorize private-a for 1.1"])
    }

    @Test func `unsubscribed again, the channel does not come back`() throws {
        let model = try again("chat")
        #expect(model.unsubscribe(2) == [])
        #expect(model.pong() == [])
        #expect(model.pass(.seconds(10)) == [])
        #expect(model.succeed("chat") == ["send unsubscribe chat"])
        #expect(try model.subscribe("chat").done == ["3 sent", "send subscribe chat"])
    }

    @Test func `unsubscribed and subscribed once more, it waits for the same ping`() throws {
        let model = try again("chat")
        _ = model.unsubscribe(2)
        #expect(try model.subscribe("chat").done == [])
        #expect(model.pong() == ["3 sent", "send subscribe chat"])
        // The next subscription needs a ping of its own.
        _ = model.unsubscribe(3)
        #expect(try model.subscribe("chat").done == ["send ping"])
        #expect(model.pong() == ["4 sent", "send subscribe chat"])
    }

    @Test func `client events wait for the new subscription`() throws {
        let model = try again("private-a")
        #expect(try model.trigger(2, "client-a") == [])
        _ = model.succeed("private-a")
        _ = model.authorize()
        #expect(model.succeed("private-a").last == "send client-a private-a 1")
    }

    @Test func `a presence channel has the member of its own authorization`() throws {
        let model = try PusherModel.connected()
        _ = try model.subscribe("presence-lobby")
        _ = model.authorize(channelData: #"{"user_id":17}"#)
        _ = model.unsubscribe(1)
        _ = try model.subscribe("presence-lobby")
        _ = model.succeed("presence-lobby")
        #expect(model.members == nil)
        _ = model.authorize(channelData: #"{"user_id":18}"#)
        _ = model.succeed("presence-lobby")
        #expect(model.members?.myID == "18")
    }

    // MARK: The connection ends

    @Test func `the next connection subscribes the channel, and counts its own pings`() throws {
        let model = try again("chat")
        #expect(model.end(after: .seconds(1)) == ["connected → reconnecting in 0 s"])
        _ = try model.pass()
        #expect(
            try model.establish("2.2") == [
                "connecting → connected", "2 sent", "send subscribe chat",
            ])
        #expect(model.pong() == [])
        #expect(model.wait == .seconds(30))
        _ = model.unsubscribe(2)
        #expect(try model.subscribe("chat").done == ["send ping"])
        #expect(model.pong() == ["3 sent", "send subscribe chat"])
    }

    @Test func `an authorization that was not used is not used on the next connection`() throws {
        let model = try PusherModel.connected()
        _ = try model.subscribe("private-a")
        _ = model.authorize()
        _ = model.unsubscribe(1)
        let answer = PusherAuthorizationAnswer(auth: "KEY:2", channelData: nil, sharedSecret: nil)
        _ = try model.subscribe("private-a", answer: answer)
        _ = model.end(after: .seconds(1))
        _ = try model.pass()
        #expect(try model.establish("2.2").last == "authorize private-a for 2.2")
    }

    // MARK: The channel of the user

    /// Signs in again, before the server has answered the channel of the user.
    private func userAgain() throws -> PusherModel {
        let model = try PusherModel.connected()
        for isAgain in [false, true] {
            _ = model.signIn()
            _ = model.authorizeUser()
            let last = model.confirmUser().last
            #expect(last == (isAgain ? "send ping" : "send subscribe #server-to-user-u-1"))
            if !isAgain { _ = model.signOut() }
        }
        return model
    }

    @Test func `the user's channel is sent again if a ping shows that it has no answer`() throws {
        let model = try userAgain()
        #expect(model.pong() == ["send subscribe #server-to-user-u-1"])
        #expect(model.pong() == [])
        #expect(model.pass(.seconds(120)) == ["send ping"])
        #expect(model.pong() == [])
    }

    @Test func `an answer for the user's channel counts for the same user`() throws {
        let model = try userAgain()
        #expect(model.succeed("#server-to-user-u-1") == [])
        #expect(model.pong() == [])
        #expect(model.signOut().first == "send unsubscribe #server-to-user-u-1")
    }
}
