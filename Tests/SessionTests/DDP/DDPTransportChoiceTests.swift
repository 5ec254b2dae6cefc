import Session
import Testing
import Wire

private func at(_ seconds: UInt64) -> Instant { Instant(nanoseconds: seconds * 1_000_000_000) }

private let refusal = RealtimeError(.httpStatus, "403")

struct DDPTransportChoiceTests {
    private var choice = DDPTransportChoice(mayFallBack: true)

    private mutating func begin(_ seconds: UInt64 = 0) -> DDPTransport {
        choice.begin(now: at(seconds))
    }

    @Test mutating func aBlockedWebSocketIsFollowedBySockJS() {
        let lost = RealtimeError(.connectionLost, "")
        for error in [refusal, RealtimeError(.timeout, ""), lost, nil] {
            choice = DDPTransportChoice(mayFallBack: true)
            #expect(begin() == .webSocket)
            choice.failed(error, now: at(0))
            #expect(begin() == .sockJS)
        }
    }

    @Test mutating func whatConcernsBothTransportsChangesNothing() {
        for code in [RealtimeError.Code.resolve, .connect, .tls] {
            choice.failed(RealtimeError(code, ""), now: at(0))
            #expect(begin() == .webSocket)
        }
        choice.failed(refusal, now: at(0))
        choice.failed(RealtimeError(.connect, ""), now: at(0))
        #expect(begin() == .sockJS)
    }

    @Test mutating func withoutFallbackItIsAlwaysWebSocket() {
        choice = DDPTransportChoice(mayFallBack: false)
        for _ in 0..<10 {
            choice.failed(refusal, now: at(0))
            #expect(begin() == .webSocket)
        }
    }

    @Test mutating func theTransportsAlternateWhileNeitherWorks() {
        var seen: [DDPTransport] = []
        for _ in 0..<4 {
            seen.append(begin())
            choice.failed(refusal, now: at(0))
        }
        #expect(seen == [.webSocket, .sockJS, .webSocket, .sockJS])
    }

    @Test mutating func aWebSocketThatWorkedGetsMoreAttempts() {
        choice.connected()
        #expect(begin() == .webSocket)
        for _ in 1..<DDPTransportChoice.patience {
            choice.failed(refusal, now: at(0))
            #expect(begin() == .webSocket)
        }
        choice.failed(refusal, now: at(0))
        #expect(begin() == .sockJS)
    }

    @Test mutating func aSuccessForgetsEarlierFailures() {
        for _ in 0..<5 {
            choice.connected()
            choice.failed(refusal, now: at(0))
            #expect(begin() == .webSocket)
        }
    }

    @Test mutating func sockJSIsUsedAgainUntilThePauseIsOver() {
        choice.failed(refusal, now: at(0))
        #expect(begin(1) == .sockJS)
        choice.connected()
        #expect(begin(299) == .sockJS)
        choice.connected()
        #expect(begin(300) == .webSocket)
        // Blocked still.
        choice.failed(refusal, now: at(301))
        #expect(begin(301) == .sockJS)
        choice.connected()
        #expect(begin(600) == .sockJS)
        #expect(begin(601) == .webSocket)
        choice.connected()
        #expect(begin(9999) == .webSocket)
    }

    @Test mutating func aNewNetworkMayHaveWebSockets() {
        choice.failed(refusal, now: at(0))
        #expect(begin() == .sockJS)
        choice.connected()
        choice.networkChanged()
        #expect(begin() == .webSocket)
    }
}
