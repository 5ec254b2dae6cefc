import Session
import Testing
import Wire

struct DDPAccountTests {
    private let user = #"{"id":"u","token":"T"}"#

    /// A client whose user is logged in, by its first call.
    private func loggedIn() -> DDPModel {
        let model = DDPModel.connected()
        model.logIn()
        model.result(1, user)
        model.updated(1)
        _ = model.done()
        return model
    }

    @Test func aLoginIsReportedAndItsTokenKept() {
        let model = DDPModel.connected()
        model.logIn()
        #expect(model.done() == ["logging in", #"> method 1 login [{"resume":"old"}]"#])
        model.result(1, user)
        #expect(model.done() == [#"result 1 {"id":"u","token":"T"}"#])
        #expect(model.session.userID == nil)
        model.updated(1)
        #expect(
            model.done() == [
                "user u", "store T", "logged in or not", #"done 1 {"id":"u","token":"T"}"#,
            ])
        #expect(model.session.userID == "u")
    }

    @Test func aFailedLoginLeavesAnEarlierOne() {
        let model = loggedIn()
        model.logIn()
        model.refuse(2)
        model.updated(2)
        #expect(model.done().suffix(3) == ["result 2 403", "logged in or not", "done 2 403"])
        #expect(model.session.userID == "u")
        #expect(model.reopen().contains(#"> method 3 login [{"resume":"T"}]"#))
    }

    /// Also if the login is that of a new connection.
    @Test(arguments: ["null", #"{"token":"T"}"#, #"{"id":7,"token":"T"}"#])
    func aLoginThatNamesNoUserFails(result: String) {
        let model = DDPModel.connected()
        model.logIn()
        model.result(1, result)
        model.updated(1)
        #expect(
            model.done().suffix(3) == ["result 1 no-user", "logged in or not", "done 1 no-user"])
        #expect(model.session.userID == nil)
        let known = loggedIn()
        _ = known.reopen()
        known.result(2, result)
        known.updated(2)
        #expect(known.session.userID == nil)
        #expect(!known.reopen().contains { $0.contains("login") })
    }

    @Test func aLoginIsABarrier() {
        let model = DDPModel.connected()
        model.call("before")
        model.logIn()
        model.call("after")
        _ = model.subscribe("mine")
        #expect(model.done() == ["> method 1 before []", "logging in", "> sub s1 mine []"])
        model.result(1)
        model.updated(1)
        #expect(model.done().last == #"> method 2 login [{"resume":"old"}]"#)
        model.result(2, user)
        model.updated(2)
        #expect(model.done().last == "> method 3 after []")
    }

    @Test func aNewConnectionLogsInBeforeAnythingElse() {
        let model = loggedIn()
        model.call("m")
        _ = model.subscribe("mine")
        _ = model.done()
        #expect(
            model.reopen() == [
                "> connect 1 S 3", #"> method 3 login [{"resume":"T"}]"#, "> sub s1 mine []",
            ])
        model.confirm("T")
        model.result(3, user)
        model.updated(3)
        // Nobody notices: the user was shown as logged in all the time.
        let lines = model.done()
        #expect(!lines.contains { $0.hasPrefix("user") || $0.hasPrefix("logg") })
        #expect(lines.last == "> method 2 m []")
    }

    @Test func aLoginBetweenItsResultAndItsDocumentsEndsWithTheNext() {
        let model = DDPModel.connected()
        model.logIn()
        model.result(1, user)
        _ = model.done()
        #expect(model.reopen() == ["> connect 1 S 2", #"> method 2 login [{"resume":"T"}]"#])
        model.confirm("T")
        model.result(2, #"{"id":"u","token":"newer"}"#)
        model.updated(2)
        let lines = model.done()
        #expect(lines.filter { $0.hasPrefix("done 1") } == [#"done 1 {"id":"u","token":"newer"}"#])
        #expect(lines.contains("store newer"))
        #expect(model.session.userID == "u")
    }

    @Test func aLoginWithoutAResultIsSentAgain() {
        let model = DDPModel.connected()
        model.logIn()
        _ = model.done()
        #expect(model.reopen() == ["> connect 1 S 1", #"> method 1 login [{"resume":"old"}]"#])
    }

    @Test(arguments: [(89_999, true), (100_000, false)])
    func aTokenThatSoonExpiresIsNotUsed(left: Int64, isForgotten: Bool) {
        // A tenth of its life must be left.
        let token = DDPLoginToken(
            userID: "u", token: "T", expires: 1_700_000_000_000 + left, life: 900_000)
        let model = DDPModel(token: token)
        #expect(model.session.userID == "u")
        model.session.connect(now: model.now)
        _ = model.done()
        model.open()
        #expect(
            model.done()
                == (isForgotten
                    ? ["> connect 1", "forget", "resume failed token-expired", "user none"]
                    : ["> connect 1", #"> method 1 login [{"resume":"T"}]"#]))
    }

    @Test func aRefusedTokenLogsOut() {
        let model = loggedIn()
        _ = model.reopen()
        model.confirm("T")
        model.refuse(2)
        model.updated(2)
        #expect(
            model.done() == [
                "connected", "result 2 403", "forget", "resume failed 403", "user none",
                "done 2 403",
            ])
        #expect(model.reopen() == ["> connect 1 T 3"])
    }

    @Test func tooManyLoginsAreRepeatedLater() {
        let model = loggedIn()
        _ = model.reopen()
        model.confirm("T")
        model.refuse(2, #"{"error":"too-many-requests","details":{"timeToReset":4000}}"#)
        model.updated(2)
        _ = model.done()
        #expect(model.session.userID == "u")
        model.pass(.milliseconds(3999))
        #expect(model.done() == [])
        model.pass(.milliseconds(1))
        #expect(model.done() == [#"> method 3 login [{"resume":"T"}]"#])
    }

    /// Connected anew, with a login that the server puts off; it falls due while `call` is in
    /// flight, and waits for its end.
    private func putOff(until call: (DDPModel) -> Void) -> DDPModel {
        let model = loggedIn()
        _ = model.reopen()
        model.confirm("T")
        model.refuse(2, #"{"error":"too-many-requests","details":{"timeToReset":4000}}"#)
        model.updated(2)
        call(model)
        _ = model.done()
        model.pass(.seconds(4))
        #expect(model.done() == [])
        return model
    }

    /// It would bring the user back.
    @Test func aLoginThatWasPutOffDoesNotFollowALogout() {
        let model = putOff { _ = $0.session.logOut(now: $0.now) }
        model.result(3, "null")
        model.updated(3)
        #expect(model.done() == ["result 3 null", "forget", "user none", "done 3 null"])
        model.pass(.seconds(60))
        #expect(!model.done().contains { $0.contains(" login ") })
        #expect(!model.reopen().contains { $0.contains(" login ") })
        #expect(model.session.userID == nil)
    }

    @Test func aLoginThatWasPutOffDoesNotFollowThatOfAnotherUser() {
        let model = putOff { $0.logIn() }
        model.result(3, #"{"id":"bob","token":"B"}"#)
        model.updated(3)
        let done = model.done()
        #expect(done.contains("user bob") && done.contains("store B"))
        #expect(!done.contains { $0.contains(" login ") })
        model.pass(.seconds(60))
        #expect(!model.done().contains { $0.contains(" login ") })
        #expect(model.session.userID == "bob")
        #expect(model.reopen().contains { $0.hasSuffix(#" login [{"resume":"B"}]"#) })
    }

    @Test(arguments: [true, false])
    func aLoginThatWasPutOffFollowsACallThatFails(isLogout: Bool) {
        let model = putOff {
            if isLogout { _ = $0.session.logOut(now: $0.now) } else { $0.logIn() }
        }
        model.refuse(3)
        model.updated(3)
        #expect(model.done().last == #"> method 4 login [{"resume":"T"}]"#)
        #expect(model.session.userID == "u")
    }

    /// A login whose connection was lost after its result is completed with that of the next
    /// connection, which the server puts off until the program has logged in again.
    @Test func aLoginWithoutItsConnectionEndsAlthoughTheNextWasPutOff() {
        let model = DDPModel.connected()
        model.logIn()
        model.result(1, user)
        _ = model.reopen()
        model.confirm("T")
        model.refuse(2, #"{"error":"too-many-requests","details":{"timeToReset":4000}}"#)
        model.updated(2)
        model.logIn()
        model.pass(.seconds(4))
        model.result(3, #"{"id":"bob","token":"B"}"#)
        model.updated(3)
        #expect(model.done().last == #"> method 5 login [{"resume":"B"}]"#)
        model.result(5, #"{"id":"bob","token":"B"}"#)
        model.updated(5)
        #expect(model.done().contains { $0.hasPrefix("done 1 ") })
    }

    @Test(arguments: ["{}", #"{"timeToReset":-5}"#, #"{"timeToReset":"x"}"#, #"{"timeToReset":1}"#])
    func aServerThatDoesNotSayWhenIsNotAskedAtOnce(_ details: String) {
        let model = loggedIn()
        _ = model.reopen()
        model.confirm("T")
        model.refuse(2, #"{"error":"too-many-requests","details":\#(details)}"#)
        model.updated(2)
        _ = model.done()
        model.pass(.milliseconds(999))
        #expect(model.done() == [])
        model.pass(.milliseconds(1))
        #expect(model.done() == [#"> method 3 login [{"resume":"T"}]"#])
    }

    /// Another process may have logged in, and stored its token, since this one was read.
    @Test func aNewerTokenOutlivesTheRefusalOfTheOlder() throws {
        let model = loggedIn()
        _ = model.reopen()
        let newer = try #require(DDPLoginToken(text: #"{"userId":"u","token":"N","life":1}"#))
        model.session.useToken(newer, now: model.now)
        model.confirm("S2")
        model.refuse(2)
        model.updated(2)
        #expect(!model.done().contains("forget"))
        #expect(model.session.userID == "u")
        #expect(model.reopen().contains(#"> method 3 login [{"resume":"N"}]"#))
    }

    /// Swift considers the Kelvin sign equal to the letter.
    @Test func usersAndTokensAreComparedByBytes() throws {
        let tokens = try ["K", "\u{212A}"].flatMap { user in
            try ["K", "\u{212A}"].map {
                let text = #"{"userId":"\#(user)","token":"\#($0)","life":1}"#
                return try #require(DDPLoginToken(text: text))
            }
        }
        for (first, token) in tokens.enumerated() {
            for (second, other) in tokens.enumerated() {
                #expect((token == other) == (first == second))
            }
        }
        let model = DDPModel.connected()
        model.session.setUserID("K", now: model.now)
        model.session.setUserID("\u{212A}", now: model.now)
        #expect(model.done().filter { $0.hasPrefix("user ") }.count == 2)
    }

    /// The login of a user, which replaces that of another one whose token is kept, loses its
    /// connection after its result, and before it is completed.
    @Test func aLoginThatIsNotKeptYetIsTheNewest() throws {
        let kept = try #require(DDPLoginToken(text: #"{"userId":"ada","token":"A","life":1}"#))
        let model = DDPModel(token: kept)
        model.connect()
        model.result(1, #"{"id":"ada","token":"A"}"#)
        model.updated(1)
        model.logIn()
        model.result(2, #"{"id":"bob","token":"B"}"#)
        _ = model.done()
        model.lose()
        model.session.connect(now: model.now)
        _ = model.done()
        model.session.useToken(kept, now: model.now)
        model.open()
        #expect(model.done().contains(#"> method 3 login [{"resume":"B"}]"#))
        model.confirm("T")
        model.result(3, #"{"id":"bob","token":"B"}"#)
        model.updated(2, 3)
        let done = model.done()
        #expect(done.contains("user bob") && done.contains("store B"))
        #expect(done.contains(#"done 2 {"id":"bob","token":"B"}"#))
    }

    /// A driver whose file was locked, for example.
    @Test func aTokenThatCouldNotBeKeptIsUsed() {
        let model = DDPModel.connected()
        model.logIn()
        model.result(1, user)
        model.updated(1)
        while model.session.nextAction() != nil {}
        model.session.useToken(nil, now: model.now)
        #expect(model.session.userID == "u")
        #expect(model.reopen().contains(#"> method 2 login [{"resume":"T"}]"#))
    }

    /// Another client on the same file.
    @Test func anotherClientLogsTheUserOut() {
        let model = loggedIn()
        model.lose()
        model.session.connect(now: model.now)
        _ = model.done()
        model.session.useToken(nil, now: model.now)
        model.open()
        #expect(model.done() == ["user none", "> connect 1 S 3"])
        #expect(model.session.userID == nil)
    }

    @Test func aLogoutForgetsTheUser() {
        let model = loggedIn()
        _ = model.session.logOut(now: model.now)
        #expect(model.done() == ["> method 2 logout []"])
        model.result(2, "null")
        model.updated(2)
        #expect(model.done() == ["result 2 null", "forget", "user none", "done 2 null"])
        #expect(model.reopen() == ["> connect 1 S 5"])
    }

    @Test func aFailedLogoutChangesNothing() {
        let model = loggedIn()
        _ = model.session.logOut(now: model.now)
        model.refuse(2)
        model.updated(2)
        _ = model.done()
        #expect(model.session.userID == "u")
        #expect(model.reopen().last == #"> method 3 login [{"resume":"T"}]"#)
    }

    @Test func aNewTokenOfAnotherUserIsNotUsed() {
        let model = loggedIn()
        _ = model.session.logOutOthers(now: model.now)
        model.result(2, #"{"id":"v","token":"theirs"}"#)
        model.updated(2)
        #expect(!model.done().contains("store theirs"))
        #expect(model.reopen().contains(#"> method 4 login [{"resume":"T"}]"#))
    }

    @Test func loggingOthersOutKeepsThisClientLoggedIn() {
        let model = loggedIn()
        _ = model.session.logOutOthers(now: model.now)
        #expect(model.done() == ["> method 2 getNewToken []"])
        model.result(2, #"{"id":"u","token":"newer"}"#)
        model.updated(2)
        #expect(model.done().last == "> method 3 removeOtherTokens []")
        #expect(model.reopen().contains(#"> method 4 login [{"resume":"newer"}]"#))
    }
}
