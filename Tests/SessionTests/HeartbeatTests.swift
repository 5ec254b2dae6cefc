import Testing
import Wire

@testable import Session

private func at(_ seconds: UInt64) -> Instant { Instant(nanoseconds: seconds * 1_000_000_000) }

private func pong(_ heartbeat: inout Heartbeat, _ payload: [UInt8], _ now: Instant) -> Duration? {
    payload.withUnsafeBytes { heartbeat.received(pong: $0, now: now)?.roundTrip }
}

@Test func aPingIsDueAtTheIntervalAndItsPongGivesTheRoundTrip() throws {
    var heartbeat = Heartbeat(interval: .seconds(20), timeout: .seconds(5), now: at(0))
    #expect(heartbeat.wakeUp == at(20))
    #expect(heartbeat.timeReached(at(19)) == .nothing)
    guard case .ping(let payload) = heartbeat.timeReached(at(20)) else {
        Issue.record("no ping")
        return
    }
    #expect(heartbeat.wakeUp == at(25))
    #expect(pong(&heartbeat, payload, at(22)) == .seconds(2))
    #expect(heartbeat.wakeUp == at(40))
}

@Test func aPingWithoutPongTimesOut() {
    var heartbeat = Heartbeat(interval: .seconds(20), timeout: .seconds(5), now: at(0))
    _ = heartbeat.timeReached(at(20))
    #expect(heartbeat.timeReached(at(25)) == .timedOut)
}

@Test func anUnaskedPongChangesNothing() {
    var heartbeat = Heartbeat(interval: .seconds(20), timeout: .seconds(5), now: at(0))
    _ = heartbeat.timeReached(at(20))
    #expect(pong(&heartbeat, [1, 2, 3], at(21)) == nil)
    #expect(heartbeat.wakeUp == at(25))
}

@Test func anyBytesProveThatThePeerLives() {
    var heartbeat = Heartbeat(interval: .seconds(20), timeout: .seconds(15), now: at(0))
    for second in [20, 40, 60] as [UInt64] {
        guard case .ping = heartbeat.timeReached(at(second)) else {
            Issue.record("no ping")
            return
        }
        heartbeat.receivedBytes()
        #expect(heartbeat.wakeUp == at(second + 20))
    }
    _ = heartbeat.timeReached(at(80))
    #expect(heartbeat.timeReached(at(95)) == .timedOut)
}

@Test func anAnswerAfterOtherBytesStillGivesTheRoundTrip() throws {
    var heartbeat = Heartbeat(interval: .seconds(20), timeout: .seconds(5), now: at(0))
    guard case .ping(let payload) = heartbeat.timeReached(at(20)) else {
        Issue.record("no ping")
        return
    }
    heartbeat.receivedBytes()
    #expect(pong(&heartbeat, payload, at(28)) == .seconds(8))
}

@Test func onlyThePongCountsIfItIsRequired() {
    var heartbeat = Heartbeat(
        interval: .seconds(20), timeout: .seconds(5), requiresPong: true, now: at(0))
    _ = heartbeat.timeReached(at(20))
    heartbeat.receivedBytes()
    #expect(pong(&heartbeat, [1, 2, 3], at(21)) == nil)
    #expect(heartbeat.timeReached(at(25)) == .timedOut)
}

/// A large message over a slow link: the ping waits behind it in the kernel's buffer.
@Test func aPingBehindOtherBytesIsAwaitedWhileTheseArrive() {
    var heartbeat = Heartbeat(interval: .seconds(100), timeout: .seconds(20), now: at(0))
    func sent(_ queued: UInt64, _ arrived: UInt64) -> SentBytes {
        SentBytes(queued: queued, arrived: arrived)
    }
    guard case .ping = heartbeat.timeReached(at(100), sent: sent(1000, 100)) else {
        Issue.record("no ping")
        return
    }
    #expect(heartbeat.timeReached(at(120), sent: sent(1010, 500)) == .nothing)
    #expect(heartbeat.wakeUp == at(140))
    // All of it has arrived, the ping perhaps just now.
    #expect(heartbeat.timeReached(at(140), sent: sent(1010, 1010)) == .nothing)
    #expect(heartbeat.timeReached(at(160), sent: sent(1010, 1010)) == .timedOut)
}

@Test func aPingBehindBytesThatDoNotArriveTimesOut() {
    for requiresPong in [false, true] {
        var heartbeat = Heartbeat(
            interval: .seconds(100), timeout: .seconds(20), requiresPong: requiresPong, now: at(0))
        _ = heartbeat.timeReached(at(100), sent: SentBytes(queued: 1000, arrived: 100))
        let later = SentBytes(queued: 1010, arrived: requiresPong ? 500 : 100)
        #expect(heartbeat.timeReached(at(120), sent: later) == .timedOut)
    }
}

/// A kernel that acknowledges each ping for a program that hangs proves nothing.
@Test func acknowledgedPingsAloneProveNothing() {
    var heartbeat = Heartbeat(interval: .seconds(10), timeout: .seconds(20), now: at(0))
    _ = heartbeat.timeReached(at(10), sent: SentBytes(queued: 0, arrived: 0))
    _ = heartbeat.timeReached(at(20), sent: SentBytes(queued: 14, arrived: 14))
    let sent = SentBytes(queued: 28, arrived: 28)
    #expect(heartbeat.timeReached(at(30), sent: sent) == .timedOut)
}

@Test func aPongForTheLastOfSeveralPingsAnswersAll() {
    var heartbeat = Heartbeat(interval: .zero, timeout: .seconds(5), now: at(0))
    #expect(heartbeat.wakeUp == nil)
    let first = [UInt8](arrayLiteral: 1).withUnsafeBytes { heartbeat.ping($0, now: at(1)) }
    let second = [UInt8](arrayLiteral: 2).withUnsafeBytes { heartbeat.ping($0, now: at(2)) }
    #expect(pong(&heartbeat, second, at(4)) == .seconds(2))
    #expect(pong(&heartbeat, first, at(5)) == nil)
}

@Test func pausesDoNotCountAgainstThePong() {
    var heartbeat = Heartbeat(interval: .seconds(20), timeout: .seconds(5), now: at(0))
    _ = heartbeat.timeReached(at(20))
    heartbeat.setPaused(true, now: at(21))
    #expect(heartbeat.timeReached(at(39)) == .nothing)
    heartbeat.setPaused(false, now: at(39))
    #expect(heartbeat.wakeUp == at(40))
    #expect(heartbeat.timeReached(at(44)) == .timedOut)
}

@Test func whileMuchWaitsThePeerMustTakeSome() {
    var heartbeat = Heartbeat(interval: .seconds(20), timeout: .seconds(20), now: at(0))
    for second in [20, 40, 60] as [UInt64] {
        #expect(heartbeat.timeReached(at(second), isCrowded: true) == .nothing)
        #expect(heartbeat.wakeUp == at(second + 20))
        heartbeat.progressed()
    }
    #expect(heartbeat.timeReached(at(80), isCrowded: true) == .nothing)
    #expect(heartbeat.timeReached(at(100), isCrowded: true) == .timedOut)
    #expect(heartbeat.isPingOwed)
}

/// The kernel has taken much, and takes more only when a third of it has arrived.
@Test func whileMuchWaitsSomeOfTheKernelsBytesMayArriveInstead() {
    var heartbeat = Heartbeat(interval: .seconds(20), timeout: .seconds(20), now: at(0))
    for step in 1...10 as ClosedRange<UInt64> {
        let sent = SentBytes(queued: 1_000_000, arrived: step * 1000)
        #expect(heartbeat.timeReached(at(step * 20), isCrowded: true, sent: sent) == .nothing)
    }
    let sent = SentBytes(queued: 1_000_000, arrived: 10_000)
    #expect(heartbeat.timeReached(at(220), isCrowded: true, sent: sent) == .timedOut)
}

@Test func aDelayedPingIsSentWhenLittleWaits() {
    var heartbeat = Heartbeat(interval: .seconds(20), timeout: .seconds(15), now: at(0))
    #expect(heartbeat.timeReached(at(20), isCrowded: true) == .nothing)
    heartbeat.progressed()
    guard case .ping(let payload) = heartbeat.timeReached(at(35)) else {
        Issue.record("no ping")
        return
    }
    #expect(!heartbeat.isPingOwed)
    #expect(pong(&heartbeat, payload, at(49)) == .seconds(14))
    #expect(heartbeat.wakeUp == at(55))
}

@Test func aSentPingIsAwaitedHoweverMuchIsTaken() {
    var heartbeat = Heartbeat(interval: .seconds(20), timeout: .seconds(30), now: at(0))
    _ = heartbeat.timeReached(at(20))
    #expect(heartbeat.timeReached(at(40), isCrowded: true) == .nothing)
    heartbeat.progressed()
    #expect(heartbeat.timeReached(at(50), isCrowded: true) == .timedOut)
}

@Test func aDelayedPingsTimeoutStartsWhenItIsSent() {
    var heartbeat = Heartbeat(interval: .seconds(20), timeout: .seconds(30), now: at(0))
    #expect(heartbeat.timeReached(at(20), isCrowded: true) == .nothing)
    guard case .ping = heartbeat.timeReached(at(40)) else {
        Issue.record("no ping")
        return
    }
    #expect(heartbeat.timeReached(at(69)) != .timedOut)
    #expect(heartbeat.timeReached(at(70)) == .timedOut)
}

@Test func aHurriedPingAwaitsItsPong() {
    var heartbeat = Heartbeat(interval: .seconds(20), timeout: .seconds(5), now: at(0))
    heartbeat.hurry(at(3))
    #expect(heartbeat.wakeUp == at(3))
    guard case .ping = heartbeat.timeReached(at(3)) else {
        Issue.record("no ping")
        return
    }
    #expect(heartbeat.wakeUp == at(8))
    #expect(heartbeat.timeReached(at(8)) == .timedOut)
}

@Test func withoutAnIntervalOnlyTheHurriedPingIsSent() {
    var heartbeat = Heartbeat(interval: .zero, timeout: .seconds(5), now: at(0))
    heartbeat.hurry(at(3))
    guard case .ping(let payload) = heartbeat.timeReached(at(3)) else {
        Issue.record("no ping")
        return
    }
    #expect(pong(&heartbeat, payload, at(4)) == .seconds(1))
    #expect(heartbeat.wakeUp == nil)
}
