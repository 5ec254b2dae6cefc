import Session
import Testing
import Wire

private func at(_ milliseconds: UInt64) -> Instant {
    Instant(nanoseconds: milliseconds * 1_000_000)
}

@Suite final class AttemptsTests {
    private var attempts: Attempts

    init() {
        var configuration = BackoffConfiguration()
        configuration.jitter = .none
        attempts = Attempts(configuration)
    }

    private func ends(
        _ end: Attempts.End = .failure, at milliseconds: UInt64, asked: Duration = .zero
    ) -> Attempts.Next {
        attempts.ended(end, asked: asked, now: at(milliseconds), random: 0)
    }

    private func fails(at milliseconds: UInt64, asked: Duration = .zero) -> Attempts.Next {
        attempts.begin()
        return ends(at: milliseconds, asked: asked)
    }

    @discardableResult
    private func goes(
        online: Bool, at milliseconds: UInt64, random: Double = 0
    ) -> Bool {
        attempts.setOnline(online, now: at(milliseconds), random: random)
    }

    private func asks() -> Bool { attempts.mayAskForCredentials() }

    private func waits() -> String? { attempts.waitBegan(for: "peer:1")?.message }

    private func reports(online: Bool, at milliseconds: UInt64) {
        attempts.programReports(isOnline: online, now: at(milliseconds))
    }

    @Test func failuresAreForgottenAfterAStableTime() {
        #expect(fails(at: 0) == .retry(after: .seconds(1)))
        attempts.begin()
        attempts.opened(now: at(1000))
        // Too short to count as stable.
        #expect(ends(at: 10_999) == .retry(after: .seconds(2)))
        attempts.begin()
        attempts.opened(now: at(20_000))
        #expect(ends(at: 30_000) == .retry(after: .seconds(1)))
        #expect(attempts.failures == 1)
        attempts.begin()
        attempts.opened(now: at(40_000))
        #expect(ends(.served, at: 40_001) == .retry(after: .seconds(1)))
        #expect(attempts.failures == 0)
    }

    /// A connection that has ended does not become stable by the time that passes afterwards.
    @Test func anEndedConnectionDoesNotBecomeStable() {
        _ = fails(at: 0)
        attempts.opened(now: at(1000))
        let wasStable = attempts.closed(now: at(2000))
        #expect(!wasStable)
        #expect(ends(at: 60_000) == .retry(after: .seconds(2)))
    }

    @Test func aReturningNetworkEndsAnyWait() {
        for _ in 0..<5 { _ = fails(at: 0) }
        #expect(attempts.wakeUp == at(16_000))
        #expect(!goes(online: true, at: 10, random: 0.5))
        #expect(attempts.wakeUp == at(16_000))
        #expect(goes(online: false, at: 20, random: 0.5))
        #expect(attempts.wakeUp == nil)
        #expect(!goes(online: false, at: 30, random: 0.5))
        #expect(goes(online: true, at: 40, random: 0.5))
        #expect(attempts.wakeUp == at(540))
        // A wait that would have ended sooner still does.
        #expect(goes(online: false, at: 100))
        #expect(goes(online: true, at: 200, random: 0.5))
        #expect(attempts.wakeUp == at(540))
    }

    @Test func theServersDelayHoldsWhateverTheNetworkDoes() {
        #expect(fails(at: 0, asked: .seconds(60)) == .retry(after: .seconds(60)))
        goes(online: false, at: 10)
        goes(online: true, at: 20)
        #expect(attempts.wakeUp == at(60_000))
        attempts.restart(now: at(30))
        #expect(attempts.wakeUp == at(30))
    }

    @Test func withoutANetworkNothingIsCounted() {
        goes(online: false, at: 0)
        #expect(fails(at: 0) == .waitForNetwork)
        #expect(attempts.failures == 0)
        #expect(attempts.wakeUp == nil)
        goes(online: true, at: 7)
        #expect(attempts.wakeUp == at(7))
    }

    @Test func theFirstAttemptWaitsForANetworkToo() {
        goes(online: false, at: 0)
        attempts.restart(now: at(5))
        #expect(!attempts.isOnline && attempts.wakeUp == nil)
        #expect(waits() == "peer:1: no network reaches it")
        goes(online: true, at: 10, random: 0.5)
        #expect(attempts.wakeUp == at(510))
        #expect(attempts.failures == 0)
    }

    @Test func eachWaitForANetworkIsReportedOnce() {
        attempts.restart(now: at(0))
        #expect(waits() == nil)
        goes(online: false, at: 1)
        #expect(waits() != nil)
        #expect(waits() == nil)
        goes(online: true, at: 2)
        #expect(waits() == nil)
        goes(online: false, at: 3)
        #expect(waits() != nil)
        // The failure reports the wait after it.
        #expect(fails(at: 4) == .waitForNetwork)
        #expect(waits() == nil)
        // After an end by the user there is another wait.
        attempts.abandon()
        attempts.restart(now: at(5))
        #expect(waits() != nil)
    }

    @Test func anAttemptThatIsNotRepeatedNeedsNoNetwork() {
        attempts.repeats = false
        goes(online: false, at: 0)
        attempts.restart(now: at(5))
        #expect(attempts.isOnline && attempts.wakeUp == at(5) && waits() == nil)
        attempts.repeats = true
        #expect(!attempts.isOnline && attempts.wakeUp == nil && waits() != nil)
    }

    @Test func theProgramsReportHoldsUntilTheMonitorSeesAChange() {
        attempts.restart(now: at(0))
        reports(online: false, at: 1)
        #expect(!goes(online: true, at: 2))
        #expect(attempts.wakeUp == nil && waits() != nil)
        #expect(!goes(online: false, at: 3))
        #expect(goes(online: true, at: 4))
        #expect(attempts.wakeUp == at(4))
    }

    /// The program may be right, so an attempt is made. It has failed, so the monitor may be right.
    @Test func theProgramsReportHoldsForAnAttempt() {
        goes(online: false, at: 0)
        attempts.restart(now: at(0))
        #expect(waits() != nil)
        reports(online: true, at: 1)
        #expect(attempts.wakeUp == at(1))
        #expect(fails(at: 2) == .waitForNetwork)
        #expect(waits() == nil && attempts.failures == 0)
    }

    @Test func aReturningNetworkDoesNotShortenTheProtocolsDelay() {
        attempts.schedule(at: at(15_000))
        goes(online: false, at: 10)
        goes(online: true, at: 20)
        #expect(attempts.wakeUp == at(15_000))
    }

    @Test func theCeilingDelaysAnAttemptThatIsDue() {
        var configuration = BackoffConfiguration(initial: .zero, maximum: .zero)
        configuration.jitter = .none
        attempts = Attempts(
            configuration, ceiling: RequestPacer(burst: 1, interval: .milliseconds(250)))
        attempts.begin()
        attempts.sent(now: at(0))
        #expect(ends(at: 10) == .retry(after: .milliseconds(240)))
        attempts.schedule(at: at(20))
        #expect(attempts.wakeUp == at(250))
    }

    @Test func credentialsAreRequestedOncePerAttempt() {
        #expect(asks())
        #expect(!asks())
        attempts.begin()
        #expect(asks())
    }

    @Test func aServersDelayIsAtMostFiveMinutes() {
        for (text, seconds) in [("7", 7), ("301", 300), ("never", 0)] {
            let field = HeaderField(name: "Retry-After", value: text)
            let head = ResponseHead(status: 503, fields: [field])
            #expect(Attempts.asked(by: head, wallClock: 0) == .seconds(seconds))
        }
    }

    /// The host knows better than the peer's Retry-After and the monitor, until the attempt has
    /// failed.
    @Test func theHostEndsAWait() {
        attempts.retryNow(at(0))
        #expect(attempts.wakeUp == nil)
        #expect(fails(at: 0, asked: .seconds(60)) == .retry(after: .seconds(60)))
        attempts.retryNow(at(10))
        #expect(attempts.wakeUp == at(10))
        goes(online: false, at: 20)
        #expect(fails(at: 20) == .waitForNetwork)
        #expect(attempts.wakeUp == nil)
        attempts.retryNow(at(30))
        #expect(attempts.wakeUp == at(30) && attempts.isOnline)
        // The monitor finds nothing new.
        goes(online: false, at: 30)
        #expect(attempts.wakeUp == at(30) && attempts.isOnline)
        #expect(fails(at: 30) == .waitForNetwork)
        #expect(attempts.wakeUp == nil && attempts.failures == 1)
        goes(online: true, at: 40)
        #expect(attempts.wakeUp == at(40))
    }
}
