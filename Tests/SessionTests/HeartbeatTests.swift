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
