import Session
import Testing
import Wire

/// The sign-in of the user, the user's events, and the watchlist.
struct PusherUserTests {
    private func signedIn() throws -> PusherModel {
        let model = try PusherModel.connected()
        _ = model.signIn()
        _ = model.authorizeUser()
        _ = model.confirmUser()
        try #require(model.session.userID == "u-1")
        return model
    }

    @Test func `a sign-in is authorized, sent, and confirmed by the server`() throws {
        let model = try PusherModel.connected()
        #expect(model.signIn() == ["authorize user for 1.1"])
        #expect(model.signIn() == [])
        #expect(model.authorizeUser() == ["send signin with KEY:2"])
        #expect(model.session.userID == nil)
        #expect(
            model.confirmUser() == [
                "event pusher:signin_success", "signed in u-1",
                "send subscribe #server-to-user-u-1",
            ])
        #expect(model.signIn() == [])
    }

    /// Unchecked because one thread uses it.
    private final class Call: PusherSignInCall, @unchecked Sendable {
        private(set) var results: [String] = []

        func answered(_ failure: PusherSubscriptionFailure?) {
            results.append(failure.map { "\($0.error.code)" } ?? "ok")
        }
    }

    @Test func `calls get the next result, after the report of the sign-in`() throws {
        let model = try PusherModel.connected()
        let calls = (0..<4).map { _ in Call() }
        _ = model.signIn(calls[0])
        _ = model.signIn(calls[1])
        #expect(model.refuse().suffix(2) == ["sign-in failed auth", "2 answered auth"])
        _ = model.signIn(calls[2])
        _ = model.authorizeUser()
        #expect(
            model.confirmUser() == [
                "event pusher:signin_success", "signed in u-1", "1 answered ok",
                "send subscribe #server-to-user-u-1",
            ])
        #expect(model.signIn(calls[3]) == ["1 answered ok"])
        #expect(calls.map { $0.results } == [["auth"], ["auth"], ["ok"], ["ok"]])
    }

    @Test func `signing out answers the calls that wait`() throws {
        let model = try PusherModel.connected()
        let (first, second) = (Call(), Call())
        _ = model.signIn(first)
        #expect(model.signOut() == ["cancel", "sign-in failed cancelled", "1 answered cancelled"])
        #expect(model.signIn(second) == ["authorize user for 1.1"])
        #expect(first.results == ["cancelled"] && second.results == [])
    }

    /// A call before there was a connection waits for one, and so does one that another attempt
    /// follows.
    @Test func `calls fail when no attempt follows`() throws {
        let model = try PusherModel()
        let (first, second) = (Call(), Call())
        #expect(model.signIn(first) == [])
        _ = model.connect()
        #expect(model.end(1006).contains { $0.contains("reconnecting") })
        #expect(first.results == [])
        #expect(model.disconnect() == ["reconnecting → disconnected", "1 answered closed"])
        #expect(model.signIn(second) == [])
        _ = model.connect()
        #expect(model.end(4001).last == "1 answered connectionLost")
        #expect(first.results == ["closed"] && second.results == ["connectionLost"])
    }

    @Test func `calls survive a connection that ends and is made again at once`() throws {
        let model = try PusherModel()
        let (first, second) = (Call(), Call())
        _ = model.signIn(first)
        _ = model.connect()
        model.session.disconnect(now: model.now)
        // Made after the end, so this one waits for the next connection.
        model.session.signIn(second, now: model.now)
        #expect(model.connect().allSatisfy { !$0.contains("answered") })
        model.session.disconnect(now: model.now)
        #expect(model.done().last == "2 answered closed")
        _ = model.signIn(first)
        _ = model.connect()
        model.session.disconnect(now: model.now)
        model.session.signIn(second, now: model.now)
        #expect(model.done().last == "1 answered closed")
        #expect(first.results == ["closed", "closed"] && second.results == ["closed"])
    }

    @Test func `the data of the confirmation may be an object`() throws {
        let model = try PusherModel.connected()
        _ = model.signIn()
        _ = model.authorizeUser()
        let text = #"{"event":"pusher:signin_success","data":{"user_data":"{\"id\":\"u-1\"}"}}"#
        #expect(model.receive(text).contains("signed in u-1"))
    }

    @Test func `a sign-in before there is a connection follows with it, and with each later one`()
        throws
    {
        let model = try PusherModel()
        #expect(model.signIn() == [])
        #expect(try model.establish().last == "authorize user for 1.1")
        _ = model.authorizeUser()
        _ = model.confirmUser()
        #expect(
            model.end(after: .seconds(5)) == ["signed out", "connected → reconnecting in 0 s"])
        #expect(model.session.userID == nil)
        _ = try model.pass()
        #expect(try model.establish("2.2").last == "authorize user for 2.2")
    }

    @Test(arguments: ["{}", #"{"user_data":"{}"}"#, #"{"user_data":"{\"id\":7}"}"#, "null"])
    func `a confirmation without a user id is a failure`(data: String) throws {
        let model = try PusherModel.connected()
        _ = model.signIn()
        _ = model.authorizeUser()
        #expect(
            model.receive(#"{"event":"pusher:signin_success","data":\#(data)}"#) == [
                "event pusher:signin_success", "event pusher:signin_error",
                "sign-in failed protocolViolation",
            ])
    }

    @Test func `the endpoint refuses the user`() throws {
        let model = try PusherModel.connected()
        _ = model.signIn()
        #expect(
            model.refuse(.auth, status: 403, body: "no") == [
                "event pusher:signin_error", "sign-in failed auth",
            ])
        #expect(model.failure?.status == 403)
        #expect(model.signIn() == ["authorize user for 1.1"])
    }

    @Test(arguments: [nil, 4009, 4200])
    func `the server refuses the user with an error`(code: Int?) throws {
        let model = try PusherModel.connected()
        _ = model.signIn()
        _ = model.authorizeUser()
        #expect(
            model.error(code).suffix(2) == ["event pusher:signin_error", "sign-in failed auth"])
    }

    @Test func `an error that may concern a channel does not refuse the user`() throws {
        let model = try PusherModel.connected()
        _ = model.signIn()
        _ = model.authorizeUser()
        _ = try model.subscribe("private-a")
        _ = model.authorize()
        #expect(model.error(4009).count == 2)
        #expect(model.session.channelState(1) == .sent)
    }

    @Test func `an error about the watchlist does not refuse the user`() throws {
        let model = try PusherModel.connected()
        _ = model.signIn()
        _ = model.authorizeUser()
        #expect(model.error(4302).count == 2)
        #expect(model.confirmUser().contains("signed in u-1"))
    }

    @Test func `a server that does not answer the sign-in refuses it after 30 s`() throws {
        let model = try PusherModel.connected()
        _ = model.signIn()
        _ = model.authorizeUser()
        #expect(model.wait == .seconds(30))
        #expect(try model.pass() == ["event pusher:signin_error", "sign-in failed timeout"])
    }

    @Test(arguments: [nil, 4009, 4200])
    func `a sign-in that is confirmed after an ambiguous error counts`(code: Int?) throws {
        let model = try PusherModel.connected()
        _ = model.signIn()
        _ = model.authorizeUser()
        _ = model.error(code)
        #expect(model.confirmUser().contains("signed in u-1"))
        #expect(model.session.userID == "u-1")
        #expect(model.confirmUser() == ["event pusher:signin_success"])
    }

    @Test func `a sign-in that is confirmed while it is repeated counts`() throws {
        let model = try PusherModel.connected()
        _ = model.signIn()
        _ = model.authorizeUser()
        _ = model.error(nil)
        #expect(model.signIn() == ["authorize user for 1.1"])
        let done = model.confirmUser()
        #expect(done.contains("cancel") && done.contains("signed in u-1"))
    }

    @Test func `a confirmation that nobody asked for is ignored`() throws {
        let model = try PusherModel.connected()
        #expect(model.confirmUser() == ["event pusher:signin_success"])
        _ = model.signIn()
        #expect(model.confirmUser() == ["event pusher:signin_success"])
        #expect(model.session.userID == nil)
    }

    @Test func `events of the user are for the user's handlers only`() throws {
        let model = try signedIn()
        let channel = "#server-to-user-u-1"
        #expect(model.succeed(channel) == [])
        #expect(model.event("hello", channel) == ["user event hello"])
        #expect(model.event("pusher:hidden", channel) == [])
        #expect(model.event("pusher_internal:hidden", channel) == [])
        #expect(model.event("hello", "#server-to-user-u-2") == [])
    }

    @Test func `watchlist events come one by one`() throws {
        let model = try signedIn()
        let data =
            #"{\"events\":[{\"name\":\"online\",\"user_ids\":[\"u-3\",4]},{\"name\":\"offline\","#
            + #"\"user_ids\":[]}]}"#
        #expect(
            model.receive(#"{"event":"pusher_internal:watchlist_events","data":"\#(data)"}"#) == [
                "watchlist online u-3,4", "watchlist offline ",
            ])
    }

    @Test func `bare watchlist events are the same`() throws {
        let model = try signedIn()
        #expect(
            model.receive(#"{"event":"online","data":{"user_ids":["u-3"]}}"#) == [
                "watchlist online u-3"
            ])
        #expect(model.receive(#"{"event":"online","data":{}}"#) == ["deliver"])
    }

    @Test func `signing out ends the user's events`() throws {
        let model = try signedIn()
        _ = model.succeed("#server-to-user-u-1")
        #expect(model.signOut() == ["send unsubscribe #server-to-user-u-1", "signed out"])
        #expect(model.event("hello", "#server-to-user-u-1") == [])
        _ = model.end(after: .seconds(5))
        _ = try model.pass()
        #expect(try model.establish() == ["connecting → connected"])
    }

    @Test func `signing out before the user's channel is subscribed undoes that later`() throws {
        let model = try signedIn()
        #expect(model.signOut() == ["signed out"])
        #expect(
            model.succeed("#server-to-user-u-1") == ["send unsubscribe #server-to-user-u-1"])
    }

    /// The server confirms both sign-ins. It may refuse a second subscription of one channel.
    @Test func `signing in again takes back what was to be undone`() throws {
        let model = try signedIn()
        let channel = "#server-to-user-u-1"
        _ = model.signOut()
        _ = model.signIn()
        _ = model.authorizeUser()
        #expect(
            model.confirmUser() == ["event pusher:signin_success", "signed in u-1", "send ping"])
        #expect(model.succeed(channel) == [])
        #expect(model.event("hello", channel) == ["user event hello"])
        #expect(model.signOut() == ["send unsubscribe \(channel)", "signed out"])
        _ = model.signIn()
        _ = model.authorizeUser()
        #expect(model.confirmUser().last == "send subscribe \(channel)")
    }

    @Test func `the channel of the user is subscribed again after another user's`() throws {
        let model = try signedIn()
        _ = model.signOut()
        _ = model.signIn()
        _ = model.authorizeUser(second)
        #expect(model.confirmUser("u-2").last == "send subscribe #server-to-user-u-2")
        #expect(model.succeed("#server-to-user-u-1") == ["send unsubscribe #server-to-user-u-1"])
        _ = model.signOut()
        _ = model.signIn()
        _ = model.authorizeUser()
        #expect(model.confirmUser().last == "send subscribe #server-to-user-u-1")
    }

    @Test(arguments: [true, false])
    func `the channel of the user is subscribed again after a refusal, or no answer`(
        isRefused: Bool
    ) throws {
        let model = try signedIn()
        let channel = "#server-to-user-u-1"
        if isRefused {
            _ = model.event("pusher:subscription_error", channel, data: "{}")
        } else {
            _ = model.pass(.seconds(30))
        }
        _ = model.signOut()
        _ = model.signIn()
        _ = model.authorizeUser()
        #expect(model.confirmUser().last == "send subscribe \(channel)")
    }

    @Test func `signing out cancels the request`() throws {
        let model = try PusherModel.connected()
        _ = model.signIn()
        #expect(model.signOut() == ["cancel", "sign-in failed cancelled"])
        #expect(model.authorizeUser() == [])
        #expect(model.signOut() == [])
    }

    @Test func `signing out ends a sign-in that waits for a connection`() throws {
        let model = try PusherModel()
        _ = model.signIn()
        #expect(model.signOut() == ["sign-in failed cancelled"])
        #expect(try model.establish() == ["connecting → connected"])
    }

    @Test func `signing out ends a sign-in that the server has not answered`() throws {
        let model = try PusherModel.connected()
        _ = model.signIn()
        _ = model.authorizeUser()
        #expect(model.signOut() == ["sign-in failed cancelled"])
        #expect(model.confirmUser() == ["event pusher:signin_success"])
        #expect(model.session.userID == nil)
    }

    // MARK: Another user

    private let second = #"{"id":"u-2"}"#

    /// The first user was signed out before the server confirmed it.
    @Test func `only the user of the last sign-in is confirmed`() throws {
        let model = try PusherModel.connected()
        _ = model.signIn()
        _ = model.authorizeUser()
        _ = model.signOut()
        _ = model.signIn()
        #expect(model.confirmUser("u-1") == ["event pusher:signin_success"])
        #expect(model.authorizeUser(second) == ["send signin with KEY:2"])
        #expect(model.confirmUser("u-1") == ["event pusher:signin_success"])
        #expect(model.session.userID == nil)
        #expect(
            model.confirmUser("u-2") == [
                "event pusher:signin_success", "signed in u-2",
                "send subscribe #server-to-user-u-2",
            ])
        #expect(model.confirmUser("u-1") == ["event pusher:signin_success"])
        #expect(model.session.userID == "u-2")
    }

    @Test func `a sign-in that is repeated for another user is not confirmed by the first`() throws
    {
        let model = try PusherModel.connected()
        _ = model.signIn()
        _ = model.authorizeUser()
        _ = try model.pass()
        _ = model.signIn()
        _ = model.authorizeUser(second)
        #expect(model.confirmUser("u-1") == ["event pusher:signin_success"])
        #expect(try model.pass() == ["event pusher:signin_error", "sign-in failed timeout"])
        #expect(model.confirmUser("u-2").contains("signed in u-2"))
    }

    @Test func `ids are compared byte for byte`() throws {
        let model = try PusherModel.connected()
        _ = model.signIn()
        _ = model.authorizeUser(#"{"id":"Zo\u00eb"}"#)
        #expect(model.confirmUser("Zoe\u{308}") == ["event pusher:signin_success"])
        #expect(model.confirmUser("Zo\u{eb}").contains("signed in Zo\u{eb}"))
    }

    @Test(arguments: ["", "u-1", "null", "{}", #"{"id":7}"#, #"{"id":""}"#, #"{"id":null}"#])
    func `user data without an id fail, and are not sent`(data: String) throws {
        let model = try PusherModel.connected()
        _ = model.signIn()
        #expect(
            model.authorizeUser(data) == ["event pusher:signin_error", "sign-in failed auth"])
        #expect(model.failure?.error.message.contains(#""id""#) == true)
        #expect(model.confirmUser() == ["event pusher:signin_success"])
    }

    @Test func `a confirmation without a user id fails only a sign-in that awaits one`() throws {
        let model = try PusherModel.connected()
        _ = model.signIn()
        _ = model.authorizeUser()
        _ = try model.pass()
        let text = #"{"event":"pusher:signin_success","data":{}}"#
        #expect(model.receive(text) == ["event pusher:signin_success"])
        _ = model.signIn()
        #expect(model.receive(text) == ["event pusher:signin_success"])
        #expect(model.authorizeUser() == ["send signin with KEY:2"])
    }
}
