import Session
import Testing
import Wire

/// Errors that name no channel, and subscriptions that the server does not answer
/// (docs/pusher-rules.md, U15).
struct PusherRefusalTests {
    /// Channels whose subscription was sent, with the ids 1, 2 and so on.
    private func waiting(_ names: String...) throws -> PusherModel {
        let model = try PusherModel.connected { $0.authBatchSize = 100 }
        for name in names {
            _ = try model.subscribe(name)
            if try PusherChannelName(name).needsAuthorization {
                _ = model.authorize(channelData: #"{"user_id":"me"}"#)
            }
        }
        return model
    }

    private func states(_ model: PusherModel, _ ids: ClosedRange<UInt64>) -> [PusherChannelState?] {
        ids.map { model.session.channelState($0) }
    }

    @Test(arguments: [nil, 4009, 4200, 401, 403])
    func `as many errors as authorized subscriptions that wait fail all of them`(code: Int?) throws
    {
        let model = try waiting("private-a", "presence-b", "private-c")
        #expect(model.error(code).count == 2)
        #expect(model.error(code).count == 2)
        #expect(states(model, 1...3) == [.sent, .sent, .sent])
        #expect(
            model.error(code).dropFirst(2) == [
                "1 failed", "event pusher:subscription_error on 1", "1 refused auth",
                "2 failed", "event pusher:subscription_error on 2", "2 refused auth",
                "3 failed", "event pusher:subscription_error on 3", "3 refused auth",
            ])
        #expect(
            try model.again(2, "presence-b") == ["2 authorizing", "authorize presence-b for 1.1"])
        #expect(
            model.authorize(channelData: "{}") == [
                "2 sent", "send subscribe presence-b with KEY:1",
            ])
    }

    /// Reverb, when one of two authorizations was made with another secret.
    @Test(arguments: [true, false])
    func `the rest has been refused when the others have succeeded`(isErrorFirst: Bool) throws {
        let model = try waiting("private-a", "private-b", "private-c")
        if !isErrorFirst { _ = model.succeed("private-a") }
        #expect(model.error(4009).count == 2)
        if isErrorFirst { _ = model.succeed("private-a") }
        #expect(states(model, 1...3) == [.subscribed, .sent, .sent])
        #expect(
            model.succeed("private-c").suffix(2) == [
                "event pusher:subscription_error on 2", "2 refused auth",
            ])
        #expect(states(model, 1...3) == [.subscribed, .failed, .subscribed])
    }

    @Test func `each failure has the words of one error, in the order of the subscriptions`() throws
    {
        let model = try waiting("private-a", "private-b")
        for text in ["first", "second"] {
            _ = model.received(
                #"{"event":"pusher:error","data":{"code":null,"message":"\#(text)"}}"#)
        }
        var failures: [String] = []
        while let action = model.session.nextAction() {
            guard case .report(.channel(_, .failed(let failure))) = action else { continue }
            failures.append(failure.error.message)
        }
        #expect(failures.map { $0.contains("private-a") } == [true, false])
        #expect(failures.map { $0.hasSuffix(": first") } == [true, false])
        #expect(failures.map { $0.hasSuffix(": second") } == [false, true])
    }

    @Test func `a success after such a failure counts`() throws {
        let model = try waiting("private-a", "private-b")
        _ = model.error(nil)
        _ = model.error(nil)
        #expect(states(model, 1...2) == [.failed, .failed])
        #expect(model.succeed("private-b").last == "2 ready")
        #expect(states(model, 1...2) == [.failed, .subscribed])
    }

    @Test func `a refusal with a name does not answer another channel`() throws {
        let model = try waiting("private-a", "private-b", "private-c")
        _ = model.error(nil)
        _ = model.error(nil, channel: "private-a")
        #expect(states(model, 1...3) == [.failed, .sent, .sent])
        _ = model.event("pusher:subscription_error", "private-b", data: "{}")
        #expect(states(model, 1...3) == [.failed, .failed, .failed])
    }

    @Test func `a sign-in that waits counts as well`() throws {
        let model = try waiting("private-a")
        _ = model.signIn()
        _ = model.authorizeUser()
        #expect(model.error(nil).count == 2)
        #expect(
            model.error(4009).dropFirst(2) == [
                "1 failed", "event pusher:subscription_error on 1", "1 refused auth",
                "event pusher:signin_error", "sign-in failed auth",
            ])
    }

    @Test func `a sign-in that succeeds leaves the refusal to the channel`() throws {
        let model = try waiting("private-a")
        _ = model.signIn()
        _ = model.authorizeUser()
        _ = model.error(nil)
        #expect(model.session.channelState(1) == .sent)
        #expect(model.confirmUser().last == "1 refused auth")
    }

    /// Reverb answers each sign-in with 4200, also one that the application has ended.
    @Test func `an answer to an ended sign-in fails nothing else`() throws {
        let model = try waiting("private-a")
        for _ in 0..<2 {
            _ = model.signIn()
            _ = model.authorizeUser()
            _ = model.signOut()
        }
        _ = model.signIn()
        _ = model.authorizeUser()
        for _ in 0..<2 { #expect(model.error(4200).count == 2) }
        #expect(
            model.error(4200).suffix(2) == ["event pusher:signin_error", "sign-in failed auth"])
        #expect(model.session.channelState(1) == .sent)
        #expect(model.error(4200).last == "1 refused auth")
    }

    @Test func `an ended sign-in counts until it is answered, or for 30 s`() throws {
        let model = try waiting("private-a")
        _ = model.signIn()
        _ = model.authorizeUser()
        _ = model.signOut()
        #expect(model.error(nil).count == 2)
        #expect(model.session.channelState(1) == .sent)
        #expect(model.confirmUser().last == "1 refused auth")
        _ = model.signIn()
        _ = model.authorizeUser()
        _ = model.signOut()
        _ = model.pass(.seconds(30))
        #expect(try model.again(1, "private-a").count == 2)
        _ = model.authorize()
        #expect(model.error(nil).last == "1 refused auth")
    }

    @Test func `a 4200 answers the sign-in, and otherwise any subscription`() throws {
        let model = try waiting("chat", "private-a")
        _ = model.signIn()
        _ = model.authorizeUser()
        #expect(model.error(4200).last == "sign-in failed auth")
        #expect(model.error(4200).count == 2)
        #expect(model.succeed("private-a").last == "1 refused auth")
        #expect(states(model, 1...2) == [.failed, .subscribed])
    }

    @Test func `an error about a signature answers no public channel`() throws {
        let model = try waiting("chat")
        #expect(model.error(4009).count == 2)
        #expect(model.error(nil).count == 2)
        #expect(model.session.channelState(1) == .sent)
        #expect(model.error(4301).count == 2)
        #expect(model.error(4200).last == "1 refused auth")
    }

    /// Pusher's codes for an app that is disabled, for quotas, for too many connections, and for a
    /// client event; Reverb's for too many messages.
    @Test(arguments: [4003, 4004, 4100, 4301, 4005])
    func `an error about something else answers no subscription`(code: Int) throws {
        let model = try waiting("chat", "private-a")
        for _ in 0..<2 { #expect(model.error(code).count == 2) }
        #expect(states(model, 1...2) == [.sent, .sent])
    }

    @Test func `an error before a subscription is not its answer`() throws {
        let model = try PusherModel.connected()
        _ = model.error(nil)
        _ = model.error(4200)
        _ = try model.subscribe("private-a")
        _ = model.authorize()
        #expect(model.session.channelState(1) == .sent)
    }

    @Test func `errors of one connection do not count on the next`() throws {
        let model = try waiting("private-a", "private-b")
        _ = model.error(nil)
        _ = model.end(after: .seconds(5))
        _ = try model.pass()
        _ = try model.establish("2.2")
        #expect(model.authorize().count == 4)
        _ = model.error(nil)
        #expect(states(model, 1...2) == [.sent, .sent])
    }

    // MARK: Subscribing again

    @Test func `unsubscribe and subscribe send again after an error that may mean the channel`()
        throws
    {
        let model = try waiting("private-a", "private-b")
        _ = model.error(4009)
        #expect(model.unsubscribe(1) == [])
        let (id, done) = try model.subscribe("private-a")
        #expect(done == ["send ping"])
        #expect(model.pong() == ["\(id) authorizing", "authorize private-a for 1.1"])
        #expect(model.authorize() == ["\(id) sent", "send subscribe private-a with KEY:1"])
        // The error was taken for the first subscription, so this one has not failed the second.
        #expect(model.succeed("private-a").last == "\(id) ready")
        #expect(model.session.channelState(2) == .sent)
    }

    @Test func `a channel that is undone counts as unanswered`() throws {
        let model = try waiting("private-a", "private-b")
        _ = model.unsubscribe(1)
        #expect(model.error(nil).count == 2)
        #expect(
            model.succeed("private-a") == [
                "send unsubscribe private-a", "2 failed", "event pusher:subscription_error on 2",
                "2 refused auth",
            ])
    }

    // MARK: Silence

    @Test(arguments: ["chat", "private-a"])
    func `a subscription that the server does not answer fails after 30 s`(name: String) throws {
        let model = try waiting(name)
        #expect(model.wait == .seconds(30))
        #expect(model.pass(.milliseconds(29_999)) == [])
        #expect(
            try model.pass() == [
                "1 failed", "event pusher:subscription_error on 1", "1 refused timeout",
            ])
        #expect(model.failure?.error.message.contains("has not answered") == true)
        #expect(model.failure?.error.message.contains("30 s") == true)
        #expect(model.session.state == .connected)
        #expect(try model.again(1, name).count == 2)
    }

    @Test func `an answer after that time counts`() throws {
        let model = try waiting("chat")
        _ = model.pass(.seconds(40))
        #expect(model.session.channelState(1) == .failed)
        #expect(model.succeed("chat").last == "1 ready")
    }

    @Test func `the failure quotes an error that may have been the answer`() throws {
        let model = try waiting("private-a")
        _ = model.pass(.seconds(10))
        _ = try model.subscribe("private-b")
        _ = model.authorize()
        _ = model.error(nil)
        _ = model.pass(.seconds(20))
        #expect(states(model, 1...2) == [.failed, .sent])
        #expect(model.failure?.error.code == .timeout)
        #expect(model.failure?.error.message.hasSuffix(": words") == true)
        // The error was taken for the first, so the second has no answer yet.
        #expect(model.error(nil).last == "2 refused auth")
    }

    @Test(arguments: [false, true])
    func `a channel that is subscribed again and not answered fails once`(isReconnected: Bool)
        throws
    {
        let model = try PusherModel.connected()
        var (id, _) = try model.subscribe("chat")
        if isReconnected {
            _ = model.end(after: .seconds(5))
            _ = try model.pass()
            _ = try model.establish("2.2")
        }
        for _ in 0..<2 {
            _ = model.pass(.seconds(10))
            _ = model.unsubscribe(id)
            id = try model.subscribe("chat").id
            #expect(model.pong().last == "send subscribe chat")
        }
        #expect(model.pass(.milliseconds(29_999)) == [])
        #expect(model.pass(.seconds(60)).filter { $0.hasSuffix("timeout") }.count == 1)
        #expect(model.session.channelState(id) == .failed)
    }

    @Test func `an undone subscription is forgotten, and its late success undone`() throws {
        let model = try waiting("chat")
        _ = model.unsubscribe(1)
        #expect(model.pass(.seconds(30)) == [])
        #expect(try model.subscribe("chat").done == ["2 sent", "send subscribe chat"])
        _ = model.pass(.seconds(30))
        _ = model.unsubscribe(2)
        #expect(model.succeed("chat") == ["send unsubscribe chat"])
    }

    @Test func `the time of a pause does not count, as the answer may wait unread`() throws {
        let model = try waiting("chat")
        _ = model.signIn()
        _ = model.authorizeUser()
        model.session.setPaused(true, now: model.now)
        #expect(model.pass(.seconds(100)) == [])
        model.session.setPaused(false, now: model.now)
        #expect(model.pass(.milliseconds(29_999)) == [])
        #expect(model.pass(.milliseconds(1)).filter { $0.hasSuffix("timeout") }.count == 2)
    }
}
