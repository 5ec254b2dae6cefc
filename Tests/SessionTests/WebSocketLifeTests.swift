import Session
import Testing
import Wire

private func at(_ milliseconds: UInt64) -> Instant {
    Instant(nanoseconds: milliseconds * 1_000_000)
}

/// Drives a `WebSocketLife` by hand.
private final class Life {
    private var life = WebSocketLife()
    var configuration: WebSocketConfiguration
    private(set) var written = ""

    init(_ change: (inout WebSocketConfiguration) throws -> Void = { _ in }) throws {
        configuration = try WebSocketConfiguration(url: "ws://peer.test/chat")
        configuration.openTimeout = .seconds(5)
        try change(&configuration)
    }

    @discardableResult
    func begin(at time: UInt64 = 0, isReachable: Bool = true) -> Bool {
        life.begin(configuration, isReachable: isReachable, now: at(time))
    }

    func wait() -> String? {
        life.noteWait(configuration).map { "\($0.attempt) \($0.error.message)" }
    }

    func connect(at time: UInt64 = 0) {
        life.connected(configuration, nonce: [UInt8](repeating: 0, count: 16), now: at(time))
        written = ""
        life.writeRequest {
            // A few bytes at a time.
            written += String(decoding: $0.prefix(7), as: UTF8.self)
            return min($0.count, 7)
        }
    }

    func hear(_ text: String, at time: UInt64 = 0) -> WebSocketLife.Answer {
        Array(text.utf8).withUnsafeBytes { life.received($0, configuration, now: at(time)) }
    }

    /// Runs it until the connection is open.
    func open(at time: UInt64 = 0) {
        begin(at: time)
        connect(at: time)
        guard case .open = hear(accepting, at: time) else {
            Issue.record("is not open")
            return
        }
    }

    func finish(
        _ ending: WebSocketLife.Ending = .abnormal, isWanted: Bool = true,
        isReachable: Bool = true, at time: UInt64 = 0
    ) -> String {
        let next = life.finish(
            ending, isWanted: isWanted, isReachable: isReachable, now: at(time), wallClock: 0,
            random: 0.5)
        switch next {
        case .nothing: return "nothing"
        case .wait(let delay, let attempt):
            return "\(attempt) \(delay?.fromNow ?? "with a network")"
        case .end: return "end"
        }
    }

    func pass(to time: UInt64, isReachable: Bool = true) -> WebSocketLife.OnTime {
        life.timeReached(at(time), configuration, isReachable: isReachable)
    }

    func lose(_ cause: String? = nil, isOpen: Bool = true) -> WebSocketLife.Loss {
        life.lost(cause, isOpen: isOpen, configuration)
    }

    func fail(_ code: RealtimeError.Code) { life.failed(RealtimeError(code, "failed")) }
    func failLater() { life.failsLater(RealtimeError(.resolve, "later")) }
    func close() -> WebSocketLife.OnClose { life.close(.normal) }
    func closed(by code: CloseCode) { life.closed(by: code, "because") }
    func ignore(_ count: Int) -> WebSocketLife.Ending? { life.ignored(count) }
    func endWait(_ goesOn: Bool) -> Bool { life.endWait(continues: goesOn) }
    func goes(online: Bool, at time: UInt64) -> Bool {
        life.setOnline(online, now: at(time), random: 0)
    }

    var stage: WebSocketLife.Stage { life.stage }
    var url: String { life.url(configuration).text }
    var wakeUp: Instant? { life.wakeUp(session: nil) }
    var ending: WebSocketLife.Ending { life.ending }
    var owesEnd: Bool { life.owesEnd }
    var laterFailure: RealtimeError? { life.laterFailure }
}

/// The response to a nonce of zeros.
private let accepting =
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    + "Sec-WebSocket-Accept: ICX+Yqv66kxgM0FcWaLWlFLwTAI=\r\n\r\n"

private func message(_ answer: WebSocketLife.Answer) -> String? {
    guard case .failed(let error) = answer else { return nil }
    return error.message
}

@Suite struct WebSocketLifeTests {
    @Test func theRequestIsWrittenInAnyPieces() throws {
        let life = try Life()
        life.begin()
        #expect(life.stage == .connecting)
        life.connect()
        #expect(life.stage == .handshaking)
        #expect(life.written.hasPrefix("GET /chat HTTP/1.1\r\nHost: peer.test\r\n"))
        #expect(life.written.hasSuffix("\r\n\r\n"))
    }

    @Test func bytesAfterTheAnswerAreLeft() throws {
        let life = try Life()
        life.begin()
        life.connect()
        for piece in ["HTTP/1.1 101 S", "witching Protocols\r\n"] {
            guard case .incomplete = life.hear(piece) else {
                Issue.record("is open after \(piece)")
                return
            }
        }
        let rest = String(accepting.dropFirst("HTTP/1.1 101 Switching Protocols ".count))
        guard case .open(_, _, let used) = life.hear(rest + "frames") else {
            Issue.record("is not open")
            return
        }
        #expect(used == rest.utf8.count && life.stage == .open)
        #expect(life.wakeUp == nil)
    }

    @Test(arguments: ["SSH-2.0-OpenSSH_9.2", "HTTP/1.1 200 OK\r\nno colon"])
    func aServerThatDoesNotAnswerInHTTPIsNamed(answer: String) throws {
        let life = try Life()
        life.begin()
        life.connect()
        guard case .failed(let error) = life.hear("\(answer)\r\n") else {
            Issue.record("it continues")
            return
        }
        #expect(error.code == .handshake)
        #expect(error.message.hasPrefix("peer.test:80: the server's answer "))
    }

    @Test func aRedirectLeadsToAnotherConnection() throws {
        let life = try Life()
        life.begin()
        life.connect()
        let answer = "HTTP/1.1 307 There\r\nLocation: /there\r\nContent-Length: 0\r\n\r\n"
        guard case .redirected(status: 307) = life.hear(answer) else {
            Issue.record("is not followed")
            return
        }
        #expect(life.stage == .connecting && life.url == "ws://peer.test/there")
        life.connect()
        #expect(life.written.hasPrefix("GET /there HTTP/1.1\r\n"))
        guard case .open = life.hear(accepting) else {
            Issue.record("is not open")
            return
        }
        #expect(life.url == "ws://peer.test/there")
    }

    @Test func aRefusalIsReportedWithItsBody() throws {
        let life = try Life()
        life.begin()
        life.connect()
        let head = "HTTP/1.1 503 Later\r\nContent-Length: 8\r\n\r\n"
        #expect(message(life.hear(head + "wait")) == nil)
        #expect(life.stage == .refused)
        // Sooner than the open timeout.
        #expect(life.wakeUp == at(2000))
        guard case .failed(let error) = life.hear(" a bit") else {
            Issue.record("the body is whole")
            return
        }
        #expect(error.code == .httpStatus)
        #expect(error.response?.body == Array("wait a b".utf8))
    }

    @Test func aRefusalsBodyHasTwoSeconds() throws {
        let life = try Life()
        life.begin()
        life.connect(at: 100)
        _ = life.hear("HTTP/1.1 404 No\r\n\r\nthe beginning", at: 100)
        #expect(life.wakeUp == at(2100))
        guard case .failed(let error) = life.pass(to: 2100) else {
            Issue.record("is waited for")
            return
        }
        #expect(error.code == .httpStatus)
        guard case .failed = life.lose() else {
            Issue.record("the end of the stream is the end of the body")
            return
        }
    }

    @Test func eachTimeHasItsOption() throws {
        let life = try Life()
        life.begin()
        #expect(life.wakeUp == at(5000))
        guard case .connectTimedOut(limit: "5 s (openTimeout)") = life.pass(to: 5000) else {
            Issue.record("is connected")
            return
        }
        life.connect()
        guard case .failed(let error) = life.pass(to: 5000) else {
            Issue.record("is answered")
            return
        }
        #expect(error.code == .timeout && error.message.hasSuffix("5 s (openTimeout)"))
        let leg = try Life {
            $0.answerTimeout = .seconds(2)
            $0.redirects.owner = .spreadbot
        }
        leg.begin()
        leg.connect(at: 1000)
        #expect(leg.wakeUp == at(3000))
        guard case .failed(let late) = leg.pass(to: 3000) else {
            Issue.record("is answered")
            return
        }
        #expect(late.message.hasSuffix("2 s (answerTimeout)"))
    }

    @Test func aFailureInsideStartIsReportedLater() throws {
        let life = try Life()
        life.begin()
        life.failLater()
        #expect(life.laterFailure?.code == .resolve)
        life.fail(.resolve)
        #expect(life.finish() == "end")
        #expect(life.laterFailure == nil && life.stage == .ended)
        #expect(life.finish() == "nothing")
    }

    @Test func theUserClosesBeforeItIsOpen() throws {
        for isConnected in [false, true] {
            let life = try Life { $0.reconnect = BackoffConfiguration() }
            life.begin()
            if isConnected { life.connect() }
            #expect(life.close() == .drop)
            #expect(life.owesEnd && life.ending == .abnormal)
            guard case .nothing = life.lose() else {
                Issue.record("is lost")
                return
            }
            #expect(life.finish(life.ending, isWanted: false) == "end")
            #expect(life.close() == .nothing && !life.owesEnd)
        }
    }

    @Test func thePeersCloseIsReported() throws {
        let life = try Life()
        life.open()
        #expect(life.close() == .handshake)
        life.closed(by: .goingAway)
        guard case .ended(let ending) = life.lose("reset", isOpen: false) else {
            Issue.record("is not ended")
            return
        }
        #expect(ending.code == .goingAway && ending.reason == "because" && ending.isClean)
        #expect(life.finish(ending) == "end")
    }

    @Test func aPeerThatContinuesToSendIsNotAwaited() throws {
        let life = try Life()
        life.open()
        #expect(life.ignore(3 << 20) == nil)
        life.closed(by: .normal)
        #expect(life.ignore(2 << 20) == nil)
        #expect(life.ignore(1)?.code == .normal)
    }

    @Test func aLostConnectionIsFollowedByAnotherAttempt() throws {
        let life = try Life { $0.reconnect = BackoffConfiguration() }
        life.open()
        guard case .failed(let error) = life.lose("reset") else {
            Issue.record("is not lost")
            return
        }
        #expect(error.message.hasSuffix("without a closing handshake: reset"))
        life.fail(.connectionLost)
        #expect(life.finish() == "1 in 750 ms")
        #expect(life.stage == .waiting && life.wakeUp == at(750))
        #expect(life.wait() == nil)
        guard case .waitForNetwork = life.pass(to: 750, isReachable: false) else {
            Issue.record("an attempt without a network")
            return
        }
        #expect(life.wakeUp == nil)
        #expect(life.wait() == "1 peer.test:80: no network reaches it")
        #expect(life.wait() == nil)
        #expect(life.goes(online: true, at: 900) && life.wakeUp == at(900))
        guard case .attempt(1) = life.pass(to: 900) else {
            Issue.record("no attempt")
            return
        }
        #expect(life.endWait(true) && life.stage == .idle)
        life.begin(at: 900)
        life.fail(.connect)
        #expect(life.finish(isReachable: false, at: 900) == "1 with a network")
        // The failure reports the wait.
        #expect(life.wait() == nil)
        // The user declines the attempt.
        #expect(!life.endWait(false))
        #expect(life.finish(life.ending) == "end")
    }

    @Test func theFirstAttemptWaitsForANetwork() throws {
        let life = try Life { $0.reconnect = BackoffConfiguration() }
        #expect(!life.begin(isReachable: false))
        #expect(life.stage == .waiting && life.wakeUp == nil)
        #expect(life.wait() == "0 peer.test:80: no network reaches it")
        #expect(life.wait() == nil)
        #expect(life.goes(online: true, at: 700) && life.wakeUp == at(700))
        guard case .attempt(0) = life.pass(to: 700) else {
            Issue.record("no attempt")
            return
        }
        #expect(life.endWait(true))
        // The caller may have changed the URL.
        #expect(!life.begin(at: 700, isReachable: false))
        #expect(life.wait() != nil && life.goes(online: true, at: 800))
        #expect(life.endWait(true))
        life.open(at: 800)
        life.fail(.connectionLost)
        #expect(life.finish(at: 900) == "1 in 750 ms")
    }

    @Test func anEndOfTheFirstWaitIsNotAnError() throws {
        let life = try Life { $0.reconnect = BackoffConfiguration() }
        #expect(!life.begin(isReachable: false))
        #expect(life.close() == .drop && life.wait() == nil)
        #expect(life.finish(life.ending, isWanted: false) == "end")
    }

    @Test func aConnectionThatDoesNotReconnectNeedsNoNetwork() throws {
        let life = try Life()
        #expect(life.begin(isReachable: false))
        #expect(life.stage == .connecting && life.wait() == nil)
    }

    @Test func theUserClosesWhileItWaits() throws {
        let life = try Life { $0.reconnect = BackoffConfiguration() }
        life.open()
        life.fail(.connectionLost)
        #expect(life.finish() == "1 in 750 ms")
        #expect(life.close() == .drop && life.owesEnd)
        // As when it is connected, and not as if something had failed.
        #expect(life.ending == WebSocketLife.Ending(code: .normal))
        #expect(!life.endWait(true))
        #expect(!life.goes(online: false, at: 1))
        #expect(life.finish(life.ending, isWanted: false) == "end")
    }
}
