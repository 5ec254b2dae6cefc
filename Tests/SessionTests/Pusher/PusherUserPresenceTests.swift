import Session
import Testing
import Wire

/// Presence channels whose authorization has no channel data, so that they need the signed-in user.
struct PusherUserPresenceTests {
    @Test func `a presence channel without channel data waits for the user`() throws {
        let model = try PusherModel.connected()
        _ = model.signIn()
        let user = try #require(model.request)
        _ = try model.subscribe("presence-lobby")
        #expect(model.authorize() == [])
        #expect(model.session.channelState(1) == .authorizing)
        _ = model.authorizeUser(to: user)
        #expect(
            model.confirmUser().suffix(2) == [
                "1 sent", "send subscribe presence-lobby with KEY:1",
            ])
        _ = model.succeed("presence-lobby")
        #expect(model.members?.myID == "u-1")
    }

    @Test func `a presence channel that waits for the user fails with the sign-in`() throws {
        let model = try PusherModel.connected()
        _ = model.signIn()
        let user = try #require(model.request)
        _ = try model.subscribe("presence-lobby")
        _ = model.authorize()
        #expect(
            model.answer(.failed(RealtimeError(.auth, "no")), user).suffix(3) == [
                "1 failed", "event pusher:subscription_error on 1", "1 refused auth",
            ])
    }

    @Test func `a presence channel without channel data and user fails`() throws {
        let model = try PusherModel.connected()
        _ = try model.subscribe("presence-lobby")
        #expect(model.authorize().last == "1 refused auth")
    }

    @Test func `a drop while a channel waits for the user starts both again`() throws {
        let model = try PusherModel.connected()
        _ = model.signIn()
        _ = try model.subscribe("presence-lobby")
        _ = model.authorize()
        _ = model.end(after: .seconds(5))
        _ = try model.pass()
        #expect(
            try model.establish("2.2").filter { $0.hasPrefix("authorize") } == [
                "authorize user for 2.2", "authorize presence-lobby for 2.2",
            ])
    }

    @Test func `an authorization that waits for the user is not used on another socket`() throws {
        let model = try PusherModel.connected()
        _ = model.signIn()
        _ = try model.subscribe("presence-lobby")
        _ = model.authorize()
        // The server confirms a subscription that was not sent.
        _ = model.succeed("presence-lobby")
        _ = model.end(after: .seconds(5))
        _ = try model.pass()
        #expect(
            try model.establish("2.2").filter { $0.contains("presence-lobby") } == [
                "authorize presence-lobby for 2.2"
            ])
    }

    /// - Returns: what is done when the channel has failed, because the sign-in has.
    private func failed(_ model: PusherModel) throws -> [String] {
        _ = model.signIn()
        let user = try #require(model.request)
        _ = try model.subscribe("presence-lobby")
        _ = model.authorize()
        _ = model.authorizeUser(to: user)
        return try model.pass()
    }

    @Test func `a presence channel that has failed without a user is subscribed by a late one`()
        throws
    {
        let model = try PusherModel.connected()
        #expect(try failed(model).last == "1 refused timeout")
        #expect(
            model.confirmUser() == [
                "event pusher:signin_success", "signed in u-1",
                "send subscribe #server-to-user-u-1", "1 sent",
                "send subscribe presence-lobby with KEY:1",
            ])
        _ = model.succeed("presence-lobby")
        #expect(model.members?.myID == "u-1")
    }

    @Test func `a presence channel that has failed before the sign-in is subscribed by it`() throws
    {
        let model = try PusherModel.connected()
        _ = try model.subscribe("presence-lobby")
        #expect(model.authorize().last == "1 refused auth")
        _ = model.signIn()
        _ = model.authorizeUser()
        #expect(model.confirmUser().last == "send subscribe presence-lobby with KEY:1")
    }

    @Test func `a presence channel that has failed otherwise is not subscribed by the user`() throws
    {
        let model = try PusherModel.connected()
        _ = try model.subscribe("presence-lobby")
        _ = model.refuse()
        _ = model.signIn()
        _ = model.authorizeUser()
        #expect(model.confirmUser().last == "send subscribe #server-to-user-u-1")
    }

    @Test func `a presence channel that is tried again gets a new authorization`() throws {
        let model = try PusherModel.connected()
        _ = try failed(model)
        #expect(
            try model.again(1, "presence-lobby") == [
                "1 authorizing", "authorize presence-lobby for 1.1",
            ])
        #expect(model.confirmUser().last == "send subscribe #server-to-user-u-1")
        #expect(model.authorize("KEY:3").last == "send subscribe presence-lobby with KEY:3")
    }

    @Test func `the authorization for a user who is signed out is not used for another`() throws {
        let model = try PusherModel.connected()
        _ = try failed(model)
        _ = model.signOut()
        _ = model.signIn()
        _ = model.authorizeUser(#"{"id":"u-2"}"#)
        #expect(model.confirmUser("u-2").last == "send subscribe #server-to-user-u-2")
        #expect(model.session.channelState(1) == .failed)
    }

    @Test func `a drop ends the wait of a presence channel that has failed`() throws {
        let model = try PusherModel.connected()
        _ = try failed(model)
        _ = model.end(after: .seconds(5))
        _ = try model.pass()
        #expect(
            try model.establish("2.2").filter { $0.hasPrefix("authorize") } == [
                "authorize user for 2.2", "authorize presence-lobby for 2.2",
            ])
    }

    @Test func `an unsubscribed channel is not subscribed by the user`() throws {
        let model = try PusherModel.connected()
        _ = try failed(model)
        _ = model.unsubscribe(1)
        #expect(model.confirmUser().last == "send subscribe #server-to-user-u-1")
    }
}
