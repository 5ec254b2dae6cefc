import Session
import Testing
import Wire

private func at(_ milliseconds: UInt64) -> Instant {
    Instant(nanoseconds: milliseconds * 1_000_000)
}

/// Drives a `WebSocketLife` by hand.
private final class Life {
    private var life = WebSocketLife()
    private let configuration: WebSocketConfiguration

    init() throws {
        var configuration = try WebSocketConfiguration(url: "ws://peer.test/chat")
        configuration.reconnect = BackoffConfiguration()
        try configuration.addRetryStatus(404)
        self.configuration = configuration
    }

    func begin(at time: UInt64 = 0) {
        _ = life.begin(configuration, isReachable: true, now: at(time))
        life.connected(configuration, nonce: [UInt8](repeating: 0, count: 16), now: at(time))
    }

    /// - Returns: the status of the response for which credentials are needed.
    func asks(_ status: Int, _ code: RealtimeError.Code = .httpStatus) -> Int? {
        life.asks(after: refusal(status, code))?.status
    }

    /// - Returns: whether no attempt follows.
    func fail(_ error: RealtimeError) -> Bool {
        life.failed(error)
        let next = life.finish(
            .abnormal, isWanted: true, isReachable: true, now: at(0), wallClock: 0, random: 0)
        if case .end = next { return true }
        return false
    }

    func authorized() { life.authorized() }
    func giveUp() { life.giveUp() }
    func endWait() -> Bool { life.endWait(continues: true) }
    func close() -> WebSocketLife.OnClose { life.close(.normal) }
    var stage: WebSocketLife.Stage { life.stage }
    var wakeUp: Instant? { life.wakeUp(session: nil) }
    var owesEnd: Bool { life.owesEnd }
}

private func refusal(_ status: Int, _ code: RealtimeError.Code = .httpStatus) -> RealtimeError {
    RealtimeError(code, "refused", response: HTTPResponse(ResponseHead(status: status), body: []))
}

@Suite struct WebSocketCredentialsTests {
    @Test func theseRefusalsAskForThem() throws {
        for (status, code, asks) in [
            (401, RealtimeError.Code.httpStatus, true), (403, .httpStatus, true),
            (407, .httpStatus, true), (407, .proxy, true), (404, .httpStatus, false),
            (503, .httpStatus, false), (401, .proxy, false),
        ] {
            let life = try Life()
            life.begin()
            #expect(life.asks(status, code) == (asks ? status : nil))
            #expect((life.stage == .authorizing) == asks)
        }
    }

    @Test func theTimeUntilTheyComeIsNotLimited() throws {
        let life = try Life()
        life.begin()
        #expect(life.wakeUp == at(10_000))
        _ = life.asks(401)
        #expect(life.wakeUp == nil)
        life.authorized()
        life.begin(at: 100_000)
        #expect(life.wakeUp == at(110_000))
    }

    @Test func theyAreAskedForOncePerAttempt() throws {
        let life = try Life()
        life.begin()
        #expect(life.asks(401) == 401)
        life.authorized()
        life.begin()
        #expect(life.asks(401) == nil)
        #expect(!life.fail(refusal(503)))
        #expect(life.endWait())
        life.begin()
        #expect(life.asks(403) == 403)
    }

    @Test func withoutThemNoAttemptFollows() throws {
        let life = try Life()
        life.begin()
        _ = life.asks(401)
        life.giveUp()
        // Not final by itself.
        #expect(life.fail(RealtimeError(.cancelled, "the token server is down")))
    }

    @Test func closingEndsTheWait() throws {
        let life = try Life()
        life.begin()
        _ = life.asks(401)
        guard case .drop = life.close() else {
            Issue.record("is still waited for")
            return
        }
        #expect(life.owesEnd)
    }

    @Test(arguments: [(404, false), (410, true), (408, false), (521, false), (401, true)])
    func moreStatusesMayBeRetried(status: Int, isFinal: Bool) throws {
        let life = try Life()
        life.begin()
        #expect(life.fail(refusal(status)) == isFinal)
    }

    @Test(arguments: [200, 399, 401, 407, 600])
    func theseStatusesCannotBeRetried(_ status: Int) throws {
        var configuration = try WebSocketConfiguration(url: "ws://peer.test/")
        #expect(throws: RealtimeError.self) { try configuration.addRetryStatus(status) }
    }
}
