import Session
import Testing
import Wire

/// B3 to B5: tokens, their refresh, and generations.
@Suite struct SpreadbotTokensTests {
    /// Until the first refresh is running.
    private func refused(
        _ change: (inout SpreadbotConfiguration) throws -> Void = { _ in }
    ) throws -> SpreadbotModel {
        let bot = try SpreadbotModel.withTokens(change)
        #expect(bot.establish() == ["attach ws with a"])
        #expect(bot.end(.httpStatus, status: 401) == ["failed httpStatus", "refresh r"])
        #expect(bot.session.phase == .auth && bot.wait == nil)
        return bot
    }

    @Test func aRefusedTokenIsRefreshedAndTheRetryIsNotCounted() throws {
        let bot = try refused()
        #expect(
            bot.refresh("b", "s") == [
                "credential Bearer b", "tokens b s", "refreshed ok", "attach ws with b",
            ])
        #expect(bot.end(.connect, reached: false) == ["failed connect 1 in 500 ms"])
        #expect(bot.session.accessToken == "b" && bot.session.refreshToken == "s")
    }

    @Test(arguments: [3000, 4401] as [UInt16]) func aCloseCodeRefusesATokenToo(
        _ code: UInt16
    ) throws {
        let bot = try SpreadbotModel.withTokens()
        try bot.connect()
        #expect(bot.end(close: code) == ["failed connectionLost", "refresh r"])
        #expect(bot.refresh("b").last == "attach ws with b")
    }

    @Test func aRefreshTokenThatIsNotReplacedStaysValid() throws {
        let bot = try refused()
        #expect(bot.refresh("b").contains("tokens b r"))
        _ = bot.open()
        #expect(bot.end(.httpStatus, status: 401, after: .seconds(10)).last == "refresh r")
    }

    @Test func aSecondRefusalWithFreshTokensIsFatal() throws {
        let bot = try refused()
        _ = bot.refresh("b")
        #expect(
            bot.end(.httpStatus, status: 401) == [
                "detach", "failed auth fatal", "transport none", "disconnected auth",
            ])
    }

    @Test func aServerThatAcceptsAndThenRefusesIsNotAskedForever() throws {
        let bot = try refused()
        _ = bot.refresh("b")
        _ = bot.open()
        #expect(bot.end(close: 4401).last == "disconnected auth")
    }

    @Test func tokensThatWorkedBrieflyAreRefreshedAfterADelay() throws {
        let bot = try refused()
        _ = bot.refresh("b0")
        for turn in 1..<5 {
            _ = bot.open()
            _ = bot.receive(nil)
            #expect(bot.end(close: 4401) == ["failed connectionLost 1 in 500 ms"])
            #expect(bot.session.phase == .backoff)
            #expect(try bot.pass() == ["refresh r"])
            #expect(bot.refresh("b\(turn)").last == "attach ws with b\(turn)")
        }
        // Without a message they never worked.
        #expect(bot.end(close: 4401).last == "disconnected auth")
    }

    @Test func tokensThatWorkedForAWhileAreRefreshedAgain() throws {
        let bot = try refused()
        for turn in 0..<5 {
            _ = bot.refresh("b\(turn)")
            _ = bot.open()
            #expect(bot.end(close: 4401, after: .seconds(10)).last == "refresh r")
        }
    }

    @Test func tokensThatExpiredDuringAnOutageAreRefreshedAgain() throws {
        let bot = try refused()
        _ = bot.refresh("b")
        _ = bot.network(false)
        _ = bot.end(.connect, reached: false)
        bot.now = bot.now + .seconds(7200)
        _ = bot.network(true)
        #expect(try bot.pass() == ["attach ws with b"])
        #expect(bot.end(.httpStatus, status: 401) == ["failed httpStatus", "refresh r"])
    }

    @Test func withoutARefreshTokenOrServerARefusalIsFatal() throws {
        let changes: [(inout SpreadbotConfiguration) throws -> Void] = [
            { try $0.setTokens(access: "a", refresh: "r") },
            {
                try $0.setAuthURL("https://example.com/token")
                try $0.setTokens(access: "a", refresh: "")
            },
        ]
        for change in changes {
            let bot = try SpreadbotModel(change)
            _ = bot.establish()
            #expect(bot.end(.httpStatus, status: 401).last == "disconnected auth")
            bot.session.refusedRequest()
            #expect(bot.done() == ["refreshed auth"])
        }
    }

    @Test func aRefreshTokenIsEnoughToGetAnAccessToken() throws {
        let bot = try SpreadbotModel.withTokens { try $0.setTokens(access: "", refresh: "r") }
        #expect(bot.establish() == ["attach ws"])
        #expect(bot.session.credential == nil)
        #expect(bot.end(.httpStatus, status: 401).last == "refresh r")
        #expect(bot.refresh("b").last == "attach ws with b")
    }

    // MARK: A refresh that fails

    @Test func aRefusedRefreshIsFatalAndNotRepeated() throws {
        let bot = try refused()
        #expect(
            bot.refuseRefresh(.auth, isRefused: true) == [
                "refreshed auth", "failed auth fatal", "transport none", "disconnected auth",
            ])
        #expect(bot.establish() == ["attach ws with a"])
        #expect(bot.end(.httpStatus, status: 401).last == "disconnected auth")
        _ = bot.setTokens("c", "t")
        #expect(bot.establish() == ["attach ws with c"])
        #expect(bot.end(.httpStatus, status: 401).last == "refresh t")
    }

    @Test func aRefusedRefreshEndsAnOpenConnection() throws {
        let bot = try SpreadbotModel.withTokens()
        try bot.connect()
        bot.session.refusedRequest()
        #expect(bot.done() == ["refresh r"])
        let told = bot.refuseRefresh(.auth, isRefused: true)
        #expect(told.first == "refreshed auth" && told.last == "disconnected auth")
    }

    @Test func aRefreshRefusedAfterDisconnectIsNotAnError() throws {
        let bot = try SpreadbotModel.withTokens()
        try bot.connect()
        bot.session.refusedRequest()
        _ = bot.disconnect()
        #expect(bot.refuseRefresh(.auth, isRefused: true) == ["refreshed auth"])
        bot.session.closed(bot.leg, isClean: true, written: 0)
        #expect(bot.done().last == "disconnected ok")
    }

    @Test func anUnreachableTokenServerIsCounted() throws {
        let bot = try refused()
        #expect(
            bot.refuseRefresh(.connect, isRefused: false) == [
                "refreshed connect", "failed connect 1 in 500 ms",
            ])
        #expect(try bot.pass() == ["attach ws with a"])
        #expect(bot.end(.httpStatus, status: 401).last == "refresh r")
        #expect(bot.refuseRefresh(.connect, isRefused: false).last == "failed connect 2 in 1 s")
    }

    @Test func anUnreachableTokenServerWithoutANetworkIsNotCounted() throws {
        let bot = try refused()
        _ = bot.network(false)
        // The failure reports the wait for the network.
        #expect(
            bot.refuseRefresh(.connect, isRefused: false) == [
                "refreshed connect", "failed connect",
            ])
        #expect(bot.session.phase == .offline)
    }

    // MARK: One at a time

    @Test func allRequestsWaitForOneRefresh() throws {
        let bot = try refused()
        bot.session.refusedRequest()
        bot.session.refusedRequest()
        #expect(bot.done().isEmpty)
        let told = bot.refresh("b")
        #expect(told.filter { $0 == "refreshed ok" }.count == 1)
        bot.session.refusedRequest()
        #expect(bot.done() == ["refresh r"])
    }

    @Test func aLegWaitsForTheRefreshOfARequest() throws {
        let bot = try SpreadbotModel.withTokens()
        _ = bot.establish()
        bot.session.refusedRequest()
        #expect(bot.done() == ["refresh r"])
        #expect(bot.end(.httpStatus, status: 401) == ["failed httpStatus"])
        #expect(bot.session.phase == .auth)
        #expect(bot.refresh("b").last == "attach ws with b")
    }

    @Test func aLegWithOlderTokensIsRetriedWithoutARefresh() throws {
        let bot = try SpreadbotModel.withTokens()
        _ = bot.establish()
        bot.session.refusedRequest()
        _ = bot.done()
        _ = bot.refresh("b")
        #expect(
            bot.end(.httpStatus, status: 401) == ["failed httpStatus in 0 s", "attach ws with b"])
    }

    @Test func aRequestRefreshesTokensWithoutAConnection() throws {
        let bot = try SpreadbotModel.withTokens()
        bot.session.refusedRequest()
        #expect(bot.done() == ["refresh r"])
        #expect(bot.refresh("b") == ["credential Bearer b", "tokens b r", "refreshed ok"])
    }

    // MARK: Tokens set by the application

    @Test func tokensApplyFromTheNextAttempt() throws {
        let bot = try SpreadbotModel.withTokens()
        try bot.connect()
        #expect(bot.setTokens("c", "t") == ["credential Bearer c", "refreshed ok"])
        #expect(bot.session.state == .connected)
        _ = bot.end(after: .seconds(20))
        #expect(try bot.pass() == ["attach ws with c"])
    }

    @Test func anOlderRefreshDoesNotReplaceThem() throws {
        let bot = try refused()
        #expect(
            bot.setTokens("c", "t") == [
                "credential Bearer c", "refreshed ok", "attach ws with c",
            ])
        #expect(bot.refresh("b", "s") == ["refreshed ok"])
        #expect(bot.session.refreshToken == "t")
    }

    @Test func tokensSetInACallbackWithdrawAPendingRefresh() throws {
        let bot = try SpreadbotModel.withTokens()
        try bot.connect()
        bot.session.refusedRequest()
        #expect(
            bot.setTokens("c", "t") == [
                "credential Bearer c", "refreshed ok",
            ])
        // There is no refresh for the next request to wait for.
        bot.session.refusedRequest()
        #expect(bot.done() == ["refresh t"])
    }

    @Test func tokensThatAreBeingRefreshedAreNotSetAgain() throws {
        let bot = try refused()
        #expect(bot.setTokens("a", "r").isEmpty)
        #expect(bot.refresh("b", "s").last == "attach ws with b")
        #expect(bot.session.refreshToken == "s")
    }

    @Test func aRefreshTokenInUseIsNotUsedAgain() throws {
        let bot = try refused()
        #expect(bot.setTokens("c", "r").last == "attach ws with c")
        #expect(bot.refresh("b", "s") == ["tokens c s", "refreshed ok"])
        _ = bot.open()
        #expect(bot.end(.httpStatus, status: 401, after: .seconds(10)).last == "refresh s")
    }

    @Test func aRefreshAlsoReplacesAnAccessTokenRefusedMeanwhile() throws {
        let bot = try refused()
        _ = bot.setTokens("c", "r")
        #expect(bot.end(.httpStatus, status: 401) == ["failed httpStatus"])
        #expect(
            bot.refresh("b", "s") == [
                "credential Bearer b", "tokens b s", "refreshed ok", "attach ws with b",
            ])
    }

    @Test func aRefreshTokenRefusedMeanwhileIsNotSentAgain() throws {
        let bot = try refused()
        _ = bot.setTokens("c", "r")
        _ = bot.open()
        #expect(bot.refuseRefresh(.auth, isRefused: true) == ["refreshed ok"])
        #expect(bot.end(.httpStatus, status: 401).last == "disconnected auth")
    }

    @Test func tokensRefusedDuringAnOlderRefreshAreRefreshedNext() throws {
        let bot = try refused()
        #expect(bot.setTokens("c", "t").last == "attach ws with c")
        // The older refresh is still running.
        #expect(bot.end(.httpStatus, status: 401) == ["failed httpStatus"])
        #expect(bot.refresh("b", "s") == ["refresh t"])
        #expect(bot.refresh("d").last == "attach ws with d")
    }

    @Test(arguments: [false, true]) func anOlderRefreshsFailureDoesNotAffectThem(
        isRefused: Bool
    ) throws {
        let bot = try refused()
        _ = bot.setTokens("c", "t")
        #expect(bot.refuseRefresh(.auth, isRefused: isRefused) == ["refreshed ok"])
        #expect(bot.end(.httpStatus, status: 401).last == "refresh t")
    }

    // MARK: expires_in

    @Test func tokensThatSoonExpireAreRefreshedBeforeAnAttempt() throws {
        let bot = try refused()
        _ = bot.refresh("b", lifetime: .seconds(100))
        _ = bot.open()
        _ = bot.end(after: .seconds(69))
        #expect(try bot.pass() == ["attach ws with b"])
        _ = bot.open()
        _ = bot.end(after: .seconds(20))
        #expect(try bot.pass() == ["refresh r"])
        #expect(bot.session.phase == .auth)
        #expect(bot.refresh("c").last == "attach ws with c")
    }

    @Test(arguments: [1, 10, 30, 59]) func shortLivedTokensAreNotRefreshedAllTheTime(seconds: Int)
        throws
    {
        let bot = try refused()
        #expect(bot.refresh("b", lifetime: .seconds(seconds)).last == "attach ws with b")
        _ = bot.open()
        _ = bot.receive(nil)
        bot.now = bot.now + .seconds(seconds)
        _ = bot.end()
        #expect(try bot.pass() == ["refresh r"])
        #expect(bot.refresh("c", lifetime: .seconds(seconds)).last == "attach ws with c")
    }
}
