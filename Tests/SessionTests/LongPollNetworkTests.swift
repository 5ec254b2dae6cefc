import Testing
import Wire

@testable import Session

@Suite struct LongPollNetworkTests {
    /// A returning network ends a backoff, but not the interval of a working server, nor a delay
    /// that the server asked for.
    @Test func aReturningNetworkEndsABackoff() throws {
        var poller = try Poller()
        for _ in 0..<6 { _ = try poller.answer(503) }
        #expect(poller.wait == .seconds(15))
        poller.session.setOnline(false, now: poller.now, random: 0)
        #expect(poller.wait == nil)
        poller.session.setOnline(true, now: poller.now, random: 0.25)
        #expect(poller.wait == .milliseconds(250))
        _ = try poller.answer(204)
        poller.session.setOnline(false, now: poller.now, random: 0)
        poller.session.setOnline(true, now: poller.now, random: 0)
        #expect(poller.wait == .seconds(15))
        _ = try poller.answer(503, [("Retry-After", "60")])
        poller.session.setOnline(false, now: poller.now, random: 0)
        poller.session.setOnline(true, now: poller.now, random: 0)
        #expect(poller.wait == .seconds(60))
    }

    /// 410 is not a failure, and the next poll waits for its interval.
    @Test func aReturningNetworkDoesNotEndAnInterval() throws {
        var poller = try Poller()
        #expect(
            try poller.answer(410) == .failed(.gone, retryIn: .seconds(15), isFatal: false))
        poller.session.setOnline(false, now: poller.now, random: 0)
        poller.session.setOnline(true, now: poller.now, random: 0)
        #expect(poller.wait == .seconds(15))
    }

    @Test func eachWaitForANetworkIsReportedOnce() throws {
        var poller = try Poller()
        func wait() -> String? { poller.session.waitBegan(for: "a.test:80")?.message }
        poller.session.setOnline(false, now: poller.now, random: 0)
        #expect(wait() == "a.test:80: no network reaches it")
        #expect(wait() == nil && poller.session.waitsForNetwork)
        poller.session.setOnline(true, now: poller.now, random: 0)
        poller.begin()
        poller.session.setOnline(false, now: poller.now, random: 0)
        // During a poll nothing waits.
        #expect(wait() == nil && !poller.session.waitsForNetwork)
        #expect(try poller.reply(204) == .nothing)
        #expect(wait() != nil && poller.session.waitsForNetwork)
        poller.session.setOnline(true, now: poller.now, random: 0)
        poller.begin()
        poller.session.setOnline(false, now: poller.now, random: 0)
        _ = try poller.reply(503)
        // The failure has reported it.
        #expect(wait() == nil && poller.session.waitsForNetwork)
    }

    @Test func withoutANetworkNothingIsCounted() throws {
        var poller = try Poller()
        poller.begin()
        poller.session.setOnline(false, now: poller.now, random: 0)
        #expect(try poller.reply(503) == .failed(.httpStatus, retryIn: nil, isFatal: false))
        #expect(poller.session.wakeUp == nil && poller.session.attempt == 1)
        poller.session.setOnline(true, now: poller.now, random: 0.5)
        #expect(poller.wait == .milliseconds(500))
        #expect(try poller.answer(204) == .nothing)
        poller.session.setOnline(false, now: poller.now, random: 0)
        poller.now = poller.now + .seconds(20)
        guard
            case .nothing = poller.session.timeReached(
                poller.now, requestStarted: nil, random: 0)
        else {
            Issue.record("polls without a network")
            return
        }
        #expect(poller.session.wakeUp == nil)
    }

    @Test func restartPollsAtOnce() throws {
        var poller = try Poller()
        poller.session.restart(now: poller.now)
        #expect(poller.wait == .zero)
        #expect(try poller.answer(204) == .nothing)
        poller.session.restart(now: poller.now)
        #expect(poller.wait == .zero)
        poller.session.close()
        poller.session.restart(now: poller.now)
        #expect(poller.session.wakeUp == nil && poller.session.state == .closed)
    }

    @Test func restartWaitsForCredentials() throws {
        var poller = try Poller()
        poller.begin()
        let answer = poller.session.received(
            ResponseHead(status: 401), requestStarted: nil, canAuthorize: true, now: poller.now)
        guard case .unauthorized = answer else {
            Issue.record("\(answer)")
            return
        }
        poller.session.restart(now: poller.now)
        #expect(poller.session.isAuthorizing && poller.session.wakeUp == nil)
    }

    /// Between polls that succeed, the wait is not due to the network.
    @Test func theHostEndsABackoffButNotAnInterval() throws {
        var poller = try Poller()
        _ = try poller.answer(503, [("Retry-After", "60")])
        var hurries = poller.session.retryNow(poller.now)
        #expect(hurries && poller.wait == .zero)
        _ = try poller.answer(204)
        hurries = poller.session.retryNow(poller.now)
        #expect(!hurries && poller.wait == .seconds(15))
        poller.session.setOnline(false, now: poller.now, random: 0)
        hurries = poller.session.retryNow(poller.now)
        #expect(hurries && poller.wait == .zero)
    }
}
