import Session
import Testing
import Wire

private func at(_ seconds: UInt64) -> Instant { Instant(nanoseconds: seconds * 1_000_000_000) }

/// The delays of consecutive attempts, with the same random number for all.
private func delays(
    _ count: Int, random: Double = 0.5, _ configure: (inout BackoffConfiguration) -> Void
) -> [Duration?] {
    var configuration = BackoffConfiguration()
    configure(&configuration)
    var backoff = Backoff(configuration)
    return (0..<count).map { _ in backoff.failed(random: random) }
}

@Suite struct BackoffTests {
    @Test func delaysGrowUpToTheMaximum() {
        let grown = delays(6) {
            $0.jitter = .none
            $0.maximum = .seconds(10)
        }
        #expect(grown == [1, 2, 4, 8, 10, 10].map { .seconds($0) })
    }

    @Test(arguments: [
        (Jitter.equal, 0.0, 500), (.equal, 0.5, 750), (.full, 0.0, 0), (.full, 0.25, 250),
        (.decorrelated, 0.0, 1000), (.decorrelated, 0.5, 2000),
    ])
    func jitterSpreadsTheFirstDelay(_ jitter: Jitter, _ random: Double, _ milliseconds: Int) {
        let first = delays(1, random: random) { $0.jitter = jitter }
        #expect(first == [.milliseconds(milliseconds)])
    }

    @Test func everyDelayIsWithinItsBounds() {
        for jitter in [Jitter.none, .equal, .full, .decorrelated] {
            for random in [0, 0.1, 0.5, 0.999_999] {
                let all = delays(200, random: random) {
                    $0.jitter = jitter
                    $0.factor = 1.7
                }
                let bounds = Duration.zero...Duration.seconds(30)
                #expect(all.allSatisfy { $0.map(bounds.contains) ?? false })
            }
        }
    }

    /// The delays of M4.
    @Test func delaysThatAreShortAtFirst() {
        let all = delays(9) { $0 = DDPConfiguration().delays }
        #expect(
            all.map { ($0 ?? .zero) / .milliseconds(1) }.map { $0.rounded(.down) }
                == [10, 10, 4840, 10_648, 23_425, 51_536, 113_379, 249_435, 300_000])
        let least = delays(3, random: 0) { $0 = DDPConfiguration().delays }
        #expect(least == [.milliseconds(10), .milliseconds(10), .milliseconds(3630)])
    }

    @Test func attemptsAreLimited() {
        var configuration = BackoffConfiguration()
        configuration.attemptLimit = 2
        var backoff = Backoff(configuration)
        #expect(backoff.failed(random: 0) == .milliseconds(500))
        #expect(backoff.failed(random: 0) == .seconds(1))
        #expect(backoff.failed(random: 0) == nil)
        backoff.reset()
        #expect(backoff.failed(random: 0) == .milliseconds(500))
    }
}

@Suite struct ReconnectionTests {
    private func decides(
        _ code: CloseCode?, _ error: RealtimeError?
    ) -> Reconnection.Decision {
        let reconnection = Reconnection(BackoffConfiguration())
        return reconnection.ended(
            code: code, error: error, isReachable: true, now: at(0), wallClock: 784_111_777,
            random: 0)
    }

    private let retry = Reconnection.Decision.retry(after: .milliseconds(500), attempt: 1)

    @Test(arguments: [1001, 1005, 1006, 1011, 1012, 1013, 1014, 3000, 4999])
    func theseCodesAreComeBackFrom(_ code: UInt16) {
        #expect(decides(CloseCode(rawValue: code), nil) == retry)
    }

    @Test(arguments: [1000, 1002, 1003, 1007, 1008, 1009, 1010])
    func theseCodesAreFinal(_ code: UInt16) {
        #expect(decides(CloseCode(rawValue: code), nil) == .giveUp)
    }

    private func refusal(_ status: Int, _ fields: [HeaderField] = []) -> RealtimeError {
        let head = ResponseHead(status: status, fields: fields)
        return RealtimeError(.httpStatus, "", response: HTTPResponse(head, body: []))
    }

    @Test(arguments: [200, 302, 408, 425, 429, 500, 502, 503, 504])
    func theseStatusesPass(_ status: Int) { #expect(decides(nil, refusal(status)) == retry) }

    @Test(arguments: [400, 401, 403, 404, 426])
    func theseStatusesAreFinal(_ status: Int) {
        #expect(decides(nil, refusal(status)) == .giveUp)
    }

    @Test(
        arguments: [
            ("7", 7), ("9999999999999999999", 300), ("0", 0), ("soon", 0), ("-1", 0),
            ("Sun, 06 Nov 1994 08:49:47 GMT", 10), ("Sun, 06 Nov 1994 09:49:47 GMT", 300),
            ("Sun, 06 Nov 1994 08:49:27 GMT", 0),
        ])
    func retryAfterIsWaitedFor(_ text: String, _ seconds: Int) {
        let field = HeaderField(name: "retry-after", value: text)
        let delay = max(.seconds(seconds), Duration.milliseconds(500))
        #expect(decides(nil, refusal(503, [field])) == .retry(after: delay, attempt: 1))
    }

    @Test func withoutANetworkNothingIsCounted() {
        let reconnection = Reconnection(BackoffConfiguration())
        func decides(_ code: CloseCode?, isReachable: Bool, _ second: UInt64)
            -> Reconnection.Decision
        {
            reconnection.ended(
                code: code, error: nil, isReachable: isReachable, now: at(second), wallClock: 0,
                random: 0)
        }
        #expect(decides(nil, isReachable: false, 0) == .waitForNetwork(attempt: 0))
        #expect(decides(nil, isReachable: true, 1) == retry)
        #expect(decides(nil, isReachable: false, 2) == .waitForNetwork(attempt: 1))
        #expect(decides(nil, isReachable: false, 3) == .waitForNetwork(attempt: 1))
        #expect(decides(nil, isReachable: true, 4) == .retry(after: .seconds(1), attempt: 2))
        // A stable connection in between: earlier failures no longer count.
        reconnection.opened(now: at(5))
        #expect(decides(nil, isReachable: false, 60) == .waitForNetwork(attempt: 0))
        #expect(decides(.normal, isReachable: false, 61) == .giveUp)
    }

    @Test func aNormalCloseIsFollowedByAReconnectIfWanted() {
        let reconnection = Reconnection(BackoffConfiguration(), afterNormalClose: true)
        func decides(_ code: CloseCode) -> Reconnection.Decision {
            reconnection.opened(now: at(0))
            return reconnection.ended(
                code: code, error: nil, isReachable: true, now: at(60), wallClock: 0, random: 0)
        }
        #expect(decides(.normal) == retry)
        #expect(decides(.goingAway) == retry)
        #expect(decides(.policyViolation) == .giveUp)
        #expect(decides(.protocolError) == .giveUp)
    }

    @Test func networkFailuresAreFollowedByAReconnect() {
        for code in [RealtimeError.Code.connect, .resolve, .tls, .timeout, .connectionLost] {
            #expect(decides(nil, RealtimeError(code, "")) == retry)
        }
        for code in [RealtimeError.Code.redirect, .insecureRedirect, .tooLarge] {
            #expect(decides(nil, RealtimeError(code, "")) == .giveUp)
        }
    }
}
